"""The record of the OpenAI Agents SDK.

Items of the OpenAI Agents SDK: input items of the Responses API, also where another API was asked.

Facts (openai-agents 0.24.0, 2026-11-15):
- `to_input_list()` and `SQLiteSession` store the items as they are sent; unknown fields are kept.
- Over Chat every item has the id `__fake_id__`, and `provider_data` with the model and the id of the reply; both are
  removed before a request.
- Items over Responses do not name their model. A result has no error flag.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final, cast

import msgspec
from msgspec.structs import replace

from segue.conversation.content import ThinkingContent
from segue.conversation.messages import AssistantMessage, Message
from segue.errors import LoadError
from segue.histories.kit.entries import Entry, EntryCodec, Reading, Writing
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
from segue.histories.kit.origins import find_origin
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import AgentDatabase
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.wire import TurnCodec
from segue.models.model import Model
from segue.projection.report import ChangeCode

NAME: Final = "openai-agents"
WIRE: Final = TurnCodec("openai-responses", "input", lead={"role": "user", "content": "-"})
_FAKE: Final = "__fake_id__"
_DATA: Final = "provider_data"


def _is_reply(entry: Mapping[str, Any]) -> bool:
    kind, role = text_of(entry.get("type")) or "message", text_of(entry.get("role"))
    if kind == "message":
        return role == "assistant"
    return not kind.endswith("_output") and role is None


def _split(entries: list[Entry]) -> list[list[Entry]]:
    """Group the items of one reply into one run."""

    def key(entry: Entry) -> tuple[bool, str]:
        data = object_of(entry.get(_DATA))
        return _is_reply(entry), str(data.get("response_id")) + str(data.get("model"))

    runs: list[list[Entry]] = []
    for (is_reply, _), group in groupby(entries, key):
        run = list(group)
        runs += [run] if is_reply else [[entry] for entry in run]
    return runs


def _read(run: list[Entry], reading: Reading) -> list[Message]:
    data = object_of(run[0].get(_DATA))
    model = text_of(data.get("model")) or ""
    messages = list(WIRE.decode([_bare(entry) for entry in run], model, "openai"))
    if model:
        return [_over_chat(message, model, text_of(data.get("response_id"))) for message in messages]
    if _is_reply(run[0]):
        reading.note_once(ChangeCode.MODEL_UNKNOWN, "items over Responses do not name their model")
    return messages


def _bare(entry: Entry) -> Entry:
    """Return an item as it is sent."""
    return {key: value for key, value in entry.items() if key != _DATA and not (key == "id" and value == _FAKE)}


def _over_chat(message: Message, model: str, response_id: str | None) -> Message:
    """Set the origin of a reply over Chat, whose reasoning has no signature."""
    if not isinstance(message, AssistantMessage):
        return message
    origin = find_origin(model, "", "chatcmpl")
    content = tuple(
        replace(piece, thinking_signature=None) if isinstance(piece, ThinkingContent) else piece
        for piece in message.content
    )
    provider = origin.provider or "openai"
    return replace(
        message, content=content, protocol="openai-chat", provider=provider, model=model, response_id=response_id
    )


def _write(messages: Sequence[Message], writing: Writing) -> list[Entry]:  # noqa: ARG001 - the messages are projected
    model = next((message.model for message in messages if isinstance(message, AssistantMessage)), "")
    return WIRE.encode(messages, model, "openai")


CODEC: Final = EntryCodec(name=NAME, read=_read, write=_write, split=_split)


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
    """Return the items of a result of a run, or of a list of the Conversations API; items are plain JSON already."""
    if from_package(value, "agents") and hasattr(value, "to_input_list"):
        result: Any = value
        return result.to_input_list()
    listed = object_of(value)
    if listed.get("object") == "list" and isinstance(listed.get("data"), list):
        return _in_order(cast("list[object]", listed["data"]))
    return value


def _in_order(items: list[object]) -> list[object]:
    """Return the items of a conversation, which the API lists with the newest first, in the order of time."""
    calls: set[object] = set()
    for item in map(object_of, items):
        kind, call_id = text_of(item.get("type")) or "", text_of(item.get("call_id"))
        if kind.endswith("_output") and call_id is not None and call_id not in calls:
            return items[::-1]
        calls.add(call_id)
    return items


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
