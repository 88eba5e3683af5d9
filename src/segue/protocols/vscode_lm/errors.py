"""Errors of the VS Code language model API.

Facts this file relies on:
- `LanguageModelError.code` is NoPermissions, Blocked (a quota), NotFound, or Unknown with the actual error in `cause`.
                                                                               (@types/vscode 1.140.0, read 2026-11-15)

In segue's JSON: `{"error": {"code", "message", "cause"}}`, in a stream `{"$": "error", "code", "message", "cause"}`;
`cause` is a string.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.protocols.kit.codec import ErrorReply, Fault, WireError
from segue.protocols.kit.error_bodies import find_error_object
from segue.protocols.kit.error_writing import ErrorRow, error_headers, error_message, find_row
from segue.protocols.kit.reading import parse_body, text_of


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error, parsed or not, or the error line of a stream."""
    error = find_error_object(parse_body(body), status)
    if isinstance(error, WireError):
        return error
    texts = (text_of(error.get("message")), text_of(error.get("cause")))
    return WireError(
        status=status, code=text_of(error.get("code")), message=": ".join(value for value in texts if value)
    )


_ROWS: Final[Mapping[str, ErrorRow]] = {
    # @types/vscode 1.140.0: LanguageModelError; there is no HTTP, the statuses are those of other protocols
    "overflow": ErrorRow(400, "Unknown"),
    "payload_too_large": ErrorRow(413, "Unknown"),
    "rate_limit": ErrorRow(429, "Blocked"),
    "quota": ErrorRow(402, "Blocked"),
    "auth": ErrorRow(401, "NoPermissions"),
    "opaque_rejected": ErrorRow(400, "Unknown"),
    "invalid_history": ErrorRow(400, "Unknown"),
    "invalid_request": ErrorRow(400, "Unknown"),
    "not_found": ErrorRow(404, "NotFound"),
    "overloaded": ErrorRow(503, "Unknown"),
    "server": ErrorRow(500, "Unknown"),
    "network": ErrorRow(502, "Unknown"),
    "refused": ErrorRow(400, "Blocked"),
}
_OVERFLOW: Final = "Message exceeds token limit: prompt is too long: {used} tokens > {limit} maximum"
_UNKNOWN_OVERFLOW: Final = "Message exceeds token limit: the prompt is too long"


def encode_error(fault: Fault) -> ErrorReply:
    """Write an error in segue's JSON; in a stream its object is a line of the type `error`."""
    row = find_row(_ROWS, fault)
    error: dict[str, object] = {"code": row.type, "message": error_message(fault, _OVERFLOW, _UNKNOWN_OVERFLOW)}
    return ErrorReply(row.status, error_headers(fault, row.status), {"error": error})
