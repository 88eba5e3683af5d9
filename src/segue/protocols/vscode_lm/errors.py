"""Errors of the VS Code language model API.

Facts this file relies on:
- `LanguageModelError.code` is NoPermissions, Blocked (a quota), NotFound, or Unknown with the actual error in `cause`.
                                                                               (@types/vscode 1.140.0, read 2026-11-15)

In segue's JSON: `{"error": {"code", "message", "cause"}}`, in a stream `{"$": "error", "code", "message", "cause"}`;
`cause` is a string.
"""

from __future__ import annotations

from segue.protocols.kit.codec import WireError
from segue.protocols.kit.error_bodies import find_error_object
from segue.protocols.kit.reading import parse_body, text_of


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error, parsed or not, or the error line of a stream."""
    error = find_error_object(parse_body(body), status)
    if isinstance(error, WireError):
        return error
    texts = (text_of(error.get("message")), text_of(error.get("cause")))
    return WireError(
        status=status, code=text_of(error.get("code")), message=": ".join(value for value in texts if value)
    )
