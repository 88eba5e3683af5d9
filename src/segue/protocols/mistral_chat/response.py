"""Whole replies of Mistral's chat endpoint, both ways: content, usage, stop reason.

The first choice is the message.

The answers of `mistral-chat` about models (mistralai 3.7.0: BaseModelCard, ModelCapabilities, read 2026-11-15).

Error bodies of Mistral's endpoint, and error objects in its streams.

Facts:
- `choices[]` of a message and a finish reason, usage next to them; a choice may have `messages` instead, where the
  provider ran tools itself.                                                    (mistralai 3.7.0, read 2026-11-15)
- Finish reasons: stop, length, model_length, error, tool_calls.                                  (mistralai 3.7.0)
- `prompt_tokens` includes cached tokens. Their count is in `num_cached_tokens`, `prompt_tokens_details` or
  `prompt_token_details`.                                      (recorded traffic, 2026-11; pi-ai 1.5.0 reads all three)
- A call has an index and no type, a reply without calls has `tool_calls: null`.          (recorded traffic, 2026-11)
- `{"object": "error", "message", "type", "param", "code"}`; the code is a number as text (3230, 3280).
                                                            (ironclaw #1241, 2026-03-16; and many other issues)
- Schema errors have status 422 and `{"detail": [{"type", "loc", "msg"}]}`, also inside `message`.
                                                                   (mistral-go #2; php-mistral #76, 2025-11-13)
- The proxy in front responds `{"message", "request_id"}` or `{"detail": "text"}`.  (nextcloud integration_openai #76)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, NativeContent, TextContent
from segue.conversation.messages import AssistantMessage, Diagnostic, StopReason, Usage
from segue.errors import DecodeError, Path
from segue.models.model import Model
from segue.models.origin import new_assistant_message
from segue.models.price import find_cost, find_share
from segue.protocols.families.chat_errors import describe_unknown, find_error_object
from segue.protocols.kit.codec import Endpoint, ErrorReply, Fault, JsonObject, WireError
from segue.protocols.kit.error_bodies import describe_error
from segue.protocols.kit.error_writing import ErrorRow, error_headers, error_message, find_row
from segue.protocols.kit.json_values import MISSING, Block, Wire, object_of
from segue.protocols.kit.model_lists import ModelList
from segue.protocols.kit.reading import expect_list, expect_object, expect_objects, integer_of, number_of, text_of
from segue.protocols.kit.replies import ended_with, keep_reply, read_stop, restore_reply
from segue.protocols.mistral_chat.rules import PROTOCOL
from segue.protocols.mistral_chat.turns import decode_assistant, decode_chunks, encode_assistant


def _one(model: Model) -> Wire:
    return {
        "id": model.id,
        "object": "model",
        "created": 0,
        "owned_by": model.provider,
        "name": model.name or model.id,
        **({"max_context_length": model.context_window} if model.context_window else {}),
        "aliases": [],
        "capabilities": {
            "completion_chat": True,
            "function_calling": True,
            "reasoning": model.reasoning,
            "vision": "image" in model.input,
            "audio": "audio" in model.input,
            "completion_fim": False,
            "fine_tuning": False,
        },
        "type": "base",
    }


def _every(models: Sequence[Model]) -> Wire:
    return {"object": "list", "data": [_one(model) for model in models]}


MODEL_LIST: Final = ModelList(every=_every, one=_one)


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error in any of these formats; in an unknown format the message is the JSON of the body."""
    error = find_error_object(body, status)
    if isinstance(error, WireError):
        return error
    status = status if status is not None else integer_of(error.get("raw_status_code"))
    message = _message(error.get("message")) or _message(error.get("detail"))
    return describe_error(error, status, message or describe_unknown(error))


def _message(value: object) -> str:
    """Return a message as text; a list of schema errors is joined, each with its path."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return _message(cast("Block", value).get("detail"))
    if not isinstance(value, list):
        return ""
    found: list[str] = []
    for item in cast("list[object]", value):
        text = text_of(object_of(item).get("msg")) or (item if isinstance(item, str) else "")
        place = object_of(item).get("loc")
        steps = cast("Sequence[object]", place) if isinstance(place, (list, tuple)) else ()
        found.append(f"{'.'.join(map(str, steps))}: {text}" if steps else text)
    return "; ".join(filter(None, found))


_ROWS: Final[Mapping[str, ErrorRow]] = {
    # error bodies that users reported, see `failures.codes`; Mistral documentation: status codes; read 2026-11-15
    "overflow": ErrorRow(400, "invalid_request_prompt", "3051"),
    "payload_too_large": ErrorRow(413, "request_too_large"),
    "rate_limit": ErrorRow(429, "rate_limited", "1300"),
    "quota": ErrorRow(402, "payment_required"),
    "auth": ErrorRow(401, "unauthorized"),
    "auth 403": ErrorRow(403, "forbidden"),
    "opaque_rejected": ErrorRow(400, "invalid_request_error"),
    "invalid_history": ErrorRow(400, "invalid_request_message_order", "3230"),
    "invalid_request": ErrorRow(400, "invalid_request_error"),
    "not_found": ErrorRow(404, "model_not_found", "1500"),
    "overloaded": ErrorRow(503, "unreachable_backend"),
    "server": ErrorRow(500, "internal_server_error"),
    "network": ErrorRow(502, "unreachable_backend"),
    "refused": ErrorRow(400, "content_policy_violation"),
}
_OVERFLOW: Final = "Prompt contains {used} tokens, too large for model with {limit} maximum context length"
_UNKNOWN_OVERFLOW: Final = "Prompt is too large for model with its maximum context length"


def encode_error(fault: Fault) -> ErrorReply:
    """Write an error body; it is the error frame of a stream, too."""
    row = find_row(_ROWS, fault)
    message = error_message(fault, _OVERFLOW, _UNKNOWN_OVERFLOW)
    body: dict[str, object] = {
        "object": "error",
        "message": message,
        "type": row.type,
        "param": None,
        "code": row.code,
    }
    return ErrorReply(row.status, error_headers(fault, row.status), body)


STOP_REASONS: Final[Mapping[str, StopReason]] = {
    "stop": StopReason.STOP,
    "length": StopReason.LENGTH,
    "model_length": StopReason.LENGTH,
    "tool_calls": StopReason.TOOL_USE,
    "error": StopReason.ERROR,
}
_FINISH_REASONS: Final[Mapping[StopReason, str]] = {
    StopReason.STOP: "stop",
    StopReason.LENGTH: "length",
    StopReason.TOOL_USE: "tool_calls",
    StopReason.ERROR: "error",
    StopReason.ABORTED: "error",
}

# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_response(body: JsonObject, endpoint: Endpoint, tool_names: Mapping[str, str]) -> AssistantMessage:
    """Read a whole reply; an error body becomes a message with the stop reason `error`.

    Raises:
        DecodeError: there are neither choices nor an error, or they are of another type than the protocol defines.
    """
    choices = body.get("choices")
    is_error = bool(body.get("error")) or body.get("object") == "error"
    if choices is None and not is_error:
        reason = "the body is not a reply: it has neither `choices` nor an error; pass a whole chat completion"
        raise DecodeError(reason, path=("choices",))
    message = replace(
        new_assistant_message(endpoint.model),
        protocol=PROTOCOL,
        response_id=text_of(body.get("id")),
        response_model=text_of(body.get("model")),
        usage=decode_usage(body.get("usage"), endpoint.model),
    )
    listed = expect_list(choices, ("choices",)) if choices is not None else []
    if not listed:
        reason = decode_error(body, None).message if is_error else "the reply has no choices"
        message = replace(message, stop_reason=StopReason.ERROR, error_message=reason)
    else:
        choice = expect_object(listed[0], ("choices", 0))
        content, notes = _read_choice(choice, tool_names)
        reason = text_of(choice.get("finish_reason"))
        stop = read_stop(STOP_REASONS, reason, [piece.kind for piece in content])
        message = replace(
            message,
            content=content,
            diagnostics=notes,
            stop_reason=stop,
            raw_stop_reason=reason,
            error_message=ended_with(reason, stop),
        )
    return replace(message, extra=keep_reply(PROTOCOL, encode_default(message), body))


def _read_choice(
    choice: Block, tool_names: Mapping[str, str]
) -> tuple[tuple[AssistantContent, ...], tuple[Diagnostic, ...]]:
    path: Path = ("choices", 0)
    if not isinstance(choice.get("message"), Mapping) and isinstance(choice.get("messages"), list):
        return _read_trace(expect_objects(choice["messages"], (*path, "messages")), (*path, "messages"), tool_names)
    wire = object_of(choice.get("message"))
    turn = decode_assistant(wire, (*path, "message"), tool_names, reply=True)
    return turn.content, turn.notes


def _read_trace(
    messages: Sequence[Block], path: Path, tool_names: Mapping[str, str]
) -> tuple[tuple[AssistantContent, ...], tuple[Diagnostic, ...]]:
    """Read the messages of a reply in which the provider ran tools: its calls and their results are native content."""
    content: list[AssistantContent] = []
    notes: tuple[Diagnostic, ...] = ()
    for index, wire in enumerate(messages):
        place = (*path, index)
        ran_next = index + 1 < len(messages) and messages[index + 1].get("role") == "tool"
        if wire.get("role") == "tool":
            content.append(decode_ran(wire))
        elif ran_next and wire.get("tool_calls"):
            content += decode_chunks(wire.get("content", MISSING), (*place, "content"), reply=True)
            block = {"role": "assistant", "content": "", "tool_calls": wire["tool_calls"]}
            content.append(NativeContent(protocol=PROTOCOL, block=block))
        else:
            turn = decode_assistant(wire, place, tool_names, reply=True)
            content += turn.content
            notes += turn.notes
    return tuple(content), notes


def decode_ran(wire: Block) -> NativeContent:
    """Keep the message of a tool that the provider ran, whatever its content is, with its text as the fallback."""
    content = wire.get("content")
    chunks = map(object_of, cast("list[object]", content)) if isinstance(content, list) else ()
    texts = [content] if isinstance(content, str) else [chunk.get("text") for chunk in chunks]
    text = "\n".join(text for text in texts if isinstance(text, str))
    fallback = (TextContent(text=text),) if text.strip() else ()
    return NativeContent(protocol=PROTOCOL, block=wire, fallback=fallback)


def decode_usage(given: object, model: Model) -> Usage | None:
    """Read the token counts and compute their cost."""
    if not isinstance(given, Mapping) or not given:
        return None
    wire = cast("Block", given)
    prompt, completion = number_of(wire.get("prompt_tokens")), number_of(wire.get("completion_tokens"))
    details = [
        object_of(wire.get(key)).get("cached_tokens") for key in ("prompt_tokens_details", "prompt_token_details")
    ]
    counts = (*details, wire.get("num_cached_tokens"))
    cached = min(prompt, next((number for count in counts if (number := number_of(count)) > 0), 0))
    usage = Usage(
        input=prompt - cached,
        output=completion,
        cache_read=cached,
        reasoning=number_of(object_of(wire.get("completion_tokens_details")).get("reasoning_tokens")),
        total_tokens=number_of(wire.get("total_tokens")) or prompt + completion,
    )
    return replace(usage, cost=find_cost(model.cost, usage, share=find_share(model, wire)))


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_response(message: AssistantMessage, endpoint: Endpoint) -> Wire:  # noqa: ARG001 - the contract of every codec
    """Write a whole reply; one that `decode_response` read is written as it was received.

    Raises:
        EncodeError: content that the protocol does not support.
    """
    return restore_reply(PROTOCOL, encode_default(message), message.extra)


def encode_choice(message: AssistantMessage, index: int = 0) -> Wire:
    """Write one choice of a reply in the default format."""
    wires = encode_assistant(message.content, ("choices", index, "message"))
    if len(wires) == 1 and message.tool_calls():
        wires[0]["tool_calls"] = [
            {**{key: value for key, value in call.items() if key != "type"}, "index": number}
            for number, call in enumerate(cast("list[Wire]", wires[0]["tool_calls"]))
        ]
    elif len(wires) == 1:
        wires[0].setdefault("tool_calls", None)
    content: Wire = {"message": wires[0]} if len(wires) == 1 else {"messages": wires}
    stop, raw = StopReason(message.stop_reason), message.raw_stop_reason
    # The reason of another protocol is not one of this one; an unknown one is kept as the format of the reply.
    reason = raw if raw is not None and STOP_REASONS.get(raw) == stop else _FINISH_REASONS[stop]
    return {"index": index, **content, "finish_reason": reason}


def encode_default(message: AssistantMessage) -> Wire:
    """Write a whole reply in the default format."""
    body: Wire = {
        "id": message.response_id or "",
        "object": "chat.completion",
        "created": (message.timestamp or 0) // 1000,
        "model": message.response_model or message.model,
        "choices": [encode_choice(message)],
        "usage": {},  # the SDK does not read a reply without it; mistralai 3.7.0, read 2026-11-17
    }
    usage = message.usage
    if usage is not None:
        prompt = usage.input + usage.cache_read + usage.cache_write
        counts: Wire = {
            "prompt_tokens": prompt,
            "completion_tokens": usage.output,
            "total_tokens": usage.total_tokens or prompt + usage.output,
        }
        if usage.cache_read:
            counts["prompt_tokens_details"] = {"cached_tokens": usage.cache_read}
        body["usage"] = counts
    return body
