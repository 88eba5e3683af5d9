"""Error bodies of the Gemini API and Vertex.

Facts this file rests on:
- `{"error": {code, message, status, details: [{"@type", reason, ...}]}}`, also in mid-stream; `status` is a name
  of google.rpc.Code, `code` the HTTP status.                            (google-genai 3.1.0: errors, read 2026-11-15)
- A stream that is a JSON array has its error in an array.                                                (the same)
- Gateways respond with a text, an HTML page, or `{"message"}` / `{"error": "text"}`.            (litellm, Cloudflare)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from segue.protocols.kit.codec import ErrorReply, Fault, WireError
from segue.protocols.kit.error_bodies import find_error_object
from segue.protocols.kit.error_writing import ErrorRow, error_headers, error_message, find_row
from segue.protocols.kit.json_values import object_of
from segue.protocols.kit.reading import integer_of, parse_body, text_of


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error body, parsed or not, or the error frame of a stream."""
    parsed = parse_body(body)
    if isinstance(parsed, list) and parsed:
        parsed = cast("list[object]", parsed)[0]
    error = find_error_object(cast("object", parsed), status)
    if isinstance(error, WireError):
        return error
    code = error.get("code")
    if status is None:
        status = integer_of(code)
    reason = _reason(error.get("details"))
    if reason is None and code is not None:
        reason = str(code)
    return WireError(
        status=status,
        code=reason,
        type=text_of(error.get("status")),
        message=text_of(error.get("message")) or "",
    )


def _reason(details: object) -> str | None:
    """Find the reason in `google.rpc.ErrorInfo`; it is more specific than the status."""
    if not isinstance(details, list):
        return None
    for detail in cast("list[object]", details):
        reason = text_of(object_of(detail).get("reason"))
        if reason is not None:
            return reason
    return None


_ROWS: Final[Mapping[str, ErrorRow]] = {
    # Google documentation: Gemini API troubleshooting; google.rpc.Code; read 2026-11-15
    "overflow": ErrorRow(400, "INVALID_ARGUMENT"),
    "payload_too_large": ErrorRow(413, "INVALID_ARGUMENT"),
    "rate_limit": ErrorRow(429, "RESOURCE_EXHAUSTED"),
    "quota": ErrorRow(429, "RESOURCE_EXHAUSTED"),
    "auth": ErrorRow(401, "UNAUTHENTICATED"),
    "auth 403": ErrorRow(403, "PERMISSION_DENIED"),
    "auth 400": ErrorRow(400, "INVALID_ARGUMENT"),
    "auth 502": ErrorRow(502, "UNKNOWN"),
    "opaque_rejected": ErrorRow(400, "INVALID_ARGUMENT"),
    "invalid_history": ErrorRow(400, "INVALID_ARGUMENT"),
    "invalid_request": ErrorRow(400, "INVALID_ARGUMENT"),
    "not_found": ErrorRow(404, "NOT_FOUND"),
    "overloaded": ErrorRow(503, "UNAVAILABLE"),
    "server": ErrorRow(500, "INTERNAL"),
    "network": ErrorRow(502, "UNKNOWN"),
    "refused": ErrorRow(400, "INVALID_ARGUMENT"),
}
_OVERFLOW: Final = "The input token count ({used}) exceeds the maximum number of tokens allowed ({limit})."
_UNKNOWN_OVERFLOW: Final = "The input token count exceeds the maximum number of tokens allowed."
_RETRY_INFO: Final = "type.googleapis.com/google.rpc.RetryInfo"


def encode_error(fault: Fault) -> ErrorReply:
    """Write an error body; it is the error frame of a stream, too."""
    row = find_row(_ROWS, fault)
    message = error_message(fault, _OVERFLOW, _UNKNOWN_OVERFLOW)
    error: dict[str, object] = {"code": row.status, "message": message, "status": row.type}
    if fault.retry_after is not None:
        error["details"] = [{"@type": _RETRY_INFO, "retryDelay": f"{fault.retry_after:g}s"}]
    return ErrorReply(row.status, error_headers(fault, row.status), {"error": error})
