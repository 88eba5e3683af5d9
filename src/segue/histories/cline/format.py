"""The record of Cline.

Reads a session of Cline, and a task that it stored in VS Code before.

Facts (Cline 3.0.65, seen 2026-11-15; cline/cline 2026-08-22, read):
- `<id>.messages.json` has Anthropic messages with `id`, `ts`, `modelInfo` and `metrics`; `<id>.json` next to it has the
  folder, the title and the times.
- The content of a result is a list of `{query, result, success, error}`.
- Thinking is stored without its signature.
- A user's words are in `<user_input mode="act">`.                                    (3.0.65, seen 2026-11-18)
- In VS Code a task was `api_conversation_history.json`, a list of Anthropic messages without models.
"""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec.structs import replace

from segue.conversation.messages import Message, UserMessage
from segue.errors import LoadError
from segue.histories.kit.anthropic_turns import read_turn
from segue.histories.kit.documents import describe_document, finish_history, load_value, parse_object, refuse_branch
from segue.histories.kit.envelope import with_envelope
from segue.histories.kit.format import Excerpt, Format, Place
from segue.histories.kit.history import History, Session
from segue.histories.kit.lines import integer_of, object_of, objects_of, task_id, text_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import find_origin
from segue.histories.kit.pieces import usage_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.text_results import pair_text_results
from segue.histories.kit.unread import note_unread

NAME: Final = "cline"
KNOWN_RECORDS: Final = frozenset({"system prompt"})
_SUFFIX: Final = ".messages.json"
_INPUT: Final = re.compile(r"\A<user_input(?: [^>]*)?>(.*)</user_input>\s*\Z", re.DOTALL)


def read(source: Source, view: View) -> History:
    """Read one session.

    Raises:
        LoadError: the file has no messages of Cline.
    """
    refuse_branch(view, "Cline")
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    value = load_value(source)
    document: dict[str, Any] = {"messages": value} if isinstance(value, list) else object_of(value)
    if not isinstance(document.get("messages"), list):
        raise LoadError("no conversation found: the file has no list of messages of Cline")
    messages: list[Message] = []
    for number, fields in enumerate(document["messages"], 1):
        since = notes.left_out
        made = _read_message(object_of(fields), number, notes)
        note_unread({"message": fields}, made, number, notes, since=since)
        messages += made
    messages = pair_text_results(messages)
    if prompt := text_of(document.get("system_prompt")):
        notes.record("system prompt", 0, len(prompt.encode("utf-8", "replace")), prompt if notes.keeps else None)
    manifest = _read_manifest(source, notes)
    metadata = object_of(manifest.get("metadata"))
    own = object_of(document.get("origin"))
    return finish_history(
        NAME,
        notes,
        messages,
        session_id=text_of(document.get("sessionId")) or task_id(source.name) or task_id(source.path or ""),
        version=text_of(own.get("version")),
        title=text_of(metadata.get("title")),
        cwd=text_of(manifest.get("cwd")),
        created=milliseconds_of(manifest.get("started_at")),
        updated=milliseconds_of(document.get("updated_at")),
        extra={"document": without(document, ("messages", "system_prompt")), "manifest": manifest},
    )


def _read_message(fields: dict[str, Any], number: int, notes: Notes) -> list[Message]:
    info, metrics = object_of(fields.get("modelInfo")), object_of(fields.get("metrics"))
    model = text_of(info.get("id")) or text_of(info.get("modelId"))
    names = ("inputTokens", "cacheReadTokens", "cacheWriteTokens")
    new, cached, written = (integer_of(metrics.get(name)) for name in names)
    usage = usage_of(
        new + cached + written,
        metrics.get("outputTokens"),
        cache_read=cached,
        cache_write=written,
        cost=metrics.get("cost"),
    )
    origin = (
        None
        if model is None
        else find_origin(model, text_of(info.get("provider")) or text_of(info.get("providerId")) or "")
    )
    time = milliseconds_of(fields.get("ts"))
    made = read_turn(fields, number, notes, origin=origin, time=time, usage=usage)
    made = [_with_words(message) if isinstance(message, UserMessage) else message for message in made]
    envelope = without(fields, ("content", "role"))
    if asked := [_asked(block) for block in objects_of(fields.get("content")) if block.get("type") == "tool_result"]:
        envelope["results"] = asked
    return [with_envelope(message, NAME, envelope) for message in made]


def _with_words(message: UserMessage) -> UserMessage:
    """Return the words of the user without the tag that the program puts around them."""
    content = tuple(
        replace(piece, text=found[1]) if piece.kind == "text" and (found := _INPUT.match(piece.text)) else piece
        for piece in message.content
    )
    return message if content == message.content else replace(message, content=content)


def _asked(block: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a result says about each question, without the answers."""
    return [without(piece, ("result", "error", "text", "source")) for piece in objects_of(block.get("content"))]


def _read_manifest(source: Source, notes: Notes) -> dict[str, Any]:
    """Read the files next to the messages: the manifest, and what a compaction left."""
    if not source.name.endswith(_SUFFIX):
        return {}
    stem = source.name.removesuffix(_SUFFIX)
    if compaction := source.neighbours.read(f"{stem}.compaction.json"):
        notes.record("compaction file", 0, len(compaction), parse_object(compaction) if notes.keeps else None)
    return parse_object(source.neighbours.read(f"{stem}.json"))


def describe(excerpt: Excerpt) -> Session | None:
    """Describe a session by its file."""
    name = excerpt.name.rpartition("/")[2]
    own = name.removesuffix(_SUFFIX)
    return describe_document(excerpt, NAME, read, (task_id(excerpt.name) or own) if own == name else own)


_STORAGE: Final = "Code/User/globalStorage/saoudrizwan.claude-dev"
_EDITOR: Final = Place(
    folder=f".config/{_STORAGE}",
    patterns=("tasks/*/api_conversation_history.json",),
    system_folders={"darwin": f"Library/Application Support/{_STORAGE}", "win32": f"AppData/Roaming/{_STORAGE}"},
)
"""Where the extension of VS Code stored its tasks."""

FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    describe=describe,
    samples=read_samples(__package__),
    title="Cline",
    place=Place(
        folder=".cline/data",
        variables=("CLINE_DATA_DIR", "CLINE_DIR/data"),
        patterns=("sessions/*/*.messages.json",),
        others=(_EDITOR,),
    ),
    reads_lines=False,
    source="Cline 3.0.65, run against a scripted model; cline/cline 2026-08-22",
    read_on="2026-11-15",
)
