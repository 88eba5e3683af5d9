"""Sessions of Crush: what a part has to have."""

from __future__ import annotations

import json
import sqlite3

import pytest

from segue import read_history

PARTS = {
    "a part without data": {"type": "reasoning"},
    "a part with empty data": {"type": "reasoning", "data": {}},
    "a call without input": {"type": "tool_call", "data": {"id": "c1", "name": "ls"}},
    "a part of another kind": {"type": "hologram", "data": {"text": "x"}},
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS.keys())
def test_a_part_that_cannot_be_read_whole_is_reported(part, tmp_path):
    path = tmp_path / "crush.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE sessions (id TEXT, parent_session_id TEXT, title TEXT, created_at INTEGER)")
        database.execute("CREATE TABLE messages (id TEXT, session_id TEXT, role TEXT, parts TEXT, created_at INTEGER)")
        database.execute("INSERT INTO sessions VALUES ('s', NULL, 'a title', 1)")
        said = {"type": "text", "data": {"text": "Done."}}
        rows = [("1", "user", [{"type": "text", "data": {"text": "Go on."}}]), ("2", "assistant", [said, part])]
        database.executemany(
            "INSERT INTO messages VALUES (?, 's', ?, ?, 1)",
            [(key, role, json.dumps(parts)) for key, role, parts in rows],
        )
    database.close()
    history = read_history(path, format="crush")
    assert [message.text() for message in history.context.messages] == ["Go on.", "Done."]
    noted = [change for change in history.report.changes if f"part {part['type']}" in str(change)]
    assert noted, history.report.changes
