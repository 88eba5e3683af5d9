"""A Bedrock reply, both ways: content, usage, stop reason.

The difference between the default format of a reply and the received body is in the message's `extra` under
`reply`. Only `encode_response` reads it; a request never contains it.

The answers of `bedrock-converse` about models: foundation models (botocore 1.44.0: bedrock, read 2026-11-15).

Error bodies of Bedrock's Converse API.

Facts:
- `inputTokens`, `cacheReadInputTokens` and `cacheWriteInputTokens` add up to the whole input; `totalTokens` is the sum
  of them and the output. The lifetime of cache writes is in `cacheDetails`.
                                         (recorded traffic, 2026-11; botocore 1.44.0 service model, read 2026-11-15)
- Stop reasons.                                                                                       (service model)
- A prompt router names the model that it invoked in `trace`.                                         (service model)
- boto3 adds `ResponseMetadata`, with the id of the request.                         (botocore 1.44.0, tried 2026-11-15)
- A body is `{"message"}`, of other AWS services and gateways `{"Message"}`; the type of the error is in the header
  `x-amzn-ErrorType`, or in `__type` after a namespace, sometimes followed by a URL, or in `type`.
                                               (AWS restJson protocol; recorded traffic, 2026-11; vercel/ai's schema)
- A stream reports an exception as an event of that name; an error of the model has its original status and message.
                                                                     (botocore 1.44.0 service model, read 2026-11-15)
- boto3 has `{"Error": {"Code", "Message"}, "ResponseMetadata": {"HTTPStatusCode", "HTTPHeaders"}}`. (botocore, tried)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import AssistantContent
from segue.conversation.messages import AssistantMessage, StopReason, Usage
from segue.errors import DecodeError
from segue.models.model import Model
from segue.models.origin import new_assistant_message
from segue.models.price import find_cost, find_share
from segue.protocols.bedrock_converse.content import decode_assistant_block, encode_assistant_blocks
from segue.protocols.bedrock_converse.native import DocumentNames
from segue.protocols.bedrock_converse.options import REPLY_FIELDS
from segue.protocols.bedrock_converse.rules import PROTOCOL
from segue.protocols.bedrock_converse.sdk import without_bytes
from segue.protocols.bedrock_converse.turns import find_blocks, texts_of
from segue.protocols.families.claude_prefix import note_transformations
from segue.protocols.kit.codec import Endpoint, ErrorReply, Fault, WireError
from segue.protocols.kit.error_writing import ErrorRow, error_headers, error_message, find_row
from segue.protocols.kit.json_patch import difference
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.model_lists import ModelList
from segue.protocols.kit.reading import number_of, of_reply, parse_body, text_of
from segue.protocols.kit.replies import read_required_stop, rename_calls, restore_reply
from segue.protocols.kit.reply_form import TRANSFORMATIONS
from segue.protocols.kit.verbatim import keep, restore

_ARN: Final = "arn:aws:bedrock:us-east-1::foundation-model/"
_MODALITIES: Final = {"text": "TEXT", "image": "IMAGE"}


def _entry(model: Model) -> Wire:
    return {
        "modelArn": model.id if model.id.startswith("arn:") else f"{_ARN}{model.id}",
        "modelId": model.id,
        "modelName": model.name or model.id,
        "providerName": model.provider,
        "inputModalities": [_MODALITIES[kind] for kind in model.input if kind in _MODALITIES],
        "outputModalities": ["TEXT"],
        "responseStreamingSupported": True,
        "customizationsSupported": [],
        "inferenceTypesSupported": ["ON_DEMAND"],
        "modelLifecycle": {"status": "LEGACY" if model.deprecated else "ACTIVE"},
    }


def _one(model: Model) -> Wire:
    return {"modelDetails": _entry(model)}


def _every(models: Sequence[Model]) -> Wire:
    return {"modelSummaries": [_entry(model) for model in models]}


MODEL_LIST: Final = ModelList(every=_every, one=_one)


_EXCEPTION: Final = re.compile(r"\w+(?:Exception|Error)")
_ERROR_KEYS: Final = ("message", "Message", "__type", "Error", "error", "errorMessage")


def is_error(body: Mapping[str, object]) -> bool:
    """Whether a body that is not a reply reports an error."""
    return any(key in body for key in _ERROR_KEYS) or exception_of(body) is not None


def exception_of(frame: Mapping[str, object]) -> str | None:
    """Return the name of the exception that a stream frame reports; None for other frames."""
    if len(frame) == 1:
        name = next(iter(frame))
        if name == "error" or _EXCEPTION.fullmatch(name):
            return name
    return None


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error body, parsed or not, the error of boto3, or the exception of a stream."""
    body = parse_body(body)
    if not isinstance(body, Mapping):
        return WireError(status=status, message=body if isinstance(body, str) else "")
    outer = cast("Mapping[str, object]", body)
    name = exception_of(outer)
    if name is not None and isinstance(outer[name], Mapping):
        inner = object_of(outer[name])
        kind = name if name != "error" else _name_of(inner.get("code"))
        return _error(inner, kind or _name_of(inner.get("type")), status)
    if isinstance(outer.get("Error"), Mapping):
        return _decode_boto3_error(outer, status)
    kind = _name_of(outer.get("__type")) or _name_of(object_of(outer.get("Output")).get("__type"))
    if isinstance(outer.get("error"), str) and not _message_of(outer):
        return WireError(status=status, type=kind, message=str(outer["error"]))
    return _error(outer, kind or _name_of(outer.get("code")) or _name_of(outer.get("type")), status)


def _error(inner: Mapping[str, object], kind: str | None, status: int | None) -> WireError:
    original = inner.get("originalStatusCode")
    code = str(original) if isinstance(original, int) else None
    message = _message_of(inner)
    cause = text_of(inner.get("originalMessage"))
    if cause and cause not in message:
        message = f"{message} {cause}".strip()
    return WireError(status=status, code=code, type=kind, message=message)


def _decode_boto3_error(outer: Mapping[str, object], status: int | None) -> WireError:
    error, metadata = object_of(outer["Error"]), object_of(outer.get("ResponseMetadata"))
    code = metadata.get("HTTPStatusCode")
    if status is None and isinstance(code, int):
        status = code
    kind = _name_of(object_of(metadata.get("HTTPHeaders")).get("x-amzn-errortype")) or _name_of(error.get("Code"))
    return WireError(status=status, type=kind, message=_message_of(error))


def _message_of(error: Mapping[str, object]) -> str:
    for key in ("message", "Message", "errorMessage"):
        text = text_of(error.get(key))
        if text:
            return text
    return ""


def _name_of(value: object) -> str | None:
    """Return the name of an error without namespace and URL."""
    text = text_of(value)
    return text.rpartition("#")[2].partition(":")[0] if text else None


_ROWS: Final[Mapping[str, ErrorRow]] = {
    # botocore 1.44.0 service model: errors of Converse, with their statuses; read 2026-11-15. The code is the
    # exception of a stream, which has five of them.
    "overflow": ErrorRow(400, "ValidationException", "validationException"),
    "payload_too_large": ErrorRow(413, "RequestEntityTooLargeException", "validationException"),
    "rate_limit": ErrorRow(429, "ThrottlingException", "throttlingException"),
    "quota": ErrorRow(429, "ThrottlingException", "throttlingException"),
    # A throttling exception is repeated; this one is not (botocore 1.44.0: retries).
    "quota 402": ErrorRow(402, "ServiceQuotaExceededException", "validationException"),
    "auth": ErrorRow(403, "AccessDeniedException", "validationException"),
    "opaque_rejected": ErrorRow(400, "ValidationException", "validationException"),
    "invalid_history": ErrorRow(400, "ValidationException", "validationException"),
    "invalid_request": ErrorRow(400, "ValidationException", "validationException"),
    "not_found": ErrorRow(404, "ResourceNotFoundException", "validationException"),
    "overloaded": ErrorRow(503, "ServiceUnavailableException", "serviceUnavailableException"),
    "server": ErrorRow(500, "InternalServerException", "internalServerException"),
    "network": ErrorRow(424, "ModelErrorException", "validationException"),
    "refused": ErrorRow(400, "ValidationException", "validationException"),
}
_OVERFLOW: Final = "The model returned the following errors: prompt is too long: {used} tokens > {limit} maximum"
_UNKNOWN_OVERFLOW: Final = "Input is too long for requested model."


def encode_error(fault: Fault) -> ErrorReply:
    """Write an error body; its type is in a header."""
    row = find_row(_ROWS, fault)
    message = error_message(fault, _OVERFLOW, _UNKNOWN_OVERFLOW)
    headers = {**error_headers(fault, row.status), "x-amzn-errortype": row.type}
    return ErrorReply(row.status, headers, {"message": message})


def stream_exception(fault: Fault) -> dict[str, object]:
    """Write the exception that ends a stream."""
    row = find_row(_ROWS, fault)
    return {str(row.code): {"message": error_message(fault, _OVERFLOW, _UNKNOWN_OVERFLOW)}}


STOP_REASONS: Final[Mapping[str, StopReason]] = {
    "end_turn": StopReason.STOP,
    "stop_sequence": StopReason.STOP,
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "tool_use": StopReason.TOOL_USE,
    "guardrail_intervened": StopReason.ERROR,
    "content_filtered": StopReason.ERROR,
    "malformed_model_output": StopReason.ERROR,
    "malformed_tool_use": StopReason.ERROR,
}
_WIRE_REASONS: Final[Mapping[StopReason, str]] = {
    StopReason.STOP: "end_turn",
    StopReason.LENGTH: "max_tokens",
    StopReason.TOOL_USE: "tool_use",
}
_COUNTS: Final = frozenset({"totalTokens", "cacheReadInputTokens", "cacheWriteInputTokens"})
_LONG: Final = "1h"


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_response(body: Mapping[str, object], endpoint: Endpoint, tool_names: Mapping[str, str]) -> AssistantMessage:
    """Read a whole reply; a body that is an error becomes a failed message.

    Raises:
        DecodeError: it has no message, or content of an unexpected type.
    """
    output = object_of(body.get("output"))
    turn = output.get("message")
    if not isinstance(turn, Mapping):
        if output and "message" not in output and "stopReason" in body:
            # `output` is a union, and may have more members one day.
            return finish_response(body, (), endpoint)
        if "output" in body or not is_error(body):
            raise DecodeError("the reply has no message; pass the body of a Converse reply", path=("output", "message"))
        return finish_response(body, (), endpoint, error=error_text(body))
    content = cast("Block", turn).get("content")
    blocks = find_blocks(content, ("output", "message", "content"))
    pieces: Sequence[AssistantContent] = texts_of(content)
    if blocks is not None:
        received = [
            block if "text" in block or "toolUse" in block else object_of(without_bytes(block)) for block in blocks
        ]
        pieces = [decode_assistant_block(block, endpoint, reply=True) for block in received]
        message = {**cast("Block", turn), "content": received}
        body = {**body, "output": {**output, "message": message}}
    decoded = finish_response(body, tuple(pieces), endpoint)
    return replace(decoded, content=rename_calls(decoded.content, tool_names)) if tool_names else decoded


def finish_response(
    body: Block, pieces: tuple[AssistantContent, ...], endpoint: Endpoint, *, error: str | None = None
) -> AssistantMessage:
    """Make a message of its content and of the whole body, which a stream puts together from its events."""
    raw = text_of(body.get("stopReason"))
    stop = StopReason.ERROR if error is not None else read_required_stop(STOP_REASONS, raw, pieces)
    if stop == StopReason.ERROR and error is None:
        error = "the reply ended without a stop reason" if raw is None else f"the reply ended with {raw}"
    message = replace(
        new_assistant_message(endpoint.model, content=pieces),
        protocol=PROTOCOL,
        response_id=text_of(object_of(body.get("ResponseMetadata")).get("RequestId")),
        response_model=_invoked_model(body),
        usage=decode_usage(body, endpoint),
        stop_reason=stop,
        raw_stop_reason=raw,
        error_message=error,
        diagnostics=note_transformations(object_of(body.get(REPLY_FIELDS)).get(TRANSFORMATIONS)),
    )
    entry = difference(_default_response(message, endpoint), body)
    return message if entry is None else replace(message, extra=of_reply(PROTOCOL, object_of(without_bytes(entry))))


def error_text(body: object) -> str:
    """Return the message of an error body, or of the exception of a stream."""
    error = decode_error(body, None)
    return ": ".join(part for part in (error.type, error.message) if part) or "the provider reported an error"


def _invoked_model(body: Block) -> str | None:
    router = object_of(object_of(body.get("trace")).get("promptRouter"))
    return text_of(router.get("invokedModelId"))


def decode_usage(body: Block, endpoint: Endpoint) -> Usage | None:
    """Read the counts of a reply, and compute the cost."""
    given = body.get("usage")
    if not isinstance(given, Mapping) or given == _default_usage(Usage()):
        return None  # what a reply without counts has: the fields are required
    wire = cast("Block", given)
    counted = Usage(
        input=number_of(wire.get("inputTokens")),
        output=number_of(wire.get("outputTokens")),
        cache_read=number_of(wire.get("cacheReadInputTokens")),
        cache_write=number_of(wire.get("cacheWriteInputTokens")),
    )
    total = counted.input + counted.output + counted.cache_read + counted.cache_write
    usage = replace(counted, total_tokens=number_of(wire.get("totalTokens")) or total)
    long, share = min(_long_writes(wire), usage.cache_write), find_share(endpoint.model, body)
    cost = find_cost(endpoint.model.cost, usage, cache_write_long=long, share=share)
    return replace(usage, cost=cost, extra=keep(PROTOCOL, wire, _default_usage(usage), known=_COUNTS))


def _long_writes(wire: Block) -> int:
    details = wire.get("cacheDetails")
    rows = [object_of(row) for row in cast("Sequence[object]", details)] if isinstance(details, list | tuple) else []
    return sum(number_of(row.get("inputTokens")) for row in rows if row.get("ttl") == _LONG)


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_response(message: AssistantMessage, endpoint: Endpoint) -> Wire:
    """Write a whole reply; what `decode_response` read is written as it was received.

    Raises:
        EncodeError: the wire does not support its content.
    """
    return restore_reply(PROTOCOL, _default_response(message, endpoint), message.extra)


def _default_response(message: AssistantMessage, endpoint: Endpoint) -> Wire:
    blocks = encode_assistant_blocks(message.content, endpoint, DocumentNames(), reply=True)
    wire: Wire = {"output": {"message": {"role": "assistant", "content": blocks}}}
    raw = message.raw_stop_reason
    reason = raw if raw in STOP_REASONS else _WIRE_REASONS.get(message.stop_reason)
    if reason is not None:
        wire["stopReason"] = reason
    usage = message.usage or Usage()
    wire["usage"] = restore(_default_usage(usage), usage.extra, PROTOCOL)
    wire["metrics"] = {"latencyMs": 0}
    return wire


def _default_usage(usage: Usage) -> Wire:
    total = usage.total_tokens or usage.input + usage.output + usage.cache_read + usage.cache_write
    wire: Wire = {"inputTokens": usage.input, "outputTokens": usage.output, "totalTokens": total}
    if usage.cache_read:
        wire["cacheReadInputTokens"] = usage.cache_read
    if usage.cache_write:
        wire["cacheWriteInputTokens"] = usage.cache_write
    return wire
