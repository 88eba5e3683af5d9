"""The fast path for chunks that only add to a part gives the same events as the full path."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue import Model, stream_decoder
from segue.conversation.events import Event
from segue.protocols.openai_chat.fast_decode import find_delta
from segue.protocols.openai_chat.stream import _MAX_MISSES

MODEL = Model("m", "p", "openai-chat")
Json = dict[str, object]


def chunk(delta: object, **more: object) -> Json:
    return {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": None}], **more}


def call(**message_given: object) -> Json:
    return {"tool_calls": [{"index": 0, **message_given}]}


OPENED = [
    chunk({"role": "assistant", "content": "a"}),
    chunk({"reasoning_content": "b"}),
    chunk({"reasoning": "c"}),
    chunk(call(id="c1", type="function", function={"name": "look", "arguments": "{"})),
]
ENDED = [{"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]


def result(chunks: list[Json], *, as_bytes: bool) -> tuple[list[Event], object]:
    decoder = stream_decoder(model=MODEL)
    events: list[Event] = []
    for each in chunks:
        events += decoder.feed(json.dumps(each).encode() if as_bytes else each)
    events += decoder.finish()
    return events, decoder.message


GROWING = {
    "text": chunk({"content": "x"}),
    "reasoning": chunk({"reasoning_content": "x", "content": None}),
    "reasoning under its other name": chunk({"reasoning": "x", "content": ""}),
    "arguments": chunk(call(function={"arguments": "x"})),
    "arguments, with empty keys": chunk(call(id=None, type="function", function={"name": "", "arguments": "x"})),
    "with a role": chunk({"role": "assistant", "content": "x"}),
    "with empty keys": {
        "choices": [{"delta": {"content": "x"}, "logprobs": None, "native_finish_reason": None}],
        "usage": None,
    },
}
OTHERS = {
    "text and reasoning": chunk({"content": "x", "reasoning_content": "y"}),
    "reasoning twice": chunk({"reasoning": "x", "reasoning_content": "x"}),
    "text and arguments": chunk({"content": "x", **call(function={"arguments": "y"})}),
    "nothing": chunk({}),
    "an empty text": chunk({"content": ""}),
    "another call": chunk({"tool_calls": [{"index": 1, "id": "c2", "function": {"name": "n", "arguments": "x"}}]}),
    "a call that was not opened": chunk({"tool_calls": [{"index": 7, "function": {"arguments": "x"}}]}),
    "two calls": chunk({"tool_calls": [{"index": 0, "function": {"arguments": "x"}}] * 2}),
    "a name that goes on": chunk(call(function={"name": "er", "arguments": ""})),
    "arguments as an object": chunk(call(function={"arguments": {"a": 1}})),
    "no arguments": chunk(call(function={"arguments": None})),
    "a signature": chunk(call(function={"arguments": "x"}, extra_content={"google": {"thought_signature": "s"}})),
    "another choice": {"choices": [{"index": 1, "delta": {"content": "x"}}]},
    "two choices": {"choices": [{"index": 0, "delta": {"content": "x"}}, {"index": 1, "delta": {"content": "y"}}]},
    "no choice": {"choices": []},
    "an end": {"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "length"}]},
    "the usage": chunk({"content": "x"}, usage={"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}),
    "an error beside it": chunk({"content": "x"}, error={"message": "no", "code": 500}),
    "an error": {"object": "error", "message": "no", "code": 400},
    "log probabilities": {"choices": [{"index": 0, "delta": {"content": "x"}, "logprobs": {"content": []}}]},
    "an unknown field": chunk({"content": "x", "annotations": [1]}),
    "a list of parts": chunk({"content": [{"type": "text", "text": "x"}]}),
    "half a character": chunk({"content": "\ud83d"}),
    "a refusal": chunk({"refusal": "no"}),
}
ALL = {**GROWING, **OTHERS}


@pytest.mark.parametrize("growing", GROWING.values(), ids=GROWING.keys())
def test_what_only_grows_takes_the_short_way(growing: Json):
    assert find_delta(json.dumps(growing).encode()) is not None


@pytest.mark.parametrize("each", ALL.values(), ids=ALL.keys())
def test_both_paths_give_the_same(each: Json):
    chunks = [*OPENED, each, *GROWING.values(), *ENDED]
    assert result(chunks, as_bytes=True) == result(chunks, as_bytes=False)
    first = [each, *OPENED, *ENDED]
    assert result(first, as_bytes=True) == result(first, as_bytes=False)


@given(st.lists(st.sampled_from(list(ALL.values())), max_size=40))
def test_both_paths_give_the_same_in_any_order(chunks: list[Json]):
    assert result([*OPENED, *chunks], as_bytes=True) == result([*OPENED, *chunks], as_bytes=False)


def test_a_stream_of_another_form_is_not_tried_for_ever(monkeypatch: pytest.MonkeyPatch):
    tried: list[bytes] = []

    def count(frame: bytes) -> None:
        tried.append(frame)

    monkeypatch.setattr("segue.protocols.openai_chat.stream.find_delta", count)
    strange = [chunk({"content": "x", "annotations": None, "mine": None}) for _ in range(100)]
    events, _ = result([*OPENED, *strange, *ENDED], as_bytes=True)
    assert len([event for event in events if event.type == "text_delta"]) == 101
    assert len(tried) == _MAX_MISSES + 1
