"""Random bodies: any JSON is checked, read and written back, or reported as an error with its path."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from property_testing import scaled_examples
from protocols.any_bodies import (
    assert_checked,
    assert_reply_comes_back,
    assert_request_comes_back,
    assert_stream_ends_once,
    one,
    some,
)
from protocols.ollama_chat.endpoints import GPT_OSS, QWEN
from segue.protocols.ollama_chat.protocol import PROTOCOL as CODEC

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB"


CALL = some(
    id=one("c1", "c2"),
    type=one("function"),
    function=some(index=one(0), name=one("f", "g"), arguments=one({}, {"a": 1}, "{}", '{"a": 1}', "{")),
)
TURN = some(
    role=one("user", "assistant", "system", "tool", "User", "developer", "odd"),
    content=one("hi", " "),
    thinking=one("hm"),
    images=one([PNG], ["data:image/png;base64,AAAA"], ["http://x"]),
    tool_calls=st.lists(CALL, max_size=3),
    tool_name=one("f", "g"),
    tool_call_id=one("c1", "c2"),
    name=one("bob"),
    shape=one("s"),
    verbatim=one("v"),
)
BODY = some(
    model=one("qwen3", "m"),
    messages=st.lists(TURN, max_size=4),
    tools=st.lists(
        some(type=one("function"), function=some(name=one("f"), description=one("d"), parameters=one({"a": 1}))),
        max_size=2,
    ),
    stream=st.booleans(),
    think=one(*(True, False, "low", "max", "odd")),
    format=one("json", "", {"type": "object"}),
    options=some(num_predict=one(5, -1), temperature=one(0.5), stop=one(["a"], "a"), seed=one(1), num_ctx=one(9)),
    keep_alive=one("5m", 0),
    logprobs=st.booleans(),
    shape=one("s"),
)
REPLY = some(
    model=one("m"),
    created_at=one("t"),
    message=TURN,
    done=st.booleans(),
    done_reason=one("stop", "length", "load", "odd"),
    prompt_eval_count=one(3),
    eval_count=one(0, 2),
    logprobs=one([{"token": "a", "logprob": 0}]),
    error=one("no"),
)
ENDPOINTS = st.sampled_from([QWEN, GPT_OSS])


@scaled_examples(3)
@given(body=BODY, endpoint=ENDPOINTS)
def test_any_body_is_checked(body, endpoint):
    assert_checked(CODEC, body, endpoint)


@scaled_examples(5)
@given(body=BODY, endpoint=ENDPOINTS)
def test_any_body_that_can_be_read_is_written_as_received(body, endpoint):
    assert_request_comes_back(CODEC, body, endpoint)


@scaled_examples(5)
@given(body=REPLY, endpoint=ENDPOINTS)
def test_any_reply_that_can_be_read_is_written_as_received(body, endpoint):
    assert_reply_comes_back(CODEC, body, endpoint)


@scaled_examples(3)
@given(frames=st.lists(REPLY, max_size=4))
def test_any_stream_ends_once(frames):
    assert_stream_ends_once(CODEC, frames, QWEN)
