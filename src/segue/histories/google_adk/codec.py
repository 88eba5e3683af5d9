"""Events of Google ADK: contents of google-genai with an envelope.

Facts this file rests on (google-adk 2.13.0, 2026-11-15):
- An event is one content, with author, invocation, time in seconds, and `modelVersion`, usage and finish reason of a
  reply. Results of tools are one content of the user whose author is the agent.
- Events of an author that is neither the user nor the agent itself are sent as text of the user.
- Thought signatures are URL-safe base64. An exception in a tool leaves an event with `errorCode` and no content.
- JSON has camelCase, the database snake_case; both are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final

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
from segue.histories.kit.entries import Entry, EntryCodec, Reading, Writing
from segue.histories.kit.framework import items_of
from segue.histories.kit.lines import integer_of, object_of, objects_of, text_of
from segue.histories.kit.origins import find_origin, marked_origin, origin_mark, set_origin
from segue.histories.kit.pieces import stop_of, usage_of
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.wire import TurnCodec
from segue.projection.report import ChangeCode, Loss
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
    """Give a content whose signatures are standard base64, as in every other format."""
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
    """Give the results of tools that follow each other as one run, everything else alone."""
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
