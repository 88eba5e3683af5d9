"""Signatures that are readable: a gateway wraps the thinking itself, not a secret of the model.

Facts:
- OpenRouter's Anthropic endpoint returns `redacted_thinking` whose data is `openrouter.reasoning:` and the base64 of
  an item of `reasoning_details`: `{"type": "reasoning.text", "text": ..., "signature": ...}`, a summary, or encrypted
  data.
  Often a thinking block of the same turn has the same text.
                                           (replies published by several projects, 2026-05 to 2026-08; read 2026-11-15)
- OpenRouter takes such a block back unchanged; no other provider can read it.                               (the same)
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

import msgspec

from segue.protocols.kit.json_values import object_of

WRAPPED: Final = "openrouter.reasoning:"
_TEXTS: Final = ("text", "summary")


def is_wrapped(signature: str | None) -> bool:
    """Whether a signature is such a wrapper."""
    return signature is not None and signature.startswith(WRAPPED)


def read_wrapped(signature: str | None) -> str | None:
    """Return the thinking in a signature; None if it is not a wrapper, or one without readable text."""
    if signature is None or not signature.startswith(WRAPPED):
        return None
    data = signature.removeprefix(WRAPPED).rstrip("=").replace("-", "+").replace("_", "/")
    try:
        item = object_of(msgspec.json.decode(base64.b64decode(data + "=" * (-len(data) % 4), validate=True)))
    except (binascii.Error, msgspec.DecodeError, UnicodeDecodeError, ValueError):
        return None
    texts = (item.get(key) for key in _TEXTS)
    return next((text for text in texts if isinstance(text, str) and text.strip()), None)
