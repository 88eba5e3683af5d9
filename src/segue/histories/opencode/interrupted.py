"""Answers of opencode that were interrupted behind their reasoning: kept in the file, and not sent.

Facts this file rests on (opencode 1.18.33, seen 2026-11-15; anomalyco/opencode 2026-08-19, read):
- An answer whose program is killed there has its reasoning and a text part with an empty text. The program sends the
  text as one space, which Anthropic refuses, as it refuses a turn that ends in reasoning.
- The program does not send an answer with the error `MessageAbortedError` that has only reasoning.
- The import keeps what is under `metadata` of a part; a name that no provider has is not sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from segue.histories.kit.lines import object_of, objects_of, text_of
from segue.histories.kit.origins import SEGUE

StoredPart = dict[str, Any]

_HIDDEN: Final = "hidden"
"""The field of our own metadata with the blank texts of an answer that is not sent."""
_ERROR: Final = {"name": "MessageAbortedError", "data": {"message": "The answer was interrupted."}}
_IDS: Final = frozenset({"id", "messageID", "sessionID"})
_NOT_SENT: Final = frozenset({"step-start", "step-finish", "snapshot", "patch", "reasoning"})


def hide_interrupted(info: StoredPart, parts: list[StoredPart]) -> tuple[StoredPart, list[StoredPart]] | None:
    """Give an answer in a form that is not sent; None if it has more than reasoning and blank texts."""
    if info.get("role") != "assistant" or "error" in info:
        return None
    blanks = [part for part in parts if _is_blank(part)]
    kept = [part for part in parts if not _is_blank(part)]
    reasoning = [at for at, part in enumerate(kept) if part.get("type") == "reasoning"]
    if not reasoning or any(text_of(part.get("type")) not in _NOT_SENT for part in kept):
        return None
    at = reasoning[-1]
    metadata = object_of(kept[at].get("metadata"))
    hidden = [{key: value for key, value in part.items() if key not in _IDS} for part in blanks]
    own = {**object_of(metadata.get(SEGUE)), _HIDDEN: hidden}
    kept[at] = {**kept[at], "metadata": {**metadata, SEGUE: own}}
    return {**info, "error": _ERROR}, kept


def restore_interrupted(info: StoredPart, parts: list[StoredPart]) -> tuple[StoredPart, list[StoredPart]]:
    """Give an answer as it was before `hide_interrupted`; any other one is not changed."""
    restored: list[StoredPart] = []
    found = False
    for part in parts:
        metadata = object_of(part.get("metadata"))
        own = object_of(metadata.get(SEGUE))
        if _HIDDEN not in own:
            restored.append(part)
            continue
        found = True
        metadata = _without(metadata, SEGUE) | ({SEGUE: rest} if (rest := _without(own, _HIDDEN)) else {})
        plain = _without(part, "metadata")
        restored += ({**plain, "metadata": metadata} if metadata else plain, *objects_of(own[_HIDDEN]))
    return (_without(info, "error"), restored) if found else (info, parts)


def _is_blank(part: Mapping[str, Any]) -> bool:
    text = part.get("text")
    return part.get("type") == "text" and isinstance(text, str) and not text.strip()


def _without(fields: Mapping[str, Any], name: str) -> StoredPart:
    return {key: value for key, value in fields.items() if key != name}
