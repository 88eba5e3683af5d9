"""Messages of the library in the words of the program: its options instead of Python arguments.

The library explains what to write in Python, such as `Policy(reasoning="drop")`. The program has an option for some of
it. For the rest there is nothing a user of the program could do, so that part of the sentence is left out.
"""

from __future__ import annotations

import re
from typing import Final

_OPTIONS: Final = (
    ("or pass api_key=... or auth=...", "or use --key"),
    ("pass api_key=... or auth=...", "use --key"),
    ("Remove it from Policy(refuse=...), change the conversation", "Run without --strict, change the conversation"),
    (": that of Policy(media=...), or the data of a data URL", ": the data of a data URL"),
    ("pass base_url=... with a URL", "use --base-url with a URL"),
    ("or pass base_url=...", "or use --base-url"),
    ("set base_url", "set it with --base-url"),
    ("check base_url", "check --base-url"),
    ("use read_session() for session files", "write one conversation or message on each line"),
    ("name its format with format=...", "name its format with --from"),
    ("pass folder=... and import the file", "name a folder with -o and import the file"),
    (" needs model=..., the model", " needs --model, the model"),
)
"""Phrases with an equivalent in the program."""
_CONVERT: Final = (('Policy(reasoning="drop")', "--reasoning drop"),)
"""Phrases with an equivalent among the options of `segue convert`."""
_CALL: Final = r"[A-Z]\w*(?:\.\w+)?\((?:[^()]|\([^()]*\))*\)"
"""A Python call of a class or of its method, such as `Policy(media=...)` or `Model("id", "provider", "protocol")`."""
_CLAUSE: Final = re.compile(rf"(?:(?:;|,)(?: or)? |(?<=[.?]) )(?:(?!; |, or |[.?] ).)*?{_CALL}[^.;?)]*(?:[.?](?= |$))?")
"""The part of a sentence, or the sentence, that such a call is in."""


def in_program_words(text: str, *, converts: bool = False) -> str:
    """Replace Python arguments with options of the program; `converts` for the command `convert`."""
    for phrase, option in (*_OPTIONS, *(_CONVERT if converts else ())):
        text = text.replace(phrase, option)
    return _CLAUSE.sub(_end, text)


def _end(part: re.Match[str]) -> str:
    """Keep the full stop of a sentence that lost its last part; nothing remains of a whole sentence."""
    return "" if part[0].startswith(" ") or not part[0].endswith((".", "?")) else "."
