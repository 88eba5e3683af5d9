"""The official SDK as a reference: its models validate our requests, its client uses a transport of ours."""

from __future__ import annotations

import base64
import json
from typing import Any

import httpx
import pytest
from google import genai
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from projection.histories import TARGETS, make_options, own_contexts, ugly_contexts
from property_testing import scaled_examples
from protocols import traffic
from protocols.every_protocol import vouched_for
from protocols.exchanges import GOOGLE
from protocols.google_genai.endpoints import NEWER, OLDER, VERTEX, endpoint_of
from protocols.google_genai.referee import complaints
from segue.conversation.content import ImageContent, TextContent, ToolCall
from segue.conversation.context import Context, NativeTool, Options, ToolDefinition
from segue.conversation.messages import AssistantMessage, StopReason, ToolResultMessage, UserMessage
from segue.errors import EmptyConversation
from segue.protocols.api import resolve_endpoint
from segue.protocols.google_genai.protocol import PROTOCOL as CODEC
from segue.requests.prepare import prepare

ROWS = traffic.of_protocol("google-genai")

WRONG = {
    "a list that is a text": {"contents": "hi"},
    "an unknown key": {"contents": [{"role": "user", "parts": [{"text": "x", "foo": 1}]}]},
    "a number that is a text": {"generationConfig": {"maxOutputTokens": "1"}},
    "data that are not base64": {"contents": [{"parts": [{"inlineData": {"data": "!", "mimeType": "image/png"}}]}]},
    "an unknown mode": {"toolConfig": {"functionCallingConfig": {"mode": "SOME"}}},
    "a key of another protocol": {"messages": []},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_the_models_are_strict(wrong):
    assert complaints({"contents": [{"role": "user", "parts": [{"text": "hi"}]}], **wrong}, OLDER)


@pytest.mark.parametrize("case", GOOGLE.having("request"))
def test_the_models_accept_what_we_wrote_for_tests(case):
    assert complaints(GOOGLE.part(case, "request"), NEWER) == []


@pytest.mark.traffic
@traffic.each_exchange(ROWS, lambda _, exchange: isinstance(exchange["request"], dict))
def test_the_models_accept_what_was_answered(row):
    body = traffic.read(row["file"])["request"]
    assert complaints(body, endpoint_of(row["model"], row["provider"])) == []


def readable(context: Context) -> Context:
    """Put base64 in the place of data that are made of several files for their length."""

    def whole(piece):
        return replace(piece, data="AAAA") if "=" in (getattr(piece, "data", None) or "").rstrip("=") else piece

    messages = [replace(message, content=tuple(map(whole, message.content))) for message in context.messages]
    return replace(context, messages=tuple(messages))


@scaled_examples(2)
@given(data=st.data())
def test_the_models_accept_every_projected_history(data):
    model = data.draw(st.sampled_from(TARGETS["google-genai"]))
    contexts = data.draw(st.sampled_from((ugly_contexts, own_contexts)))
    context = readable(vouched_for(data.draw(contexts(model))))
    try:
        request = prepare(context, model, options=make_options(data.draw(st.integers(0, 2**32))))
    except EmptyConversation:
        return
    endpoint = resolve_endpoint(model)
    assert complaints(request.body, endpoint) == []
    assert CODEC.check(request.body, endpoint) == []
    assert CODEC.encode_request(CODEC.decode_request(request.body, endpoint), endpoint) == request.body


# -- the client --------------------------------------------------------------------------------------------------------

PNG = base64.b64encode(b"\x89PNG not really \xff\xfe").decode()
CONVERSATION = Context(
    system_prompt="Be kind.",
    messages=(
        UserMessage.of("What is this?", ImageContent(data=PNG, mime_type="image/png")),
        AssistantMessage(
            content=(
                TextContent(text="Let me look."),
                ToolCall(
                    id="c1", name="look", arguments={"inlineData": {"data": "text"}}, thought_signature="c2VhbA=="
                ),
            ),
            protocol="google-genai",
            provider="google",
            model=NEWER.model.id,
            stop_reason=StopReason.TOOL_USE,
        ),
        ToolResultMessage(
            tool_call_id="c1",
            tool_name="look",
            content=(TextContent(text="a cat"), ImageContent(data=PNG, mime_type="image/png")),
        ),
    ),
    tools=(
        NativeTool(protocol="google-genai", definition={"googleSearch": {}}),  # the client puts functions last
        ToolDefinition(name="look", description="Looks.", parameters={"type": "object", "properties": {}}),
    ),
)
OPTIONS = Options(
    max_tokens=99, stop=("END",), seed=7, thinking="low", tool_choice="look", output_schema={"type": "object"}
)


def client(reply: bytes, sent: list[tuple[str, Any]], kind: str = "application/json", **options: Any) -> genai.Client:
    def handle(request: httpx.Request) -> httpx.Response:
        sent.append((str(request.url), json.loads(request.content)))
        return httpx.Response(200, headers={"content-type": kind}, content=reply)

    http = types.HttpOptions(httpx_client=httpx.Client(transport=httpx.MockTransport(handle)), api_version="v1beta")
    return genai.Client(api_key="none", http_options=http, **options)


def same(ours: Any, theirs: Any) -> None:
    """Compare two bodies: keys under both names and base64 in both alphabets mean the same."""
    prompts = [CODEC.decode_request(body, NEWER) for body in (ours, theirs)]
    plain_bodies = [CODEC.encode_request(stripped(prompt), NEWER) for prompt in prompts]
    assert plain_bodies[0] == plain_bodies[1]


def stripped(prompt):
    context = prompt.context
    messages = tuple(
        replace(m, extra=None, content=tuple(replace(p, extra=None) for p in m.content)) for m in context.messages
    )
    text = context.system_prompt
    text = text if isinstance(text, str) else "".join(piece.text for piece in text)
    tools = tuple(replace(tool, extra=None) for tool in context.tools)
    context = replace(context, messages=messages, tools=tools, extra=None, system_prompt=text)
    return replace(prompt, context=context, options=replace(prompt.options, extra=None))


def test_the_client_sends_what_we_would():
    request = prepare(CONVERSATION, NEWER.model, options=OPTIONS)
    sent: list[tuple[str, Any]] = []
    arguments: dict[str, Any] = request.sdk_arguments()
    client(json.dumps(GOOGLE.part("thoughts-and-calls", "response")).encode(), sent).models.generate_content(
        **arguments
    )
    [(url, body)] = sent
    assert url == request.url
    same(request.body, body)
    call = body["contents"][1]["parts"][1]
    assert call["functionCall"]["args"] == {"inlineData": {"data": "text"}}
    assert call["thoughtSignature"].rstrip("=") == "c2VhbA"


def test_the_client_streams_from_where_we_would():
    request = prepare(CONVERSATION, NEWER.model, options=replace(OPTIONS, stream=True))
    sent: list[tuple[str, Any]] = []
    given = client(GOOGLE.stream("plain-text"), sent, "text/event-stream")
    arguments: dict[str, Any] = request.sdk_arguments()
    chunks = list(given.models.generate_content_stream(**arguments))
    assert sent[0][0] == request.url
    decoder = request.stream_decoder()
    for chunk in chunks:
        decoder.feed(chunk)
    decoder.finish()
    expected = CODEC.decode_response(GOOGLE.part("plain-text", "response"), NEWER, {})
    assert decoder.message.text() == expected.text() == "".join(chunk.text or "" for chunk in chunks)
    assert decoder.message.usage is not None
    assert decoder.message.stop_reason == expected.stop_reason


def test_what_the_client_has_no_field_for_goes_beside():
    body = {"contents": [], "generationConfig": {"topK": 3}, "somethingNew": {"a": 1}, "labels": {"a": "b"}}
    assert CODEC.sdk_arguments is not None
    config = CODEC.sdk_arguments(body, OLDER)["config"]
    assert config == {"topK": 3, "labels": {"a": "b"}, "http_options": {"extra_body": {"somethingNew": {"a": 1}}}}


@pytest.mark.parametrize("case", GOOGLE.having("stream"))
def test_the_client_and_we_agree_on_a_reply(case):
    body = GOOGLE.part(case, "response")
    [theirs] = [client(json.dumps(body).encode(), []).models.generate_content(model="m", contents="hi", config=None)]
    ours = CODEC.decode_response(body, VERTEX, {})
    from_client = CODEC.decode_response(theirs.model_dump(mode="json", exclude_none=True), VERTEX, {})
    assert ours.text() == (theirs.text or "" if ours.content and ours.text() else "")
    assert [call.name for call in ours.tool_calls()] == [call.name for call in theirs.function_calls or []]
    assert [call.arguments for call in ours.tool_calls()] == [call.args or {} for call in theirs.function_calls or []]
    assert from_client.text() == ours.text()
    assert from_client.usage is None or ours.usage is None or from_client.usage.output == ours.usage.output
    assert from_client.stop_reason == ours.stop_reason
    assert [piece.kind for piece in from_client.content] == [piece.kind for piece in ours.content]
