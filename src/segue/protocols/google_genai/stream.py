"""A streamed generateContent reply.

Facts this file rests on:
- Every frame is a reply of its own whose parts come after those before; the last one says why it ended, often with text
  or an empty text beside it. There is no end mark, and counts replace the earlier ones.
                                             (google-genai 3.1.0, read 2026-11-15; recorded traffic, 2026-11)
- Texts and thoughts come in pieces, calls whole, unless arguments are streamed at Vertex (see `partial`).
- A signature may come on an empty text behind the words. A part with a signature is not to be merged with another, or
  the signature comes back on something else than it came on.  (Google documentation: thought signatures, 2026-11-15)
- An error may come in mid-stream: a frame with `error`.                                       (google-genai 3.1.0)

Pieces of one kind that carry nothing else are one text; any other part is read as in a whole reply. An empty text
without a seal says nothing. Without a finish reason the reply was not finished, whatever it had said before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from segue.conversation.content import AssistantContent
from segue.conversation.messages import Diagnostic
from segue.protocols.google_genai.content import CALL, ID_MADE, SIGNATURE, decode_assistant_part
from segue.protocols.google_genai.native import fallback_of
from segue.protocols.google_genai.response import (
    Original,
    block_reason,
    decode_usage,
    error_text,
    finish_reason,
    finish_response,
    id_prefix,
)
from segue.protocols.google_genai.rules import PROTOCOL
from segue.protocols.google_genai.stream_calls import PartialCall
from segue.protocols.google_genai.verbatim import Block, Wire, object_of, open_object
from segue.protocols.kit.assembly import Assembly, Part
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import VERBATIM, of_reply, text_of
from segue.protocols.kit.streaming import StreamDecoder

_UNFINISHED: Final = "The stream ended before the arguments of the call did; what had arrived is kept."


def stream_decoder(endpoint: Endpoint, tool_names: Mapping[str, str]) -> StreamDecoder:
    """Begin to read a stream."""
    return StreamDecoder(_Reader(endpoint), Assembly(endpoint.model, PROTOCOL, tool_names))


class _Reader:
    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._body: Wire = {}  # the reply as the wire would have sent it whole, without its candidates
        self._candidate: Wire = {}  # the first candidate, its content without parts
        self._others: dict[int, Wire] = {}
        self._verbatims: tuple[Wire, Wire] = ({}, {})
        self._text: Part | None = None  # the text or the thought that may still grow
        self._partial: PartialCall | None = None
        self._calls = 0

    def read(self, frame: Block, out: Assembly) -> None:
        candidates: object = None
        for key, value in frame.items():
            if key == "candidates":
                candidates = value
            elif key == "error" and value:
                self._fail(frame, out)
                return
            elif value is None or "_" in key:
                self._note(frame)
            elif value or key not in self._body:
                self._body[key] = value
        if not out.started:
            out.start()
            self._settle(out)
        for at, candidate in enumerate(_list(candidates)):
            if isinstance(candidate, dict):
                self._take(cast("Wire", candidate), at, out)

    def end(self, out: Assembly) -> None:
        """Make the whole of what arrived; without a reason the assembly then says that the reply did not end."""
        if out.final is not None:
            return
        self._close(out)
        if self._partial is not None:
            out.diagnostics.append(Diagnostic(type="tool_arguments_recovered", message=_UNFINISHED))
            self._end_partial(out)
        pieces = tuple(part.closed for part in out.parts if part.closed is not None)
        others = [self._others[index] for index in sorted(self._others)]
        whole = finish_response(self._body, self._candidate, pieces, self._endpoint, Original(*self._verbatims, others))
        self._settle(out)
        out.raw_stop_reason, out.extra = whole.raw_stop_reason, whole.extra
        if whole.raw_stop_reason is not None:
            out.stop_reason, out.error_message = whole.stop_reason, whole.error_message
        out.finish()

    # -- candidates ----------------------------------------------------------------------------------------------------

    def _note(self, frame: Block) -> None:
        """Take in what a frame in the other spelling says of the whole."""
        wire, verbatim = open_object(frame)
        self._verbatims[0].update(verbatim)
        self._body.update((key, value) for key, value in wire.items() if key != "candidates")

    def _take(self, candidate: Wire, at: int, out: Assembly) -> None:
        index = candidate.get("index", at)
        if index != 0 and isinstance(index, int):
            self._take_other(candidate, index)
            return
        content: object = None
        for key, value in candidate.items():
            if key == "content":
                content = value
            elif value is None or "_" in key:
                wire, verbatim = open_object(candidate)
                self._verbatims[1].update(verbatim)
                self._candidate.update((name, given) for name, given in wire.items() if name != "content")
            elif value or key not in self._candidate:
                self._candidate[key] = value
        if not isinstance(content, dict):
            return
        turn = cast("Wire", content)
        if "content" not in self._candidate:
            self._candidate["content"] = {key: value for key, value in turn.items() if key != "parts"}
        for part in _list(turn.get("parts")):
            if isinstance(part, dict):
                self._part(cast("Wire", part), out)

    def _take_other(self, candidate: Wire, index: int) -> None:
        """Put another candidate together as it came: it is kept, not read."""
        known = self._others.setdefault(index, {})
        content = known.get("content")
        known.update(candidate)
        if isinstance(content, dict):
            before, after = object_of(cast("Wire", content)), object_of(candidate.get("content"))
            known["content"] = {**before, **after, "parts": [*_list(before.get("parts")), *_list(after.get("parts"))]}

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _part(self, part: Wire, out: Assembly) -> None:
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
        wire, _ = open_object(part)
        call = object_of(wire.get(CALL))
        if call and self._is_partial(call):
            self._grow_call(call, wire, out)
            return
        if self._partial is not None:
            if CALL in wire:  # an empty call: the end of the one that was streamed
                self._grow_call(call, wire, out)
                return
            self._end_partial(out)
        self._add(decode_assistant_part(part, self._new_id(), {}), part, out)

    def _grow(self, text: str, out: Assembly, *, is_thought: bool) -> None:
        open_part = self._text
        if open_part is None or (open_part.kind == "thinking") is not is_thought:
            self._close(out)
            open_part = self._text = out.open_thinking() if is_thought else out.open_text()
        out.grow(open_part, text)

    def _close(self, out: Assembly) -> None:
        if self._text is not None:
            out.close(self._text)
            self._text = None

    def _new_id(self) -> str:
        return f"{id_prefix(text_of(self._body.get('responseId')))}{self._calls}"

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
            case "native":
                part = out.add_native(block, fallback_of(block))
        part.extra = content.extra
        out.close(part)

    # -- calls in pieces -----------------------------------------------------------------------------------------------

    def _is_partial(self, call: Block) -> bool:
        inside, _ = open_object(call)
        return self._partial is not None or "partialArgs" in inside or inside.get("willContinue") is True

    def _grow_call(self, call: Block, wire: Block, out: Assembly) -> None:
        inside, _ = open_object(call)
        name, call_id = text_of(inside.get("name")), text_of(inside.get("id"))
        if self._partial is not None and name:
            self._end_partial(out)
        if self._partial is None:
            part = out.open_call(call_id or self._new_id(), name or "")
            self._calls += 1
            if not call_id:
                part.extra = {PROTOCOL: {VERBATIM: {ID_MADE: True}}}
            self._partial = PartialCall(part)
        partial = self._partial
        wire_signature = wire.get(SIGNATURE)
        if isinstance(wire_signature, str) and wire_signature:
            partial.part.signature = wire_signature
        partial.merge(object_of(inside.get("args")))
        for piece in _list(inside.get("partialArgs")):
            partial.add(piece)
        if inside.get("willContinue") is not True:
            self._end_partial(out)

    def _end_partial(self, out: Assembly) -> None:
        if self._partial is not None:
            self._partial.finish()
            out.close(self._partial.part)
            self._partial = None

    # -- the whole -----------------------------------------------------------------------------------------------------

    def _settle(self, out: Assembly) -> None:
        """Tell the assembly what is known so far of the message as a whole."""
        out.response_id = text_of(self._body.get("responseId"))
        out.response_model = text_of(self._body.get("modelVersion"))
        out.usage = decode_usage(self._body.get("usageMetadata"), self._endpoint)
        out.raw_stop_reason = finish_reason(self._candidate) or block_reason(self._body)

    def _fail(self, frame: Block, out: Assembly) -> None:
        self._close(out)
        self._end_partial(out)
        self._settle(out)
        out.extra = of_reply(PROTOCOL, {"body": {"error": frame.get("error")}})
        out.fail(error_text(frame))


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []
