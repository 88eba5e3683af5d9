"""The record of SWE-agent: trajectories, which hold the conversation in `history`.

Facts (SWE-agent 1.1.0 and before 1.0, twelve public trajectories; read 2026-11-16):
- `history` has messages of Chat with `thinking_blocks`; `trajectory` repeats them step by step.
- A result names its calls in the list `tool_call_ids`. Before 1.0 there are no tools: results are texts of the user.
- A message with `is_demo` is a demonstration, and no part of the run.
- The model is named in `replay_config` alone: an object, or its JSON text.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from segue.conversation.messages import AssistantMessage
from segue.histories.kit.chat_messages import ChatForm
from segue.histories.kit.documents import load_value, parse_object
from segue.histories.kit.entries import Entry
from segue.histories.kit.format import Format
from segue.histories.kit.framework import EntryList, Framework, close_list, items_of
from segue.histories.kit.history import History
from segue.histories.kit.lines import object_of, objects_of, text_of
from segue.histories.kit.origins import find_origin, set_origin
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.projection.report import Change, ChangeCode, Loss

NAME: Final = "swe-agent"


def _open(value: object, session: str | None) -> EntryList | None:  # noqa: ARG001 - one file is one run
    whole = object_of(value)
    history = whole.get("history")
    entries = objects_of(history)
    if not isinstance(history, list) or not entries:
        return None
    run = [_plain(entry) for entry in entries if entry.get("is_demo") is not True]
    changes: list[Change] = []
    if demos := len(entries) - len(run):
        detail = f"{demos} messages of a demonstration"
        changes.append(Change(code=ChangeCode.RECORD_LEFT_OUT, path=("records", "demo"), loss=Loss.NONE, detail=detail))
    if len(entries) < len(history):  # pyright: ignore[reportUnknownArgumentType]
        detail = "`history` has values that are not messages"
        changes.append(Change(code=ChangeCode.LINE_UNREADABLE, path=("history",), loss=Loss.CONTENT, detail=detail))
    return EntryList(run, changes=tuple(changes))


def _plain(entry: Entry) -> Entry:
    ids = entry.get("tool_call_ids")
    first = items_of(ids)[0] if items_of(ids) else None
    return {**entry, "tool_call_id": first} if isinstance(first, str) and "tool_call_id" not in entry else entry


FRAMEWORK: Final = Framework(
    codec=ChatForm(name=NAME, title="SWE-agent", blocks=True).codec(), title="SWE-agent", open=_open, close=close_list
)


def read(source: Source, view: View) -> History:
    """Read one run.

    Raises:
        LoadError: the source is not a trajectory of SWE-agent.
    """
    history = FRAMEWORK.read(source, view)
    config = object_of(load_value(source)).get("replay_config")
    settings = object_of(config) or parse_object(config)
    model = text_of(object_of(object_of(settings.get("agent")).get("model")).get("name"))
    if model is None:
        return history
    origin = find_origin(model)
    messages = tuple(
        set_origin(message, origin) if isinstance(message, AssistantMessage) else message
        for message in history.context.messages
    )
    return replace(history, context=replace(history.context, messages=messages))


FORMAT: Final = Format(
    name=NAME,
    title="SWE-agent",
    kind="export",
    read=read,
    reads_lines=False,
    samples=read_samples(__package__),
    source="SWE-agent/SWE-agent 1.1.0; public trajectories",
    read_on="2026-11-16",
)
