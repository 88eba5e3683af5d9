"""Recorded exchanges: what was sent and answered comes out as it was."""

from __future__ import annotations

import pytest

from protocols import traffic
from protocols.anthropic_messages.endpoints import endpoint_of
from segue.framing.sse import SseDecoder
from segue.protocols.anthropic_messages.protocol import PROTOCOL as CODEC
from segue.protocols.kit.codec import Endpoint

ROWS = traffic.of_protocol("anthropic-messages")
pytestmark = pytest.mark.traffic


def exchange(row) -> tuple[dict, Endpoint]:
    return traffic.read(row["file"]), endpoint_of(row["model"], row["provider"])


def has_request(_row, recorded) -> bool:
    return recorded["request"] is not None


@traffic.each_exchange(ROWS, has_request)
def test_a_recorded_request_comes_out_as_it_was(row):
    recorded, endpoint = exchange(row)
    body = recorded["request"]
    assert CODEC.encode_request(CODEC.decode_request(body, endpoint), endpoint) == body


@traffic.each_exchange(ROWS, lambda row, recorded: has_request(row, recorded) and recorded["fidelity"] == "recorded")
def test_check_agrees_with_the_provider(row):
    recorded, endpoint = exchange(row)
    found = CODEC.check(recorded["request"], endpoint)
    if recorded["status"] == 200:
        assert found == []
    elif "effort level" in str(recorded["response"]):
        assert [violation.code for violation in found] == ["effort_unsupported"]


@traffic.each_exchange(ROWS, lambda _, recorded: isinstance(recorded.get("response"), dict))
def test_a_recorded_reply_comes_out_as_it_was(row):
    recorded, endpoint = exchange(row)
    body = recorded["response"]
    if recorded["status"] != 200:
        assert CODEC.decode_error(body, recorded["status"]).message == body["error"]["message"]
        return
    assert CODEC.encode_response(CODEC.decode_response(body, endpoint, {}), endpoint) == body


@traffic.each_exchange(ROWS, lambda _, recorded: bool(recorded.get("stream")))
def test_a_recorded_stream_is_read_the_same_whole_and_in_pieces(row):
    recorded, endpoint = exchange(row)

    def decoded(frames):
        decoder = CODEC.stream_decoder(endpoint, {})
        return [event for frame in frames for event in decoder.feed(frame)] + decoder.finish()

    events = decoded(recorded["stream"])
    assert [event.type for event in events if event.type in ("done", "error")] == ["done"]
    raw = (recorded.get("stream_raw") or "").encode()
    for size in (1, 100, len(raw)) if raw else ():
        splitter = SseDecoder()
        frames = [event.data for at in range(0, len(raw), size) for event in splitter.feed(raw[at : at + size])]
        assert decoded(frames + [event.data for event in splitter.finish()]) == events
