"""What most error bodies have in common: a text, or an object that may be under `error`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from segue.protocols.kit.codec import WireError
from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.reading import integer_of, parse_body, text_of


def find_error_object(body: object, status: int | None) -> Block | WireError:
    """Return the object that describes an error: that under `error`, else the parsed body itself.

    Where there is a text in place of the object, it is the message of the returned error.
    """
    error = cast("Block", body).get("error", cast("object", body)) if isinstance(body, Mapping) else body
    if isinstance(error, Mapping):
        return cast("Block", error)
    return WireError(status=status, message=text_of(error) or "")


def describe_error(error: Block, status: int | None, message: str, code: object = None) -> WireError:
    """Make the error of such an object; its `code` counts unless another one is given."""
    if code is None:
        code = error.get("code")
    return WireError(
        status=status, code=None if code is None else str(code), type=text_of(error.get("type")), message=message
    )


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
