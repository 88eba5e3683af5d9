"""Whole exchanges written for these tests, in what is Google's own: what holds for every wire is tested elsewhere."""

from __future__ import annotations

import json

import pytest

from protocols.exchanges import GOOGLE
from protocols.google_genai.endpoints import NEWER
from segue.framing.json_array import JsonArrayDecoder
from segue.protocols.google_genai.protocol import PROTOCOL as CODEC


@pytest.mark.parametrize("case", GOOGLE.having("request"))
def test_nothing_is_known_against_it(case):
    assert CODEC.check(GOOGLE.part(case, "request"), NEWER) == []


@pytest.mark.parametrize("case", GOOGLE.having("stream"))
def test_a_stream_as_an_array_gives_the_same_events(case):
    frames = GOOGLE.part(case, "stream")
    events, _ = GOOGLE.decoded(frames)
    stream = ("[" + ",\r\n".join(json.dumps(frame, indent=2) for frame in frames) + "\n]").encode()
    for size in (1, 7, 64, len(stream)):
        splitter = JsonArrayDecoder()
        found = [frame for at in range(0, len(stream), size) for frame in splitter.feed(stream[at : at + size])]
        assert GOOGLE.decoded(found + splitter.finish())[0] == events
