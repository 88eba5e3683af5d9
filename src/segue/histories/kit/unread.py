"""Texts of a stored entry that a reader passed over.

Programs rename fields and change the form of values from one version to the next. A reader takes a value of another
form for a missing one, so what it held would be lost without a word. The texts of an entry are therefore compared with
those of the messages made from it.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from typing import Any, Final, cast

import msgspec

from segue.conversation.limits import parse_json
from segue.errors import LoadError, render_path
from segue.histories.kit.lines import objects_of
from segue.histories.kit.notes import Notes

_SHORTEST: Final = 4
"""Shorter texts are found everywhere."""
_NAME: Final = re.compile(r"\w(?:[\w.:/+@=-]*\w)?")
"""Names, kinds, times and ids: a text of this form is content only if it is long."""
_LONG: Final = 100
_MOST: Final = 100
"""Texts of one entry that are searched for inside others, which takes the time of both lengths."""
_CONTENT_FIELDS: Final = frozenset(
    {"content", "text", "thinking", "arguments", "arguments_text", "data", "url", "block", "fallback"}
)
"""The fields of messages that hold their content."""

_TEXT_KEYS: Final = ("text", "message", "value", "body", "utterance")
"""Names that programs have for the text of a message instead of `content`."""
_SPEAKING: Final = frozenset({"tool_calls", "function_call", "parts", "items", "blocks", "refusal", "audio"})
"""Fields of messages that need no text."""

_Path = tuple[str | int, ...]


def lacks_content(turn: object) -> bool:
    """Whether a value is a message of Chat without content, so that its text may be under another name."""
    if type(turn) is not dict:
        return False
    fields = cast("dict[str, object]", turn)
    return not fields.get("content") and "role" in fields and _SPEAKING.isdisjoint(fields)


def with_content(turn: dict[str, Any]) -> dict[str, Any]:
    """Return a message with its text in `content`, if it has it under another name."""
    key = next((key for key in _TEXT_KEYS if isinstance(turn.get(key), str)), None) if lacks_content(turn) else None
    if key is None:
        return turn
    return {**{name: value for name, value in turn.items() if name != key}, "content": turn[key]}


def note_unread(entry: Mapping[str, Any], made: object, number: int, notes: Notes, *, since: int) -> None:
    """Note an entry with a text that the values made from it do not have.

    `since` is `notes.left_out` before the entry was read: one that has been noted is not noted again.
    """
    if notes.left_out == since and (path := find_unread(entry, made)) is not None:
        notes.unreadable(number, f"{render_path(path)} has an unknown form, or is at an unknown place")


def read_list(value: object, name: str, number: int, notes: Notes) -> list[dict[str, Any]]:
    """Return the objects of a list, such as the calls of an answer; a value of another form is noted.

    What a call holds is often a name, such as that of a file, which `note_unread` does not look for.
    """
    found = objects_of(value)
    if value is not None and not (isinstance(value, list) and len(found) == len(cast("list[object]", value))):
        notes.unreadable(number, f"`{name}` is not a list of objects")
    return found


def find_unread(entry: object, made: object) -> _Path | None:
    """Find the first text of an entry that the values made from it do not have, whole or in parts."""
    given = [(path, text) for path, text in _texts(entry) if _is_content(text)]
    if not given:
        return None
    found = {text for _, text in _texts(made)}
    missing = [(path, text) for path, text in given if text not in found][:_MOST]
    if not missing:
        return None
    whole = "\0".join(found)
    parts = {text for _, text in _texts(made, _CONTENT_FIELDS) if len(text) >= _SHORTEST}
    for path, text in missing:
        inner = _parsed(text)
        if inner is not None:
            if find_unread(inner, made) is not None:
                return path
        elif text.strip() not in whole and not any(part in text for part in parts):
            return path
    return None


def _is_content(text: str) -> bool:
    return len(text) >= _SHORTEST and (len(text) > _LONG or _NAME.fullmatch(text) is None)


def _parsed(text: str) -> object:
    """Parse a text that is the JSON of an object or a list; None for any other text."""
    if not text.startswith(("{", "[")):
        return None
    try:
        return parse_json(text.encode("utf-8", "surrogatepass"))
    except LoadError:
        return None


def _texts(value: object, fields: Container[str] | None = None) -> Iterator[tuple[_Path, str]]:
    """Yield every text inside a value with its path; of messages only those of some fields, if they are given."""
    pending: list[tuple[_Path, object]] = [((), value)]
    while pending:
        path, value = pending.pop()
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, msgspec.Struct):
            names = [name for name in value.__struct_fields__ if fields is None or name in fields]
            pending += [((*path, name), getattr(value, name)) for name in reversed(names)]
        elif isinstance(value, Mapping):
            items = cast("Mapping[str, object]", value).items()
            pending += [((*path, key), inner) for key, inner in reversed(list(items))]
        elif isinstance(value, list | tuple):
            inners = cast("list[object]", value)
            pending += [((*path, at), inners[at]) for at in reversed(range(len(inners)))]
