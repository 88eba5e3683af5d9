"""Exchanges with flaws in them: whatever JSON comes, it is judged, read and written, or refused with its place."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_testing import scaled_examples
from protocols.any_bodies import ODD_VALUES, as_standard, assert_stream_ends_once
from protocols.bedrock_converse import endpoints as bedrock
from protocols.cohere_chat import endpoints as cohere
from protocols.exchanges import BEDROCK, COHERE, GOOGLE, MISTRAL, Exchanges
from protocols.google_genai import endpoints as google
from protocols.mistral_chat import endpoints as mistral
from segue.errors import DecodeError
from segue.protocols.kit.codec import Endpoint

WHOM: dict[Exchanges, tuple[Endpoint, ...]] = {
    BEDROCK: (bedrock.SONNET, bedrock.OPUS, bedrock.NOVA_2, bedrock.KIMI, bedrock.OSS, bedrock.ANYONE),
    COHERE: (cohere.PLAIN, cohere.REASONING, cohere.endpoint_of("m", "somebody")),
    GOOGLE: (google.OLDER, google.NEWER, google.VERTEX, google.endpoint_of("m", "somebody")),
    MISTRAL: (mistral.LARGE, mistral.MEDIUM, mistral.endpoint_of("m", "somebody", rules={"last_assistant": True})),
}
ODD = [*ODD_VALUES, "null", [None]]
KEYS = ("odd", "name", "index", "type", "content", "tool_plan", "prefix")

of_every_wire = pytest.mark.parametrize("wire", WHOM, ids=[wire.codec.name for wire in WHOM])


def places(value: Any, path: tuple = ()):
    """Give every place in a body."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def flawed(body: Any, dice: Random) -> Any:
    """Drop a key, put something odd in its place, or add one, in up to four places."""
    body = copy.deepcopy(body)
    for _ in range(dice.randint(1, 4)):
        found = list(places(body))
        if not found:
            break
        *way, last = dice.choice(found)
        node = body
        for step in way:
            node = node[step]
        match dice.randint(0, 3):
            case 0:
                del node[last]
            case 1 | 2:
                node[last] = copy.deepcopy(dice.choice(ODD))
            case _ if isinstance(node, dict):
                node[dice.choice(KEYS)] = copy.deepcopy(dice.choice(ODD))
    return body


@st.composite
def flawed_parts(draw, wire: Exchanges, part: str) -> tuple[Any, Endpoint]:
    """A part of an exchange with flaws, and whom it is spoken with."""
    case = draw(st.sampled_from([name for name in wire.having(part) if name in wire.having("stream")]))
    return flawed(wire.part(case, part), Random(draw(st.integers(0, 2**32)))), draw(st.sampled_from(WHOM[wire]))


def read(decode, *given) -> tuple[Any, tuple]:
    """Give what was read, else the place of what was refused."""
    try:
        return decode(*given), ()
    except DecodeError as error:
        return None, error.path


@of_every_wire
@scaled_examples(6)
@given(data=st.data())
def test_a_flawed_request_comes_out_as_it_was_or_is_refused_with_its_place(wire: Exchanges, data):
    body, endpoint = data.draw(flawed_parts(wire, "request"))
    for violation in wire.codec.check(body, endpoint):
        assert violation.message
    prompt, refused_at = read(wire.codec.decode_request, body, endpoint)
    assert refused_at or as_standard(wire.codec.encode_request(prompt, endpoint)) == as_standard(body)


@of_every_wire
@scaled_examples(6)
@given(data=st.data())
def test_a_flawed_reply_comes_out_as_it_was_or_is_refused_with_its_place(wire: Exchanges, data):
    body, endpoint = data.draw(flawed_parts(wire, "response"))
    message, refused_at = read(wire.codec.decode_response, body, endpoint, {})
    assert refused_at or wire.codec.encode_response(message, endpoint) == body


@of_every_wire
@scaled_examples(4)
@given(data=st.data())
def test_a_flawed_stream_ends_once_and_can_be_written(wire: Exchanges, data):
    frames, endpoint = data.draw(flawed_parts(wire, "stream"))
    message = assert_stream_ends_once(wire.codec, [frame for frame in frames if isinstance(frame, dict)], endpoint)
    assert wire.codec.encode_response(message, endpoint)
