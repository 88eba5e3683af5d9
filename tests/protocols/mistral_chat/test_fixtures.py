"""Whole exchanges written for these tests: a request, a reply, the same reply streamed, and what is made of it."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from protocols.mistral_chat.endpoints import MEDIUM
from protocols.mistral_chat.referee import judge
from segue.conversation.messages import AssistantMessage
from segue.framing.sse import SseDecoder
from segue.protocols.detection import detect_protocol
from segue.protocols.mistral_chat.codec import CODEC

FOLDER = Path(__file__).parents[1] / "fixtures" / "mistral-chat"
CASES = sorted(path.name for path in FOLDER.iterdir())


def part(case: str, name: str):
    return json.loads((FOLDER / case / f"{name}.json").read_text("utf-8"))


def expected(case: str) -> AssistantMessage:
    return msgspec.convert(part(case, "expected"), AssistantMessage)


def sse(case: str) -> bytes:
    lines = [f"data: {json.dumps(frame)}\n\n" for frame in part(case, "stream")]
    return "".join([*lines, "data: [DONE]\n\n"]).encode()


def decoded(frames) -> tuple[list, AssistantMessage]:
    decoder = CODEC.stream_decoder(MEDIUM, {})
    events = [event for frame in frames for event in decoder.feed(frame)]
    return events + decoder.finish(), decoder.message


@pytest.mark.parametrize("case", CASES)
def test_a_request_comes_out_as_it_was(case):
    body = part(case, "request")
    assert CODEC.encode_request(CODEC.decode_request(body, MEDIUM), MEDIUM) == body


@pytest.mark.parametrize("case", CASES)
def test_a_request_is_one_that_the_provider_knows(case):
    body = part(case, "request")
    judge().validate_python(body)
    assert CODEC.check(body, MEDIUM) == []


@pytest.mark.parametrize("case", CASES)
def test_a_request_is_recognised(case):
    assert detect_protocol(part(case, "request")) == CODEC.name


@pytest.mark.parametrize("case", CASES)
def test_a_reply_is_read_and_written_back(case):
    message = CODEC.decode_response(part(case, "response"), MEDIUM, {})
    assert message == expected(case)
    assert CODEC.encode_response(message, MEDIUM) == part(case, "response")


@pytest.mark.parametrize("case", CASES)
def test_a_folded_stream_equals_the_whole_reply(case):
    events, message = decoded(part(case, "stream"))
    assert message == expected(case)
    assert [event.type for event in events].count("done") + [event.type for event in events].count("error") == 1
    assert events[-1].message == message


@pytest.mark.parametrize("case", CASES)
def test_any_cut_of_the_bytes_gives_the_same_events(case):
    events, _ = decoded(part(case, "stream"))
    stream = sse(case)
    for size in (1, 7, 64, len(stream)):
        splitter = SseDecoder()
        frames = [event.data for at in range(0, len(stream), size) for event in splitter.feed(stream[at : at + size])]
        assert decoded(frames + [event.data for event in splitter.finish()])[0] == events


def test_names_that_were_changed_on_the_way_out_are_mapped_back_and_kept():
    case, names = "parallel-calls", {"weather": "mcp.weather"}
    whole = CODEC.decode_response(part(case, "response"), MEDIUM, names)
    decoder = CODEC.stream_decoder(MEDIUM, names)
    for frame in part(case, "stream"):
        decoder.feed(frame)
    decoder.finish()
    assert decoder.message == whole
    assert whole.tool_calls()[0].name == "mcp.weather"
    assert CODEC.encode_response(decoder.message, MEDIUM) == part(case, "response")
