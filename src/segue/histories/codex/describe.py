"""Recognises a Codex session, and describes it for a list from its beginning and its end."""

from __future__ import annotations

from segue.errors import LoadError
from segue.histories.codex.read import NAME
from segue.histories.codex.rollout import RolloutItem, decompress, is_added, open_line
from segue.histories.kit.format import Excerpt
from segue.histories.kit.history import Parent, Session
from segue.histories.kit.lines import Line, first_objects, integer_of, object_of, objects_of, text_of, title_of
from segue.histories.kit.stamps import milliseconds_of


def describe(excerpt: Excerpt) -> Session | None:
    """Describe a session; None for a file without a conversation."""
    head = excerpt.head
    if excerpt.name.endswith(".zst"):
        try:
            head = decompress(head) if excerpt.whole else b""
        except LoadError:
            head = b""
    lines = [*first_objects(head, 400), *first_objects(excerpt.tail, 400)]
    payloads = [(*open_line(line), line) for line in lines]
    meta = next((payload for kind, payload, _ in payloads if kind == "session_meta"), dict[str, object]())
    stem = excerpt.name.rpartition("/")[2].removesuffix(".zst").removesuffix(".jsonl")
    session_id = text_of(meta.get("id")) or stem[-36:]
    times = [time for *_, line in payloads if (time := milliseconds_of(line.get("timestamp"))) is not None]
    contexts = (text_of(payload.get("model")) for kind, payload, _ in payloads if kind == "turn_context")
    items = [payload for kind, payload, _ in payloads if kind == "response_item"]
    usage = next(
        (
            object_of(object_of(payload.get("info")).get("total_token_usage"))
            for kind, payload, _ in reversed(payloads)
            if kind == "event_msg" and payload.get("type") == "token_count" and payload.get("info")
        ),
        None,
    )
    parent = text_of(meta.get("parent_thread_id"))
    forked = text_of(meta.get("forked_from_id"))
    return Session(
        format=NAME,
        id=session_id,
        path=excerpt.path,
        title=_title(items),
        cwd=text_of(meta.get("cwd")),
        created=milliseconds_of(meta.get("timestamp")) or min(times, default=None),
        updated=max(times, default=excerpt.modified),
        models=tuple(dict.fromkeys(model for model in contexts if model)),
        messages=sum(item.get("type") == "message" for item in items) if excerpt.whole else None,
        tokens=None if usage is None else integer_of(usage.get("total_tokens")),
        size=excerpt.size,
        parent=Parent(id=parent, kind="subagent")
        if parent is not None
        else None
        if forked is None
        else Parent(id=forked, kind="fork"),
    )


def _title(items: list[dict[str, object]]) -> str | None:
    for fields in items:
        item = RolloutItem(fields, Line(0, b""), None, None, "", {})
        if fields.get("role") != "user" or is_added(item):
            continue
        content = fields.get("content")
        texts = [content] if isinstance(content, str) else [part.get("text") for part in objects_of(content)]
        for text in texts:
            if (title := text_of(text)) is not None:
                return title_of(title)
    return None
