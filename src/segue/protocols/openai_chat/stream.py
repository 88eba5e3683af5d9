"""A streamed reply of an OpenAI chat endpoint: its chunks, and the choices in them.

Write a streamed reply of an OpenAI chat endpoint.

Nothing waits for a later event, except the input of a custom tool, whose neutral deltas are JSON and not its text.

Facts:
- Chunks hold deltas of choices. Usage comes last, in its own chunk, in the choice or under a vendor's key. The
  end is `[DONE]`.                                        (openai 3.49.0; pi-ai 1.5.0; recorded traffic, 2026-11)
- A stream whose last chunk, and no other, has usage is complete even without a finish reason.
                                                           (recorded traffic, 2026-11: openai-chat/0265 and 0307)
- Streams of gpt-audio and of some servers through Hugging Face end with `[DONE]` and have no finish reason. A call that
  has half of its arguments then was cut off nevertheless.                              (recorded traffic, 2026-08)
- Groq's `x_groq` has an id in the first chunk and usage in the last; `moderation` comes in its own chunk. So keys
  next to the choices are read from every chunk, and objects are merged.       (groq 1.5.0; recorded traffic, 2026-11)
- An error may come at any point, as its own chunk or next to a choice.           (openai 3.49.0; OpenRouter)
- The first delta has the role; every chunk has id, created and model; the last choice chunk has the finish reason; the
  usage chunk has no choices and comes only if `stream_options.include_usage` asks for it; then `[DONE]`.
                                                                            (openai 3.49.0; recorded traffic, 2026-11)
- A message has one text and one reasoning: the texts of several parts are joined as in a whole reply.
- Keys next to the deltas count from the last chunk that has them.          (openai 3.49.0: ChatCompletionStreamState)
- The heartbeat is a chunk without choices.            (openai SDK, opencode, pi, qwen-code accept it; facts of 2026-11)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.arguments import parse_arguments
from segue.conversation.content import NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Options
from segue.conversation.events import Event, StartEvent
from segue.conversation.messages import AssistantMessage, Diagnostic, StopReason
from segue.models.model import Model
from segue.protocols.families.chat_content import TextJoint
from segue.protocols.families.openai_errors import decode_error, write_error
from segue.protocols.kit.assembly import Assembly
from segue.protocols.kit.codec import Endpoint, Fault
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.replies import keep_reply, read_stop
from segue.protocols.kit.stream_writing import FrameMaker, MakeEncoder, StreamWriter, encoder_of, rest_of
from segue.protocols.kit.streaming import StreamDecoder
from segue.protocols.openai_chat.assistant import OLD_ID, encode_call, encode_signature
from segue.protocols.openai_chat.content import encode_fields, encode_native, is_part
from segue.protocols.openai_chat.fast_decode import REPEATED_KEYS, Json, find_delta
from segue.protocols.openai_chat.options import asks_usage
from segue.protocols.openai_chat.reasoning import DETAILS, FIELDS, load_details, plain_field
from segue.protocols.openai_chat.response import (
    STOP_REASONS,
    decode_usage,
    encode_choice,
    encode_reply,
    encode_response,
)
from segue.protocols.openai_chat.rules import PROTOCOL
from segue.protocols.openai_chat.stream_choice import ChoiceReader

_READ: Final = frozenset({"id", "model", "object", "choices", "usage", "obfuscation", "error"})
"""Keys of a chunk that are read, or that are not part of the reply."""
_MAX_MISSES: Final = 16
"""After so many chunks in a row that do not fit the fast path, it is not tried any more."""


def stream_decoder(endpoint: Endpoint, tool_names: Mapping[str, str]) -> StreamDecoder:
    """Make a decoder for one reply."""
    reader = ChatReader(endpoint)
    return StreamDecoder(reader, Assembly(endpoint.model, PROTOCOL, tool_names), reader.read_fast)


class ChatReader:
    """Reads chunks. The first choice is the message; the others are assembled without events and kept."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._choice = ChoiceReader(endpoint)
        self._others: dict[int, tuple[ChoiceReader, Assembly]] = {}
        self._body: dict[str, object] = {}
        self._chunks = 0
        self._usages = 0  # chunks with usage
        self._last_usage = 0  # the number of the last one
        self._misses = 0  # chunks in a row that did not fit the fast path

    def read_fast(self, frame: bytes) -> list[Event] | None:
        """Fast path: read a chunk that only adds to an open part; None for every other chunk."""
        if self._misses > _MAX_MISSES or not self._chunks:
            return None
        delta = find_delta(frame)
        events = None if delta is None else self._choice.grow_by(delta)
        if events is None:
            self._misses += 1
        else:
            self._misses = 0
            self._chunks += 1
        return events

    def read(self, frame: Mapping[str, object], out: Assembly) -> None:
        """Read one chunk."""
        self._chunks += 1
        usage, choices = frame.get("usage"), cast("Json", frame.get("choices"))
        if usage is not None or self._chunks == 1 or not frame.keys() <= REPEATED_KEYS:
            self._read_frame(frame, usage, out)
        if isinstance(choices, list):
            for choice in choices:
                # JSON objects are dicts; the test for any mapping costs more than the rest of a delta.
                if isinstance(choice, dict):
                    self._read_choice(choice, frame, out)
            if "error" in frame:
                self._fail(frame, out)
        elif "error" in frame or frame.get("object") == "error":
            self._fail(frame, out)

    def end(self, out: Assembly) -> None:
        """Finish the reply: complete, or as far as it came."""
        if out.final is not None:
            return
        self._choice.finish(out)
        kinds: list[str] = [part.kind for part in out.parts]
        has_reasons = self._endpoint.dialect.finish_reason
        is_ended = not has_reasons or self._ends_with_usage() or (out.ended and _has_whole_calls(out))
        if self._choice.finished or (kinds and is_ended):
            out.raw_stop_reason = self._choice.reason
            out.stop_reason = read_stop(STOP_REASONS, self._choice.reason, kinds)
        self._keep(out)
        out.finish()

    def _ends_with_usage(self) -> bool:
        """Whether the last chunk has usage and no other: usage in every chunk does not mark the end."""
        return self._chunks > 1 and self._usages == 1 and self._last_usage == self._chunks

    def _read_frame(self, frame: Block, usage: object, out: Assembly) -> None:
        """Read the keys next to the choices: id, model, usage, and others, which are kept."""
        if out.response_id is None and isinstance(name := frame.get("id"), str) and name:
            out.response_id = name
        if out.response_model is None and isinstance(model := frame.get("model"), str) and model:
            out.response_model = model
        if isinstance(usage, Mapping):
            out.usage = decode_usage(cast("Block", usage), self._endpoint.model, frame)
            self._usages += 1
            self._last_usage = self._chunks
        if not out.started:
            out.first = {key: value for key, value in frame.items() if key not in _READ}
            out.start()
        for key, value in frame.items():
            if key not in _READ and value is not None:
                earlier = self._body.get(key)
                if isinstance(earlier, Mapping) and isinstance(value, Mapping):
                    self._body[key] = {**cast("Block", earlier), **cast("Block", value)}
                else:
                    self._body[key] = value
                if usage is None and isinstance(value, Mapping):
                    nested = cast("Block", value).get("usage")
                    if isinstance(nested, Mapping) and "prompt_tokens" in nested:
                        out.usage = decode_usage(cast("Block", nested), self._endpoint.model, frame)

    def _read_choice(self, choice: dict[str, Json], frame: Block, out: Assembly) -> None:
        index = choice.get("index")
        reader = self._choice
        if isinstance(index, int) and index > 0:
            if index not in self._others:
                other = Assembly(Model(out.model.id, out.model.provider, PROTOCOL), PROTOCOL)
                self._others[index] = (ChoiceReader(self._endpoint), other)
            reader, other = self._others[index]
            reader.read(choice, other)
            other.events.clear()
            return
        reader.read(choice, out)
        if choice.get("finish_reason") is not None and frame.get("usage") is None:
            self._read_frame(frame, None, out)
        nested = choice.get("usage")
        if nested is not None and isinstance(nested, Mapping):
            out.usage = decode_usage(cast("Block", nested), self._endpoint.model, frame)
        error = choice.get("error")
        if error:
            self._fail({"error": error}, out)

    def _fail(self, frame: Block, out: Assembly) -> None:
        if out.final is not None or not (frame.get("error") or frame.get("object") == "error"):
            return
        error = decode_error(frame, None)
        given = {"code": error.code, "type": error.type, "status": error.status}
        details = {key: value for key, value in given.items() if value is not None}
        if details:
            out.diagnostics.append(Diagnostic(type="provider_error", message=error.message, details=details))
        self._choice.finish(out)
        out.raw_stop_reason = self._choice.reason
        self._keep(out, StopReason.ERROR)
        out.fail(error.message or "the provider reported an error")

    def _keep(self, out: Assembly, stop: StopReason | None = None) -> None:
        """Keep what the chunks hold next to the message, as a whole reply would have it."""
        out.start()
        out.close_all()
        message = replace(out.message(), stop_reason=stop or out.stop_reason or StopReason.ERROR)
        default = encode_reply(message, self._endpoint)
        choices = [_encode_choice(message, self._choice, self._endpoint)]
        for index, (reader, other) in sorted(self._others.items()):
            reader.finish(other)
            other.close_all()
            choices.append(_encode_choice(other.message(), reader, self._endpoint, index))
        out.extra = keep_reply(PROTOCOL, default, {**default, "choices": choices, **self._body})


def _has_whole_calls(out: Assembly) -> bool:
    """Whether the arguments of every call are complete."""
    calls = [part for part in out.parts if part.kind == "toolCall" and part.chunks]
    return all(parse_arguments("".join(call.chunks)).is_whole for call in calls)


def _with_old_call(message: Block, reader: ChoiceReader) -> Block:
    """Write the call that was streamed as `function_call` in that field, as a whole reply has it."""
    calls = cast("list[Block]", message.get("tool_calls") or []) if reader.has_old_call else []
    old = next((call for call in calls if call.get("id") == OLD_ID), None)
    if old is None:
        return message
    rest = [call for call in calls if call is not old]
    kept = {key: value for key, value in message.items() if key != "tool_calls"}
    return {**kept, "function_call": old["function"], **({"tool_calls": rest} if rest else {})}


def _encode_choice(message: AssistantMessage, reader: ChoiceReader, endpoint: Endpoint, index: int = 0) -> Wire:
    choice = encode_choice(message, endpoint, index)
    choice["message"] = {**_with_old_call(cast("Block", choice["message"]), reader), **reader.message_fields}
    return {**choice, "finish_reason": reader.reason, **reader.choice_fields}


_END: Final = "[DONE]"
_BODY_KEYS: Final = frozenset({"id", "object", "created", "model", "choices", "usage"})
_CHOICE_KEYS: Final = frozenset({"index", "message", "finish_reason"})
_MESSAGE_KEYS: Final = frozenset({"role", "content", "tool_calls", "function_call", "refusal", "extra_content"})
_CALL_KEYS: Final = frozenset({"id", "type", "function", "custom"})
_BETWEEN_THOUGHTS: Final = "\n"
_UNNAMED: Final = "chatcmpl-0"


class _Writer(StreamWriter):
    name = PROTOCOL
    reasons = STOP_REASONS
    empty_arguments = "{}"

    def __init__(self, endpoint: Endpoint, options: Options | None) -> None:
        super().__init__(endpoint, options)
        self._chunk: Wire = {}  # the keys of every chunk, before its choices
        self._fields: dict[int, str] = {}  # the fields of open texts and thinking
        self._joints = {"content": TextJoint(), "refusal": TextJoint()}
        self._places: dict[int, int] = {}  # of open calls among the calls
        self._held: set[int] = set()  # calls that are written at their end
        self._old: int | None = None  # the part that is the `function_call`
        self._calls = 0
        self._thoughts: set[int] = set()  # thinking that was written
        self._written: set[str] = set(_MESSAGE_KEYS)

    def start(self, event: StartEvent, first: Block) -> None:
        # JSON objects are not repeated: they hold what belongs to the first chunk alone, such as Groq's `x_groq`.
        repeated = {key: value for key, value in first.items() if not isinstance(value, (dict, list))}
        self._chunk = {
            "id": event.id or _UNNAMED,
            "object": "chat.completion.chunk",
            "created": 0,
            "model": event.model or self.endpoint.model.id,
            **repeated,
        }
        # Null, not an empty text: the reply may consist of calls alone.
        self._delta({"role": "assistant", "content": None}, **{k: v for k, v in first.items() if k not in repeated})

    def frame_maker(self, index: int, kind: str) -> FrameMaker | None:
        chunk = self._chunk
        if kind == "toolCall":
            place = self._places.get(index)
            if place is None or index in self._held:
                return None

            def add_arguments(text: str) -> Wire:
                delta = {"tool_calls": [{"index": place, "function": {"arguments": text}}]}
                return {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}

            return add_arguments
        field = self._fields[index]
        if kind == "thinking":
            return lambda text: {**chunk, "choices": [{"index": 0, "delta": {field: text}, "finish_reason": None}]}
        join = self._joints[field].add
        return lambda text: {**chunk, "choices": [{"index": 0, "delta": {field: join(text)}, "finish_reason": None}]}

    def _delta(self, delta: Wire, /, **beside: object) -> None:
        choice: Wire = {"index": 0, "delta": delta, "finish_reason": None}
        self.frames.append({**self._chunk, **beside, "choices": [choice]})

    # -- texts ---------------------------------------------------------------------------------------------------------

    def open_text(self, index: int, first: Block) -> None:
        field = "refusal" if first.get("field") == "refusal" else "content"
        self._fields[index] = field
        self._joints[field].begin()

    def add_text(self, index: int, text: str) -> None:
        field = self._fields[index]
        self._delta({field: self._joints[field].add(text)})

    def close_text(self, index: int, content: TextContent) -> None:
        del self._fields[index]
        if content.text_signature is not None and self.endpoint.dialect.google_signatures:
            self._delta({"extra_content": encode_signature(content.text_signature)})

    # -- thinking ------------------------------------------------------------------------------------------------------

    def open_thinking(self, index: int, first: Block) -> None:
        field = first.get("field")
        self._fields[index] = field if isinstance(field, str) and field in FIELDS else plain_field(self.endpoint)

    def add_thinking(self, index: int, text: str) -> None:
        field = self._fields[index]
        self._written.add(field)
        if index not in self._thoughts:
            text = _BETWEEN_THOUGHTS + text if self._thoughts else text
            self._thoughts.add(index)
        self._delta({field: text})

    def close_thinking(self, index: int, content: ThinkingContent) -> None:
        del self._fields[index]
        details = load_details(content.thinking_signature)
        if details is not None:
            self._written.add(DETAILS)
            self._delta({DETAILS: details})

    # -- calls ---------------------------------------------------------------------------------------------------------

    def open_call(self, index: int, call_id: str, name: str, first: Block) -> None:
        field = first.get("field")
        if field == "function_call":
            self._old = index
            self._delta({"function_call": {"name": name, "arguments": ""}})
            return
        place = self._places[index] = self._calls
        self._calls += 1
        if field == "custom":
            self._held.add(index)
            return
        call: Wire = {"index": place, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
        self._delta({"tool_calls": [call]})

    def add_arguments(self, index: int, text: str) -> None:
        if index == self._old:
            self._delta({"function_call": {"arguments": text}})
        elif index not in self._held:
            self._delta({"tool_calls": [{"index": self._places[index], "function": {"arguments": text}}]})

    def close_call(self, index: int, call: ToolCall) -> None:
        if index == self._old:
            return
        place = self._places.pop(index)
        wire = encode_call(call, self.endpoint)
        if index in self._held:
            self._held.discard(index)
            self._delta({"tool_calls": [{"index": place, **wire}]})
        elif rest := rest_of(wire, _CALL_KEYS):
            self._delta({"tool_calls": [{"index": place, **rest}]})

    def add_native(self, index: int, content: NativeContent) -> None:  # noqa: ARG002 - the common signature
        block = encode_native(content, ())
        if is_part(content):
            self._delta({"content": [block]})
        elif isinstance(calls := block.get("tool_calls"), list):
            for call in cast("list[object]", calls):
                self._delta({"tool_calls": [{"index": self._calls, **object_of(call)}]})
                self._calls += 1
        else:
            fields = encode_fields(content, reply=True)
            self._written.update(fields)
            self._delta(dict(fields))

    # -- the end -------------------------------------------------------------------------------------------------------

    def finish(self, message: AssistantMessage, *, refused: bool) -> None:
        whole = encode_response(message, self.endpoint)
        given = whole.get("choices")
        choices = [object_of(choice) for choice in cast("list[object]", given)] if isinstance(given, list) else []
        first = choices[0] if choices else cast("Block", {})
        reason = first.get("finish_reason")
        if refused and (reason == "error" or reason not in STOP_REASONS):
            reason = "content_filter"
        last: Wire = {
            "index": 0,
            "delta": rest_of(object_of(first.get("message")), self._written),
            "finish_reason": reason,
            **rest_of(first, _CHOICE_KEYS),
        }
        beside = rest_of(whole, _BODY_KEYS)
        self.frames.append({**self._chunk, **beside, "choices": [last]})
        for at, choice in enumerate(choices[1:], 1):
            self._write_choice(choice, at, beside)
        usage = whole.get("usage")
        if isinstance(usage, Mapping) and asks_usage(self.options, self.endpoint):
            counts = cast("Block", usage)
            self.frames.append({**self._chunk, **beside, "choices": [], "usage": counts})
        self.frames.append(_END)

    def _write_choice(self, choice: Block, at: int, beside: Wire) -> None:
        """Write a further choice, whole: the events of a stream are those of the first."""
        delta = dict(object_of(choice.get("message")))
        calls = delta.get("tool_calls")
        if isinstance(calls, list):
            numbered = enumerate(cast("list[object]", calls))
            delta["tool_calls"] = [{"index": number, **object_of(call)} for number, call in numbered]
        wire: Wire = {"index": at, **rest_of(choice, frozenset({"message"})), "delta": delta}
        self.frames.append({**self._chunk, **beside, "choices": [wire]})

    def heartbeat(self) -> None:
        self.frames.append({**self._chunk, "choices": []})

    def fail(self, fault: Fault) -> None:
        self.frames.append(write_error(fault).body)
        self.frames.append(_END)


stream_encoder: MakeEncoder = encoder_of(_Writer)
