"""One folder a case: a request, its reply whole and streamed, and what all of them mean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from protocols.openai_chat.endpoints import endpoint, fold
from segue.protocols.openai_chat.protocol import PROTOCOL as CODEC

FOLDER = Path(__file__).parents[1] / "fixtures" / "openai-chat"
CASES = sorted(path.name for path in FOLDER.iterdir())


def load(case: str, name: str) -> Any:
    return json.loads((FOLDER / case / f"{name}.json").read_text("utf-8"))


def plain(value: object) -> Any:
    return json.loads(msgspec.json.encode(value))


def place(case: str):
    expected = load(case, "expected")
    return endpoint(expected["provider"], expected["model"], reasoning=True)


@pytest.mark.parametrize("case", CASES)
def test_a_request_means_what_it_should_and_comes_out_as_it_was(case):
    body, at = load(case, "request"), place(case)
    prompt = CODEC.decode_request(body, at)
    assert plain(prompt) == load(case, "expected")["prompt"]
    assert CODEC.encode_request(prompt, at) == body
    assert CODEC.check(body, at) == []


@pytest.mark.parametrize("case", CASES)
def test_a_reply_means_what_it_should_and_comes_out_as_it_was(case):
    body, at = load(case, "response"), place(case)
    message = CODEC.decode_response(body, at, {})
    assert plain(replace(message, extra=None)) == load(case, "expected")["message"]
    assert CODEC.encode_response(message, at) == body


@pytest.mark.parametrize("case", CASES)
def test_a_stream_gives_the_same_message_as_the_reply(case):
    at = place(case)
    _, decoder = fold(*load(case, "stream"), "[DONE]", at=at)
    assert plain(replace(decoder.message, extra=None)) == load(case, "expected")["message"]


@pytest.mark.parametrize("case", CASES)
def test_a_streamed_reply_can_be_written_and_read_again(case):
    at = place(case)
    _, decoder = fold(*load(case, "stream"), "[DONE]", at=at)
    again = CODEC.decode_response(CODEC.encode_response(decoder.message, at), at, {})
    assert replace(again, extra=None) == replace(decoder.message, extra=None)
