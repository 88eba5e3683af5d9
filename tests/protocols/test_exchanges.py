"""Tests that hold for every exchange of `fixtures`, in any protocol."""

from __future__ import annotations

import pytest

from protocols.exchanges import COHERE, MISTRAL, PLAIN_TEXT, WIRES, Exchanges, split
from segue.protocols.detection import detect_protocol

DETECTABLE = tuple(wire for wire in WIRES if wire is not PLAIN_TEXT)  # plain-text bodies are detected as openai-chat


def cases(part: str, *, of: tuple[Exchanges, ...] = WIRES, calls: bool = False):
    """Parametrize a test with the cases that have this part; with `calls`, only those with tool calls."""
    found = [(wire, case) for wire in of for case in wire.having(part)]
    found = [(wire, case) for wire, case in found if not calls or wire.expected(case).tool_calls()]
    ids = [f"{wire.codec.name}: {case}" for wire, case in found]
    return pytest.mark.parametrize(("wire", "case"), found, ids=ids)


@cases("request")
def test_a_request_is_written_back_unchanged(wire: Exchanges, case):
    body, codec = wire.part(case, "request"), wire.codec
    assert codec.encode_request(codec.decode_request(body, wire.endpoint), wire.endpoint) == body


@cases("request", of=DETECTABLE)
def test_a_request_is_recognised(wire: Exchanges, case):
    assert detect_protocol(wire.part(case, "request")) == wire.codec.name


@cases("response")
def test_a_reply_is_read_and_written_back(wire: Exchanges, case):
    message = wire.codec.decode_response(wire.part(case, "response"), wire.endpoint, {})
    assert message == wire.expected(case)
    assert wire.codec.encode_response(message, wire.endpoint) == wire.part(case, "response")


@cases("stream")
def test_a_folded_stream_equals_the_whole_reply(wire: Exchanges, case):
    events, message = wire.decoded(wire.part(case, "stream"))
    assert message == wire.expected(case)
    kinds = [event.type for event in events]
    assert kinds[0] == "start"
    assert [kind for kind in kinds if kind in ("done", "error")] == [kinds[-1]]
    assert events[-1].message == message


@cases("stream")
def test_any_split_of_the_bytes_gives_the_same_events(wire: Exchanges, case):
    events, _ = wire.decoded(wire.part(case, "stream"))
    stream = wire.stream(case)
    for size in (1, 7, 64, len(stream)):
        assert wire.decoded(split(wire.codec.framing, stream, size))[0] == events


@cases("stream", calls=True)
def test_changed_tool_names_are_mapped_back(wire: Exchanges, case):
    calls = wire.expected(case).tool_calls()
    names = {call.name: f"mcp.{call.name}" for call in calls}
    whole = wire.codec.decode_response(wire.part(case, "response"), wire.endpoint, names)
    _, message = wire.decoded(wire.part(case, "stream"), names)
    assert message == whole
    assert [call.name for call in whole.tool_calls()] == [names[call.name] for call in calls]


@cases("stream", of=(COHERE, MISTRAL), calls=True)
def test_a_reply_with_mapped_names_is_written_back_unchanged(wire: Exchanges, case):
    names = {call.name: f"mcp.{call.name}" for call in wire.expected(case).tool_calls()}
    _, message = wire.decoded(wire.part(case, "stream"), names)
    assert wire.codec.encode_response(message, wire.endpoint) == wire.part(case, "response")
