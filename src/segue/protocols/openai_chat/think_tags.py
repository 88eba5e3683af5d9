"""Reasoning that arrives inside `<think>` tags in the text: split out of it, and written back.

Facts this file rests on:
- Servers without a reasoning parser leave the tags in the text; some prompts already end in the opening tag, so only
  the closing one arrives.                                          (skales #166, MiniMaxH3 #8)
- A tag may be cut anywhere between two chunks, and a model that was told not to think writes an empty pair.
                                                                     (vercel/ai ce9daa3; recorded traffic, 2026-11)

White space inside and behind the tags stays where it is, so that what is written back is what was read. An empty pair
is no thinking: it stands in the shape of the text behind it. So does a closing tag that nothing opened: the words
before it may have been thinking, but a stream has told them as text by then, and a whole reply says what its stream
says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent
from segue.models.model import Model
from segue.protocols.kit.assembly import Assembly, Part
from segue.protocols.kit.reading import VERBATIM, verbatim_of
from segue.protocols.openai_chat.rules import PROTOCOL

OPEN: Final = "<think>"
CLOSE: Final = "</think>"
TAGS: Final = OPEN
"""The signature of thinking that came in tags."""

_NO_MODEL: Final = Model("", "", PROTOCOL)


class TagReader:
    """Takes text as it comes and tells an assembly what is thinking and what is not."""

    __slots__ = ("_blank", "_inside", "_out", "_pending", "_prefix", "_seen", "_text", "_thinking")

    def __init__(self, out: Assembly) -> None:
        self._out = out
        self._text: Part | None = None
        self._thinking: Part | None = None
        self._pending = ""  # the beginning of what may become a tag
        self._inside = False
        self._seen = False  # a tag of either kind
        self._blank = ""  # white space since the opening tag, until there are words
        self._prefix = ""  # an empty pair that waits for the text behind it

    def feed(self, chunk: str) -> None:
        """Take the next piece of text."""
        rest = self._pending + chunk
        self._pending = ""
        while rest:
            tag, at = self._next_tag(rest)
            if tag is None:
                held = _tail(rest, (CLOSE,) if self._inside else (OPEN,) if self._seen else (OPEN, CLOSE))
                self._pending = rest[len(rest) - held :] if held else ""
                self._emit(rest[: len(rest) - held] if held else rest)
                return
            self._emit(rest[:at])
            self._turn(tag)
            rest = rest[at + len(tag) :]

    def finish(self) -> None:
        """Say what was held back: it was no tag."""
        pending, self._pending = self._pending, ""
        self._emit(pending)
        if self._thinking is not None:
            _note(self._thinking, "closed", value=False)
            self._out.close(self._thinking)
            return
        held = self._prefix + (f"{OPEN}{self._blank}" if self._inside else "")
        if held and self._out.parts:
            # Tags without words behind the last words: there is nothing better to do with them.
            self._prefix, self._inside = "", False
            self._emit(held)

    def _next_tag(self, text: str) -> tuple[str | None, int]:
        if self._inside:
            at = text.find(CLOSE)
            return (CLOSE, at) if at >= 0 else (None, -1)
        opens = text.find(OPEN)
        closes = -1 if self._seen else text.find(CLOSE)
        if closes >= 0 and (opens < 0 or closes < opens):
            return CLOSE, closes
        return (OPEN, opens) if opens >= 0 else (None, -1)

    def _turn(self, tag: str) -> None:
        out = self._out
        if tag == OPEN:
            self._inside = self._seen = True
            if self._text is not None:
                out.close(self._text)
                self._text = None
            return
        if self._inside and self._thinking is None:
            self._prefix += f"{OPEN}{self._blank}{CLOSE}"
        elif self._thinking is not None:
            out.close(self._thinking)
        else:
            self._prefix += CLOSE
            if self._text is not None:
                out.close(self._text)
        self._seen = True
        self._inside = False
        self._text = self._thinking = None
        self._blank = ""

    def _emit(self, text: str) -> None:
        if not text:
            return
        out = self._out
        if not self._inside:
            if self._text is None:
                self._text = self._opened(out.open_text())
            out.grow(self._text, text)
        elif self._thinking is not None:
            out.grow(self._thinking, text)
        elif text.isspace():
            self._blank += text
        else:
            self._thinking = self._opened(out.open_thinking())
            self._thinking.signature = TAGS
            out.grow(self._thinking, self._blank + text)

    def _opened(self, part: Part) -> Part:
        """Note on a new part the empty tags that stood before it."""
        if self._prefix:
            _note(part, "think", value=self._prefix)
            self._prefix = ""
        return part


def _note(part: Part, key: str, *, value: object) -> None:
    part.extra = {PROTOCOL: {VERBATIM: {**verbatim_of(part.extra, PROTOCOL), key: value}}}


def _tail(text: str, tags: tuple[str, ...]) -> int:
    """How many characters at the end could be the beginning of a tag."""
    at = text.rfind("<", max(0, len(text) - len(CLOSE) + 1))
    if at < 0:
        return 0
    end = text[at:]
    return len(end) if any(tag.startswith(end) for tag in tags) else 0


def split_tags(text: str) -> tuple[AssistantContent, ...]:
    """Split a whole text; one without tags stays one text."""
    if OPEN not in text and CLOSE not in text:
        return (TextContent(text=text),)
    out = Assembly(_NO_MODEL, PROTOCOL)
    reader = TagReader(out)
    reader.feed(text)
    reader.finish()
    out.close_all()
    return out.message().content


def write_thinking(content: ThinkingContent) -> str:
    """Write thinking in its tags, as many of them as there were."""
    verbatim = verbatim_of(content.extra, PROTOCOL)
    closing = "" if verbatim.get("closed") is False else CLOSE
    return f"{_prefix(verbatim)}{OPEN}{content.thinking}{closing}"


def write_text(content: TextContent) -> str:
    """Write a text with the empty tags that stood before it."""
    return f"{_prefix(verbatim_of(content.extra, PROTOCOL))}{content.text}"


def _prefix(verbatim: Mapping[str, object]) -> str:
    prefix = verbatim.get("think")
    return prefix if isinstance(prefix, str) else ""
