"""Strategies of random bodies for `test_any_body.py`."""

from __future__ import annotations

from hypothesis import strategies as st

from protocols.any_bodies import one, some
from protocols.cohere_chat.endpoints import PLAIN, REASONING

BLOCK = some(
    type=one("text", "image_url", "thinking", "document", "odd"),
    text=one("hi", " ", "text"),
    thinking=one("hm"),
    image_url=one("https://x", {"url": "data:image/png;base64,AA-_"}, {"url": "data:;base64,AAAA", "detail": "low"}),
    document=one({"data": "x"}, {"data": {"a": "b"}, "id": "d"}),
    shape=one("s"),
    verbatim=one("v"),
)
CALL = some(
    id=one("c1", "c2"),
    type=one("function"),
    function=some(name=one("f", "g"), arguments=one({}, {"a": 1}, "{}", '{"a": 1}', "{")),
)
TURN = some(
    role=one("user", "assistant", "system", "tool", "developer"),
    content=st.one_of(one("hi", " ", "text"), st.lists(BLOCK, max_size=3)),
    tool_plan=one("plan"),
    tool_calls=st.lists(CALL, max_size=3),
    tool_call_id=one("c1", "c2"),
    citations=one([{"start": 0}]),
    shape=one("s"),
    verbatim=one("v"),
)
BODY = some(
    model=one(PLAIN.model.id, "m"),
    messages=st.lists(TURN, max_size=4),
    tools=st.lists(
        some(type=one("function"), function=some(name=one("f"), description=one("d"), parameters=one({"a": 1}))),
        max_size=2,
    ),
    stream=st.booleans(),
    stop_sequences=one("a", ["a"]),
    tool_choice=one("REQUIRED", "NONE", "odd"),
    response_format=one({"type": "json_object"}, {"type": "json_object", "json_schema": {}}),
    thinking=one({"type": "enabled"}, {"type": "enabled", "token_budget": 5, "x": 1}, {"type": "disabled"}),
    p=one(0.5),
    documents=one(["a"]),
    shape=one("s"),
    verbatim=one("v"),
)
USAGE = some(
    tokens=some(input_tokens=one(3), output_tokens=one(2.0)),
    billed_units=one({"input_tokens": 3}),
    cached_tokens=one(1),
)
REPLY = some(
    id=one("1"),
    message=TURN,
    finish_reason=one("COMPLETE", "TOOL_CALL", "ERROR", "odd"),
    usage=USAGE,
    logprobs=one([1]),
)
FRAME = some(
    type=one(
        *("message-start", "content-start", "content-delta", "content-end", "tool-plan-delta", "tool-call-start"),
        *("tool-call-delta", "tool-call-end", "citation-start", "citation-end", "message-end", "debug"),
    ),
    index=one(0, 1),
    id=one("1"),
    delta=some(
        message=some(content=BLOCK, tool_plan=one("p"), tool_calls=CALL, citations=one({"start": 0})),
        finish_reason=one("COMPLETE", "odd"),
        usage=USAGE,
        error=one("no"),
    ),
)
ENDPOINTS = (PLAIN, REASONING)
