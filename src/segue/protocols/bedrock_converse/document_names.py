"""Names of documents: valid, unique in a request, and the same in every later request.

Facts this file rests on:
- A name has 1 to 200 letters, digits, hyphens, brackets and spaces, never two spaces in a row: "The document file name
  can only contain ...".                                 (AWS DocumentBlock; vercel/ai #20365, opencode #19964; 2026-09)
- Letters are those of ASCII. Underscores are refused according to some reports and accepted according to others.
                                                                         (vercel/ai #20366 and opencode #48756, 2026-09)
- "Messages can't contain duplicate document names": anywhere in a request, results included.
                                                                  (bifrost #7003, litellm #30093, opencode #48756; 2026)

The extension is removed, because the format contains it; characters that are not allowed become a space. A name that
is taken gets the next number. Only earlier documents decide, so a request that was answered stays a prefix of the next.
"""

from __future__ import annotations

import re
from typing import Final

from segue.conversation.messages import Message
from segue.protocols.bedrock_converse.media_types import EXTENSIONS, kind_of

LONGEST: Final = 200
NAMELESS: Final = "document"

_REFUSED: Final = re.compile(r"[^a-zA-Z0-9\-()\[\]]+")


class DocumentNames:
    """The names of the documents of one request, in their order."""

    __slots__ = ("_numbers", "_taken")

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}
        """The number that was found free for a name. Names stay taken, so the lower ones need not be tried again."""

    def fitting(self, name: str | None, form: str | None) -> str:
        """Give the valid name for a document of this format at this place, without reserving it."""
        base = legal_name(name, form)
        if base.casefold() not in self._taken:
            return base
        number = self._numbers.get(base, 2)
        while True:
            suffix = f" ({number})"
            numbered = base[: LONGEST - len(suffix)].rstrip() + suffix
            if numbered.casefold() not in self._taken:
                self._numbers[base] = number
                return numbered
            number += 1

    def take(self, name: object) -> None:
        """Reserve a name."""
        if isinstance(name, str):
            self._taken.add(name.casefold())


def names_documents(message: Message) -> bool:
    """Whether a message has documents: their names are not available to later ones."""
    for piece in message.content:
        if piece.kind == "file" and kind_of(piece.mime_type)[0] == "document":
            return True
        if piece.kind == "native" and "document" in piece.block:
            return True
    return False


def legal_name(name: str | None, form: str | None) -> str:
    """Give a name that the service accepts, as close to the file's own as possible."""
    given = name or ""
    stem, dot, ending = given.rpartition(".")
    if dot and stem and ending.lower() in EXTENSIONS.get(form or "", ()):
        given = stem
    return _REFUSED.sub(" ", given).strip()[:LONGEST].rstrip() or NAMELESS
