"""The provider's own code as a strict validator: the SDK's types, and the client itself."""

from __future__ import annotations

import json

import cohere
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from pydantic import ValidationError

from projection.histories import TARGETS, make_options, own_contexts, ugly_contexts
from property_testing import scaled_examples
from protocols.cohere_chat.endpoints import REASONING
from protocols.cohere_chat.referee import complaints, validator
from protocols.every_protocol import vouched_for
from protocols.exchanges import COHERE
from segue.errors import EmptyConversation
from segue.protocols.api import resolve_endpoint
from segue.protocols.cohere_chat.protocol import PROTOCOL as CODEC
from segue.requests.prepare import prepare

WRONG = {
    "a list that is a text": {"messages": "hi"},
    "an unknown key": {"messages": [{"role": "user", "content": "x", "foo": 1}]},
    "an unknown block": {"messages": [{"role": "user", "content": [{"type": "odd", "text": "x"}]}]},
    "a number that is a text": {"max_tokens": "1"},
    "an unknown value": {"tool_choice": "perhaps"},
    "an unknown parameter": {"top_p": 1},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_the_validator_is_strict(wrong):
    with pytest.raises(ValidationError):
        validator().validate_python({"model": "m", "messages": [{"role": "user", "content": "hi"}], **wrong})


@pytest.mark.parametrize("case", COHERE.names)
def test_a_request_written_for_tests_is_one_that_the_provider_knows(case):
    body = COHERE.part(case, "request")
    validator().validate_python(body)
    assert CODEC.check(body, REASONING) == []


@scaled_examples(1.5)
@given(data=st.data())
def test_the_validator_accepts_every_request(data):
    model = data.draw(st.sampled_from(TARGETS["cohere-chat"]))
    context = data.draw(st.one_of(ugly_contexts(model), own_contexts(model)))
    options = make_options(data.draw(st.integers(0, 2**32)))
    try:
        request = prepare(vouched_for(context), model, options=options and replace(options, extra=None))
    except EmptyConversation:
        return
    assert complaints(request.body, resolve_endpoint(model)) == []


# -- the client --------------------------------------------------------------------------------------------------------


def client(reply: bytes, sent: list, kind: str) -> cohere.ClientV2:
    def handle(request: httpx.Request) -> httpx.Response:
        sent.append((request.url.path, json.loads(request.content)))
        return httpx.Response(200, headers={"content-type": kind}, content=reply)

    transport = httpx.Client(transport=httpx.MockTransport(handle))
    return cohere.ClientV2(api_key="none", httpx_client=transport, log_warning_experimental_features=False)


def arguments_of(case: str) -> dict:
    body = CODEC.encode_request(CODEC.decode_request(COHERE.part(case, "request"), REASONING), REASONING)
    assert CODEC.sdk_arguments is not None
    return CODEC.sdk_arguments(body, REASONING)


@pytest.mark.parametrize("case", COHERE.names)
def test_the_client_sends_what_we_mean_and_reads_what_we_read(case):
    sent: list = []
    reply = COHERE.part(case, "response")
    answer = client(json.dumps(reply).encode(), sent, "application/json").chat(**arguments_of(case))
    assert sent == [("/v2/chat", {**COHERE.part(case, "request"), "stream": False})]
    theirs = answer.model_dump(mode="json", exclude_unset=True)
    ours = CODEC.decode_response(reply, REASONING, {})
    assert CODEC.decode_response(theirs, REASONING, {}) == ours


@pytest.mark.parametrize("case", COHERE.names)
def test_the_client_and_we_agree_on_a_stream(case):
    sent: list = []
    decoder = CODEC.stream_decoder(REASONING, {})
    for event in client(COHERE.stream(case), sent, "text/event-stream").chat_stream(**arguments_of(case)):
        decoder.feed(event.model_dump(mode="json", exclude_unset=True))
    decoder.finish()
    assert sent == [("/v2/chat", {**COHERE.part(case, "request"), "stream": True})]
    assert decoder.message == CODEC.decode_response(COHERE.part(case, "response"), REASONING, {})


def test_what_the_client_has_no_argument_for_goes_into_its_own_place():
    assert CODEC.sdk_arguments is not None
    arguments: dict = CODEC.sdk_arguments(
        {"model": "m", "messages": [{"role": "user", "content": "x"}], "new": 1}, REASONING
    )
    sent: list = []
    client(json.dumps(COHERE.part("plain-text", "response")).encode(), sent, "application/json").chat(**arguments)
    assert sent[0][1]["new"] == 1
