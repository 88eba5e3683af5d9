"""Error bodies of Mistral's endpoint, and error objects in its streams.

Facts this file rests on:
- `{"object": "error", "message", "type", "param", "code"}`; the code is a number as text (3230, 3280).
                                                            (ironclaw #1241, 2026-03-16; and many other issues)
- Schema errors have status 422 and `{"detail": [{"type", "loc", "msg"}]}`, also inside `message`.
                                                                   (mistral-go #2; php-mistral #76, 2025-11-13)
- The proxy in front responds `{"message", "request_id"}` or `{"detail": "text"}`.  (nextcloud integration_openai #76)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from segue.protocols.chat_family.errors import describe_unknown, find_error_object
from segue.protocols.kit.codec import ErrorReply, Fault, WireError
from segue.protocols.kit.error_bodies import describe_error
from segue.protocols.kit.error_writing import ErrorRow, error_headers, error_message, find_row
from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.reading import integer_of, text_of


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error in any of these formats; in an unknown format the message is the JSON of the body."""
    error = find_error_object(body, status)
    if isinstance(error, WireError):
        return error
    status = status if status is not None else integer_of(error.get("raw_status_code"))
    message = _message(error.get("message")) or _message(error.get("detail"))
    return describe_error(error, status, message or describe_unknown(error))


def _message(value: object) -> str:
    """Give a message as text; a list of schema errors is joined, each with its path."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return _message(cast("Block", value).get("detail"))
    if not isinstance(value, list):
        return ""
    found: list[str] = []
    for item in cast("list[object]", value):
        text = text_of(object_of(item).get("msg")) or (item if isinstance(item, str) else "")
        place = object_of(item).get("loc")
        steps = cast("Sequence[object]", place) if isinstance(place, (list, tuple)) else ()
        found.append(f"{'.'.join(map(str, steps))}: {text}" if steps else text)
    return "; ".join(filter(None, found))


_ROWS: Final[Mapping[str, ErrorRow]] = {
    # error bodies that users reported, see `failures.codes`; Mistral documentation: status codes; read 2026-11-15
    "overflow": ErrorRow(400, "invalid_request_prompt", "3051"),
    "payload_too_large": ErrorRow(413, "request_too_large"),
    "rate_limit": ErrorRow(429, "rate_limited", "1300"),
    "quota": ErrorRow(402, "payment_required"),
    "auth": ErrorRow(401, "unauthorized"),
    "auth 403": ErrorRow(403, "forbidden"),
    "opaque_rejected": ErrorRow(400, "invalid_request_error"),
    "invalid_history": ErrorRow(400, "invalid_request_message_order", "3230"),
    "invalid_request": ErrorRow(400, "invalid_request_error"),
    "not_found": ErrorRow(404, "model_not_found", "1500"),
    "overloaded": ErrorRow(503, "unreachable_backend"),
    "server": ErrorRow(500, "internal_server_error"),
    "network": ErrorRow(502, "unreachable_backend"),
    "refused": ErrorRow(400, "content_policy_violation"),
}
_OVERFLOW: Final = "Prompt contains {used} tokens, too large for model with {limit} maximum context length"
_UNKNOWN_OVERFLOW: Final = "Prompt is too large for model with its maximum context length"


def encode_error(fault: Fault) -> ErrorReply:
    """Write an error body; it is the error frame of a stream, too."""
    row = find_row(_ROWS, fault)
    message = error_message(fault, _OVERFLOW, _UNKNOWN_OVERFLOW)
    body: dict[str, object] = {
        "object": "error",
        "message": message,
        "type": row.type,
        "param": None,
        "code": row.code,
    }
    return ErrorReply(row.status, error_headers(fault, row.status), body)
