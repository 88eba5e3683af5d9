"""Whole exchanges written for these tests: a request, a reply, the same reply streamed, and what is made of it."""

from __future__ import annotations

import pytest

from protocols.ndjson_exchanges import Exchanges
from protocols.vscode_lm.endpoints import EDITOR
from protocols.vscode_lm.referee import complaints
from segue.protocols.vscode_lm.codec import CODEC

CASES = Exchanges(CODEC, EDITOR)


@pytest.mark.parametrize("case", CASES.requests)
def test_a_request_comes_out_as_it_was(case):
    CASES.assert_request_comes_back(case)


@pytest.mark.parametrize("case", CASES.names)
def test_a_reply_is_read_and_written_back(case):
    CASES.assert_reply_is_read_and_written_back(case)


@pytest.mark.parametrize("case", CASES.names)
def test_a_folded_stream_equals_the_whole_reply(case):
    CASES.assert_folded_stream_equals_the_whole_reply(case)


@pytest.mark.parametrize("case", CASES.names)
def test_any_cut_of_the_bytes_gives_the_same_events(case):
    CASES.assert_any_cut_gives_the_same_events(case)


@pytest.mark.parametrize("case", ["text", "calls-and-results"])
def test_a_request_is_of_the_form(case):
    body = CASES.part(case, "request")
    assert CODEC.check(body, EDITOR) == []
    assert complaints({key: value for key, value in body.items() if key != "options"}) == []
