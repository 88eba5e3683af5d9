"""Exchanges written for these tests, validated by the service model; the laws of all protocols are tested elsewhere."""

from __future__ import annotations

import msgspec
import pytest

from protocols.bedrock_converse.endpoints import ANYONE, KIMI, LLAMA, NOVA, NOVA_2, OPUS, OSS, SONNET
from protocols.bedrock_converse.referee import complaints
from protocols.exchanges import BEDROCK
from segue.protocols.bedrock_converse.protocol import PROTOCOL as CODEC


@pytest.mark.parametrize("endpoint", [SONNET, OPUS, NOVA, NOVA_2, LLAMA, KIMI, OSS, ANYONE], ids=lambda e: e.model.id)
@pytest.mark.parametrize("case", BEDROCK.having("request"))
def test_a_request_is_written_back_unchanged_for_every_model(case, endpoint):
    body = BEDROCK.part(case, "request")
    assert CODEC.encode_request(CODEC.decode_request(body, endpoint), endpoint) == body


@pytest.mark.parametrize("case", BEDROCK.having("request"))
def test_the_referee_accepts_what_we_wrote_for_tests(case):
    assert complaints(BEDROCK.part(case, "request"), SONNET) == []


@pytest.mark.parametrize("case", BEDROCK.names)
def test_a_reply_replayed_in_a_request_is_what_the_service_describes(case):
    message = CODEC.decode_response(BEDROCK.part(case, "response"), SONNET, {})
    prompt = CODEC.decode_request([{"role": "user", "content": [{"text": "hi"}]}], SONNET)
    grown = msgspec.structs.replace(prompt, context=prompt.context.add(message))
    assert complaints(CODEC.encode_request(grown, SONNET), SONNET) == []
