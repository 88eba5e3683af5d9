"""The provider's own code as a strict validator: the SDK's types, the library's validators, and the client itself."""

from __future__ import annotations

import json

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mistral_common.tokens.tokenizers.base import TokenizerVersion
from mistralai.client import Mistral
from msgspec.structs import replace
from pydantic import ValidationError

from projection.histories import TARGETS, make_options, own_contexts, ugly_contexts
from property_testing import scaled_examples
from protocols import traffic
from protocols.every_protocol import vouched_for, without_fields
from protocols.exchanges import MISTRAL
from protocols.mistral_chat.endpoints import MEDIUM
from protocols.mistral_chat.referee import complaints, objections, validator
from segue.conversation.context import Context, Options
from segue.errors import EmptyConversation, EncodeError
from segue.protocols.api import resolve_endpoint
from segue.protocols.mistral_chat.protocol import PROTOCOL as CODEC
from segue.requests.prepare import prepare

WRONG = {
    "a list that is a text": {"messages": "hi"},
    "an unknown key": {"messages": [{"role": "user", "content": "x", "foo": 1}]},
    "an unknown chunk": {"messages": [{"role": "user", "content": [{"type": "odd", "text": "x"}]}]},
    "thinking that is a text": {
        "messages": [{"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}]}]
    },
    "a number that is a text": {"max_tokens": "1"},
    "an unknown value": {"tool_choice": "perhaps"},
    "an unknown parameter": {"top_q": 1},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_the_validator_is_strict(wrong):
    with pytest.raises(ValidationError):
        validator().validate_python({"model": "m", "messages": [{"role": "user", "content": "hi"}], **wrong})


def test_the_validators_differ_by_the_version_of_the_tokenizer():
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    body = {
        "model": "m",
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "ok"},
        ],
    }
    assert "with a length of 9" in objections(body, TokenizerVersion.v11)[0]
    assert objections(body, TokenizerVersion.v13) == []


@pytest.mark.traffic
def test_the_validators_accept_what_was_answered():
    for row in traffic.of_protocol("mistral-chat"):
        body = traffic.read(row["file"])["request"]
        if body is not None and row["status"] == 200:
            assert complaints(body) == [], row["file"]


@pytest.mark.parametrize("case", MISTRAL.names)
def test_a_request_written_for_tests_is_one_that_the_provider_knows(case):
    body = MISTRAL.part(case, "request")
    validator().validate_python(body)
    assert CODEC.check(body, MEDIUM) == []


@scaled_examples(1.5)
@given(data=st.data())
def test_the_validators_accept_every_request(data):
    model = data.draw(st.sampled_from(TARGETS["mistral-chat"]))
    context = data.draw(st.one_of(ugly_contexts(model), own_contexts(model)))
    options = make_options(data.draw(st.integers(0, 2**32)))
    try:
        request = prepare(vouched_for(context), model, options=options and replace(options, extra=None))
    except EmptyConversation:
        return
    assert complaints(request.body, resolve_endpoint(model)) == []


@scaled_examples(1)
@given(data=st.data())
def test_but_for_the_place_of_calls_a_request_is_read_back_piece_by_piece(data):
    model = data.draw(st.sampled_from(TARGETS["mistral-chat"]))
    try:
        request = prepare(data.draw(ugly_contexts(model)), model)
    except EmptyConversation:
        return
    sent = request.projection.context
    read = CODEC.decode_request(request.body, resolve_endpoint(model)).context
    assert without_fields(sorted_calls(read), CODEC.not_carried) == without_fields(
        sorted_calls(sent), CODEC.not_carried
    )


def sorted_calls(context: Context) -> tuple:
    """Put the calls of every turn behind its text, without empty texts."""
    return tuple(
        replace(message, content=tuple(sorted(message.content, key=lambda piece: piece.kind == "toolCall")))
        for message in context.messages
    )


# -- the client --------------------------------------------------------------------------------------------------------


def client(reply: bytes, sent: list, kind: str) -> Mistral:
    def handle(request: httpx2.Request) -> httpx2.Response:
        sent.append((request.url.path, json.loads(request.content)))
        return httpx2.Response(200, headers={"content-type": kind}, content=reply)

    return Mistral(api_key="none", client=httpx2.Client(transport=httpx2.MockTransport(handle)))


@pytest.mark.parametrize("case", MISTRAL.names)
def test_the_client_sends_what_we_mean_and_reads_what_we_read(case):
    body, reply = MISTRAL.part(case, "request"), MISTRAL.part(case, "response")
    prompt = CODEC.decode_request(body, MEDIUM)
    assert CODEC.sdk_arguments is not None
    arguments: dict = CODEC.sdk_arguments(CODEC.encode_request(prompt, MEDIUM), MEDIUM)
    sent: list = []
    answer = client(json.dumps(reply).encode(), sent, "application/json").chat.complete(**arguments)
    [(path, body_sent)] = sent
    assert path == "/v1/chat/completions"
    result = CODEC.decode_request(body_sent, MEDIUM)
    assert without_fields(result.context, {"extra"}) == without_fields(prompt.context, {"extra"})
    theirs = answer.model_dump(mode="json", by_alias=True)
    ours = CODEC.decode_response(reply, MEDIUM, {})
    assert theirs["choices"][0]["finish_reason"] == ours.raw_stop_reason
    assert without_fields(CODEC.decode_response(theirs, MEDIUM, {}).content, {"extra", "block"}) == without_fields(
        ours.content, {"extra", "block"}
    )


@pytest.mark.parametrize("case", MISTRAL.names)
def test_the_client_and_we_agree_on_a_stream(case):
    sent: list = []
    context = CODEC.decode_request(MISTRAL.part(case, "request"), MEDIUM).context
    model = replace(MEDIUM.model, rules={"last_assistant": True})
    request = prepare(context, model, options=Options(stream=True))
    arguments: dict = request.sdk_arguments()
    decoder = CODEC.stream_decoder(MEDIUM, {})
    with client(MISTRAL.stream(case), sent, "text/event-stream").chat.stream(**arguments) as stream:
        for event in stream:
            decoder.feed(event.model_dump(mode="json", exclude_unset=True, warnings=False))
    decoder.finish()
    assert sent[0][1]["stream"] is True
    ours = CODEC.decode_response(MISTRAL.part(case, "response"), MEDIUM, {})
    assert without_fields(decoder.message, {"extra"}) == without_fields(ours, {"extra"})


def test_what_the_client_has_no_argument_for_is_named():
    assert CODEC.sdk_arguments is not None
    with pytest.raises(EncodeError) as caught:
        CODEC.sdk_arguments({"model": "m", "messages": [], "brand_new": 1}, MEDIUM)
    assert caught.value.path == ("brand_new",)
