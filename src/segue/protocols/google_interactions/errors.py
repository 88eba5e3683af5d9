"""Error bodies of the Interactions API, and error events of its streams.

Facts this file rests on:
- An error body is `{"error": {"code", "message"}}` with a code in small letters; an event of a stream has the same
  `error` beside `event_type: error`.        (google-genai 3.1.0: CreateInteractionClientError, ErrorEvent; 2026-11-17)
- Codes: invalid_request, failed_precondition, authentication, permission_denied, payment_required, not_found,
  model_not_found, rate_limit_exceeded, missing_thought_signature, ...; a bad signature may also be `invalid_request`
  with "thought signature" in the text.                        (list of a public adapter's live calls, read 2026-11-16)
- The servers before it write the errors of other Google APIs: a number as `code`, a name as `status`.
                                                                                       (recorded traffic, 2026-11)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.protocols.kit.codec import ErrorReply, Fault
from segue.protocols.kit.error_bodies import decode_google_error
from segue.protocols.kit.error_writing import ErrorRow, error_headers, error_message, find_row
from segue.protocols.kit.json_values import Wire

decode_error: Final = decode_google_error

_ROWS: Final[Mapping[str, ErrorRow]] = {
    # codes of a public adapter's live calls; statuses as at generateContent; read 2026-11-16
    "overflow": ErrorRow(400, "invalid_argument"),
    "payload_too_large": ErrorRow(413, "invalid_argument"),
    "rate_limit": ErrorRow(429, "rate_limit_exceeded"),
    "quota": ErrorRow(402, "payment_required"),
    "auth": ErrorRow(401, "authentication"),
    "auth 403": ErrorRow(403, "permission_denied"),
    "auth 400": ErrorRow(400, "authentication"),
    "auth 502": ErrorRow(502, "internal"),
    "opaque_rejected": ErrorRow(400, "invalid_request"),
    "invalid_history": ErrorRow(400, "invalid_request"),
    "invalid_request": ErrorRow(400, "invalid_request"),
    "not_found": ErrorRow(404, "not_found"),
    "overloaded": ErrorRow(503, "unavailable"),
    "server": ErrorRow(500, "internal"),
    "network": ErrorRow(502, "internal"),
    "refused": ErrorRow(400, "content_blocked"),
}
_OVERFLOW: Final = "The input token count ({used}) exceeds the maximum number of tokens allowed ({limit})."
_UNKNOWN_OVERFLOW: Final = "The input token count exceeds the maximum number of tokens allowed."


def encode_error(fault: Fault) -> ErrorReply:
    """Write an error body."""
    row = find_row(_ROWS, fault)
    return ErrorReply(row.status, error_headers(fault, row.status), {"error": error_object(fault)})


def error_object(fault: Fault) -> Wire:
    """Write the `error` of a body or of an event."""
    return {"code": find_row(_ROWS, fault).type, "message": error_message(fault, _OVERFLOW, _UNKNOWN_OVERFLOW)}
