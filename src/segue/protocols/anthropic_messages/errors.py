"""Error bodies of Anthropic's Messages API.

Facts this file relies on:
- `{"type": "error", "error": {type, message, details: {error_code}}, "request_id"}`; the code identifies the error.
                                                                            (anthropic 2.8.0, read 2026-11-15)
- Third-party servers respond in OpenAI's format on this path, with a number as code:
  `{"error": {"code": 400, "message", "type": "exceed_context_size_error"}}`.                   (llama.cpp, tried)
- Gateways respond with a text, a page, or `{"message"}` / `{"detail"}` / `{"error": "text"}`. (litellm, Cloudflare)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from segue.protocols.kit.codec import WireError
from segue.protocols.kit.reading import parse_body, text_of


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error body, parsed or not, or the error frame of a stream."""
    body = parse_body(body)
    if not isinstance(body, Mapping):
        return WireError(status=status, message=body if isinstance(body, str) else "")
    outer = cast("Mapping[str, object]", body)
    error = outer.get("error", outer)
    if not isinstance(error, Mapping):
        return WireError(status=status, message=text_of(error) or "")
    inner = cast("Mapping[str, object]", error)
    details = inner.get("details")
    code = cast("Mapping[str, object]", details).get("error_code") if isinstance(details, Mapping) else None
    if code is None:
        code = inner.get("code")
    return WireError(
        status=status,
        code=None if code is None else str(code),
        type=text_of(inner.get("type")),
        message=text_of(inner.get("message")) or text_of(inner.get("detail")) or "",
    )
