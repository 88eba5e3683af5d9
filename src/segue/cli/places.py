"""The line of a file that a finding is about.

A session has a line for each message, and many conversations have a line each. One document over several lines is
searched for the value at the path of the finding.

The path of a change is one in the conversation. In a request, its messages can have other positions: the system
prompt of some protocols is a message, and one turn can hold several results. The position is found with
`decode_request`: of the turns up to a position, it makes the messages up to one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from json import JSONDecodeError, JSONDecoder
from typing import Final, cast, final

from segue.errors import Path, SegueError
from segue.histories.opening import OpenedDocument
from segue.protocols.api import decode_request
from segue.protocols.registry import get_protocol

_SPACE: Final = " \t\r\n"
_PROMPT_KEYS: Final = ("systemPrompt", "system", "systemInstruction", "system_instruction", "instructions")
"""Where documents and requests have the system prompt, unless it is a message."""
_decode: Final = JSONDecoder().raw_decode


@final
class LinesOfPaths:
    """Finds lines in one document; each list and object of the JSON is read once."""

    def __init__(self, document: OpenedDocument) -> None:
        self._document = document
        data = document.data or b""
        # The lines of a document that is not UTF-8 are never asked for: it could not be read.
        self._text = data.decode("utf-8-sig", "replace") if data.strip().count(b"\n") else ""
        self._first = 1 + data[: len(data) - len(data.lstrip())].count(b"\n")
        self._inside: dict[int, Mapping[str | int, int]] = {}
        self._counts: dict[int, int] = {}

    def find_line(self, path: Path, *, is_wire: bool) -> int:
        """Find the line of a path: in the body of a request with `is_wire`, otherwise in the conversation."""
        document = self._document
        if document.line is not None:
            return document.line
        if document.lines:
            match path:
                case ("messages", int() as at, *_):
                    return document.lines[min(at, len(document.lines) - 1)]
                case _:
                    return 1
        if not self._text:
            return self._first
        position = self._find(path if is_wire else self._in_document(path))
        return 1 + self._text.count("\n", 0, position)

    def _find(self, path: Path) -> int:
        """Return the position of the value at a path, or of the nearest value above it that exists."""
        text = self._text
        position = _skip(text, 0)
        for step in path:
            inside = self._inside.get(position)
            if inside is None:
                inside = self._inside[position] = _members(text, position)
            if step not in inside:
                break
            position = inside[step]
        return position

    def _in_document(self, path: Path) -> Path:
        """Return the path in the document of a path in the conversation."""
        document = self._document
        match path:
            case ("system_prompt", *rest):
                body = document.body if isinstance(document.body, dict) else {}
                key = next((key for key in _PROMPT_KEYS if key in body), _PROMPT_KEYS[0])
                turns = self._turns_key()
                return (key, *rest) if turns is None or key in body else (turns, 0)
            case ("messages", int() as at, *rest) if document.protocol is not None:
                return self._turn_of(at, tuple(rest))
            case _:
                return path

    def _turns_key(self) -> str | None:
        """Return the key of the turns of a request; None for a stored conversation."""
        protocol = self._document.protocol
        return None if protocol is None else get_protocol(protocol).turns_key

    def _turn_of(self, message: int, rest: Path) -> Path:
        """Find the turn of a request that holds a message."""
        body, key = self._document.body, self._turns_key()
        turns = body if isinstance(body, list) else cast("Mapping[str, object]", body or {}).get(key or "")
        if not isinstance(turns, list):
            return ()
        size = len(cast("list[object]", turns))
        at = bisect_left(range(size), message + 1, key=lambda index: self._count(index + 1))
        place: Path = (at,) if isinstance(body, list) else (key or "", at)
        is_alone = self._count(at + 1) - self._count(at) == 1
        return (*place, *rest) if is_alone else place

    def _count(self, size: int) -> int:
        """Count the messages that the first turns of the request make."""
        if size not in self._counts:
            self._counts[size] = self._decode_first(size) if size else 0
        return self._counts[size]

    def _decode_first(self, size: int) -> int:
        document = self._document
        body, key = document.body, self._turns_key()
        assert document.protocol is not None, "only a request is decoded"
        if isinstance(body, list):
            first: Mapping[str, object] | list[object] = body[:size]
        else:
            fields = cast("Mapping[str, object]", body)
            first = {**fields, key or "": cast("list[object]", fields[key or ""])[:size]}
        try:
            return len(decode_request(first, protocol=document.protocol).context.messages)
        except SegueError:  # a part of the turns may be no request
            return size


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in _SPACE:
        position += 1
    return position


def _members(text: str, position: int) -> Mapping[str | int, int]:
    """Return the positions of the members of a list or object, by key or index; empty for any other value."""
    found: dict[str | int, int] = {}
    kind = text[position : position + 1]
    if kind not in ("{", "["):
        return found
    try:
        position = _skip(text, position + 1)
        while text[position] not in "}]":
            step: str | int = len(found)
            if kind == "{":
                step, position = cast("tuple[str, int]", _decode(text, position))
                position = _skip(text, _skip(text, position) + 1)
            found[step] = position
            position = _skip(text, _decode(text, position)[1])
            if text[position] == ",":
                position = _skip(text, position + 1)
    except (JSONDecodeError, IndexError, RecursionError):
        pass  # what msgspec accepts and json does not: the nearest value above is good enough
    return found
