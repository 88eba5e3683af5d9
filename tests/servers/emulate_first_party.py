"""Wire formats of Anthropic, Google and Amazon.

Facts this file rests on:
- Anthropic: blocks open, grow and stop one after the other; the signature comes last; the reason to stop and the counts
  stand in `message_delta`.                                                          (anthropic 2.8.0, read 2026-11-15)
- Google: each chunk is a whole reply with some more parts; a call comes whole, with the signature of what led to it;
  counts come with every chunk; there is no reason of its own for a call.          (google-genai 3.1.0, read 2026-11-15)
- Bedrock: text and reasoning have no start of their own; errors in mid-stream are exceptions; the kind of an error
  stands in a header.                                                                (botocore 1.44.0, read 2026-11-15)
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from servers.emulate_replies import ARGUMENTS, BUSY, PIECES, SIGNATURE, THINKING, TOOL, EmulatedReply, Frame, Wire


def anthropic_messages(words: Sequence[str]) -> EmulatedReply:
    """Encode the reply as content blocks."""

    def typed(name: str, **data: object) -> Frame:
        return name, {"type": name, **data}

    def block(index: int, start: Wire, deltas: Iterable[Wire]) -> list[Frame]:
        return [
            typed("content_block_start", index=index, content_block=start),
            *(typed("content_block_delta", index=index, delta=delta) for delta in deltas),
            typed("content_block_stop", index=index),
        ]

    thinking: list[Wire] = [{"type": "thinking_delta", "thinking": piece} for piece in THINKING]
    signed: Wire = {"type": "signature_delta", "signature": SIGNATURE}
    call: Wire = {"type": "tool_use", "id": "toolu_01A", "name": TOOL}
    usage = {"input_tokens": 25, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 100}
    head: Wire = {"id": "msg_01A", "type": "message", "role": "assistant", "model": "claude-sonnet-5"}
    begun: Wire = {**head, "content": [], "stop_reason": None, "stop_sequence": None}
    ended: Wire = {"stop_reason": "tool_use", "stop_sequence": None}
    content: list[Wire] = [
        {"type": "thinking", "thinking": "".join(THINKING), "signature": SIGNATURE},
        {"type": "text", "text": "".join(words)},
        {**call, "input": ARGUMENTS},
    ]
    error: Wire = {"type": "rate_limit_error", "message": BUSY}
    return EmulatedReply(
        words=[
            typed("message_start", message={**begun, "usage": {**usage, "output_tokens": 1}}),
            typed("ping"),
            *block(0, {"type": "thinking", "thinking": "", "signature": ""}, [*thinking, signed]),
            *block(1, {"type": "text", "text": ""}, ({"type": "text_delta", "text": word} for word in words)),
        ],
        call=[
            *block(2, {**call, "input": {}}, ({"type": "input_json_delta", "partial_json": piece} for piece in PIECES)),
            typed("message_delta", delta=ended, usage={"output_tokens": 60}),
            typed("message_stop"),
        ],
        whole={**head, **ended, "content": content, "usage": {**usage, "output_tokens": 60}},
        failing=typed("error", error={"type": "overloaded_error", "message": "Overloaded"}),
        error={"type": "error", "error": error, "request_id": "req_01A"},
    )


def google_genai(words: Sequence[str]) -> EmulatedReply:
    """Encode the reply as parts."""
    usage: Wire = {
        "promptTokenCount": 125,
        "candidatesTokenCount": 48,
        "totalTokenCount": 185,
        "cachedContentTokenCount": 100,
        "thoughtsTokenCount": 12,
    }
    head: Wire = {"modelVersion": "gemini-3-pro", "responseId": "r-1"}
    call: Wire = {"functionCall": {"id": "call-1", "name": TOOL, "args": ARGUMENTS}, "thoughtSignature": SIGNATURE}

    def reply(parts: list[Wire], **ending: object) -> Wire:
        candidate: Wire = {"content": {"role": "model", "parts": parts}, "index": 0, **ending}
        return {"candidates": [candidate], "usageMetadata": usage, **head}

    parts: list[Wire] = [{"text": "".join(THINKING), "thought": True}, {"text": "".join(words)}, call]
    exhausted: Wire = {"code": 429, "message": BUSY, "status": "RESOURCE_EXHAUSTED"}
    wait: Wire = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s"}
    return EmulatedReply(
        words=[
            *(("", reply([{"text": piece, "thought": True}])) for piece in THINKING),
            *(("", reply([{"text": word}])) for word in words),
        ],
        call=[("", reply([call])), ("", reply([{"text": ""}], finishReason="STOP"))],
        whole=reply(parts, finishReason="STOP"),
        failing=("", {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}),
        error={"error": {**exhausted, "details": [wait]}},
        error_headers={},
    )


def google_interactions(words: Sequence[str]) -> EmulatedReply:
    """Encode the reply as steps."""
    usage: Wire = {
        "total_input_tokens": 125,
        "total_output_tokens": 48,
        "total_thought_tokens": 12,
        "total_cached_tokens": 100,
        "total_tool_use_tokens": 0,
        "total_tokens": 185,
    }
    head: Wire = {"id": "v1-1", "model": "gemini-3-pro"}
    call: Wire = {"type": "function_call", "id": "call-1", "name": TOOL}

    def step(index: int, start: Wire, deltas: Iterable[Wire]) -> list[Frame]:
        grown: list[Wire] = [{"event_type": "step.delta", "index": index, "delta": delta} for delta in deltas]
        begun: Wire = {"event_type": "step.start", "index": index, "step": start}
        return [("", event) for event in (begun, *grown, {"event_type": "step.stop", "index": index})]

    summaries: list[Wire] = [
        {"type": "thought_summary", "content": {"type": "text", "text": piece}} for piece in THINKING
    ]
    pieces = json.dumps(ARGUMENTS)
    arguments: list[Wire] = [{"type": "arguments_delta", "arguments": part} for part in (pieces[:7], pieces[7:])]
    ended: Wire = {**head, "status": "requires_action", "usage": usage}
    return EmulatedReply(
        words=[
            ("", {"event_type": "interaction.created", "interaction": {**head, "status": "in_progress"}}),
            *step(0, {"type": "thought"}, [*summaries, {"type": "thought_signature", "signature": SIGNATURE}]),
            *step(1, {"type": "model_output"}, [{"type": "text", "text": word} for word in words]),
        ],
        call=[
            *step(2, {**call, "arguments": {}}, arguments),
            ("", {"event_type": "interaction.completed", "interaction": ended}),
            ("", "[DONE]"),
        ],
        whole={
            **ended,
            "steps": [
                {"type": "thought", "signature": SIGNATURE, "summary": [{"type": "text", "text": "".join(THINKING)}]},
                {"type": "model_output", "content": [{"type": "text", "text": "".join(words)}]},
                {**call, "arguments": ARGUMENTS},
            ],
        },
        failing=("", {"event_type": "error", "error": {"code": "unavailable", "message": "The model is overloaded."}}),
        error={"error": {"code": "rate_limit_exceeded", "message": BUSY}},
        error_headers={"retry-after": "1"},
    )


def bedrock_converse(words: Sequence[str]) -> EmulatedReply:
    """Encode the reply as content blocks without a type field."""

    def block(index: int, deltas: Iterable[Wire]) -> list[Frame]:
        grown: list[Frame] = [("contentBlockDelta", {"contentBlockIndex": index, "delta": delta}) for delta in deltas]
        return [*grown, ("contentBlockStop", {"contentBlockIndex": index})]

    thinking: list[Wire] = [{"reasoningContent": {"text": piece}} for piece in THINKING]
    signed: Wire = {"reasoningContent": {"signature": SIGNATURE}}
    call: Wire = {"toolUseId": "tooluse_1", "name": TOOL}
    usage: Wire = {
        "inputTokens": 25,
        "outputTokens": 60,
        "totalTokens": 185,
        "cacheReadInputTokens": 100,
        "cacheWriteInputTokens": 0,
    }
    content: list[Wire] = [
        {"reasoningContent": {"reasoningText": {"text": "".join(THINKING), "signature": SIGNATURE}}},
        {"text": "".join(words)},
        {"toolUse": {**call, "input": ARGUMENTS}},
    ]
    return EmulatedReply(
        words=[
            ("messageStart", {"role": "assistant"}),
            *block(0, [*thinking, signed]),
            *block(1, ({"text": word} for word in words)),
        ],
        call=[
            ("contentBlockStart", {"contentBlockIndex": 2, "start": {"toolUse": call}}),
            *block(2, ({"toolUse": {"input": piece}} for piece in PIECES)),
            ("messageStop", {"stopReason": "tool_use"}),
            ("metadata", {"usage": usage, "metrics": {"latencyMs": 12}}),
        ],
        whole={
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": "tool_use",
            "usage": usage,
            "metrics": {"latencyMs": 12},
        },
        failing=("modelStreamErrorException", "The model ended the stream."),
        error={"message": BUSY},
        error_headers={"x-amzn-errortype": "ThrottlingException", "x-amzn-requestid": "req-1"},
    )
