"""The record of iFlow.

Facts (a reader of another project and its file of a real session; 2026-11-18; not run):
- Lines look like those of Claude Code, but are not a tree: an answer is several lines under one parent, each a snapshot
  that repeats the call before. They are read in the order of the file, each call and each text once.
- The content of a result is an object: `responseParts.functionResponse.response` has `output` or `error`.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, TextContent
from segue.errors import LoadError
from segue.histories.kit.documents import describe_document, finish_history, json_text, refuse_branch
from segue.histories.kit.format import Excerpt, Format, Place
from segue.histories.kit.history import History, Session
from segue.histories.kit.lines import decode_objects, first_objects, object_of, objects_of, text_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import UNKNOWN, find_origin
from segue.histories.kit.pieces import make_call
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.turn_log import TurnLog, text_and_media
from segue.histories.kit.unread import note_unread

NAME: Final = "iflow"
_PREFIX: Final = "session-"
_BLOCKS: Final = frozenset({"text", "tool_use", "tool_result", "image"})


def read(source: Source, view: View) -> History:
    """Read one session.

    Raises:
        LoadError: the file has no message.
    """
    refuse_branch(view, "iFlow")
    notes = Notes(keep=view.keep_records)
    log, called, about = TurnLog(NAME), set[str](), dict[str, str]()
    given: list[tuple[int, object]] = []
    for line, fields in decode_objects(source.data or b"", notes):
        since = notes.left_out
        given.append((line.number, without(fields, ("cwd",))))
        for key in ("sessionId", "cwd", "version"):
            if (value := text_of(fields.get(key))) is not None:
                about.setdefault(key, value)
        made = _take(log, called, fields)
        blocks = objects_of(object_of(fields.get("message")).get("content"))
        if made is None or any(text_of(block.get("type")) not in _BLOCKS for block in blocks):
            kind = text_of(fields.get("type")) or "unknown"
            notes.record(kind, line.number, len(line.data), fields if notes.keeps else None)
        if made is None:
            continue
        note_unread({"message": fields.get("message")}, made, line.number, notes, since=since)
    messages = log.messages()
    if not messages and not notes.records:
        raise LoadError("no conversation found: the file has no message of iFlow")
    return finish_history(
        NAME,
        notes,
        messages,
        session_id=(about.get("sessionId") or _id_of(source.name)).removeprefix(_PREFIX),
        cwd=about.get("cwd"),
        version=about.get("version"),
        given=given,
    )


def _take(log: TurnLog, called: set[str], fields: dict[str, Any]) -> list[object] | None:
    """Read one line and return what it has; None if it is not part of the conversation."""
    message, time = object_of(fields.get("message")), milliseconds_of(fields.get("timestamp"))
    content, made = message.get("content"), list[object]()
    if fields.get("type") == "assistant":
        model = text_of(message.get("model"))
        pieces: list[AssistantContent] = []
        for block in objects_of(content):
            if block.get("type") == "tool_use":
                call = make_call(block.get("id"), block.get("name"), block.get("input", block))
                made.append(call)
                if call.id not in called or not call.id:
                    pieces.append(call)
                called.add(call.id)
        texts = [piece for piece in text_and_media(content) if isinstance(piece, TextContent)]
        fresh = [text for text in texts if not log.has(text)]
        log.reply([*fresh, *pieces], time, UNKNOWN if model is None else find_origin(model))
        return [*made, *texts]
    if fields.get("type") != "user":
        return None
    for block in objects_of(content):
        if block.get("type") == "tool_result":
            text, is_error = _result(block.get("content"))
            made.append(block.get("content") if isinstance(block.get("content"), dict) and text else text)
            name = text_of(block.get("tool_use_id")) or ""
            log.answer(name, [TextContent(text=text)] if text else [], time, is_error=is_error)
    asked = text_and_media(content)
    if asked:
        log.ask(asked, time)
    return [*made, *asked] if made or asked else None


def _result(content: object) -> tuple[str, bool]:
    """Return the text of a result, and whether it failed."""
    if isinstance(content, str):
        return content, False
    fields = object_of(content)
    response = object_of(object_of(object_of(fields.get("responseParts")).get("functionResponse")).get("response"))
    error, output = response.get("error"), response.get("output")
    found = output if error is None else error
    if found is None:
        found = response or content
    return found if isinstance(found, str) else "" if found is None else json_text(found), error is not None


def _id_of(name: str) -> str:
    return name.rpartition("/")[2].removesuffix(".jsonl")


def describe(excerpt: Excerpt) -> Session | None:
    """Describe a session by the beginning of its lines."""
    lines = first_objects(excerpt.head, 1)
    if not any((text_of(line.get("sessionId")) or "").startswith(_PREFIX) for line in lines):
        return None
    found = describe_document(excerpt._replace(whole=True), NAME, read, _id_of(excerpt.name))
    if found is None or excerpt.whole:
        return found
    return replace(found, messages=None, tokens=None, cost=None, updated=excerpt.modified)


FORMAT: Final = Format(
    name=NAME,
    read=read,
    describe=describe,
    samples=read_samples(__package__),
    title="iFlow",
    place=Place(folder=".iflow", patterns=("projects/*/session-*.jsonl",)),
    source="a reader of another project and its file of a real session",
    read_on="2026-11-18",
)
