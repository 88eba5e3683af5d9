"""Errors of the VS Code language model API.

Facts this file relies on:
- `LanguageModelError.code` is NoPermissions, Blocked (a quota), NotFound, or Unknown, whose `cause` holds the real one.
                                                                               (@types/vscode 1.140.0, read 2026-11-15)

In segue's JSON: `{"error": {"code", "message", "cause"}}`, in a stream `{"$": "error", "code", "message", "cause"}`;
`cause` is a string.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from segue.protocols.kit.codec import WireError
from segue.protocols.kit.reading import parse_body, text_of


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error, parsed or not, or the error line of a stream."""
    body = parse_body(body)
    if not isinstance(body, Mapping):
        return WireError(status=status, message=text_of(body) or "")
    outer = cast("Mapping[str, object]", body)
    error = outer.get("error", outer)
    if not isinstance(error, Mapping):
        return WireError(status=status, message=text_of(error) or "")
    inner = cast("Mapping[str, object]", error)
    texts = (text_of(inner.get("message")), text_of(inner.get("cause")))
    return WireError(
        status=status, code=text_of(inner.get("code")), message=": ".join(value for value in texts if value)
    )
