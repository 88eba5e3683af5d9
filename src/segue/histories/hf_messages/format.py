"""The record of conversations as data sets have them: one row with `messages`, and often `tools`.

It is the form of Hugging Face's chat templates and of OpenAI's fine-tuning files. A file has one row in each line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from segue.conversation.messages import Message
from segue.histories.kit.chat_messages import ChatForm, read_tools, write_functions
from segue.histories.kit.documents import LINES
from segue.histories.kit.entries import Entry, Writing, with_weight
from segue.histories.kit.format import Draft
from segue.histories.kit.framework import EntryList, Framework, framework_format, give_json, items_of, list_of
from segue.histories.kit.lines import object_of, text_of
from segue.histories.kit.samples import read_samples

NAME: Final = "hf-messages"
_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "function", "ipython", "model"})


def _rows(value: object) -> list[dict[str, Any]]:
    whole = object_of(value)
    if LINES in whole:
        return [object_of(row) for row in items_of(whole[LINES])]
    return [whole] if whole else []


def _is_row(row: Mapping[str, Any]) -> bool:
    messages = list_of(row.get("messages"))
    return bool(messages) and text_of((messages or [{}])[0].get("role")) in _ROLES


def _open(value: object, session: str | None) -> EntryList | None:
    rows = [row for row in _rows(value) if _is_row(row)]
    if not rows:
        return None
    at = int(session) if session is not None and session.isdecimal() and int(session) < len(rows) else 0
    row = rows[at]
    rest = {key: item for key, item in row.items() if key != "messages"}
    entries = cast("list[Entry]", row["messages"])
    return EntryList(entries, rest, tools=read_tools(row.get("tools")), others=len(rows) - 1)


def _complete(entries: list[Entry], draft: Draft) -> list[Entry]:
    """Write every content as a list if one is: a column of a data set has one type."""
    if draft.history.origin.format == NAME or not any(isinstance(entry.get("content"), list) for entry in entries):
        return entries
    return [
        {**entry, "content": [{"type": "text", "text": entry["content"]}]}
        if isinstance(entry.get("content"), str)
        else entry
        for entry in entries
    ]


def _close(entries: list[Entry], rest: Mapping[str, Any], draft: Draft) -> object:
    made: dict[str, Any] = {"messages": entries, **rest}
    tools = draft.history.context.tools
    if tools and read_tools(rest.get("tools")) != tools:
        made["tools"] = [{"type": "function", "function": each} for each in write_functions(tools)]
    return made


_CODEC: Final = ChatForm(name=NAME, title="a data set", text_arguments=False, thinking="thinking").codec()


def _write(messages: Sequence[Message], writing: Writing) -> list[Entry]:
    return with_weight(_CODEC.write(messages, writing), messages[0], NAME)


FRAMEWORK: Final = Framework(
    codec=replace(_CODEC, write=_write),
    title="a data set",
    open=_open,
    close=_close,
    complete=_complete,
    stores_tools=True,
    lines=True,
    file_name="messages.jsonl",
)
FORMAT: Final = framework_format(
    FRAMEWORK,
    give=give_json,
    samples=read_samples(__package__),
    title="Hugging Face messages",
    source="datasets 5.2.0; templates of transformers; OpenAI's fine-tuning files",
)
