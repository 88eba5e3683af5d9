"""Errors of Google's wires: the status, a code, and a reason in the details that is more specific."""

from __future__ import annotations

from typing import cast

from segue.protocols.kit.codec import WireError
from segue.protocols.kit.error_bodies import find_error_object
from segue.protocols.kit.json_values import object_of
from segue.protocols.kit.reading import integer_of, parse_body, text_of


def decode_google_error(body: object, status: int | None) -> WireError:
    """Read an error body of Google, parsed or not, or the error frame of a stream; a JSON array has it inside."""
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
