"""The record of Droid.

Reads a session of Droid, the agent of Factory.

Facts (other readers' code and fixtures, specstoryai/getspecstory among them; 2026-11-17):
- The first line is `session_start`, with id, title and folder. A `message` has Anthropic content, or a text, and hangs
  under its `parentId`; that of the first one is missing, or is the id of the session.
- Thinking is a block `thinking`, `reasoning` or `thought`, with its words in `thinking` or `text`.
- The model is in `<id>.settings.json` next to the file, for the whole session, and rarely in a message.
- Droid puts `<system-reminder>` texts next to the words of the user.
- `compaction_state` has a summary. What is sent after one is not known, so that all messages are read.
"""

from __future__ import annotations

from typing import Any, Final, cast

from segue.conversation.messages import Message
from segue.errors import LoadError
from segue.histories.kit.anthropic_turns import read_turn
from segue.histories.kit.documents import describe_document, finish_history, parse_object
from segue.histories.kit.envelope import with_envelope
from segue.histories.kit.format import Excerpt, Format, Place
from segue.histories.kit.history import History, Session
from segue.histories.kit.lines import decode_objects, first_objects, object_of, objects_of, text_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import find_origin
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.trees import Tree
from segue.histories.kit.unread import note_unread

NAME: Final = "droid"
KNOWN_RECORDS: Final = frozenset({"compaction_state", "todo_state"})
_REMINDER: Final = "<system-reminder>"
_THOUGHTS: Final = frozenset({"reasoning", "thought", "thinking"})


def read(source: Source, view: View) -> History:
    """Read one session.

    Raises:
        LoadError: the file has no message of Droid, or not the branch that the view asks for.
    """
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    start: dict[str, Any] = {}
    lines: dict[str, tuple[int, dict[str, Any]]] = {}
    parents: dict[str, str | None] = {}
    for line, fields in decode_objects(source.data or b"", notes):
        kind = text_of(fields.get("type"))
        if kind == "message":
            name = text_of(fields.get("id")) or f"line {line.number}"
            if name in lines:
                notes.unreadable(line.number, "a message needs its own `id`")
                continue
            parent = text_of(fields.get("parentId"))
            parents[name] = parent if parent in lines else next(reversed(lines), None)
            lines[name] = (line.number, fields)
        elif kind == "session_start" and not start:
            start = fields
        else:
            notes.record(kind or "unknown", line.number, len(line.data), fields if notes.keeps else None)
    if not lines:
        raise LoadError("no conversation found: the file has no line of the type message of Droid")
    tree = Tree(parents)
    path = tree.path(tree.end(view, next(reversed(lines))))
    settings = parse_object(source.neighbours.read(source.name.removesuffix(".jsonl") + ".settings.json"))
    model = text_of(settings.get("model"))
    return finish_history(
        NAME,
        notes,
        [message for name in path for message in _read_line(*lines[name], model, notes)],
        session_id=text_of(start.get("id")) or _id_of(source.name) or None,
        title=text_of(start.get("sessionTitle")) or text_of(start.get("title")),
        cwd=text_of(start.get("cwd")),
        branches=tree.branches(
            path,
            notes,
            is_message=lambda name: name in lines,
            text_of=lambda name: "\n".join(text_of(block.get("text")) or "" for block in _blocks(lines[name][1])),
            time_of=lambda name: milliseconds_of(lines[name][1].get("timestamp")),
        ),
        extra={"session_start": start, "settings": settings} if start or settings else None,
    )


def _id_of(name: str) -> str:
    return name.rpartition("/")[2].removesuffix(".jsonl")


def _blocks(fields: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the content of a message as blocks of Anthropic."""
    content = object_of(fields.get("message")).get("content")
    listed = cast("list[object]", content) if isinstance(content, list) else [content] if content else []
    blocks = objects_of([{"type": "text", "text": item} if isinstance(item, str) else item for item in listed])
    return [_thinking(block) if text_of(block.get("type")) in _THOUGHTS else block for block in blocks]


def _thinking(block: dict[str, Any]) -> dict[str, Any]:
    words = text_of(block.get("thinking")) or text_of(block.get("text"))
    made = {**without(block, ("text",)), "type": "thinking"}
    return made if words is None else {**made, "thinking": words}


def _is_reminder(block: dict[str, Any]) -> bool:
    return (text_of(block.get("text")) or "").lstrip().startswith(_REMINDER)


def _read_line(number: int, fields: dict[str, Any], model: str | None, notes: Notes) -> list[Message]:
    since = notes.left_out
    wire = object_of(fields.get("message"))
    if not wire:
        notes.unreadable(number, "message: an object with a role and content is expected")
        return []
    named = text_of(wire.get("model")) or model
    origin = None if named is None else find_origin(named)
    envelope = {**without(fields, ("message", "type")), "message": without(wire, ("content", "role"))}
    time, role, blocks = milliseconds_of(fields.get("timestamp")), wire.get("role"), _blocks(fields)
    own = [block for block in blocks if role == "user" and _is_reminder(block)]
    made: list[Message] = []
    for part in (own, [block for block in blocks if block not in own]) if own else (blocks,):
        turn = {"role": role, "content": part}
        read = read_turn(turn, number, notes, origin=origin, time=time, usage=None) if part or not own else []
        made += [with_envelope(message, NAME, envelope, own=part is own) for message in read]
    note_unread(fields, [message.content for message in made], number, notes, since=since)
    return made


def describe(excerpt: Excerpt) -> Session | None:
    """Describe a session by its file; None for one of pi, whose files are in a folder of the same name."""
    if not any(line.get("type") == "session_start" for line in first_objects(excerpt.head, 1)):
        return None
    return describe_document(excerpt, NAME, read, _id_of(excerpt.name))


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    describe=describe,
    samples=read_samples(__package__),
    title="Droid",
    place=Place(folder=".factory", patterns=("sessions/*.jsonl", "sessions/*/*.jsonl")),
    source="specstoryai/getspecstory; fixtures of other readers",
    read_on="2026-11-17",
)
