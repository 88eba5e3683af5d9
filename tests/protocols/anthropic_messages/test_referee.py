"""The official SDK as a strict validator: its types of our requests, its accumulator of our streams."""

from __future__ import annotations

import json

import anthropic
import httpx2
import pytest
from anthropic.types.beta import BetaMessage
from hypothesis import given
from pydantic import ValidationError

from property_testing import scaled_examples
from protocols import traffic
from protocols.anthropic_messages.endpoints import OPUS, SONNET, endpoint_of
from protocols.anthropic_messages.referee import validator
from protocols.every_protocol import vouched_for
from protocols.exchanges import ANTHROPIC
from segue.conversation.context import Options, Prompt
from segue.errors import EmptyConversation
from segue.projection.projector import project
from segue.protocols.anthropic_messages.protocol import PROTOCOL as CODEC
from segue.protocols.api import decode_response
from strategies import storable_contexts

RECORDED = [row["file"] for row in traffic.of_protocol("anthropic-messages") if "stream" in str(row["flags"])]
RAW = {file: raw for file in RECORDED if (raw := traffic.read(file).get("stream_raw"))}

SAID = {
    "a list that is a text": {"messages": "hi"},
    "an unknown key": {"messages": [{"role": "user", "content": [{"type": "text", "text": "x", "foo": 1}]}]},
    "a number that is a text": {"max_tokens": "1"},
    "a turn without content": {"messages": [{"role": "user"}]},
    "a call without input": {"messages": [{"role": "user", "content": [{"type": "tool_use", "id": "a", "name": "b"}]}]},
    "an id that is a number": {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": 3}]}]},
}


@pytest.mark.parametrize("wrong", SAID.values(), ids=SAID.keys())
def test_the_validator_is_strict(wrong):
    with pytest.raises(ValidationError):
        validator().validate_python({"model": "m", "max_tokens": 1, "messages": [], **wrong})


@pytest.mark.parametrize("case", ANTHROPIC.having("request"))
def test_the_validator_accepts_what_we_wrote_for_tests(case):
    validator(beta=True).validate_python(ANTHROPIC.part(case, "request"))


@pytest.mark.traffic
def test_the_validator_accepts_what_was_answered():
    for row in traffic.of_protocol("anthropic-messages"):
        body = traffic.read(row["file"])["request"]
        if body is not None and row["status"] == 200:
            validator(beta=True).validate_python(body)


@scaled_examples(1.5)
@given(storable_contexts())
def test_the_validator_accepts_every_projected_history(context):
    for endpoint in (SONNET, OPUS):
        try:
            projection = project(
                vouched_for(context), endpoint.model, options=Options(cache_retention="long", thinking="low")
            )
        except EmptyConversation:
            continue
        body = CODEC.encode_request(Prompt(context=projection.context, options=projection.options), endpoint)
        validator().validate_python(body)
        again = CODEC.encode_request(CODEC.decode_request(body, endpoint), endpoint)
        assert again == body


def client(reply: bytes, sent: list[object]) -> anthropic.Anthropic:
    def handle(request: httpx2.Request) -> httpx2.Response:
        sent.append(json.loads(request.content))
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=reply)

    return anthropic.Anthropic(api_key="none", http_client=httpx2.Client(transport=httpx2.MockTransport(handle)))


def agree(stream: bytes, frames, endpoint) -> None:
    """Let the SDK read the bytes, and compare what it makes of them with what we do."""
    with client(stream, []).messages.stream(
        model="m", max_tokens=1, messages=[{"role": "user", "content": "x"}]
    ) as given_stream:
        theirs: dict = given_stream.get_final_message().to_dict()
    decoder = CODEC.stream_decoder(endpoint, {})
    for frame in frames:
        decoder.feed(frame)
    ours: dict = CODEC.encode_response(decoder.message, endpoint)
    for key in ("id", "model", "role", "type", "content", "stop_reason", "stop_sequence"):
        assert ours[key] == theirs[key], key
    counts = theirs["usage"]
    assert {key: ours["usage"].get(key) for key in counts} == counts


@pytest.mark.parametrize("case", [case for case in ANTHROPIC.names if case != "compaction-and-fallback"])  # it is beta
def test_the_sdk_and_we_agree_on_a_stream(case):
    agree(ANTHROPIC.stream(case), ANTHROPIC.part(case, "stream"), SONNET)


@pytest.mark.traffic
@pytest.mark.parametrize("file", RAW)
def test_the_sdk_and_we_agree_on_a_recorded_stream(file):
    recorded = traffic.read(file)
    agree(str(recorded["stream_raw"]).encode(), recorded["stream"], endpoint_of(str(recorded["model"])))


@pytest.mark.parametrize("case", ["plain-text", "results-and-words", "redacted-thinking"])
def test_the_sdk_sends_our_request_as_it_is(case):
    body = {**ANTHROPIC.part(case, "request"), "model": "m"}
    sent: list[object] = []
    with client(ANTHROPIC.stream("plain-text"), sent).messages.stream(**body):
        pass
    assert sent == [{**body, "stream": True}]


def test_an_object_of_the_sdk_is_read_with_the_keys_of_the_wire():
    fallback = {"type": "fallback", "from": {"model": "claude-opus-4-6"}, "to": {"model": "claude-sonnet-4-5"}}
    usage = {"input_tokens": 1, "output_tokens": 1}
    body = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [fallback], "usage": usage}
    reply = BetaMessage.construct(**body)
    assert decode_response(reply, model=SONNET.model) == CODEC.decode_response(body, SONNET, {})
