"""Input files: a stored conversation, a request, a session, or many conversations, one on a line.

The kind of a file is detected by its content, not by its name:
- One JSON value is one conversation: a stored one if it has `format` or keys that only stored files have, otherwise a
  request or the list of its messages.
- Several lines of JSON whose first has a `format` or a `role` are one session, read whole.
- Several lines of any other JSON are one conversation each, read one at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, repeat
from typing import BinaryIO, Final, NamedTuple, TypeAlias, cast, final

import msgspec

from segue.conversation.context import Prompt
from segue.conversation.limits import parse_json, without_line
from segue.conversation.stored import load
from segue.errors import DecodeError, LoadError, SegueError
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.protocols.api import decode_request
from segue.protocols.detection import detect_protocol
from segue.request import Request, prepare, prepare_prompt
from segue.sessions import read_session_lines


@final
class Document(NamedTuple):
    """One decoded conversation, and what it was decoded from."""

    prompt: Prompt
    protocol: str | None = None
    """The protocol of a request; None for a stored conversation."""
    body: Mapping[str, object] | list[object] | None = None
    line: int | None = None
    """The line of a conversation in a file with one on each line."""
    data: bytes | None = None
    """The JSON of a file with one conversation."""
    lines: tuple[int, ...] = ()
    """The line of each message of a session."""

    def prepare(self, model: Model, policy: Policy) -> Request:
        """Make a request for a model.

        Raises:
            EmptyConversation: the conversation has no content to send.
            ProjectionRefused: the policy refuses a necessary change.
        """
        if self.protocol is None:
            return prepare(self.prompt.context, model, policy=policy)
        return prepare_prompt(self.prompt, model, source=self.protocol, policy=policy)


@final
class BadLine(NamedTuple):
    """A line that cannot be read, and the reason."""

    line: int
    reason: str


Lines: TypeAlias = Iterator[tuple[int, bytes]]


@final
class Source(NamedTuple):
    """An opened file: either one conversation, or lines with one each."""

    document: Document | None
    lines: Lines


def open_source(file: BinaryIO, name: str, *, protocol: str | None, model: Model | None = None) -> Source:
    """Detect the kind of a file, and read it if it is one conversation; `model` wrote the answers of a request.

    Raises:
        LoadError: the file cannot be read as a conversation.
        DecodeError: the file is not a request of that protocol, or of no known protocol.
    """
    numbered = ((number, line) for number, line in enumerate(file, 1) if not line.isspace())
    first = next(numbered, None)
    if first is None:
        raise LoadError("the file is empty; a conversation in JSON or JSON Lines is expected")
    second = next(numbered, None)
    lines = chain((first,), () if second is None else (second,), numbered)
    if second is None:
        return Source(_read_alone(first, protocol, model), iter(()))
    value = _parse_fast(first[1])
    if value is None and (first[1].strip() in _OPENINGS or _parse_fast(second[1]) is None):
        return Source(_read_whole(_join(lines), protocol, model), iter(()))
    if isinstance(value, dict) and is_session(cast("dict[str, object]", value)):
        return Source(_read_session(lines, name), iter(()))
    return Source(None, lines)


_OPENINGS: Final = (b"{", b"[")
"""The first line of a document that is formatted over several lines."""


def read_document(
    data: bytes, protocol: str | None, line: int | None = None, *, model: Model | None = None
) -> Document:
    """Read one conversation; `model` wrote the answers of a request, even if the body names another model.

    Raises:
        LoadError: the data is not JSON, or not a valid stored conversation.
        DecodeError: the data is not a valid request.
    """
    value = _parse_fast(data)
    if value is None:
        value = parse_json(data)
    return read_value(value, protocol, line, data=data, model=model)


def read_value(
    value: object,
    protocol: str | None,
    line: int | None = None,
    *,
    data: bytes | str | None = None,
    model: Model | None = None,
) -> Document:
    """Read one conversation from parsed JSON; `data` is its text if there is one.

    Raises:
        LoadError: the value is not a conversation, or not a valid stored one.
        DecodeError: the value is not a valid request.
    """
    if protocol is None and isinstance(value, dict) and _is_stored(cast("dict[str, object]", value)):
        return Document(Prompt(context=load(msgspec.json.encode(value) if data is None else data)), line=line)
    if not isinstance(value, (dict, list)):
        raise LoadError("this is neither a conversation nor a request; a JSON object or a list of messages is expected")
    body = cast("dict[str, object] | list[object]", value)
    source_protocol = protocol or detect_protocol(body)
    if source_protocol is None:
        raise DecodeError(
            "this is not a stored conversation, and its protocol cannot be detected; if it is a request, name its"
            " protocol with --from"
        )
    return Document(decode_request(body, protocol=source_protocol, model=model), source_protocol, body, line)


def read_line(data: bytes, protocol: str | None, line: int, *, model: Model | None = None) -> Document | BadLine:
    """Read one conversation of many; an error is returned, not raised."""
    try:
        return read_document(data, protocol, line, model=model)
    except SegueError as error:
        return BadLine(line, without_line(str(error)))


def _read_whole(data: bytes, protocol: str | None, model: Model | None) -> Document:
    return read_document(data, protocol, model=model)._replace(data=data)


def _join(lines: Lines) -> bytes:
    """Join lines, with the blank ones that were left out, so that errors give the line of the file."""
    pieces: list[bytes] = []
    last = 0
    for number, line in lines:
        pieces += (b"\n" * (number - last - 1), line)
        last = number
    return b"".join(pieces)


def _read_alone(numbered: tuple[int, bytes], protocol: str | None, model: Model | None) -> Document:
    line = numbered[1]
    value = _parse_fast(line)
    if protocol is None and isinstance(value, dict) and "role" in value and "messages" not in value:
        return _read_session(iter((numbered,)), "")
    return _read_whole(_join(iter((numbered,))), protocol, model)


def _read_session(lines: Lines, name: str) -> Document:
    numbers: list[int] = []
    context = read_session_lines(_with_blank_lines(lines), name=name, numbers=numbers)
    return Document(Prompt(context=context), lines=tuple(numbers))


def _with_blank_lines(lines: Lines) -> Iterator[bytes]:
    """Add the blank lines again that were left out, so that the others keep their numbers."""
    last = 0
    for number, line in lines:
        yield from repeat(b"\n", number - last - 1)
        yield line
        last = number


def _parse_fast(data: bytes) -> object | None:
    """Parse JSON with msgspec; None if that fails. `parse_json` is slower, accepts more and explains errors."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def is_session(first: Mapping[str, object]) -> bool:
    """Whether the first line of a file makes it a session: one conversation over all lines."""
    return "messages" not in first and ("format" in first or "role" in first)


_STORED_KEYS: Final = frozenset({"format", "systemPrompt"})
_STORED_MESSAGE_KEYS: Final = frozenset({"stopReason", "toolCallId", "api", "timestamp"})
_STORED_KINDS: Final = frozenset({"toolCall"})
"""Keys and values of stored conversations that no protocol has, beside the role `toolResult`."""


def _is_stored(document: Mapping[str, object]) -> bool:
    if not _STORED_KEYS.isdisjoint(document):
        return True
    messages = document.get("messages")
    if not isinstance(messages, list):
        return False
    return any(map(_is_stored_message, cast("list[object]", messages)))


def _is_stored_message(item: object) -> bool:
    if type(item) is not dict:
        return False
    message = cast("dict[str, object]", item)
    if not _STORED_MESSAGE_KEYS.isdisjoint(message) or message.get("role") == "toolResult":
        return True
    content = message.get("content")
    if type(content) is not list:
        return False
    kinds = [
        cast("dict[str, object]", piece).get("type") for piece in cast("list[object]", content) if type(piece) is dict
    ]
    return any(kind in _STORED_KINDS for kind in kinds)
