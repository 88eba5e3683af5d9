"""Error bodies of Anthropic's Messages API.

Facts this file relies on:
- `{"type": "error", "error": {type, message, details: {error_code}}, "request_id"}`; the code identifies the error.
                                                                            (anthropic 2.8.0, read 2026-11-15)
- Third-party servers respond in OpenAI's format on this path, with a number as code:
  `{"error": {"code": 400, "message", "type": "exceed_context_size_error"}}`.                   (llama.cpp, tried)
- Gateways respond with a text, a page, or `{"message"}` / `{"detail"}` / `{"error": "text"}`. (litellm, Cloudflare)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.protocols.kit.codec import ErrorReply, Fault, WireError
from segue.protocols.kit.error_bodies import describe_error, find_error_object
from segue.protocols.kit.error_writing import ErrorRow, error_headers, error_message, find_row
from segue.protocols.kit.json_values import object_of
from segue.protocols.kit.reading import parse_body, text_of


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error body, parsed or not, or the error frame of a stream."""
    error = find_error_object(parse_body(body), status)
    if isinstance(error, WireError):
        return error
    message = text_of(error.get("message")) or text_of(error.get("detail")) or ""
    return describe_error(error, status, message, object_of(error.get("details")).get("error_code"))


_ROWS: Final[Mapping[str, ErrorRow]] = {
    # Anthropic documentation: errors; anthropic 2.8.0: ErrorType; read 2026-11-15
    "overflow": ErrorRow(400, "invalid_request_error"),
    "payload_too_large": ErrorRow(413, "request_too_large"),
    "rate_limit": ErrorRow(429, "rate_limit_error"),
    "quota": ErrorRow(402, "billing_error"),
    "auth": ErrorRow(401, "authentication_error"),
    "auth 403": ErrorRow(403, "permission_error"),
    "auth 400": ErrorRow(400, "invalid_request_error"),
    "auth 502": ErrorRow(502, "api_error"),
    "opaque_rejected": ErrorRow(400, "invalid_request_error"),
    "invalid_history": ErrorRow(400, "invalid_request_error"),
    "invalid_request": ErrorRow(400, "invalid_request_error"),
    "not_found": ErrorRow(404, "not_found_error"),
    "overloaded": ErrorRow(529, "overloaded_error"),
    "server": ErrorRow(500, "api_error"),
    "network": ErrorRow(502, "api_error"),
    "refused": ErrorRow(400, "invalid_request_error"),
}
_OVERFLOW: Final = "prompt is too long: {used} tokens > {limit} maximum"
"""Claude Code reads both numbers."""


def encode_error(fault: Fault) -> ErrorReply:
    """Write an error body; it is the error frame of a stream, too."""
    row = find_row(_ROWS, fault)
    message = error_message(fault, _OVERFLOW, "prompt is too long")
    body: dict[str, object] = {"type": "error", "error": {"type": row.type, "message": message}}
    return ErrorReply(row.status, error_headers(fault, row.status), body)
