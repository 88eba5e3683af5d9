"""Recognises a pi session, and describes it for a list from its beginning and its end."""

from __future__ import annotations

from segue.histories.kit.format import Excerpt
from segue.histories.kit.history import Parent, Session
from segue.histories.kit.lines import first_objects, integer_of, number_of, object_of, objects_of, text_of, title_of
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.pi.read import NAME


def describe(excerpt: Excerpt) -> Session | None:
    """Describe a session; None for a file without a header."""
    lines = [*first_objects(excerpt.head, 400), *first_objects(excerpt.tail, 400)]
    header = next((line for line in lines if line.get("type") == "session"), None)
    if header is None:
        return None
    messages = [object_of(line.get("message")) for line in lines if line.get("type") == "message"]
    visible = [message for message in messages if text_of(message.get("role")) in {"user", "assistant", "toolResult"}]
    times = [time for line in lines if (time := milliseconds_of(line.get("timestamp"))) is not None]
    names = [text_of(line.get("name")) for line in lines if line.get("type") == "session_info"]
    models = (text_of(message.get("model")) for message in messages)
    usages = [object_of(message.get("usage")) for message in messages]
    costs = [object_of(usage.get("cost")).get("total") for usage in usages]
    parent = text_of(header.get("parentSession"))
    return Session(
        format=NAME,
        id=text_of(header.get("id")) or excerpt.name.rpartition("_")[2].removesuffix(".jsonl"),
        path=excerpt.path,
        title=next((name for name in reversed(names) if name), None) or _title(messages),
        cwd=text_of(header.get("cwd")),
        created=min(times, default=None),
        updated=max(times, default=excerpt.modified),
        models=tuple(dict.fromkeys(model for model in models if model)),
        messages=len(visible) if excerpt.whole else None,
        tokens=sum(integer_of(usage.get("totalTokens")) for usage in usages) if excerpt.whole else None,
        cost=sum(number_of(cost) or 0 for cost in costs) if excerpt.whole else None,
        size=excerpt.size,
        parent=None
        if parent is None
        else Parent(id=parent.rpartition("_")[2].removesuffix(".jsonl"), kind="fork", path=parent),
    )


def _title(messages: list[dict[str, object]]) -> str | None:
    for message in messages:
        if message.get("role") != "user":
            continue
        content = message.get("content")
        texts = [content] if isinstance(content, str) else [piece.get("text") for piece in objects_of(content)]
        for text in texts:
            if (title := text_of(text)) is not None:
                return title_of(title)
    return None
