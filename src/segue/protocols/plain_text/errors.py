"""Errors in plain text: `{"error": "..."}`, or the bare text. The format is segue's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from segue.protocols.kit.codec import WireError
from segue.protocols.kit.reading import parse_body, text_of


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error body, parsed or not."""
    body = parse_body(body)
    if not isinstance(body, Mapping):
        return WireError(status=status, message=text_of(body) or "")
    given = cast("Mapping[str, object]", body).get("error")
    if isinstance(given, Mapping):
        inner = cast("Mapping[str, object]", given)
        code = inner.get("code")
        return WireError(
            status=status,
            code=None if code is None else str(code),
            type=text_of(inner.get("type")),
            message=text_of(inner.get("message")) or "",
        )
    return WireError(status=status, message=text_of(given) or "")
