"""Recognises a Gemini CLI session, and describes it for a list from its beginning and its end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from segue.histories.gemini_cli.log import parts_of
from segue.histories.gemini_cli.read import NAME, is_context
from segue.histories.kit.format import Excerpt
from segue.histories.kit.history import Parent, Session
from segue.histories.kit.lines import first_objects, integer_of, object_of, text_of, title_of
from segue.histories.kit.stamps import milliseconds_of


def describe(excerpt: Excerpt) -> Session | None:
    """Describe a session; None for a file without a conversation."""
    lines = [*first_objects(excerpt.head, 400), *first_objects(excerpt.tail, 400)]
    header = next((line for line in lines if "projectHash" in line), dict[str, object]())
    entries = {
        str(line["id"]): line for line in lines if "id" in line and text_of(line.get("type")) in {"user", "gemini"}
    }
    asked = [line for line in entries.values() if line["type"] == "user" and not is_context(line)]
    session_id = text_of(header.get("sessionId"))
    if session_id is None or not asked:
        return None
    times = [
        time
        for value in (
            header.get("startTime"),
            *(line.get("timestamp") for line in entries.values()),
            *(object_of(line.get("$set")).get("lastUpdated") for line in lines),
        )
        if (time := milliseconds_of(value)) is not None
    ]
    directories = header.get("directories")
    folders = [text_of(item) for item in cast("list[object]", directories)] if isinstance(directories, list) else []
    models = (text_of(line.get("model")) for line in entries.values())
    replies = [line for line in entries.values() if line["type"] == "gemini"]
    tokens = sum(integer_of(object_of(line.get("tokens")).get("total")) for line in replies)
    sub = header.get("kind") == "subagent"
    return Session(
        format=NAME,
        id=session_id,
        path=excerpt.path,
        title=_title(asked),
        cwd=folders[0] if folders else None,
        created=min(times, default=None),
        updated=max(times, default=excerpt.modified),
        models=tuple(dict.fromkeys(model for model in models if model)),
        messages=len(asked) + len(replies) if excerpt.whole else None,
        tokens=tokens if excerpt.whole else None,
        size=excerpt.size,
        parent=Parent(id="", kind="subagent") if sub else None,
    )


def _title(asked: list[dict[str, object]]) -> str | None:
    for line in asked:
        for part in parts_of(line.get("content")):
            if (text := text_of(part.get("text"))) is not None:
                return title_of(text)
    return None


def read_settings(files: Mapping[str, bytes]) -> Mapping[str, str]:
    """Read the folder names of projects: `{path: name}`."""
    try:
        listed = json.loads(files.get("projects.json", b"{}"))
    except ValueError:
        return {}
    projects = object_of(object_of(listed).get("projects"))
    return {path: name for path, name in projects.items() if isinstance(name, str) and "/" not in name}
