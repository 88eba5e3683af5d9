"""Errors of the plain-text protocol: `{"error": "..."}`, or the bare text. segue defines this format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from segue.protocols.kit.codec import WireError
from segue.protocols.kit.error_bodies import describe_error
from segue.protocols.kit.reading import parse_body, text_of


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error body, parsed or not."""
    body = parse_body(body)
    if not isinstance(body, Mapping):
        return WireError(status=status, message=text_of(body) or "")
    given = cast("Mapping[str, object]", body).get("error")
    if isinstance(given, Mapping):
        error = cast("Mapping[str, object]", given)
        return describe_error(error, status, text_of(error.get("message")) or "")
    return WireError(status=status, message=text_of(given) or "")
