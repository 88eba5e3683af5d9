"""Functions that the `check` of several protocols share: valid JSON, messages, base64.

The `check` of each protocol decides which of them apply, and names the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Final, TypeAlias, TypeVar, cast, final

import msgspec

from segue.errors import Path
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.codec import Endpoint, JsonObject, Violation
from segue.protocols.kit.json_values import ATOMS, Block, is_list, is_object
from segue.protocols.kit.reading import standard_base64

_Given = TypeVar("_Given")

Found: TypeAlias = Iterator[Violation]


@final
class CheckedBody(dict[str, object]):
    """A request body of plain JSON that is checked: it is encoded once, and visited once for the names in it."""

    @cached_property
    def encoded(self) -> bytes | Exception:
        """The body as JSON, or why it cannot be encoded."""
        try:
            return msgspec.json.encode(self)
        except (UnicodeEncodeError, ValueError, TypeError, RecursionError) as error:
            return error

    @cached_property
    def names(self) -> set[object]:
        """The keys of all objects in the body, and the texts under their `type`.

        A check of rare values looks here before it visits each message.
        """
        names: set[object] = set()
        level: list[object] = [self]
        while level:
            objects = [value for value in level if is_object(value)]
            names.update(*objects)
            names.update([kind for value in objects if type(kind := value.get("type")) is str])
            lists = [value for value in level if is_list(value)]
            inner = chain.from_iterable([*[value.values() for value in objects], *lists])
            level = [value for value in inner if type(value) not in ATOMS]
        return names


def as_checked(body: JsonObject) -> CheckedBody:
    """Return a body with what several checks ask of it."""
    return body if isinstance(body, CheckedBody) else CheckedBody(body)


def may_have(body: JsonObject, names: Iterable[str]) -> bool:
    """Whether one of the names is a key, or a `type`, anywhere in a body."""
    return not as_checked(body).names.isdisjoint(names)


def check_json(body: JsonObject) -> Found:
    """Find a body that cannot be encoded as JSON: NaN, a lone surrogate, or a value of another type.

    "The request body is not valid JSON: no low surrogate in string" (Anthropic and Bedrock: claude-code #1709);
    "Invalid JSON payload received." (Google documentation: troubleshooting); "unexpected end of hex escape"
    (DeepSeek: DeepSeek-Reasonix #1906, 2026-05-26).
    """
    if isinstance(error := as_checked(body).encoded, Exception):
        yield Violation(CheckCode.BODY_NOT_JSON, (), f"the body is not valid JSON ({error}); send JSON")


def run_checks(checks: Iterable[Callable[[_Given, Endpoint], Found]], given: _Given, endpoint: Endpoint) -> Found:
    """Yield what the checks find, in their order."""
    for check in checks:
        yield from check(given, endpoint)


def objects_of(value: object) -> Sequence[tuple[int, Block]]:
    """Return the objects of a list with their indexes; nothing if the value is not a list."""
    if not isinstance(value, (list, tuple)):
        return ()
    items = enumerate(cast("Sequence[Block]", value))
    return [(index, item) for index, item in items if isinstance(item, (dict, Mapping))]  # pyright: ignore[reportUnnecessaryIsInstance]


_NOT_MEDIA: Final = frozenset({"input", "arguments", "json", "text", "thinking", "tools"})
"""Keys whose values are the application's own JSON, or text."""


def check_base64(body: JsonObject, root: str, keys_of: Callable[[Block], Iterable[str]], *keys: str) -> list[Violation]:
    """Find media whose base64 is in the URL-safe alphabet or lacks its padding.

    `keys_of` gives the keys of an object that hold base64, or a data URL of it; `keys` are all of them. "Invalid base64
    image_url." (OpenAI: comfyui-art-venture #75, 2025-01-06); Anthropic decodes strictly (openclaw #18263, 2026-02-16).
    """
    return _find_base64(body.get(root), (root,), keys_of) if may_have(body, keys) else []


def _find_base64(value: object, path: Path, keys_of: Callable[[Block], Iterable[str]]) -> list[Violation]:
    found: list[Violation] = []
    inside: Iterable[tuple[str | int, object]] = enumerate(value) if is_list(value) else ()
    if is_object(value):
        for key in keys_of(value):
            data = value.get(key)
            digits = data.rpartition(",")[2] if isinstance(data, str) else ""
            if digits and standard_base64(digits) != digits:
                message = "the data is not standard base64 with padding; encode it so"
                found.append(Violation(CheckCode.MEDIA_BASE64_INVALID, (*path, key), message))
        inside = value.items()
    for key, inner in inside:
        if isinstance(inner, (dict, list)) and key not in _NOT_MEDIA:
            found += _find_base64(cast("object", inner), (*path, key), keys_of)
    return found
