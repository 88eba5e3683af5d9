"""Error bodies of Cohere's endpoint, and errors in its streams.

Facts this file rests on:
- `{"id", "message"}` with the HTTP status; there is no code and no type.          (cohere 7.3.1, read 2026-11-15)
- A stream ends with `delta.error` in its `message-end`.                                             (cohere 7.3.1)
- Proxies in front of it respond with a text or `{"error": ...}` or `{"detail": ...}`.        (as at every provider)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.protocols.chat_family.errors import describe_unknown, find_error_object
from segue.protocols.kit.codec import ErrorReply, Fault, WireError
from segue.protocols.kit.error_bodies import describe_error
from segue.protocols.kit.error_writing import ErrorRow, error_headers, error_message, find_row
from segue.protocols.kit.reading import text_of


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error in any of these formats; in an unknown format the message is the JSON of the body."""
    error = find_error_object(body, status)
    if isinstance(error, WireError):
        return error
    message = text_of(error.get("message")) or text_of(error.get("detail"))
    return describe_error(error, status, message or describe_unknown(error))


_ROWS: Final[Mapping[str, ErrorRow]] = {
    # cohere 7.3.1: errors by their status; it has no types and no codes; read 2026-11-15
    "overflow": ErrorRow(400, ""),
    "payload_too_large": ErrorRow(413, ""),
    "rate_limit": ErrorRow(429, ""),
    "quota": ErrorRow(402, ""),
    "auth": ErrorRow(401, ""),
    "opaque_rejected": ErrorRow(400, ""),
    "invalid_history": ErrorRow(400, ""),
    "invalid_request": ErrorRow(400, ""),
    "not_found": ErrorRow(404, ""),
    "overloaded": ErrorRow(503, ""),
    "server": ErrorRow(500, ""),
    "network": ErrorRow(504, ""),
    "refused": ErrorRow(400, ""),
}
_OVERFLOW: Final = (
    "too many tokens: total number of tokens in the prompt cannot exceed {limit} - received {used}. "
    "Try using a shorter prompt."
)
_UNKNOWN_OVERFLOW: Final = "too many tokens: the prompt exceeds the context length. Try using a shorter prompt."


def encode_error(fault: Fault) -> ErrorReply:
    """Write an error body."""
    status = find_row(_ROWS, fault).status
    message = error_message(fault, _OVERFLOW, _UNKNOWN_OVERFLOW)
    return ErrorReply(status, error_headers(fault, status), {"message": message})
