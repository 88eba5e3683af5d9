"""Recognises a Claude Code session, and describes it for a list from its beginning and its end."""

from __future__ import annotations

from typing import Any, Final

from segue.histories.claude_code.turns import NAME, SYNTHETIC
from segue.histories.kit.format import Excerpt
from segue.histories.kit.history import Session
from segue.histories.kit.lines import first_objects, number_of, object_of, objects_of, text_of, title_of
from segue.histories.kit.stamps import milliseconds_of


def describe(excerpt: Excerpt) -> Session | None:
    """Describe a session; None for a file without a conversation."""
    first = first_objects(excerpt.head, 400)
    # The first line of the end is most likely cut; a line that cannot be read is left out.
    last = first_objects(excerpt.tail, 400)
    lines = [*first, *last]
    conversation: list[dict[str, Any]] = []
    stamps: list[str] = []
    models: dict[str, None] = {}
    others: dict[str, dict[str, Any]] = {}  # the last line of each other kind
    for line in lines:
        kind, stamp = line.get("type"), line.get("timestamp")
        if type(stamp) is str and stamp:
            stamps.append(stamp)
        if kind in ("user", "assistant"):
            if line.get("uuid"):
                conversation.append(line)
                if (model := text_of(object_of(line.get("message")).get("model"))) and model != SYNTHETIC:
                    models[model] = None
        elif type(kind) is str and (kind not in _TITLES or text_of(line.get(_TITLES[kind]))):
            others[kind] = line
    if not conversation:
        return None
    cost = others.get("cost-state", {}).get("totalCostUSD")
    counted = conversation if excerpt.whole else []
    replies = {str(object_of(line.get("message")).get("id")): line for line in counted if line["type"] == "assistant"}
    asked = sum(line["type"] == "user" for line in counted)
    return Session(
        format=NAME,
        id=excerpt.name.rpartition("/")[2].removesuffix(".jsonl"),
        path=excerpt.path,
        title=_title(lines, others),
        cwd=next((cwd for line in conversation if (cwd := text_of(line.get("cwd")))), None),
        created=milliseconds_of(min(stamps, default=None)),
        updated=milliseconds_of(max(stamps, default=None)) or excerpt.modified,
        models=tuple(models),
        messages=asked + len(replies) if excerpt.whole else None,
        tokens=_tokens(list(replies.values())) if excerpt.whole else None,
        cost=number_of(cost),
        size=excerpt.size,
    )


_TITLES: Final = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
"""Kinds of lines with a title, the one that goes first first, and the field that has it."""


def _title(lines: list[dict[str, Any]], others: dict[str, dict[str, Any]]) -> str | None:
    for kind, field in _TITLES.items():
        if kind in others:
            return text_of(others[kind].get(field))
    for line in lines:
        if line.get("type") != "user" or line.get("isMeta") or line.get("isCompactSummary"):
            continue
        content = object_of(line.get("message")).get("content")
        texts = [content] if isinstance(content, str) else [block.get("text") for block in objects_of(content)]
        for text in texts:
            if (title := text_of(text)) and not title.startswith("<"):
                return title_of(title)
    return None


def _tokens(replies: list[dict[str, object]]) -> int:
    usages = (object_of(object_of(line.get("message")).get("usage")) for line in replies)
    return sum(value for usage in usages for value in usage.values() if type(value) is int)
