"""A streamed generateContent reply.

Pieces of one kind without other keys are one text; any other part is read as in a whole reply. An empty text without a
signature is dropped. A stream without a finish reason is unfinished. At the end the reply is built as the provider
would have sent it whole, and finished by the function that finishes a whole one.

A call whose arguments come piece by piece.

Texts are kept in pieces and joined once. A path that cannot be parsed is used as the name of an argument.

Write a streamed generateContent reply.

A call waits for its end: the Gemini API sends calls whole, and clients that do not enable `partialArgs` read them so.
Nothing else waits. Adjacent texts are one text to clients, whatever parts they came from.

Facts:
- Every frame is a reply whose parts follow those of the frames before; the last one has the finish reason, often with
  text or an empty text next to it. There is no end mark, and counts replace the earlier ones.
                                             (google-genai 3.1.0, read 2026-11-15; recorded traffic, 2026-11)
- Texts and thoughts come in pieces, calls whole, unless arguments are streamed at Vertex (see `stream_calls`).
- A signature may come on an empty text after the text. A part with a signature must not be merged with another, or
  the signature is sent back on another part.                  (Google documentation: thought signatures, 2026-11-15)
- An error may come in mid-stream: a frame with `error`.                                       (google-genai 3.1.0)
- At Vertex, if the request enables it, a call begins with its name and `willContinue`, continues with `partialArgs`
  (each the path of a value and the value, of a text as much as there is) and ends with a piece without `willContinue`.
                        (google-genai 3.1.0: FunctionCall, PartialArg, read 2026-11-15; code-assistant #148)
- The path is a JSON path, `$.foo.bar[0].data`.                                          (the same; RFC 9535)
- Every frame is a reply with the next parts; the last one has the finish reason and the counts; there is no end mark.
                                                          (google-genai 3.1.0, read 2026-11-15; recorded traffic)
- A signature may be on an empty text after the text that it belongs to.     (Google documentation: signatures)
- The heartbeat is a reply without candidates. An SSE comment breaks google-genai.     (run against a probe, 2026-11)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeAlias, cast

from msgspec import UNSET, Raw

from segue.conversation.content import AssistantContent, NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Options
from segue.conversation.events import Event, StartEvent
from segue.conversation.limits import MAX_ARGUMENT_LEVELS
from segue.conversation.messages import AssistantMessage, Diagnostic, StopReason
from segue.protocols.google_genai.content import (
    CALL,
    SIGNATURE,
    decode_assistant_part,
    decode_default_call,
    decode_part_frame,
    encode_assistant_parts,
    fallback_of,
    read_keys,
)
from segue.protocols.google_genai.response import (
    STOP_REASONS,
    block_reason,
    decode_usage,
    encode_error,
    encode_response,
    error_text,
    finish_reason,
    finish_response,
    id_prefix,
)
from segue.protocols.google_genai.rules import PROTOCOL
from segue.protocols.kit.assembly import Assembly, Part, join_chunks
from segue.protocols.kit.codec import Endpoint, Fault
from segue.protocols.kit.json_values import EMPTY, Block, Wire, is_list, list_of, object_of
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.stream_writing import FrameMaker, MakeEncoder, StreamWriter, encoder_of, rest_of
from segue.protocols.kit.streaming import MISFIT, StreamDecoder, is_shallow, parse_frame

Step: TypeAlias = str | int

_STEP: Final = re.compile(r"""\.([^.\[\]'"]+)|\[(\d{1,6})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""")
_VALUES: Final = ("stringValue", "numberValue", "boolValue")


class _Growing:
    """A text that is still being written."""

    __slots__ = ("chunks",)

    def __init__(self, text: str) -> None:
        self.chunks = [text]


class PartialCall:
    """One call under construction; `call` holds its name and id on the wire."""

    def __init__(self, part: Part, call: Wire) -> None:
        self.part = part
        self._call = call
        self._tree: Wire = {}
        self._open: dict[str, _Growing] = {}

    def add(self, piece: object) -> None:
        """Add one piece of the arguments."""
        wire = read_keys(object_of(piece))
        path = wire.get("jsonPath")
        if not isinstance(path, str):
            return
        key = next((key for key in _VALUES if key in wire), None)
        value: object = wire[key] if key is not None else None
        growing = self._open.get(path)
        if isinstance(value, str):
            if growing is None:
                growing = self._open[path] = _Growing(value)
                self._put(_steps(path), growing)
            else:
                growing.chunks.append(value)
        elif growing is None:
            self._put(_steps(path), value)
        if wire.get("willContinue") is not True:
            self._open.pop(path, None)

    def merge(self, arguments: Block) -> None:
        """Add arguments that came whole."""
        self._tree.update(arguments)

    def finish(self) -> Wire:
        """Set the arguments of the part; return the call as it would have been sent whole."""
        self.part.arguments = cast("Wire", _joined(self._tree))
        block: Wire = {CALL: {**self._call, "args": self.part.arguments}}
        return block if self.part.signature is None else {**block, SIGNATURE: self.part.signature}

    def _put(self, steps: list[Step], value: object) -> None:
        node: object = self._tree
        for at, step in enumerate(steps):
            is_last = at == len(steps) - 1
            below: object = value if is_last else [] if isinstance(steps[at + 1], int) else {}
            node = _set(node, step, below, replaces=is_last)


def _set(node: object, step: Step, value: object, *, replaces: bool) -> object:
    """Set the value at one step, or keep the one that is there; return the value that is there then."""
    if isinstance(node, dict):
        held = cast("dict[Step, object]", node)
        if replaces or not isinstance(held.get(step), (dict, list)):
            held[step] = value
        return held[step]
    if isinstance(node, list) and isinstance(step, int):
        items = cast("list[object]", node)
        if step >= len(items):
            items.extend([None] * (step - len(items) + 1))
        if replaces or not isinstance(items[step], (dict, list)):
            items[step] = value
        return items[step]
    return value  # a name inside a list is dropped


def _steps(path: str) -> list[Step]:
    rest = path.removeprefix("$")
    steps: list[Step] = []
    at = 0
    while at < len(rest):
        found = _STEP.match(rest, at)
        if found is None:
            return [path]
        name, number, single, double = found.groups()
        steps.append(int(number) if number is not None else name or single or double or "")
        at = found.end()
    return steps if steps and isinstance(steps[0], str) and len(steps) <= MAX_ARGUMENT_LEVELS else [path]


def _joined(node: object) -> object:
    if isinstance(node, _Growing):
        return join_chunks(node.chunks)
    if isinstance(node, dict):
        return {key: _joined(value) for key, value in cast("Wire", node).items()}
    if isinstance(node, list):
        return [_joined(value) for value in cast("list[object]", node)]
    return node


_USAGE: Final = "usageMetadata"
_SHORTEST_COUNTS: Final = 16
"""Counts of fewer characters may be an empty value, which replaces no earlier ones."""
_UNFINISHED: Final = "The stream ended before the arguments of the call did; what was received is kept."


def stream_decoder(endpoint: Endpoint, tool_names: Mapping[str, str]) -> StreamDecoder:
    """Make the decoder of a stream."""
    assembly = Assembly(endpoint.model, PROTOCOL, tool_names)
    reader = _Reader(endpoint, assembly)
    return StreamDecoder(reader, assembly, reader.read_part)


class _Reader:
    def __init__(self, endpoint: Endpoint, out: Assembly) -> None:
        self._endpoint = endpoint
        self._out = out
        self._body: Wire = {}  # the reply as it would have been sent whole, without its candidates
        self._candidate: Wire = {}  # the first candidate, without its content
        self._content: Wire | None = None  # its content
        self._parts: list[Wire] = []  # its parts; those of texts are empty until the end
        self._others: dict[int, Wire] = {}
        self._text: Part | None = None  # the text or the thought that may still grow
        self._repeated: tuple[object, ...] = ()  # what a frame of the fast path has next to its part
        self._usage: Raw | None = None  # the counts of the last frame of the fast path, not decoded yet
        self._partial: PartialCall | None = None
        self._calls = 0

    def read_part(self, frame: bytes) -> list[Event] | None:
        """Fast path: read a frame that has one part and nothing new next to it; None for every other frame.

        Its counts are decoded when they are needed, which is at the end: each frame replaces those of the one before.
        """
        try:
            given = decode_part_frame(frame)
        except MISFIT:
            return None
        (candidate,) = given.candidates
        repeated = (given.model_version, given.response_id, given.create_time, candidate.index)
        usage = given.usage_metadata
        if repeated != self._repeated or candidate.index:
            return None
        if usage is not UNSET and (len(usage) < _SHORTEST_COUNTS or _USAGE not in self._body):
            return None
        (part,) = candidate.content.parts
        growing, text = self._text, part.get("text")
        if growing is not None and type(text) is str and text:
            is_thought = len(part) == 2 and part.get("thought") is True
            if growing.kind == "thinking" if is_thought else len(part) == 1 and growing.kind == "text":
                self._usage = self._usage if usage is UNSET else usage
                return growing.extend(text)
        if not is_shallow(frame):
            return None
        self._usage = self._usage if usage is UNSET else usage
        out = self._out
        self._read_part(part, out)
        events, out.events = out.events, []
        return events

    def read(self, frame: Block, out: Assembly) -> None:
        if self._usage is not None:
            self._settle_usage(frame, out)
        candidates: object = None
        for key, value in frame.items():
            if key == "candidates":
                candidates = value
            elif key == "error" and value:
                self._fail(frame, out)
                return
            elif value or key not in self._body:
                self._body[key] = value
        if not out.started:
            self._update(out)
            out.start()
        elif not candidates and len(frame) <= 1:
            out.ping()
        for at, candidate in enumerate(list_of(candidates)):
            if isinstance(candidate, dict):
                self._read_candidate(cast("Wire", candidate), at, out)
        self._repeated = ()
        if self._content is not None and "parts" in self._content:
            self._repeated = (
                frame.get("modelVersion", UNSET),
                frame.get("responseId", UNSET),
                frame.get("createTime", UNSET),
                self._candidate.get("index", UNSET),
            )

    def _settle_usage(self, frame: Block, out: Assembly) -> None:
        """Note the counts of the fast path, unless this frame replaces them."""
        usage, self._usage = self._usage, None
        if usage is not None and not frame.get(_USAGE):
            counts = out.make_plain(parse_frame(b'{"":%b}' % bytes(usage)) or EMPTY).get("")
            if counts:
                self._body[_USAGE] = counts

    def end(self, out: Assembly) -> None:
        """Finish the reply; without a finish reason the assembly then reports that it did not end."""
        if out.final is not None:
            return
        self._settle_usage(EMPTY, out)
        self._close(out)
        if self._partial is not None:
            out.diagnostics.append(Diagnostic(type="tool_arguments_recovered", message=_UNFINISHED))
            self._end_partial(out)
        self._update(out)
        whole = self._finish(out)
        out.extra = whole.extra
        if whole.raw_stop_reason is not None:
            out.stop_reason, out.error_message = whole.stop_reason, whole.error_message
        out.finish()

    # -- candidates ----------------------------------------------------------------------------------------------------

    def _read_candidate(self, candidate: Wire, at: int, out: Assembly) -> None:
        index = candidate.get("index", at)
        if index != 0 and isinstance(index, int):
            self._add_other(candidate, index)
            return
        content: object = None
        for key, value in candidate.items():
            if key == "content":
                content = value
            elif key == "logprobsResult":  # a chunk has those of its own tokens
                self._candidate[key] = _lists_joined(object_of(self._candidate.get(key)), object_of(value))
            elif value or key not in self._candidate:
                self._candidate[key] = value
        if not isinstance(content, dict):
            return
        turn = cast("Wire", content)
        if self._content is None:
            self._content = {key: value for key, value in turn.items() if key != "parts"}
        parts = turn.get("parts")
        if isinstance(parts, list):
            self._content["parts"] = self._parts
            for part in cast("list[object]", parts):
                if isinstance(part, dict):
                    self._read_part(cast("Wire", part), out)

    def _add_other(self, candidate: Wire, index: int) -> None:
        """Collect another candidate; it is kept, not read."""
        known = self._others.setdefault(index, {})
        content = known.get("content")
        known.update(candidate)
        if isinstance(content, dict):
            before, after = object_of(cast("Wire", content)), object_of(candidate.get("content"))
            known["content"] = {
                **before,
                **after,
                "parts": [*list_of(before.get("parts")), *list_of(after.get("parts"))],
            }

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _read_part(self, part: Wire, out: Assembly) -> None:
        text = part.get("text")
        if isinstance(text, str):
            if len(part) == 1:
                if text:
                    self._grow(text, out, is_thought=False)
                return
            if len(part) == 2 and part.get("thought") is True:
                if text:
                    self._grow(text, out, is_thought=True)
                return
        self._close(out)
        whole = decode_default_call(part, {}, self._endpoint) if self._partial is None else None
        if whole is not None:
            self._add(whole, part, out)
            return
        wire = read_keys(part)
        call = read_keys(object_of(wire.get(CALL)))
        if call and (self._partial is not None or "partialArgs" in call or call.get("willContinue") is True):
            self._grow_call(call, wire, out)
            return
        if self._partial is not None:
            if CALL in wire:  # an empty call: the end of the one that was streamed
                self._grow_call(call, wire, out)
                return
            self._end_partial(out)
        self._add(self._decode(part, self._new_id()), part, out)

    def _grow(self, text: str, out: Assembly, *, is_thought: bool) -> None:
        open_part = self._text
        if open_part is None or (open_part.kind == "thinking") is not is_thought:
            self._close(out)
            open_part = self._text = out.open_thinking() if is_thought else out.open_text()
            self._parts.append({})
        out.grow(open_part, text)

    def _close(self, out: Assembly) -> None:
        part = self._text
        if part is not None:
            out.close(part)
            self._text = None
            closed = part.closed
            if closed is not None and closed.kind == "text":
                self._parts[part.index] = {"text": closed.text}
            elif closed is not None and closed.kind == "thinking":
                self._parts[part.index] = {"text": closed.thinking, "thought": True}

    def _new_id(self) -> str:
        return f"{id_prefix(text_of(read_keys(self._body).get('responseId')))}{self._calls}"

    def _decode(self, part: Block, new_id: str) -> AssistantContent:
        """Read a part; the assembly maps the names of tools."""
        return decode_assistant_part(part, new_id, {}, self._endpoint, is_reply=True)

    def _add(self, content: AssistantContent, block: Wire, out: Assembly) -> None:
        """Add a part that came whole."""
        match content.kind:
            case "text":
                if not content.text and content.text_signature is None and content.extra is None:
                    return
                part = out.open_text()
                if content.text:
                    out.grow(part, content.text)
                part.signature = content.text_signature
            case "thinking":
                part = out.open_thinking()
                if content.thinking:
                    out.grow(part, content.thinking)
                part.signature, part.redacted = content.thinking_signature, content.redacted
            case "toolCall":
                self._calls += 1
                part = out.open_call(content.id, content.name)
                part.arguments, part.signature = content.arguments, content.thought_signature
                if content.arguments_text is not None:  # not an object
                    out.grow(part, content.arguments_text)
            case "native":
                part = out.add_native(block, fallback_of(block))
        part.extra = content.extra
        self._parts.append(block)
        out.close(part)

    # -- calls in pieces -----------------------------------------------------------------------------------------------

    def _grow_call(self, call: Block, wire: Block, out: Assembly) -> None:
        name, call_id = text_of(call.get("name")), text_of(call.get("id"))
        if self._partial is not None and name:
            self._end_partial(out)
        if self._partial is None:
            part = out.open_call(call_id or self._new_id(), name or "")
            self._calls += 1
            self._parts.append({})
            self._partial = PartialCall(part, {"name": name or "", **({"id": call_id} if call_id else {})})
        partial = self._partial
        signature = wire.get(SIGNATURE)
        if isinstance(signature, str) and signature:
            partial.part.signature = signature
        partial.merge(object_of(call.get("args")))
        for piece in list_of(call.get("partialArgs")):
            partial.add(piece)
        if call.get("willContinue") is not True:
            self._end_partial(out)

    def _end_partial(self, out: Assembly) -> None:
        """Finish a call as if it had come whole."""
        if self._partial is not None:
            part, block = self._partial.part, self._partial.finish()
            part.extra = self._decode(block, part.id).extra
            self._parts[part.index] = block
            out.close(part)
            self._partial = None

    # -- the whole -----------------------------------------------------------------------------------------------------

    def _update(self, out: Assembly) -> None:
        """Pass the assembly what is known so far of the message as a whole."""
        wire, candidate = read_keys(self._body), read_keys(self._candidate)
        out.response_id = text_of(wire.get("responseId"))
        out.response_model = text_of(wire.get("modelVersion"))
        out.usage = decode_usage(wire.get("usageMetadata"), self._endpoint, candidate)
        out.raw_stop_reason = finish_reason(candidate) or block_reason(wire)

    def _finish(self, out: Assembly) -> AssistantMessage:
        body = dict(self._body)
        candidates = [self._others[index] for index in sorted(self._others)]
        if self._candidate or self._content is not None:
            content: Wire = {} if self._content is None else {"content": self._content}
            candidates.insert(0, {**self._candidate, **content})
        if candidates:
            body["candidates"] = candidates
        pieces = tuple(part.closed for part in out.parts if part.closed is not None)
        return finish_response(body, pieces, self._endpoint, is_whole=False)

    def _fail(self, frame: Block, out: Assembly) -> None:
        self._close(out)
        self._end_partial(out)
        self._update(out)
        self._body["error"] = frame.get("error")
        out.extra = self._finish(out).extra
        out.fail(error_text(frame))


_ENDS: Final[Mapping[str, StopReason]] = {
    **STOP_REASONS,
    # google-genai 3.3.0: FinishReason, read 2026-11-18; those of a reply that was withheld are known to the encoder
    "OTHER": StopReason.ERROR,
    "MALFORMED_FUNCTION_CALL": StopReason.ERROR,
    "UNEXPECTED_TOOL_CALL": StopReason.ERROR,
    "TOO_MANY_TOOL_CALLS": StopReason.ERROR,
    "NO_IMAGE": StopReason.ERROR,
    "IMAGE_OTHER": StopReason.ERROR,
    "MISSING_THOUGHT_SIGNATURE": StopReason.ERROR,
    "PUP_LIMITED_DISABLED": StopReason.ERROR,
    "MALFORMED_RESPONSE": StopReason.ERROR,
}
_EMPTY: Final = frozenset({"text", "thought", SIGNATURE})
"""Keys of a text part: its text has been written, and the signature is written by itself."""


class _Writer(StreamWriter):
    name = PROTOCOL
    reasons = _ENDS

    def __init__(self, endpoint: Endpoint, options: Options | None) -> None:
        super().__init__(endpoint, options)
        self._beside: Wire = {}

    def start(self, event: StartEvent, first: Block) -> None:
        self._beside = {"modelVersion": event.model or self.endpoint.model.id, **first}
        if event.id is not None:
            self._beside["responseId"] = event.id

    def _part(self, part: Block) -> None:
        content = {"role": "model", "parts": [part]}
        self.frames.append({"candidates": [{"content": content, "index": 0}], **self._beside})

    def frame_maker(self, index: int, kind: str) -> FrameMaker | None:  # noqa: ARG002 - parts have no index here
        beside = self._beside
        match kind:
            case "text":
                return lambda text: {
                    "candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "index": 0}],
                    **beside,
                }
            case "thinking":
                return lambda text: {
                    "candidates": [
                        {"content": {"role": "model", "parts": [{"text": text, "thought": True}]}, "index": 0}
                    ],
                    **beside,
                }
            case _:
                return None

    def _whole(self, content: AssistantContent) -> Wire:
        (part,) = encode_assistant_parts((content,), self.endpoint, {})
        return part

    def add_text(self, index: int, text: str) -> None:  # noqa: ARG002 - parts have no index here
        self._part({"text": text})

    def close_text(self, index: int, content: TextContent) -> None:  # noqa: ARG002 - the same
        if content.text_signature is not None or content.extra is not None:
            self._close(self._whole(content))

    def add_thinking(self, index: int, text: str) -> None:  # noqa: ARG002 - the same
        self._part({"text": text, "thought": True})

    def close_thinking(self, index: int, content: ThinkingContent) -> None:  # noqa: ARG002 - the same
        if content.thinking_signature is not None or content.extra is not None:
            self._close({**self._whole(content), "thought": True})

    def _close(self, part: Wire) -> None:
        """Write what a part has in addition to its text, on an empty text."""
        wire = read_keys(part)
        if SIGNATURE in wire or rest_of(wire, _EMPTY):
            self._part({**part, "text": ""})

    def close_call(self, index: int, call: ToolCall) -> None:  # noqa: ARG002 - the same
        self._part(self._whole(call))

    def add_native(self, index: int, content: NativeContent) -> None:  # noqa: ARG002 - the same
        self._part(self._whole(content))

    def finish(self, message: AssistantMessage, *, refused: bool) -> None:
        whole = encode_response(message, self.endpoint)
        given = whole.get("candidates")
        candidates = [object_of(entry) for entry in cast("list[object]", given)] if isinstance(given, list) else []
        if candidates:
            first = dict(candidates[0])
            content = {**object_of(first.get("content")), "parts": [{"text": ""}]}
            first["content"] = {"role": "model", **content}
            if refused and first.get("finishReason") == "OTHER":
                first["finishReason"] = "SAFETY"
            whole["candidates"] = [first, *candidates[1:]]
        self.frames.append({**self._beside, **whole, **rest_of(self._beside, frozenset({"modelVersion"}))})

    def heartbeat(self) -> None:
        self.frames.append({"candidates": []})

    def fail(self, fault: Fault) -> None:
        self.frames.append(encode_error(fault).body)


stream_encoder: MakeEncoder = encoder_of(_Writer)


def _lists_joined(before: Block, after: Block) -> Wire:
    """Return the fields of both objects, lists joined."""
    joined = {key: [*list_of(before.get(key)), *list_of(value)] for key, value in after.items() if is_list(value)}
    return {**before, **after, **joined}
