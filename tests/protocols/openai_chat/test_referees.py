"""The official SDK as a strict validator: its types accept what we write, and its client decodes streams as we do."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from pydantic import ValidationError

from projection.histories import make_ugly
from property_testing import scaled_examples
from protocols import traffic
from protocols.openai_chat import test_streams
from protocols.openai_chat.endpoints import PROTOCOL, endpoint, read, reply
from segue.conversation.context import Context, Options
from segue.errors import EmptyConversation
from segue.models.model import Model
from segue.protocols.api import decode_response
from segue.protocols.openai_chat.protocol import PROTOCOL as CODEC
from segue.requests.prepare import prepare

openai = pytest.importorskip("openai")
httpx2 = pytest.importorskip("httpx2")

from openai.lib.streaming.chat import ChatCompletionStreamState  # noqa: E402

from protocols.openai_chat.strict_types import request_type  # noqa: E402

TARGETS = (
    Model("gpt-5.2", "openai", PROTOCOL, reasoning=True, thinking_levels={"off": "none", "xhigh": "xhigh"}),
    Model("gpt-4o", "openai", PROTOCOL, input=("text", "image", "document", "audio")),
    Model("o1-mini", "openai", PROTOCOL, reasoning=True),
    Model("gpt-4.1", "azure", PROTOCOL),
)
OPTIONS = (
    None,
    Options(max_tokens=9, temperature=0.5, top_p=0.9, stop=("a",), seed=1, stream=True),
    Options(thinking="high", tool_choice="required", parallel_tool_calls=False, stream=False),
    Options(output_schema={"type": "object"}, cache_retention="long", session_id="s", user_id="u"),
)


def without_natives(context: Context) -> Context:
    """Leave out what is passed through as it came: it is no work of ours, and the types know nothing of it.

    Reasoning of the target's own is such a thing: this provider's models never show any on this wire.
    """

    def plain(content, own=False):
        passed = ("native", "thinking") if own else ("native",)
        return tuple(replace(piece, extra=None) for piece in content if piece.kind not in passed)

    def is_own(message):
        return message.role == "assistant" and message.protocol == PROTOCOL

    messages = tuple(
        replace(message, content=plain(message.content, is_own(message)), extra=None) for message in context.messages
    )
    tools = tuple(replace(tool, extra=None) for tool in context.tools if tool.kind == "function")
    prompt = context.system_prompt
    return Context(system_prompt=plain(prompt) if isinstance(prompt, tuple) else prompt, messages=messages, tools=tools)


@scaled_examples(1.5)
@given(seed=st.integers(0, 2**32), model=st.sampled_from(TARGETS), options=st.sampled_from(OPTIONS))
def test_the_types_accept_what_is_written(seed, model, options):
    context = without_natives(make_ugly(seed, model))
    try:
        body = prepare(context, model, options=options).body
    except EmptyConversation:
        return
    request_type(stream=bool(body.get("stream"))).validate_python(body)


WRONG = {
    "an unknown key": {"model": "m", "messages": [], "oops": 1},
    "messages that are no list": {"model": "m", "messages": "hi"},
    "an unknown key of a message": {"model": "m", "messages": [{"role": "user", "content": "x", "oops": 1}]},
    "a message without a role": {"model": "m", "messages": [{"content": "x"}]},
    "a result of no call": {"model": "m", "messages": [{"role": "tool", "content": "x"}]},
    "no model": {"messages": []},
    "a number for a text": {"model": "m", "messages": [{"role": "user", "content": 7}]},
}


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG.keys())
def test_the_validator_is_strict(body):
    with pytest.raises(ValidationError):
        request_type(stream=False).validate_python(body)


RECORDED = [row for row in traffic.of_protocol(PROTOCOL) if row["provider"] == "openai" and row["status"] == 200]


@pytest.mark.traffic
def test_the_types_accept_what_the_provider_accepted():
    bodies = [traffic.read(str(row["file"]))["request"] for row in RECORDED]
    for body in bodies:
        if isinstance(body, dict):
            request_type(stream=bool(body.get("stream"))).validate_python(body)


# -- streams -----------------------------------------------------------------------------------------------------------


def accumulate(data: bytes) -> Any:
    """Let the SDK's own client read a stream, and give the message it makes of it."""

    def respond(_: object) -> object:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=data)

    client = openai.OpenAI(
        api_key="none",
        base_url="http://127.0.0.1/v1",
        http_client=httpx2.Client(transport=httpx2.MockTransport(respond)),
    )
    state = ChatCompletionStreamState()
    with client:
        for chunk in client.chat.completions.create(model="m", messages=[], stream=True):
            state.handle_chunk(chunk)
    return state.current_completion_snapshot.model_dump(mode="json")


def compare(data: bytes, frames: list[Any], at) -> None:
    theirs = accumulate(data)["choices"][0]["message"]
    decoder = CODEC.stream_decoder(at, {})
    for frame in frames:
        decoder.feed(frame)
    decoder.finish()
    ours = decoder.message
    assert ours.text() == (theirs.get("content") or "")
    calls = [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"] or "{}"))
        for call in theirs.get("tool_calls") or []
    ]
    assert [(call.id, call.name, call.arguments) for call in ours.tool_calls()] == calls


AGREED = (
    "text in pieces",
    "text that comes with the finish reason",
    "nothing but the end",
    "reasoning, then text",
    "a call in pieces",
    "two calls that take turns",
    "text, then a call, then text",
    "a call with the reason stop",
)


@pytest.mark.parametrize("case", AGREED)
def test_the_client_decodes_the_same(case):
    frames, _ = test_streams.CONTENTS[case]
    compare(test_streams.sse(*frames, "[DONE]"), list(frames), endpoint())


STREAMED = [row for row in traffic.of_protocol(PROTOCOL) if traffic.read(str(row["file"])).get("stream")]


@pytest.mark.traffic
@pytest.mark.parametrize("row", STREAMED, ids=lambda row: str(row["file"]))
def test_the_client_decodes_the_same_in_recorded_streams(row):
    frames = traffic.read(str(row["file"]))["stream"]
    assert isinstance(frames, list)
    compare(test_streams.sse(*frames), frames, endpoint(str(row["provider"]), str(row["model"])))


def test_a_reply_of_the_client_is_read_without_a_warning_where_a_vendor_deviates_from_its_types():
    body = reply({"content": {"a": 1}}, created="yesterday")
    message = decode_response(openai.types.chat.ChatCompletion.construct(**body))
    assert message == decode_response(body)
    assert message.text() == '{"a":1}'


def test_what_the_client_names_as_arguments_is_known():
    named = set(inspect.signature(openai.resources.chat.completions.Completions.create).parameters)
    assert callable(CODEC.sdk_parameters)
    assert CODEC.sdk_parameters() == named - {"self", "extra_headers", "extra_query", "extra_body", "timeout"}


def test_a_request_of_the_types_own_making_is_read():
    prompt = read({"role": "user", "content": [{"type": "text", "text": "x"}]}, reasoning_effort="low")
    assert prompt.options.thinking == "low"
