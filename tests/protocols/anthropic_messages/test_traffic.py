"""Recorded exchanges: what was sent and answered comes out as it was."""

from __future__ import annotations

import pytest

from protocols import traffic
from protocols.anthropic_messages.endpoints import endpoint_of
from segue.framing.sse import SseDecoder
from segue.protocols.anthropic_messages.protocol import PROTOCOL as CODEC
from segue.protocols.kit.codec import Endpoint

ROWS = traffic.of_protocol("anthropic-messages")
pytestmark = [pytest.mark.traffic, pytest.mark.skipif(not ROWS, reason="the recordings are not at hand")]
FILES = [row["file"] for row in ROWS]
BY_FILE = {row["file"]: row for row in ROWS}


def exchange(file) -> tuple[dict, Endpoint]:
    return traffic.read(file), endpoint_of(BY_FILE[file]["model"], BY_FILE[file]["provider"])


@pytest.mark.parametrize("file", FILES)
def test_a_recorded_request_comes_out_as_it_was(file):
    recorded, endpoint = exchange(file)
    body = recorded["request"]
    if body is None:
        pytest.skip("no request was recorded")
    assert CODEC.encode_request(CODEC.decode_request(body, endpoint), endpoint) == body


@pytest.mark.parametrize("file", FILES)
def test_check_agrees_with_the_provider(file):
    recorded, endpoint = exchange(file)
    if recorded["request"] is None or recorded["fidelity"] != "recorded":
        pytest.skip("no request was recorded")
    found = CODEC.check(recorded["request"], endpoint)
    if recorded["status"] == 200:
        assert found == []
    elif "effort level" in str(recorded["response"]):
        assert [violation.code for violation in found] == ["effort"]


@pytest.mark.parametrize("file", FILES)
def test_a_recorded_reply_comes_out_as_it_was(file):
    recorded, endpoint = exchange(file)
    body = recorded.get("response")
    if not isinstance(body, dict):
        pytest.skip("no whole reply was recorded")
    if recorded["status"] != 200:
        assert CODEC.decode_error(body, recorded["status"]).message == body["error"]["message"]
        return
    assert CODEC.encode_response(CODEC.decode_response(body, endpoint, {}), endpoint) == body


@pytest.mark.parametrize("file", FILES)
def test_a_recorded_stream_is_read_the_same_whole_and_in_pieces(file):
    recorded, endpoint = exchange(file)
    if not recorded.get("stream"):
        pytest.skip("no stream was recorded")

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
