"""The fast paths of stream decoders and encoders give what the general paths give, for every protocol.

A decoder has a fast path for frames that are bytes; the same frames as dicts take the general path. An encoder has one
for the deltas of a part behind the first.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

import segue
from property_testing import tiers
from protocols.every_protocol import all_codecs
from segue.events import DoneEvent, Event, StartEvent, TextDelta, TextStart, ThinkingDelta, ToolCallDelta, ToolCallStart
from segue.protocols.api import resolve_endpoint
from segue.protocols.kit.protocol import Protocol
from segue.testing.stream_laws import message_events

STREAMING = [codec for codec in all_codecs() if codec.stream_encoder is not None]
of_every_stream = pytest.mark.parametrize("codec", STREAMING, ids=[codec.name for codec in STREAMING])
VALUES: tuple[Any, ...] = ("", "other", "\ud83d", None, True, False, 0, 1, 10**30, {}, [], {"a": 1}, ["a"])
KEYS = ("thought", "thoughtSignature", "index", "text", "role", "usageMetadata", "createTime", "signature", "error")


def reply(codec: Protocol) -> segue.AssistantMessage:
    model = codec.example
    return segue.AssistantMessage(
        content=(
            segue.ThinkingContent(thinking="First I look. Then I write."),
            segue.TextContent(text="Grüße, and a second sentence of some length."),
            segue.ToolCall(id="call_1", name="read_file", arguments={"path": "src/app.py", "lines": 20}),
        ),
        protocol=model.protocol,
        provider=model.provider,
        model=model.id,
        response_id="r1",
        response_model=model.id,
        stop_reason=segue.StopReason.TOOL_USE,
        usage=segue.Usage(input=10, output=20, total_tokens=30),
    )


def split_deltas(events: list[Event]) -> Iterator[Event]:
    """Split each delta into pieces of four characters."""
    for event in events:
        if isinstance(event, (TextDelta, ThinkingDelta, ToolCallDelta)):
            pieces = [event.delta[at : at + 4] for at in range(0, len(event.delta), 4)]
            yield from (type(event)(index=event.index, delta=piece) for piece in pieces)
        else:
            yield event


def shown_events(codec: Protocol) -> list[Event]:
    """Give the events of a reply as a client of the protocol may see them."""
    projector = segue.ReplyProjector(protocol=codec.name, model=codec.example)
    events = [made for event in message_events(reply(codec)) for made in projector.feed(event)]
    return list(split_deltas(events))


def frames_of(codec: Protocol) -> list[Any]:
    encoder = segue.stream_encoder(protocol=codec.name, model=codec.example)
    frames: list[Any] = [frame for event in shown_events(codec) for frame in encoder.feed(event)]
    if codec.name == "google-genai":  # it repeats the counts in every frame
        frames = [{**frame, "usageMetadata": {"promptTokenCount": at}} for at, frame in enumerate(frames)]
    return frames


def as_bytes(codec: Protocol, frame: Any) -> Any:
    if isinstance(frame, str):
        return frame
    if codec.framing != "aws-event-stream":
        return json.dumps(frame).encode()
    ((kind, payload),) = frame.items()
    return kind, json.dumps(payload).encode()


def decode(codec: Protocol, frames: list[Any]) -> tuple[list[Event], segue.AssistantMessage]:
    decoder = codec.stream_decoder(resolve_endpoint(codec.example), {})
    events = [event for frame in frames for event in decoder.feed(frame)] + decoder.finish()
    return events, decoder.message


def changes_of(value: Any) -> Iterator[Any]:
    """Give a JSON value with one change: a value replaced, a key removed or added, an item twice, at any place."""
    if isinstance(value, dict):
        for key in value:
            rest = {name: inner for name, inner in value.items() if name != key}
            yield rest
            yield from ({**value, key: inner} for inner in changes_of(value[key]))
        yield from ({**value, key: inner} for key in KEYS if key not in value for inner in ("", True, {"a": 1}))
    elif isinstance(value, list):
        yield [*value, *value]
        for at, item in enumerate(value):
            yield from ([*value[:at], inner, *value[at + 1 :]] for inner in changes_of(item))
    yield from VALUES


@of_every_stream
@pytest.mark.parametrize("step", tiers([9], [1]))
def test_a_frame_with_any_change_is_read_on_the_fast_path_as_on_the_general_one(codec: Protocol, step: int):
    frames = frames_of(codec)
    assert len(frames) > 4
    for at in {2, len(frames) // 2, len(frames) - 3}:
        is_named = codec.framing == "aws-event-stream"
        for changed in islice(changes_of(frames[at]), 0, None, step):
            if not isinstance(changed, dict) or (is_named and len(changed) != 1):
                continue
            stream = [*frames[:at], changed, *frames[at + 1 :]]
            fast = decode(codec, [as_bytes(codec, frame) for frame in stream])
            assert fast == decode(codec, copy.deepcopy(stream)), changed


@of_every_stream
def test_a_stream_that_is_cut_anywhere_is_read_on_the_fast_path_as_on_the_general_one(codec: Protocol):
    frames = frames_of(codec)
    for size in range(len(frames)):
        fast = decode(codec, [as_bytes(codec, frame) for frame in frames[:size]])
        assert fast == decode(codec, copy.deepcopy(frames[:size])), size


@of_every_stream
def test_deltas_on_the_fast_path_of_an_encoder_are_written_as_the_first_one(codec: Protocol):
    """A first delta takes the general path; the same one later gives the same frame."""
    begin: list[Event] = [StartEvent(id="r1", model="m1"), TextStart(index=0)]
    ahead = segue.stream_encoder(protocol=codec.name, model=codec.example)
    for event in begin:
        ahead.feed(event)
    ahead.feed(TextDelta(index=0, delta="first "))
    later = [frame for text in ("one ", "two ") for frame in ahead.feed(TextDelta(index=0, delta=text))]
    for frame, text in zip(later, ("one ", "two "), strict=True):
        fresh = segue.stream_encoder(protocol=codec.name, model=codec.example)
        for event in begin:
            fresh.feed(event)
        (first,) = fresh.feed(TextDelta(index=0, delta=text))
        assert without_number(frame) == without_number(first)


def without_number(frame: Any) -> Any:
    return {key: value for key, value in frame.items() if key != "sequence_number"}


@of_every_stream
@pytest.mark.parametrize("end", ["done", "fail", "finish"])
def test_open_parts_write_nothing_after_the_end(codec: Protocol, end: str):
    encoder = segue.stream_encoder(protocol=codec.name, model=codec.example)
    deltas = [TextDelta(index=0, delta=text) for text in ("a", "b", "c")]
    for event in (StartEvent(id="r1"), TextStart(index=0), *deltas, ToolCallStart(index=1, id="c", name="f")):
        encoder.feed(event)
    if end == "done":
        message = reply(codec)
        encoder.feed(DoneEvent(reason=message.stop_reason, message=message))
    elif end == "fail":
        encoder.fail("broken")
    else:
        encoder.finish()
    assert [encoder.feed(event) for event in (*deltas, ToolCallDelta(index=1, delta="{}"))] == [[], [], [], []]


@of_every_stream
def test_a_decoder_gives_nothing_after_the_end_while_a_part_is_open(codec: Protocol):
    frames = [as_bytes(codec, frame) for frame in frames_of(codec)]
    decoder = codec.stream_decoder(resolve_endpoint(codec.example), {})
    for frame in frames[: len(frames) // 2]:
        decoder.feed(frame)
    decoder.abort()
    assert [decoder.feed(frame) for frame in frames] == [[]] * len(frames)


@of_every_stream
def test_a_projector_gives_nothing_after_the_end_while_a_part_is_open(codec: Protocol):
    projector = segue.ReplyProjector(protocol=codec.name, model=codec.example)
    for event in (StartEvent(), TextStart(index=0), TextDelta(index=0, delta="a")):
        projector.feed(event)
    projector.finish()
    assert projector.feed(TextDelta(index=0, delta="b")) == []
