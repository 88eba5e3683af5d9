"""Reads an opencode session: from its database, or from the JSON of `opencode export`.

Facts this file rests on (opencode 1.18.33, seen 2026-11-15; anomalyco/opencode 2026-08-19, read):
- A message has `info` and `parts`; a tool part holds the call and its result. Messages are sorted by time, then id.
- Signatures stand in `metadata` of a part, under the name of the provider's package.
- A compaction is a message of the user with a `compaction` part, then the summary of the model (`summary: true`).
  Nothing before it is sent, and the part is sent as the question "What did we do so far?".
- A message that the program was killed in has neither `finish` nor `time.completed`.
- A sub-agent is a session of its own; `state.metadata.sessionId` of the call names it.
- Text files are stored twice: as `file` part, which is not sent, and as synthetic text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from segue.conversation.content import (
    AssistantContent,
    FileContent,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultContent,
    UserContent,
)
from segue.conversation.context import Context, Origin, Summary
from segue.conversation.limits import parse_json
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    ToolResultMessage,
    Usage,
    UsageCost,
    UserMessage,
)
from segue.errors import LoadError
from segue.histories.kit.envelope import find_title, with_envelope
from segue.histories.kit.history import Child, Compaction, History, HistoryOrigin, Parent, Session
from segue.histories.kit.lines import integer_of, object_of, objects_of, text_of, title_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.source import Database, Source, View
from segue.histories.kit.stamps import milliseconds_of, time_of
from segue.histories.opencode.interrupted import restore_interrupted
from segue.models.catalogue import find_models
from segue.plurals import counted
from segue.projection.report import ChangeCode, Loss
from segue.protocols.kit.reading import split_data_url, standard_base64

NAME: Final = "opencode"
KNOWN_RECORDS: Final = frozenset(
    {"step-start", "step-finish", "snapshot", "patch", "retry", "agent", "ignored text", "file that is sent as text"}
)
_IDS: Final = ("id", "sessionID", "messageID", "parentID")
"""Fields that a new session has to write anew: ids are unique in the database."""
QUESTION: Final = "What did we do so far?"
"""What the program sends in the place of a compaction part."""
_PROTOCOLS: Final[Mapping[str, str]] = {
    "anthropic": "anthropic-messages",
    "openai": "openai-responses",
    "google": "google-genai",
    "google-vertex": "google-genai",
    "amazon-bedrock": "bedrock-converse",
    "mistral": "mistral-chat",
    "cohere": "cohere-chat",
}
"""Protocols that the packages of these providers use; any other provider is asked over openai-chat, unless the
catalogue knows better."""
_STOPS: Final[Mapping[str, StopReason]] = {
    "stop": StopReason.STOP,
    "length": StopReason.LENGTH,
    "tool-calls": StopReason.TOOL_USE,
    "error": StopReason.ERROR,
}


def read(source: Source, view: View) -> History:
    """Read one session.

    Raises:
        LoadError: the source is no session of opencode.
    """
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    document = _load(source)
    info, entries = object_of(document.get("info")), objects_of(document.get("messages"))
    if not text_of(info.get("id")) and not entries:
        raise LoadError("no conversation found: the file has no info and no messages of opencode")
    if view.branch is not None:
        raise LoadError(f"the session has no branch {view.branch!r}; an opencode session is a line without branches")
    entries.sort(
        key=lambda entry: (_time(object_of(entry.get("info"))) or 0, str(object_of(entry.get("info")).get("id")))
    )
    start = _last_compaction(entries)
    reader = _Reader(notes)
    older = reader.messages(entries[:start])
    shown = reader.messages(entries[start:])
    compaction = _read_compaction(entries, start, older) if start else None
    messages, summaries = shown, cast("tuple[Summary, ...]", ())
    if compaction is not None and view.name == "full":
        messages = [*older, *reader.messages(entries[start + 2 :])]
        summaries = (compaction.summary,)
    elif compaction is not None:
        detail = counted(len(compaction.messages), "message")
        notes.add(ChangeCode.COMPACTED_AWAY, ("compactions", 0), Loss.CONTENT, detail)
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
        children=_read_children(source, entries, notes),
        compactions=() if compaction is None else (compaction,),
        records=notes.records,
        report=notes.report(),
    )


# -- database and export ----------------------------------------------------------------------------------------------


def _load(source: Source) -> dict[str, Any]:
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


def _load_rows(database: Database, session: str | None) -> dict[str, Any]:
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
                cost=float(cost) if isinstance(cost, (int, float)) else None,
                parent=None if parent is None else Parent(id=parent, kind="subagent"),
            )
        )
    return tuple(found)


def _read_children(source: Source, entries: Sequence[dict[str, Any]], notes: Notes) -> tuple[Child, ...]:
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
                    history = read(
                        Source(database=source.database, session=child, neighbours=source.neighbours), View()
                    )
                except LoadError as error:
                    notes.add(ChangeCode.FILE_MISSING, ("children", len(children)), Loss.CONTENT, str(error))
            notes.add(ChangeCode.CHILD_LEFT_OUT, ("children", len(children)), Loss.CONTENT, child)
            title = text_of(object_of(state.get("input")).get("description"))
            children.append(Child(id=child, call_id=text_of(part.get("callID")), title=title, history=history))
    return tuple(children)


# -- compaction -------------------------------------------------------------------------------------------------------


def _last_compaction(entries: Sequence[dict[str, Any]]) -> int:
    """Give the index of the message that asked for the newest finished compaction; 0 if there is none."""
    for at in reversed(range(1, len(entries))):
        info = object_of(entries[at].get("info"))
        if info.get("summary") is True and info.get("finish") and not info.get("error"):
            kinds = {text_of(part.get("type")) for part in objects_of(entries[at - 1].get("parts"))}
            if "compaction" in kinds:
                return at - 1
    return 0


def _read_compaction(entries: Sequence[dict[str, Any]], start: int, older: Sequence[Message]) -> Compaction:
    summary = entries[start + 1]
    texts = [text_of(part.get("text")) for part in objects_of(summary.get("parts")) if part.get("type") == "text"]
    info = object_of(summary.get("info"))
    origin = None
    for message in reversed(older):
        if message.role == "assistant" and message.model:
            origin = Origin(protocol=message.protocol, provider=message.provider, model=message.model)
            break
    text = "\n".join(text for text in texts if text)
    return Compaction(
        summary=Summary(covers=len(older), text=text, origin=origin, timestamp=_time(info)),
        messages=tuple(older),
        id=text_of(info.get("id")),
    )


def _time(info: Mapping[str, Any]) -> int | None:
    return milliseconds_of(object_of(info.get("time")).get("created"))


# -- messages ---------------------------------------------------------------------------------------------------------


class _Reader:
    """Makes messages of opencode's messages; the originals are kept beside them."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._noted: set[str] = set()
        self._at = 0

    def messages(self, entries: Sequence[dict[str, Any]]) -> list[Message]:
        """Give the messages of entries."""
        made: list[Message] = []
        for entry in entries:
            self._at += 1
            info, parts = restore_interrupted(object_of(entry.get("info")), objects_of(entry.get("parts")))
            envelope: dict[str, object] = {
                "info": without(info, _IDS),
                "parts": [without(part, _IDS) for part in parts],
            }
            if info.get("role") == "assistant":
                made += self._assistant(info, parts, envelope)
            elif info.get("role") == "user":
                made += self._user(info, parts, envelope)
            else:
                self._notes.unreadable(self._at, "the message has no role")
        return made

    def _record(self, part: dict[str, Any], kind: str | None = None) -> None:
        key = str(part.get("id") or id(part))
        if key not in self._noted:
            self._noted.add(key)
            name = kind or text_of(part.get("type")) or "unknown"
            self._notes.record(name, self._at, len(str(part)), part if self._notes.keeps else None)

    def _user(self, info: dict[str, Any], parts: list[dict[str, Any]], envelope: dict[str, object]) -> list[Message]:
        content: list[UserContent] = []
        for part in parts:
            match part.get("type"):
                case "text" if part.get("ignored") is True:
                    self._record(part, "ignored text")
                case "text" if isinstance(part.get("text"), str):
                    content.append(TextContent(text=part["text"]))
                case "file":
                    content += self._file(part)
                case "compaction":
                    content.append(TextContent(text=QUESTION))
                case "subtask":
                    content.append(TextContent(text="The following tool was executed by the user"))
                case _:
                    self._record(part)
        if not content:
            return []
        own = all(part.get("synthetic") is True for part in parts)
        message = UserMessage(content=tuple(content), timestamp=_time(info))
        return [with_envelope(message, NAME, envelope, own=own)]

    def _file(self, part: dict[str, Any]) -> list[ImageContent | FileContent]:
        mime, url = text_of(part.get("mime")), text_of(part.get("url")) or ""
        if mime in {"text/plain", "application/x-directory"}:
            self._record(part, "file that is sent as text")
            return []
        split = split_data_url(url)
        data = None if split is None else standard_base64(split[1])
        address = url if split is None else None
        if mime is not None and mime.startswith("image/"):
            return [ImageContent(data=data, url=address, mime_type=mime)]
        return [FileContent(data=data, url=address, mime_type=mime, name=text_of(part.get("filename")))]

    def _assistant(
        self, info: dict[str, Any], parts: list[dict[str, Any]], envelope: dict[str, object]
    ) -> list[Message]:
        provider, model = text_of(info.get("providerID")) or "", text_of(info.get("modelID")) or ""
        protocol = protocol_of(provider, model)
        content: list[AssistantContent] = []
        results: list[ToolResultMessage] = []
        for part in parts:
            kind, metadata = part.get("type"), object_of(part.get("metadata"))
            if kind == "text" and isinstance(part.get("text"), str):
                content.append(TextContent(text=part["text"], text_signature=_item_signature(metadata)))
            elif kind == "reasoning" and isinstance(part.get("text"), str):
                content.append(_thinking(part["text"], metadata))
            elif kind == "tool" and text_of(part.get("callID")):
                content.append(_call(part, metadata))
                results += self._result(part, info)
            else:
                self._record(part)
        if not content and not info.get("error"):
            return []
        error = object_of(info.get("error"))
        message = AssistantMessage(
            content=tuple(content),
            protocol=protocol,
            provider=provider,
            model=model,
            usage=_usage(info),
            stop_reason=_stop(info, error),
            error_message=text_of(object_of(error.get("data")).get("message")) or text_of(error.get("name")),
            timestamp=_time(info),
        )
        first = with_envelope(message, NAME, envelope)
        rest = [with_envelope(result, NAME, {"result": True}) for result in results]
        return [first, *rest]

    def _result(self, part: dict[str, Any], info: dict[str, Any]) -> Iterator[ToolResultMessage]:
        state = object_of(part.get("state"))
        status = text_of(state.get("status"))
        if status not in {"completed", "error"}:
            # The program was killed while the tool ran; then there is no output yet.
            if state.get("output") or state.get("error"):
                self._record(part, "state of a call")
            return
        text = state.get("output") if status == "completed" else state.get("error")
        content: list[ToolResultContent] = [TextContent(text=text)] if isinstance(text, str) and text else []
        for attachment in objects_of(state.get("attachments")):
            content += self._file(attachment)
        yield ToolResultMessage(
            tool_call_id=str(part["callID"]),
            tool_name=text_of(part.get("tool")) or "",
            content=tuple(content),
            is_error=status == "error",
            details=state.get("metadata"),
            timestamp=milliseconds_of(object_of(state.get("time")).get("end")) or _time(info),
        )


def protocol_of(provider: str, model: str) -> str:
    """Give the protocol that opencode asks a provider with."""
    if provider in _PROTOCOLS:
        return _PROTOCOLS[provider]
    known = [each.protocol for each in find_models(provider=provider) if each.id == model] if provider else []
    return known[0] if known else "openai-chat"


def _signature(metadata: dict[str, Any], name: str) -> str | None:
    found = (text_of(object_of(fields).get(name)) for fields in metadata.values())
    return next((value for value in found if value is not None), None)


def _item_signature(metadata: dict[str, Any]) -> str | None:
    """Give the signature of a text or a call: that of Google, or the id of an item of OpenAI in segue's form."""
    if (item := _signature(metadata, "itemId")) is not None:
        return msgspec.json.encode({"id": item}).decode()
    return _signature(metadata, "thoughtSignature")


def _thinking(text: str, metadata: dict[str, Any]) -> ThinkingContent:
    if redacted := _signature(metadata, "redactedData"):
        return ThinkingContent(thinking="", thinking_signature=redacted, redacted=True)
    if encrypted := _signature(metadata, "reasoningEncryptedContent"):
        summary = [{"type": "summary_text", "text": text}] if text else []
        item = {"type": "reasoning", "id": _signature(metadata, "itemId"), "summary": summary}
        signature = msgspec.json.encode({**item, "encrypted_content": encrypted}).decode()
        return ThinkingContent(thinking=text, thinking_signature=signature)
    signature = _signature(metadata, "signature") or _signature(metadata, "thoughtSignature")
    return ThinkingContent(thinking=text, thinking_signature=signature)


def _call(part: dict[str, Any], metadata: dict[str, Any]) -> ToolCall:
    return ToolCall(
        id=str(part["callID"]),
        name=text_of(part.get("tool")) or "",
        arguments=object_of(object_of(part.get("state")).get("input")),
        thought_signature=_item_signature(metadata),
    )


def _stop(info: dict[str, Any], error: dict[str, Any]) -> StopReason:
    if error:
        return StopReason.ABORTED if error.get("name") == "MessageAbortedError" else StopReason.ERROR
    finish = text_of(info.get("finish"))
    if finish is None and not object_of(info.get("time")).get("completed"):
        return StopReason.ABORTED
    return _STOPS.get(finish or "", StopReason.STOP)


def _usage(info: dict[str, Any]) -> Usage | None:
    tokens = object_of(info.get("tokens"))
    if not tokens:
        return None
    cache, cost = object_of(tokens.get("cache")), info.get("cost")
    counts = [integer_of(tokens.get(name)) for name in ("input", "output", "reasoning")]
    read_, write_ = integer_of(cache.get("read")), integer_of(cache.get("write"))
    return Usage(
        input=counts[0],
        output=counts[1] + counts[2],
        reasoning=counts[2],
        cache_read=read_,
        cache_write=write_,
        total_tokens=integer_of(tokens.get("total")) or sum(counts) + read_ + write_,
        cost=UsageCost(total=float(cost)) if isinstance(cost, (int, float)) and cost else None,
    )
