"""The short way of writing a turn writes what the long way writes, or leaves the turn to it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projection.histories import TARGETS, make_own, make_ugly
from segue.conversation.content import CacheMark, NativeContent, TextContent, ThinkingContent, ToolCall
from segue.errors import EncodeError
from segue.protocols.api import resolve_endpoint
from segue.protocols.openai_chat.assistant import encode_assistant, fast_encode, slow_encode
from segue.protocols.openai_chat.reasoning import plain_field

ENDPOINTS = [resolve_endpoint(model) for model in TARGETS["openai-chat"]]
TEXT = TextContent(text="yes")
THOUGHT = ThinkingContent(thinking="hm", thinking_signature="reasoning_content")
CALL = ToolCall(id="a", name="read", arguments={"path": "x"})

SHORT = {
    "nothing": (),
    "a text": (TEXT,),
    "several texts": (TEXT, TextContent(text=" and no")),
    "thinking, a text, calls": (THOUGHT, TEXT, CALL, CALL),
    "thinking that names no field": (ThinkingContent(thinking="hm"), TEXT),
    "calls alone": (CALL,),
    "arguments in the provider's own format": (ToolCall(id="a", name="read", arguments_text='{ "path": "x" }'),),
}
LONG = {
    "a text with a signature": (TextContent(text="yes", text_signature="s"),),
    "a text with data of its own": (TextContent(text="no", extra={"openai-chat": {"x": 1}}),),
    "a marked text": (TextContent(text="no", cache_mark=CacheMark()),),
    "a marked call": (ToolCall(id="a", name="read", cache_mark=CacheMark()),),
    "thinking in tags": (ThinkingContent(thinking="hm", thinking_signature="<think>"),),
    "thinking with details": (ThinkingContent(thinking="hm", thinking_signature='[{"type":"x"}]'),),
    "thinking without text": (ThinkingContent(thinking="", thinking_signature="reasoning"),),
    "two thoughts": (THOUGHT, THOUGHT),
    "a call with a signature": (ToolCall(id="a", name="read", thought_signature="s"),),
    "a native block": (NativeContent(protocol="openai-chat", block={"audio": {"id": "a"}}),),
    "arguments that are no JSON": (ToolCall(id="a", name="read", arguments={"depth": math.nan}),),
}


def field_of(endpoint):
    return None if endpoint.dialect.think_tags else plain_field(endpoint)


@pytest.mark.parametrize("content", SHORT.values(), ids=SHORT.keys())
def test_what_most_turns_are_is_written_the_short_way(content):
    for endpoint in ENDPOINTS:
        written = fast_encode(content, field_of(endpoint))
        assert written is not None
        assert written == slow_encode(content, endpoint, ())
        assert list(written) == list(slow_encode(content, endpoint, ()))


@pytest.mark.parametrize("content", LONG.values(), ids=LONG.keys())
def test_what_is_rare_is_left_to_the_long_way(content):
    assert fast_encode(content, "reasoning_content") is None


def test_thinking_that_goes_into_tags_is_left_to_the_long_way():
    assert fast_encode((ThinkingContent(thinking="hm"),), None) is None


@given(seed=st.integers(0, 2**32), endpoint=st.sampled_from(ENDPOINTS), make=st.sampled_from([make_own, make_ugly]))
def test_both_ways_agree(seed, endpoint, make):
    for message in make(seed, endpoint.model).messages:
        if message.role == "assistant" and (written := fast_encode(message.content, field_of(endpoint))) is not None:
            assert written == slow_encode(message.content, endpoint, ())


def test_arguments_that_cannot_be_written_are_named_by_their_place():
    with pytest.raises(EncodeError) as caught:
        encode_assistant(LONG["arguments that are no JSON"], ENDPOINTS[0], ("messages", 3))
    assert caught.value.path == ("messages", 3)
