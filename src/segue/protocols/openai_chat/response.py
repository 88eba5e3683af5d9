"""A whole reply of an OpenAI chat endpoint, both ways.

Facts this file rests on:
- `choices[]` of message and finish reason, usage beside them; one vendor puts usage into the choice.
                                                  (openai 3.49.0; pi-ai 1.5.0 for Moonshot; recorded traffic, 2026-11)
- Finish reasons: stop, length, tool_calls, content_filter, function_call; vendors add theirs.
                                           (openai 3.49.0; systems 5.6; DeepSeek and Z.ai documentation, 2026-11-15)
- A reply that calls tools may say `stop` all the same.                        (Ollama and Gemini's OpenAI doors)
- Gateways answer 200 with an `error` in place of choices, or in the choice.              (OpenRouter documentation)

The first choice is the message. What a reply says beyond our words stands under `reply`, and only the
way back to a reply looks at it: none of it belongs into a request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.messages import AssistantMessage, StopReason
from segue.errors import DecodeError
from segue.models.origin import new_assistant_message
from segue.protocols.kit.codec import Endpoint, JsonObject
from segue.protocols.kit.reading import expect_list, expect_object, of_reply, reply_extra
from segue.protocols.kit.replies import ended_with, read_stop
from segue.protocols.openai_chat.assistant import decode_assistant, encode_assistant, restore_calls
from segue.protocols.openai_chat.errors import decode_error
from segue.protocols.openai_chat.rules import PROTOCOL
from segue.protocols.openai_chat.usage import decode_usage, encode_usage
from segue.protocols.openai_chat.verbatim import MISSING

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
_FINISH_REASONS: Final[Mapping[StopReason, str]] = {
    StopReason.STOP: "stop",
    StopReason.LENGTH: "length",
    StopReason.TOOL_USE: "tool_calls",
    StopReason.ERROR: "error",
    StopReason.ABORTED: "stop",
}
_OBJECT: Final = "chat.completion"


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_response(body: JsonObject, endpoint: Endpoint, tool_names: Mapping[str, str]) -> AssistantMessage:
    """Read a whole reply; one that is an error is a message that failed.

    Raises:
        DecodeError: there are neither choices nor an error, or choices or calls are not what the protocol says.
    """
    kept: dict[str, object] = {}
    choices = body.get("choices")
    is_error = bool(body.get("error")) or body.get("object") == "error"
    if choices is None and not is_error:
        raise DecodeError("this is no reply: it has neither choices nor an error", path=("choices",))
    known = {"choices", *_take_names(body, kept)}
    message = _begin(body, endpoint, kept, known)
    usage = body.get("usage")
    if not choices:
        kept["choices"] = body.get("choices", "absent")
        given = decode_error(body, None).message if is_error else "the reply has no choices"
        message = replace(message, stop_reason=StopReason.ERROR, error_message=given)
    else:
        listed = expect_list(choices, ("choices",))
        choice = expect_object(listed[0], ("choices", 0))
        if len(listed) > 1:
            kept["others"] = listed[1:]
        message = replace(message, **_read_choice(choice, endpoint, tool_names, kept))
        if not isinstance(usage, Mapping) and isinstance(choice.get("usage"), Mapping):
            usage, kept["usage"] = choice["usage"], "choice"
    if isinstance(usage, Mapping):
        message = replace(message, usage=decode_usage(cast("JsonObject", usage), endpoint.model))
    return message


def _take_names(body: JsonObject, kept: dict[str, object]) -> list[str]:
    """Say which of the keys that a reply opens with are as usual; note which are missing."""
    known = [key for key in ("id", "model") if isinstance(body.get(key), str) and body[key]]
    if body.get("object") == _OBJECT:
        known.append("object")
    if isinstance(body.get("usage"), Mapping):
        known.append("usage")
    missing = [key for key in ("id", "model", "object") if key not in body]
    if missing:
        kept["missing"] = missing
    return known


def _begin(body: JsonObject, endpoint: Endpoint, kept: dict[str, object], known: set[str]) -> AssistantMessage:
    left = {key: value for key, value in body.items() if key not in known}
    if left:
        kept["body"] = left
    return replace(
        new_assistant_message(endpoint.model),
        protocol=PROTOCOL,
        response_id=cast("str", body["id"]) if "id" in known else None,
        response_model=cast("str", body["model"]) if "model" in known else None,
        extra=of_reply(PROTOCOL, kept),
    )


def _read_choice(
    choice: JsonObject, endpoint: Endpoint, tool_names: Mapping[str, str], kept: dict[str, object]
) -> dict[str, object]:
    known = {"message", "finish_reason"}
    if choice.get("index") == 0:
        known.add("index")
    elif "index" not in choice:
        kept["no_index"] = True
    given = choice.get("message", MISSING)
    if not isinstance(given, Mapping):
        kept["message_is"] = "absent" if given is MISSING else given
        given = {"role": "assistant", "content": None}
    wire = cast("JsonObject", given)
    turn = decode_assistant(wire, endpoint, ("choices", 0, "message"), reply=True, tool_names=tool_names)
    if wire.get("role") != "assistant":
        turn.left["role"] = wire.get("role", "absent")
    if turn.left:
        kept["message"] = turn.left
    if turn.verbatim:
        kept["shape"] = turn.verbatim
    reason = choice.get("finish_reason")
    if not isinstance(reason, str):
        known.discard("finish_reason")
        if "finish_reason" not in choice:
            kept["no_reason"] = True
        reason = None
    left = {key: value for key, value in choice.items() if key not in known}
    if left:
        kept["choice"] = left
    error = choice.get("error")
    stop = StopReason.ERROR if error else read_stop(STOP_REASONS, reason, [piece.kind for piece in turn.content])
    return {
        "content": turn.content,
        "stop_reason": stop,
        "raw_stop_reason": reason,
        "error_message": decode_error(error, None).message if error else ended_with(reason, stop),
        "diagnostics": turn.notes,
    }


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_response(message: AssistantMessage, endpoint: Endpoint) -> dict[str, object]:
    """Write a reply: what was read comes out as it was; of another wire's message, what this one has words for.

    Raises:
        EncodeError: a block of another protocol.
    """
    reply = reply_extra(message.extra, PROTOCOL)
    if reply is None:
        return _encode_foreign(message, endpoint)
    body: dict[str, object] = {
        "id": message.response_id,
        "object": _OBJECT,
        "model": message.response_model,
    }
    for key in cast("list[str]", reply.get("missing", ())):
        del body[key]
    body.update(cast("JsonObject", reply.get("body", {})))
    if "choices" not in reply:
        choice = encode_choice(message, endpoint, reply)
        body["choices"] = [choice, *cast("list[object]", reply.get("others", ()))]
    elif reply["choices"] != "absent":
        body["choices"] = reply["choices"]
    if message.usage is not None and "usage" not in reply:
        body["usage"] = encode_usage(message.usage)
    return body


def encode_choice(
    message: AssistantMessage, endpoint: Endpoint, reply: JsonObject, index: int = 0
) -> dict[str, object]:
    """Write one choice of a reply."""
    choice: dict[str, object] = {"index": index}
    if reply.get("no_index"):
        del choice["index"]
    if "message_is" in reply:
        if reply["message_is"] != "absent":
            choice["message"] = reply["message_is"]
    else:
        left = dict(cast("JsonObject", reply.get("message", {})))
        role = left.pop("role", "assistant")
        verbatim = cast("JsonObject", reply.get("shape", {}))
        path = ("choices", index, "message")
        content = restore_calls(message.content, cast("Mapping[str, JsonObject]", verbatim.get("calls", {})))
        wire = encode_assistant(content, endpoint, path, reply=True, left=left, verbatim=verbatim)
        if role == "absent":
            del wire["role"]
        else:
            wire["role"] = role
        choice["message"] = wire
    if not reply.get("no_reason"):
        choice["finish_reason"] = message.raw_stop_reason
    choice.update(cast("JsonObject", reply.get("choice", {})))
    return choice


def _encode_foreign(message: AssistantMessage, endpoint: Endpoint) -> dict[str, object]:
    choice = {
        "index": 0,
        "message": encode_assistant(message.content, endpoint, ("choices", 0, "message"), reply=True),
        "finish_reason": _FINISH_REASONS[StopReason(message.stop_reason)],
    }
    body: dict[str, object] = {
        "id": message.response_id or "",
        "object": _OBJECT,
        "created": (message.timestamp or 0) // 1000,
        "model": message.response_model or message.model,
        "choices": [choice],
    }
    if message.usage is not None:
        body["usage"] = encode_usage(message.usage)
    return body
