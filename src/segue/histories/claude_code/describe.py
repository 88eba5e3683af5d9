"""Recognises a Claude Code session, and describes it for a list from its beginning and its end."""

from __future__ import annotations

from segue.histories.claude_code.turns import NAME, SYNTHETIC
from segue.histories.kit.format import Excerpt
from segue.histories.kit.history import Session
from segue.histories.kit.lines import first_objects, object_of, objects_of, text_of, title_of
from segue.histories.kit.stamps import milliseconds_of


def describe(excerpt: Excerpt) -> Session | None:
    """Describe a session; None for a file without a conversation."""
    first = first_objects(excerpt.head, 400)
    # The first line of the end is most likely cut; a line that cannot be read is left out.
    last = first_objects(excerpt.tail, 400)
    lines = [*first, *last]
    conversation = [line for line in lines if line.get("uuid") and text_of(line.get("type")) in {"user", "assistant"}]
    if not conversation:
        return None
    stamps = [stamp for line in lines if (stamp := text_of(line.get("timestamp")))]
    names = (text_of(object_of(line.get("message")).get("model")) for line in conversation)
    models = tuple(dict.fromkeys(name for name in names if name and name != SYNTHETIC))
    state = next((line for line in reversed(lines) if line.get("type") == "cost-state"), dict[str, object]())
    cost = state.get("totalCostUSD")
    replies = {
        str(object_of(line.get("message")).get("id")): line for line in conversation if line["type"] == "assistant"
    }
    asked = sum(line["type"] == "user" for line in conversation)
    return Session(
        format=NAME,
        id=excerpt.name.rpartition("/")[2].removesuffix(".jsonl"),
        path=excerpt.path,
        title=_title(lines),
        cwd=next((cwd for line in conversation if (cwd := text_of(line.get("cwd")))), None),
        created=milliseconds_of(min(stamps, default=None)),
        updated=milliseconds_of(max(stamps, default=None)) or excerpt.modified,
        models=models,
        messages=asked + len(replies) if excerpt.whole else None,
        tokens=_tokens(list(replies.values())) if excerpt.whole else None,
        cost=float(cost) if isinstance(cost, (int, float)) and not isinstance(cost, bool) else None,
        size=excerpt.size,
    )


def _title(lines: list[dict[str, object]]) -> str | None:
    for kind, field in (("custom-title", "customTitle"), ("ai-title", "aiTitle"), ("summary", "summary")):
        for line in reversed(lines):
            if line.get("type") == kind and (title := text_of(line.get(field))):
                return title
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
