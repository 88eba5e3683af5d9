"""Exchanges written for these tests, checked by an independent validator; `test_exchanges` tests every protocol."""

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
