"""Whole exchanges written for these tests: a request, a reply, the same reply streamed, and what is made of it."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from protocols.google_genai.endpoints import NEWER
from segue.conversation.messages import AssistantMessage
from segue.framing.json_array import JsonArrayDecoder
from segue.framing.sse import SseDecoder
from segue.protocols.google_genai.codec import CODEC

FOLDER = Path(__file__).parents[1] / "fixtures" / "google-genai"
CASES = sorted(path.name for path in FOLDER.iterdir())
REQUESTS = [name for name in CASES if (FOLDER / name / "request.json").exists()]
STREAMS = [name for name in CASES if (FOLDER / name / "stream.json").exists()]


def part(case: str, name: str):
    return json.loads((FOLDER / case / f"{name}.json").read_text("utf-8"))


def expected(case: str) -> AssistantMessage:
    return msgspec.convert(part(case, "expected"), AssistantMessage)


def sse(case: str) -> bytes:
    return "".join(f"data: {json.dumps(frame)}\r\n\r\n" for frame in part(case, "stream")).encode()


def array(case: str) -> bytes:
    return ("[" + ",\r\n".join(json.dumps(frame, indent=2) for frame in part(case, "stream")) + "\n]").encode()


def decoded(frames) -> tuple[list, AssistantMessage]:
    decoder = CODEC.stream_decoder(NEWER, {})
    events = [event for frame in frames for event in decoder.feed(frame)]
    return events + decoder.finish(), decoder.message


@pytest.mark.parametrize("case", REQUESTS)
def test_a_request_comes_out_as_it_was(case):
    body = part(case, "request")
    assert CODEC.encode_request(CODEC.decode_request(body, NEWER), NEWER) == body


@pytest.mark.parametrize("case", REQUESTS)
def test_nothing_is_known_against_it(case):
    assert CODEC.check(part(case, "request"), NEWER) == []


@pytest.mark.parametrize("case", STREAMS)
def test_a_reply_is_read_and_written_back(case):
    message = CODEC.decode_response(part(case, "response"), NEWER, {})
    assert message == expected(case)
    assert CODEC.encode_response(message, NEWER) == part(case, "response")


@pytest.mark.parametrize("case", STREAMS)
def test_a_folded_stream_equals_the_whole_reply(case):
    events, message = decoded(part(case, "stream"))
    assert message == expected(case)
    assert [event.type in ("done", "error") for event in events].count(True) == 1
    assert events[-1].message == message


@pytest.mark.parametrize("case", STREAMS)
def test_any_cut_of_the_bytes_gives_the_same_events(case):
    events, _ = decoded(part(case, "stream"))
    stream = sse(case)
    for size in (1, 7, 64, len(stream)):
        splitter = SseDecoder()
        frames = [event.data for at in range(0, len(stream), size) for event in splitter.feed(stream[at : at + size])]
        assert decoded(frames + [event.data for event in splitter.finish()])[0] == events


@pytest.mark.parametrize("case", STREAMS)
def test_a_stream_as_an_array_gives_the_same_events(case):
    events, _ = decoded(part(case, "stream"))
    stream = array(case)
    for size in (1, 7, 64, len(stream)):
        splitter = JsonArrayDecoder()
        frames = [frame for at in range(0, len(stream), size) for frame in splitter.feed(stream[at : at + size])]
        assert decoded(frames + splitter.finish())[0] == events
