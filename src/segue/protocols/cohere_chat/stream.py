"""Streamed replies of Cohere's v2 chat endpoint.

A reply without message-end is unfinished.

Write a streamed reply of Cohere's v2 chat endpoint.

Nothing waits for a later event.

Facts:
- message-start; blocks of content (start, deltas, end) by their index; tool-plan-delta; calls (start, deltas of their
  arguments, end) by their own index; citations, each whole in its citation-start; message-end with the finish reason,
  the usage and an error; debug anywhere.                                          (cohere 7.3.1, read 2026-11-15)
- message-start has every field of the message with an empty value, unlike a whole reply.
                                                                         (recorded traffic, 2026-11: cohere-v2/0022)
- Log probabilities come with the deltas that they belong to.                                        (cohere 7.3.1)
- message-start; blocks of content and calls, each with start, deltas and end, by two series of indexes; citations;
  message-end with the finish reason, the usage and an error.                        (cohere 7.3.1, read 2026-11-15)
- Text before calls is a plan only in Cohere's own replies: a text of another protocol is written before it is known
  whether calls follow, so it is content.
- The heartbeat is a `debug` event, which the SDK knows and clients ignore.        (cohere 7.3.1: V2ChatStreamResponse)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias, cast

from segue.conversation.content import NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Options
from segue.conversation.events import StartEvent
from segue.conversation.messages import AssistantMessage
from segue.protocols.cohere_chat.content import REFUSAL, decode_native, is_first_reply
from segue.protocols.cohere_chat.response import (
    STOP_REASONS,
    decode_error,
    decode_usage,
    encode_default,
    encode_error,
    encode_response,
)
from segue.protocols.cohere_chat.rules import PROTOCOL
from segue.protocols.cohere_chat.turns import CITATIONS
from segue.protocols.families.functions import encode_call
from segue.protocols.kit.assembly import Assembly, Part
from segue.protocols.kit.codec import Endpoint, Fault
from segue.protocols.kit.json_values import Block, Wire, list_of, object_of
from segue.protocols.kit.reading import native_block, text_of
from segue.protocols.kit.replies import keep_reply, read_stop
from segue.protocols.kit.stream_writing import MakeEncoder, StreamWriter, encoder_of, rest_of
from segue.protocols.kit.streaming import StreamDecoder

Json: TypeAlias = "dict[str, Json] | list[Json] | str | float | bool | None"

_END_KEYS: Final = frozenset({"type", "id", "delta", "finish_reason", "message"})
_DELTA_KEYS: Final = frozenset({"id", "finish_reason", "message", "usage", "error"})
"""Keys of message-end that are read, or that the reply has from the events before."""


def stream_decoder(endpoint: Endpoint, tool_names: Mapping[str, str]) -> StreamDecoder:
    """Make a decoder for one reply."""
    return StreamDecoder(_Reader(endpoint), Assembly(endpoint.model, PROTOCOL, tool_names))


class _Reader:
    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._blocks: dict[object, Part] = {}  # blocks of content that are open, by index
        self._content: list[tuple[Part, Wire]] = []  # all of them, with the blocks of their starts
        self._plans: list[Part] = []  # parts of the plan; the start of a call closes one
        self._calls: dict[object, Part] = {}
        self._names: dict[int, str] = {}  # places of calls -> their names on the wire
        self._citations: list[object] = []
        self._logprobs: list[object] = []
        self._body: Wire = {}
        self._reason: str | None = None

    def read(self, frame: Mapping[str, object], out: Assembly) -> None:
        """Read one event."""
        kind = frame.get("type")
        if kind == "content-delta":
            self._grow_block(frame, out)
        elif kind == "tool-call-delta":
            part = self._calls.get(_index(frame))
            more = object_of(object_of(_value(frame, "tool_calls")).get("function")).get("arguments")
            if part is not None and isinstance(more, str) and more:
                out.grow(part, more)
        elif kind == "tool-plan-delta":
            more = _value(frame, "tool_plan")
            if isinstance(more, str) and more:
                if not self._plans or self._plans[-1].closed is not None:
                    self._plans.append(out.open_text({"field": "tool_plan"}))
                out.grow(self._plans[-1], more)
        else:
            self._read_rest(kind, frame, out)

    def end(self, out: Assembly) -> None:
        """Close what arrived of a reply that did not end; the assembly then reports that."""
        if out.final is None:
            out.close_all()
            self._keep(out)
            out.stop_reason = None

    def _read_rest(self, kind: object, frame: Block, out: Assembly) -> None:
        match kind:
            case "message-start":
                out.response_id = text_of(frame.get("id"))
                out.start()
            case "content-start":
                self._open_block(_index(frame), object_of(_value(frame, "content")), out)
            case "content-end":
                part = self._blocks.pop(_index(frame), None)
                if part is not None:
                    out.close(part)
            case "tool-call-start":
                self._open_call(_index(frame), object_of(_value(frame, "tool_calls")), out)
            case "tool-call-end":
                part = self._calls.pop(_index(frame), None)
                if part is not None:
                    out.close(part)
            case "citation-start":
                citation = _value(frame, CITATIONS)
                self._citations += citation if isinstance(citation, list) else [citation] if citation else []
            case "message-end":
                self._finish(frame, out)
            case _ if "error" in frame or isinstance(frame.get("message"), str):
                out.close_all()
                self._keep(out)
                out.fail(decode_error(frame, None).message or "the provider reported an error")
            case None if is_first_reply(frame):
                out.fail(REFUSAL)
            case _:
                pass  # citation-end and debug hold nothing more

    # -- blocks --------------------------------------------------------------------------------------------------------

    def _grow_block(self, frame: Block, out: Assembly) -> None:
        content = object_of(_value(frame, "content"))
        index = _index(frame)
        part = self._blocks.get(index)
        if part is None:
            kind = "thinking" if isinstance(content.get("thinking"), str) else "text"
            part = self._open_block(index, {"type": kind}, out)
        more = content.get("thinking" if part.kind == "thinking" else "text")
        if isinstance(more, str) and more:
            out.grow(part, more)
        logprobs = frame.get("logprobs")
        if logprobs is not None:
            self._logprobs.append(logprobs)

    def _open_block(self, index: object, start: Block, out: Assembly) -> Part:
        earlier = self._blocks.pop(index, None)
        if earlier is not None:
            out.close(earlier)
        kind = start.get("type", "text")
        if kind in ("text", "thinking"):
            part = out.open_text() if kind == "text" else out.open_thinking()
            first = start.get(str(kind))
            if isinstance(first, str) and first:
                out.grow(part, first)
        else:
            native = decode_native(start)
            part = out.add_native(native.block, native.fallback)
        self._blocks[index] = part
        self._content.append((part, dict(start)))
        return part

    def _open_call(self, index: object, start: Block, out: Assembly) -> None:
        if self._plans:
            out.close(self._plans[-1])
        earlier = self._calls.pop(index, None)
        if earlier is not None:
            out.close(earlier)
        function = object_of(start.get("function"))
        name = text_of(function.get("name")) or ""
        part = self._calls[index] = out.open_call(text_of(start.get("id")) or "", name)
        self._names[part.index] = name
        first = function.get("arguments")
        if isinstance(first, str) and first:
            out.grow(part, first)

    # -- the whole reply -----------------------------------------------------------------------------------------------

    def _finish(self, frame: Block, out: Assembly) -> None:
        out.close_all()
        delta = object_of(frame.get("delta"))
        self._body.update((key, value) for key, value in frame.items() if key not in _END_KEYS)
        self._body.update((key, value) for key, value in delta.items() if key not in _DELTA_KEYS)
        usage, error = delta.get("usage"), text_of(delta.get("error"))
        if usage is not None:
            self._body["usage"] = usage
        out.usage = decode_usage(usage, self._endpoint.model)
        out.response_id = out.response_id or text_of(frame.get("id"))
        self._reason = out.raw_stop_reason = text_of(delta.get("finish_reason"))
        out.stop_reason = read_stop(STOP_REASONS, self._reason, [part.kind for part in out.parts])
        self._keep(out)
        if error:
            out.fail(error)
        else:
            out.finish()

    def _keep(self, out: Assembly) -> None:
        """Keep what the events hold beyond the message, in the format of a whole reply."""
        if self._citations:
            out.extra = {PROTOCOL: {CITATIONS: self._citations}}
        wire: Wire = {"role": "assistant"}
        blocks = [_whole_block(part, start) for part, start in self._content]
        calls = [part for part in out.parts if part.kind == "toolCall"]
        plans = [part.closed.text for part in self._plans if part.closed is not None and part.closed.kind == "text"]
        if blocks or not (calls or plans):
            wire["content"] = blocks
        if plans:
            wire["tool_plan"] = "\n".join(plans)
        if calls:
            wire["tool_calls"] = [self._whole_call(part) for part in calls]
        if self._citations:
            wire[CITATIONS] = self._citations
        whole: Wire = {"id": out.response_id or "", "message": wire, "finish_reason": self._reason, **self._body}
        if self._logprobs:
            whole["logprobs"] = self._logprobs
        message = out.message()
        out.extra = keep_reply(PROTOCOL, encode_default(message), whole, message.extra)

    def _whole_call(self, part: Part) -> Wire:
        if part.closed is None or part.closed.kind != "toolCall":
            return {}
        wire = encode_call(PROTOCOL, part.closed)
        return {**wire, "function": {**object_of(wire["function"]), "name": self._names[part.index]}}


def _index(frame: Block) -> object:
    index = frame.get("index")
    return index if isinstance(index, int) else None


def _value(frame: Block, key: str) -> Json:
    """Return the value of a key of the message in an event's delta."""
    delta = cast("Json", frame.get("delta"))
    message = delta.get("message") if isinstance(delta, dict) else None
    return message.get(key) if isinstance(message, dict) else None


def _whole_block(part: Part, start: Wire) -> Wire:
    """Return a block in the format of a whole reply."""
    content = part.closed
    if content is not None and content.kind == "text":
        return {**start, "type": "text", "text": content.text}
    if content is not None and content.kind == "thinking":
        return {**start, "type": "thinking", "thinking": content.thinking}
    return start


_UNNAMED: Final = "00000000-0000-0000-0000-000000000000"
_BODY_KEYS: Final = frozenset({"id", "message", "finish_reason", "usage"})
_PLAN: Final = "tool_plan"


class _Writer(StreamWriter):
    name = PROTOCOL
    reasons = STOP_REASONS
    empty_arguments = "{}"

    def __init__(self, endpoint: Endpoint, options: Options | None) -> None:
        super().__init__(endpoint, options)
        self._id = _UNNAMED
        self._places: dict[int, int] = {}  # of open blocks and calls, by the index of their part
        self._plans: set[int] = set()
        self._blocks = 0
        self._calls = 0

    def _send(self, kind: str, index: int | None, **message: object) -> None:
        frame: Wire = {"type": kind}
        if index is not None:
            frame["index"] = index
        if message:
            frame["delta"] = {"message": message}
        self.frames.append(frame)

    def start(self, event: StartEvent, first: Block) -> None:  # noqa: ARG002 - nothing but the id
        self._id = event.id or _UNNAMED
        message: Wire = {"role": "assistant", "content": [], _PLAN: "", "tool_calls": [], CITATIONS: []}
        self.frames.append({"type": "message-start", "id": self._id, "delta": {"message": message}})

    # -- content -------------------------------------------------------------------------------------------------------

    def _open(self, index: int, content: Wire) -> None:
        at = self._places[index] = self._blocks
        self._blocks += 1
        self._send("content-start", at, content=content)

    def open_text(self, index: int, first: Block) -> None:
        if first.get("field") == _PLAN:
            self._plans.add(index)
        else:
            self._open(index, {**first, "type": "text", "text": ""})

    def add_text(self, index: int, text: str) -> None:
        if index in self._plans:
            self._send("tool-plan-delta", None, tool_plan=text)
        else:
            self._send("content-delta", self._places[index], content={"text": text})

    def close_text(self, index: int, content: TextContent) -> None:  # noqa: ARG002 - the deltas hold all of it
        if index in self._plans:
            self._plans.discard(index)
        else:
            self._send("content-end", self._places.pop(index))

    def open_thinking(self, index: int, first: Block) -> None:
        self._open(index, {**first, "type": "thinking", "thinking": ""})

    def add_thinking(self, index: int, text: str) -> None:
        self._send("content-delta", self._places[index], content={"thinking": text})

    def close_thinking(self, index: int, content: ThinkingContent) -> None:  # noqa: ARG002 - the same
        self._send("content-end", self._places.pop(index))

    def open_call(self, index: int, call_id: str, name: str, first: Block) -> None:  # noqa: ARG002 - no other keys
        at = self._places[index] = self._calls
        self._calls += 1
        call: Wire = {"id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
        self._send("tool-call-start", at, tool_calls=call)

    def add_arguments(self, index: int, text: str) -> None:
        self._send("tool-call-delta", self._places[index], tool_calls={"function": {"arguments": text}})

    def close_call(self, index: int, call: ToolCall) -> None:  # noqa: ARG002 - the same
        self._send("tool-call-end", self._places.pop(index))

    def add_native(self, index: int, content: NativeContent) -> None:
        self._open(index, dict(native_block(PROTOCOL, content)))
        self._send("content-end", self._places.pop(index))

    # -- the end -------------------------------------------------------------------------------------------------------

    def finish(self, message: AssistantMessage, *, refused: bool) -> None:
        whole = encode_response(message, self.endpoint)
        citations = object_of(whole.get("message")).get(CITATIONS)
        for at, citation in enumerate(list_of(citations)):
            self._send("citation-start", at, citations=citation)
            self._send("citation-end", at)
        reason = whole.get("finish_reason")
        delta: Wire = {"finish_reason": "ERROR_TOXIC" if refused and reason == "ERROR" else reason}
        if "usage" in whole:
            delta["usage"] = whole["usage"]
        rest = rest_of(whole, _BODY_KEYS)
        self.frames.append({"type": "message-end", "id": self._id, "delta": delta, **rest})

    def heartbeat(self) -> None:
        self.frames.append({"type": "debug", "prompt": ""})

    def fail(self, fault: Fault) -> None:
        error = encode_error(fault).body["message"]
        delta = {"finish_reason": "ERROR", "error": error}
        self.frames.append({"type": "message-end", "id": self._id, "delta": delta})


stream_encoder: MakeEncoder = encoder_of(_Writer)
