"""Error bodies of Anthropic's Messages API.

Facts this file relies on:
- `{"type": "error", "error": {type, message, details: {error_code}}, "request_id"}`; the code identifies the error.
                                                                            (anthropic 2.8.0, read 2026-11-15)
- Third-party servers respond in OpenAI's format on this path, with a number as code:
  `{"error": {"code": 400, "message", "type": "exceed_context_size_error"}}`.                   (llama.cpp, tried)
- Gateways respond with a text, a page, or `{"message"}` / `{"detail"}` / `{"error": "text"}`. (litellm, Cloudflare)
"""

from __future__ import annotations

from segue.protocols.kit.codec import WireError
from segue.protocols.kit.error_bodies import describe_error, find_error_object
from segue.protocols.kit.json_values import object_of
from segue.protocols.kit.reading import parse_body, text_of


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error body, parsed or not, or the error frame of a stream."""
    error = find_error_object(parse_body(body), status)
    if isinstance(error, WireError):
        return error
    message = text_of(error.get("message")) or text_of(error.get("detail")) or ""
    return describe_error(error, status, message, object_of(error.get("details")).get("error_code"))
