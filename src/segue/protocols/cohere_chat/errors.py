"""Error bodies of Cohere's endpoint, and errors in its streams.

Facts this file rests on:
- `{"id", "message"}` with the HTTP status; there is no code and no type.          (cohere 7.3.1, read 2026-11-15)
- A stream ends with `delta.error` in its `message-end`.                                             (cohere 7.3.1)
- Proxies in front of it respond with a text or `{"error": ...}` or `{"detail": ...}`.        (as at every provider)
"""

from __future__ import annotations

from typing import Final

from segue.protocols.chat_family.errors import describe_unknown, find_error_object
from segue.protocols.kit.codec import ErrorReply, Fault, WireError
from segue.protocols.kit.error_bodies import describe_error
from segue.protocols.kit.error_writing import STATUSES, error_headers, error_message, find_status
from segue.protocols.kit.reading import text_of


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error in any of these formats; in an unknown format the message is the JSON of the body."""
    error = find_error_object(body, status)
    if isinstance(error, WireError):
        return error
    message = text_of(error.get("message")) or text_of(error.get("detail"))
    return describe_error(error, status, message or describe_unknown(error))


# cohere 7.3.1: errors by their status; it has no types and no codes; read 2026-11-15
_STATUSES: Final = {**STATUSES, "network": 504}
_OVERFLOW: Final = (
    "too many tokens: total number of tokens in the prompt cannot exceed {limit} - received {used}. "
    "Try using a shorter prompt."
)
_UNKNOWN_OVERFLOW: Final = "too many tokens: the prompt exceeds the context length. Try using a shorter prompt."


def encode_error(fault: Fault) -> ErrorReply:
    """Write an error body."""
    status = find_status(_STATUSES, fault)
    message = error_message(fault, _OVERFLOW, _UNKNOWN_OVERFLOW)
    return ErrorReply(status, error_headers(fault, status), {"message": message})
