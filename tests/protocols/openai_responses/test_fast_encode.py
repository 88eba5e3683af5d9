"""The fast path writes a turn as the full path does, or leaves the turn to it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from projection.histories import TARGETS, make_own, make_ugly
from segue.conversation.content import NativeContent, TextContent, ThinkingContent, ToolCall
from segue.errors import EncodeError
from segue.protocols.openai_responses.turns import write_turn, write_turn_fast

TEXT = TextContent(text="yes", text_signature='{"id":"msg_1","status":"completed"}')
THOUGHT = ThinkingContent(thinking="hm", thinking_signature='{"id":"rs_1","encrypted_content":"c2VjcmV0"}')
CALL = ToolCall(id="a", name="read", arguments={"path": "x"}, thought_signature='{"id":"fc_1","status":"completed"}')
EXTRA = {"openai-responses": {"verbatim": {"@content": {"from": "string", "to": "list"}}}}
BEFORE = {"type": "message"}

FAST = {
    "nothing": (),
    "a text without a signature": (TextContent(text="yes"),),
    "an empty text": (TextContent(text=""),),
    "a text whose item had no id": (TextContent(text="yes", text_signature='{"status":"completed"}'),),
    "a text with a phase": (TextContent(text="yes", phase="commentary"),),
    "a signed text with a phase": (replace(TEXT, phase="commentary"),),
    "a phase in the signature of an older file": (TextContent(text="yes", text_signature='{"phase":"commentary"}'),),
    "thinking, a text, calls": (THOUGHT, TEXT, CALL, CALL),
    "calls without a signature": (ToolCall(id="a", name="read"), ToolCall(id="b", name="read")),
    "arguments as the provider wrote them": (ToolCall(id="a", name="read", arguments_text='{ "path": "x" }'),),
}
FULL = {
    "a text in another format": (TextContent(text="no", extra=EXTRA),),
    "a call in another format": (ToolCall(id="a", name="read", extra={"openai-responses": {"x": 1}}),),
    "a signature that is the encrypted content": (ThinkingContent(thinking="hm", thinking_signature="c2VjcmV0"),),
    "a signature of numbers": (ThinkingContent(thinking="hm", thinking_signature="1234"),),
    "a truncated signature": (ToolCall(id="a", name="read", thought_signature='{"id":"fc'),),
    "an empty signature": (TextContent(text="yes", text_signature=""),),
    "thinking of several summaries": (
        ThinkingContent(thinking="a\n\nb", thinking_signature='{"encrypted_content":"c","summary_lengths":[1,1]}'),
    ),
    "thinking without text": (ThinkingContent(thinking="", thinking_signature='{"encrypted_content":"c"}'),),
    "a native block": (NativeContent(protocol="openai-responses", block={"type": "web_search_call"}),),
}


def in_full(content, *, open_reasoning=False):
    items: list[dict[str, object]] = []
    write_turn(items, content, open_reasoning=open_reasoning)
    return items


@pytest.mark.parametrize("content", FAST.values(), ids=FAST.keys())
def test_a_turn_in_the_default_format_is_written_fast(content):
    items: list[dict[str, object]] = [{**BEFORE}]
    assert write_turn_fast(items, content)
    assert items[1:] == in_full(content)


@pytest.mark.parametrize("content", FULL.values(), ids=FULL.keys())
def test_any_other_turn_is_left_to_the_full_path_with_nothing_written(content):
    items: list[dict[str, object]] = [{**BEFORE}]
    assert not write_turn_fast(items, (CALL, *content))
    assert items == [BEFORE]


@given(
    seed=st.integers(0, 2**32),
    model=st.sampled_from(TARGETS["openai-responses"]),
    make=st.sampled_from([make_own, make_ugly]),
)
def test_both_paths_agree(seed, model, make):
    for message in make(seed, model).messages:
        items: list[dict[str, object]] = []
        if message.role == "assistant" and write_turn_fast(items, message.content):
            assert items == in_full(message.content, open_reasoning=True)


def test_arguments_that_cannot_be_written_are_refused_with_their_path():
    broken = ToolCall(id="a", name="read", arguments={"depth": math.nan})
    assert not write_turn_fast([], (broken,))
    with pytest.raises(EncodeError) as caught:
        write_turn([], (TEXT, broken))
    assert caught.value.path[0] == 1
