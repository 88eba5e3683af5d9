"""Reasoning items, and the signatures that hold what the provider needs to recognise its items.

Facts this file rests on:
- A reasoning item is replayed whole, with its `encrypted_content`, and next to the item it led to; when nothing is
  stored, an `id` alone cannot be resolved.                    (vercel/ai #7099, mastra #8738, opencode #7724)
- Reasoning comes as several summaries, or as plain content from open models.    (recorded traffic, 2026-11; llama.cpp)

A signature is compact JSON of the item's fields that have no neutral field (`id`, `encrypted_content`, `status`).
Reasoning without encrypted content has no signature; its fields are format, kept as the choice `item` (see `turns`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, cast

import msgspec

from segue.conversation.content import ThinkingContent
from segue.errors import EncodeError
from segue.protocols.kit.json_values import EMPTY, Block, Wire, is_object, object_of, parse_text
from segue.protocols.kit.verbatim import choose, chosen, keep
from segue.protocols.openai_responses.rules import PROTOCOL

REFUSED_ITEM: Final = "refused_item"
"""The choice that keeps the fields of an item whose id the provider does not accept."""
UNSIGNED: Final = "unsigned"
"""The default of the choice `item`: it is made only while the reasoning before it is there and has no signature."""
_KEYS: Final = frozenset({"type", "summary", "content"})
_LENGTHS: Final = frozenset({"summary_lengths", "content_lengths"})
"""In a signature: the lengths of the texts that `thinking` joins, where it is more than one summary."""
_ABSENT: Final = "absent"
"""In a signature: the item had no such key."""

_ENCODER: Final = msgspec.json.Encoder()
_DECODE: Final = msgspec.json.Decoder(dict[str, object]).decode


def write_signature(fields: Block) -> str | None:
    """Write the provider's own fields of an item as a signature; None when there are none.

    Half a surrogate pair is written as it is, not as an escape: projection drops a signature that has one.
    """
    if not fields:
        return None
    try:
        return _ENCODER.encode(fields).decode()
    except (TypeError, ValueError):
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"), default=str)


def read_signature(signature: str | None) -> Wire | None:
    """Read a signature that `write_signature` wrote; None for any other text."""
    if not signature or signature[0] != "{":
        return None
    try:
        return _DECODE(signature)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        parsed = parse_text(signature)  # half a surrogate pair, which msgspec refuses
        return parsed if is_object(parsed) else None


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_reasoning(item: Block, *, refused: bool = False) -> ThinkingContent:
    """Read a reasoning item: the summaries, then the content, joined by blank lines.

    Without a signature if its id is `refused`: it could not be sent.
    """
    fields: Wire = {key: value for key, value in item.items() if key not in _KEYS}
    given = item.get("content")
    summary = _texts(item.get("summary"), "summary_text")
    content = None if given is None else _texts(given, "reasoning_text")
    if summary is None or (given is not None and content is None):
        # Parts with more than a text are kept whole: the joined text cannot be split into them again.
        thinking = _join(_texts(item.get("summary"), None), _texts(given, None))
        fields["summary"] = item.get("summary", _ABSENT)
        if "content" in item:
            fields["content"] = given
    else:
        thinking = _join(summary, content)
        if content or summary != ([thinking] if thinking else []):
            fields["summary_lengths"] = [len(text) for text in summary]
        if content is not None:
            fields["content_lengths"] = [len(text) for text in content]
        elif "content" in item:
            fields["content"] = None
    encrypted = fields.get("encrypted_content")
    if isinstance(encrypted, str) and encrypted and not refused:
        is_bare = len(fields) == 1 and encrypted[0] != "{"
        return ThinkingContent(thinking=thinking, thinking_signature=encrypted if is_bare else write_signature(fields))
    choices = choose(REFUSED_ITEM if refused else "item", UNSIGNED, fields)
    extra = keep(PROTOCOL, EMPTY, EMPTY, choices=choices)
    return ThinkingContent(thinking=thinking, extra=extra)


def _join(summary: list[str] | None, content: list[str] | None) -> str:
    return "\n\n".join([*(summary or ()), *(content or ())])


def _texts(parts: object, kind: str | None) -> list[str] | None:
    """Give the texts of a list; with a `kind`, None when it has anything but plain parts of this kind."""
    if not isinstance(parts, list):
        return None
    found: list[str] = []
    for part in cast("list[object]", parts):
        item = object_of(part)
        text = item.get("text")
        if isinstance(text, str) and (kind is None or (len(item) == 2 and item.get("type") == kind)):
            found.append(text)
        elif kind is not None:
            return None
    return found


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_reasoning(piece: ThinkingContent, *, open_reasoning: bool) -> Wire:
    """Write a reasoning item.

    Raises:
        EncodeError: unsigned thinking where the target only takes signed thinking.
    """
    signature, thinking = piece.thinking_signature, piece.thinking
    if signature:
        # A signature in any other form is the encrypted content itself.
        item = read_signature(signature) or {"encrypted_content": signature}
        if "summary" in item or not _LENGTHS.isdisjoint(item):
            return _rebuild(thinking, item)
        item["type"] = "reasoning"
        item["summary"] = _summary(thinking)
        return item
    kept = chosen(piece.extra, PROTOCOL, "item", UNSIGNED)
    if kept == UNSIGNED:
        kept = chosen(piece.extra, PROTOCOL, REFUSED_ITEM, UNSIGNED)
    if isinstance(kept, Mapping):
        return _rebuild(thinking, cast("Block", kept))
    if open_reasoning:
        return {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": thinking}]}
    raise EncodeError(f"{PROTOCOL} does not support thinking without a signature; remove it or send it as text")


def _summary(thinking: str) -> list[Wire]:
    return [{"type": "summary_text", "text": thinking}] if thinking else []


def _rebuild(thinking: str, fields: Block) -> Wire:
    """Put a reasoning item together: the text is split where it was joined, unless it changed."""
    item: Wire = {key: value for key, value in fields.items() if value != _ABSENT and key not in _LENGTHS}
    item["type"] = "reasoning"
    summaries, contents = _lengths(fields.get("summary_lengths")), _lengths(fields.get("content_lengths"))
    if contents is not None:
        item["content"] = list[Wire]()
    lengths = [*(summaries or ()), *(contents or ())]
    if summaries is None or sum(lengths) + 2 * max(0, len(lengths) - 1) != len(thinking):
        if "summary" not in fields:
            item["summary"] = _summary(thinking)
        return item
    texts: list[str] = []
    start = 0
    for length in lengths:
        texts.append(thinking[start : start + length])
        start += length + 2
    item["summary"] = [{"type": "summary_text", "text": text} for text in texts[: len(summaries)]]
    if contents is not None:
        item["content"] = [{"type": "reasoning_text", "text": text} for text in texts[len(summaries) :]]
    return item


def _lengths(given: object) -> list[int] | None:
    if not isinstance(given, list) or not all(isinstance(length, int) for length in cast("list[object]", given)):
        return None
    return cast("list[int]", given)
