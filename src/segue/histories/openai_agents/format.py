"""The record of the OpenAI Agents SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from segue.errors import LoadError
from segue.histories.kit.entries import Entry
from segue.histories.kit.framework import (
    EntryList,
    Framework,
    close_list,
    framework_format,
    from_package,
    give_json,
    list_opener,
)
from segue.histories.kit.lines import object_of, text_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import AgentDatabase
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.openai_agents.codec import CODEC, NAME, WIRE
from segue.models.model import Model

_KINDS: Final = frozenset(
    {"message", "reasoning", "function_call", "function_call_output", "computer_call", "computer_call_output",
     "file_search_call", "web_search_call", "code_interpreter_call", "image_generation_call", "local_shell_call",
     "local_shell_call_output", "shell_call", "shell_call_output", "apply_patch_call", "apply_patch_call_output",
     "mcp_call", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "custom_tool_call",
     "custom_tool_call_output", "item_reference", "compaction"}
)  # fmt: skip


def _is_item(entry: Mapping[str, Any]) -> bool:
    kind = text_of(entry.get("type"))
    return kind in _KINDS or (kind is None and "role" in entry and "content" in entry)


def _open_database(database: AgentDatabase, session: str | None) -> EntryList:
    if not {"agent_sessions", "agent_messages"} <= database.tables():
        raise LoadError("the database has no tables agent_sessions and agent_messages; it is not one of the Agents SDK")
    sessions = list(database.rows("agent_sessions"))
    wanted = [row for row in sessions if session is None or row.get("session_id") == session]
    if not wanted:
        raise LoadError(f"the database has no session {session!r}" if session else "the database has no session")
    row = max(wanted, key=lambda each: str(each.get("updated_at")))
    entries: list[Entry] = []
    for message in database.rows("agent_messages", session_id=row.get("session_id")):
        try:
            entry = object_of(msgspec.json.decode(cast("str", message.get("message_data"))))
        except (msgspec.DecodeError, TypeError, ValueError, RecursionError):
            entry = {}
        entries.append(entry)
    return EntryList(
        entries,
        id=text_of(row.get("session_id")),
        created=milliseconds_of(row.get("created_at")),
        updated=milliseconds_of(row.get("updated_at")),
        others=len(sessions) - 1,
    )


def _plain(value: object) -> object:
    """Give the items of a result of a run; items are plain JSON already."""
    if from_package(value, "agents") and hasattr(value, "to_input_list"):
        result: Any = value
        return result.to_input_list()
    return value


FRAMEWORK: Final = Framework(
    codec=CODEC,
    title="OpenAI Agents SDK",
    open=list_opener(_is_item, bare=True),
    close=close_list,
    open_database=_open_database,
    plain=_plain,
    file_name="items.json",
)
FORMAT: Final = framework_format(
    FRAMEWORK,
    give=give_json,
    samples=read_samples(__package__),
    wire=WIRE.protocol,
    example=Model("gpt-5.4", "openai", "openai-responses", reasoning=True),
    source="openai-agents 0.24.0, run against a scripted model",
)
__all__ = ["FORMAT", "NAME"]
