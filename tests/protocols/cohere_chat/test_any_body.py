"""Bodies put together at random: whatever JSON comes, it is judged, read and written, or refused by name."""

from __future__ import annotations

import copy
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.cohere_chat.endpoints import PLAIN, REASONING, endpoint_of
from protocols.cohere_chat.test_fixtures import CASES, part
from segue.errors import DecodeError
from segue.protocols.cohere_chat.codec import CODEC

ENDPOINTS = (PLAIN, REASONING, endpoint_of("m", "somebody"))
ODD = [None, 0, -1, 1.5, True, "word", "", "null", [], {}, ["x"], [{}], {"type": []}, {"a": None}]


def places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def mutated(body, seed: int):
    """Drop a key, make it odd, or add one, in up to four places."""
    dice = Random(seed)
    body = copy.deepcopy(body)
    for _ in range(dice.randint(1, 4)):
        *way, last = dice.choice([path for path in places(body) if path])
        node = body
        for step in way:
            node = node[step]
        match dice.randint(0, 3):
            case 0:
                del node[last]
            case 1 | 2:
                node[last] = copy.deepcopy(dice.choice(ODD))
            case _ if isinstance(node, dict):
                node[dice.choice(("odd", "name", "index", "type", "content", "tool_plan"))] = copy.deepcopy(
                    dice.choice(ODD)
                )
        if not body:
            break
    return body


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=150)
@given(seed=st.integers(0, 2**32), endpoint=st.sampled_from(ENDPOINTS))
def test_any_request_that_can_be_read_comes_out_as_it_was(case, seed, endpoint):
    body = mutated(part(case, "request"), seed)
    for violation in CODEC.check(body, endpoint):
        assert violation.message
    with suppress(DecodeError):
        assert CODEC.encode_request(CODEC.decode_request(body, endpoint), endpoint) == body


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=150)
@given(seed=st.integers(0, 2**32))
def test_any_reply_that_can_be_read_comes_out_as_it_was(case, seed):
    body = mutated(part(case, "response"), seed)
    with suppress(DecodeError):
        assert CODEC.encode_response(CODEC.decode_response(body, PLAIN, {}), PLAIN) == body


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=100)
@given(seed=st.integers(0, 2**32))
def test_any_stream_ends_once(case, seed):
    frames = mutated(part(case, "stream"), seed)
    decoder = CODEC.stream_decoder(PLAIN, {})
    events = [event for frame in frames if isinstance(frame, dict) for event in decoder.feed(frame)] + decoder.finish()
    kinds = [event.type for event in events]
    assert kinds.count("done") + kinds.count("error") == 1
    assert kinds[-1] in ("done", "error")
    assert kinds.count("start") == 1
    assert CODEC.encode_response(decoder.message, PLAIN)
