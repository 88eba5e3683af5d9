"""Whole exchanges written for these tests, in the eyes of a judge: what holds for every wire is tested elsewhere."""

from __future__ import annotations

import pytest

from protocols.exchanges import OLLAMA
from protocols.ollama_chat.endpoints import QWEN
from protocols.ollama_chat.referee import complaints
from segue.protocols.ollama_chat.protocol import PROTOCOL as CODEC


@pytest.mark.parametrize("case", OLLAMA.having("request"))
def test_a_request_passes_the_check_and_the_clients_types(case):
    body = OLLAMA.part(case, "request")
    assert CODEC.check(body, QWEN) == []
    assert complaints(body) == []
