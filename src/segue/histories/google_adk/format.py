"""The record of Google ADK: a session, its events alone, or the database of `DatabaseSessionService`.

Events of Google ADK: contents of google-genai with an envelope.

Facts (google-adk 2.13.0, 2026-11-15):
- `rewindBeforeInvocationId` removes an invocation and everything after it; `compaction` replaces the events of a span
  of time by one content. Both are actions of a later event.
- A session has `id`, `appName`, `userId`, `state`, `events`, `lastUpdateTime`; unknown fields are refused.
- An event is one content, with author, invocation, time in seconds, and `modelVersion`, usage and finish reason of a
  reply. Results of tools are one content of the user whose author is the agent.
- Events of an author that is neither the user nor the agent itself are sent as text of the user.
- Thought signatures are URL-safe base64. An exception in a tool leaves an event with `errorCode` and no content.
- JSON has camelCase, the database snake_case; both are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import groupby
from typing import Any, Final, cast

import msgspec
from msgspec.structs import replace

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
from segue.foundation.plurals import counted
from segue.histories.kit.entries import Entry, EntryCodec, Reading, Writing
from segue.histories.kit.format import Draft
from segue.histories.kit.framework import EntryList, Framework, dumped_by, framework_format, items_of, list_of
from segue.histories.kit.history import WrittenFile
from segue.histories.kit.lines import integer_of, number_of, object_of, objects_of, text_of
from segue.histories.kit.origins import find_origin, marked_origin, origin_mark, set_origin
from segue.histories.kit.pieces import stop_of, usage_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import AgentDatabase
from segue.histories.kit.stamps import make_id, milliseconds_of
from segue.histories.kit.wire import TurnCodec
from segue.models.model import Model
from segue.projection.report import Change, ChangeCode, Loss
from segue.protocols.kit.reading import standard_base64

NAME: Final = "google-adk"
WIRE: Final = TurnCodec("google-genai", "contents")
AUTHOR: Final = "assistant"
"""The author of what the agent does; it has to be the name of the agent that continues the session."""
_SIGNATURE: Final = "thoughtSignature"
_PARTS: Final = frozenset(
    {"text", "thought", _SIGNATURE, "inlineData", "fileData", "functionCall", "functionResponse", "executableCode",
     "codeExecutionResult", "videoMetadata", "mediaResolution", "toolCall", "toolResponse", "partMetadata"}
)  # fmt: skip
"""Fields of a part that the framework knows."""
_FINISH: Final = {StopReason.STOP: "STOP", StopReason.TOOL_USE: "STOP", StopReason.LENGTH: "MAX_TOKENS"}


def _read(run: list[Entry], reading: Reading) -> list[Message]:  # noqa: ARG001 - an event needs nothing around it
    event = run[0]
    content = object_of(event.get("content"))
    if not content.get("parts"):
        return []
    mark = object_of(event.get("customMetadata"))
    origin = marked_origin(find_origin(text_of(event.get("modelVersion")) or "", "google"), mark)
    messages = WIRE.decode([_standard(content)], origin.model, "google")
    time = milliseconds_of(event.get("timestamp"))
    made: list[Message] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            stop = stop_of(event.get("finishReason"), message.content)
            if event.get("interrupted") is True:
                stop = StopReason.ABORTED
            reply = replace(message, timestamp=time, usage=_read_usage(event), stop_reason=stop)
            made.append(set_origin(reply, origin) if origin.model else reply)
        elif isinstance(message, SystemMessage):
            made.append(message)
        else:
            made.append(replace(message, timestamp=time))
    return made


def _standard(content: Entry) -> Entry:
    """Return a content whose signatures are standard base64, as in every other format."""
    parts: list[object] = []
    for part in items_of(content.get("parts")):
        signature = object_of(part).get(_SIGNATURE)
        is_text = isinstance(signature, str) and not {"-", "_"}.isdisjoint(signature)
        parts.append({**object_of(part), _SIGNATURE: standard_base64(str(signature))} if is_text else part)
    return {**content, "parts": parts}


def _read_usage(event: Entry) -> Usage | None:
    usage = object_of(event.get("usageMetadata"))
    thoughts = integer_of(usage.get("thoughtsTokenCount"))
    return usage_of(
        usage.get("promptTokenCount"),
        integer_of(usage.get("candidatesTokenCount")) + thoughts,
        cache_read=usage.get("cachedContentTokenCount"),
        reasoning=thoughts,
        total=usage.get("totalTokenCount"),
    )


def _join(messages: Sequence[Message]) -> list[list[Message]]:
    """Group the results of tools that follow each other into one run; everything else is alone."""
    runs: list[list[Message]] = []
    for is_result, group in groupby(messages, lambda message: isinstance(message, ToolResultMessage)):
        run = list(group)
        runs += [run] if is_result else [[message] for message in run]
    return runs


def _write(messages: Sequence[Message], writing: Writing) -> list[Entry]:
    first = messages[0]
    author = "user" if isinstance(first, UserMessage) else AUTHOR
    fields: dict[str, Any] = {}
    if isinstance(first, AssistantMessage):
        fields = _reply_fields(first)
    elif isinstance(first, (UserMessage, ToolResultMessage)) and first.timestamp is not None:
        fields = {"timestamp": first.timestamp / 1000}
    contents = WIRE.encode(messages, first.model if isinstance(first, AssistantMessage) else "", "google")
    return [{"content": _known(content, first, writing), "author": author, **fields} for content in contents]


def _known(content: Mapping[str, Any], message: Message, writing: Writing) -> Entry:
    """Leave out fields that the framework refuses, and write signatures with the URL-safe alphabet."""
    parts: list[Entry] = []
    for part in objects_of(content.get("parts")):
        kept = {key: value for key, value in part.items() if key in _PARTS}
        if len(kept) < len(part):
            writing.note(message, ChangeCode.EXTRA_REMOVED, Loss.OPAQUE, "Google ADK refuses unknown fields")
        signature = kept.get(_SIGNATURE)
        if isinstance(signature, str):
            kept[_SIGNATURE] = signature.replace("+", "-").replace("/", "_")
        parts.append(kept)
    return {"parts": parts, "role": content.get("role")}


def _reply_fields(message: AssistantMessage) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if message.model:
        fields["modelVersion"] = message.model
    if message.stop_reason in _FINISH:
        fields["finishReason"] = _FINISH[message.stop_reason]
    elif message.stop_reason == StopReason.ABORTED:
        fields["interrupted"] = True
    if (usage := message.usage) is not None:
        counts = {
            "cachedContentTokenCount": usage.cache_read or None,
            "candidatesTokenCount": usage.output - usage.reasoning,
            "promptTokenCount": usage.input + usage.cache_read + usage.cache_write,
            "thoughtsTokenCount": usage.reasoning or None,
            "totalTokenCount": usage.total_tokens,
        }
        fields["usageMetadata"] = {name: count for name, count in counts.items() if count is not None}
    if message.timestamp is not None:
        fields["timestamp"] = message.timestamp / 1000
    if mark := origin_mark(message, find_origin(message.model, "google")):
        fields["customMetadata"] = mark
    return fields


CODEC: Final = EntryCodec(name=NAME, read=_read, write=_write, join=_join)


_VERBATIM: Final = frozenset(
    {"args", "response", "stateDelta", "artifactDelta", "customMetadata", "requestedAuthConfigs", "agentState",
     "requestedToolConfirmations"}
)  # fmt: skip
"""Fields whose keys are the user's own."""


def _camel(value: object) -> object:
    """Convert the keys of the database to the form of JSON."""
    if isinstance(value, list):
        return [_camel(item) for item in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    made: dict[str, object] = {}
    for key, item in object_of(cast("object", value)).items():
        head, *rest = key.split("_")
        name = head + "".join(part.capitalize() for part in rest)
        made[name] = item if name in _VERBATIM else _camel(item)
    return made


def _is_event(entry: Mapping[str, Any]) -> bool:
    return "author" in entry and ("invocationId" in entry or "invocation_id" in entry or "content" in entry)


def _open(value: object, session: str | None) -> EntryList | None:  # noqa: ARG001 - one session is one conversation
    rest: dict[str, Any] = {}
    if isinstance(value, dict):
        whole = object_of(cast("object", value))
        if not any(name in whole for name in ("appName", "app_name", "userId", "user_id")):
            return None
        whole = object_of(_camel({key: item for key, item in whole.items() if key not in {"events", "state"}})) | {
            key: whole[key] for key in ("events", "state") if key in whole
        }
        rest = {"session": {key: item for key, item in whole.items() if key != "events"}}
        value = cast("object", whole.get("events"))
    entries = list_of(value)
    if entries is None or not (rest or any(_is_event(entry) for entry in entries)):
        return None
    entries = [object_of(_camel(entry)) if "invocation_id" in entry else entry for entry in entries]
    entries, changes = _active(entries)
    own = object_of(rest.get("session"))
    return EntryList(
        entries,
        rest,
        id=text_of(own.get("id")),
        updated=milliseconds_of(own.get("lastUpdateTime")),
        changes=tuple(changes),
    )


def _active(events: list[Entry]) -> tuple[list[Entry], list[Change]]:
    """Return the events that the framework sends."""
    kept: list[Entry] = []
    changes: list[Change] = []
    for event in events:
        actions = object_of(event.get("actions"))
        before = text_of(actions.get("rewindBeforeInvocationId"))
        compaction = object_of(actions.get("compaction"))
        if before is not None:
            start = next((at for at, each in enumerate(kept) if each.get("invocationId") == before), len(kept))
            detail = f"{counted(len(kept) - start, 'event was', 'events were')} taken back"
            changes.append(
                Change(code=ChangeCode.BRANCH_LEFT_OUT, path=("branches", 0), loss=Loss.CONTENT, detail=detail)
            )
            del kept[start:]
        elif compaction:
            inside = [each for each in kept if _is_inside(each, compaction)]
            detail = counted(len(inside), "event")
            path = ("compactions", 0)
            changes.append(Change(code=ChangeCode.COMPACTED_AWAY, path=path, loss=Loss.CONTENT, detail=detail))
            at = kept.index(inside[0]) if inside else len(kept)
            kept = [each for each in kept if each not in inside]
            kept.insert(at, {**event, "content": compaction.get("compactedContent")})
        else:
            kept.append(event)
    return kept, changes


def _is_inside(event: Mapping[str, Any], compaction: Mapping[str, Any]) -> bool:
    times = [event.get("timestamp"), compaction.get("startTimestamp"), compaction.get("endTimestamp")]
    if not all(isinstance(time, (int, float)) for time in times):
        return False
    time, start, end = cast("list[float]", times)
    return start <= time <= end


def _complete(entries: list[Entry], draft: Draft) -> list[Entry]:
    """Add the author, ids and times."""
    author = draft.settings.get("author", AUTHOR)
    now = draft.started / 1000
    invocation = 0
    completed: list[Entry] = []
    for at, entry in enumerate(entries):
        is_user = entry.get("author") == "user"
        invocation += is_user
        time = number_of(entry.get("timestamp"))
        now = now + 0.001 if time is None else time
        fields: dict[str, Any] = {
            "invocationId": f"e-{make_id(draft.id, 'invocation', str(invocation))}",
            "actions": {
                "stateDelta": {},
                "artifactDelta": {},
                "requestedAuthConfigs": {},
                "requestedToolConfirmations": {},
            },
            "nodeInfo": {"path": "" if is_user else f"{author}@1"},
            "id": make_id(draft.id, "event", str(at)),
            "timestamp": now,
        }
        named = {"author": author} if "invocationId" not in entry and not is_user else {}
        completed.append({**{key: value for key, value in fields.items() if key not in entry}, **entry, **named})
    return completed


def _close(entries: list[Entry], rest: Mapping[str, Any], draft: Draft) -> object:
    if not rest and draft.history.origin.format == CODEC.name:
        return entries
    session = object_of(rest.get("session"))
    times = [time for entry in entries if isinstance(time := entry.get("timestamp"), (int, float))]
    updated = max(times, default=draft.started / 1000)
    default: dict[str, Any] = {
        "id": draft.id,
        "appName": "segue",
        "userId": "user",
        "state": {},
        "lastUpdateTime": updated,
    }
    return {**default, **session, "events": entries}


def _open_database(database: AgentDatabase, session: str | None) -> EntryList:
    if not {"sessions", "events"} <= database.tables():
        raise LoadError("the database has no tables sessions and events; it is not one of Google ADK")
    sessions = list(database.rows("sessions"))
    wanted = [row for row in sessions if session is None or row.get("id") == session]
    if not wanted:
        raise LoadError(f"the database has no session {session!r}" if session else "the database has no session")
    row = max(wanted, key=lambda each: str(each.get("update_time")))
    rows = sorted(
        database.rows("events", app_name=row.get("app_name"), user_id=row.get("user_id"), session_id=row.get("id")),
        key=lambda each: str(each.get("timestamp")),
    )
    events = [_parsed(each.get("event_data")) for each in rows]
    whole = {
        "id": row.get("id"),
        "appName": row.get("app_name"),
        "userId": row.get("user_id"),
        "state": _parsed(row.get("state")),
    }
    document = _open({**whole, "events": events}, None)
    if document is None:
        raise LoadError("the session has no events")
    times = [milliseconds_of(row.get(name)) for name in ("create_time", "update_time")]
    return document._replace(created=times[0], updated=times[1], others=len(sessions) - 1)


def _parsed(value: object) -> dict[str, Any]:
    try:
        return object_of(msgspec.json.decode(cast("str", value)))
    except (msgspec.DecodeError, TypeError, ValueError, RecursionError):
        return {}


def _give(files: tuple[WrittenFile, ...]) -> object:
    value = cast("object", msgspec.json.decode(files[0].data))
    if isinstance(value, list):
        events: Any = import_module("google.adk.events")
        return [events.Event.model_validate(item) for item in cast("list[object]", value)]
    sessions: Any = import_module("google.adk.sessions")
    return sessions.Session.model_validate(value)


FRAMEWORK: Final = Framework(
    codec=CODEC,
    title="Google ADK",
    open=_open,
    close=_close,
    complete=_complete,
    open_database=_open_database,
    plain=dumped_by("model_dump_json", "google.adk", alone=True, by_alias=True, exclude_none=True),
    stores_system=False,
    file_name="session.json",
)
FORMAT: Final = framework_format(
    FRAMEWORK,
    give=_give,
    samples=read_samples(__package__),
    wire=WIRE.protocol,
    example=Model("gemini-2.5-pro", "google", "google-genai", reasoning=True),
    source="google-adk 2.13.0, run against a scripted model",
)
