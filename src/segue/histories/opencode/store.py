"""Where opencode stores its sessions: a database, or the JSON of `opencode export`.

Facts this file rests on (opencode 1.18.33, seen 2026-11-15; anomalyco/opencode 2026-08-19, read):
- The tables are `session`, `message` and `part`; the columns `data` hold JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from segue.conversation.limits import parse_json
from segue.errors import LoadError
from segue.histories.kit.history import Parent, Session
from segue.histories.kit.lines import integer_of, number_of, object_of, text_of
from segue.histories.kit.source import AgentDatabase, Source
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.opencode.turns import NAME


def load(source: Source) -> dict[str, Any]:
    """Give a session as `opencode export` writes it.

    Raises:
        LoadError: the source is no session of opencode.
    """
    if source.database is not None:
        return _load_rows(source.database, source.session)
    if source.data is None:
        return object_of(source.value)
    try:
        value: object = msgspec.json.decode(source.data)
    except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError):
        value = parse_json(source.data)
    return object_of(value)


def _parsed(value: object) -> dict[str, Any]:
    try:
        return object_of(msgspec.json.decode(cast("str", value)))
    except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError, TypeError):
        return {}


def _load_rows(database: AgentDatabase, session: str | None) -> dict[str, Any]:
    if not {"session", "message", "part"} <= database.tables():
        raise LoadError("the database has no tables session, message and part; it is not one of opencode")
    rows = list(database.rows("session", **({"id": session} if session else {})))
    if not rows:
        raise LoadError(f"the database has no session {session!r}" if session else "the database has no session")
    row = max(rows, key=lambda each: integer_of(each.get("time_updated")))
    parts: dict[object, list[dict[str, Any]]] = {}
    for part in sorted(database.rows("part", session_id=row.get("id")), key=lambda each: str(each.get("id"))):
        fields = {**_parsed(part.get("data")), "id": part.get("id"), "messageID": part.get("message_id")}
        parts.setdefault(part.get("message_id"), []).append({**fields, "sessionID": row.get("id")})
    messages = [
        {
            "info": {**_parsed(each.get("data")), "id": each.get("id"), "sessionID": row.get("id")},
            "parts": parts.get(each.get("id"), []),
        }
        for each in database.rows("message", session_id=row.get("id"))
    ]
    return {"info": _session_info(row), "messages": messages}


def _session_info(row: Mapping[str, object]) -> dict[str, Any]:
    info: dict[str, Any] = {
        "id": row.get("id"),
        "slug": row.get("slug"),
        "projectID": row.get("project_id"),
        "directory": row.get("directory"),
        "path": row.get("path"),
        "title": row.get("title"),
        "version": row.get("version"),
        "time": {"created": row.get("time_created"), "updated": row.get("time_updated")},
    }
    if row.get("parent_id"):
        info["parentID"] = row["parent_id"]
    if revert := _parsed(row.get("revert")):
        info["revert"] = revert
    return info


def list_sessions(source: Source) -> tuple[Session, ...]:
    """List the sessions of a database.

    Raises:
        LoadError: it cannot be read.
    """
    if source.database is None or "session" not in source.database.tables():
        return ()
    found: list[Session] = []
    for row in source.database.rows("session"):
        names = ("tokens_input", "tokens_output", "tokens_cache_read", "tokens_cache_write")
        cost, parent = row.get("cost"), text_of(row.get("parent_id"))
        model = text_of(_parsed(row.get("model")).get("id"))
        found.append(
            Session(
                format=NAME,
                id=str(row.get("id")),
                path=source.path or source.name,
                title=text_of(row.get("title")),
                cwd=text_of(row.get("directory")),
                created=milliseconds_of(row.get("time_created")),
                updated=milliseconds_of(row.get("time_updated")),
                models=() if model is None else (model,),
                tokens=sum(integer_of(row.get(name)) for name in names),
                cost=number_of(cost),
                parent=None if parent is None else Parent(id=parent, kind="subagent"),
            )
        )
    return tuple(found)
