"""Streamed replies: typed events, item by item.

Facts:
- Items begin with `output_item.added`, grow by deltas of their parts, and end with `output_item.done`, which holds
  the whole item. Only the reply of the terminal event has usage and status.                           (openai 3.49.0)
- `function_call_arguments.done` has no name and no call id: the item has them.                 (openai 3.49.0)
- The `encrypted_content` of `output_item.added` may be unfinished; the one of the terminal reply is complete.
                                                                       (openai 3.49.0; llm 0.32, changelog)
- Vendors leave events out: deltas, `content_part.*`, even `output_item.added`; some end with `output` empty.
                                                      (llama.cpp server; recorded traffic, 2026-11: Azure, xAI)
- Vendors also leave indexes and ids out of some events, and begin them at 1.                          (seen 2026)
- An `error` event, or an object with `error` and no type, ends the reply.                (openai 3.49.0; OpenRouter)

The terminal reply replaces what was streamed, so that a folded stream and a whole reply give the same message. Text
that was not streamed before is streamed then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

import msgspec

from segue.conversation.arguments import encode_arguments, read_arguments
from segue.conversation.content import AssistantContent
from segue.conversation.events import Event
from segue.conversation.messages import Diagnostic, StopReason
from segue.protocols.families.openai_errors import decode_error
from segue.protocols.kit.assembly import Assembly, Part, join_chunks
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Block, kind_of, object_of
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.streaming import MISFIT, StreamDecoder
from segue.protocols.openai_responses.content import native_item
from segue.protocols.openai_responses.response import (
    error_extra,
    error_message_of,
    note_removed,
    read_response,
    stop_of,
)
from segue.protocols.openai_responses.rules import PROTOCOL
from segue.protocols.openai_responses.turns import TurnReader, with_text_ids

Frame = Block

_START_KEYS: Final = frozenset({"id", "object", "model", "status", "output", "usage", "error"})
"""Keys of the first reply that the encoder of a stream writes itself; the others are kept in the start event."""
_ITEM_KEYS: Final = frozenset({"type", "role", "content", "summary", "arguments", "input", "call_id", "name"})
"""Keys of an item that the encoder of a stream writes itself; the others are kept in the start event of its part."""
_TEXT_PARTS: Final = frozenset({"output_text", "refusal", "text"})


def stream_decoder(endpoint: Endpoint, tool_names: Mapping[str, str]) -> StreamDecoder:
    """Make a decoder for one streamed reply."""
    reader = _Reader(endpoint)
    return StreamDecoder(reader, Assembly(endpoint.model, PROTOCOL, tool_names), reader.read_growth)


class _Open:
    """An item that is arriving: its parts by content index, or its only part under 0."""

    __slots__ = ("done", "first", "id", "kind", "parts", "section")

    def __init__(self, kind: str, name: str | None, first: Block) -> None:
        self.kind = kind
        self.first = first
        self.id = name
        self.parts: dict[int, Part] = {}
        self.section: tuple[str, object] | None = None
        self.done = False


class _Growth(msgspec.Struct, frozen=True, gc=False):
    """The keys of a delta, which most events are. To read only these takes half the time."""

    type: str
    delta: str
    output_index: int
    content_index: int | None = None
    summary_index: int | None = None


_READ_GROWTH: Final = msgspec.json.Decoder(_Growth).decode
"""Any other event is read in full."""


class _Reader:
    """Reads the events into an assembly."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.items: dict[int | str, _Open] = {}  # by output index, and by id
        self.opened: list[_Open] = []
        self.turn: TurnReader | None = None
        self.done: list[Block] = []  # the items that are finished, and what was read of them
        self.contents: list[AssistantContent] = []
        self.place: tuple[object, ...] = ()  # type and indexes of the last event
        self.noted: list[Diagnostic] = []
        self.growing: Part | None = None  # the part it added to: a delta of the same place goes there without a search

    def read_growth(self, frame: bytes) -> list[Event] | None:
        """Fast path for a delta of the same place as the event before; None for every other frame."""
        growing = self.growing
        if growing is None:
            return None
        try:
            event = _READ_GROWTH(frame)
        except MISFIT:
            return None
        text = event.delta
        if (event.type, event.output_index, event.content_index, event.summary_index) != self.place:
            return None
        if text[:1] == "{" or growing.delta is None:
            return growing.extend(text)  # a bracket may begin what was received already
        growing.chunks.append(text)
        return [growing.delta(index=growing.index, delta=text)]

    def read(self, frame: Frame, out: Assembly) -> None:
        """Read one event; events that do not change the message are skipped."""
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
        """End without a terminal event: an error, with the content that arrived."""
        out.finish()

    # -- items ---------------------------------------------------------------------------------------------------------

    def begun(self, frame: Frame, out: Assembly) -> None:
        response = frame.get("response")
        if isinstance(response, Mapping):
            named = cast("Frame", response)
            out.response_id = text_of(named.get("id")) or out.response_id
            out.response_model = text_of(named.get("model")) or out.response_model
            out.first = {key: value for key, value in named.items() if key not in _START_KEYS}
            self.note(named, out)
        out.start()

    def note(self, response: Block, out: Assembly) -> None:
        """Pass on what the provider withheld from the model, once: every event with the reply repeats it."""
        for diagnostic in note_removed(response):
            if diagnostic not in self.noted:
                self.noted.append(diagnostic)
                out.notice(diagnostic)

    def ping(self, frame: Frame, out: Assembly) -> None:
        del frame
        out.ping()

    def item_added(self, frame: Frame, out: Assembly) -> None:
        item = frame.get("item")
        if isinstance(item, Mapping):
            self.open(frame, with_text_ids(cast("Block", item)), out)

    def find(self, frame: Frame, item: Block) -> _Open | None:
        """Find the item of an event: by its output index; by its id where a vendor has no index or repeats one.

        An event that has neither belongs to the last item of its type that is not finished. Some gateways change the id
        of an item with every event, so an id that no item has is ignored.
        """
        index, name = frame.get("output_index"), text_of(frame.get("item_id")) or text_of(item.get("id"))
        at_index = self.items.get(index) if isinstance(index, int) else None
        if at_index is not None and (name is None or at_index.id is None or at_index.id == name):
            return at_index
        named = None if name is None else self.items.get(name)
        if named is not None or at_index is not None or isinstance(index, int):
            return named or at_index
        kind = kind_of(item)
        candidates = [state for state in self.opened if state.kind == kind and not state.done]
        return candidates[-1] if candidates else None

    def open(self, frame: Frame, item: Block, out: Assembly) -> _Open:
        kind, index, name = kind_of(item), frame.get("output_index"), text_of(item.get("id"))
        state = _Open(kind, name, {key: value for key, value in item.items() if key not in _ITEM_KEYS})
        self.opened.append(state)
        if isinstance(index, int):
            self.items[index] = state
        name = name or text_of(frame.get("item_id"))
        if name is not None:
            self.items[name] = state
        if kind == "reasoning":
            state.parts[0] = out.open_thinking(state.first)
        elif kind in ("function_call", "custom_tool_call"):
            call_id = text_of(item.get("call_id"))
            first = state.first if kind == "function_call" else {**state.first, "type": kind}
            part = state.parts[0] = out.open_call(call_id or "", text_of(item.get("name")) or "", first)
            given = item.get("arguments")
            if given and kind == "function_call":
                # Text that deltas add counts instead of these.
                part.arguments = read_arguments(given).arguments
        elif kind != "message":
            native = native_item(item)
            state.parts[0] = out.add_native(native.block, native.fallback)
        return state

    def part(self, frame: Frame, out: Assembly, kind: str) -> tuple[_Open, Part]:
        """Find the part an event belongs to; open it if no event did."""
        state = self.find(frame, {"type": kind}) or self.open(frame, {"type": kind}, out)
        index = 0
        if state.kind == "message":
            given = frame.get("content_index")
            index = given if isinstance(given, int) else next(reversed(state.parts), 0)
        part = state.parts.get(index)
        if part is None:
            # A further text of the item has no keys itself; it names its place in the item.
            first: Block = {"content_index": index} if state.parts else state.first
            if "refusal" in str(frame.get("type")) or object_of(frame.get("part")).get("type") == "refusal":
                first = {**first, "field": "refusal"}
            part = state.parts[index] = out.open_text(first)
        return state, part

    def grow(self, part: Part, delta: str, out: Assembly) -> None:
        """Add to a part, and note it for the next delta where events have an output index."""
        out.grow(part, delta)
        if isinstance(self.place[1], int):
            self.growing = part

    # -- texts ---------------------------------------------------------------------------------------------------------

    def part_added(self, frame: Frame, out: Assembly) -> None:
        part = frame.get("part")
        if isinstance(part, Mapping) and kind_of(cast("Block", part)) in _TEXT_PARTS:
            state = self.find(frame, {"type": "message"})
            if state is None or state.kind == "message":
                self.part(frame, out, "message")

    def text_delta(self, frame: Frame, out: Assembly) -> None:
        delta = frame.get("delta")
        if isinstance(delta, str):
            self.grow(self.part(frame, out, "message")[1], delta, out)

    def text_done(self, frame: Frame, out: Assembly) -> None:
        text = frame.get("refusal") if "refusal" in frame else frame.get("text")
        if isinstance(text, str):
            _catch_up(self.part(frame, out, "message")[1], text, out)

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
            state, part = self.part(frame, out, "reasoning")
            if state.section != _section(frame) and not join_chunks(part.chunks).endswith(text):
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
                _catch_up(part, text, out)

    def input_delta(self, frame: Frame, out: Assembly) -> None:
        """Add to the input of a custom tool, as the JSON of its arguments."""
        delta = frame.get("delta")
        if isinstance(delta, str) and delta:
            part = self.part(frame, out, "custom_tool_call")[1]
            out.grow(part, ("" if part.chunks else '{"input":"') + json.dumps(delta, ensure_ascii=False)[1:-1])

    # -- ends ----------------------------------------------------------------------------------------------------------

    def item_done(self, frame: Frame, out: Assembly) -> None:
        given = frame.get("item")
        if not isinstance(given, Mapping):
            return
        item = with_text_ids(cast("Block", given))
        state = self.find(frame, item) or self.open(frame, item, out)
        if not state.done:
            state.done = True
            if self.turn is None:
                self.turn = TurnReader(out.tool_names, is_reply=True)
            known = len(self.turn.diagnostics)
            contents = self.turn.read(item)
            _settle(state.parts, contents, out)
            self.done.append(cast("Block", given))
            self.contents += contents
            out.diagnostics += self.turn.diagnostics[known:]

    def finished(self, frame: Frame, out: Assembly) -> None:
        given = frame.get("response")
        response: Frame = cast("Frame", given) if isinstance(given, Mapping) else {}
        if not isinstance(response.get("output"), list):
            response = {**response, "output": []}
        # Most servers repeat all items here. They are not read again if they are the same.
        known = None if self.turn is None or response["output"] != self.done else (self.turn, self.contents)
        message = read_response(response, self.endpoint, out.tool_names, known)
        _align(message.content, out)
        out.close_all()
        called = any(part.kind == "toolCall" for part in out.parts)
        status = {"status": str(frame.get("type")).removeprefix("response."), **response}
        out.response_id = out.response_id if message.response_id is None else message.response_id
        out.response_model = out.response_model if message.response_model is None else message.response_model
        out.usage = message.usage
        out.stop_reason, out.raw_stop_reason = stop_of(status, called=called, has_content=bool(out.parts))
        out.error_message = error_message_of(status, out.stop_reason)
        self.note(response, out)
        if message.content:
            out.diagnostics = list(message.diagnostics)
        out.diagnostics += [each for each in self.noted if each not in out.diagnostics]
        out.extra = message.extra
        if out.stop_reason == StopReason.ABORTED:
            out.fail(out.error_message or "the reply was cancelled", StopReason.ABORTED)
        else:
            out.finish()

    def error(self, frame: Frame, out: Assembly) -> None:
        error = decode_error(frame, None)
        out.raw_stop_reason = error.code or error.type or "error"
        message = error.message or error.code or "the provider reported an error"
        out.extra = error_extra(message, frame.get("error") or dict(frame))
        out.fail(message)


def _section(frame: Frame) -> tuple[str, object]:
    """Identify the text of a reasoning item that an event belongs to."""
    if "summary_index" in frame:
        return "summary", frame["summary_index"]
    return "content", frame.get("content_index")


# -- finished items ----------------------------------------------------------------------------------------------------


def _settle(parts: dict[int, Part], contents: Sequence[AssistantContent], out: Assembly) -> None:
    """Close the parts of an item, by their index in it, with what the finished item holds."""
    if any(index >= len(contents) for index in parts):
        # The indexes do not begin at 0, or leave some out: the parts are in the order of their indexes.
        ordered = [parts[index] for index in sorted(parts)]
        parts = dict(enumerate(ordered))
    for index, content in enumerate(contents):
        part = parts.get(index)
        if part is None:
            part = parts[index] = out.open_content(content)
        if part.closed is not None:
            continue
        if part.kind == content.kind:
            _finish(part, content, out)
        else:
            # The finished item has another kind than the announced one.
            out.close(part)
            part.kind, part.closed = content.kind, content


def _align(contents: Sequence[AssistantContent], out: Assembly) -> None:
    """Replace what was streamed by the content of the terminal reply; parts that it lacks stay."""
    if any(part.kind != content.kind for part, content in zip(out.parts, contents, strict=False)):
        # Items grew in parallel, or have another kind than announced: the order of the reply is the valid one.
        out.close_all()
        out.parts = [_closed_part(content, index) for index, content in enumerate(contents)]
        return
    for index, content in enumerate(contents):
        part = out.parts[index] if index < len(out.parts) else out.open_content(content)
        _finish(part, content, out)
        part.closed = content


def _closed_part(content: AssistantContent, index: int) -> Part:
    part = Part(content.kind, index)
    part.closed = content
    return part


def _finish(part: Part, content: AssistantContent, out: Assembly) -> None:
    if part.closed is None:
        _catch_up(part, _text_of(content), out)
        out.close(part, content)


def _catch_up(part: Part, text: str, out: Assembly) -> None:
    """Stream what deltas left out of a text."""
    so_far = join_chunks(part.chunks)
    if len(text) > len(so_far) and text.startswith(so_far):
        out.grow(part, text[len(so_far) :])


def _text_of(content: AssistantContent) -> str:
    """Return the text that the deltas of a content make up."""
    match content.kind:
        case "text":
            return content.text
        case "thinking":
            return content.thinking
        case "toolCall":
            text = content.arguments_text
            return encode_arguments(content.arguments) if text is None else text
        case "native":
            return ""


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
    "keepalive": _Reader.ping,
    "error": _Reader.error,
    "response.error": _Reader.error,
}
"""Other events (progress of server tools, annotations that the item repeats) add nothing to the message."""
