"""Errors of Cohere's v1 chat endpoint, both ways.

Facts this file rests on, all of cohere 7.3.1, read 2026-11-15:
- An error is an object with `message`; the status says what it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from segue import WireError
from segue.protocols import JsonObject
from segue.protocols.kit.codec import ErrorReply, Fault
from segue.protocols.kit.error_writing import STATUSES, error_headers, error_message, find_status
from segue.protocols.kit.reading import parse_body, text_of

_OVERFLOW: Final = "too many tokens: the prompt has {used}, and cannot exceed {limit}; use a shorter prompt"
_UNKNOWN_OVERFLOW: Final = "too many tokens: the prompt exceeds the context length; use a shorter prompt"


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error body, parsed or not."""
    parsed = parse_body(body)
    if not isinstance(parsed, Mapping):
        return WireError(status=status, message=text_of(parsed) or "")
    return WireError(status=status, message=text_of(cast("JsonObject", parsed).get("message")) or "")


def encode_error(fault: Fault) -> ErrorReply:
    """Write an error body with its status."""
    status = find_status(STATUSES, fault)
    message = error_message(fault, _OVERFLOW, _UNKNOWN_OVERFLOW)
    return ErrorReply(status, error_headers(fault, status), {"message": message})
