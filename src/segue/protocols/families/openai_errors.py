"""Error bodies in OpenAI's format, which its two protocols share: rows for each kind of failure, and the writer.

Facts:
- `{"error": {message, type, param, code}}` and the statuses.    (OpenAI documentation: error codes; recorded bodies)
- codex stops on `server_is_overloaded` and retries `server_error`: what may pass is a `server_error`.
                                                                               (codex 0.166.0 against a probe, 2026-11)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.protocols.kit.codec import ErrorReply, Fault
from segue.protocols.kit.error_writing import ErrorRow, error_headers, error_message, find_row
from segue.protocols.kit.json_values import Wire

ROWS: Final[Mapping[str, ErrorRow]] = {
    # OpenAI documentation: error codes; recorded error bodies; read 2026-11-15
    "overflow": ErrorRow(400, "invalid_request_error", "context_length_exceeded"),
    "payload_too_large": ErrorRow(413, "invalid_request_error", "request_too_large"),
    "rate_limit": ErrorRow(429, "requests", "rate_limit_exceeded"),
    "quota": ErrorRow(429, "insufficient_quota", "insufficient_quota"),
    "quota 402": ErrorRow(402, "insufficient_quota", "insufficient_quota"),
    "auth": ErrorRow(401, "invalid_request_error", "invalid_api_key"),
    "auth 403": ErrorRow(403, "invalid_request_error"),
    "auth 400": ErrorRow(400, "invalid_request_error"),
    "auth 502": ErrorRow(502, "server_error"),
    "opaque_rejected": ErrorRow(400, "invalid_request_error", "invalid_encrypted_content"),
    "invalid_history": ErrorRow(400, "invalid_request_error"),
    "invalid_request": ErrorRow(400, "invalid_request_error"),
    "not_found": ErrorRow(404, "invalid_request_error", "model_not_found"),
    "overloaded": ErrorRow(503, "server_error"),
    "server": ErrorRow(500, "server_error"),
    "network": ErrorRow(502, "server_error"),
    "refused": ErrorRow(400, "invalid_request_error", "content_policy_violation"),
}
_OVERFLOW: Final = (
    "This model's maximum context length is {limit} tokens. However, your messages resulted in {used} tokens. "
    "Please reduce the length of the messages."
)
_UNKNOWN_OVERFLOW: Final = "Your input exceeds the context window of this model. Please adjust your input."


def write_error(fault: Fault) -> ErrorReply:
    """Write an error body."""
    row = find_row(ROWS, fault)
    message = error_message(fault, _OVERFLOW, _UNKNOWN_OVERFLOW)
    error: Wire = {"message": message, "type": row.type, "param": None, "code": row.code}
    return ErrorReply(row.status, error_headers(fault, row.status), {"error": error})
