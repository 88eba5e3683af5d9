"""Strategies of random bodies for `test_any_body.py`."""

from __future__ import annotations

from hypothesis import strategies as st

from protocols.any_bodies import one, some
from protocols.ollama_chat.endpoints import GPT_OSS, QWEN

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
ENDPOINTS = (QWEN, GPT_OSS)
FRAME = REPLY
