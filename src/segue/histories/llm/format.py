"""The record of llm.

Reads the log of llm, an SQLite database.

Facts (llm 0.36, seen 2026-11-15):
- A message is stored once, by the hash of its content and of the message before it. `threads.tip_message_hash` is the
  end of a conversation. `parts` has its content, `turns` the model and the tokens of each answer.
- A signature is in `payload.provider_metadata.<provider>` of a part. The reasoning of Chat models is stored without
  its words, as `redacted`.
- Attachments have their content, a path on the machine, or a URL.
- Older versions have `conversations`, `responses`, `tool_calls` and `tool_results` instead; the results in a row of
  `responses` are those that were sent with its prompt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, ToolCall, UserContent
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from segue.errors import LoadError
from segue.histories.kit.documents import finish_history, json_text, parse_object, parse_text
from segue.histories.kit.envelope import with_envelope
from segue.histories.kit.format import Format, Place
from segue.histories.kit.history import History, Parent, Session
from segue.histories.kit.lines import integer_of, object_of, text_of
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import find_origin
from segue.histories.kit.pieces import make_call, media_of, usage_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import AgentDatabase, Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.trees import Tree
from segue.histories.kit.unread import note_unread
from segue.projection.report import ChangeCode, Loss

NAME: Final = "llm"
_NEW: Final = frozenset({"threads", "turns", "messages", "parts"})
_OLD: Final = frozenset({"conversations", "responses"})

DatabaseRow = Mapping[str, object]
_NOTHING: Final[DatabaseRow] = {}


def read(source: Source, view: View) -> History:
    """Read one conversation: a thread, or a conversation of an older version.

    Raises:
        LoadError: the database is not one of llm, or has no such conversation.
    """
    database = source.database
    if database is None:
        raise LoadError("the log of llm is an SQLite database; name the file logs.db")
    tables = database.tables()
    if not (tables >= _NEW or tables >= _OLD):
        raise LoadError("the database has no tables of llm")
    notes = Notes(keep=view.keep_records)
    threads = list(database.rows("threads")) if tables >= _NEW else []
    chosen = _choose(threads, source.session, "datetime_utc")
    old = list(database.rows("conversations")) if tables >= _OLD else []
    if chosen is not None and (source.session is not None or not old or threads):
        return _read_thread(database, chosen, view, notes)
    conversation = _choose(old, source.session, "id")
    if conversation is None:
        wanted = f"the log has no conversation {source.session!r}" if source.session else "the log has no conversation"
        raise LoadError(wanted)
    return _read_conversation(database, conversation, notes)


def _choose(rows: Sequence[DatabaseRow], session: str | None, newest: str) -> DatabaseRow | None:
    if session is not None:
        return next((row for row in rows if row.get("id") == session), None)
    return max(rows, key=lambda row: str(row.get(newest) or ""), default=None)


def list_sessions(source: Source) -> tuple[Session, ...]:
    """List the conversations of a log.

    Raises:
        LoadError: it cannot be read.
    """
    database = source.database
    if database is None:
        return ()
    found: dict[str, Session] = {}
    tables = database.tables()
    if tables >= _NEW:
        turns: dict[object, list[DatabaseRow]] = {}
        for row in database.rows("turns"):
            turns.setdefault(row.get("thread_id"), []).append(row)
        for row in database.rows("threads"):
            session = _session(source, row, turns.get(row.get("id"), []))
            found[session.id] = session
    if tables >= _OLD:
        replies: dict[object, list[DatabaseRow]] = {}
        for row in database.rows("responses"):
            replies.setdefault(row.get("conversation_id"), []).append(row)
        for row in database.rows("conversations"):
            session = _session(source, row, replies.get(row.get("id"), []))
            found.setdefault(session.id, session)
    return tuple(found.values())


def _session(source: Source, row: DatabaseRow, turns: Sequence[DatabaseRow]) -> Session:
    times = [time for turn in turns if (time := milliseconds_of(turn.get("datetime_utc"))) is not None]
    counts = [integer_of(turn.get(name)) for turn in turns for name in ("input_tokens", "output_tokens")]
    forked = text_of(row.get("forked_from"))
    return Session(
        format=NAME,
        id=str(row.get("id")),
        path=source.path or source.name,
        title=text_of(row.get("name")),
        created=min(times, default=milliseconds_of(row.get("datetime_utc"))),
        updated=max(times, default=milliseconds_of(row.get("datetime_utc"))),
        models=tuple(dict.fromkeys(model for turn in turns if (model := text_of(turn.get("model"))))),
        messages=2 * len(turns),
        tokens=sum(counts),
        parent=None if forked is None else Parent(id=forked, kind="fork"),
    )


# -- threads ----------------------------------------------------------------------------------------------------------


def _read_thread(database: AgentDatabase, thread: DatabaseRow, view: View, notes: Notes) -> History:
    rows = {str(row.get("hash")): row for row in database.rows("messages")}
    tree = Tree({name: text_of(row.get("parent_hash")) for name, row in rows.items()})
    end = tree.end(view, text_of(thread.get("tip_message_hash")))
    turns = {text_of(row.get("tip_message_hash")): row for row in database.rows("turns")}
    reader = _Reader(database, notes)
    messages: list[Message] = []
    prompts: list[str] = []
    for name in tree.path(end):
        parts = sorted(database.rows("parts", message_hash=name), key=lambda part: integer_of(part.get("position")))
        role = rows[name].get("role")
        if role == "system":
            prompts += (text for part in parts if (text := text_of(part.get("text"))))
            continue
        since = notes.left_out
        made = reader.message(str(role), parts, turns.get(name, {}), len(messages))
        given = {"parts": [{**part, "payload": parse_text(part.get("payload"))} for part in parts]}
        note_unread(given, made, len(messages) + 1, notes, since=since)
        envelope = {"hash": name, "provider_metadata": parse_text(rows[name].get("provider_metadata"))}
        messages += (with_envelope(message, NAME, envelope) for message in made)
    used = set(tree.path(end))
    for turn in turns.values():
        tip = text_of(turn.get("tip_message_hash"))
        if turn.get("thread_id") == thread.get("id") and tip is not None and tip not in used and view.branch is None:
            notes.add(ChangeCode.BRANCH_LEFT_OUT, ("branches", tip), Loss.CONTENT, f"{tip}: an answer")
    _note_beginning(rows, tree.path(end), notes)
    _note_orphans(database, tree, turns, notes)
    forked = text_of(thread.get("forked_from"))
    return finish_history(
        NAME,
        notes,
        messages,
        session_id=text_of(thread.get("id")),
        title=text_of(thread.get("name")),
        system_prompt="\n".join(prompts) or None,
        created=None,
        updated=milliseconds_of(thread.get("datetime_utc")),
        parent=None if forked is None else Parent(id=forked, kind="fork"),
    )


def _note_beginning(rows: Mapping[str, DatabaseRow], path: Sequence[str], notes: Notes) -> None:
    """Note a conversation that begins in the middle: the message before its first one is not there."""
    first = rows[path[0]] if path else _NOTHING
    if first.get("parent_hash") is not None or first.get("role") not in ("system", "user"):
        detail = f"the message before {path[0] if path else 'the end'}"
        notes.add(ChangeCode.FILE_MISSING, ("messages", 0), Loss.CONTENT, detail)


def _note_orphans(database: AgentDatabase, tree: Tree, turns: Mapping[str | None, DatabaseRow], notes: Notes) -> None:
    """Note messages that no conversation leads to, and parts of messages that are not there."""
    tips = [text_of(tip) for tip in database.column("threads", "tip_message_hash")]
    reached = {name for tip in (*tips, *turns) for name in tree.path(tip)}
    found = [("message without a conversation", name) for name in tree.ids() if name not in reached]
    names = set(tree.ids())
    parts = (owner for owner in database.column("parts", "message_hash") if owner not in names)
    found += [("part of a missing message", str(owner)) for owner in parts]
    for kind, name in found:
        notes.record(kind, 0, 0, name)


class _Reader:
    """Makes messages of rows."""

    def __init__(self, database: AgentDatabase, notes: Notes) -> None:
        self._database = database
        self._notes = notes

    def _payload(self, part: DatabaseRow) -> dict[str, Any]:
        """Parse what a part has in addition to its text."""
        stored = part.get("payload")
        payload = parse_object(stored)
        if not payload and stored not in (None, "{}", "null"):
            self._notes.unreadable(integer_of(part.get("id")), "the payload of a part is not an object")
        return payload

    def message(self, role: str, parts: Sequence[DatabaseRow], turn: DatabaseRow, at: int) -> list[Message]:
        """Return the messages of one row of `messages`; `at` is the place of the first one."""
        time = milliseconds_of(turn.get("datetime_utc"))
        if role == "assistant":
            content = tuple(each for part in parts for each in self._reply_part(part))
            return [make_reply(content, turn, time)]
        results = [_result(self._payload(part), time) for part in parts if part.get("type") == "tool_result"]
        given = tuple(each for part in parts for each in self._user_part(part, at))
        return [*results, *([UserMessage(content=given, timestamp=time)] if given else [])]

    def _reply_part(self, part: DatabaseRow) -> Iterator[AssistantContent]:
        payload = self._payload(part)
        text = part.get("text")
        match part.get("type"):
            case "text":
                yield TextContent(text=str(text or ""))
            case "reasoning":
                yield _thinking(str(text or ""), payload)
            case "tool_call":
                yield _call(payload, text_of(part.get("tool_name")))
            case kind:
                size = len(json_text(payload)) + len(str(text or ""))
                self._notes.record(f"part {kind}", integer_of(part.get("id")), size, dict(part))

    def _user_part(self, part: DatabaseRow, at: int) -> Iterator[UserContent]:
        match part.get("type"):
            case "text":
                yield TextContent(text=str(part.get("text") or ""))
            case "attachment":
                found = object_of(self._payload(part).get("attachment"))
                yield from self.attachment(text_of(found.get("id")) or "", at)
            case "tool_result":
                return
            case kind:
                self._notes.record(
                    f"part {kind}", integer_of(part.get("id")), len(str(part.get("payload"))), dict(part)
                )

    def attachment(self, name: str, at: int) -> Iterator[UserContent]:
        """Yield an attachment; one that is only a path on the machine is not read."""
        row = next(iter(self._database.rows("attachments", id=name)), _NOTHING)
        data, url = row.get("content"), text_of(row.get("url"))
        media = media_of(row.get("type"), data=data if isinstance(data, bytes) else None, url=url)
        if media is not None:
            yield media
        else:
            detail = f"attachment {text_of(row.get('path')) or name}"
            self._notes.add(ChangeCode.FILE_MISSING, ("messages", at), Loss.CONTENT, detail)


def make_reply(content: tuple[AssistantContent, ...], turn: DatabaseRow, time: int | None) -> AssistantMessage:
    """Make an answer with the model and the tokens of its row."""
    model = text_of(turn.get("resolved_model")) or text_of(turn.get("model")) or ""
    provider = (text_of(turn.get("model")) or "").partition("/")[0] if "/" not in model else ""
    origin = find_origin(model, "" if provider == model else provider)
    return AssistantMessage(
        content=content,
        protocol=origin.protocol,
        provider=origin.provider,
        model=origin.model,
        usage=_usage(turn),
        stop_reason=StopReason.TOOL_USE if any(each.kind == "toolCall" for each in content) else StopReason.STOP,
        timestamp=time,
    )


def _usage(turn: DatabaseRow) -> Usage | None:
    details = parse_object(turn.get("token_details"))
    return usage_of(
        turn.get("input_tokens"),
        turn.get("output_tokens"),
        cache_read=object_of(details.get("prompt_tokens_details")).get("cached_tokens"),
        reasoning=object_of(details.get("completion_tokens_details")).get("reasoning_tokens"),
    )


def _thinking(text: str, payload: dict[str, Any]) -> ThinkingContent:
    metadata = object_of(payload.get("provider_metadata"))
    for fields in metadata.values():
        if signature := text_of(object_of(fields).get("signature")):
            return ThinkingContent(thinking=text, thinking_signature=signature)
        if data := text_of(object_of(fields).get("data")):
            return ThinkingContent(thinking=text, thinking_signature=data, redacted=True)
    return ThinkingContent(thinking=text)


def _call(payload: dict[str, Any], name: str | None) -> ToolCall:
    return make_call(payload.get("tool_call_id"), payload.get("name") or name, payload.get("arguments"))


def _result(payload: dict[str, Any], time: int | None) -> ToolResultMessage:
    text = json_text(payload.get("output") if payload.get("output") is not None else "")
    return ToolResultMessage(
        tool_call_id=text_of(payload.get("tool_call_id")) or "",
        tool_name=text_of(payload.get("name")) or "",
        content=(TextContent(text=text),) if text else (),
        is_error=payload.get("exception") is not None,
        timestamp=time,
    )


# -- older versions ---------------------------------------------------------------------------------------------------


def _read_conversation(database: AgentDatabase, conversation: DatabaseRow, notes: Notes) -> History:
    tables = database.tables()
    reader = _Reader(database, notes)
    messages: list[Message] = []
    prompt: str | None = None
    rows = sorted(
        database.rows("responses", conversation_id=conversation.get("id")), key=lambda row: str(row.get("datetime_utc"))
    )
    for row in rows:
        own = {"response_id": row.get("id")}
        time = milliseconds_of(row.get("datetime_utc"))
        given_prompt = text_of(row.get("system"))
        if prompt is None:
            prompt = given_prompt
        elif given_prompt is not None and given_prompt != prompt:
            messages.append(SystemMessage.of(given_prompt))
        if "tool_results" in tables:
            messages += (_result(dict(result), time) for result in database.rows("tool_results", **own))
        given: list[UserContent] = [TextContent(text=text)] if (text := text_of(row.get("prompt"))) else []
        if "prompt_attachments" in tables:
            attached = sorted(
                database.rows("prompt_attachments", **own), key=lambda each: integer_of(each.get("order"))
            )
            for each in attached:
                given += reader.attachment(str(each.get("attachment_id")), len(messages))
        if given:
            messages.append(UserMessage(content=tuple(given), timestamp=time))
        content: list[AssistantContent] = []
        if reasoning := text_of(row.get("reasoning")):
            content.append(ThinkingContent(thinking=reasoning))
        if text := text_of(row.get("response")):
            content.append(TextContent(text=text))
        if "tool_calls" in tables:
            calls = database.rows("tool_calls", **own)
            content += (_call(dict(call), None) for call in calls)
        reply = make_reply(tuple(content), row, time)
        messages.append(with_envelope(reply, NAME, {"id": row.get("id")}))
    _note_old_orphans(database, tables, notes)
    return finish_history(
        NAME,
        notes,
        messages,
        session_id=text_of(conversation.get("id")),
        title=text_of(conversation.get("name")),
        system_prompt=prompt,
    )


def _note_old_orphans(database: AgentDatabase, tables: frozenset[str], notes: Notes) -> None:
    """Note rows that belong to a response or a conversation that is not there."""
    conversations, responses = set(database.column("conversations", "id")), set(database.column("responses", "id"))
    checks = [("responses", "conversation_id", conversations)]
    checks += [(table, "response_id", responses) for table in ("tool_calls", "tool_results") if table in tables]
    for table, column, known in checks:
        for value in database.column(table, column):
            if value not in known:
                notes.record(f"row of {table} without its {column.removesuffix('_id')}", 0, 0, value)


FORMAT: Final = Format(
    name=NAME,
    read=read,
    list=list_sessions,
    samples=read_samples(__package__),
    title="llm",
    place=Place(
        folder=".config/io.datasette.llm",
        variables=("LLM_USER_PATH",),
        databases=("logs.db",),
        system_folders={
            "darwin": "Library/Application Support/io.datasette.llm",
            "win32": "AppData/Roaming/io.datasette.llm",
        },
    ),
    reads_lines=False,
    source="llm 0.36, run against a scripted model",
    read_on="2026-11-15",
)
