"""Functions that the `check` of several protocols share: valid JSON, messages, unanswered calls, alphabets of ids.

The `check` of each protocol decides which of them apply, and names the source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias, TypeVar, cast

import msgspec

from segue.errors import Path
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.codec import Endpoint, JsonObject, Violation
from segue.protocols.kit.json_values import Block, is_list, is_object
from segue.protocols.kit.reading import standard_base64

_Given = TypeVar("_Given")

Found: TypeAlias = Iterator[Violation]
Messages: TypeAlias = list[Block]


def check_json(body: JsonObject) -> Found:
    """Find a body that cannot be encoded as JSON: NaN, a lone surrogate, or a value of another type.

    "The request body is not valid JSON: no low surrogate in string" (Anthropic and Bedrock: claude-code #1709);
    "Invalid JSON payload received." (Google documentation: troubleshooting); "unexpected end of hex escape"
    (DeepSeek: DeepSeek-Reasonix #1906, 2026-05-26).
    """
    try:
        msgspec.json.encode(body)
    except (UnicodeEncodeError, ValueError, TypeError, RecursionError) as error:
        yield Violation(CheckCode.BODY_NOT_JSON, (), f"the body is not valid JSON ({error}); send JSON")


def run_checks(checks: Iterable[Callable[[_Given, Endpoint], Found]], given: _Given, endpoint: Endpoint) -> Found:
    """Yield what the checks find, in their order."""
    for check in checks:
        yield from check(given, endpoint)


def messages_of(body: JsonObject) -> Messages | Violation:
    """Return the messages of a body, or the violation if they are missing or not objects."""
    given = body.get("messages")
    if not isinstance(given, list) or not given:
        return Violation(
            CheckCode.MESSAGES_MISSING, ("messages",), "`messages` has to be a list with a message; add one"
        )
    messages: Messages = []
    for index, message in enumerate(cast("list[object]", given)):
        if not isinstance(message, Mapping):
            return Violation(CheckCode.TYPE_WRONG, ("messages", index), "a message has to be an object; change it")
        messages.append(cast("Block", message))
    return messages


def objects_of(value: object) -> Sequence[tuple[int, Block]]:
    """Return the objects of a list with their indexes; nothing if the value is not a list."""
    if not isinstance(value, (list, tuple)):
        return ()
    items = enumerate(cast("Sequence[object]", value))
    return [(index, cast("Block", item)) for index, item in items if isinstance(item, (dict, Mapping))]


_NOT_MEDIA: Final = frozenset({"input", "arguments", "json", "text", "thinking", "tools"})
"""Keys whose values are the application's own JSON, or text."""


def check_base64(value: object, path: Path, keys_of: Callable[[Block], Iterable[str]]) -> list[Violation]:
    """Find media whose base64 is in the URL-safe alphabet or lacks its padding.

    `keys_of` gives the keys of an object that hold base64, or a data URL of it. "Invalid base64 image_url." (OpenAI:
    comfyui-art-venture #75, 2025-01-06); Anthropic decodes strictly (openclaw #18263, 2026-02-16).
    """
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
            found += check_base64(cast("object", inner), (*path, key), keys_of)
    return found


_URL_KEYS: Final = ("url", "image_url", "file_data", "document_url")


def data_urls(block: Block) -> Iterable[str]:
    """Yield the keys of an object of OpenAI's protocols that hold base64: data URLs, and the data of a sound."""
    for key in _URL_KEYS:
        text = block.get(key)
        if isinstance(text, str) and text[:5] == "data:" and ";base64," in text[:200]:
            yield key
    # Encrypted reasoning has the same two keys, and a type.
    if "format" in block and "type" not in block and isinstance(block.get("data"), str):
        yield "data"


def calls_of(message: Block) -> list[Block]:
    """Return the tool calls of a message; none if its role is not `assistant`."""
    calls = message.get("tool_calls")
    if message.get("role") != "assistant" or not isinstance(calls, list):
        return []
    return [cast("Block", call) for call in cast("list[object]", calls) if isinstance(call, Mapping)]


class OpenCalls:
    """The ids of calls that wait for a result, in call order. An id may be any JSON value, and may occur twice."""

    def __init__(self, ids: Iterable[object] = ()) -> None:
        self._waiting: dict[str, list[object]] = {}
        for call_id in ids:
            self._waiting.setdefault(repr(call_id), []).append(call_id)

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def answer(self, call_id: object) -> bool:
        """Remove a call that has this id; whether there was one."""
        key = repr(call_id)
        waiting = self._waiting.get(key)
        if waiting is None:
            return False
        waiting.pop()
        if not waiting:
            del self._waiting[key]
        return True

    def ids(self) -> list[object]:
        """Return the ids of the calls without a result."""
        return [call_id for waiting in self._waiting.values() for call_id in waiting]


def unanswered(index: int, calls: OpenCalls) -> Violation:
    """Return the violation for calls of a message that have no results."""
    named = ", ".join(map(str, calls.ids()))
    return Violation(CheckCode.RESULT_MISSING, ("messages", index, "tool_calls"), f"no result for {named}; add one")


def matches_alphabet(literal: str, alphabet: str, *, least: int = 1, most: int = 0) -> bool:
    """Whether a text has only characters of the alphabet, at least `least` and at most `most` (0: no limit)."""
    return _pattern(alphabet, least, most).fullmatch(literal) is not None


@lru_cache(maxsize=64)
def _pattern(alphabet: str, least: int, most: int) -> re.Pattern[str]:
    return re.compile(f"[{alphabet}]{{{least},{most or ''}}}")


@lru_cache(maxsize=64)
def name_pattern(first: str | None, alphabet: str | None, most: int) -> re.Pattern[str]:
    """Make the pattern of a name with an alphabet, and another one for its first character; None: any."""
    rest = f"[{alphabet}]" if alphabet else "."
    return re.compile(rf"[{first}]{rest}{{0,{most - 1 if most else ''}}}" if first else rf"{rest}{{1,{most or ''}}}")
