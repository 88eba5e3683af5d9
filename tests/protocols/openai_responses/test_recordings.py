"""Recorded exchanges: a folded stream equals the reply of its last event; damaged bodies are written unchanged."""

from __future__ import annotations

import copy
import random

import pytest

from protocols import traffic
from protocols.openai_responses.bodies import THINKER, cases, endpoint, fixture
from segue.errors import DecodeError
from segue.models.model import Model
from segue.protocols.api import resolve_endpoint
from segue.protocols.openai_responses.protocol import PROTOCOL as CODEC

STREAMS = [row for row in traffic.of_protocol("openai-responses") if "stream" in row["flags"] and row["status"] == 200]
TERMINAL = ("response.completed", "response.incomplete", "response.failed")


@pytest.mark.traffic
@pytest.mark.parametrize("row", STREAMS, ids=[row["file"] for row in STREAMS])
def test_a_recorded_stream_is_its_terminal_reply(row):
    target = resolve_endpoint(Model(row["model"] or "", row["provider"], "openai-responses"))
    frames = traffic.read(row["file"])["stream"]
    terminal = [frame for frame in frames if frame["type"] in TERMINAL]
    decoder = CODEC.stream_decoder(target, {})
    events = [event for frame in frames for event in decoder.feed(frame)] + decoder.finish()
    assert decoder.message == CODEC.decode_response(terminal[-1]["response"], target, {})
    assert CODEC.encode_response(decoder.message, target) == terminal[-1]["response"]
    deltas = "".join(event.delta for event in events if event.type == "text_delta")
    assert deltas == decoder.message.text()


VALUES = (None, "", [], {}, "x", 2, True, ["x"], {"type": "weird"}, [{"type": "output_text", "text": "q"}], "assistant")
KEYS = ("id", "status", "phase", "type", "stray", "namespace", "content", "annotations", "role", "summary")


def places(value, found):
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in children:
        found.append((value, key))
        places(inner, found)
    return found


def damaged(body, chance):
    body = copy.deepcopy(body)
    for _ in range(chance.randint(1, 4)):
        found = places(body, [])
        container, key = chance.choice(found)
        match chance.randrange(3):
            case 0:
                container.pop(key)
            case 1:
                container[key] = copy.deepcopy(chance.choice(VALUES))
            case _ if isinstance(container, dict):
                container[chance.choice(KEYS)] = copy.deepcopy(chance.choice(VALUES))
        if not body:
            break
    return body


@pytest.mark.parametrize("case", cases())
def test_a_damaged_body_is_written_unchanged_or_is_refused(case):
    chance = random.Random(case)
    request, response, target = fixture(case, "request"), fixture(case, "response"), endpoint(THINKER)
    for _ in range(150):
        body = damaged(request, chance)
        try:
            assert CODEC.encode_request(CODEC.decode_request(body, target), target) == body
            CODEC.check(body, target)
        except DecodeError as error:
            assert error.path  # noqa: PT017
        body = damaged(response, chance)
        try:
            assert CODEC.encode_response(CODEC.decode_response(body, target, {}), target) == body
        except DecodeError as error:
            assert error.path  # noqa: PT017
