"""The record of Strands: the folder of `FileSessionManager`, or the list of an agent's messages.

Messages of Strands: Converse messages, each in an envelope with its number and times.

Facts (strands-agents 1.62.0, 2026-11-15):
- A session is a folder `session_<id>` with `session.json`, and for each agent `agents/agent_<id>/agent.json` and
  `messages/message_<n>.json`. The default place is `~/.strands/sessions`.
- `conversation_manager_state.removed_message_count` counts the first messages that are no longer sent; a manager
  that summarises stores the message that takes their place in `summary_message`.
- Bytes are stored as `{"__bytes_encoded__": true, "data": base64}`.
- All results of a batch of calls are one message of the user. There is no role for instructions.
- `metadata` of a message is never sent: `usage`, without cached tokens in the input, `metrics`, and `custom`.
- A model is not named. `redact_message` replaces a message where a guardrail removed something.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final, cast

from msgspec.structs import replace

from segue.conversation.content import AnyContent, NativeContent, TextContent, ThinkingContent
from segue.conversation.context import Origin
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, Usage, UserMessage
from segue.errors import EncodeError
from segue.histories.kit.documents import load_value, parse_object
from segue.histories.kit.entries import Entry, EntryCodec, Reading, Writing, results_together
from segue.histories.kit.format import Draft, Place
from segue.histories.kit.framework import EntryList, Framework, framework_format, give_json, items_of, list_of
from segue.histories.kit.history import WrittenFile
from segue.histories.kit.lines import integer_of, object_of, text_of
from segue.histories.kit.origins import marked_origin, origin_mark, set_origin
from segue.histories.kit.pieces import is_base64, note_signatures, note_unsupported, shown
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source
from segue.histories.kit.stamps import iso_of, make_id, milliseconds_of
from segue.histories.kit.wire import TurnCodec
from segue.histories.kit.writing import json_line
from segue.projection.report import Change, ChangeCode, Loss

NAME: Final = "strands"
TITLE: Final = "Strands"
WIRE: Final = TurnCodec("bedrock-converse", "messages")
_CLAUDE: Final = "anthropic.claude-sonnet-4-5-20250929-v1:0"
"""The model whose form of Converse has signatures; the framework stores them for every provider."""
_BYTES: Final = "__bytes_encoded__"
_DEFAULT: Final = Origin(protocol="bedrock-converse", provider="amazon-bedrock", model="")


def plain_bytes(value: object) -> object:
    """Return encoded bytes as base64, which is their form in the JSON of Converse."""
    if isinstance(value, list):
        return [plain_bytes(item) for item in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    fields = object_of(cast("object", value))
    if fields.get(_BYTES) is True and isinstance(fields.get("data"), str):
        return fields["data"]
    return {key: plain_bytes(item) for key, item in fields.items()}


def _encoded(value: object) -> object:
    """Write bytes as the framework stores them."""
    if isinstance(value, list):
        return [_encoded(item) for item in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    made: dict[str, object] = {}
    for key, item in object_of(cast("object", value)).items():
        is_bytes = key in {"bytes", "redactedContent"} and isinstance(item, str)
        made[key] = {_BYTES: True, "data": item} if is_bytes else _encoded(item)
    return made


def _read(run: list[Entry], reading: Reading) -> list[Message]:
    entry = run[0]
    message = object_of(entry.get("redact_message")) or object_of(entry.get("message"))
    if text_of(message.get("role")) not in {"user", "assistant"} or not isinstance(message.get("content"), list):
        return []
    metadata = object_of(message.get("metadata"))
    turn = {"role": message["role"], "content": plain_bytes(message["content"])}
    time = milliseconds_of(entry.get("created_at"))
    made: list[Message] = []
    for each in WIRE.decode([turn], _CLAUDE, "amazon-bedrock"):
        if isinstance(each, AssistantMessage):
            reading.note_once(ChangeCode.MODEL_UNKNOWN, "the messages do not name their model")
            origin = marked_origin(_DEFAULT, object_of(metadata.get("custom")))
            reply = replace(each, timestamp=time, usage=_read_usage(object_of(metadata.get("usage"))))
            made.append(set_origin(reply, origin))
        elif isinstance(each, SystemMessage):
            made.append(each)
        else:
            made.append(replace(each, timestamp=time))
    return made


def _read_usage(usage: Mapping[str, Any]) -> Usage | None:
    if not usage:
        return None
    return Usage(
        input=integer_of(usage.get("inputTokens")),
        output=integer_of(usage.get("outputTokens")),
        cache_read=integer_of(usage.get("cacheReadInputTokens")),
        cache_write=integer_of(usage.get("cacheWriteInputTokens")),
        total_tokens=integer_of(usage.get("totalTokens")),
    )


# -- writing -----------------------------------------------------------------------------------------------------------


def _write(messages: Sequence[Message], writing: Writing) -> list[Entry]:
    prepared = [_prepared(message, writing) for message in messages]
    first = messages[0]
    if isinstance(prepared[0], AssistantMessage):
        turns = [{"role": "assistant", "content": _blocks_of(prepared[0])}]
    else:
        turns = WIRE.encode(prepared, _CLAUDE, "amazon-bedrock")
    time = None if isinstance(first, SystemMessage) else first.timestamp
    stamp = {} if time is None else {"created_at": iso_of(time), "updated_at": iso_of(time)}
    entries: list[Entry] = []
    for turn in turns:
        message: Entry = {"role": turn["role"], "content": _encoded(turn["content"])}
        if isinstance(first, AssistantMessage) and (metadata := _metadata(first)):
            message["metadata"] = metadata
        entries.append({"message": message, "redact_message": None, **stamp})
    return entries


def _blocks_of(message: AssistantMessage) -> list[object]:
    """Write the blocks of a reply. The framework stores reasoning with and without a signature."""
    blocks: list[object] = []
    for piece in message.content:
        if not isinstance(piece, ThinkingContent):
            (turn,) = WIRE.encode([replace(message, content=(piece,))], _CLAUDE, "amazon-bedrock")
            blocks += turn["content"]
        elif piece.redacted and not piece.thinking:
            blocks.append({"reasoningContent": {"redactedContent": piece.thinking_signature or ""}})
        else:
            signed = {} if piece.thinking_signature is None else {"signature": piece.thinking_signature}
            blocks.append({"reasoningContent": {"reasoningText": {"text": piece.thinking, **signed}}})
    return blocks


def _metadata(message: AssistantMessage) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    if (usage := message.usage) is not None:
        counts = {"inputTokens": usage.input, "outputTokens": usage.output, "totalTokens": usage.total_tokens}
        cached = {"cacheReadInputTokens": usage.cache_read, "cacheWriteInputTokens": usage.cache_write}
        metadata["usage"] = {**counts, **{name: count for name, count in cached.items() if count}}
    if mark := origin_mark(message, _DEFAULT):
        metadata["custom"] = mark
    return metadata


def _prepared(message: Message, writing: Writing) -> Message:
    """Return a message that Converse can hold: what it cannot hold is reported."""
    if isinstance(message, SystemMessage):
        writing.note(message, ChangeCode.SYSTEM_AS_USER, Loss.NONE, f"{TITLE} has no role for instructions")
        return UserMessage(content=tuple(piece for piece in shown(message, writing) if isinstance(piece, TextContent)))
    kept: list[AnyContent] = []
    for piece in message.content:
        own = isinstance(piece, NativeContent) and piece.protocol == WIRE.protocol
        for each in [piece] if own else shown(message, writing, [piece]):
            if not (isinstance(message, AssistantMessage) and each.kind in {"image", "file"}) and _can_encode(
                message, each
            ):
                kept.append(each)
            else:
                note_unsupported(message, writing, each, TITLE)
    if isinstance(message, AssistantMessage) and any(
        getattr(piece, name, None) for piece in kept for name in ("text_signature", "thought_signature")
    ):
        note_signatures(message, writing, TITLE)
    return message if list(message.content) == kept else replace(message, content=tuple(kept))


def _can_encode(message: Message, piece: AnyContent) -> bool:
    if isinstance(piece, (TextContent, ThinkingContent)):
        return True
    data = getattr(piece, "data", None)
    if isinstance(data, str) and not is_base64(data):
        return False
    try:
        WIRE.encode([replace(message, content=(piece,))], _CLAUDE, "amazon-bedrock")
    except (EncodeError, ValueError, TypeError):
        return False
    return True


CODEC: Final = EntryCodec(name=NAME, read=_read, write=_write, join=results_together)


_AGENT: Final = "agent"
_BLOCKS: Final = frozenset(
    {"text", "image", "document", "video", "toolUse", "toolResult", "reasoningContent", "cachePoint", "guardContent",
     "citationsContent"}
)  # fmt: skip
_NUMBER: Final = re.compile(r"message_(\d+)\.json$")


def _is_message(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    if text_of(message.get("role")) not in {"user", "assistant"} or not isinstance(content, list):
        return False
    blocks = [object_of(block) for block in cast("list[object]", content)]
    return all("type" not in block and not _BLOCKS.isdisjoint(block) for block in blocks)


def _is_entry(entry: Mapping[str, Any]) -> bool:
    return "message_id" in entry and isinstance(entry.get("message"), dict)


def _open(value: object, session: str | None) -> EntryList | None:  # noqa: ARG001 - one list is one conversation
    whole = object_of(value)
    items = whole.get("messages") if "messages" in whole else [whole] if _is_entry(whole) else value
    entries = list_of(items)
    if not entries:
        return None
    if all(_is_entry(entry) for entry in entries):
        return _document(entries, object_of(whole.get(_AGENT)))
    if any(_is_message(entry) for entry in entries):
        return EntryList([{"message": entry} for entry in entries], {"form": "messages"})
    return None


def _document(entries: list[Entry], agent: Mapping[str, Any]) -> EntryList:
    """Leave out the messages that are no longer sent."""
    state = object_of(agent.get("conversation_manager_state"))
    removed = integer_of(state.get("removed_message_count"))
    rest: dict[str, Any] = {_AGENT: dict(agent)} if agent else {}
    changes: list[Change] = []
    if 0 < removed <= len(entries):
        detail = f"{removed} messages"
        path = ("compactions", 0)
        changes.append(Change(code=ChangeCode.COMPACTED_AWAY, path=path, loss=Loss.CONTENT, detail=detail))
        entries = entries[removed:]
        if summary := object_of(state.get("summary_message")):
            entries = [{"message": summary, "message_id": -1}, *entries]
    return EntryList(entries, rest, changes=tuple(changes))


def _open_source(source: Source) -> EntryList | None:
    value = _plain(load_value(source))
    folder = _folder_of(source.name)
    if folder is None or not (_is_entry(object_of(value)) or "agent_id" in object_of(value) or _is_session(value)):
        return _open(value, source.session)
    folder = folder if "/agents/" in f"/{folder}" else _first_agent(source, folder)
    if folder is None:
        return None
    names = sorted(source.neighbours.find(f"{folder}messages/message_*.json"), key=_number_of)
    entries = [(name, parse_object(source.neighbours.read(name))) for name in names]
    broken = tuple(
        Change(code=ChangeCode.LINE_UNREADABLE, path=("lines", _number_of(name)), loss=Loss.CONTENT, detail=name)
        for name, entry in entries
        if not entry
    )
    document = _document(
        [entry for _, entry in entries if entry], parse_object(source.neighbours.read(f"{folder}agent.json"))
    )
    session = folder.partition("/")[0].removeprefix("session_") if "session_" in folder else None
    agent = object_of(document.rest.get(_AGENT))
    return document._replace(
        changes=(*document.changes, *broken),
        id=session,
        created=milliseconds_of(agent.get("created_at")),
        updated=milliseconds_of(agent.get("updated_at")),
    )


def _is_session(value: object) -> bool:
    return {"session_id", "session_type"} <= object_of(value).keys()


def _folder_of(name: str) -> str | None:
    """Return the folder of the agent, or of the session; empty for a file that was opened by itself."""
    parts = name.split("/")
    if parts[-1] in {"agent.json", "session.json"}:
        return "/".join((*parts[:-1], "")) or None
    if len(parts) > 2 and parts[-2] == "messages" and _NUMBER.search(parts[-1]):
        return "/".join((*parts[:-2], ""))
    return None


def _first_agent(source: Source, folder: str) -> str | None:
    found = sorted(source.neighbours.find(f"{folder}agents/agent_*/agent.json"))
    return found[0].removesuffix("agent.json") if found else None


def _number_of(name: str) -> int:
    found = _NUMBER.search(name)
    return int(found[1]) if found else 0


# -- writing -----------------------------------------------------------------------------------------------------------


def _complete(entries: list[Entry], draft: Draft) -> list[Entry]:
    """Add numbers, times and the ids that the framework tracks messages by."""
    now = draft.started
    completed: list[Entry] = []
    for at, entry in enumerate(entries):
        now = milliseconds_of(entry.get("created_at")) or now + 1
        message = object_of(entry.get("message"))
        tracking = {} if message.get("tracking_id") else {"tracking_id": make_id(draft.id, "message", str(at))}
        stamps = {name: entry.get(name) or iso_of(now) for name in ("created_at", "updated_at")}
        made: Entry = {**entry, "message": {**message, **tracking}, "message_id": at, "redact_message": None}
        made |= {"redact_message": entry.get("redact_message"), **stamps}
        completed.append(made)
    return completed


def _close(entries: list[Entry], rest: Mapping[str, Any], draft: Draft) -> object:
    if rest.get("form") == "messages":
        return [entry["message"] for entry in entries]
    agent = object_of(rest.get(_AGENT))
    started = iso_of(draft.started)
    default: dict[str, Any] = {
        "agent_id": draft.settings.get("agent", "default"),
        "state": {},
        "conversation_manager_state": {"__name__": "SlidingWindowConversationManager", "removed_message_count": 0},
        "_internal_state": {},
        "created_at": started,
        "updated_at": started,
    }
    made = {**default, **agent}
    state = object_of(made["conversation_manager_state"])
    if state.get("removed_message_count"):
        made["conversation_manager_state"] = {**state, "removed_message_count": 0}
    return {"session_id": draft.id, _AGENT: made, "messages": entries}


def _further(value: object, draft: Draft) -> tuple[WrittenFile, ...]:
    """Return the files of the folder that `FileSessionManager` reads."""
    whole = object_of(value)
    agent = object_of(whole.get(_AGENT))
    if not agent:
        return ()
    folder = f"session_{draft.id}"
    started = iso_of(draft.started)
    session = {"session_id": draft.id, "session_type": "AGENT", "created_at": started, "updated_at": started}
    inner = f"{folder}/agents/agent_{agent['agent_id']}"
    files = [(f"{folder}/session.json", session), (f"{inner}/agent.json", agent)]
    files += [
        (f"{inner}/messages/message_{at}.json", object_of(entry))
        for at, entry in enumerate(items_of(whole["messages"]))
    ]
    return tuple(WrittenFile(name=name, data=json_line(each)) for name, each in files)


def _plain(value: object) -> object:
    """Encode the bytes in the messages of an agent."""
    messages = getattr(value, "messages", None)
    return _with_text(cast("object", value if messages is None else messages))


def _with_text(value: object) -> object:
    if isinstance(value, bytes):
        return {"__bytes_encoded__": True, "data": base64.b64encode(value).decode()}
    if isinstance(value, list):
        return [_with_text(item) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        return {key: _with_text(item) for key, item in object_of(cast("object", value)).items()}
    return value


def _give(files: tuple[WrittenFile, ...]) -> object:
    """Return the messages of an agent, with bytes decoded by the framework."""
    types: Any = import_module("strands.types.session")
    whole = give_json(files)
    entries = items_of(object_of(whole).get("messages")) or [{"message": each} for each in items_of(whole)]
    return [types.decode_bytes_values(object_of(entry)["message"]) for entry in entries]


FRAMEWORK: Final = Framework(
    codec=CODEC,
    title=TITLE,
    open=_open,
    open_source=_open_source,
    close=_close,
    complete=_complete,
    further=_further,
    stores_system=False,
    file_name="strands-session.json",
)
FORMAT: Final = framework_format(
    FRAMEWORK,
    give=_give,
    samples=read_samples(__package__),
    place=Place(
        folder=".strands/sessions",
        patterns=(
            "session_*/agents/agent_*/agent.json",
            "session_*/agents/agent_*/messages/message_*.json",
            "session_*/session.json",
        ),
    ),
    source="strands-agents 1.62.0, run against a scripted model",
)
