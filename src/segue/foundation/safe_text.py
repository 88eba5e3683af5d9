"""Text that is shown: in a terminal, in a log. Control characters of a name or a reply are escaped.

Facts:
- A terminal executes C0 and C1 control characters; of these, line feed and tab are harmless.  (ECMA-48)
- Characters that change the direction of text reorder what is shown of a command or a path.     (Unicode 15, UAX 9)
"""

from __future__ import annotations

import re
from typing import Final

UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def printable(text: str) -> str:
    """Escape the characters that a terminal would execute, or that reorder a line."""
    return UNSAFE.sub(_escape, text)


def in_one_line(text: str) -> str:
    """Escape line breaks as well, so that a name cannot look like a line of its own."""
    return printable(text).replace("\n", "\\x0a")


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
