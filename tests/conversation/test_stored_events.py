"""Events are stored as JSON Lines with a version, and read back equal."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

import segue
from segue.conversation.messages import StopReason, Usage
from segue.conversation.replayed import message_events
from segue.errors import DumpError, LoadError, NewerFormat
from segue.events import (
    DoneEvent,
    ErrorEvent,
    Event,
    NativeEvent,
    NoticeEvent,
    PingEvent,
    StartEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageEvent,
)

MESSAGE = segue.AssistantMessage(
    content=(segue.TextContent(text="hi"),), protocol="openai-chat", provider="openai", model="m"
)
CALL = segue.ToolCall(id="c", name="f", arguments={"a": [1]}, arguments_text='{"a": [1]}')
EVENTS: list[Event] = [
    StartEvent(id="r", model="m", usage=Usage(input=3), extra={"openai-chat": {"created": 1}}),
    TextStart(index=0),
    TextDelta(index=0, delta="h"),
    TextDelta(index=0, delta="\ud83d"),
    TextEnd(index=0, content=segue.TextContent(text="hi")),
    ThinkingStart(index=1),
    ThinkingDelta(index=1, delta="hm"),
    ThinkingEnd(index=1, content=segue.ThinkingContent(thinking="hm", thinking_signature="s")),
    ToolCallStart(index=2, id="c", name="f"),
    ToolCallDelta(index=2, delta="{}"),
    ToolCallEnd(index=2, tool_call=CALL),
    NativeEvent(index=3, content=segue.NativeContent(protocol="openai-chat", block={"type": "x"})),
    UsageEvent(usage=Usage(input=3, output=4)),
    PingEvent(),
    NoticeEvent(diagnostic=segue.Diagnostic(type="reasoning_dropped", details={"a": [1]})),
    DoneEvent(reason=StopReason.STOP, message=MESSAGE),
    ErrorEvent(reason=StopReason.ERROR, message=MESSAGE),
]


def test_every_kind_of_event_is_read_back():
    assert {type(event) for event in EVENTS} == set(Event.__args__)
    data = segue.dump_events(EVENTS)
    assert data.count(b"\n") == len(EVENTS) + 1
    assert segue.load_events(data) == EVENTS
    assert segue.load_events(data.decode()) == EVENTS


def test_a_message_is_replayed_from_its_start():
    message = replace(MESSAGE, response_id="r", response_model="m-1", usage=Usage(input=3))
    events = message_events(message)
    assert events[0] == StartEvent(id="r", model="m-1", usage=Usage(input=3))
    assert [event.type for event in events[1:]] == ["text_start", "text_delta", "text_end", "done"]
    assert [event.type for event in message_events(message, with_deltas=False)] == ["text_end", "done"]


def test_the_first_line_is_the_version():
    assert segue.dump_events([]) == b'{"format":"segue-events/1"}\n'
    assert segue.load_events(b'{"format":"segue-events/1"}') == []


def test_a_newer_version_is_refused():
    with pytest.raises(NewerFormat, match="segue-events/2"):
        segue.load_events(b'{"format":"segue-events/2"}\n{"type":"ping"}\n')


@pytest.mark.parametrize("data", [b"", b'{"type":"ping"}\n', b'{"format":"segue/1"}', b"\xff", b"[]"])
def test_data_without_the_version_is_refused(data):
    with pytest.raises(LoadError):
        segue.load_events(data)


def test_an_unknown_event_is_refused_with_its_number():
    with pytest.raises(LoadError) as caught:
        segue.load_events(b'{"format":"segue-events/1"}\n{"type":"ping"}\n{"type":"new"}\n')
    assert caught.value.path == (1,)


def test_a_value_that_is_no_json_is_refused_with_its_path():
    with pytest.raises(DumpError) as caught:
        segue.dump_events([PingEvent(), StartEvent(extra={"openai-chat": {"a": object()}})])
    assert caught.value.path == (1,)
