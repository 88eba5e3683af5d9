"""Texts of a stored entry that a reader passed over.

Programs rename fields and change the form of values from one version to the next. A reader takes a value of another
form for a missing one, so what it held would be lost without a word. The texts of an entry are therefore compared with
those of the messages made from it.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
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
_ARGUMENTS: Final = re.compile(r"(?:raw_?)?(?:arg|input|parameters)", re.IGNORECASE)
"""Names of the fields that programs have for the arguments of a call: all of it is content, also names of files."""
_MOST: Final = 100
"""Texts of one entry that are searched for inside others, which takes the time of both lengths."""
_CONTENT_FIELDS: Final = frozenset({"content", "text", "thinking", "data", "url", "block", "fallback"})
"""The fields of messages that hold their words. A file that a call names occurs in other texts, too."""

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


def note_unread(
    entry: Mapping[str, Any], made: object, number: int, notes: Notes, *, since: int, names: bool = True
) -> None:
    """Note an entry with a text that the values made from it do not have.

    `since` is `notes.left_out` before the entry was read: one that has been noted is not noted again. Without `names`,
    arguments count only if they are words: results of some frameworks repeat those of their call.
    """
    if notes.left_out == since and (path := find_unread(entry, made, names=names)) is not None:
        notes.unreadable(number, f"{render_path(path)} has an unknown form, or is at an unknown place")


def read_list(value: object, name: str, number: int, notes: Notes) -> list[dict[str, Any]]:
    """Return the objects of a list, such as the calls of an answer; a value of another form is noted.

    What a call holds is often a name, such as that of a file, which `note_unread` does not look for.
    """
    found = objects_of(value)
    if value is not None and not (isinstance(value, list) and len(found) == len(cast("list[object]", value))):
        notes.unreadable(number, f"`{name}` is not a list of objects")
    return found


def find_unread(entry: object, made: object, *, names: bool = True) -> _Path | None:
    """Find the first text of an entry that the values made from it do not have, whole or in parts."""
    given = list(_given(entry, names=names))
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
            if find_unread(inner, made, names=names) is not None:
                return path
        elif text.strip() not in whole and not any(part in text for part in parts):
            return path
    return None


def note_unexplained(items: Iterable[tuple[int, object]], made: object, notes: Notes) -> None:
    """Note the items of a file with a text that the whole conversation does not have.

    The last net under readers that make one message of several items, or several of one: what an item became is not
    known there. An item that was noted is not noted again.
    """
    noted = notes.noted
    found = {text for _, text in _texts(made)}
    whole = "\0".join(found)
    for number, item in items:
        path = None if number in noted else next(_unexplained(item, found, whole), None)
        if path is not None:
            noted.add(number)
            notes.unreadable(number, f"{render_path(path)} has an unknown form, or is at an unknown place")


def find_unexplained(item: object, made: object) -> _Path | None:
    """Find the first text of an item that no value made from the whole file has."""
    found = {text for _, text in _texts(made)}
    return next(_unexplained(item, found, "\0".join(found)), None)


def _unexplained(item: object, found: Container[str], whole: str) -> Iterator[_Path]:
    for path, text in _given(item):
        if text in found or text.strip() in whole:
            continue
        inner = _parsed(text)
        if inner is None or any(True for _ in _unexplained(inner, found, whole)):
            yield path


def _given(entry: object, *, names: bool = True) -> Iterator[tuple[_Path, str]]:
    """Yield the texts of an entry that are content: words, and whatever is in the arguments of a call."""
    pending: list[tuple[_Path, object, bool]] = [((), entry, False)]
    while pending:
        path, value, is_argument = pending.pop()
        if isinstance(value, str):
            if _is_content(value) or (is_argument and len(value) >= _SHORTEST):
                yield path, value
        elif isinstance(value, dict):
            fields = cast("dict[str, object]", value)
            for key in reversed(fields):
                inner = fields[key]
                if isinstance(inner, str) and inner.startswith("{") and _ARGUMENTS.match(key):
                    inner = _parsed(inner) or inner  # JSON as a text
                pending.append(((*path, key), inner, is_argument or (names and _holds_arguments(key, inner))))
        elif isinstance(value, list):
            items = cast("list[object]", value)
            pending += [((*path, at), items[at], is_argument) for at in reversed(range(len(items)))]


def _holds_arguments(key: str, value: object) -> bool:
    """Whether a field is the arguments of a call; a schema, which a tool has under the same names, is not."""
    return isinstance(value, dict) and _ARGUMENTS.match(key) is not None and "properties" not in value


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
