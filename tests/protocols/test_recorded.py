"""Recorded exchanges of every wire: what was read comes out as it was, streams fold, and what was accepted passes."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from protocols import traffic
from protocols.every_protocol import all_codecs
from segue.framing.aws_event_stream import AwsEventStreamDecoder
from segue.framing.sse import SseDecoder
from segue.models.model import Model
from segue.protocols.api import resolve_endpoint
from segue.protocols.detection import detect_protocol

CODECS = {codec.name: codec for codec in all_codecs()}
ROWS: list[Any] = [row for row in traffic.exchanges() if row["protocol"] in CODECS]

SPLITTERS: dict[str, Any] = {"sse": SseDecoder, "aws-event-stream": AwsEventStreamDecoder}

pytestmark = pytest.mark.traffic


def endpoint_of(row: Any) -> Any:
    return resolve_endpoint(Model(row["model"] or "", row["provider"], row["protocol"]))


def bytes_of(exchange: Any) -> bytes | None:
    """Give a stream as it came over the wire, where that was kept."""
    if "stream_raw_b64" in exchange:
        return base64.b64decode(exchange["stream_raw_b64"])
    raw = exchange.get("stream_raw")
    return raw.encode() if isinstance(raw, str) else None


def has_whole_reply(row: Any, exchange: Any) -> bool:
    body = exchange.get("response")
    return row["status"] == 200 and isinstance(body, dict) and "_raw" not in body


def has_stream(row: Any, exchange: Any) -> bool:
    return row["status"] == 200 and isinstance(exchange.get("stream"), list)


@traffic.each_exchange(ROWS, traffic.has_json_request)
def test_a_recorded_request_comes_out_as_it_was(row):
    body = traffic.read(row["file"])["request"]
    codec, endpoint = CODECS[row["protocol"]], endpoint_of(row)
    assert codec.encode_request(codec.decode_request(body, endpoint), endpoint) == body


@traffic.each_exchange(ROWS, has_whole_reply)
def test_a_recorded_reply_comes_out_as_it_was(row):
    body = traffic.read(row["file"])["response"]
    codec, endpoint = CODECS[row["protocol"]], endpoint_of(row)
    assert codec.encode_response(codec.decode_response(body, endpoint, {}), endpoint) == body


@traffic.each_exchange(ROWS, traffic.was_accepted)
def test_what_the_provider_accepted_passes_the_check(row):
    body = traffic.read(row["file"])["request"]
    assert CODECS[row["protocol"]].check(body, endpoint_of(row)) == []


@traffic.each_exchange(ROWS, has_stream)
def test_a_recorded_stream_gives_the_same_message_however_it_is_cut(row):
    exchange = traffic.read(row["file"])
    frames, data = exchange["stream"], bytes_of(exchange)
    codec, endpoint = CODECS[row["protocol"]], endpoint_of(row)
    whole = codec.stream_decoder(endpoint, {})
    events = [event for frame in frames for event in whole.feed(frame)] + whole.finish()
    kinds = [event.type for event in events]
    assert kinds[0] == "start"
    assert sum(kind in ("done", "error") for kind in kinds) == 1
    assert kinds[-1] in ("done", "error")
    if codec.framing in SPLITTERS and data is not None:
        cut, splitter = codec.stream_decoder(endpoint, {}), SPLITTERS[codec.framing]()
        pieces = [data[start : start + 7] for start in range(0, len(data), 7)]
        cut_events = [event for piece in pieces for item in splitter.feed(piece) for event in cut.feed(item.data)]
        cut_events += [event for item in splitter.finish() for event in cut.feed(item.data)] + cut.finish()
        assert cut_events == events


@traffic.each_exchange(ROWS, traffic.has_json_request)
def test_the_wire_of_a_recorded_request_is_recognised(row):
    body = traffic.read(row["file"])["request"]
    assert detect_protocol(body) == row["protocol"]
    assert json.dumps(body)
