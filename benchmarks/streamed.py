"""Streamed replies in the formats of five providers, as bytes: the same on every machine.

Facts this file relies on (formats only; texts and numbers are made up):
- Anthropic names its events, opens and closes every block, and sends pings.               (anthropic 2.8.0)
- Every chat chunk repeats the id and model; the end is `[DONE]`.    (openai 3.49.0; DeepSeek documentation, 2026-11)
- Responses names and numbers its events, pads its deltas, repeats every finished item, and at the end the whole reply.
                                                                                              (openai 3.49.0)
- A chunk of Gemini is a complete reply with the counts so far; calls are not split.        (google-genai 3.1.0)
- Bedrock sends AWS messages: calls have a start event, text and reasoning begin with their first delta, every event is
  padded, and the counts come last.                                            (botocore 1.44.0 service model)
- Deltas are one or a few tokens: some four to twenty characters, ten times as many from Gemini.    (observed)
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from struct import pack
from typing import Final
from zlib import crc32

import orjson
from replies import (
    Wire,
    anthropic_block,
    anthropic_usage,
    arguments_text,
    chat_usage,
    google_parts,
    google_usage,
    responses_frame,
    responses_item,
    write_reply,
)
from transcripts import make_transcript

from segue import AssistantMessage, Context, Model, StopReason, TextContent, ToolCall

_NAMED: Final = frozenset({"anthropic-messages", "openai-responses"})
_BEDROCK: Final = "bedrock-converse"
_PING_AFTER: Final = 2


@dataclass(frozen=True)
class Stream:
    """One streamed reply: `pieces` are the bytes of each event, `payloads` their JSON."""

    message: AssistantMessage
    reply: Wire
    pieces: tuple[bytes, ...]
    payloads: tuple[bytes, ...]

    @property
    def whole(self) -> bytes:
        """The stream in one piece."""
        return b"".join(self.pieces)


def mixed_stream(model: Model, *, steps: int = 12) -> Stream:
    """Stream a long reply with alternating thinking, text and calls, like an agent's."""
    context = make_transcript(40 * steps, model=model)
    asked = [message for message in context.messages if message.role == "assistant" and message.tool_calls()][:steps]
    content = tuple(piece for message in asked for piece in message.content)
    if model.protocol == "openai-chat":  # one reasoning, one text, then the calls: it has no other order
        content = tuple(sorted(content, key=lambda piece: ("thinking", "text", "toolCall").index(piece.kind)))
    return _stream(_reply_of(asked[0], content), context)


def argument_stream(model: Model, size: int) -> Stream:
    """Stream one call whose argument is a file of about `size` characters."""
    context = make_transcript(40, model=model)
    first = next(message for message in context.messages if message.role == "assistant")
    shown = [message for message in context.messages if message.role == "toolResult"]
    text = "\n".join(piece.text for message in shown for piece in message.content if piece.kind == "text")
    text = (text * (size // len(text) + 1))[:size]
    call = ToolCall(id="call_" + "a" * 24, name="write_file", arguments={"path": "src/app/handlers.py", "text": text})
    return _stream(_reply_of(first, (TextContent(text="I write the file now."), call)), context)


def _reply_of(message: AssistantMessage, content: tuple[object, ...]) -> AssistantMessage:
    return AssistantMessage(
        content=content,  # pyright: ignore[reportArgumentType]  # pieces of other assistant messages
        protocol=message.protocol,
        provider=message.provider,
        model=message.model,
        response_id=message.response_id,
        usage=message.usage,
        stop_reason=StopReason.TOOL_USE,
        timestamp=message.timestamp,
    )


def _stream(message: AssistantMessage, context: Context) -> Stream:
    protocol = message.protocol
    payloads: list[bytes] = []
    pieces: list[bytes] = []
    for frame in _FRAMES[protocol](message, context):
        if protocol == _BEDROCK:
            ((kind, fields),) = frame.items()
            payloads.append(orjson.dumps(fields))
            pieces.append(_aws_message(kind, payloads[-1]))
            continue
        payloads.append(orjson.dumps(frame))
        name = f"event: {frame['type']}\n".encode() if protocol in _NAMED else b""
        pieces.append(name + b"data: " + payloads[-1] + b"\n\n")
    if protocol == "openai-chat":
        pieces.append(b"data: [DONE]\n\n")
    return Stream(message, write_reply(message, context), tuple(pieces), tuple(payloads))


def _deltas(text: str, seed: int, longer: int = 1) -> Iterator[str]:
    rng = random.Random(seed)  # noqa: S311  # repeatable, not secret
    place = 0
    while place < len(text):
        size = rng.randint(4, 20) * longer
        yield text[place : place + size]
        place += size


# -- anthropic-messages ------------------------------------------------------------------------------------------------


def _anthropic_frames(message: AssistantMessage, context: Context) -> Iterator[Wire]:
    whole = write_reply(message, context)
    usage = anthropic_usage(message)
    opened: Wire = {**whole, "content": list[object](), "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield {"type": "message_start", "message": opened}
    for index in range(len(message.content)):
        yield from _anthropic_block_frames(anthropic_block(message, index), index)
        if index == _PING_AFTER:
            yield {"type": "ping"}
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": usage}
    yield {"type": "message_stop"}


def _anthropic_block_frames(block: Wire, index: int) -> Iterator[Wire]:
    def delta(kind: str, field: str, text: str) -> Wire:
        return {"type": "content_block_delta", "index": index, "delta": {"type": kind, field: text}}

    match block["type"]:
        case "thinking":
            opened: Wire = {**block, "thinking": "", "signature": ""}
            deltas = [delta("thinking_delta", "thinking", text) for text in _deltas(str(block["thinking"]), index)]
            deltas.append(delta("signature_delta", "signature", str(block["signature"])))
        case "tool_use":
            opened = {**block, "input": {}}
            text = orjson.dumps(block["input"]).decode()
            deltas = [delta("input_json_delta", "partial_json", piece) for piece in ("", *_deltas(text, index))]
        case _:
            opened = {**block, "text": ""}
            deltas = [delta("text_delta", "text", text) for text in _deltas(str(block["text"]), index)]
    yield {"type": "content_block_start", "index": index, "content_block": opened}
    yield from deltas
    yield {"type": "content_block_stop", "index": index}


# -- openai-chat -------------------------------------------------------------------------------------------------------


def _chat_frames(message: AssistantMessage, _: Context) -> Iterator[Wire]:
    def chunk(delta: Wire, reason: str | None = None, usage: Wire | None = None) -> Wire:
        return {
            "id": message.response_id,
            "object": "chat.completion.chunk",
            "created": (message.timestamp or 0) // 1000,
            "model": message.model,
            "system_fingerprint": "fp_ffc7281d48_prod0820_fp8_kvcache",
            "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}],
            "usage": usage,
        }

    yield chunk({"role": "assistant", "content": None, "reasoning_content": ""})
    calls = count()
    for index, piece in enumerate(message.content):
        if piece.kind == "thinking":
            for text in _deltas(piece.thinking, index):
                yield chunk({"content": None, "reasoning_content": text})
        elif piece.kind == "text":
            for text in _deltas(piece.text, index):
                yield chunk({"content": text, "reasoning_content": None})
        elif piece.kind == "toolCall":
            place, function = next(calls), {"name": piece.name, "arguments": ""}
            yield chunk({"tool_calls": [{"index": place, "id": piece.id, "type": "function", "function": function}]})
            for text in _deltas(arguments_text(piece.arguments), index):
                yield chunk({"tool_calls": [{"index": place, "function": {"arguments": text}}]})
    yield chunk({"content": "", "reasoning_content": None}, "tool_calls", chat_usage(message))


# -- openai-responses --------------------------------------------------------------------------------------------------


def _responses_frames(message: AssistantMessage, context: Context) -> Iterator[Wire]:
    numbers = count()
    for frame in _responses_steps(message, context):
        yield {**frame, "sequence_number": next(numbers)}


def _responses_steps(message: AssistantMessage, context: Context) -> Iterator[Wire]:
    begun: Wire = {
        **responses_frame(message, context),
        "status": "in_progress",
        "output": list[object](),
        "usage": None,
    }
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, piece in enumerate(message.content):
        item = responses_item(message, index)
        place: Wire = {"output_index": index, "item_id": item["id"]}
        if piece.kind == "thinking":
            opened: Wire = {**item, "summary": list[object]()}
            steps = _summary_steps(piece.thinking, place, index)
        elif piece.kind == "toolCall":
            opened = {**item, "arguments": "", "status": "in_progress"}
            steps = _argument_steps(str(item["arguments"]), place, index)
        else:
            assert piece.kind == "text"
            opened = {**item, "content": list[object](), "status": "in_progress"}
            steps = _text_steps(piece.text, place, index)
        yield {"type": "response.output_item.added", "output_index": index, "item": opened}
        yield from steps
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": write_reply(message, context)}


def _padding(text: str) -> str:
    """Pad a delta, like OpenAI, so that its length does not reveal its text."""
    return "Q7xkWm2RzB9tLp4v"[: 16 - len(text) % 16]


def _summary_steps(text: str, place: Wire, seed: int) -> Iterator[Wire]:
    name, spot = "response.reasoning_summary", {**place, "summary_index": 0}
    yield {"type": f"{name}_part.added", **spot, "part": {"type": "summary_text", "text": ""}}
    for delta in _deltas(text, seed):
        yield {"type": f"{name}_text.delta", **spot, "delta": delta, "obfuscation": _padding(delta)}
    yield {"type": f"{name}_text.done", **spot, "text": text}
    yield {"type": f"{name}_part.done", **spot, "part": {"type": "summary_text", "text": text}}


def _argument_steps(text: str, place: Wire, seed: int) -> Iterator[Wire]:
    name = "response.function_call_arguments"
    for delta in _deltas(text, seed):
        yield {"type": f"{name}.delta", **place, "delta": delta, "obfuscation": _padding(delta)}
    yield {"type": f"{name}.done", **place, "arguments": text}


def _text_steps(text: str, place: Wire, seed: int) -> Iterator[Wire]:
    spot: Wire = {**place, "content_index": 0}
    bare: Wire = {"type": "output_text", "annotations": list[object](), "logprobs": list[object](), "text": ""}
    yield {"type": "response.content_part.added", **spot, "part": bare}
    for delta in _deltas(text, seed):
        words: Wire = {"delta": delta, "logprobs": list[object](), "obfuscation": _padding(delta)}
        yield {"type": "response.output_text.delta", **spot, **words}
    yield {"type": "response.output_text.done", **spot, "text": text, "logprobs": list[object]()}
    yield {"type": "response.content_part.done", **spot, "part": {**bare, "text": text}}


# -- google-genai ------------------------------------------------------------------------------------------------------


def _google_frames(message: AssistantMessage, _: Context) -> Iterator[Wire]:
    name = (message.response_id or "").removeprefix("msg_")

    def chunk(parts: list[Wire], reason: str | None = None) -> Wire:
        candidate: Wire = {"content": {"parts": parts, "role": "model"}, "index": 0}
        if reason is not None:
            candidate["finishReason"] = reason
        usage = google_usage(message)
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": message.model, "responseId": name}

    for index, part in enumerate(google_parts(message)):
        text = part.get("text")
        if isinstance(text, str) and "thoughtSignature" not in part:
            yield from (chunk([{**part, "text": delta}]) for delta in _deltas(text, index, longer=10))
        else:
            yield chunk([part])
    yield chunk([{"text": ""}], "STOP")


# -- bedrock-converse --------------------------------------------------------------------------------------------------


def _bedrock_frames(message: AssistantMessage, context: Context) -> Iterator[Wire]:
    whole = write_reply(message, context)
    for frame in _bedrock_steps(message, whole):
        ((kind, fields),) = frame.items()
        assert isinstance(fields, dict)
        yield {kind: {**fields, "p": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[: 4 + len(kind)]}}


def _bedrock_steps(message: AssistantMessage, whole: Wire) -> Iterator[Wire]:
    yield {"messageStart": {"role": "assistant"}}
    for index, piece in enumerate(message.content):

        def delta(content: Wire, index: int = index) -> Wire:
            return {"contentBlockDelta": {"contentBlockIndex": index, "delta": content}}

        if piece.kind == "thinking":
            yield from (delta({"reasoningContent": {"text": text}}) for text in _deltas(piece.thinking, index))
            yield delta({"reasoningContent": {"signature": piece.thinking_signature}})
        elif piece.kind == "toolCall":
            start = {"toolUse": {"toolUseId": piece.id, "name": piece.name}}
            yield {"contentBlockStart": {"contentBlockIndex": index, "start": start}}
            written = arguments_text(piece.arguments)
            yield from (delta({"toolUse": {"input": text}}) for text in _deltas(written, index))
        else:
            assert piece.kind == "text"
            yield from (delta({"text": text}) for text in _deltas(piece.text, index))
        yield {"contentBlockStop": {"contentBlockIndex": index}}
    yield {"messageStop": {"stopReason": whole["stopReason"]}}
    yield {"metadata": {"usage": whole["usage"], "metrics": whole["metrics"]}}


def _aws_message(kind: str, payload: bytes) -> bytes:
    """Frame one event the way AWS does."""
    fields = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(
        pack("!B", len(name)) + name.encode() + pack("!BH", 7, len(value)) + value.encode()
        for name, value in fields.items()
    )
    prelude = pack("!II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + pack("!I", crc32(prelude)) + headers + payload
    return message + pack("!I", crc32(message))


_FRAMES: Final[Mapping[str, Callable[[AssistantMessage, Context], Iterator[Wire]]]] = {
    "anthropic-messages": _anthropic_frames,
    "openai-chat": _chat_frames,
    "openai-responses": _responses_frames,
    "google-genai": _google_frames,
    "bedrock-converse": _bedrock_frames,
}
