"""One short reply in the words of each wire: whole, streamed, and as an error; written by hand after their documents.

Every one of them says `TEXT`, which hold characters of two, three and four bytes: cut anywhere, something breaks that
should not.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

from segue.models.model import Model
from servers.script import Reply

PIECES = ("Grüße, ", "wörld → ", "🌍!")
TEXT = "".join(PIECES)


@dataclass(frozen=True)
class Wire:
    """What a server of one protocol says; `frames` are the bytes of one event each."""

    protocol: str
    provider: str
    whole: Mapping[str, object]
    frames: Sequence[bytes]
    content_type: str
    error_frame: bytes
    """Something went wrong in the middle of a stream: the provider is overloaded."""

    def model(self, url: str, **fields: object) -> Model:
        return Model("a-model", self.provider, self.protocol, base_url=url, **fields)  # pyright: ignore[reportArgumentType]

    @property
    def body(self) -> bytes:
        return b"".join(self.frames)

    def stream(self, *, split: int = 0) -> Reply:
        """Stream the reply: an event at a time, or in pieces of `split` bytes."""
        if split:
            return Reply.stream(self.body, self.content_type, split=split)
        return Reply(headers={"content-type": self.content_type}, chunks=tuple(self.frames))

    def answer(self) -> Reply:
        return Reply.json(self.whole)


def _sse(*frames: object, done: bool = False) -> tuple[bytes, ...]:
    reported = [b"data: " + json.dumps(frame, ensure_ascii=False).encode() + b"\n\n" for frame in frames]
    return (*reported, b"data: [DONE]\n\n") if done else tuple(reported)


def _named(*frames: Mapping[str, object]) -> tuple[bytes, ...]:
    return tuple(
        b"event: " + str(frame["type"]).encode() + b"\n" + line
        for frame, line in zip(frames, _sse(*frames), strict=True)
    )


def _lines(*frames: object) -> tuple[bytes, ...]:
    return tuple(json.dumps(frame, ensure_ascii=False).encode() + b"\n" for frame in frames)


def aws_message(kind: str, payload: object, *, message_type: str = "event") -> bytes:
    """Frame one message of an AWS event stream."""
    name = ":event-type" if message_type == "event" else ":exception-type"
    headers = b"".join(
        bytes([len(key)]) + key.encode() + b"\x07" + struct.pack("!H", len(value)) + value.encode()
        for key, value in ((name, kind), (":content-type", "application/json"), (":message-type", message_type))
    )
    body = json.dumps(payload, ensure_ascii=False).encode()
    prelude = struct.pack("!II", 16 + len(headers) + len(body), len(headers))
    message = prelude + struct.pack("!I", crc32(prelude)) + headers + body
    return message + struct.pack("!I", crc32(message))


def _anthropic() -> Wire:
    begun = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "a-model",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 5, "output_tokens": 1},
    }
    deltas = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}} for piece in PIECES
    ]
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    usage = {"input_tokens": 5, "output_tokens": 7}
    return Wire(
        protocol="anthropic-messages",
        provider="anthropic",
        whole={**begun, **ended, "content": [{"type": "text", "text": TEXT}], "usage": usage},
        frames=_named(
            {"type": "message_start", "message": begun},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "ping"},
            *deltas,
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": ended, "usage": usage},
            {"type": "message_stop"},
        ),
        content_type="text/event-stream; charset=utf-8",
        error_frame=_named({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})[0],
    )


def _chat(protocol: str, provider: str) -> Wire:
    def chunk(delta: object, reason: str | None = None, **more: object) -> dict[str, object]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {
            "id": "c1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "a-model",
            "choices": [choice],
            **more,
        }

    usage = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
    message = {"role": "assistant", "content": TEXT}
    return Wire(
        protocol=protocol,
        provider=provider,
        whole={
            "id": "c1",
            "object": "chat.completion",
            "created": 1,
            "model": "a-model",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": usage,
        },
        frames=_sse(
            chunk({"role": "assistant", "content": ""}),
            *(chunk({"content": piece}) for piece in PIECES),
            chunk({"content": ""}, "stop", usage=usage),
            done=True,
        ),
        content_type="text/event-stream",
        error_frame=_sse({"error": {"message": "The server is overloaded", "type": "server_error", "code": 503}})[0],
    )


def _responses() -> Wire:
    part = {"type": "output_text", "text": TEXT, "annotations": []}
    item = {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": [part]}
    base = {"id": "resp_1", "object": "response", "created_at": 1, "model": "a-model", "error": None}
    begun = {**base, "status": "in_progress", "output": [], "usage": None}
    usage = {
        "input_tokens": 5,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 12,
    }
    whole = {**base, "status": "completed", "output": [item], "usage": usage}
    place = {"output_index": 0, "item_id": "msg_1", "content_index": 0}
    opened = {**item, "status": "in_progress", "content": []}
    return Wire(
        protocol="openai-responses",
        provider="openai",
        whole=whole,
        frames=_named(
            {"type": "response.created", "response": begun},
            {"type": "response.output_item.added", "output_index": 0, "item": opened},
            {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
            *({"type": "response.output_text.delta", **place, "delta": piece} for piece in PIECES),
            {"type": "response.output_text.done", **place, "text": TEXT},
            {"type": "response.content_part.done", **place, "part": part},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": whole},
        ),
        content_type="text/event-stream; charset=utf-8",
        error_frame=_named(
            {"type": "error", "code": "server_error", "message": "The server is overloaded", "param": None}
        )[0],
    )


def _google() -> Wire:
    def part(text: str, **more: object) -> dict[str, object]:
        candidate = {"content": {"parts": [{"text": text}], "role": "model"}, "index": 0, **more}
        usage = {"promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 12}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "a-model", "responseId": "r1"}

    return Wire(
        protocol="google-genai",
        provider="google",
        whole=part(TEXT, finishReason="STOP"),
        frames=_sse(*(part(piece) for piece in PIECES[:-1]), part(PIECES[-1], finishReason="STOP")),
        content_type="text/event-stream",
        error_frame=_sse({"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}})[0],
    )


def _bedrock() -> Wire:
    usage = {"inputTokens": 5, "outputTokens": 7, "totalTokens": 12}
    message = {"role": "assistant", "content": [{"text": TEXT}]}
    return Wire(
        protocol="bedrock-converse",
        provider="amazon-bedrock",
        whole={
            "output": {"message": message},
            "stopReason": "end_turn",
            "usage": usage,
            "metrics": {"latencyMs": 1},
        },
        frames=(
            aws_message("messageStart", {"role": "assistant"}),
            *(aws_message("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": piece}}) for piece in PIECES),
            aws_message("contentBlockStop", {"contentBlockIndex": 0}),
            aws_message("messageStop", {"stopReason": "end_turn"}),
            aws_message("metadata", {"usage": usage, "metrics": {"latencyMs": 1}}),
        ),
        content_type="application/vnd.amazon.eventstream",
        error_frame=aws_message(
            "serviceUnavailableException", {"message": "The service is overloaded"}, message_type="exception"
        ),
    )


def _ollama() -> Wire:
    def line(content: str, **more: object) -> dict[str, object]:
        message = {"role": "assistant", "content": content}
        return {
            "model": "a-model",
            "created_at": "2026-11-15T00:00:00Z",
            "message": message,
            "done": False,
            **more,
        }

    counts = {"done_reason": "stop", "done": True, "prompt_eval_count": 5, "eval_count": 7, "total_duration": 1}
    return Wire(
        protocol="ollama-chat",
        provider="ollama",
        whole=line(TEXT, **counts),
        frames=_lines(*(line(piece) for piece in PIECES), line("", **counts)),
        content_type="application/x-ndjson",
        error_frame=_lines({"error": "the server is overloaded, please try again later"})[0],
    )


def _cohere() -> Wire:
    def delta(kind: str, content: object, **more: object) -> dict[str, object]:
        return {"type": kind, "index": 0, "delta": {"message": {"content": content}}, **more}

    usage = {"billed_units": {"input_tokens": 5, "output_tokens": 7}, "tokens": {"input_tokens": 5, "output_tokens": 7}}
    message = {"role": "assistant", "content": [{"type": "text", "text": TEXT}]}
    begun = {"message": {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}}
    return Wire(
        protocol="cohere-chat",
        provider="cohere",
        whole={"id": "c1", "finish_reason": "COMPLETE", "message": message, "usage": usage},
        frames=_named(
            {"type": "message-start", "id": "c1", "delta": begun},
            delta("content-start", {"type": "text", "text": ""}),
            *(delta("content-delta", {"text": piece}) for piece in PIECES),
            {"type": "content-end", "index": 0},
            {"type": "message-end", "id": "c1", "delta": {"finish_reason": "COMPLETE", "usage": usage}},
        ),
        content_type="text/event-stream",
        error_frame=_named(
            {"type": "message-end", "id": "c1", "delta": {"finish_reason": "ERROR", "error": "overloaded"}}
        )[0],
    )


WIRES: dict[str, Wire] = {
    wire.protocol: wire
    for wire in (
        _anthropic(),
        _chat("openai-chat", "openai"),
        _responses(),
        _google(),
        _bedrock(),
        _chat("mistral-chat", "mistral"),
        _ollama(),
        _cohere(),
    )
}
"""Every wire that has a server; those that have none are written and read by programs on this machine."""
