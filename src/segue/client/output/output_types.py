"""A type that a reply is read as: its schema, and the value in the text of a reply.

Facts:
- The schema of an answer has to be an object at its root at OpenAI and Cohere; the SDK of Google sends lists and
  enumerations.        (OpenAI: structured outputs; cohere 7.3.1: JsonResponseFormatV2; google-genai 3.1.0: types)
- Models that are asked in words put their JSON into a code fence or between sentences, some also in JSON mode; the
  sentences may have brackets, the texts raw line breaks.  (hindsight #645, dify #42452, pr-reviewer-action #449; 2026)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, cast, final

import msgspec

from segue.client.output.schemas import json_schema, read_value
from segue.conversation.arguments import parse_arguments

WRAPPER: Final = "value"
"""The only property of the object around a value that is not an object itself."""
_FENCE: Final = re.compile(r"```[\w-]*[ \t]*\n(.*?)```", re.DOTALL)
_PLACE: Final = re.compile(r"at `(\$[^`]*)`")
_LINK: Final = re.compile(r"\n\s*For further information visit \S+")
_BRACKET: Final = re.compile(r"[{\[]")
_STARTS: Final = frozenset({"", "{", "[", '"', "`"})
"""What JSON and code begin with; an empty text says nothing."""
_MOST_TRIED: Final = 50
"""Brackets of a text at which JSON is looked for."""


class Misfit(NamedTuple):
    """Why a text does not hold a value of the type; `place` is a path such as `$.places[0].name`, empty if unknown."""

    reason: str
    place: str = ""


@final
class OutputType:
    """A type, its JSON schema, and the same schema with an object at its root.

    Raises:
        SettingsError: a part of the type has no JSON schema.
    """

    def __init__(self, type_: Any) -> None:  # noqa: ANN401 - a type form, such as `list[Place] | None`
        self.type = type_
        self.schema: dict[str, Any] = json_schema(type_)
        self.is_object: bool = self.schema.get("type") == "object"
        self.object_schema: dict[str, Any] = self.schema if self.is_object else _wrap(self.schema)

    def __repr__(self) -> str:
        return f"OutputType({self.type!r})"

    def read(self, texts: Sequence[str]) -> Any:  # noqa: ANN401 - a value of the type, or a `Misfit`
        """Read the value that one of the texts holds; the reason of the first one if none does."""
        first: Misfit | None = None
        for text in texts:
            try:
                return self._read_text(text)
            except ValueError as error:
                first = first or _explain(error)
        return first or Misfit("the reply is empty")

    def _read_text(self, text: str) -> Any:  # noqa: ANN401 - as above
        problem: ValueError | None = None
        try:
            for found in find_json(text):
                for given in self._unwrapped(found):
                    try:
                        return read_value(given, self.type)
                    except ValueError as error:
                        problem = problem or error
        except ValueError as error:  # no JSON
            problem = error
        if not self.is_object and text.strip()[:1] not in _STARTS:
            with suppress(ValueError):  # a text may come without quotes
                return read_value(text.strip(), self.type)
        assert problem is not None, "there is at least one value to try"
        raise problem

    def _unwrapped(self, value: object) -> Iterator[object]:
        """Yield the values that may be meant; the content of the wrapper comes before the wrapper itself."""
        if not self.is_object and isinstance(value, dict) and list(cast("dict[str, object]", value)) == [WRAPPER]:
            yield cast("dict[str, object]", value)[WRAPPER]
        yield value

    def read_partial(self, text: str) -> Any:  # noqa: ANN401 - JSON
        """Read what there is of a value, as plain JSON; None if nothing has begun."""
        start = min((at for at in map(text.find, "{[") if at >= 0), default=-1)
        text = text[start:] if start >= 0 else text if not self.is_object else ""
        if not text.strip():
            return None
        value = cast("object", parse_arguments(f'{{"{WRAPPER}":{text}').arguments.get(WRAPPER))
        if self.is_object or not isinstance(value, dict):
            return value
        given = cast("dict[str, object]", value)
        return given.get(WRAPPER) if given.keys() <= {WRAPPER} else given


def _explain(error: ValueError) -> Misfit:
    """Describe a value that does not fit: for a model, which reads it, and with its place."""
    text = _LINK.sub("", str(error))
    place = _PLACE.search(text)
    found = "" if place is None else place[1]
    return Misfit(text, found)


def find_json(text: str) -> Iterator[object]:
    """Yield the JSON in a text: the whole text if it is JSON, else what is in code fences, then every object and list.

    Raises:
        ValueError: there is none.
    """
    stripped = text.strip()
    try:
        whole = cast("object", msgspec.json.decode(stripped))
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        problem = str(error) or "it is nested too deeply"
    else:
        yield whole
        return
    is_found = False
    for inner in (*(match[1] for match in _FENCE.finditer(text)), stripped):
        for value in _find_brackets(inner):
            is_found = True
            yield value
    if not is_found:
        raise ValueError(f"it is not JSON: {problem}" if stripped else "the reply is empty")


def _find_brackets(text: str) -> Iterator[object]:
    """Yield the outermost objects and lists in a text; what follows one of them does not matter."""
    at, tried = 0, 0
    while (start := _BRACKET.search(text, at)) is not None and tried < _MOST_TRIED:
        tried += 1
        try:
            value, at = _LENIENT.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            at = start.end()
        else:
            yield value


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


_LENIENT: Final = json.JSONDecoder(strict=False, parse_constant=_refuse_constant)
"""Reads line breaks in texts, too."""


def _wrap(schema: Mapping[str, Any]) -> dict[str, Any]:
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    wrapped: dict[str, Any] = {
        "type": "object",
        "properties": {WRAPPER: inner},
        "required": [WRAPPER],
        "additionalProperties": False,
    }
    return wrapped | ({"$defs": schema["$defs"]} if "$defs" in schema else {})
