"""A whole reply of an OpenAI chat endpoint, both ways.

Facts this file rests on:
- `choices[]` of message and finish reason, usage beside them; one vendor puts usage into the choice.
                                                  (openai 3.49.0; pi-ai 1.5.0 for Moonshot; recorded traffic, 2026-11)
- Finish reasons: stop, length, tool_calls, content_filter, function_call; vendors add others.
                                           (openai 3.49.0; systems 5.6; DeepSeek and Z.ai documentation, 2026-11-15)
- The reason of a reply that calls tools may be `stop`.                        (Ollama's and Gemini's OpenAI APIs)
- Gateways answer 200 with an `error` in place of choices, or in the choice.              (OpenRouter documentation)

The first choice is the message. The difference between the reply and its default format is kept under `reply`, which no
request reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.messages import AssistantMessage, StopReason
from segue.errors import DecodeError, EncodeError
from segue.models.origin import new_assistant_message
from segue.protocols.kit.codec import Endpoint, JsonObject
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.reading import expect_list, expect_object
from segue.protocols.kit.replies import ended_with, keep_reply, read_stop, restore_reply
from segue.protocols.openai_chat.assistant import decode_reply, encode_assistant
from segue.protocols.openai_chat.errors import decode_error
from segue.protocols.openai_chat.rules import PROTOCOL
from segue.protocols.openai_chat.usage import decode_usage, encode_usage

STOP_REASONS: Final[Mapping[str, StopReason]] = {
    "stop": StopReason.STOP,
    "end": StopReason.STOP,
    "eos": StopReason.STOP,
    "eos_token": StopReason.STOP,
    "end_turn": StopReason.STOP,
    "stop_sequence": StopReason.STOP,
    "completed": StopReason.STOP,
    "length": StopReason.LENGTH,
    "max_tokens": StopReason.LENGTH,
    "model_length": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "tool_calls": StopReason.TOOL_USE,
    "tool_use": StopReason.TOOL_USE,
    "function_call": StopReason.TOOL_USE,
    "content_filter": StopReason.ERROR,
    "sensitive": StopReason.ERROR,
    "error": StopReason.ERROR,
    "network_error": StopReason.ERROR,
    "insufficient_system_resource": StopReason.ERROR,
    "abort": StopReason.ABORTED,
    "cancelled": StopReason.ABORTED,
}
_WITHHELD: Final = "content_filter"
_FINISH_REASONS: Final[Mapping[StopReason, str]] = {
    StopReason.STOP: "stop",
    StopReason.LENGTH: "length",
    StopReason.TOOL_USE: "tool_calls",
    StopReason.ERROR: "error",
    StopReason.ABORTED: "stop",
}


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_response(body: JsonObject, endpoint: Endpoint, tool_names: Mapping[str, str]) -> AssistantMessage:
    """Read a whole reply; one that is an error becomes a message that failed.

    Raises:
        DecodeError: there are neither choices nor an error, or choices or calls are not in the format of the protocol.
    """
    choices, usage = body.get("choices"), body.get("usage")
    is_error = bool(body.get("error")) or body.get("object") == "error"
    if choices is None and not is_error:
        raise DecodeError("the body has neither choices nor an error; pass a reply of openai-chat", path=("choices",))
    fields: Wire
    if choices:
        choice = expect_object(expect_list(choices, ("choices",))[0], ("choices", 0))
        fields = _read_choice(choice, endpoint, tool_names)
        if not isinstance(usage, Mapping):
            usage = choice.get("usage")
    else:
        reason = decode_error(body, None).message if is_error else "the reply has no choices"
        fields = {"stop_reason": StopReason.ERROR, "error_message": reason}
    response_id, model = body.get("id"), body.get("model")
    message = replace(
        new_assistant_message(endpoint.model),
        protocol=PROTOCOL,
        response_id=response_id if isinstance(response_id, str) and response_id else None,
        response_model=model if isinstance(model, str) and model else None,
        usage=decode_usage(cast("Block", usage), endpoint.model, body) if isinstance(usage, Mapping) else None,
        **fields,
    )
    try:
        return replace(message, extra=keep_reply(PROTOCOL, encode_reply(message, endpoint), body))
    except EncodeError as error:
        raise DecodeError(error.reason, path=("choices", 0, "message")) from error


def _read_choice(choice: Block, endpoint: Endpoint, tool_names: Mapping[str, str]) -> Wire:
    wire = object_of(choice.get("message"))
    content, notes = decode_reply(wire, endpoint, ("choices", 0, "message"), tool_names)
    reason, error = choice.get("finish_reason"), choice.get("error")
    reason = reason if isinstance(reason, str) else None
    stop = StopReason.ERROR if error else read_stop(STOP_REASONS, reason, [piece.kind for piece in content])
    return {
        "content": content,
        "stop_reason": stop,
        "raw_stop_reason": reason,
        "error_message": decode_error(error, None).message if error else ended_with(reason, stop),
        "diagnostics": notes,
    }


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_response(message: AssistantMessage, endpoint: Endpoint) -> Wire:
    """Write a reply; one that was read is written as it was received.

    Raises:
        EncodeError: a block of another protocol.
    """
    return restore_reply(PROTOCOL, encode_reply(message, endpoint), message.extra)


def encode_reply(message: AssistantMessage, endpoint: Endpoint) -> Wire:
    """Write a reply in the default format.

    Raises:
        EncodeError: a block of another protocol.
    """
    body: Wire = {
        "id": message.response_id or "",
        "object": "chat.completion",
        "created": (message.timestamp or 0) // 1000,
        "model": message.response_model or message.model,
        "choices": [encode_choice(message, endpoint)],
    }
    if message.usage is not None:
        body["usage"] = encode_usage(message.usage)
    return body


def encode_choice(message: AssistantMessage, endpoint: Endpoint, index: int = 0) -> Wire:
    """Write one choice of a reply in the default format."""
    stop = StopReason(message.stop_reason)
    is_withheld = stop == StopReason.ERROR and message.raw_stop_reason == _WITHHELD
    return {
        "index": index,
        "message": encode_assistant(message.content, endpoint, ("choices", index, "message"), reply=True),
        "finish_reason": _WITHHELD if is_withheld else _FINISH_REASONS[stop],
    }
