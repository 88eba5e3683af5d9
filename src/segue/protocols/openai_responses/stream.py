"""A streamed reply: typed events, item by item.

Facts this file rests on:
- Items come as `output_item.added`, grow by deltas of their parts, and end in `output_item.done`, which holds them
  whole. Usage and status stand in the reply of the terminal event alone.                              (openai 3.49.0)
- `function_call_arguments.done` has no name and no call id: the item has them.                 (openai 3.49.0)
- The `encrypted_content` of `output_item.added` may be unfinished; the one of the terminal reply is the one to keep.
                                                                       (openai 3.49.0; llm 0.32, changelog)
- Vendors leave events out: deltas, `content_part.*`, even `output_item.added`; some end with `output` empty.
                                                      (llama.cpp server; recorded traffic, 2026-11: Azure, xAI)
- An `error` event, or an object with `error` and no type, ends the reply.                (openai 3.49.0; OpenRouter)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, cast

import msgspec

from segue.conversation.messages import StopReason
from segue.protocols.kit.assembly import Assembly, Part
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.streaming import StreamDecoder
from segue.protocols.openai_responses.errors import decode_error
from segue.protocols.openai_responses.items import TurnReader
from segue.protocols.openai_responses.native import Item, kind_of, native_item
from segue.protocols.openai_responses.response import decode_response, error_message_of, reply_extra_of, stop_of
from segue.protocols.openai_responses.rules import PROTOCOL
from segue.protocols.openai_responses.stream_reconcile import align, catch_up, reconcile

Frame = Mapping[str, object]

_TEXT_PARTS: Final = frozenset({"output_text", "refusal", "text"})


def stream_decoder(endpoint: Endpoint, tool_names: Mapping[str, str]) -> StreamDecoder:
    """Make a decoder for one streamed reply."""
    reader = _Reader(endpoint)
    return StreamDecoder(reader, Assembly(endpoint.model, PROTOCOL, tool_names), reader.read_fast)


class _Open:
    """An item that is arriving: its parts by content index, or its only part under 0."""

    __slots__ = ("done", "kind", "parts", "section")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.parts: dict[int, Part] = {}
        self.section: tuple[str, object] | None = None
        self.done = False


class _FastDelta(msgspec.Struct, frozen=True, gc=False):
    """What most events say: that something has grown. To read no more than that costs half of reading all of it."""

    type: str
    delta: str
    output_index: int
    content_index: int | None = None
    summary_index: int | None = None


_READ_FAST: Final = msgspec.json.Decoder(_FastDelta).decode
_MISFIT: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What is anything else is read the long way."""


class _Reader:
    """What each event means."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.items: dict[int | str | None, _Open] = {}
        self.turn: TurnReader | None = None
        self.place: tuple[object, ...] = ()  # which kind of event the last one was, and of what it spoke
        self.growing: Part | None = None  # what it made grow: a delta of the same place goes there without a search

    def read_fast(self, frame: bytes, out: Assembly) -> bool:
        """Take in an event that makes the same thing grow as the one before, the short way; say whether it was one."""
        growing = self.growing
        if growing is None:
            return False
        try:
            event = _READ_FAST(frame)
        except _MISFIT:
            return False
        if (event.type, event.output_index, event.content_index, event.summary_index) != self.place:
            return False
        out.grow(growing, event.delta)
        return True

    def read(self, frame: Frame, out: Assembly) -> None:
        """Take one event in; events without a meaning for the message pass by."""
        kind = frame.get("type")
        place = (kind, frame.get("output_index"), frame.get("content_index"), frame.get("summary_index"))
        growing = self.growing
        if growing is not None and place == self.place and isinstance(delta := frame.get("delta"), str):
            out.grow(growing, delta)
            return
        self.place, self.growing = place, None
        handler = _HANDLERS.get(kind) if isinstance(kind, str) else None
        if handler is not None:
            handler(self, frame, out)
        elif "type" not in frame and frame.get("error") is not None:
            self.error(frame, out)

    def end(self, out: Assembly) -> None:
        """No terminal event came: whatever arrived is kept, and it is an error."""
        out.finish()

    # -- items ---------------------------------------------------------------------------------------------------------

    def begun(self, frame: Frame, out: Assembly) -> None:
        out.start()
        response = frame.get("response")
        if isinstance(response, Mapping):
            named = cast("Frame", response)
            out.response_id = text_of(named.get("id")) or out.response_id
            out.response_model = text_of(named.get("model")) or out.response_model

    def item_added(self, frame: Frame, out: Assembly) -> None:
        item = frame.get("item")
        if isinstance(item, Mapping):
            self.open(self.key(frame, cast("Item", item)), cast("Item", item), out)

    def key(self, frame: Frame, item: Item | None = None) -> int | str | None:
        """Tell items apart: by their place in the output, by their id where a vendor has no place."""
        index = frame.get("output_index")
        if isinstance(index, int):
            return index
        return text_of(frame.get("item_id") if item is None else item.get("id"))

    def open(self, key: int | str | None, item: Item, out: Assembly) -> _Open:
        kind = kind_of(item)
        state = self.items[key] = _Open(kind)
        if kind == "reasoning":
            state.parts[0] = out.open_thinking()
        elif kind in ("function_call", "custom_tool_call"):
            call_id, name = text_of(item.get("call_id")), text_of(item.get("name"))
            state.parts[0] = out.open_call(call_id or "", name or "")
        elif kind != "message":
            native = native_item(item)
            state.parts[0] = out.add_native(native.block, native.fallback)
        return state

    def part(self, frame: Frame, out: Assembly, kind: str) -> tuple[_Open, Part]:
        """Find the part an event speaks of; open what was never announced."""
        key = self.key(frame)
        state = self.items.get(key)
        if state is None:
            state = self.open(key, {"type": kind}, out)
        given = frame.get("content_index")
        index = given if isinstance(given, int) and state.kind == "message" else 0
        part = state.parts.get(index)
        if part is None:
            part = state.parts[index] = out.open_text()
        return state, part

    def grow(self, part: Part, delta: str, out: Assembly) -> None:
        """Make a part grow, and remember it where events tell the place they speak of."""
        out.grow(part, delta)
        if isinstance(self.place[1], int):
            self.growing = part

    # -- texts ---------------------------------------------------------------------------------------------------------

    def part_added(self, frame: Frame, out: Assembly) -> None:
        part = frame.get("part")
        if isinstance(part, Mapping) and kind_of(cast("Item", part)) in _TEXT_PARTS:
            state = self.items.get(self.key(frame))
            if state is None or state.kind == "message":
                self.part(frame, out, "message")

    def text_delta(self, frame: Frame, out: Assembly) -> None:
        delta = frame.get("delta")
        if isinstance(delta, str):
            self.grow(self.part(frame, out, "message")[1], delta, out)

    def text_done(self, frame: Frame, out: Assembly) -> None:
        text = frame.get("refusal") if "refusal" in frame else frame.get("text")
        if isinstance(text, str):
            catch_up(self.part(frame, out, "message")[1], text, out)

    # -- thinking ------------------------------------------------------------------------------------------------------

    def thinking_delta(self, frame: Frame, out: Assembly) -> None:
        delta = frame.get("delta")
        if not isinstance(delta, str):
            return
        state, part = self.part(frame, out, "reasoning")
        if part.kind != "thinking":
            return
        section = _section(frame)
        if state.section is not None and state.section != section:
            out.grow(part, "\n\n")
        state.section = section
        self.grow(part, delta, out)

    def thinking_done(self, frame: Frame, out: Assembly) -> None:
        text = frame.get("text")
        if isinstance(text, str) and text:
            state, _ = self.part(frame, out, "reasoning")
            if state.section != _section(frame):
                self.thinking_delta({**frame, "delta": text}, out)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def call_delta(self, frame: Frame, out: Assembly) -> None:
        delta = frame.get("delta")
        if isinstance(delta, str):
            _, part = self.part(frame, out, "function_call")
            if part.kind == "toolCall":
                self.grow(part, delta, out)

    def call_done(self, frame: Frame, out: Assembly) -> None:
        text = frame.get("arguments")
        if isinstance(text, str):
            _, part = self.part(frame, out, "function_call")
            if part.kind == "toolCall":
                catch_up(part, text, out)

    def input_delta(self, frame: Frame, out: Assembly) -> None:
        delta = frame.get("delta")
        if isinstance(delta, str):
            self.grow(self.part(frame, out, "custom_tool_call")[1], delta, out)

    # -- ends ----------------------------------------------------------------------------------------------------------

    def item_done(self, frame: Frame, out: Assembly) -> None:
        given = frame.get("item")
        if not isinstance(given, Mapping):
            return
        item = cast("Item", given)
        key = self.key(frame, item)
        state = self.items.get(key)
        if state is None:
            state = self.open(key, item, out)
        if not state.done:
            state.done = True
            if self.turn is None:
                self.turn = TurnReader(out.tool_names)
            reconcile(state.parts, item, self.turn.read(item), out)

    def finished(self, frame: Frame, out: Assembly) -> None:
        given = frame.get("response")
        response: Frame = cast("Frame", given) if isinstance(given, Mapping) else {}
        if not isinstance(response.get("output"), list):
            response = {**response, "output": []}
        message = decode_response(response, self.endpoint, out.tool_names)
        align(message.content, out)
        out.close_all()
        called = any(part.kind == "toolCall" for part in out.parts)
        status = {"status": str(frame.get("type")).removeprefix("response."), **response}
        out.response_id = out.response_id if message.response_id is None else message.response_id
        out.response_model = out.response_model if message.response_model is None else message.response_model
        out.usage = message.usage
        out.stop_reason, out.raw_stop_reason = stop_of(status, called=called, has_content=bool(out.parts))
        out.error_message = error_message_of(status, out.stop_reason)
        if message.content:
            out.diagnostics = list(message.diagnostics)
        out.extra = message.extra
        if out.stop_reason == StopReason.ABORTED:
            out.fail(out.error_message or "the reply was cancelled", StopReason.ABORTED)
        else:
            out.finish()

    def error(self, frame: Frame, out: Assembly) -> None:
        error = decode_error(frame, None)
        out.raw_stop_reason = error.code or error.type or "error"
        out.extra = reply_extra_of({"error": frame.get("error") or dict(frame)})
        out.fail(error.message or error.code or "the provider reported an error")


def _section(frame: Frame) -> tuple[str, object]:
    """Name the piece of reasoning an event belongs to."""
    if "summary_index" in frame:
        return "summary", frame["summary_index"]
    return "content", frame.get("content_index")


_HANDLERS: Final[Mapping[str, Callable[[_Reader, Frame, Assembly], None]]] = {
    "response.created": _Reader.begun,
    "response.queued": _Reader.begun,
    "response.in_progress": _Reader.begun,
    "response.output_item.added": _Reader.item_added,
    "response.output_item.done": _Reader.item_done,
    "response.content_part.added": _Reader.part_added,
    "response.output_text.delta": _Reader.text_delta,
    "response.output_text.done": _Reader.text_done,
    "response.refusal.delta": _Reader.text_delta,
    "response.refusal.done": _Reader.text_done,
    "response.reasoning_summary_text.delta": _Reader.thinking_delta,
    "response.reasoning_summary_text.done": _Reader.thinking_done,
    "response.reasoning_text.delta": _Reader.thinking_delta,
    "response.reasoning_text.done": _Reader.thinking_done,
    "response.function_call_arguments.delta": _Reader.call_delta,
    "response.function_call_arguments.done": _Reader.call_done,
    "response.custom_tool_call_input.delta": _Reader.input_delta,
    "response.completed": _Reader.finished,
    "response.incomplete": _Reader.finished,
    "response.failed": _Reader.finished,
    "response.cancelled": _Reader.finished,
    "error": _Reader.error,
    "response.error": _Reader.error,
}
"""Events that are not listed (progress of server tools, annotations that the item repeats) say nothing more."""
