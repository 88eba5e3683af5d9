"""Replies in the formats of five providers, from which histories are decoded.

An agent stores decoded replies, with the provider's signatures, item ids, token counts and other fields. So the
histories here are decoded from replies.

Facts this file relies on (formats only; texts and numbers are made up):
- Claude's thinking has a signature; its calls have an object.                     (anthropic 2.8.0: Message)
- DeepSeek's thinking is in `reasoning_content`; calls have their arguments as text.
                                                                        (DeepSeek documentation, 2026-11)
- A Responses reply is a list of items with ids, reasoning encrypted; around it, the whole request is repeated.
                                                                                    (openai 3.49.0: Response)
- Gemini's thoughts are parts marked `thought`; the signature of a turn is on its first call, or on its last text if it
  has no call. There is no stop reason for calls.            (Google documentation: thought signatures, 2026-11-15)
- Bedrock has Claude's thinking as `reasoningContent`, the signature beside the text, and calls with an object.
                                                                       (botocore 1.44.0 service model, 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import orjson
from msgspec.structs import replace
from transcripts import make_transcript

from segue import AssistantMessage, Context, Message, Model, StopReason
from segue.protocols.api import decode_response

Wire: TypeAlias = dict[str, object]


def make_history(length: int, model: Model, *, seed: int = 1) -> Context:
    """Write a conversation of `length` messages whose assistant turns are decoded from replies of the model."""
    context = make_transcript(length, model=model, seed=seed)
    messages = tuple(_as_decoded(message, context, model) for message in context.messages)
    return replace(context, messages=messages)


def _as_decoded(message: Message, context: Context, model: Model) -> Message:
    if message.role != "assistant":
        return message
    read = decode_response(write_reply(message, context), model=model)
    return replace(read, timestamp=message.timestamp)


def write_reply(message: AssistantMessage, context: Context) -> Wire:
    """Write the reply that the provider would send for this message."""
    return _WRITERS[message.protocol](message, context)


def arguments_text(arguments: Mapping[str, object]) -> str:
    """Write arguments as text, like the models of OpenAI's protocols."""
    return orjson.dumps(arguments).decode()


# -- anthropic-messages ------------------------------------------------------------------------------------------------


def anthropic_block(message: AssistantMessage, index: int) -> Wire:
    """Write one block of Claude's."""
    piece = message.content[index]
    if piece.kind == "thinking":
        return {"type": "thinking", "thinking": piece.thinking, "signature": piece.thinking_signature}
    if piece.kind == "toolCall":
        return {"type": "tool_use", "id": piece.id, "name": piece.name, "input": piece.arguments}
    assert piece.kind == "text"
    return {"type": "text", "text": piece.text}


def anthropic_usage(message: AssistantMessage) -> Wire:
    """Count tokens the way Anthropic does."""
    usage = message.usage
    assert usage is not None
    return {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation": {"ephemeral_5m_input_tokens": usage.cache_write, "ephemeral_1h_input_tokens": 0},
        "output_tokens": usage.output,
        "service_tier": "standard",
    }


def _anthropic_reply(message: AssistantMessage, _: Context) -> Wire:
    return {
        "id": message.response_id,
        "type": "message",
        "role": "assistant",
        "model": message.model,
        "content": [anthropic_block(message, index) for index in range(len(message.content))],
        "stop_reason": "tool_use" if message.stop_reason == StopReason.TOOL_USE else "end_turn",
        "stop_sequence": None,
        "usage": anthropic_usage(message),
    }


# -- openai-chat -------------------------------------------------------------------------------------------------------


def chat_usage(message: AssistantMessage) -> Wire:
    """Count tokens the way DeepSeek does."""
    usage = message.usage
    assert usage is not None
    prompt = usage.input + usage.cache_read + usage.cache_write
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": usage.output // 2},
        "prompt_cache_hit_tokens": usage.cache_read,
        "prompt_cache_miss_tokens": usage.input + usage.cache_write,
    }


def _chat_reply(message: AssistantMessage, _: Context) -> Wire:
    texts = [piece.text for piece in message.content if piece.kind == "text"]
    reply_message: Wire = {"role": "assistant", "content": "".join(texts)}
    thoughts = [piece.thinking for piece in message.content if piece.kind == "thinking"]
    if thoughts:
        reply_message["reasoning_content"] = "".join(thoughts)
    calls = [
        {
            "index": index,
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": arguments_text(call.arguments)},
        }
        for index, call in enumerate(message.tool_calls())
    ]
    if calls:
        reply_message["tool_calls"] = calls
    return {
        "id": message.response_id,
        "object": "chat.completion",
        "created": (message.timestamp or 0) // 1000,
        "model": message.model,
        "choices": [
            {"index": 0, "message": reply_message, "logprobs": None, "finish_reason": "tool_calls" if calls else "stop"}
        ],
        "usage": chat_usage(message),
        "system_fingerprint": "fp_ffc7281d48_prod0820_fp8_kvcache",
    }


# -- openai-responses --------------------------------------------------------------------------------------------------


def responses_item(message: AssistantMessage, index: int) -> Wire:
    """Write one item of a Responses reply."""
    piece = message.content[index]
    name = f"{(message.response_id or '').removeprefix('msg_')}{index:026}"
    if piece.kind == "thinking":
        summary = [{"type": "summary_text", "text": piece.thinking}]
        signed = piece.thinking_signature
        return {"id": f"rs_{name}", "type": "reasoning", "encrypted_content": signed, "summary": summary}
    if piece.kind == "toolCall":
        return {
            "id": f"fc_{name}",
            "type": "function_call",
            "status": "completed",
            "arguments": arguments_text(piece.arguments),
            "call_id": piece.id,
            "name": piece.name,
        }
    assert piece.kind == "text"
    part = {"type": "output_text", "annotations": list[object](), "logprobs": list[object](), "text": piece.text}
    return {"id": f"msg_{name}", "type": "message", "status": "completed", "content": [part], "role": "assistant"}


def responses_frame(message: AssistantMessage, context: Context) -> Wire:
    """Write the fields of a Responses reply besides its output: nearly all repeat the request."""
    tools = [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
            "strict": False,
        }
        for tool in context.tools or ()
        if tool.kind == "function"
    ]
    return {
        "id": f"resp_{(message.response_id or '').removeprefix('msg_')}",
        "object": "response",
        "created_at": (message.timestamp or 0) // 1000,
        "status": "completed",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": context.system_prompt,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "model": message.model,
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "reasoning": {"effort": "medium", "summary": "detailed"},
        "safety_identifier": None,
        "service_tier": "default",
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": tools,
        "top_logprobs": 0,
        "top_p": 0.98,
        "truncation": "disabled",
        "user": None,
        "metadata": {},
    }


def responses_usage(message: AssistantMessage) -> Wire:
    """Count tokens the way OpenAI does."""
    usage = message.usage
    assert usage is not None
    given = usage.input + usage.cache_read + usage.cache_write
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.output // 2},
        "total_tokens": given + usage.output,
    }


def _responses_reply(message: AssistantMessage, context: Context) -> Wire:
    output = [responses_item(message, index) for index in range(len(message.content))]
    return {**responses_frame(message, context), "output": output, "usage": responses_usage(message)}


# -- google-genai ------------------------------------------------------------------------------------------------------


def google_parts(message: AssistantMessage) -> list[Wire]:
    """Write the parts of a turn of Gemini's."""
    signature = next((piece.thinking_signature for piece in message.content if piece.kind == "thinking"), None)
    parts: list[Wire] = []
    for piece in message.content:
        if piece.kind == "thinking":
            parts.append({"text": piece.thinking, "thought": True})
        elif piece.kind == "toolCall":
            parts.append({"functionCall": {"name": piece.name, "args": piece.arguments, "id": piece.id}})
        else:
            assert piece.kind == "text"
            parts.append({"text": piece.text})
    signed = next((part for part in parts if "functionCall" in part), parts[-1])
    if signature is not None:
        signed["thoughtSignature"] = signature
    return parts


def google_usage(message: AssistantMessage) -> Wire:
    """Count tokens the way Google does."""
    usage = message.usage
    assert usage is not None
    given, thought = usage.input + usage.cache_read + usage.cache_write, usage.output // 2
    return {
        "promptTokenCount": given,
        "candidatesTokenCount": usage.output - thought,
        "totalTokenCount": given + usage.output,
        "cachedContentTokenCount": usage.cache_read,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": given}],
        "cacheTokensDetails": [{"modality": "TEXT", "tokenCount": usage.cache_read}],
        "thoughtsTokenCount": thought,
    }


def _google_reply(message: AssistantMessage, _: Context) -> Wire:
    content = {"parts": google_parts(message), "role": "model"}
    return {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": google_usage(message),
        "modelVersion": message.model,
        "responseId": (message.response_id or "").removeprefix("msg_"),
    }


# -- bedrock-converse --------------------------------------------------------------------------------------------------


def _bedrock_block(message: AssistantMessage, index: int) -> Wire:
    piece = message.content[index]
    if piece.kind == "thinking":
        return {"reasoningContent": {"reasoningText": {"text": piece.thinking, "signature": piece.thinking_signature}}}
    if piece.kind == "toolCall":
        return {"toolUse": {"toolUseId": piece.id, "name": piece.name, "input": piece.arguments}}
    assert piece.kind == "text"
    return {"text": piece.text}


def _bedrock_reply(message: AssistantMessage, _: Context) -> Wire:
    usage = message.usage
    assert usage is not None
    blocks = [_bedrock_block(message, index) for index in range(len(message.content))]
    return {
        "output": {"message": {"role": "assistant", "content": blocks}},
        "stopReason": "tool_use" if message.stop_reason == StopReason.TOOL_USE else "end_turn",
        "usage": {
            "inputTokens": usage.input,
            "outputTokens": usage.output,
            "totalTokens": usage.input + usage.output + usage.cache_read + usage.cache_write,
            "cacheReadInputTokens": usage.cache_read,
            "cacheWriteInputTokens": usage.cache_write,
        },
        "metrics": {"latencyMs": 40 * usage.output},
    }


_WRITERS: Final[Mapping[str, Callable[[AssistantMessage, Context], Wire]]] = {
    "anthropic-messages": _anthropic_reply,
    "openai-chat": _chat_reply,
    "openai-responses": _responses_reply,
    "google-genai": _google_reply,
    "bedrock-converse": _bedrock_reply,
}
