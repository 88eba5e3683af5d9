"""The record of AG2: the events of a stream's history.

Events of AG2: requests, responses and results of tools.

Facts (ag2 1.2.1, 2026-11-15):
- `__event__` names the class of an event, `__dataclass__`, `__bytes__`, `__enum__` and `__exception__` other values. A
  field that is not defined refuses the event. Each event has `created_at`, in seconds.
- Only ModelRequest, ModelResponse, ToolResultsEvent and CompactionSummary are sent. Events for single calls and results
  repeat them; a single result is sent if its ToolResultsEvent is missing. UsageEvent repeats the usage.
- Reasoning is not stored. `metadata` of a message is free, and is not sent.
- An exception is loaded as `Exception`, whatever its class was.
- Anthropic's `prompt_tokens` do not include cached tokens, those of other providers do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final, cast

from segue.conversation.content import AssistantContent, FileContent, NativeContent, TextContent, UserContent
from segue.conversation.context import Origin
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, Usage, UserMessage
from segue.histories.kit.entries import Entry, EntryCodec, Reading, Writing, results_together, runs_of
from segue.histories.kit.format import Draft
from segue.histories.kit.framework import (
    Framework,
    close_list,
    framework_format,
    from_package,
    give_json,
    items_of,
    list_opener,
)
from segue.histories.kit.history import WrittenFile
from segue.histories.kit.lines import number_of, object_of, objects_of, text_of
from segue.histories.kit.origins import SEGUE, find_origin, marked_origin, origin_mark, set_origin
from segue.histories.kit.pieces import (
    Media,
    Shown,
    arguments_text,
    encode_json,
    is_base64,
    is_media,
    make_call,
    media_of,
    note_unsupported,
    read_thoughts,
    shown,
    stop_of,
    string_of,
    texts_of,
    usage_of,
    whole_input,
    write_thought,
)
from segue.histories.kit.samples import read_samples
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.templates import write_turns
from segue.projection.report import ChangeCode, Loss

NAME: Final = "ag2"
TITLE: Final = "AG2"
EVENT: Final = "__event__"
REQUEST: Final = "ag2.events.input_events.ModelRequest"
RESPONSE: Final = "ag2.events.types.ModelResponse"
RESULTS: Final = "ag2.events.tool_events.ToolResultsEvent"
_MESSAGE: Final = "ag2.events.types.ModelMessage"
_CALLS: Final = "ag2.events.tool_events.ToolCallsEvent"
_CALL: Final = "ag2.events.tool_events.ToolCallEvent"
_RESULT: Final = "ag2.events.tool_events.ToolResultEvent"
_ERROR: Final = "ag2.events.tool_events.ToolErrorEvent"
_USAGE: Final = "ag2.events.types.Usage"
_TOOL_RESULT: Final = "ag2.events.tool_events.ToolResult"
_INPUTS: Final = "ag2.events.input_events"
_SUMMARY: Final = "[Summary of earlier conversation]\n"
_OF_TOOLS: Final = frozenset(
    {"ToolCallsEvent", "ToolCallEvent", "ToolResultEvent", "ToolErrorEvent", "ToolNotFoundEvent", "ToolResultsEvent"}
)
_COUNTED_APART: Final = frozenset({"anthropic-messages", "bedrock-converse"})
"""Protocols whose input tokens do not include cached ones; the framework stores the count of the provider."""
_KINDS: Final = frozenset({"image", "audio", "video"})


def _kind(entry: Mapping[str, Any]) -> str:
    return (text_of(entry.get(EVENT)) or "").rpartition(".")[2]


def _split(entries: list[Entry]) -> list[list[Entry]]:
    """Group events of tools that follow each other into one run; everything else is alone."""
    return runs_of(entries, lambda before, entry: {_kind(before), _kind(entry)} <= _OF_TOOLS)


def _read(run: list[Entry], reading: Reading) -> list[Message]:  # noqa: ARG001 - an event needs nothing around it
    entry = run[0]
    time = milliseconds_of(entry.get("created_at"))
    match _kind(entry):
        case "ModelRequest" | "DrainedModelRequest":
            return [UserMessage(content=_read_inputs(entry.get("parts")), timestamp=time)]
        case "ModelResponse":
            return [_read_response(entry, time)]
        case "CompactionSummary" if isinstance(entry.get("summary"), str):
            return [UserMessage(content=(TextContent(text=_SUMMARY + entry["summary"]),), timestamp=time)]
        case kind if kind in _OF_TOOLS:
            return [_read_result(each, time) for each in _results_of(run)]
        case _:
            return []


def _results_of(run: list[Entry]) -> list[Entry]:
    """Return the results of a run: those of its batch, then single ones outside any batch."""
    found = [each for entry in run if _kind(entry) == "ToolResultsEvent" for each in objects_of(entry.get("results"))]
    known = {text_of(each.get("parent_id")) for each in found}
    singles = [entry for entry in run if "result" in entry and text_of(entry.get("parent_id")) not in known]
    return [*found, *singles]


def _read_inputs(parts: object) -> tuple[UserContent, ...]:
    return tuple(_read_input(part) for part in objects_of(parts))


def _read_input(part: Entry) -> UserContent:
    media: Media | None = None
    match _kind(part):
        case "TextInput" if isinstance(part.get("content"), str):
            return TextContent(text=part["content"])
        case "DataInput":
            data: object = part.get("data")
            return TextContent(text=data if isinstance(data, str) else encode_json(data))
        case "BinaryInput":
            name = object_of(part.get("vendor_metadata")).get("filename")
            data = object_of(part.get("data")).get("__bytes__")
            media = media_of(part.get("media_type"), data=data, name=name)
        case "UrlInput":
            kind = text_of(object_of(part.get("kind")).get("value") or part.get("kind"))
            media = media_of(_own_type(part) or (f"{kind}/*" if kind in _KINDS else None), url=part.get("url"))
        case "FileIdInput":
            media = media_of(_own_type(part), file_id=part.get("file_id"), name=part.get("filename"))
        case _:
            pass
    return media or NativeContent(protocol=NAME, block=part)


def _own_type(part: Entry) -> str | None:
    """Return the type of a file that is not stored here; only our own metadata has it."""
    return text_of(object_of(object_of(part.get("metadata")).get(SEGUE)).get("media_type"))


def _read_result(event: Entry, time: int | None) -> ToolResultMessage:
    result = object_of(object_of(event.get("result")).get("data"))
    content = _read_inputs(result.get("parts"))
    message = text_of(object_of(event.get("error")).get("message"))
    if not content and message is not None:
        content = (TextContent(text=message),)
    return ToolResultMessage(
        tool_call_id=text_of(event.get("parent_id")) or "",
        tool_name=text_of(event.get("name")) or "",
        content=content,
        is_error="error" in event,
        timestamp=time,
    )


def _read_response(entry: Entry, time: int | None) -> AssistantMessage:
    pieces: list[AssistantContent] = []
    written = object_of(entry.get("message"))
    own = object_of(object_of(written.get("metadata")).get(SEGUE))
    if text := text_of(written.get("content")):
        pieces.append(TextContent(text=text, text_signature=string_of(own.get("signature"))))
    calls = objects_of(object_of(entry.get("tool_calls")).get("calls"))
    pieces += (make_call(call.get("id"), call.get("name"), call.get("arguments")) for call in calls)
    pieces += (NativeContent(protocol=NAME, block=file) for file in objects_of(entry.get("files")))
    read_thoughts(pieces, own.get("thinking"))
    origin = marked_origin(_origin_of(entry), object_of(written.get("metadata")))
    message = AssistantMessage(
        content=tuple(pieces),
        usage=_read_usage(object_of(object_of(entry.get("usage")).get("data")), origin),
        stop_reason=stop_of(entry.get("finish_reason"), pieces),
        raw_stop_reason=text_of(entry.get("finish_reason")),
        response_id=text_of(entry.get("response_id")),
        timestamp=time,
    )
    return set_origin(message, origin)


def _origin_of(entry: Mapping[str, Any]) -> Origin:
    named = [text_of(entry.get(name)) or "" for name in ("model", "provider", "response_id")]
    return find_origin(*named)


def _read_usage(counts: Mapping[str, Any], origin: Origin) -> Usage | None:
    read, write = counts.get("cache_read_input_tokens"), counts.get("cache_creation_input_tokens")
    prompt: object = counts.get("prompt_tokens")
    if origin.protocol in _COUNTED_APART:
        given = (prompt, read, write)
        prompt = sum(int(count) for count in given if isinstance(count, (int, float)) and 0 < count < 2**53)
    thinking = counts.get("thinking_tokens")
    return usage_of(prompt, counts.get("completion_tokens"), cache_read=read, cache_write=write, reasoning=thinking)


# -- writing -----------------------------------------------------------------------------------------------------------


def _write(messages: Sequence[Message], writing: Writing) -> list[Entry]:
    def results(run: list[ToolResultMessage]) -> Entry:
        return {EVENT: RESULTS, "results": [_write_result(each, writing) for each in run], **_stamp(run[0].timestamp)}

    def other(message: UserMessage | SystemMessage) -> Entry:
        if message.role == "system":
            writing.note(message, ChangeCode.SYSTEM_AS_USER, Loss.NONE, f"{TITLE} has no event for instructions")
        time = None if message.role == "system" else message.timestamp
        return {EVENT: REQUEST, "parts": _write_inputs(message, writing), **_stamp(time)}

    return write_turns(messages, reply=lambda reply: _write_response(reply, writing), results=results, other=other)


def _stamp(time: int | None) -> Entry:
    return {} if time is None else {"created_at": time / 1000}


def _write_inputs(message: Message, writing: Writing) -> list[Entry]:
    return [event for piece in shown(message, writing) for event in _write_input(piece, message, writing)]


def _write_input(piece: Shown, message: Message, writing: Writing) -> list[Entry]:
    common: Entry = {"metadata": {}}
    if piece.kind == "text":
        return [{EVENT: f"{_INPUTS}.TextInput", **common, "content": piece.text}]
    if is_media(piece):
        kind = (piece.mime_type or ("image/" if piece.kind == "image" else "")).partition("/")[0]
        kind = kind if kind in _KINDS else "document"
        marked = {"kind": {"__enum__": f"{_INPUTS}.BinaryType", "value": kind}}
        name = piece.name if isinstance(piece, FileContent) else None
        if piece.data is not None and is_base64(piece.data):
            mime = piece.mime_type or ("image/png" if piece.kind == "image" else "application/octet-stream")
            vendor = {} if name is None else {"filename": name}
            data: Entry = {"data": {"__bytes__": piece.data}, "media_type": mime, "vendor_metadata": vendor}
            return [{EVENT: f"{_INPUTS}.BinaryInput", **common, **data, **marked}]
        common = {"metadata": {SEGUE: {"media_type": piece.mime_type}} if piece.mime_type else {}}
        if piece.data is None and piece.url is not None:
            return [{EVENT: f"{_INPUTS}.UrlInput", **common, "url": piece.url, **marked}]
        if isinstance(piece, FileContent) and piece.data is None and piece.file_id is not None:
            return [{EVENT: f"{_INPUTS}.FileIdInput", **common, "file_id": piece.file_id, "filename": name}]
    note_unsupported(message, writing, piece, TITLE)
    return []


def _write_result(message: ToolResultMessage, writing: Writing) -> Entry:
    data: Entry = {"parts": _write_inputs(message, writing), "final": False, "metadata": {}}
    event: Entry = {
        EVENT: _ERROR if message.is_error else _RESULT,
        "parent_id": message.tool_call_id,
        "name": message.tool_name or None,
        "result": {"__dataclass__": _TOOL_RESULT, "data": data},
    }
    if message.is_error:
        event["error"] = {"__exception__": "Exception", "message": texts_of(message)}
    return event


def _write_response(message: AssistantMessage, writing: Writing) -> Entry:
    texts: list[str] = []
    calls: list[Entry] = []
    thoughts: list[Entry] = []
    own: Entry = {}
    for piece in shown(message, writing):
        match piece.kind:
            case "text":
                texts.append(piece.text)
                own |= {} if piece.text_signature is None else {"signature": piece.text_signature}
            case "thinking":
                thoughts.append(write_thought(piece, len(thoughts) + bool(texts) + len(calls)))
            case "toolCall":
                call: Entry = {EVENT: _CALL, "source": None, "id": piece.id, "name": piece.name}
                calls.append({**call, "arguments": arguments_text(piece), "vendor_metadata": {}})
                if piece.thought_signature is not None:
                    writing.note(message, ChangeCode.SIGNATURE_REMOVED, Loss.OPAQUE, f"{TITLE} has no field for it")
            case "image" | "file":
                note_unsupported(message, writing, piece, TITLE)
    if len(texts) > 1:
        writing.note(message, ChangeCode.TURN_MERGED, Loss.NONE, f"{TITLE} has one text for each turn")
    text = "\n".join(texts)
    if thoughts and not text:
        writing.note(message, ChangeCode.THINKING_DROPPED, Loss.CONTENT, f"{TITLE} has no field for it without a text")
        thoughts = []
    entry: Entry = {
        EVENT: RESPONSE,
        **_stamp(message.timestamp),
        "response_force": False,
        "files": [],
        "tool_calls": {EVENT: _CALLS, "calls": calls},
        "usage": {"__dataclass__": _USAGE, "data": _write_usage(message)},
        "model": message.model or None,
        "provider": message.provider or None,
        "finish_reason": message.raw_stop_reason,
        "response_id": message.response_id,
    }
    own |= cast("Entry", origin_mark(message, _origin_of(entry)).get(SEGUE, {}))
    own |= {"thinking": thoughts} if thoughts else {}
    written: Entry = {EVENT: _MESSAGE, "metadata": {SEGUE: own} if own else {}, "content": text}
    return {**entry, "message": written if text else None}


def _write_usage(message: AssistantMessage) -> Entry:
    usage = message.usage
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    names += ("cache_read_input_tokens", "cache_creation_input_tokens", "thinking_tokens")
    if usage is None:
        return dict.fromkeys(names)
    prompt = usage.input if message.protocol in _COUNTED_APART else whole_input(usage)
    counts = (prompt, usage.output, prompt + usage.output)
    further = (usage.cache_read, usage.cache_write, usage.reasoning)
    given = [*map(float, counts), *(float(count) if count else None for count in further)]
    return dict(zip(names, given, strict=True))


CODEC: Final = EntryCodec(name=NAME, read=_read, write=_write, split=_split, join=results_together)


_CREATED: Final = "created_at"


def _is_event(entry: Mapping[str, Any]) -> bool:
    return (text_of(entry.get(EVENT)) or "").startswith(f"{NAME}.")


def _complete(entries: list[Entry], draft: Draft) -> list[Entry]:
    """Add the times that every event has, also those inside others."""
    now = draft.started / 1000
    completed: list[Entry] = []
    for entry in entries:
        given = number_of(entry.get(_CREATED))
        now = now + 0.001 if given is None else given
        completed.append(cast("Entry", _timed(entry, now)))
    return completed


def _timed(value: object, time: float) -> object:
    if isinstance(value, list):
        return [_timed(item, time) for item in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    fields: dict[str, object] = {key: _timed(item, time) for key, item in object_of(cast("object", value)).items()}
    return {_CREATED: time, **fields} if EVENT in fields else fields


def _plain(value: object) -> object:
    if not from_package(value, NAME):
        return value
    serialization: Any = import_module("ag2.events._serialization")
    return serialization.serialize_value(items_of(value) or [value])


def _give(files: tuple[WrittenFile, ...]) -> object:
    serialization: Any = import_module("ag2.events._serialization")
    value = give_json(files)
    return serialization.deserialize_value(object_of(value).get("messages", value))


FRAMEWORK: Final = Framework(
    codec=CODEC,
    title=TITLE,
    open=list_opener(_is_event),
    close=close_list,
    complete=_complete,
    plain=_plain,
    stores_system=False,
    file_name="events.json",
)
FORMAT: Final = framework_format(
    FRAMEWORK,
    give=_give,
    samples=read_samples(__package__),
    source="ag2 1.2.1, its own dump",
)
