"""Frames are written as bytes that the decoders of the same framing, and botocore, read back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.eventstream import EventStreamBuffer

from segue.errors import EncodeError
from segue.framing import (
    AwsEventStreamDecoder,
    AwsEventStreamEncoder,
    JsonArrayDecoder,
    JsonArrayEncoder,
    NdjsonDecoder,
    NdjsonEncoder,
    SseDecoder,
    SseEncoder,
    frame_encoder,
)

FRAMES: list[dict[str, Any]] = [{"type": "a", "text": "naïve 🚀\n\r"}, {"b": [1, {"c": None}]}, {"half": "\ud83d"}]


def test_an_sse_event_has_the_type_of_its_frame_as_its_name():
    encoder, decoder = SseEncoder(), SseDecoder()
    data = b"".join(map(encoder.feed, FRAMES)) + encoder.feed("[DONE]") + encoder.finish()
    events = [event for size in range(len(data)) for event in decoder.feed(data[size : size + 1])] + decoder.finish()
    assert [json.loads(event.data) for event in events[:-1]] == FRAMES
    assert [event.event for event in events] == ["a", "", "", ""]
    assert events[-1].data == b"[DONE]"
    assert SseEncoder().feed({"type": "a\ndata: x"}).startswith(b"data: "), "a name with a line break is not written"


def test_ndjson_is_one_line_for_each_frame():
    encoder, decoder = NdjsonEncoder(), NdjsonDecoder()
    data = b"".join(map(encoder.feed, FRAMES)) + encoder.finish()
    assert data.count(b"\n") == len(FRAMES)
    assert [json.loads(line) for line in (*decoder.feed(data), *decoder.finish())] == FRAMES


def test_a_json_array_is_valid_as_a_whole_and_element_by_element():
    encoder, decoder = JsonArrayEncoder(), JsonArrayDecoder()
    data = b"".join(map(encoder.feed, FRAMES)) + encoder.finish()
    assert json.loads(data) == FRAMES
    assert [json.loads(element) for element in (*decoder.feed(data), *decoder.finish())] == FRAMES
    assert JsonArrayEncoder().finish() == b"[]"


def test_aws_messages_have_checksums_that_botocore_accepts():
    frames: list[dict[str, Any]] = [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "naïve 🚀"}}},
        {"throttlingException": {"message": "slow"}},
    ]
    encoder, decoder, buffer = AwsEventStreamEncoder(), AwsEventStreamDecoder(), EventStreamBuffer()
    data = b"".join(map(encoder.feed, frames)) + encoder.finish()
    buffer.add_data(data)
    received = [event.to_response_dict() for event in buffer]
    assert [json.loads(event["body"]) for event in received] == [next(iter(frame.values())) for frame in frames]
    assert received[0]["headers"][":event-type"] == "messageStart"
    assert received[2]["headers"][":exception-type"] == "throttlingException"
    events = [*decoder.feed(data), *decoder.finish()]
    assert [(event.event, json.loads(event.payload)) for event in events] == [
        next(iter(frame.items())) for frame in frames
    ]


@pytest.mark.parametrize("frame", ["[DONE]", {}, {"a": 1, "b": 2}])
def test_an_aws_frame_has_one_key(frame):
    with pytest.raises(EncodeError):
        AwsEventStreamEncoder().feed(frame)


def test_the_encoder_of_a_framing_is_found_by_its_name():
    assert isinstance(frame_encoder("sse"), SseEncoder)
    assert isinstance(frame_encoder("json-array"), JsonArrayEncoder)
    with pytest.raises(EncodeError, match="no framing"):
        frame_encoder("xml")
