"""Whole exchanges written for these tests: a request, a reply, the same reply streamed, and what is made of it."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from framing.aws_messages import stream_of
from protocols.bedrock_converse.endpoints import ANYONE, KIMI, LLAMA, NOVA, NOVA_2, OPUS, OSS, SONNET
from protocols.bedrock_converse.referee import complaints
from segue.conversation.messages import AssistantMessage
from segue.framing.aws_event_stream import AwsEventStreamDecoder
from segue.protocols.bedrock_converse.codec import CODEC

FOLDER = Path(__file__).parents[1] / "fixtures" / "bedrock-converse"
CASES = sorted(path.name for path in FOLDER.iterdir())
REQUESTS = [name for name in CASES if (FOLDER / name / "request.json").exists()]


def part(case: str, name: str):
    return json.loads((FOLDER / case / f"{name}.json").read_text("utf-8"))


def expected(case: str) -> AssistantMessage:
    return msgspec.convert(part(case, "expected"), AssistantMessage)


def decoded(frames) -> tuple[list, AssistantMessage]:
    decoder = CODEC.stream_decoder(SONNET, {})
    events = [event for frame in frames for event in decoder.feed(frame)]
    return events + decoder.finish(), decoder.message


@pytest.mark.parametrize("endpoint", [SONNET, OPUS, NOVA, NOVA_2, LLAMA, KIMI, OSS, ANYONE], ids=lambda e: e.model.id)
@pytest.mark.parametrize("case", REQUESTS)
def test_a_request_comes_out_as_it_was_whoever_it_was_for(case, endpoint):
    body = part(case, "request")
    assert CODEC.encode_request(CODEC.decode_request(body, endpoint), endpoint) == body


@pytest.mark.parametrize("case", REQUESTS)
def test_the_referee_accepts_what_we_wrote_for_tests(case):
    assert complaints(part(case, "request"), SONNET) == []


@pytest.mark.parametrize("case", CASES)
def test_a_reply_is_read_and_written_back(case):
    message = CODEC.decode_response(part(case, "response"), SONNET, {})
    assert message == expected(case)
    assert CODEC.encode_response(message, SONNET) == part(case, "response")


@pytest.mark.parametrize("case", CASES)
def test_a_folded_stream_equals_the_whole_reply(case):
    events, message = decoded(part(case, "stream"))
    assert message == expected(case)
    assert [event.type for event in events].count("done") + [event.type for event in events].count("error") == 1
    assert events[-1].message == message


@pytest.mark.parametrize("case", CASES)
def test_any_cut_of_the_bytes_gives_the_same_events(case):
    events, _ = decoded(part(case, "stream"))
    stream = stream_of(part(case, "stream"))
    for size in (1, 7, 64, len(stream)):
        splitter = AwsEventStreamDecoder()
        frames = [event.data for at in range(0, len(stream), size) for event in splitter.feed(stream[at : at + size])]
        assert decoded(frames + [event.data for event in splitter.finish()])[0] == events


@pytest.mark.parametrize("case", CASES)
def test_a_reply_replayed_in_a_request_is_what_the_service_describes(case):
    message = CODEC.decode_response(part(case, "response"), SONNET, {})
    prompt = CODEC.decode_request([{"role": "user", "content": [{"text": "hi"}]}], SONNET)
    grown = msgspec.structs.replace(prompt, context=prompt.context.add(message))
    assert complaints(CODEC.encode_request(grown, SONNET), SONNET) == []
