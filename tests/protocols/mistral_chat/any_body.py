"""Strategies of random bodies for `test_any_body.py`."""

from __future__ import annotations

from hypothesis import strategies as st

from protocols.any_bodies import one, some
from protocols.mistral_chat.endpoints import LARGE, MEDIUM, endpoint_of

THOUGHT = some(type=one("text", "reference"), text=one("hm"), reference_ids=one([1]))
CHUNK = some(
    type=one("text", "image_url", "document_url", "file", "input_audio", "thinking", "reference", "resource", "odd"),
    text=one("hi", " "),
    image_url=one("https://x", "data:image/png;base64,AA-_", {"url": "data:;base64,AAAA", "detail": "low"}),
    document_url=one("https://x", "data:image/png;base64,AAAA", "data:;base64,AAAA"),
    document_name=one("n"),
    file_id=one("f"),
    input_audio=one("AAAA", "talk-1", "https://x", "data:audio/wav;base64,AAAA", {"data": "AAAA", "format": "mp3"}),
    thinking=st.lists(THOUGHT, max_size=3),
    signature=one("s"),
    closed=st.booleans(),
    content=one({"type": "text", "text": "r"}),
    shape=one("s"),
    verbatim=one("v"),
)
CALL = some(
    id=one("c1", "c2", "null"),
    type=one("function"),
    index=one(0),
    function=some(name=one("f", "g"), arguments=one({}, {"a": 1}, "{}", '{"a": 1}', "{", "text")),
)
TURN = some(
    role=one("user", "assistant", "system", "tool", "developer"),
    content=st.one_of(one("hi", " ", "text"), st.lists(CHUNK, max_size=3)),
    tool_calls=st.lists(CALL, max_size=3),
    tool_call_id=one("c1", "c2"),
    name=one("f", "g"),
    prefix=st.booleans(),
    shape=one("s"),
    verbatim=one("v"),
)
BODY = some(
    model=one(LARGE.model.id, "m"),
    messages=st.lists(TURN, max_size=4),
    tools=st.lists(
        some(
            type=one("function"),
            function=some(name=one("f"), description=one("d"), parameters=one({"a": 1}), strict=st.booleans()),
        ),
        max_size=2,
    ),
    stream=st.booleans(),
    stop=one("a", ["a"]),
    tool_choice=one("any", "auto", {"type": "function", "function": {"name": "f", "x": 1}}),
    response_format=one({"type": "json_object"}, {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}),
    reasoning_effort=one("none", "high", "odd"),
    prompt_mode=one("reasoning"),
    max_tokens=one(5),
    shape=one("s"),
    verbatim=one("v"),
)
DELTA = some(
    role=one("assistant", "tool"),
    content=st.one_of(one("hi"), st.lists(CHUNK, max_size=2)),
    tool_calls=st.lists(CALL, max_size=2),
    index=one(0, 1),
)
CHOICE = {"index": one(0, 1), "finish_reason": one("stop", "length", "tool_calls", "odd"), "logprobs": one([1])}
USAGE = some(prompt_tokens=one(3), completion_tokens=one(2), total_tokens=one(5), num_cached_tokens=one(1))
REPLY = some(
    id=one("1"),
    model=one("m"),
    created=one(7),
    object=one("chat.completion", "error"),
    choices=st.lists(some(message=TURN, messages=st.lists(TURN, max_size=3), **CHOICE), max_size=2),
    usage=USAGE,
    error=one("no"),
)
FRAME = some(id=one("1"), choices=st.lists(some(delta=DELTA, **CHOICE), max_size=2), usage=USAGE, error=one("no"))
ENDPOINTS = (LARGE, MEDIUM, endpoint_of(rules={"last_assistant": True}))
