"""Streams and replies of servers that are nearly right: each function changes the frames of a valid stream.

The changes are those that public reports describe: ids left out, one index for all calls, finish reasons that are
missing or wrong, token counts sent twice, arguments that are not JSON, and arguments repeated in every delta.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.messages import AssistantMessage, StopReason, Usage
from segue.conversation.replayed import message_events
from segue.protocols.api import resolve_endpoint
from segue.protocols.kit.protocol import Protocol
from segue.testing.stream_laws import encode_events

FIRST: Final = ToolCall(id="call_aaaa1", name="read", arguments={"path": "a.txt", "n": 1})
SECOND: Final = ToolCall(id="call_bbbb2", name="read", arguments={"path": "b.txt", "n": 2})
TEXT: Final = "I read both."
THOUGHT: Final = "Let me see."
_WRITTEN: Final = '{"path":"a.txt","n":1}'

_IDS: Final = ("id", "call_id", "toolUseId", "callId", "tool_call_id")
_INPUTS: Final = ("arguments", "input", "args", "toolUseId", "callId")
_INDEXES: Final = ("index", "output_index", "contentBlockIndex")
_REASONS: Final = ("finish_reason", "finishReason", "stop_reason", "stopReason", "done_reason")
_COUNTS: Final = ("usage", "usageMetadata", "metadata", "eval_count")
_STOPS: Final = {
    "anthropic-messages": "end_turn",
    "bedrock-converse": "end_turn",
    "google-genai": "STOP",
    "cohere-chat": "COMPLETE",
}

_OF_ONE: Final = ("vscode-lm", "google-interactions")
"""Protocols that no other server speaks."""

_PLACES: Final = ("index", "output_index", "content_index", "contentBlockIndex", "summary_index", "sequence_number")

Frames = list[Any]
Fault = Callable[[Frames, str], Frames]


def thinks(record: Protocol) -> bool:
    """Whether replies of a protocol have a place for thinking."""
    return record.reply_form.thinking


def right_message(record: Protocol) -> AssistantMessage:
    """Give the reply that every stream and every body is made from."""
    thoughts: tuple[AssistantContent, ...] = (ThinkingContent(thinking=THOUGHT),) if thinks(record) else ()
    return AssistantMessage(
        content=(*thoughts, TextContent(text=TEXT), FIRST, SECOND),
        protocol="p",
        provider="v",
        model="m",
        stop_reason=StopReason.TOOL_USE,
        usage=Usage(input=10, output=5),
    )


def right_stream(record: Protocol) -> Frames:
    """Write the reply as a stream of a protocol."""
    return copy.deepcopy(encode_events(record, message_events(right_message(record))))


def right_body(record: Protocol) -> Any:
    """Write the reply as a whole body of a protocol."""
    return copy.deepcopy(record.encode_response(right_message(record), resolve_endpoint(record.example)))


def _objects(value: object) -> Iterator[dict[str, Any]]:
    inner: list[object] = []
    if isinstance(value, dict):
        yield value
        inner = list(value.values())
    elif isinstance(value, list):
        inner = value
    for each in inner:
        yield from _objects(each)


def _calls(frames: Frames) -> Iterator[dict[str, Any]]:
    for each in _objects(frames):
        if isinstance(each.get("function"), dict) or ("name" in each and any(key in each for key in _INPUTS)):
            yield each


def without_ids(frames: Frames, name: str) -> Frames:
    del name
    for call in _calls(frames):
        for key in _IDS:
            call.pop(key, None)
    return frames


def with_empty_ids(frames: Frames, name: str) -> Frames:
    del name
    for call in _calls(frames):
        for key in _IDS:
            if key in call:
                call[key] = ""
    return frames


def _with_ids(value: object) -> Fault:
    def fault(frames: Frames, name: str) -> Frames:
        for call in _calls(frames) if name not in _OF_ONE else ():
            call.update({key: value for key in _IDS if call.get(key)})
        return frames

    return fault


def without_indexes(frames: Frames, name: str) -> Frames:
    for call in _calls(frames) if name == "openai-chat" else ():
        call.pop("index", None)
    return frames


def _with_places(change: Callable[[dict[str, Any], str], None]) -> Fault:
    def fault(frames: Frames, name: str) -> Frames:
        del name
        for each in list(_objects(frames)):
            for key in _PLACES:
                if isinstance(each.get(key), int):
                    change(each, key)
        return frames

    return fault


def with_objects(frames: Frames, name: str) -> Frames:
    for call in _calls(frames) if name == "openai-chat" else ():
        if isinstance(text := call.get("function", {}).get("arguments"), str) and text:
            call["function"]["arguments"] = json.loads(text)
    return frames


def with_one_index(frames: Frames, name: str) -> Frames:
    del name
    first: int | None = None
    for frame in frames:
        listed = [each["tool_calls"] for each in _objects(frame) if isinstance(each.get("tool_calls"), list)]
        for call in (call for calls in listed for call in calls):
            if "index" in call:
                call["index"] = 0
        for each in () if listed else _objects(frame):
            for key in _INDEXES:
                if isinstance(each.get(key), int):
                    first = each[key] if first is None and '"read"' in json.dumps(frame) else first
                    each[key] = each[key] if first is None else min(first, each[key])
    return frames


def _with_reason(change: Callable[[dict[str, Any], str, str], None]) -> Fault:
    def fault(frames: Frames, name: str) -> Frames:
        for each in _objects(frames):
            for key in _REASONS:
                if each.get(key):
                    change(each, key, name)
        return frames

    return fault


def with_counts_twice(frames: Frames, name: str) -> Frames:
    del name
    twice: Frames = []
    for frame in frames:
        twice.append(frame)
        if isinstance(frame, dict) and any(key in frame for key in _COUNTS):
            twice.append(copy.deepcopy(frame))
    return twice


def _with_arguments(written: str) -> Fault:
    def fault(frames: Frames, name: str) -> Frames:
        del name
        for each in _objects(frames):
            for key, value in each.items():
                if value == _WRITTEN or (isinstance(value, dict) and value.get("path") == "a.txt"):
                    each[key] = written
        return frames

    return fault


def with_snapshots(frames: Frames, name: str) -> Frames:
    del name
    grown: Frames = []
    text = json.dumps(_WRITTEN)[1:-1]
    for frame in frames:
        written = json.dumps(frame)
        if text in written and '"read"' not in written:
            grown += [json.loads(written.replace(text, json.dumps(_WRITTEN[:end])[1:-1])) for end in (1, 6, 12, 99, 99)]
        else:
            grown.append(frame)
    return grown


def _remove(each: dict[str, Any], key: str, name: str) -> None:
    del name
    del each[key]


def _set_stop(each: dict[str, Any], key: str, name: str) -> None:
    each[key] = _STOPS.get(name, "stop")


REPAIRED: Final[Mapping[str, Fault]] = {
    "no fault": lambda frames, name: frames,
    "calls without ids": without_ids,
    "calls with empty ids": with_empty_ids,
    "calls with null as ids": _with_ids(None),
    "calls with numbers as ids": _with_ids(5),
    "one index for all calls": with_one_index,
    "calls without an index": without_indexes,
    "objects as arguments": with_objects,
    "a finish reason of text": _with_reason(_set_stop),
    "counts twice": with_counts_twice,
    "arguments so far in every delta": with_snapshots,
}
"""Faults after which the client gets what was meant."""

UNPLACED: Final[Mapping[str, Fault]] = {
    "no indexes": _with_places(lambda each, key: each.pop(key, None)),
    "texts as indexes": _with_places(lambda each, key: each.update({key: str(each[key])})),
}
"""Repaired by decoders; a client that gets the bytes of the provider gets them so."""

REPORTED: Final[Mapping[str, Fault]] = {
    "no finish reason": _with_reason(_remove),
    "an unknown finish reason": _with_reason(lambda each, key, name: each.update({key: f"odd_{name}"})),
    "text as arguments": _with_arguments("path=a.txt"),
    "arguments of Python": _with_arguments("{'path': 'a.txt', 'n': True}"),
    "raw line breaks and wrong escapes": _with_arguments('{"path":"a\nb\\q.txt","n":1}'),
    "a list as arguments": _with_arguments('["a.txt"]'),
    "a comma too many": _with_arguments('{"path":"a.txt","n":1,}'),
    "joined snapshots": _with_arguments('{"pa{"path":"a.t{"path":"a.txt","n":1}'),
}
"""Faults after which the client gets the rest, and a diagnostic or an error names the fault."""
