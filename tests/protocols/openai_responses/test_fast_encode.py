"""The short way of writing a turn writes what the long way writes, or leaves the turn to it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projection.histories import TARGETS, make_own, make_ugly
from segue.conversation.content import NativeContent, TextContent, ThinkingContent, ToolCall
from segue.errors import EncodeError
from segue.protocols.openai_responses.fast_encode import fast_encode
from segue.protocols.openai_responses.items import write_turn

TEXT = TextContent(text="yes", text_signature='{"id":"msg_1","status":"completed"}')
THOUGHT = ThinkingContent(thinking="hm", thinking_signature='{"id":"rs_1","encrypted_content":"c2VjcmV0"}')
CALL = ToolCall(id="a", name="read", arguments={"path": "x"}, thought_signature='{"id":"fc_1","status":"completed"}')
SPELT = {"openai-responses": {"shape": {"list": True}}}
BEFORE = {"type": "message"}

SHORT = {
    "nothing": (),
    "a text without a seal": (TextContent(text="yes"),),
    "a text without words": (TextContent(text=""),),
    "a text whose item had no id": (TextContent(text="yes", text_signature='{"phase":"commentary"}'),),
    "thinking, a text, calls": (THOUGHT, TEXT, CALL, CALL),
    "calls without a seal": (ToolCall(id="a", name="read"), ToolCall(id="b", name="read")),
    "arguments in the provider's own spelling": (ToolCall(id="a", name="read", arguments_text='{ "path": "x" }'),),
}
LONG = {
    "a text with a spelling of its own": (TextContent(text="no", extra=SPELT),),
    "a call with a spelling of its own": (ToolCall(id="a", name="read", extra={"openai-responses": {"x": 1}}),),
    "a seal that is the secret itself": (ThinkingContent(thinking="hm", thinking_signature="c2VjcmV0"),),
    "a seal of numbers": (ThinkingContent(thinking="hm", thinking_signature="1234"),),
    "a seal cut off": (ToolCall(id="a", name="read", thought_signature='{"id":"fc'),),
    "an empty seal": (TextContent(text="yes", text_signature=""),),
    "thinking of several summaries": (
        ThinkingContent(thinking="a\n\nb", thinking_signature='{"encrypted_content":"c","summary_lengths":[1,1]}'),
    ),
    "thinking without words": (ThinkingContent(thinking="", thinking_signature='{"encrypted_content":"c"}'),),
    "a native block": (NativeContent(protocol="openai-responses", block={"type": "web_search_call"}),),
}


def in_full(content, *, open_reasoning=False):
    items: list[dict[str, object]] = []
    write_turn(items, content, open_reasoning=open_reasoning)
    return items


@pytest.mark.parametrize("content", SHORT.values(), ids=SHORT.keys())
def test_what_most_turns_are_is_written_the_short_way(content):
    items: list[dict[str, object]] = [{**BEFORE}]
    assert fast_encode(items, content)
    assert items[1:] == in_full(content)


@pytest.mark.parametrize("content", LONG.values(), ids=LONG.keys())
def test_what_is_rare_is_left_to_the_long_way_with_nothing_written(content):
    items: list[dict[str, object]] = [{**BEFORE}]
    assert not fast_encode(items, (CALL, *content))
    assert items == [BEFORE]


@given(
    seed=st.integers(0, 2**32),
    model=st.sampled_from(TARGETS["openai-responses"]),
    make=st.sampled_from([make_own, make_ugly]),
)
def test_both_ways_agree(seed, model, make):
    for message in make(seed, model).messages:
        items: list[dict[str, object]] = []
        if message.role == "assistant" and fast_encode(items, message.content):
            assert items == in_full(message.content, open_reasoning=True)


def test_arguments_that_cannot_be_written_are_named_by_their_place():
    broken = ToolCall(id="a", name="read", arguments={"depth": math.nan})
    assert not fast_encode([], (broken,))
    with pytest.raises(EncodeError) as caught:
        write_turn([], (TEXT, broken))
    assert caught.value.path[0] == 1
