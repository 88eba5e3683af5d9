"""Replies that pass straight through: whether the provider wrote them as its protocol says.

Servers that are nearly right leave out ids of calls, give all calls one index, repeat arguments in every delta, write
arguments that are not JSON, or give no reason or a wrong one why the reply ended. A client of the gateway gets such a
reply written anew, from the first fault on; the bytes before it were right.

Only calls and ends can be wrong in this way. So texts are not looked at, arguments are compared with the events of
their bytes, and for the rest the events are encoded, and the calls, arguments and reasons in these frames are compared
with those in the bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, TypeAlias, cast, final

import msgspec
from msgspec.structs import replace

from segue.conversation.context import Tool
from segue.conversation.events import Event, TextDelta, ThinkingDelta, ToolCallDelta
from segue.conversation.messages import AssistantMessage
from segue.foundation.json_text import encode_json
from segue.models.model import Model
from segue.projection.replies.projector import ReplyProjector, project_reply
from segue.protocols.api import encode_response

Encode: TypeAlias = Callable[[Event], list[Any]]
"""Returns the frames of an event."""

_ENDS: Final[Mapping[str, tuple[bytes, ...]]] = {"sse": (b"\n\n", b"\r\n\r\n", b"\r\r"), "ndjson": (b"\n",)}
"""How frames end. Replies in other framings pass unchanged."""
_CALM: Final = frozenset(
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
_MOST_HELD: Final = 100_000
"""Bytes that wait for what they are compared with. Where a provider says again and again why the reply ended, all of it
would be held: its client gets what was read of it instead."""
_IDS: Final = ("call_id", "id", "toolUseId", "tool_call_id")
_INDEXES: Final = ("index", "output_index")
_INPUTS: Final = ("arguments", "input", "args", "function")
_ARGUMENTS: Final = ("arguments", "partial_json", "args", "input")
_OBJECTS: Final = ("arguments", "args")
"""Arguments that some servers send as an object where their protocol has a text. An empty one is where they begin."""
_REASONS: Final = ("finish_reason", "stop_reason", "finishReason", "done_reason")
_REASON: Final = re.compile(rb'eason"\s*:\s*"')
"""It begins with plain text: with a class of characters, a search takes 8 times as long.      (measured 2026-11-19)"""
_SEEN: Final = rb'"error" response.failed "name" arguments partial_json "args" "input" input.delta \u00'.split()
"""One of them, or a reason, is in each frame with a call, arguments, a reason or an error; names may be escaped."""
_DECODE: Final = msgspec.json.Decoder().decode
_READ: Final = frozenset((*_INDEXES, *_ARGUMENTS, *_REASONS, "name", "function", "delta"))
"""Fields that say something about an object: most have none of them."""
_REPEATING: Final = frozenset(
    {
        "response.created",
        "response.in_progress",
        "response.function_call_arguments.done",
        "response.custom_tool_call_input.done",
        "response.output_item.done",
        "response.content_part.done",
    }
)
"""Events of the Responses protocol that repeat what others said."""
_INPUT_DELTAS: Final = ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta")


@final
class _Seen:
    """What a stream said so far: its calls, their arguments, and the reasons why it ended."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.arguments: list[str] = []
        self.objects = 0
        """How many of the arguments are not text."""
        self.reasons: list[object] = []
        self.has_error = False
        self._indexes = set[object]()
        """Those of the calls: the arguments of tools that the provider itself runs may be written in another form."""

    def add(self, frame: object) -> None:
        """Read one frame."""
        if isinstance(frame, dict):
            given = cast("dict[str, Any]", frame)
            self.has_error = self.has_error or bool(given.get("error")) or given.get("type") == "response.failed"
            if str(given.get("type")) not in _REPEATING:
                self._walk(given, None)

    def _walk(self, value: object, index: object, *, is_inner: bool = False) -> None:
        if isinstance(value, list):
            for each in cast("list[object]", value):
                self._walk(each, None)  # in a list, each call has its own
        elif isinstance(value, dict):
            given = cast("dict[str, object]", value)
            if not _READ.isdisjoint(given):
                index = self._read(given, index, is_inner=is_inner)
            for key, each in given.items():
                if isinstance(each, (dict, list)):
                    self._walk(cast("object", each), index, is_inner=key == "function")

    def _read(self, given: Mapping[str, object], index: object, *, is_inner: bool) -> object:
        """Read the fields of one object; return the index of what is in it."""
        index = next((given[key] for key in _INDEXES if not isinstance(given.get(key, []), (dict, list))), index)
        if not is_inner and _is_call(given):
            ids = (given[key] for key in _IDS if given.get(key))
            self.calls.append((index, given.get("type", "function"), *ids, _name_of(given)))
            self._indexes.add(index)
        self.reasons += (given[key] for key in _REASONS if given.get(key) and isinstance(given[key], str))
        if index in self._indexes:
            self.arguments += (text for key in _ARGUMENTS if isinstance(text := given.get(key), str))
            self.objects += sum(isinstance(given.get(key), dict) and bool(given[key]) for key in _OBJECTS)
        if given.get("type") in _INPUT_DELTAS:
            self.arguments.append(str(given.get("delta")))
        return index


def _name_of(given: Mapping[str, object]) -> object:
    inner = given.get("function")
    return cast("Mapping[str, object]", inner).get("name") if isinstance(inner, dict) else given.get("name")


def _is_call(given: Mapping[str, object]) -> bool:
    is_of_client = not str(given.get("type")).startswith("server_")
    return is_of_client and bool(_name_of(given)) and any(key in given for key in _INPUTS)


@final
class StraightReply:
    """Compares the bytes of one streamed reply with the frames that would be written for its events."""

    def __init__(self, framing: str, protocol: str, model: Model, tools: Sequence[Tool]) -> None:
        self._ends = _ENDS.get(framing, ())
        self._projector = ReplyProjector(protocol=protocol, model=model, source=model, tools=tools)
        self._passed: list[Event] = []
        """Events whose bytes were passed on, and that were not encoded yet."""
        self._rest = b""
        """The beginning of a frame."""
        self._held = bytearray()
        """Frames that were read and not passed on yet."""
        self._frames: list[Any] = []
        """What is written in place of these."""
        self._given, self._written = _Seen(), _Seen()
        self.is_calm: bool = True
        """Whether there was nothing but texts so far."""
        self.is_relayed: bool = False
        """Whether its bytes are passed on before they are decoded (`relaying`)."""
        self.is_fresh: bool = True
        """Whether nothing was compared yet."""
        self.is_wrong: bool = False
        """Whether the rest of the reply is written anew."""

    def take_rest(self) -> bytes:
        """Take the beginning of a frame that was decoded and not passed on."""
        rest, self._rest = self._rest, b""
        return rest

    def check(self, data: bytes, events: Sequence[Event], encode: Encode, *, is_last: bool) -> bytes | None:
        """Return the bytes that may be passed on; None if they are wrong, and frames are to be written from here on."""
        self.is_fresh = False
        if not self._ends:
            return data
        data = self._rest + data
        cut = len(data) if is_last else max(data.rfind(end) + len(end) if end in data else 0 for end in self._ends)
        data, self._rest = data[:cut], data[cut:]
        if not (self._held or is_last) and self._is_text(data, events):
            self._passed += events
            return data
        self.is_calm = False
        frames = self.write([*_joined(events)] if is_last else events, encode)
        if not (self._held or is_last) and self._is_arguments(data, events, frames):
            return data
        self._held += data
        self._frames += frames
        for frame in _frames_of(data):
            self._given.add(frame)
        for frame in frames:
            self._written.add(frame)
        if self._differs(is_last=is_last) or self._is_stuck():
            self.is_wrong = True
            return None
        if not is_last and not self._is_level():
            return b""
        data = bytes(self._held)
        self._held.clear()
        if not is_last:
            self._frames = []
        return data

    def _is_text(self, data: bytes, events: Sequence[Event]) -> bool:
        return all(event.type in _CALM for event in events) and not _REASON.search(data)

    def _is_arguments(self, data: bytes, events: Sequence[Event], frames: Sequence[Any]) -> bool:
        """Whether each frame has more of the arguments of a call, and they are the same in what would be written."""
        if not len(events) == len(frames) == sum(map(data.count, self._ends)):
            return False
        for event, frame in zip(events, frames, strict=True):
            if type(event) is not ToolCallDelta:
                return False
            text = encode_json(event.delta)
            if text not in data or text not in encode_json(frame):
                return False
        return True

    def write(self, events: Sequence[Event], encode: Encode) -> list[Any]:
        """Return the frames of events, after those whose bytes were passed on."""
        if self._passed:
            self._write(_joined(self._passed), encode)
            self._passed = []
        if events and events[-1].type == "done" and events[-1].message.raw_stop_reason is None:
            # What a provider left out is written: a reply in its own words would leave it out too.
            last = replace(events[-1], message=replace(events[-1].message, extra=None))
            events = [*events[:-1], last]
        return self._write(events, encode)

    def _write(self, events: Iterable[Event], encode: Encode) -> list[Any]:
        return [frame for event in events for shown in self._projector.feed(event) for frame in encode(shown)]

    def take_frames(self) -> list[Any]:
        """Take the frames in place of the bytes that were not passed on, or of the last ones."""
        frames, self._frames = self._frames, []
        return frames

    def whole_frames(self, data: bytes, *, is_cut: bool) -> bytes:
        """Return the last bytes of a reply without the beginning of a frame; if it is cut, an error can follow them."""
        cut = max((data.rfind(end) + len(end) if end in data else 0 for end in self._ends), default=len(data))
        rest = [line.removeprefix(b"data:").strip() for line in data[cut:].splitlines()]
        is_whole = all(map(_is_object, (line for line in rest if line[:1] == b"{")))
        if not is_whole:
            return data[:cut]
        return data + self._ends[0] if is_cut and rest and self._ends else data

    @property
    def has_error(self) -> bool:
        """Whether the provider itself said that the reply failed."""
        return self._given.has_error

    def _is_level(self) -> bool:
        """Whether everything that the bytes say was written as well, so that it was compared."""
        given, written = self._given, self._written
        is_written = len(given.calls) <= len(written.calls) and len(given.reasons) <= len(written.reasons)
        return is_written and not any(given.arguments)

    def _is_stuck(self) -> bool:
        """Whether much was read that will never be written, unless it is the rest of a call."""
        return len(self._held) > _MOST_HELD and not self._is_level() and not any(self._given.arguments)

    def _differs(self, *, is_last: bool) -> bool:
        given, written = self._given, self._written
        if given.has_error or written.has_error:
            return False
        if not all(map(_is_same, given.calls, written.calls)) or (given.objects > 0 and any(written.arguments)):
            return True
        compared = min(len(given.calls), len(written.calls))  # they are not compared again
        del given.calls[:compared], written.calls[:compared]
        if not (is_last or (given.arguments and written.arguments)):
            return False
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


def _joined(events: Iterable[Event]) -> Iterator[Event]:
    """Join the deltas of a part that follow one another."""
    for (kind, index), group in groupby(events, lambda event: (type(event), getattr(event, "index", None))):
        if kind is TextDelta or kind is ThinkingDelta:
            deltas = cast("Iterator[TextDelta]", group)
            yield kind(index=cast("int", index), delta="".join([each.delta for each in deltas]))
        else:
            yield from group


def _is_same(given: tuple[object, ...], written: tuple[object, ...]) -> bool:
    """Whether two calls have the same kind, ids and name, and the same index where the protocol has one."""
    return given[1:] == written[1:] and (written[0] is None or given[0] == written[0])


def _is_object(text: bytes) -> bool:
    try:
        return isinstance(_DECODE(text), dict)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False


def _frames_of(data: bytes) -> Iterator[object]:
    """Yield the frames in which `_Seen` may find something; texts come before them."""
    first = min((at for text in _SEEN if (at := data.find(text)) >= 0), default=len(data))
    reason = _REASON.search(data, 0, first)
    begin = max(data.rfind(end, 0, first if reason is None else reason.start()) for end in (b"\n", b"\r")) + 1
    for line in data[begin:].splitlines():
        text = line.removeprefix(b"data:").strip()
        if text[:1] == b"{" and (_REASON.search(text) or any(each in text for each in _SEEN)):
            try:
                yield _DECODE(text)
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                continue


def repair_body(data: bytes, message: AssistantMessage, protocol: str, model: Model, tools: Sequence[Tool]) -> object:
    """Return a whole reply unchanged, or written anew if its calls or its reason are not as the protocol says."""
    if not message.tool_calls():
        return data
    shown = project_reply(message, protocol=protocol, model=model, tools=tools).message
    if (shown.content, shown.raw_stop_reason) == (message.content, message.raw_stop_reason) and (
        shown.extra is message.extra
    ):
        return data  # what was read, and did not change, is written as it was received
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
