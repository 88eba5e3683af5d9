"""A type that a reply is read as: its schema, and the value in the text of a reply.

Facts:
- The schema of an answer has to be an object at its root at OpenAI and Cohere; the SDK of Google sends lists and
  enumerations.        (OpenAI: structured outputs; cohere 7.3.1: JsonResponseFormatV2; google-genai 3.1.0: types)
- Models that are asked in words put their JSON into a code fence or between sentences, some also in JSON mode; the
  sentences may have brackets, the texts raw line breaks.  (hindsight #645, dify #42452, pr-reviewer-action #449; 2026)
- msgspec describes a NamedTuple as a list, which tells a model nothing about the fields.         (msgspec 0.22, tried)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from types import UnionType
from typing import Any, Final, NamedTuple, Union, cast, final, get_args, get_origin

import msgspec

from segue.client.output.schemas import json_schema, read_value
from segue.conversation.arguments import parse_arguments
from segue.errors import SettingsError

WRAPPER: Final = "value"
"""The only property of the object around a value that is not an object itself."""
_FENCE: Final = re.compile(r"```[\w-]*[ \t]*\n(.*?)```", re.DOTALL)
_PLACE: Final = re.compile(r"at `(\$[^`]*)`")
_LINK: Final = re.compile(r"\n\s*For further information visit \S+")
_BRACKET: Final = re.compile(r"[{\[]")
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
        self._members: tuple[Any, ...] = ()
        self.schema: dict[str, Any] = self._describe()
        self.is_object: bool = self.schema.get("type") == "object"
        self.object_schema: dict[str, Any] = self.schema if self.is_object else _wrap(self.schema)

    def __repr__(self) -> str:
        return f"OutputType({self.type!r})"

    def _describe(self) -> dict[str, Any]:
        try:
            return _named(json_schema(self.type), self.type)
        except SettingsError:
            # msgspec reads no union of two classes without a tag, so each of them is tried.
            if get_origin(self.type) not in (Union, UnionType):
                raise
        self._members = get_args(self.type)
        definitions: dict[str, Any] = {}
        choices: list[dict[str, Any]] = []
        for member in self._members:
            schema = _named(json_schema(member), member)
            definitions |= schema.pop("$defs", {})
            choices.append(schema)
        return {"anyOf": choices} | ({"$defs": definitions} if definitions else {})

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
        for found in find_json(text):
            for given in self._unwrapped(found):
                try:
                    return self._read_value(given)
                except ValueError as error:
                    problem = problem or error
        assert problem is not None, "there is at least one value to try"
        raise problem

    def _unwrapped(self, value: object) -> Iterator[object]:
        """Yield the values that may be meant; the content of the wrapper comes before the wrapper itself."""
        if not self.is_object and isinstance(value, dict) and list(cast("dict[str, object]", value)) == [WRAPPER]:
            yield cast("dict[str, object]", value)[WRAPPER]
        yield value

    def _read_value(self, value: object) -> Any:  # noqa: ANN401 - as above
        if not self._members:
            return read_value(_arranged(value, self.type), self.type)
        reasons: list[str] = []
        for member in self._members:
            try:
                return read_value(_arranged(value, member), member)
            except ValueError as error:
                reasons.append(str(error))
        raise ValueError("; or ".join(reasons))

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
    inner = getattr(error if error.__cause__ is None else error.__cause__, "errors", None)
    if callable(inner):  # of pydantic: the place below the one that msgspec names
        steps = cast("Sequence[Mapping[str, Any]]", inner())[0].get("loc", ())
        found = (found or "$") + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
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


# -- named tuples ------------------------------------------------------------------------------------------------------


def _named(schema: dict[str, Any], type_: Any) -> dict[str, Any]:  # noqa: ANN401 - a type form
    """Describe NamedTuples as objects with the names of their fields."""
    tuples = {found.cls.__name__: found for found in _find_tuples(msgspec.inspect.type_info(type_), set())}
    return cast("dict[str, Any]", _name_fields(schema, tuples)) if tuples else schema


def _find_tuples(info: object, seen: set[int]) -> Iterator[msgspec.inspect.NamedTupleType]:
    if isinstance(info, (list, tuple)):
        for each in cast("Sequence[object]", info):
            yield from _find_tuples(each, seen)
    elif isinstance(info, (msgspec.inspect.Type, msgspec.inspect.Field)) and id(info) not in seen:
        seen.add(id(info))
        if isinstance(info, msgspec.inspect.NamedTupleType):
            yield info
        for name in info.__struct_fields__:
            yield from _find_tuples(getattr(info, name), seen)


def _name_fields(schema: object, tuples: Mapping[str, msgspec.inspect.NamedTupleType]) -> object:
    if isinstance(schema, list):
        return [_name_fields(each, tuples) for each in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    given = {key: _name_fields(value, tuples) for key, value in cast("dict[str, object]", schema).items()}
    found = tuples.get(str(given.get("title")))
    if found is None or "prefixItems" not in given:
        return given
    items = cast("list[object]", given.pop("prefixItems"))
    for key in ("minItems", "maxItems", "items"):
        given.pop(key, None)
    names = [field.name for field in found.fields]
    return given | {
        "type": "object",
        "properties": dict(zip(names, items, strict=True)),
        "required": [field.name for field in found.fields if field.required],
        "additionalProperties": False,
    }


def _arranged(value: object, type_: Any) -> object:  # noqa: ANN401 - a type form
    """Put the fields of NamedTuples into their order, where they came as an object."""
    info = msgspec.inspect.type_info(type_)
    return _arrange(value, info) if any(_find_tuples(info, set())) else value


def _arrange(value: object, info: object) -> object:
    match info:
        case msgspec.inspect.Metadata():
            return _arrange(value, info.type)
        case msgspec.inspect.UnionType():
            return next((out for each in info.types if (out := _arrange(value, each)) is not value), value)
        case msgspec.inspect.NamedTupleType() if isinstance(value, dict):
            given = cast("dict[str, object]", value)
            if unknown := sorted(given.keys() - {field.name for field in info.fields}):
                raise ValueError(f"Object contains unknown field `{unknown[0]}`")
            names = [field.name for field in info.fields]
            missing = [field.name for field in info.fields if field.required and field.name not in given]
            if missing:
                raise ValueError(f"Object missing required field `{missing[0]}`")
            return [
                _arrange(given[field.name], field.type) if field.name in given else field.default
                for field in info.fields[: max((names.index(name) + 1 for name in given), default=0)]
            ]
        case (
            msgspec.inspect.ListType()
            | msgspec.inspect.SetType()
            | msgspec.inspect.FrozenSetType()
            | msgspec.inspect.VarTupleType()
        ) if isinstance(value, list):
            return [_arrange(each, info.item_type) for each in cast("list[object]", value)]
        case msgspec.inspect.DictType() if isinstance(value, dict):
            return {key: _arrange(each, info.value_type) for key, each in cast("dict[str, object]", value).items()}
        case msgspec.inspect.StructType() | msgspec.inspect.DataclassType() | msgspec.inspect.TypedDictType() if (
            isinstance(value, dict)
        ):
            types = {field.encode_name: field.type for field in info.fields}
            given = cast("dict[str, object]", value)
            return {key: _arrange(each, types[key]) if key in types else each for key, each in given.items()}
        case _:
            return value
