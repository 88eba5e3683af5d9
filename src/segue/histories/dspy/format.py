"""The record of the history of a language model of DSPy: `lm.history`, dumped as JSON.

Facts (dspy 3.4.1, its own dump; 2026-11-18):
- Each entry is one request with its `outputs`. If an entry begins with the messages of the one before and its output,
  they are one conversation, and the last entry has all of it; otherwise they are several.
- An output is a text, or an object with `text`, `reasoning_content` and `tool_calls`. The marks of fields in the texts
  are what was sent. `response` is a text for people unless it was dumped with care.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from segue.conversation.messages import AssistantMessage, Message
from segue.errors import LoadError
from segue.histories.kit.chat_messages import ChatForm
from segue.histories.kit.documents import LINES, choose, conversations_of, finish_history, load_value, refuse_branch
from segue.histories.kit.entries import Reading
from segue.histories.kit.envelope import plain_text, with_envelope
from segue.histories.kit.format import Format
from segue.histories.kit.framework import items_of
from segue.histories.kit.history import History, Session
from segue.histories.kit.lines import integer_of, object_of, objects_of, text_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import find_origin, set_origin
from segue.histories.kit.pieces import stop_of, usage_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.unread import note_unread

NAME: Final = "dspy"
_READ: Final = ChatForm(name=NAME, title="DSPy").codec().read


def _ends(source: Source) -> list[dict[str, Any]]:
    """Return the last entry of each conversation."""
    value = load_value(source, lines=True)
    entries = conversations_of(object_of(value).get(LINES, value))
    return [entry for at, entry in enumerate(entries) if not any(_begins(entry, other) for other in entries[at + 1 :])]


def _begins(entry: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether an entry continues another one: it has its messages first, and then its output."""
    before, after = items_of(entry.get("messages")), items_of(other.get("messages"))
    if not before or len(after) <= len(before):
        return False
    return after[: len(before)] == before and object_of(after[len(before)]).get("role") == "assistant"


def _id_of(entry: dict[str, Any]) -> str | None:
    return text_of(entry.get("uuid"))


def _time_of(entry: dict[str, Any]) -> int | None:
    return milliseconds_of(entry.get("timestamp"))


def read(source: Source, view: View) -> History:
    """Read one conversation: the one that was asked for, or the newest.

    Raises:
        LoadError: there is no entry with messages.
    """
    refuse_branch(view, "DSPy")
    notes = Notes(keep=view.keep_records)
    entry = choose(_ends(source), source.session, notes, _id_of, _time_of)
    messages: list[Message] = []
    for number, item in enumerate(_messages(entry), 1):
        since = notes.left_out
        made = _READ([object_of(item)], Reading(notes)) if object_of(item).get("role") else []
        note_unread({"message": item}, made, number, notes, since=since)
        messages += made
    given = {"outputs": items_of(entry.get("outputs"))[:1]}
    note_unread(given, [message.content for message in messages], len(messages), notes, since=notes.left_out)
    system = None
    if messages and messages[0].role == "system":
        system = plain_text(messages.pop(0))
    if not messages:
        raise LoadError("no conversation found: the entry has no messages")
    model = text_of(entry.get("response_model")) or text_of(entry.get("model")) or ""
    origin, last = find_origin(model), messages[-1]
    if isinstance(last, AssistantMessage):
        usage = object_of(entry.get("usage"))
        counted = usage_of(usage.get("prompt_tokens"), usage.get("completion_tokens"))
        messages[-1] = replace(last, usage=counted, timestamp=_time_of(entry), stop_reason=stop_of(None, last.content))
    named = [set_origin(each, origin) if isinstance(each, AssistantMessage) else each for each in messages]
    return finish_history(
        NAME,
        notes,
        [with_envelope(message, NAME, {}) for message in named],
        session_id=_id_of(entry),
        updated=_time_of(entry),
        system_prompt=system,
        given=[(len(messages) + 1, without(entry, ("messages", "response")))],
    )


def _messages(entry: dict[str, Any]) -> list[object]:
    """Return what was sent, and the first output as a message."""
    sent: list[object] = items_of(entry.get("messages"))
    prompt = text_of(entry.get("prompt"))
    if not sent and prompt:
        sent = [{"role": "user", "content": prompt}]
    first = next(iter(items_of(entry.get("outputs"))), None)
    if isinstance(first, str):
        sent.append({"role": "assistant", "content": first})
    elif fields := object_of(first):
        kept = {key: fields[key] for key in ("reasoning_content", "tool_calls") if fields.get(key)}
        sent.append({"role": "assistant", "content": fields.get("text"), **kept})
    return sent


def list_sessions(source: Source) -> tuple[Session, ...]:
    """List the conversations.

    Raises:
        LoadError: it cannot be read.
    """
    return tuple(
        Session(
            format=NAME,
            id=_id_of(entry) or "",
            path=source.path or source.name,
            updated=_time_of(entry),
            models=tuple(filter(None, [text_of(entry.get("model"))])),
            messages=len(objects_of(entry.get("messages"))) + 1,
            tokens=integer_of(object_of(entry.get("usage")).get("total_tokens")) or None,
        )
        for entry in _ends(source)
    )


FORMAT: Final = Format(
    name=NAME,
    read=read,
    list=list_sessions,
    kind="export",
    samples=read_samples(__package__),
    title="history of DSPy",
    reads_lines=False,
    source="dspy 3.4.1, its own dump",
    read_on="2026-11-18",
)
