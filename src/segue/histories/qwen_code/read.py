"""Reads a session of Qwen Code.

Facts (Qwen Code 0.15.10, run against a scripted model; its source; 2026-11-16):
- A line hangs under its `parentUuid`; the last line is the end of the path. A `rewind` hangs the next lines under an
  older one. Several lines may have one `uuid`: their parts belong together.
- `message` is a content of Google: the role `user` or `model`, and parts. Results of tools are lines of the type
  `tool_result`, with their outcome in `toolCallResult.status`.
- `system/chat_compression` has in `compressedHistory` the contents that replace everything before it.
- Other `system` lines are settings, telemetry and titles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from segue.conversation.context import Summary
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from segue.errors import DecodeError, LoadError
from segue.histories.kit.documents import finish_history
from segue.histories.kit.envelope import plain_text, with_envelope
from segue.histories.kit.history import Compaction, History
from segue.histories.kit.lines import decode_objects, object_of, objects_of, text_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import find_origin, marked_origin, set_origin
from segue.histories.kit.pieces import stop_of, usage_of
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.trees import Tree
from segue.histories.kit.unread import note_unread
from segue.histories.kit.wire import TurnCodec

NAME: Final = "qwen-code"
WIRE: Final = TurnCodec("google-genai", "contents")
KNOWN_RECORDS: Final = frozenset({
    "sidechain", "system/at_command", "system/attribution_snapshot", "system/chat_compression", "system/custom_title",
    "system/file_history_snapshot", "system/notification", "system/rewind", "system/slash_command",
    "system/turn_result", "system/ui_telemetry",
})  # fmt: skip
COMPRESSION: Final = "chat_compression"
_TURNS: Final = frozenset({"user", "assistant", "tool_result"})
_WRITTEN_ANEW: Final = ("parentUuid", "sessionId", "message", "segue")


def read(source: Source, view: View) -> History:
    """Read one session.

    Raises:
        LoadError: the file has no line of Qwen Code, or not the branch that the view asks for.
    """
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    lines, numbers = _read_lines(source.data or b"", notes)
    if not lines:
        raise LoadError("no conversation found: the file has no line with a uuid and a message of Qwen Code")
    tree = Tree({uuid: text_of(fields.get("parentUuid")) for uuid, fields in lines.items()})
    path = tree.path(tree.end(view, next(reversed(lines))))
    messages: list[Message] = []
    compaction: Compaction | None = None
    for uuid in path:
        fields = lines[uuid]
        contents = _compressed(fields)
        is_compression = text_of(fields.get("subtype")) == COMPRESSION
        if is_compression and contents != object_of(fields.get("systemPayload")).get("compressedHistory"):
            notes.unreadable(numbers[uuid], "a compression needs its contents, which are objects")
        if contents:
            decoded = [message for each in contents for message in _decode(each, fields, numbers[uuid], notes)]
            kept = without(fields, (*_WRITTEN_ANEW, "systemPayload"))
            summary = [with_envelope(message, NAME, kept) for message in decoded]
            text = "\n".join(filter(None, map(plain_text, summary)))
            covers = Summary(covers=len(messages), text=text, timestamp=milliseconds_of(fields.get("timestamp")))
            compaction = Compaction(summary=covers, messages=tuple(messages), id=uuid)
            messages = summary
        elif text_of(fields.get("type")) in _TURNS:
            messages += _read_line(fields, numbers[uuid], notes)
    branches = tree.branches(
        path,
        notes,
        is_message=lambda uuid: text_of(lines[uuid].get("type")) in _TURNS or _compressed(lines[uuid]) != [],
        text_of=lambda uuid: _words(lines[uuid]),
        time_of=lambda uuid: milliseconds_of(lines[uuid].get("timestamp")),
    )
    first, last = lines[path[0]], lines[path[-1]]
    titles = (object_of(fields.get("systemPayload")).get("customTitle") for fields in reversed(lines.values()))
    return finish_history(
        NAME,
        notes,
        messages,
        session_id=text_of(last.get("sessionId")) or source.name.rpartition("/")[2].removesuffix(".jsonl") or None,
        version=text_of(last.get("version")),
        title=next((title for title in titles if isinstance(title, str) and title), None),
        cwd=text_of(first.get("cwd")),
        branches=branches,
        compaction=compaction,
    )


def _read_lines(data: bytes, notes: Notes) -> tuple[dict[str, dict[str, Any]], dict[str, int]]:
    """Return the lines of the conversation by their uuid, and their numbers; all others are noted."""
    lines: dict[str, dict[str, Any]] = {}
    numbers: dict[str, int] = {}
    for line, fields in decode_objects(data, notes):
        uuid, kind, subtype = (text_of(fields.get(name)) for name in ("uuid", "type", "subtype"))
        is_side = fields.get("isSidechain") is True
        if uuid is None or is_side or kind not in _TURNS:
            shown = "sidechain" if is_side else f"{kind or 'unknown'}/{subtype}" if subtype else kind or "unknown"
            notes.record(shown, line.number, len(line.data), fields if notes.keeps else None)
        if uuid is None or is_side:
            continue
        if uuid in lines and kind != text_of(lines[uuid].get("type")):
            notes.unreadable(line.number, "another line with the same uuid")
        elif uuid in lines:
            message = object_of(lines[uuid].get("message"))
            parts = [*objects_of(message.get("parts")), *objects_of(object_of(fields.get("message")).get("parts"))]
            lines[uuid] = {**lines[uuid], "message": {**message, "parts": parts}}
        else:
            lines[uuid], numbers[uuid] = fields, line.number
    return lines, numbers


def _compressed(fields: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the contents of a compression; none for any other line."""
    is_compression = text_of(fields.get("subtype")) == COMPRESSION
    return objects_of(object_of(fields.get("systemPayload")).get("compressedHistory")) if is_compression else []


def _words(fields: dict[str, Any]) -> str:
    parts = objects_of(object_of(fields.get("message")).get("parts"))
    return "\n".join(text for part in parts if (text := text_of(part.get("text"))))


def _read_line(fields: dict[str, Any], number: int, notes: Notes) -> list[Message]:
    since = notes.left_out
    made = _decode(object_of(fields.get("message")), fields, number, notes)
    shown = without(fields, ("toolCallResult", "cwd", "gitBranch"))
    note_unread(shown, [each.content for each in made], number, notes, since=since)
    if not made and notes.left_out == since:
        notes.unreadable(number, "the message has no parts")
    envelope = without(fields, _WRITTEN_ANEW)
    return [
        with_envelope(message, NAME, envelope if not at else {"uuid": fields["uuid"]})
        for at, message in enumerate(made)
    ]


def _decode(content: dict[str, Any], fields: dict[str, Any], number: int, notes: Notes) -> Sequence[Message]:
    model = text_of(fields.get("model")) or ""
    try:
        decoded = WIRE.decode([content], model)
    except DecodeError as error:
        notes.unreadable(number, str(error))
        return []
    time = milliseconds_of(fields.get("timestamp"))
    status = text_of(object_of(fields.get("toolCallResult")).get("status"))
    made: list[Message] = []
    for message in decoded:
        if isinstance(message, AssistantMessage):
            usage = object_of(fields.get("usageMetadata"))
            counted = usage_of(
                usage.get("promptTokenCount"),
                usage.get("candidatesTokenCount"),
                cache_read=usage.get("cachedContentTokenCount"),
                reasoning=usage.get("thoughtsTokenCount"),
                total=usage.get("totalTokenCount"),
            )
            ended = replace(message, usage=counted, stop_reason=stop_of(None, message.content), timestamp=time)
            made.append(set_origin(ended, marked_origin(find_origin(model), fields)))
        elif isinstance(message, ToolResultMessage):
            made.append(replace(message, is_error=message.is_error or status == "error", timestamp=time))
        elif isinstance(message, UserMessage):
            made.append(replace(message, timestamp=time))
        else:
            made.append(message)
    return made
