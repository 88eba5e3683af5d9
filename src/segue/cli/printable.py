"""Text for a terminal: control characters of a conversation are shown, not executed."""

from __future__ import annotations

from collections.abc import Iterator


def printable(text: str) -> str:
    """Replace control characters, which a terminal would execute."""
    return "".join(_safe(text)) if not text.isprintable() else text


def _safe(text: str) -> Iterator[str]:
    for character in text:
        if character.isprintable() or character in "\n\t":
            yield character
        else:
            yield f"\\x{ord(character):02x}" if ord(character) < 256 else "\ufffd"
