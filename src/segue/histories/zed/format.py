"""The record of Zed: threads of its agent, rows of a database.

Facts (sources of Zed, db.rs and thread.rs; 2026-11-18):
- A row of `threads` has `data`, JSON that is compressed with zstd, or plain, by `data_type`. Rows with `parent_id` are
  sub-agents. Threads of agents that Zed runs over ACP are not here.
- Since version 0.3.0 a message is `{"User": ...}`, `{"Agent": ...}`, `"Resume"`, or `{"Compaction": ...}`, before which
  nothing is sent. Results of the calls of an answer are in `tool_results` of it, by the id of the call.
- Before, a message has a `role`, `segments`, `tool_uses` and `tool_results`.
- The form of `folder_paths` was not checked.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Final, cast

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, UserContent
from segue.conversation.context import Origin, Summary
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from segue.errors import LoadError, install_line
from segue.foundation.plurals import counted
from segue.histories.kit.documents import finish_history, json_text, parse_object, refuse_branch
from segue.histories.kit.envelope import with_envelope
from segue.histories.kit.format import Format, Place
from segue.histories.kit.history import Child, Compaction, History, Session
from segue.histories.kit.lines import object_of, objects_of, text_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import UNKNOWN, find_origin, set_origin
from segue.histories.kit.pieces import make_call, media_of, stop_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import AgentDatabase, Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.unread import note_unread
from segue.projection.report import ChangeCode, Loss

NAME: Final = "zed"
KNOWN_RECORDS: Final = frozenset({"Resume"})
_TABLE: Final = "threads"
_LARGEST: Final = 2**29
"""Bytes that a thread may have: a row made to fill the memory is not unpacked."""


def read(source: Source, view: View) -> History:
    """Read one thread.

    Raises:
        LoadError: the source is not a database of Zed, or its rows need a package that is not installed.
    """
    refuse_branch(view, "Zed")
    database = _database(source)
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    row = _choose(database, source.session)
    thread = parse_object(_unpacked(row))
    given = thread.get("messages")
    if not isinstance(given, list):
        raise LoadError("no conversation found: the row has no `messages` of Zed")
    model = object_of(thread.get("model"))
    name = text_of(model.get("model"))
    origin = UNKNOWN if name is None else find_origin(name, text_of(model.get("provider")) or "")
    older: list[Message] = []
    messages: list[Message] = []
    summary: str | None = None
    for number, item in enumerate(cast("list[object]", given), 1):
        compaction = object_of(item).get("Compaction")
        if compaction is not None:
            older += messages
            summary = text_of(object_of(compaction).get("Summary")) or ""
            made = UserMessage.of(summary or "(the conversation before this was compacted)")
            messages = [with_envelope(made, NAME, {}, own=not summary)]
            continue
        messages += _read(item, number, notes, origin)
    children = [
        Child(id=str(each.get("id")), title=text_of(each.get("summary")))
        for each in database.rows(_TABLE)
        if each.get("parent_id") and each.get("parent_id") == row.get("id")
    ]
    for at, child in enumerate(children):
        notes.add(ChangeCode.CHILD_LEFT_OUT, ("children", at), Loss.CONTENT, child.id)
    others = sum(not each.get("parent_id") for each in database.rows(_TABLE)) - 1
    if source.session is None and others > 0:
        detail = f"{counted(others, 'further conversation')}; `session` selects one"
        notes.add(ChangeCode.RECORD_LEFT_OUT, ("records", "conversation"), Loss.CONTENT, detail)
    found = None
    if summary is not None and older:
        found = Compaction(summary=Summary(covers=len(older), text=summary), messages=tuple(older))
    full = view.name == "full" and found is not None
    return finish_history(
        NAME,
        notes,
        [*older, *messages[1:]] if full else messages,
        session_id=text_of(row.get("id")),
        version=text_of(thread.get("version")),
        title=text_of(row.get("summary")) or text_of(thread.get("title")),
        cwd=_folder(row),
        created=milliseconds_of(row.get("created_at")),
        updated=milliseconds_of(row.get("updated_at")),
        children=children,
        compaction=found,
        shows_compacted=full,
        given=((number, _shown(item)) for number, item in enumerate(cast("list[object]", given), 1)),
    )


def _database(source: Source) -> AgentDatabase:
    if source.database is None or _TABLE not in source.database.tables():
        raise LoadError("no conversation found: the source is not a database with the table threads of Zed")
    return source.database


def _choose(database: AgentDatabase, wanted: str | None) -> Mapping[str, object]:
    rows = list(database.rows(_TABLE, **({"id": wanted} if wanted else {})))
    mains = [row for row in rows if not row.get("parent_id")]
    if not rows:
        raise LoadError(f"the database has no thread {wanted!r}" if wanted else "the database has no thread")
    return max(mains or rows, key=lambda row: milliseconds_of(row.get("updated_at")) or 0)


def _unpacked(row: Mapping[str, object]) -> bytes:
    data = row.get("data")
    data = data.encode() if isinstance(data, str) else data if isinstance(data, bytes) else b""
    if row.get("data_type") != "zstd":
        return data
    try:
        module: Any = import_module("compression.zstd" if sys.version_info >= (3, 14) else "zstandard")
    except ImportError:
        raise LoadError(
            f"threads of Zed are compressed with zstd; install the package zstandard: {install_line('corpus')}"
        ) from None
    try:
        if sys.version_info >= (3, 14):
            return cast("bytes", module.ZstdDecompressor().decompress(data, _LARGEST))
        return cast("bytes", module.ZstdDecompressor().stream_reader(data).read(_LARGEST))
    except Exception as error:
        raise LoadError(f"the thread is damaged: {error}") from error


def _folder(row: Mapping[str, object]) -> str | None:
    paths = text_of(row.get("folder_paths"))
    return None if paths is None else paths.splitlines()[0]


def _read(item: object, number: int, notes: Notes, origin: Origin) -> Iterator[Message]:
    since = notes.left_out
    fields = object_of(item)
    if isinstance(item, str):
        notes.record(item, number, len(item))
        return
    if "User" in fields:
        made = list(_user(object_of(fields["User"])))
    elif "Agent" in fields:
        made = list(_agent(object_of(fields["Agent"]), origin))
    elif "role" in fields:
        made = list(_older(fields, origin))
    else:
        notes.record(next(iter(fields), "unknown"), number, len(json_text(item)), item if notes.keeps else None)
        return
    shown = {key: value for key, value in (object_of(fields.get("Agent")) or fields).items() if key != "tool_results"}
    shown["content"] = [_without_copies(part) for part in objects_of(shown.get("content"))]
    note_unread(shown, [message.content for message in made], number, notes, since=since)
    yield from made


def _without_copies(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part of an answer without the text of the arguments, which repeats them."""
    call = object_of(part.get("ToolUse"))
    return {"ToolUse": {**without(call, ("raw_input",)), "input": _arguments(call)}} if call else part


def _shown(item: object) -> object:
    """Return an item without what repeats it: the text of arguments, and what a tool gave before it was shortened."""
    agent = object_of(object_of(item).get("Agent"))
    if not agent:
        return item
    parts, results = agent.get("content"), agent.get("tool_results")
    shown = dict(agent)
    if isinstance(parts, list):
        listed = cast("list[object]", parts)
        shown["content"] = [_without_copies(object_of(part)) if object_of(part) else part for part in listed]
    if isinstance(results, dict):
        named = cast("dict[str, object]", results)
        shown["tool_results"] = {
            name: without(object_of(result), ("output",)) or result for name, result in named.items()
        }
    return shown


def _user(given: dict[str, Any]) -> Iterator[Message]:
    content = tuple(piece for part in objects_of(given.get("content")) for piece in _piece(part))
    yield with_envelope(UserMessage(content=content), NAME, {"id": given.get("id")})


def _piece(part: dict[str, Any]) -> Iterator[UserContent]:
    mention = object_of(part.get("Mention"))
    if isinstance(part.get("Text"), str):
        yield TextContent(text=part["Text"])
    elif mention:
        uri = mention.get("uri")
        name = uri if isinstance(uri, str) else json_text(uri)
        yield TextContent(text=f"{name}\n{mention.get('content') or ''}".strip())
    elif (image := media_of("image/png", data=text_of(object_of(part.get("Image")).get("source")))) is not None:
        yield image


def _agent(given: dict[str, Any], origin: Origin) -> Iterator[Message]:
    pieces = [piece for part in objects_of(given.get("content")) for piece in _reply(part)]
    answer = AssistantMessage(content=tuple(pieces), stop_reason=stop_of(None, pieces))
    if pieces:
        yield with_envelope(set_origin(answer, origin), NAME, {})
    for call_id, result in object_of(given.get("tool_results")).items():
        yield _result(call_id, object_of(result))


def _reply(part: dict[str, Any]) -> Iterator[AssistantContent]:
    thinking, call = object_of(part.get("Thinking")), object_of(part.get("ToolUse"))
    if isinstance(part.get("Text"), str):
        yield TextContent(text=part["Text"])
    elif thinking:
        yield ThinkingContent(
            thinking=text_of(thinking.get("text")) or "", thinking_signature=text_of(thinking.get("signature"))
        )
    elif isinstance(part.get("RedactedThinking"), str):
        yield ThinkingContent(thinking="", thinking_signature=part["RedactedThinking"], redacted=True)
    elif call:
        signature = text_of(call.get("thought_signature"))
        yield make_call(call.get("id"), call.get("name"), _arguments(call), signature=signature)


def _arguments(call: dict[str, Any]) -> object:
    given = object_of(call.get("input"))
    if given.keys() == {"type", "value"} and given["type"] in ("json", "text"):
        return given["value"]
    return call.get("raw_input") if call.get("input") is None else call.get("input")


def _result(call_id: str, result: dict[str, Any]) -> ToolResultMessage:
    content = result.get("content")
    listed = cast("list[object]", content) if isinstance(content, list) else [content]
    pieces: list[UserContent] = []
    for each in listed:
        pieces += [TextContent(text=each)] if isinstance(each, str) else list(_piece(object_of(each)))
    if not pieces and (text := text_of(result.get("output"))) is not None:
        pieces.append(TextContent(text=text))
    return ToolResultMessage(
        tool_call_id=call_id,
        tool_name=text_of(result.get("tool_name")) or "",
        content=tuple(pieces),
        is_error=result.get("is_error") is True,
    )


def _older(fields: dict[str, Any], origin: Origin) -> Iterator[Message]:
    """Read a message of a version before 0.3.0."""
    segments = objects_of(fields.get("segments"))
    if fields.get("role") != "assistant":
        texts = (text_of(segment.get("text")) for segment in segments)
        yield UserMessage(content=tuple(TextContent(text=text) for text in texts if text))
        return
    pieces: list[AssistantContent] = []
    for segment in segments:
        text, signature = text_of(segment.get("text")) or "", text_of(segment.get("signature"))
        if segment.get("type") == "thinking":
            pieces.append(ThinkingContent(thinking=text, thinking_signature=signature))
        elif segment.get("type") == "RedactedThinking":
            pieces.append(ThinkingContent(thinking="", thinking_signature=text_of(segment.get("data")), redacted=True))
        elif text:
            pieces.append(TextContent(text=text))
    pieces += [
        make_call(call.get("id"), call.get("name"), call.get("input")) for call in objects_of(fields.get("tool_uses"))
    ]
    if pieces:
        yield set_origin(AssistantMessage(content=tuple(pieces), stop_reason=stop_of(None, pieces)), origin)
    for result in objects_of(fields.get("tool_results")):
        yield _result(text_of(result.get("tool_use_id")) or "", result)


def list_sessions(source: Source) -> tuple[Session, ...]:
    """List the threads of a database, without those of sub-agents.

    Raises:
        LoadError: it cannot be read.
    """
    return tuple(
        Session(
            format=NAME,
            id=str(row.get("id")),
            path=source.path or source.name,
            title=text_of(row.get("summary")),
            cwd=_folder(row),
            created=milliseconds_of(row.get("created_at")),
            updated=milliseconds_of(row.get("updated_at")),
        )
        for row in _database(source).rows(_TABLE)
        if not row.get("parent_id")
    )


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    list=list_sessions,
    samples=read_samples(__package__),
    title="Zed",
    place=Place(
        folder=".local/share/zed",
        variables=("XDG_DATA_HOME/zed",),
        databases=("threads/threads.db",),
        system_folders={"darwin": "Library/Application Support/Zed", "win32": "AppData/Local/Zed"},
    ),
    reads_lines=False,
    source="zed-industries/zed",
    read_on="2026-11-18",
)
