"""The record of Roo Code.

Reads a task of Roo Code.

Facts (RooCodeInc/Roo-Code 3.52.1, read 2026-11-15):
- `api_conversation_history.json` is a list of Anthropic messages with `ts`, and items `type: reasoning` of OpenAI, each
  before the answer that it led to. It names no models.
- A summary (`isSummary`) has a `condenseId`; messages with that `condenseParent` are no more sent. `truncationId` and
  `truncationParent` do the same for messages that were cut off without a summary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from msgspec.structs import replace

from segue.conversation.content import ThinkingContent
from segue.conversation.context import Summary
from segue.conversation.messages import AssistantMessage, Message
from segue.errors import LoadError
from segue.histories.kit.anthropic_turns import WIRE, read_turn
from segue.histories.kit.documents import describe_document, finish_history, load_value, parse_object, refuse_branch
from segue.histories.kit.envelope import plain_text, with_envelope
from segue.histories.kit.format import Excerpt, Format, Place
from segue.histories.kit.framework import items_of
from segue.histories.kit.history import Compaction, History, Session
from segue.histories.kit.lines import object_of, objects_of, task_id, text_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import find_origin
from segue.histories.kit.pieces import reasoning_item
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.text_results import pair_text_results
from segue.histories.kit.unread import note_unread

NAME: Final = "roo-code"
FILE: Final = "api_conversation_history.json"
_HIDDEN: Final = (("condenseParent", "condenseId"), ("truncationParent", "truncationId"))


def read(source: Source, view: View) -> History:
    """Read one task.

    Raises:
        LoadError: the file has no list of messages.
    """
    refuse_branch(view, "Roo Code")
    notes = Notes(keep=view.keep_records)
    value = load_value(source)
    if not isinstance(value, list):
        raise LoadError("no conversation found: a list of messages of Roo Code is expected")
    given = cast("list[object]", value)
    items = [object_of(item) for item in given]
    hidden = _hidden(items)
    active: list[Message] = []
    replaced: list[Message] = []
    everything: list[Message] = []
    reasoning: list[ThinkingContent] = []
    for number, fields in enumerate(items, 1):
        if fields.get("type") == "reasoning":
            reasoning.append(_reasoning(fields))
            note_unread(fields, reasoning, number, notes, since=notes.left_out)
            continue
        since = notes.left_out
        made = _read_message(fields, number, notes, reasoning)
        note_unread({"message": given[number - 1]}, made, number, notes, since=since)
        reasoning = []
        (replaced if number - 1 in hidden else active).extend(made)
        if fields.get("isSummary") is not True:
            everything += made
    if reasoning:
        last = AssistantMessage(content=tuple(reasoning), protocol=WIRE.protocol, provider="", model="")
        active.append(last)
        everything.append(last)
    active, everything = pair_text_results(active), pair_text_results(everything)
    compaction = _compaction(items, replaced, active)
    full = view.name == "full" and compaction is not None
    manifest = parse_object(source.neighbours.read(source.name.removesuffix(FILE) + "history_item.json"))
    return finish_history(
        NAME,
        notes,
        everything if full else active,
        session_id=text_of(manifest.get("id")) or task_id(source.name),
        title=text_of(manifest.get("task")),
        cwd=text_of(manifest.get("workspace")),
        compaction=compaction,
        shows_compacted=full,
        extra={"history_item": manifest} if manifest else None,
    )


def _hidden(items: Sequence[dict[str, Any]]) -> set[int]:
    """Return the places of messages that are not sent: those whose summary, or whose cut, is there."""
    found: set[int] = set()
    for parent, own in _HIDDEN:
        ids = {text_of(item.get(own)) for item in items} - {None}
        found |= {at for at, item in enumerate(items) if text_of(item.get(parent)) in ids}
    return found


def _reasoning(fields: dict[str, Any]) -> ThinkingContent:
    pieces = [*objects_of(fields.get("summary")), *objects_of(fields.get("content"))]
    text = "\n\n".join(text for piece in pieces if (text := text_of(piece.get("text"))))
    return reasoning_item(text, text_of(fields.get("id")), text_of(fields.get("encrypted_content")))


def _read_message(
    fields: dict[str, Any], number: int, notes: Notes, reasoning: Sequence[ThinkingContent]
) -> list[Message]:
    time = milliseconds_of(fields.get("ts"))
    envelope = without(fields, ("content", "role"))
    info = object_of(fields.get("modelInfo"))
    model = text_of(info.get("modelId"))
    origin = None if model is None else find_origin(model, text_of(info.get("providerId")) or "")
    turn = (
        {**fields, "content": [_plain_reasoning(block) for block in items_of(fields["content"])]}
        if isinstance(fields.get("content"), list)
        else fields
    )
    made = read_turn(turn, number, notes, origin=origin, time=time, usage=None)
    words = text_of(fields.get("reasoning_content"))
    before = [*reasoning, *([ThinkingContent(thinking=words)] if words else [])]
    if before and made and isinstance(made[0], AssistantMessage):
        made[0] = replace(made[0], content=(*before, *made[0].content))
    elif before:
        made.insert(0, AssistantMessage(content=tuple(before), protocol=WIRE.protocol, provider="", model=""))
    return [with_envelope(message, NAME, envelope) for message in made]


def _plain_reasoning(block: object) -> object:
    """Return reasoning that is stored as a block with its words as thinking without a signature."""
    fields = object_of(block)
    words = text_of(fields.get("text"))
    if fields.get("type") != "reasoning" or words is None or fields.get("encrypted_content") is not None:
        return block
    return {"type": "thinking", "thinking": words}


def _compaction(
    items: Sequence[dict[str, Any]], replaced: Sequence[Message], active: Sequence[Message]
) -> Compaction | None:
    if not replaced:
        return None
    nothing: dict[str, Any] = {}
    summary = next((item for item in reversed(items) if item.get("isSummary") is True), nothing)
    own = text_of(summary.get("condenseId"))
    marked = (message for message in active if (message.extra or {}).get(NAME, {}).get("isSummary") is True)
    text = next((plain_text(message) for message in marked), "")
    time = milliseconds_of(summary.get("ts"))
    return Compaction(
        summary=Summary(covers=len(replaced), text=text, timestamp=time), messages=tuple(replaced), id=own
    )


def describe(excerpt: Excerpt) -> Session | None:
    """Describe a task by its file."""
    return describe_document(excerpt, NAME, read, task_id(excerpt.name) or excerpt.name)


def _place(extension: str, *others: Place) -> Place:
    storage = f"Code/User/globalStorage/{extension}"
    return Place(
        folder=f".config/{storage}",
        patterns=(f"tasks/*/{FILE}",),
        system_folders={
            "darwin": f"Library/Application Support/{storage}",
            "win32": f"AppData/Roaming/{storage}",
        },
        others=others,
    )


FORMAT: Final = Format(
    name=NAME,
    read=read,
    describe=describe,
    samples=read_samples(__package__),
    title="Roo Code",
    # Kilo stored its tasks like this until March 2026 (read, 2026-11-18).
    place=_place("rooveterinaryinc.roo-cline", _place("kilocode.kilo-code")),
    reads_lines=False,
    source="RooCodeInc/Roo-Code 3.52.1",
    read_on="2026-11-15",
)
