"""Write a streamed reply of an OpenAI chat endpoint.

Facts this file rests on:
- The first delta has the role; every chunk has id, created and model; the last choice chunk has the finish reason; the
  usage chunk has no choices and comes only if `stream_options.include_usage` asks for it; then `[DONE]`.
                                                                            (openai 3.49.0; recorded traffic, 2026-11)
- A message has one text and one reasoning: the texts of several parts are joined as in a whole reply.
- Keys beside the deltas count from the last chunk that has them.          (openai 3.49.0: ChatCompletionStreamState)
- The heartbeat is a chunk without choices.            (openai SDK, opencode, pi, qwen-code accept it; facts of 2026-11)

Nothing waits for a later event, except the input of a custom tool, whose neutral deltas are JSON and not its text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from segue.conversation.content import NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Options
from segue.conversation.events import StartEvent
from segue.conversation.messages import AssistantMessage
from segue.protocols.kit.codec import Endpoint, Fault
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.reading import TextJoint
from segue.protocols.kit.stream_writing import FrameMaker, MakeEncoder, StreamWriter, encoder_of, rest_of
from segue.protocols.openai_chat.calls import encode_call, encode_signature
from segue.protocols.openai_chat.errors import encode_error
from segue.protocols.openai_chat.native import encode_fields, encode_native, is_part
from segue.protocols.openai_chat.options import asks_usage
from segue.protocols.openai_chat.reasoning import DETAILS, FIELDS, load_details, plain_field
from segue.protocols.openai_chat.response import STOP_REASONS, encode_response
from segue.protocols.openai_chat.rules import PROTOCOL

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
        self.frames.append(encode_error(fault).body)
        self.frames.append(_END)


stream_encoder: MakeEncoder = encoder_of(_Writer)
