"""Streamed replies of Mistral's chat endpoint.

Write a streamed reply of Mistral's chat endpoint.

A call waits for its end: Mistral sends calls whole, and clients read each entry as a whole call. Nothing else waits.

Facts:
- Frames hold deltas of choices: content as a string or as chunks of text and thinking, calls whole or in pieces; usage
  and the finish reason come with the last one, the end is `[DONE]`.             (mistralai 3.7.0, read 2026-11-15)
- Thinking and text alternate in one list of chunks, so each is closed when the other begins.         (pi-ai 1.5.0)
- Several calls may come with the same index, or without any: a new id is a new call.        (maka #1976, vercel #14277)
- `p` is padding that hides the length of a frame.                                         (recorded traffic, 2026-11)
- Where the provider runs tools itself, `index` of a delta is that of the message it belongs to, of several.
                                                                                                    (mistralai 3.7.0)
- An error may come as its own frame, which the SDK does not expect.                     (mistralai 3.7.0, tried)
- Chunks hold deltas; thinking is a list of chunks, text a string; the last chunk has the finish reason and the usage;
  then `[DONE]`.                                                                     (mistralai 3.7.0, read 2026-11-15)
- The heartbeat is an empty delta: clients read `choices[0]` of every chunk.          (AI SDK: its Mistral provider)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from segue.conversation.arguments import encode_arguments
from segue.conversation.content import NativeContent, ThinkingContent, ToolCall
from segue.conversation.context import Options
from segue.conversation.events import StartEvent
from segue.conversation.messages import AssistantMessage, Diagnostic
from segue.models.model import Model
from segue.protocols.families.chat_content import keep_place
from segue.protocols.families.functions import encode_call
from segue.protocols.kit.assembly import Assembly, Part, join_chunks
from segue.protocols.kit.codec import Endpoint, Fault
from segue.protocols.kit.json_values import Block, Wire, list_of, object_of
from segue.protocols.kit.reading import native_block, text_of
from segue.protocols.kit.replies import keep_reply, read_stop
from segue.protocols.kit.stream_writing import MakeEncoder, StreamWriter, encoder_of, rest_of
from segue.protocols.kit.streaming import StreamDecoder
from segue.protocols.mistral_chat.content import decode_native, join_thoughts
from segue.protocols.mistral_chat.response import (
    STOP_REASONS,
    decode_error,
    decode_ran,
    decode_usage,
    encode_choice,
    encode_default,
    encode_error,
    encode_response,
)
from segue.protocols.mistral_chat.rules import PROTOCOL
from segue.protocols.mistral_chat.turns import NO_ID, decode_thinking, encode_thinking, made_id

_READ: Final = frozenset({"choices", "object", "usage", "error", "p"})
"""Keys of a frame that are read elsewhere, or that a whole reply does not have."""
_START_KEYS: Final = _READ | {"id", "model"}
_CHOICE_KEYS: Final = frozenset({"index", "delta", "message", "finish_reason"})
_DELTA_KEYS: Final = frozenset({"role", "content", "tool_calls", "index"})


def stream_decoder(endpoint: Endpoint, tool_names: Mapping[str, str]) -> StreamDecoder:
    """Make a decoder for one reply."""
    return StreamDecoder(_Reader(endpoint), Assembly(endpoint.model, PROTOCOL, tool_names))


class _Reader:
    """Reads frames: the first choice is the message, the others are assembled without events and kept."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._choice = _Choice()
        self._others: dict[int, tuple[_Choice, Assembly]] = {}
        self._body: Wire = {}
        self._keys: set[str] = set()  # of frames that were read in full

    def read(self, frame: Mapping[str, object], out: Assembly) -> None:
        """Read one frame."""
        if "choices" not in frame and isinstance(frame.get("data"), dict):
            frame = cast("Block", frame["data"])  # an event of the provider's own client
        # Types are declared and then checked: a cast is a function call, and this runs for every frame.
        choices: list[Wire] | None = frame.get("choices")  # pyright: ignore[reportAssignmentType]
        first: Wire | None = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
        if isinstance(first, dict) and frame.keys() <= self._keys and self._choice.grow(first, out):
            return
        self._read_frame(frame, out)
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
                self._read_choice(choice, out)
        if frame.get("error") or frame.get("object") == "error":
            self._fail(frame, out)

    def end(self, out: Assembly) -> None:
        """Assemble the reply: whole, or what of it arrived."""
        if out.final is not None:
            return
        self._choice.finish(out)
        if self._choice.reason is not None:
            kinds = [part.kind for part in out.parts]
            out.raw_stop_reason = self._choice.reason
            out.stop_reason = read_stop(STOP_REASONS, self._choice.reason, kinds)
        self._keep(out)
        out.finish()

    def _read_frame(self, frame: Block, out: Assembly) -> None:
        out.response_id = out.response_id or text_of(frame.get("id"))
        out.response_model = out.response_model or text_of(frame.get("model"))
        usage = frame.get("usage")
        if isinstance(usage, Mapping):
            out.usage = decode_usage(cast("Block", usage), self._endpoint.model)
            self._body["usage"] = usage
        if not out.started:
            out.first = {key: value for key, value in frame.items() if key not in _START_KEYS}
            out.start()
        for key, value in frame.items():
            if key not in _READ and value is not None:
                earlier = self._body.setdefault(key, value)
                if earlier is not value and isinstance(earlier, Mapping) and isinstance(value, Mapping):
                    self._body[key] = {**cast("Block", earlier), **cast("Block", value)}
        self._keys.update(frame.keys() - {"usage"})

    def _read_choice(self, choice: Block, out: Assembly) -> None:
        index = choice.get("index")
        if not isinstance(index, int) or index <= 0:
            self._choice.read(choice, out)
            return
        if index not in self._others:
            silent = Assembly(Model(out.model.id, out.model.provider, PROTOCOL), PROTOCOL)
            self._others[index] = (_Choice(), silent)
        reader, silent = self._others[index]
        reader.read(choice, silent)
        silent.events.clear()

    def _fail(self, frame: Block, out: Assembly) -> None:
        error = decode_error(frame, None)
        details = {key: value for key, value in (("code", error.code), ("type", error.type)) if value is not None}
        if details:
            out.diagnostics.append(Diagnostic(type="provider_error", message=error.message, details=details))
        self._choice.finish(out)
        self._keep(out)
        out.fail(error.message or "the provider reported an error")

    def _keep(self, out: Assembly) -> None:
        """Keep what the frames hold beyond the message, in the format of a whole reply."""
        message = out.message()
        choice = {**encode_choice(message), **self._choice.beside}
        if isinstance(choice.get("message"), dict):
            whole_message = choice["message"] = {**cast("Wire", choice["message"]), **self._choice.unknown}
            if names := self._choice.called():  # without any, the calls of the only message are those of a native block
                for call, name in zip(cast("list[Wire]", whole_message["tool_calls"]), names, strict=True):
                    call["function"] = {**object_of(call["function"]), "name": name}
        if self._choice.reason is None:
            choice["finish_reason"] = None
        others = [self._other(index) for index in sorted(self._others)]
        whole = {"object": "chat.completion", **self._body, "choices": [choice, *others]}
        out.extra = keep_reply(PROTOCOL, encode_default(message), whole)

    def _other(self, index: int) -> Wire:
        reader, silent = self._others[index]
        reader.finish(silent)
        silent.close_all()
        choice = {**encode_choice(silent.message(), index), **reader.beside}
        if reader.reason is not None:
            choice["finish_reason"] = reader.reason
        return choice


class _Choice:
    """Reads the deltas of one choice into an assembly."""

    def __init__(self) -> None:
        self._open: Part | None = None  # the text or the thinking that is being received
        self._thoughts: list[object] = []  # the inner chunks of that thinking
        self._thought: Wire = {}
        self._calls = _Calls()
        self._message: object = None
        self._ran: Wire | None = None  # a message of a tool that the provider ran
        self.unknown: Wire = {}
        self.beside: Wire = {}
        self.reason: str | None = None

    def grow(self, choice: Wire, out: Assembly) -> bool:
        """Read a choice that only continues the open text; return whether it was one."""
        delta: Wire | None = choice.get("delta")  # pyright: ignore[reportAssignmentType]
        part = self._open
        if part is None or part.kind != "text" or not isinstance(delta, dict) or len(delta) != 1:
            return False
        text = delta.get("content")
        if not isinstance(text, str) or choice.get("finish_reason") is not None or choice.get("index"):
            return False
        if len(choice) > 3:
            return False
        if text:
            out.grow(part, text)
        return True

    def read(self, choice: Block, out: Assembly) -> None:
        """Read one choice of a frame."""
        delta = object_of(choice.get("delta") or choice.get("message"))
        index = delta.get("index")
        if isinstance(index, int) and index != self._message:
            self._begin_message(delta, out)
            self._message = index
        if delta.get("role") == "tool" or self._ran is not None:
            self._read_ran(delta)
        else:
            self._read_content(delta.get("content"), out)
            calls = delta.get("tool_calls")
            for call in list_of(calls):
                if self._message is None:
                    self._close(out)
                self._calls.read(object_of(call), out, quiet=self._message is not None)
            for key, value in delta.items():
                if key not in _DELTA_KEYS and value is not None:
                    self.unknown[key] = value
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.reason = reason
        for key, value in choice.items():
            if key not in _CHOICE_KEYS and value is not None:
                _add(self.beside, key, value)

    def called(self) -> list[str]:
        """Return the names of the calls on the wire."""
        return self._calls.names()

    def finish(self, out: Assembly) -> None:
        """Close what is open, with the calls that the provider did not run itself."""
        self._close(out)
        self._end_ran(out)
        self._calls.finish(out)

    # -- chunks --------------------------------------------------------------------------------------------------------

    def _read_content(self, content: object, out: Assembly) -> None:
        if isinstance(content, str):
            if content:
                out.grow(self._part("text", out), content)
        elif isinstance(content, list):
            for item in cast("list[object]", content):
                self._read_chunk(object_of(item), out)

    def _read_chunk(self, chunk: Block, out: Assembly) -> None:
        kind = chunk.get("type")
        if kind == "text" and isinstance(text := chunk.get("text"), str):
            part = self._part("text", out)
            if text:
                out.grow(part, text)
        elif kind == "thinking" and (thought := join_thoughts(chunk.get("thinking"))) is not None:
            part = self._part("thinking", out)
            inner = chunk["thinking"]
            self._thoughts += cast("list[object]", inner) if isinstance(inner, list) else [{"text": thought}]
            self._thought.update((key, value) for key, value in chunk.items() if key not in ("type", "thinking"))
            if thought:
                out.grow(part, thought)
        elif chunk:
            self._close(out)
            native = keep_place(PROTOCOL, decode_native(chunk))
            part = out.add_native(native.block, native.fallback)
            part.extra = native.extra
            out.close(part)

    def _part(self, kind: str, out: Assembly) -> Part:
        part = self._open
        if part is None or part.kind != kind:
            self._close(out)
            part = self._open = out.open_text() if kind == "text" else out.open_thinking()
        return part

    def _close(self, out: Assembly) -> None:
        """Close the open part; the signature and the data of thinking are read from the whole of it."""
        part, self._open = self._open, None
        if part is None:
            return
        if part.kind == "thinking":
            whole: Wire = {"type": "thinking", **self._thought, "thinking": _joined(self._thoughts)}
            content = decode_thinking(whole, reply=True)
            if content is not None:
                part.signature, part.extra = content.thinking_signature, content.extra
            self._thoughts, self._thought = [], {}
        out.close(part)

    # -- what the provider ran itself ----------------------------------------------------------------------------------

    def _begin_message(self, delta: Block, out: Assembly) -> None:
        """Begin the next of several messages: the provider ran the calls before a tool's message itself."""
        self._close(out)
        self._end_ran(out)
        if delta.get("role") == "tool":
            calls = self._calls.take()
            if calls:
                out.close(out.add_native({"role": "assistant", "content": "", "tool_calls": calls}))
            self._ran = {}

    def _read_ran(self, delta: Block) -> None:
        ran = self._ran = {} if self._ran is None else self._ran
        for key, value in delta.items():
            if key != "index" and value is not None:
                _add(ran, key, value, grows=key == "content")

    def _end_ran(self, out: Assembly) -> None:
        ran, self._ran = self._ran, None
        if ran:
            native = decode_ran(ran)
            out.close(out.add_native(native.block, native.fallback))


def _joined(thoughts: list[object]) -> list[object]:
    """Join neighbouring texts, as in a whole reply."""
    out: list[object] = []
    run: list[str] = []
    for thought in [*thoughts, None]:
        chunk = object_of(thought)
        if chunk and chunk.get("type", "text") == "text":
            run.append(str(chunk.get("text")))
            continue
        if text := join_chunks(run):
            out.append({"type": "text", "text": text})
        run = []
        if chunk:
            out.append(dict(chunk))
    return out


def _add(known: Wire, key: str, value: object, *, grows: bool = False) -> None:
    """Add one more value of a key: lists are joined, also inside objects, and texts where `grows` is set."""
    earlier = known.get(key)
    if isinstance(value, list) and isinstance(earlier, list):
        known[key] = [*cast("list[object]", earlier), *cast("list[object]", value)]
    elif isinstance(value, Mapping) and isinstance(earlier, dict):
        merged = dict(cast("Wire", earlier))
        for name, inner in cast("Block", value).items():
            _add(merged, name, inner)
        known[key] = merged
    elif grows and isinstance(value, str) and isinstance(earlier, str):
        known[key] = earlier + value
    else:
        known[key] = value


class _Call:
    """A call that is being received."""

    __slots__ = ("id", "name", "part", "pieces", "wire")

    def __init__(self, call_id: str, name: str, wire: Wire) -> None:
        self.id = call_id
        self.name = name
        self.wire = wire
        self.pieces: list[str] = []
        self.part: Part | None = None


class _Calls:
    """The calls of one message, found by id, then by index."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_index: dict[int | None, _Call] = {}

    def read(self, entry: Block, out: Assembly, *, quiet: bool) -> None:
        """Read a call, or more of one; `quiet` gives no events, while the provider may still run it itself."""
        received_id = text_of(entry.get("id")) or ""
        call_id = "" if received_id in NO_ID else received_id
        function = object_of(entry.get("function"))
        name, arguments = text_of(function.get("name")) or "", function.get("arguments")
        index = entry.get("index")
        place = index if isinstance(index, int) else None
        call = self._find(place, call_id)
        if call is None:
            call = _Call(call_id, name, {key: value for key, value in entry.items() if key != "function"})
            self._calls.append(call)
            if not quiet:
                call.part = out.open_call(call_id or made_id(len(self._calls) - 1), name)
        self._by_index[place] = call
        more = encode_arguments(cast("Block", arguments)) if isinstance(arguments, Mapping) else arguments
        if isinstance(more, str) and more:
            call.pieces.append(more)
            if call.part is not None:
                out.grow(call.part, more)

    def _find(self, index: int | None, call_id: str) -> _Call | None:
        if call_id:
            return next((call for call in self._calls if call.id == call_id), None)
        if index is not None:
            return self._by_index.get(index)
        return self._calls[-1] if self._calls else None

    def take(self) -> list[Wire]:
        """Return the calls that the provider ran, in the format of a whole reply."""
        taken = [
            {**call.wire, "function": {"name": call.name, "arguments": "".join(call.pieces)}} for call in self._calls
        ]
        self._calls, self._by_index = [], {}
        return taken

    def names(self) -> list[str]:
        """Return the names of the calls on the wire."""
        return [call.name for call in self._calls]

    def finish(self, out: Assembly) -> None:
        """Close the calls that wait for their results, in order."""
        for number, call in enumerate(self._calls):
            if call.part is None:
                call.part = out.open_call(call.id or made_id(number), call.name)
                for piece in call.pieces:
                    out.grow(call.part, piece)
            out.close(call.part)


_END: Final = "[DONE]"
_UNNAMED: Final = "cmpl-0"
_BODY_KEYS: Final = frozenset({"id", "object", "created", "model", "choices"})
_STREAM_WRITER_CHOICE_KEYS: Final = frozenset({"index", "message", "messages", "finish_reason"})
_MESSAGE_KEYS: Final = frozenset({"role", "content", "tool_calls"})


class _Writer(StreamWriter):
    name = PROTOCOL
    reasons = STOP_REASONS

    def __init__(self, endpoint: Endpoint, options: Options | None) -> None:
        super().__init__(endpoint, options)
        self._chunk: Wire = {}
        self._calls = 0
        self._message: int | None = None  # the number of the message, where the provider ran tools

    def start(self, event: StartEvent, first: Block) -> None:
        self._chunk = {
            "id": event.id or _UNNAMED,
            "object": "chat.completion.chunk",
            "created": 0,
            "model": event.model or self.endpoint.model.id,
            **first,
        }
        self._delta({"role": "assistant", "content": ""})

    def _delta(self, delta: Wire) -> None:
        if self._message is not None:
            delta = {"index": self._message, **delta}
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        self.frames.append({**self._chunk, "choices": [choice]})

    def add_text(self, index: int, text: str) -> None:  # noqa: ARG002 - parts have no index here
        self._delta({"content": text})

    def add_thinking(self, index: int, text: str) -> None:  # noqa: ARG002 - the same
        chunk: Wire = {"type": "thinking", "thinking": [{"type": "text", "text": text}]}
        self._delta({"content": [chunk]})

    def close_thinking(self, index: int, content: ThinkingContent) -> None:  # noqa: ARG002 - the same
        wire = encode_thinking(content)
        inner = wire.get("thinking")
        others = (
            [entry for entry in cast("list[object]", inner) if object_of(entry).get("type", "text") != "text"]
            if isinstance(inner, list)
            else []
        )
        if others or len(wire) > 2 or not content.thinking:
            self._delta({"content": [{**wire, "thinking": others}]})

    def close_call(self, index: int, call: ToolCall) -> None:  # noqa: ARG002 - the same
        wire = rest_of(encode_call(PROTOCOL, call), frozenset({"type"}))
        self._delta({"tool_calls": [{**wire, "index": self._calls}]})
        self._calls += 1

    def add_native(self, index: int, content: NativeContent) -> None:  # noqa: ARG002 - the same
        block = native_block(PROTOCOL, content)
        if "role" in block:
            self._message = 0 if self._message is None else self._message
            self._delta(dict(block))
            self._message += 1
        elif isinstance(calls := block.get("tool_calls"), list):
            for call in cast("list[object]", calls):
                self._delta({"tool_calls": [{**object_of(call), "index": self._calls}]})
                self._calls += 1
        else:
            self._delta({"content": [block]})

    def finish(self, message: AssistantMessage, *, refused: bool) -> None:  # noqa: ARG002 - Mistral: `error`
        whole = encode_response(message, self.endpoint)
        given = whole.get("choices")
        choices = [object_of(choice) for choice in cast("list[object]", given)] if isinstance(given, list) else []
        first = choices[0] if choices else cast("Block", {})
        delta = {"content": "", **rest_of(object_of(first.get("message")), _MESSAGE_KEYS)}
        if self._message is not None:
            delta = {"index": self._message, **delta}
        last: Wire = {"index": 0, "delta": delta, "finish_reason": first.get("finish_reason")}
        last |= rest_of(first, _STREAM_WRITER_CHOICE_KEYS)
        others = [
            {"index": at, **rest_of(choice, frozenset({"message"})), "delta": object_of(choice.get("message"))}
            for at, choice in enumerate(choices[1:], 1)
        ]
        self.frames.append({**self._chunk, **rest_of(whole, _BODY_KEYS), "choices": [last, *others]})
        self.frames.append(_END)

    def heartbeat(self) -> None:
        self._delta({"content": ""})

    def fail(self, fault: Fault) -> None:
        self.frames.append(encode_error(fault).body)
        self.frames.append(_END)


stream_encoder: MakeEncoder = encoder_of(_Writer)
