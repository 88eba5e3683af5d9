"""Error bodies of the Gemini API and Vertex.

Facts this file rests on:
- `{"error": {code, message, status, details: [{"@type", reason, ...}]}}`, also in mid-stream; `status` is a name
  of google.rpc.Code, `code` the HTTP status.                            (google-genai 3.1.0: errors, read 2026-11-15)
- A stream that is a JSON array has its error in an array.                                                (the same)
- Gateways respond with a text, an HTML page, or `{"message"}` / `{"error": "text"}`.            (litellm, Cloudflare)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.protocols.kit.codec import ErrorReply, Fault
from segue.protocols.kit.error_bodies import decode_google_error
from segue.protocols.kit.error_writing import ErrorRow, error_headers, error_message, find_row

decode_error: Final = decode_google_error

_ROWS: Final[Mapping[str, ErrorRow]] = {
    # Google documentation: Gemini API troubleshooting; google.rpc.Code; read 2026-11-15
    "overflow": ErrorRow(400, "INVALID_ARGUMENT"),
    "payload_too_large": ErrorRow(413, "INVALID_ARGUMENT"),
    "rate_limit": ErrorRow(429, "RESOURCE_EXHAUSTED"),
    "quota": ErrorRow(429, "RESOURCE_EXHAUSTED"),
    "quota 402": ErrorRow(402, "RESOURCE_EXHAUSTED"),
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
