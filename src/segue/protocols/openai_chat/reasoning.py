"""Reasoning in the fields that vendors added to an assistant message, both ways.

The signature of such thinking is the name of its field, or the list of details as compact JSON.

Choice that messages keep: `field`, the fields that hold the reasoning, where several repeat it.

Reasoning inside tags such as `<think>` in the text: separated from the text, and written back.

White space inside and after the tags stays where it is, so that the written text equals the text that was read.

Choices that texts and thinking keep, also those of a reply, because the tags are part of what the model wrote:
- `tags`: the tags that come before the content and enclose no thinking: an empty pair, or a closing tag that nothing
  opened. The text before such a closing tag may have been thinking, but a stream has sent it as text by then, and a
  whole reply equals its stream.
- `closing_tag`: empty where thinking was cut off.

Facts:
- OpenAI's own API has no such field. Vendors use `reasoning_content`, `reasoning` or `reasoning_text`. The first one
  that is not empty counts, and a request sends it back in the same field.  (pi-ai 1.5.0, ktsoator/or; read 2026-11-15)
- `reasoning_details` is a list of opaque and readable entries that has to be sent back unchanged; `reasoning` next to
  it repeats the readable text.                                  (OpenRouter documentation; recorded traffic, 2026-11)
- A stream sends the entries in pieces, identified by `index`: texts grow, every other value replaces the earlier one.
                                                                                          (recorded traffic, 2026-11)
- OpenRouter's streams number every entry 0, also where the whole reply of GPT-5.2 has seven. Encrypted entries are
  whole, and a signature ends a text; joined ones are refused. (ai-sdk-provider #519, 2026-07-21, and its accumulation)
- Some vendors require the field on every assistant message, even if it is empty.        (pi #3636, kimi-cli #2141)
- Servers without a reasoning parser leave the tags in the text; some prompts already end in the opening tag, so only
  the closing one arrives.                                          (skales #166, MiniMaxH3 #8)
- MiniMax M3 writes `<mm:think>`.                                        (vLLM's parser, articles; read 2026-11-16)
- A tag may be split between two chunks, and a model with thinking turned off writes an empty pair.
                                                                     (vercel/ai ce9daa3; recorded traffic, 2026-11)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, cast

import msgspec
from msgspec.structs import replace

from segue.conversation.content import AssistantContent, Extra, TextContent, ThinkingContent
from segue.models.model import Model
from segue.protocols.kit.assembly import Assembly, Part
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import EMPTY, Block, Wire, list_of, object_of
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

    __slots__ = ("_blank", "_inside", "_leads", "_open", "_out", "_pending", "_seen", "_tags", "_text", "_thinking")

    def __init__(self, out: Assembly, *, leads: bool = False) -> None:
        self._out = out
        self._leads = leads  # only the first tag counts
        self._text: Part | None = None
        self._thinking: Part | None = None
        self._pending = ""  # the beginning of what may become a tag
        self._inside = False
        self._open = OPEN  # the latest opening tag
        self._seen = False  # a tag of either kind
        self._blank = ""  # white space since the opening tag, until there is text
        self._tags = ""  # tags without thinking that wait for the content after them

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
        """Add what was held back: it was not a tag."""
        pending, self._pending = self._pending, ""
        self._add(pending)
        if self._thinking is not None:
            _note(self._thinking, choose("closing_tag", _PAIRS[self._open], ""))
            self._out.close(self._thinking)
            return
        held = self._tags + (f"{self._open}{self._blank}" if self._inside else "")
        if held and self._out.parts:
            # Tags after the last text, with nothing after them, are text.
            self._tags, self._inside = "", False
            self._add(held)

    def _expected(self) -> tuple[str, ...]:
        if self._inside:
            return (_PAIRS[self._open],)
        if self._seen and self._leads:
            return ()
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
        """Note on a new part the tags that come before it."""
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


def leading_tag(text: str) -> bool | None:
    """Say whether a text begins with a tag; None as long as it may.

    Servers without a parser for the reasoning of their model leave it in the text, so a reply is read in this way also
    where the dialect has no `think_tags`.                             (vLLM, llama.cpp, LM Studio: issues, 2025, 2026)
    """
    start = text.lstrip()
    if start.startswith((*_PAIRS,)):
        return True
    return None if any(tag.startswith(start) for tag in _PAIRS) else False


def split_tags(text: str, *, leads: bool = False) -> tuple[AssistantContent, ...]:
    """Split a whole text; one without tags stays one text. With `leads` only tags at its beginning count."""
    if "think>" not in text or (leads and not leading_tag(text)):
        return (TextContent(text=text),)
    out = Assembly(_NO_MODEL, PROTOCOL)
    reader = TagReader(out, leads=leads)
    reader.feed(text)
    reader.finish()
    out.close_all()
    return out.message().content


def in_tags(content: ThinkingContent, endpoint: Endpoint) -> ThinkingContent:
    """Return thinking with a tag as its signature: the one in which it arrived, else that of the model."""
    if content.thinking_signature in TAGS:
        return content
    return replace(content, thinking_signature=endpoint.dialect.think_tag)


def write_thinking(content: ThinkingContent) -> str:
    """Write thinking in its tags."""
    opening = content.thinking_signature or OPEN
    closing = chosen(content.extra, PROTOCOL, "closing_tag", _PAIRS[opening])
    return f"{_tags_before(content)}{opening}{content.thinking}{closing}"


def write_text(content: TextContent) -> str:
    """Write a text with the tags that come before it."""
    return f"{_tags_before(content)}{content.text}" if content.extra is not None else content.text


def _tags_before(content: TextContent | ThinkingContent) -> str:
    tags = chosen(content.extra, PROTOCOL, "tags", "")
    return tags if isinstance(tags, str) else ""


FIELDS: Final = ("reasoning_content", "reasoning", "reasoning_text")
"""In the order in which they are read."""
DETAILS: Final = "reasoning_details"
REASONING_KEYS: Final = frozenset({*FIELDS, DETAILS})
_TEXTS: Final = ("text", "summary")
_GROWING: Final = frozenset({"text", "summary", "data", "signature"})


def plain_field(endpoint: Endpoint) -> str:
    """Return the field for reasoning that is only text; a vendor that uses details has another field for plain text."""
    field = endpoint.dialect.reasoning_field
    return "reasoning_content" if field == DETAILS else field


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_reasoning(wire: Block, known: set[str]) -> tuple[ThinkingContent | None, Wire]:
    """Read the reasoning of an assistant message, and the choices to keep; add the understood keys to `known`."""
    texts = {field: text for field in FIELDS if isinstance(text := wire.get(field), str)}
    known.update(field for field, text in texts.items() if not text)
    filled = [field for field, text in texts.items() if text]
    entries = wire.get(DETAILS)
    if _is_details(entries):
        text = texts[filled[0]] if filled else details_text(entries)
        signature, fields = dump_details(entries), [DETAILS]
    elif filled:
        signature = filled[0]
        text, fields = texts[signature], [signature]
    else:
        return None, {}
    repeated = [field for field in filled if texts[field] == text and field not in fields]
    known.update(fields, repeated)
    choices = choose("field", fields, [*fields, *repeated])
    return ThinkingContent(thinking=text, thinking_signature=signature), choices


def _is_details(value: object) -> bool:
    if not isinstance(value, list):
        return False
    entries = cast("list[object]", value)
    return bool(entries) and all(isinstance(entry, Mapping) for entry in entries)


def details_text(entries: object) -> str:
    """Join the readable texts of the details, with a blank line between them."""
    return "\n\n".join(text for entry in cast("list[Block]", entries) if (text := entry_text(entry)))


def entry_text(entry: Block) -> str:
    """Return the readable text of one entry."""
    for key in _TEXTS:
        if isinstance(text := entry.get(key), str):
            return text
    return ""


def dump_details(entries: object) -> str:
    """Write details as the text of a signature."""
    try:
        return msgspec.json.encode(entries).decode()
    except (TypeError, ValueError):  # half a surrogate pair
        return json.dumps(entries, separators=(",", ":"))


def load_details(signature: str | None) -> list[object] | None:
    """Read details back from a signature; None when it is something else."""
    if not signature or not signature.startswith("[{"):
        return None
    try:
        entries = json.loads(signature)
    except (ValueError, RecursionError):
        return None
    return cast("list[object]", entries) if _is_details(entries) else None


class StreamedDetails:
    """The details of a streamed reply. Texts are joined at the end: a long one arrives in thousands of pieces."""

    def __init__(self) -> None:
        self._entries: list[dict[str, object]] = []
        self._pieces: list[dict[str, list[str]]] = []
        self._of_index: dict[str, int] = {}
        self._has_text = False

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, pieces: object) -> str:
        """Add the entries of a delta; return the readable text that they add."""
        added: list[str] = []
        for piece in list_of(pieces):
            if not isinstance(piece, Mapping):
                continue
            entry = cast("Block", piece)
            text = entry_text(entry)
            place = self._find(entry)
            if place is not None:
                self._continue(place, entry)
            else:
                if text and self._has_text:
                    added.append("\n\n")
                if entry.get("index") is not None:
                    self._of_index[repr(entry.get("index"))] = len(self._entries)
                self._entries.append(dict(entry))
                self._pieces.append({})
            self._has_text = self._has_text or bool(text)
            added.append(text)
        return "".join(added)

    def _find(self, entry: Block) -> int | None:
        """Find the entry that a piece continues: the newest one of its index, else the last one, if it is its kind."""
        last = len(self._entries) - 1
        is_indexed = entry.get("index") is not None
        place = self._of_index.get(repr(entry.get("index")), -1) if is_indexed else last
        if place < 0:
            return None
        known, name = self._entries[place], entry.get("id")
        is_other = name != known.get("id") and (not is_indexed or None not in (name, known.get("id")))
        is_whole = bool(known.get("data") and entry.get("data")) and (name is None or place < last)
        is_signed = bool(known.get("signature") and entry_text(entry))
        return None if known.get("type") != entry.get("type") or is_other or is_whole or is_signed else place

    def _continue(self, place: int, entry: Block) -> None:
        known, pieces = self._entries[place], self._pieces[place]
        for key, value in entry.items():
            earlier = known.get(key)
            if key in _GROWING and isinstance(value, str) and isinstance(earlier, str):
                pieces.setdefault(key, [earlier]).append(value)
            elif value is not None or key not in known:
                known[key] = value
                pieces.pop(key, None)

    def entries(self) -> list[dict[str, object]]:
        """Return the entries so far."""
        return [
            {**known, **{key: "".join(texts) for key, texts in pieces.items()}}
            for known, pieces in zip(self._entries, self._pieces, strict=True)
        ]


# -- writing -----------------------------------------------------------------------------------------------------------


def is_tagged(thought: ThinkingContent, endpoint: Endpoint) -> bool:
    """Whether thinking is in tags in the text: it arrived so, or the provider's format is so."""
    signature = thought.thinking_signature
    if signature in TAGS:
        return True
    return endpoint.dialect.think_tags and signature not in FIELDS and load_details(signature) is None


def encode_reasoning(
    message: Wire, thoughts: Sequence[ThinkingContent], endpoint: Endpoint, extra: Extra | None
) -> None:
    """Write thinking into the fields of a message, whose `extra` has the choice of fields that repeat it."""
    details: list[object] = []
    texts: list[str] = []
    field: str | None = None
    for thought in thoughts:
        signature = thought.thinking_signature
        entries = load_details(signature)
        if entries is not None:
            details += entries
        elif thought.thinking:
            texts.append(thought.thinking)
            field = field or (signature if signature in FIELDS else plain_field(endpoint))
    if field is not None:
        message[field] = "\n".join(texts)
    if details:
        message[DETAILS] = details
    written = [name for name in (field, DETAILS if details else None) if name is not None]
    for name in cast("list[str]", chosen(extra, PROTOCOL, "field", written)):
        if name in FIELDS:
            message.setdefault(name, thoughts[0].thinking)


def add_required_reasoning(message: Wire, field: str) -> None:
    """Add the empty field where the provider requires it on every assistant message."""
    if REASONING_KEYS.isdisjoint(message):
        message[field] = ""
