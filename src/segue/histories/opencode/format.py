"""The record of opencode.

Where opencode stores its sessions: a database, or the JSON of `opencode export`.

Reads an opencode session: from its database, or from the JSON of `opencode export`.

Writes an opencode session as JSON for `opencode import`; its database is never written.

Facts (opencode 1.18.33, seen 2026-11-15; anomalyco/opencode 2026-08-19, read):
- The tables are `session`, `message` and `part`; the columns `data` hold JSON.

Facts (opencode 1.18.33, seen 2026-11-15; 1.18.18, seen 2026-11-16):
- A message has `info` and `parts`; a tool part holds the call and its result. Messages are sorted by time, then id.
- A compaction is a message of the user with a `compaction` part, and the summary of the model (`summary: true`) with
  that message as its `parentID`. Nothing before it is sent, and the part is sent as the question "What did we do so
  far?". With `tail_start_id` the messages from there to the compaction are sent after the summary.
- `revert` of the session names a message, and a part of it, from where on everything is removed with the next prompt.
- A sub-agent is a separate session; `state.metadata.sessionId` of the call names it.

Facts (opencode 1.18.33, seen 2026-11-15):
- The import checks the schema: ids begin with `ses`, `msg` and `prt`, and one unknown part type refuses the file.
- Unknown fields are lost, except those under `metadata` of a part.
- Messages are sorted by `time.created`, then by id.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast, final

import msgspec

from segue.conversation.content import FileContent, ImageContent
from segue.conversation.context import Context, Summary
from segue.conversation.limits import parse_json
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage
from segue.errors import LoadError
from segue.foundation.plurals import counted
from segue.histories.kit.envelope import find_envelope, find_title
from segue.histories.kit.format import Cut, Draft, Format, Output, Place
from segue.histories.kit.history import Branch, Child, Compaction, History, HistoryOrigin, Parent, Session, WrittenFile
from segue.histories.kit.lines import integer_of, number_of, object_of, objects_of, text_of, title_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import foreign_mark, last_origin
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import AgentDatabase, Source, View
from segue.histories.kit.stamps import make_id, milliseconds_of, time_of
from segue.histories.kit.writing import Clock, json_line
from segue.histories.opencode.repairing import ANATOMY
from segue.histories.opencode.turns import NAME, MessageReader, hide_interrupted, time_of_info
from segue.models.model import Model
from segue.projection.report import ChangeCode, Loss
from segue.protocols.kit.reading import data_url


def load(source: Source) -> dict[str, Any]:
    """Return a session as `opencode export` writes it.

    Raises:
        LoadError: the source is not a session of opencode.
    """
    if source.database is not None:
        return _load_rows(source.database, source.session)
    if source.data is None:
        return object_of(source.value)
    try:
        value: object = msgspec.json.decode(source.data)
    except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError):
        value = parse_json(source.data)
    return object_of(value)


def _parsed(value: object) -> dict[str, Any]:
    try:
        return object_of(msgspec.json.decode(cast("str", value)))
    except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError, TypeError):
        return {}


def _load_rows(database: AgentDatabase, session: str | None) -> dict[str, Any]:
    if not {"session", "message", "part"} <= database.tables():
        raise LoadError("the database has no tables session, message and part; it is not one of opencode")
    rows = list(database.rows("session", **({"id": session} if session else {})))
    if not rows:
        raise LoadError(f"the database has no session {session!r}" if session else "the database has no session")
    row = max(rows, key=lambda each: integer_of(each.get("time_updated")))
    parts: dict[object, list[dict[str, Any]]] = {}
    for part in sorted(database.rows("part", session_id=row.get("id")), key=lambda each: str(each.get("id"))):
        fields = {**_parsed(part.get("data")), "id": part.get("id"), "messageID": part.get("message_id")}
        parts.setdefault(part.get("message_id"), []).append({**fields, "sessionID": row.get("id")})
    messages = [
        {
            "info": {**_parsed(each.get("data")), "id": each.get("id"), "sessionID": row.get("id")},
            "parts": parts.get(each.get("id"), []),
        }
        for each in database.rows("message", session_id=row.get("id"))
    ]
    return {"info": _session_info(row), "messages": messages}


def _session_info(row: Mapping[str, object]) -> dict[str, Any]:
    info: dict[str, Any] = {
        "id": row.get("id"),
        "slug": row.get("slug"),
        "projectID": row.get("project_id"),
        "directory": row.get("directory"),
        "path": row.get("path"),
        "title": row.get("title"),
        "version": row.get("version"),
        "time": {"created": row.get("time_created"), "updated": row.get("time_updated")},
    }
    if row.get("parent_id"):
        info["parentID"] = row["parent_id"]
    if revert := _parsed(row.get("revert")):
        info["revert"] = revert
    return info


def list_sessions(source: Source) -> tuple[Session, ...]:
    """List the sessions of a database.

    Raises:
        LoadError: it cannot be read.
    """
    if source.database is None or "session" not in source.database.tables():
        return ()
    found: list[Session] = []
    for row in source.database.rows("session"):
        names = ("tokens_input", "tokens_output", "tokens_cache_read", "tokens_cache_write")
        cost, parent = row.get("cost"), text_of(row.get("parent_id"))
        model = text_of(_parsed(row.get("model")).get("id"))
        found.append(
            Session(
                format=NAME,
                id=str(row.get("id")),
                path=source.path or source.name,
                title=text_of(row.get("title")),
                cwd=text_of(row.get("directory")),
                created=milliseconds_of(row.get("time_created")),
                updated=milliseconds_of(row.get("time_updated")),
                models=() if model is None else (model,),
                tokens=sum(integer_of(row.get(name)) for name in names),
                cost=number_of(cost),
                parent=None if parent is None else Parent(id=parent, kind="subagent"),
            )
        )
    return tuple(found)


KNOWN_RECORDS: Final = frozenset(
    {"step-start", "step-finish", "snapshot", "patch", "retry", "agent", "ignored text", "file that is sent as text"}
)
_REVERTED: Final = "reverted"
"""The id of the branch with the messages that the user took back."""

_Entry = dict[str, Any]


def read(source: Source, view: View) -> History:
    """Read one session.

    Raises:
        LoadError: the source is not a session of opencode.
    """
    return _read(source, view, {})


def _read(source: Source, view: View, known: dict[str, History | None]) -> History:
    """Read one session; `known` are those that were read so far, with None for one that is not read to its end."""
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    document = load(source)
    info, entries = object_of(document.get("info")), objects_of(document.get("messages"))
    if not text_of(info.get("id")) and not entries:
        raise LoadError("no conversation found: the file has no info and no messages of opencode")
    if entries != (document.get("messages") or []):
        notes.unreadable(1, "`messages` needs to be a list of objects")
    known[str(info.get("id"))] = None
    entries.sort(key=lambda entry: (time_of_info(_info(entry)) or 0, str(_info(entry).get("id"))))
    for number, entry in enumerate(entries, 1):
        if objects_of(entry.get("parts")) != entry.get("parts"):
            notes.unreadable(number, "a message needs a list of `parts`, which are objects")
    entries, branches = _take_back(entries, object_of(info.get("revert")), view, notes)
    info = without(info, ("revert",))
    compacted = _find_compactions(entries)
    full = view.name == "full"
    reader = MessageReader(notes, whole=full)
    compactions = _read_compactions(reader, entries, compacted)
    if full:
        summaries = tuple(compaction.summary for compaction in compactions)
        messages = reader.messages(_without_summaries(entries, compacted, len(entries)))
    else:
        summaries = ()
        messages = reader.messages(_active(entries, compacted))
        for at, compaction in enumerate(compactions):
            detail = counted(len(compaction.messages), "message")
            notes.add(ChangeCode.COMPACTED_AWAY, ("compactions", at), Loss.CONTENT, detail)
        for at, message in enumerate(messages):
            if message.role == "toolResult" and message.tool_call_id in reader.cleared:
                detail = "the output of a tool, which the program no longer sends"
                notes.add(ChangeCode.COMPACTED_AWAY, ("messages", at), Loss.CONTENT, detail)
    older = [message for compaction in compactions for message in compaction.messages]
    times = [time for message in messages if (time := time_of(message)) is not None]
    title = text_of(info.get("title")) or find_title([*older, *messages])
    session_times = object_of(info.get("time"))
    parent = text_of(info.get("parentID"))
    return History(
        context=Context(messages=tuple(messages), summaries=summaries, extra={NAME: {"info": info}}),
        origin=HistoryOrigin(format=NAME, id=text_of(info.get("id")), version=text_of(info.get("version"))),
        title=None if title is None else title_of(title),
        cwd=text_of(info.get("directory")),
        created=milliseconds_of(session_times.get("created")) or min(times, default=None),
        updated=milliseconds_of(session_times.get("updated")) or max(times, default=None),
        parent=None if parent is None else Parent(id=parent, kind="subagent"),
        children=_read_children(source, entries, notes, known),
        branches=branches,
        compactions=compactions,
        records=notes.records,
        report=notes.report(),
    )


def _info(entry: _Entry) -> dict[str, Any]:
    return object_of(entry.get("info"))


def _take_back(
    entries: list[_Entry], revert: dict[str, Any], view: View, notes: Notes
) -> tuple[list[_Entry], tuple[Branch, ...]]:
    """Leave out what the user took back; it is the only branch of a session."""
    target, part = text_of(revert.get("messageID")), text_of(revert.get("partID"))
    at = next((at for at, entry in enumerate(entries) if target and _info(entry).get("id") == target), None)
    if view.branch not in {None, _REVERTED} or (view.branch is not None and at is None):
        raise LoadError(f"the session has no branch {view.branch!r}; History.branches lists them")
    if at is None:
        return entries, ()
    kept, lost = entries[:at], entries[at:]
    parts = objects_of(lost[0].get("parts"))
    cut = next((place for place, each in enumerate(parts) if part and each.get("id") == part), 0)
    if cut:
        kept = [*kept, {**lost[0], "parts": parts[:cut]}]
    detail = f"{counted(len(lost), 'message')} that the user took back"
    notes.add(ChangeCode.BRANCH_LEFT_OUT, ("branches", 0), Loss.CONTENT, detail)
    branch = Branch(id=_REVERTED, messages=len(lost), updated=time_of_info(_info(lost[-1])))
    return entries if view.branch is not None else kept, (branch,)


def _read_children(
    source: Source, entries: Sequence[dict[str, Any]], notes: Notes, known: dict[str, History | None]
) -> tuple[Child, ...]:
    children: list[Child] = []
    for entry in entries:
        for part in objects_of(entry.get("parts")):
            state = object_of(part.get("state"))
            child = text_of(object_of(state.get("metadata")).get("sessionId"))
            if part.get("type") != "tool" or child is None:
                continue
            history = None
            if source.database is not None:
                try:
                    if child not in known:  # sessions may name each other
                        child_source = Source(database=source.database, session=child, neighbours=source.neighbours)
                        known[child] = _read(child_source, View(), known)
                    history = known[child]
                except (LoadError, RecursionError) as error:
                    notes.add(ChangeCode.FILE_MISSING, ("children", len(children)), Loss.CONTENT, str(error))
            notes.add(ChangeCode.CHILD_LEFT_OUT, ("children", len(children)), Loss.CONTENT, child)
            title = text_of(object_of(state.get("input")).get("description"))
            children.append(Child(id=child, call_id=text_of(part.get("callID")), title=title, history=history))
    return tuple(children)


# -- compaction -------------------------------------------------------------------------------------------------------


@final
class _Compacted(NamedTuple):
    """A compaction: the places of its question and its summary, and of the first message that is still sent."""

    question: int
    summary: int
    first: int


def _find_compactions(entries: Sequence[_Entry]) -> list[_Compacted]:
    """Return the finished compactions, the oldest first."""
    places = {text_of(_info(entry).get("id")): at for at, entry in enumerate(entries)}
    found: list[_Compacted] = []
    for at, entry in enumerate(entries):
        info = _info(entry)
        if info.get("summary") is not True or not info.get("finish") or info.get("error"):
            continue
        question = places.get(text_of(info.get("parentID")) or "", at - 1)
        parts = objects_of(entries[question].get("parts")) if 0 <= question < at else []
        part = next((part for part in parts if part.get("type") == "compaction"), None)
        tail = text_of((part or {}).get("tail_start_id"))
        first = question if tail is None else places.get(tail)
        if part is not None and first is not None:
            found.append(_Compacted(question, at, min(first, question)))
    return found


def _active(entries: list[_Entry], compacted: Sequence[_Compacted]) -> list[_Entry]:
    """Return the messages in the order in which the program sends them."""
    if not compacted:
        return entries
    question, summary, first = compacted[-1]
    return [*entries[question : summary + 1], *entries[first:question], *entries[summary + 1 :]]


def _without_summaries(entries: Sequence[_Entry], compacted: Sequence[_Compacted], end: int) -> list[_Entry]:
    hidden = {place for each in compacted for place in (each.question, each.summary)}
    return [entry for at, entry in enumerate(entries[:end]) if at not in hidden]


def _read_compactions(
    reader: MessageReader, entries: Sequence[_Entry], compacted: Sequence[_Compacted]
) -> tuple[Compaction, ...]:
    made: list[Compaction] = []
    done = 0
    for each in compacted:
        summary = entries[each.summary]
        older = reader.messages(_without_summaries(entries, compacted, each.first))
        parts = objects_of(summary.get("parts"))
        texts = [text_of(part.get("text")) for part in parts if part.get("type") == "text"]
        value = Summary(
            covers=len(older),
            text="\n".join(text for text in texts if text),
            origin=last_origin(older),
            timestamp=time_of_info(_info(summary)),
        )
        made.append(Compaction(summary=value, messages=tuple(older[done:]), id=text_of(_info(summary).get("id"))))
        done = max(done, len(older))
    return tuple(made)


VERSION: Final = "1.18.33"
"""The version of the program whose format is written."""
_FINISH: Final[Mapping[str, str]] = {"stop": "stop", "length": "length", "toolUse": "tool-calls"}


def write(draft: Draft) -> Output:
    """Write one session."""
    writer = _Writer(draft)
    writer.add_all()
    session = writer.session
    data = json_line({"info": writer.info(), "messages": writer.entries})
    resume = ("opencode", "-s", session)
    files = (WrittenFile(name=f"{session}.json", data=data),)
    return Output(files, resume, resume, ("opencode", "import", "{file}"), id=session)


class _Writer:
    """The messages so far. Ids grow with the position, because messages of the same time are sorted by them."""

    def __init__(self, draft: Draft) -> None:
        self.session: Final = f"ses_{make_id(draft.id, 'session').replace('-', '')[:26]}"
        self.entries: list[dict[str, Any]] = []
        self._draft = draft
        self._clock = Clock(draft)
        self._count = 0
        self._asked = ""
        self._tail_at: int | None = None
        self._tail: str | None = None
        self._results: dict[str, deque[tuple[int, ToolResultMessage]]] = {}
        for at, message in enumerate(draft.messages):
            if message.role == "toolResult":
                self._results.setdefault(message.tool_call_id, deque()).append((at, message))

    def add_all(self) -> None:
        """Write all messages. Those that a compaction keeps were stored before it, and are sorted by their time."""
        messages = list(enumerate(self._draft.messages))
        question, summary, end = _find_tail(self._draft.messages)
        if end > summary:
            self._tail_at = summary
            tail, between = messages[summary:end], messages[question:summary]
            messages = [*messages[:question], *tail, *between, *messages[end:]]
        cut = self._draft.cut
        for at, message in messages:
            if cut is not None and cut.at == at:
                self._compact(cut)
            self.add(at, message)
        if cut is not None and cut.at == len(messages):
            self._compact(cut)

    def _compact(self, cut: Cut) -> None:
        """Write that the program compacted the messages so far: a request for it, and the summary as its answer."""
        draft, asked = self._draft, self._id("msg")
        model = {"providerID": draft.model.provider, "modelID": draft.model.id}
        time = {"created": self._clock.at(None)}
        info = {"id": asked, "role": "user", "time": time, "agent": "build", "model": model}
        self._entry(info, [self._part(asked, type="compaction", auto=True)])
        entry_id, created = self._id("msg"), self._clock.at(None)
        info = {
            "id": entry_id,
            "role": "assistant",
            "parentID": asked,
            "mode": "compaction",
            "agent": "compaction",
            "summary": True,
            "path": {"cwd": draft.cwd or "/", "root": draft.cwd or "/"},
            "cost": 0,
            "tokens": _tokens(None),
            **model,
            "time": {"created": created, "completed": created},
            "finish": "stop",
        }
        span = {"start": created, "end": created}
        self._entry(info, [self._part(entry_id, type="text", text=cut.text, time=span)])
        self._asked = asked

    def info(self) -> dict[str, Any]:
        """Write what the session is: its folder, title and times."""
        draft = self._draft
        stored = (draft.history.context.extra or {}).get(NAME, {}).get("info")
        kept = dict(cast("Mapping[str, Any]", stored)) if isinstance(stored, Mapping) else {}
        kept.pop("parentID", None)
        created = (object_of(entry["info"].get("time")).get("created") for entry in self.entries)
        times = [time for time in created if isinstance(time, int)]
        return {
            "projectID": "global",
            "path": "",
            "version": VERSION,
            "cost": 0,
            "tokens": _tokens(None),
            **kept,
            "id": self.session,
            "slug": f"segue-{draft.id[:8]}",
            "directory": draft.cwd or "/",
            "title": draft.history.title or "Session",
            "time": {"created": draft.started, "updated": max((draft.started, *times))},
        }

    def _id(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}_{self._count:012x}{make_id(self._draft.id, str(self._count)).replace('-', '')[:14]}"

    def add(self, at: int, message: Message) -> None:
        """Write one message; a result is written with its call."""
        envelope = find_envelope(message, NAME)
        if message.role == "toolResult":
            return
        entry_id = self._id("msg")
        if at == self._tail_at:
            self._tail = entry_id
        if envelope is not None and "info" in envelope and self._is_unchanged(at, message, envelope):
            self._own(at, entry_id, envelope)
        elif message.role == "assistant":
            self._assistant(at, entry_id, message)
        else:
            self._asked = entry_id
            parts = [self._part(entry_id, **self._user_piece(at, content)) for content in message.content]
            model = {"providerID": self._draft.model.provider, "modelID": self._draft.model.id}
            time = {"created": self._clock.at(time_of(message))}
            self._entry({"id": entry_id, "role": "user", "time": time, "agent": "build", "model": model}, parts)

    def _is_unchanged(self, at: int, message: Message, envelope: Mapping[str, object]) -> bool:
        """Whether a message and its results are still what was read, so that the stored parts can be written."""
        entry = {"info": envelope.get("info"), "parts": envelope.get("parts")}
        readings = (MessageReader(Notes(), whole=whole).messages([entry]) for whole in (False, True))
        return any(
            bool(stored) and stored[0].content == message.content and self._are_given(at, stored[1:])
            for stored in readings
        )

    def _are_given(self, at: int, results: Iterable[Message]) -> bool:
        for result in results:
            if not isinstance(result, ToolResultMessage):
                return False
            waiting = self._results.get(result.tool_call_id, ())
            given = next((each for place, each in waiting if place > at), None)
            if given is None or (given.content, given.is_error) != (result.content, result.is_error):
                return False
        return True

    def _own(self, at: int, entry_id: str, envelope: Mapping[str, object]) -> None:
        """Write a message unchanged, under a new id."""
        info = {**object_of(envelope.get("info")), "id": entry_id}
        if info.get("role") == "user":
            self._asked = entry_id
        else:
            info["parentID"] = self._asked or entry_id
        parts: list[dict[str, Any]] = []
        for part in objects_of(envelope.get("parts")):
            kept = without(part, ("id", "messageID", "sessionID", "tail_start_id"))
            if part.get("type") == "compaction" and self._tail is not None:
                kept["tail_start_id"] = self._tail
            parts.append(self._part(entry_id, **kept))
        if (hidden := hide_interrupted(info, parts)) is not None:
            info, parts = hidden
            detail = "it was interrupted after its reasoning"
            self._draft.notes.add(ChangeCode.UNFINISHED_TURN, ("messages", at), Loss.CONTENT, detail)
        created = object_of(info.get("time")).get("created")
        self._clock.at(created if isinstance(created, int) else None)
        self._entry(info, parts)

    def _entry(self, info: dict[str, Any], parts: list[dict[str, Any]]) -> None:
        self.entries.append({"info": {**info, "sessionID": self.session}, "parts": parts})

    def _part(self, entry_id: str, **fields: object) -> dict[str, Any]:
        return {**fields, "id": self._id("prt"), "messageID": entry_id, "sessionID": self.session}

    def _user_piece(self, at: int, content: object) -> dict[str, Any]:
        if isinstance(content, (ImageContent, FileContent)):
            return self._file(at, content)
        text = text_of(getattr(content, "text", None))
        if text is None:
            self._lost(at)
        return {"type": "text", "text": text or ""}

    def _lost(self, at: int) -> None:
        detail = "opencode stores texts, images and files only"
        self._draft.notes.add(ChangeCode.NATIVE_DROPPED, ("messages", at), Loss.OPAQUE, detail)

    def _file(self, at: int, content: ImageContent | FileContent) -> dict[str, Any]:
        mime = content.mime_type or ("image/*" if content.kind == "image" else "application/octet-stream")
        url = data_url(mime, content.data) if content.data is not None else content.url
        if url is None:
            self._lost(at)
        name = content.name if isinstance(content, FileContent) else None
        return {"type": "file", "mime": mime, "url": url or "", "filename": name or "file"}

    def _assistant(self, at: int, entry_id: str, message: AssistantMessage) -> None:
        draft = self._draft
        created = self._clock.at(message.timestamp)
        span = {"start": created, "end": created}
        parts: list[dict[str, Any]] = []
        for content in message.content:
            match content.kind:
                case "text":
                    metadata = _metadata(message, text=content.text_signature)
                    parts.append(self._part(entry_id, type="text", text=content.text, time=span, **metadata))
                case "thinking":
                    redacted = {"redactedData": content.thinking_signature} if content.redacted else None
                    metadata = _metadata(message, thinking=content.thinking_signature, redacted=redacted)
                    parts.append(self._part(entry_id, type="reasoning", text=content.thinking, time=span, **metadata))
                case "toolCall":
                    metadata = _metadata(message, text=content.thought_signature)
                    state = self._state(at, entry_id, content.id, dict(content.arguments), span)
                    call = {"type": "tool", "callID": content.id, "tool": content.name, "state": state}
                    parts.append(self._part(entry_id, **call, **metadata))
                case "native":
                    self._lost(at)
        origin = foreign_mark(message, "")
        if parts and origin:
            parts[0]["metadata"] = {**object_of(parts[0].get("metadata")), **origin}
        info = {
            "id": entry_id,
            "role": "assistant",
            "parentID": self._asked or entry_id,
            "mode": "build",
            "agent": "build",
            "path": {"cwd": draft.cwd or "/", "root": draft.cwd or "/"},
            "cost": message.usage.cost.total if message.usage is not None and message.usage.cost is not None else 0,
            "tokens": _tokens(message),
            "modelID": message.model or draft.model.id,
            "providerID": message.provider or draft.model.provider,
            "time": {"created": created, "completed": created},
            "finish": _FINISH.get(message.stop_reason, "stop"),
        }
        self._entry(info, parts)

    def _state(
        self, at: int, entry_id: str, call_id: str, arguments: dict[str, Any], span: dict[str, int]
    ) -> dict[str, Any]:
        result = self._find_result(at, call_id)
        if result is None:
            return {"status": "error", "input": arguments, "error": "No result provided", "time": span}
        text = "\n".join(content.text for content in result.content if content.kind == "text")
        if result.is_error:
            return {"status": "error", "input": arguments, "error": text, "time": span}
        files = [
            self._part(entry_id, **self._file(at, content))
            for content in result.content
            if isinstance(content, (ImageContent, FileContent))
        ]
        state = {"status": "completed", "input": arguments, "output": text, "title": "", "metadata": {}, "time": span}
        return {**state, "attachments": files} if files else state

    def _find_result(self, at: int, call_id: str) -> ToolResultMessage | None:
        waiting = self._results.get(call_id, deque())
        while waiting and waiting[0][0] <= at:  # before the call: no later call can have it either
            waiting.popleft()
        return waiting.popleft()[1] if waiting else None


def _find_tail(messages: Sequence[Message]) -> tuple[int, int, int]:
    """Return the places of a compaction, of the first message after its summary, and after the last one it keeps."""
    envelopes = [find_envelope(message, NAME) or {} for message in messages]
    for question, envelope in enumerate(envelopes):
        if not any(part.get("tail_start_id") for part in objects_of(envelope.get("parts"))):
            continue
        start, asked = question + 1, time_of(messages[question])
        while start < len(messages) and object_of(envelopes[start].get("info")).get("summary") is True:
            start += 1
        end = start
        while end < len(messages) and asked is not None and (time_of(messages[end]) or asked) < asked:
            end += 1
        return question, start, end
    return 0, 0, 0


def _metadata(
    message: AssistantMessage,
    *,
    text: str | None = None,
    thinking: str | None = None,
    redacted: dict[str, str | None] | None = None,
) -> dict[str, Any]:
    """Write signatures where the package of the provider looks for them."""
    if redacted is not None:
        return {"metadata": {"anthropic": redacted}}
    given = text if text is not None else thinking
    if given is not None and message.protocol == "openai-responses":
        try:
            item = object_of(msgspec.json.decode(given))
        except (msgspec.DecodeError, ValueError):
            return {}
        fields = {"itemId": item.get("id"), "reasoningEncryptedContent": item.get("encrypted_content")}
        return {"metadata": {"openai": {name: value for name, value in fields.items() if value is not None}}}
    if thinking is not None and message.protocol == "anthropic-messages":
        return {"metadata": {"anthropic": {"signature": thinking}}}
    signature = text if text is not None else thinking
    if signature is not None and message.protocol == "google-genai":
        return {"metadata": {"google": {"thoughtSignature": signature}}}
    return {}


def _tokens(message: AssistantMessage | None) -> dict[str, Any]:
    usage = None if message is None else message.usage
    if usage is None:
        return {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    cache = {"read": usage.cache_read, "write": usage.cache_write}
    output = max(0, usage.output - usage.reasoning)
    return {"input": usage.input, "output": output, "reasoning": usage.reasoning, "cache": cache}


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    list=list_sessions,
    write=write,
    samples=read_samples(__package__),
    anatomy=ANATOMY,
    title="opencode",
    compacts=True,
    place=Place(
        folder=".local/share/opencode",
        variables=("XDG_DATA_HOME/opencode",),
        databases=("opencode.db",),
        # Kilo has the same store since March 2026 (read, 2026-11-18).
        others=(Place(folder=".local/share/kilo", variables=("XDG_DATA_HOME/kilo",), databases=("*.db",)),),
    ),
    reads_lines=False,
    example=Model("claude-sonnet-4-5", "anthropic", "anthropic-messages", reasoning=True, max_tokens=8000),
    source="opencode 1.18.33, run against a scripted model; anomalyco/opencode 2026-08-19",
    read_on="2026-11-15",
)
