"""Error bodies of Ollama: `{"error": "..."}`, with a status before the first line of a stream, later as a line.

Facts this file relies on:
- There is a text and nothing else.                                      (ollama server source @fb30760, 2026-11-15)
- Gateways in front of it answer in OpenAI's format, with a text, or with a page.                    (litellm #6808)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from segue.protocols.kit.codec import WireError
from segue.protocols.kit.reading import parse_body, text_of


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error body, parsed or not, or the error line of a stream."""
    body = parse_body(body)
    if not isinstance(body, Mapping):
        return WireError(status=status, message=text_of(body) or "")
    outer = cast("Mapping[str, object]", body)
    error = outer.get("error", outer)
    if not isinstance(error, Mapping):
        return WireError(status=status, message=text_of(error) or "")
    inner = cast("Mapping[str, object]", error)
    code = inner.get("code")
    return WireError(
        status=status,
        code=None if code is None else str(code),
        type=text_of(inner.get("type")),
        message=text_of(inner.get("message")) or text_of(inner.get("detail")) or "",
    )
