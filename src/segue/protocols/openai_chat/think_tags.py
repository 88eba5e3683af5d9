"""Reasoning inside tags such as `<think>` in the text: separated from the text, and written back.

Facts this file rests on:
- Servers without a reasoning parser leave the tags in the text; some prompts already end in the opening tag, so only
  the closing one arrives.                                          (skales #166, MiniMaxH3 #8)
- MiniMax M3 writes `<mm:think>`.                                        (vLLM's parser, articles; read 2026-11-16)
- A tag may be split between two chunks, and a model with thinking turned off writes an empty pair.
                                                                     (vercel/ai ce9daa3; recorded traffic, 2026-11)

White space inside and behind the tags stays where it is, so that the written text equals the text that was read.

Choices that texts and thinking keep, also those of a reply, because the tags are part of what the model wrote:
- `tags`: the tags that stand before the content and enclose no thinking: an empty pair, or a closing tag that nothing
  opened. The text before such a closing tag may have been thinking, but a stream has sent it as text by then, and a
  whole reply equals its stream.
- `closing_tag`: empty where thinking was cut off.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent
from segue.models.model import Model
from segue.protocols.kit.assembly import Assembly, Part
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import EMPTY, Wire, object_of
from segue.protocols.kit.verbatim import VERBATIM, choose, chosen
from segue.protocols.openai_chat.rules import PROTOCOL

OPEN: Final = "<think>"
CLOSE: Final = "</think>"
_PAIRS: Final = {OPEN: CLOSE, "<mm:think>": "</mm:think>"}
TAGS: Final = frozenset(_PAIRS)
"""The signatures of thinking that came in tags: the opening tag."""
_LONGEST: Final = max(map(len, _PAIRS.values()))

_NO_MODEL: Final = Model("", "", PROTOCOL)


class TagReader:
    """Separates thinking from text, piece by piece, and adds both to an assembly."""

    __slots__ = ("_blank", "_inside", "_open", "_out", "_pending", "_seen", "_tags", "_text", "_thinking")

    def __init__(self, out: Assembly) -> None:
        self._out = out
        self._text: Part | None = None
        self._thinking: Part | None = None
        self._pending = ""  # the beginning of what may become a tag
        self._inside = False
        self._open = OPEN  # the latest opening tag
        self._seen = False  # a tag of either kind
        self._blank = ""  # white space since the opening tag, until there is text
        self._tags = ""  # tags without thinking that wait for the content behind them

    def feed(self, chunk: str) -> None:
        """Read the next piece of text."""
        rest = self._pending + chunk
        self._pending = ""
        while rest:
            tag, at = self._next_tag(rest)
            if tag is None:
                held = _tail(rest, self._expected())
                self._pending = rest[len(rest) - held :] if held else ""
                self._add(rest[: len(rest) - held] if held else rest)
                return
            self._add(rest[:at])
            self._turn(tag)
            rest = rest[at + len(tag) :]

    def finish(self) -> None:
        """Add what was held back: it was no tag."""
        pending, self._pending = self._pending, ""
        self._add(pending)
        if self._thinking is not None:
            _note(self._thinking, choose("closing_tag", _PAIRS[self._open], ""))
            self._out.close(self._thinking)
            return
        held = self._tags + (f"{self._open}{self._blank}" if self._inside else "")
        if held and self._out.parts:
            # Tags behind the last text, with nothing behind them, are text.
            self._tags, self._inside = "", False
            self._add(held)

    def _expected(self) -> tuple[str, ...]:
        if self._inside:
            return (_PAIRS[self._open],)
        return (*_PAIRS,) if self._seen else (*_PAIRS, *_PAIRS.values())

    def _next_tag(self, text: str) -> tuple[str | None, int]:
        found = [(at, tag) for tag in self._expected() if (at := text.find(tag)) >= 0]
        if not found:
            return None, -1
        at, tag = min(found)
        return tag, at

    def _turn(self, tag: str) -> None:
        out = self._out
        if tag in _PAIRS:
            self._inside = self._seen = True
            self._open = tag
            if self._text is not None:
                out.close(self._text)
                self._text = None
            return
        if self._inside and self._thinking is None:
            self._tags += f"{self._open}{self._blank}{tag}"
        elif self._thinking is not None:
            out.close(self._thinking)
        else:
            self._tags += tag
            if self._text is not None:
                out.close(self._text)
        self._seen = True
        self._inside = False
        self._text = self._thinking = None
        self._blank = ""

    def _add(self, text: str) -> None:
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
            self._thinking.signature = self._open
            out.grow(self._thinking, self._blank + text)

    def _opened(self, part: Part) -> Part:
        """Note on a new part the tags that stand before it."""
        if self._tags:
            _note(part, choose("tags", "", self._tags))
            self._tags = ""
        return part


def _note(part: Part, choices: Wire) -> None:
    """Add a choice to those of a part."""
    known = object_of(part.extra[PROTOCOL][VERBATIM]) if part.extra is not None else EMPTY
    part.extra = {PROTOCOL: {VERBATIM: {**known, **choices}}}


def _tail(text: str, tags: tuple[str, ...]) -> int:
    """Count the characters at the end that could be the beginning of a tag."""
    at = text.rfind("<", max(0, len(text) - _LONGEST + 1))
    if at < 0:
        return 0
    end = text[at:]
    return len(end) if any(tag.startswith(end) for tag in tags) else 0


def split_tags(text: str) -> tuple[AssistantContent, ...]:
    """Split a whole text; one without tags stays one text."""
    if "think>" not in text:
        return (TextContent(text=text),)
    out = Assembly(_NO_MODEL, PROTOCOL)
    reader = TagReader(out)
    reader.feed(text)
    reader.finish()
    out.close_all()
    return out.message().content


def in_tags(content: ThinkingContent, endpoint: Endpoint) -> ThinkingContent:
    """Give thinking with a tag as its signature: the one in which it arrived, else that of the model."""
    if content.thinking_signature in TAGS:
        return content
    return replace(content, thinking_signature=endpoint.dialect.think_tag)


def write_thinking(content: ThinkingContent) -> str:
    """Write thinking in its tags."""
    opening = content.thinking_signature or OPEN
    closing = chosen(content.extra, PROTOCOL, "closing_tag", _PAIRS[opening])
    return f"{_tags_before(content)}{opening}{content.thinking}{closing}"


def write_text(content: TextContent) -> str:
    """Write a text with the tags that stand before it."""
    return f"{_tags_before(content)}{content.text}" if content.extra is not None else content.text


def _tags_before(content: TextContent | ThinkingContent) -> str:
    tags = chosen(content.extra, PROTOCOL, "tags", "")
    return tags if isinstance(tags, str) else ""
