"""Error bodies of Cohere's endpoint, and errors in its streams.

Facts this file rests on:
- `{"id", "message"}` with the HTTP status; there is no code and no type.          (cohere 7.3.1, read 2026-11-15)
- A stream ends with `delta.error` in its `message-end`.                                             (cohere 7.3.1)
- The proxy before it answers with a text or `{"error": ...}` or `{"detail": ...}`.      (as in front of every provider)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from segue.protocols.kit.codec import WireError
from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.reading import parse_body, text_of


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error in any of these formats; the message of another is its JSON."""
    body = parse_body(body)
    if not isinstance(body, Mapping):
        return WireError(status=status, message=body if isinstance(body, str) else "")
    outer = cast("Block", body)
    error = outer.get("error")
    if isinstance(error, str):
        return WireError(status=status, message=error)
    inner = object_of(error) or outer
    code = inner.get("code")
    message = text_of(inner.get("message")) or text_of(inner.get("detail"))
    return WireError(
        status=status,
        code=None if code is None else str(code),
        type=text_of(inner.get("type")),
        message=message or json.dumps(inner, ensure_ascii=False, default=str),
    )
