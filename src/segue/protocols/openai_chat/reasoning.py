"""Reasoning in the fields that vendors added to an assistant message, both ways.

Facts this file rests on:
- OpenAI's own wire has none. Vendors write it to `reasoning_content`, `reasoning` or `reasoning_text`; the first that
  says something counts, and it goes back into the field it came in.        (pi-ai 1.5.0, ktsoator/or; read 2026-11-15)
- `reasoning_details` is a list of opaque and readable entries that has to come back unchanged; `reasoning` beside it
  repeats what can be read.                                   (OpenRouter documentation; recorded traffic, 2026-11)
- In a stream the entries come in pieces, told apart by `index`; texts grow, everything else replaces.
                                                                                          (recorded traffic, 2026-11)
- Some want the field on every assistant message, empty if need be.                      (pi #3636, kimi-cli #2141)

The signature of such thinking is the name of its field, or the list of details as compact JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, cast

import msgspec

from segue.conversation.content import ThinkingContent
from segue.protocols.kit.codec import Endpoint
from segue.protocols.openai_chat.think_tags import TAGS
from segue.protocols.openai_chat.verbatim import Block

FIELDS: Final = ("reasoning_content", "reasoning", "reasoning_text")
"""In the order in which they are believed."""
DETAILS: Final = "reasoning_details"
REASONING_KEYS: Final = frozenset({*FIELDS, DETAILS})
_TEXTS: Final = ("text", "summary")
_GROWING: Final = frozenset({"text", "summary", "data", "signature"})


def plain_field(endpoint: Endpoint) -> str:
    """Give the field for reasoning that is only text; where details are the custom, text has a field beside them."""
    field = endpoint.dialect.reasoning_field
    return "reasoning_content" if field == DETAILS else field


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_reasoning(wire: Block, known: set[str], verbatim: dict[str, object]) -> ThinkingContent | None:
    """Read the reasoning of an assistant message; add the keys that were understood to `known`."""
    texts = {field: text for field in FIELDS if isinstance(text := wire.get(field), str) and text}
    entries = wire.get(DETAILS)
    if _is_details(entries):
        known.add(DETAILS)
        text = next(iter(texts.values()), None)
        text = details_text(entries) if text is None else text
        signature = dump_details(entries)
    elif texts:
        field, text = next(iter(texts.items()))
        known.add(field)
        signature = field
        del texts[field]
    else:
        return None
    repeated = [field for field, other in texts.items() if other == text]
    if repeated:
        verbatim["also"] = repeated
        known.update(repeated)
    return ThinkingContent(thinking=text, thinking_signature=signature)


def _is_details(value: object) -> bool:
    if not isinstance(value, list):
        return False
    entries = cast("list[object]", value)
    return bool(entries) and all(isinstance(entry, Mapping) for entry in entries)


def details_text(entries: object) -> str:
    """Join what can be read of the details, a blank line between them."""
    return "\n\n".join(text for entry in cast("list[Block]", entries) if (text := entry_text(entry)))


def entry_text(entry: Block) -> str:
    """Give what can be read of one entry."""
    for key in _TEXTS:
        if isinstance(text := entry.get(key), str):
            return text
    return ""


def dump_details(entries: object) -> str:
    """Write details as the text that signs them."""
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


def merge_details(known: list[dict[str, object]], pieces: object) -> str:
    """Take a delta's entries into those that have come; give what can be read of them."""
    given = ""
    for piece in cast("list[object]", pieces) if isinstance(pieces, list) else ():
        if not isinstance(piece, Mapping):
            continue
        entry = cast("Block", piece)
        text = entry_text(entry)
        place = _find_entry(known, entry)
        if place is None:
            if text and any(entry_text(earlier) for earlier in known):
                given += "\n\n"
            known.append(dict(entry))
        else:
            for key, value in entry.items():
                earlier = place.get(key)
                if key in _GROWING and isinstance(value, str) and isinstance(earlier, str):
                    place[key] = earlier + value
                elif value is not None or key not in place:
                    place[key] = value
        given += text
    return given


def _find_entry(known: list[dict[str, object]], entry: Block) -> dict[str, object] | None:
    """Find the entry that a piece goes on with: of the same index, else the last one of its kind."""
    index, kind = entry.get("index"), entry.get("type")
    if index is None:
        last = known[-1] if known else None
        return last if last is not None and last.get("type") == kind and last.get("id") == entry.get("id") else None
    for earlier in reversed(known):
        if earlier.get("index") == index and earlier.get("type") == kind:
            return earlier
    return None


# -- writing -----------------------------------------------------------------------------------------------------------


def is_tagged(thought: ThinkingContent, endpoint: Endpoint) -> bool:
    """Whether thinking stands in tags in the text: it came so, or this is how the provider writes it."""
    signature = thought.thinking_signature
    if signature == TAGS:
        return True
    return endpoint.dialect.think_tags and signature not in FIELDS and load_details(signature) is None


def encode_reasoning(
    message: dict[str, object], thoughts: Sequence[ThinkingContent], endpoint: Endpoint, verbatim: Mapping[str, object]
) -> None:
    """Put thinking into the fields it belongs to."""
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
    repeated = verbatim.get("also")
    if isinstance(repeated, list) and thoughts:
        for name in cast("list[str]", repeated):
            message[name] = thoughts[0].thinking


def demand_reasoning(message: dict[str, object], field: str) -> None:
    """Add the empty field where every assistant message has to have one."""
    if REASONING_KEYS.isdisjoint(message):
        message[field] = ""
