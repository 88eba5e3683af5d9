"""Replies that pass straight through: whether the provider wrote them as its protocol says.

Servers that are nearly right leave out ids of calls, give all calls one index, repeat arguments in every delta, write
arguments that are not JSON, or name no reason or a wrong one why the reply ended. A client of the gateway gets such a
reply written anew, from the place of the first fault on; the bytes before it were right.

The reply is read alongside anyway, and its events are written as frames. Here the calls, their arguments and the
reasons in these frames are compared with those in the bytes. Deltas of text and thinking are not looked at: nearly all
events of a right stream cost nothing here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, cast, final

import msgspec
from msgspec.structs import replace

from segue.conversation.context import Tool
from segue.conversation.events import Event
from segue.conversation.messages import AssistantMessage
from segue.models.model import Model
from segue.projection.replies.projector import ReplyProjector, project_reply
from segue.protocols.api import encode_response

_ENDS: Final[Mapping[str, tuple[bytes, ...]]] = {"sse": (b"\n\n", b"\r\n\r\n", b"\r\r"), "ndjson": (b"\n",)}
"""How frames end. Replies in other framings pass as they are."""
_UNREMARKABLE: Final = frozenset(
    {
        "start",
        "text_start",
        "text_delta",
        "text_end",
        "thinking_start",
        "thinking_delta",
        "thinking_end",
        "ping",
        "native",
    }
)
_IDS: Final = ("call_id", "id", "toolUseId", "tool_call_id")
_INDEXES: Final = ("index", "output_index")
_INPUTS: Final = ("arguments", "input", "args", "function")
_ARGUMENTS: Final = ("arguments", "partial_json", "args")
_REASONS: Final = ("finish_reason", "stop_reason", "finishReason", "done_reason")
_REASON: Final = re.compile(rb'"(?:' + "|".join(_REASONS).encode() + rb')"\s*:\s*"')
_DECODE: Final = msgspec.json.Decoder().decode


@final
class _Seen:
    """What a stream said so far: its calls, their arguments, and the reasons why it ended."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.arguments: list[str] = []
        self.reasons: list[object] = []
        self.has_error = False
        self._indexes = set[object]()
        """Those of the calls: the arguments of tools that the provider itself runs may be written in another form."""

    def add(self, frame: object) -> None:
        """Read one frame."""
        if isinstance(frame, dict):
            given = cast("dict[str, Any]", frame)
            self.has_error = self.has_error or bool(given.get("error")) or given.get("type") == "response.failed"
            if given.get("type") not in _REPEATING:
                self._walk(given, None)

    def _walk(self, value: object, index: object, *, is_inner: bool = False) -> None:
        if isinstance(value, list):
            for each in cast("list[object]", value):
                self._walk(each, index)
        elif isinstance(value, dict):
            given = cast("dict[str, object]", value)
            index = next((given[key] for key in _INDEXES if key in given), index)
            if not is_inner and _is_call(given):
                self.calls.append((index, *(given[key] for key in _IDS if given.get(key)), _name_of(given)))
                self._indexes.add(index)
            self.reasons += (given[key] for key in _REASONS if given.get(key) and isinstance(given[key], str))
            if index in self._indexes:
                self.arguments += (text for key in _ARGUMENTS if isinstance(text := given.get(key), str))
            if given.get("type") == "response.function_call_arguments.delta":
                self.arguments.append(str(given.get("delta")))
            for key, each in given.items():
                if isinstance(each, (dict, list)):
                    self._walk(cast("object", each), index, is_inner=key == "function")


_REPEATING: Final = frozenset(
    {
        "response.created",
        "response.in_progress",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.content_part.done",
    }
)
"""Events of the Responses protocol that repeat what others said."""


def _name_of(given: Mapping[str, object]) -> object:
    inner = given.get("function")
    return cast("Mapping[str, object]", inner).get("name") if isinstance(inner, dict) else given.get("name")


def _is_call(given: Mapping[str, object]) -> bool:
    is_of_client = not str(given.get("type")).startswith("server_")
    return is_of_client and bool(_name_of(given)) and any(key in given for key in _INPUTS)


@final
class StraightReply:
    """Compares the bytes of one streamed reply with the frames that are written for its events."""

    def __init__(self, framing: str, protocol: str, model: Model, tools: Sequence[Tool]) -> None:
        self._ends = _ENDS.get(framing, ())
        self._projector = ReplyProjector(protocol=protocol, model=model, source=model, tools=tools)
        self._rest = b""
        """The beginning of a frame."""
        self._held = b""
        """Frames that were read and not passed on yet."""
        self._frames: list[Any] = []
        """What is written for these."""
        self._given, self._written = _Seen(), _Seen()
        self.is_wrong = False

    def write(self, events: Sequence[Event], encode: Callable[[Event], list[Any]]) -> list[Any]:
        """Return the frames of events."""
        if events and events[-1].type == "done" and events[-1].message.raw_stop_reason is None:
            # What a provider left out is written: a reply in its own words would leave it out too.
            last = replace(events[-1], message=replace(events[-1].message, extra=None))
            events = [*events[:-1], last]
        return [frame for event in events for shown in self._projector.feed(event) for frame in encode(shown)]

    def check(self, data: bytes, frames: list[Any], events: Sequence[Event], *, is_last: bool) -> bytes | None:
        """Return the bytes that may be passed on; None if they are wrong, and frames are to be written from here on."""
        if not self._ends:
            return data
        data = self._rest + data
        cut = len(data) if is_last else max(data.rfind(end) + len(end) if end in data else 0 for end in self._ends)
        data, self._rest = data[:cut], data[cut:]
        self._held += data
        self._frames += frames
        if all(event.type in _UNREMARKABLE for event in events) and self._is_level() and not _REASON.search(data):
            return self._pass()
        for frame in _frames_of(data):
            self._given.add(frame)
        for frame in frames:
            self._written.add(frame)
        if self._differs(is_last=is_last):
            self.is_wrong = True
            return None
        return self._pass() if is_last or self._is_level() else b""

    def _pass(self) -> bytes:
        data, self._held, self._frames = self._held, b"", []
        return data

    def take_frames(self) -> list[Any]:
        """Take the frames in place of the bytes that were not passed on."""
        frames, self._frames = self._frames, []
        return frames

    @property
    def has_error(self) -> bool:
        """Whether the provider itself said that the reply failed."""
        return self._given.has_error

    def _is_level(self) -> bool:
        """Whether everything that the bytes say was written as well, so that it was compared."""
        given, written = self._given, self._written
        is_written = len(given.calls) <= len(written.calls) and len(given.reasons) <= len(written.reasons)
        return is_written and not any(given.arguments)

    def _differs(self, *, is_last: bool) -> bool:
        given, written = self._given, self._written
        if given.has_error or written.has_error:
            return False
        if not all(map(_is_same, given.calls, written.calls)):
            return True
        one, other = "".join(given.arguments), "".join(written.arguments)
        if is_last:
            # A call may have its arguments whole, and one without any may have no text.
            is_other = bool(one) and one.replace("{}", "") != other.replace("{}", "")
            reasons = given.reasons[-1:] != written.reasons[-1:]
            return is_other or reasons or len(given.calls) > len(written.calls)
        if not one.startswith(other) and not other.startswith(one):
            return True
        same = min(len(one), len(other))  # what was compared is not compared again
        given.arguments, written.arguments = [one[same:]], [other[same:]]
        return False


def _is_same(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    """Whether two calls have the same ids and name, and the same index where both have one."""
    return one[1:] == other[1:] and (one[0] is None or other[0] is None or one[0] == other[0])


def _frames_of(data: bytes) -> Iterator[object]:
    for line in data.splitlines():
        text = line.removeprefix(b"data:").strip()
        if text[:1] == b"{":
            try:
                yield _DECODE(text)
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                continue


def repair_body(data: bytes, message: AssistantMessage, protocol: str, model: Model, tools: Sequence[Tool]) -> object:
    """Return a whole reply as it came, or written anew if its calls or its reason are not as the protocol says."""
    if not message.tool_calls():
        return data
    shown = project_reply(message, protocol=protocol, model=model, tools=tools).message
    body = encode_response(shown, protocol=protocol, model=model)
    given, written = _Seen(), _Seen()
    try:
        given.add(_DECODE(data))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return data
    written.add(body)
    is_same = len(given.calls) == len(written.calls) and all(map(_is_same, given.calls, written.calls))
    is_right = is_same and given.reasons[-1:] == written.reasons[-1:]
    return data if is_right else body
