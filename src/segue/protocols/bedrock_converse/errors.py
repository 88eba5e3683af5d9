"""Error bodies of Bedrock's Converse API.

Facts this file rests on:
- A body is `{"message"}`, of other AWS services and gateways `{"Message"}`; the type of the error is in the header
  `x-amzn-ErrorType`, or in `__type` after a namespace, sometimes followed by a URL, or in `type`.
                                               (AWS restJson protocol; recorded traffic, 2026-11; vercel/ai's schema)
- A stream reports an exception as an event of that name; an error of the model has its original status and message.
                                                                     (botocore 1.44.0 service model, read 2026-11-15)
- boto3 has `{"Error": {"Code", "Message"}, "ResponseMetadata": {"HTTPStatusCode", "HTTPHeaders"}}`. (botocore, tried)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, cast

from segue.protocols.kit.codec import ErrorReply, Fault, WireError
from segue.protocols.kit.error_writing import ErrorRow, error_headers, error_message, find_row
from segue.protocols.kit.json_values import object_of
from segue.protocols.kit.reading import parse_body, text_of

_EXCEPTION: Final = re.compile(r"\w+(?:Exception|Error)")
_ERROR_KEYS: Final = ("message", "Message", "__type", "Error", "error", "errorMessage")


def is_error(body: Mapping[str, object]) -> bool:
    """Whether a body that is not a reply reports an error."""
    return any(key in body for key in _ERROR_KEYS) or exception_of(body) is not None


def exception_of(frame: Mapping[str, object]) -> str | None:
    """Give the name of the exception that a stream frame reports; None for other frames."""
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
    """Give the name of an error without namespace and URL."""
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
