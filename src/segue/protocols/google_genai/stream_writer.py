"""Write a streamed generateContent reply.

Facts this file rests on:
- Every frame is a reply with the next parts; the last one has the finish reason and the counts; there is no end mark.
                                                          (google-genai 3.1.0, read 2026-11-15; recorded traffic)
- A signature may stand on an empty text behind the text that it belongs to.     (Google documentation: signatures)
- The heartbeat is a reply without candidates. An SSE comment breaks google-genai.     (run against a probe, 2026-11)

A call waits for its end: the Gemini API sends calls whole, and clients that do not enable `partialArgs` read them so.
Nothing else waits. Adjacent texts are one text to clients, whatever parts they came from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from segue.conversation.content import AssistantContent, NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Options
from segue.conversation.events import StartEvent
from segue.conversation.messages import AssistantMessage, StopReason
from segue.protocols.google_genai.content import SIGNATURE, encode_assistant_parts
from segue.protocols.google_genai.errors import encode_error
from segue.protocols.google_genai.keys import read_keys
from segue.protocols.google_genai.response import STOP_REASONS, encode_response
from segue.protocols.google_genai.rules import PROTOCOL
from segue.protocols.kit.codec import Endpoint, Fault
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.stream_writing import FrameMaker, MakeEncoder, StreamWriter, encoder_of, rest_of

_ENDS: Final[Mapping[str, StopReason]] = {
    **STOP_REASONS,
    # google-genai 3.1.0: FinishReason, read 2026-11-15; those of a reply that was withheld are known to the encoder
    "OTHER": StopReason.ERROR,
    "MALFORMED_FUNCTION_CALL": StopReason.ERROR,
    "UNEXPECTED_TOOL_CALL": StopReason.ERROR,
    "TOO_MANY_TOOL_CALLS": StopReason.ERROR,
    "NO_IMAGE": StopReason.ERROR,
    "IMAGE_OTHER": StopReason.ERROR,
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
        """Write what a part has besides its text, on an empty text."""
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
