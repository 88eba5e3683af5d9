"""Error bodies.

Facts this file rests on:
- `{"error": {code, message, status, details: [{"@type", reason, ...}]}}`, also in mid-stream; `status` is a name
  of google.rpc.Code, `code` the HTTP status.                            (google-genai 3.1.0: errors, read 2026-11-15)
- A stream in the form of an array has its error in an array.                                             (the same)
- Gateways answer with a text, a page, or `{"message"}` / `{"error": "text"}`.                   (litellm, Cloudflare)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from segue.protocols.google_genai.keys import object_of
from segue.protocols.kit.codec import WireError
from segue.protocols.kit.json_values import Block
from segue.protocols.kit.reading import parse_body, text_of


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error body, parsed or not, or the error frame of a stream."""
    body = parse_body(body)
    if isinstance(body, list) and body:
        body = cast("list[object]", body)[0]
    if not isinstance(body, Mapping):
        return WireError(status=status, message=body if isinstance(body, str) else "")
    outer = cast("Block", body)
    error = outer.get("error", outer)
    if not isinstance(error, Mapping):
        return WireError(status=status, message=text_of(error) or "")
    inner = cast("Block", error)
    code = inner.get("code")
    if status is None and isinstance(code, int) and not isinstance(code, bool):
        status = code
    reason = _reason(inner.get("details"))
    if reason is None and code is not None:
        reason = str(code)
    return WireError(
        status=status,
        code=reason,
        type=text_of(inner.get("status")),
        message=text_of(inner.get("message")) or "",
    )


def _reason(details: object) -> str | None:
    """Find the reason in `google.rpc.ErrorInfo`; it is more exact than the status."""
    if not isinstance(details, list):
        return None
    for detail in cast("list[object]", details):
        reason = text_of(object_of(detail).get("reason"))
        if reason is not None:
            return reason
    return None
