"""Random bodies: any JSON is checked, and is read and written or refused with an error that names the cause."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from property_testing import scaled_examples
from protocols.anthropic_messages.endpoints import OPUS, SONNET, endpoint_of
from protocols.any_bodies import ODD, assert_checked, assert_reply_comes_back, assert_request_comes_back, one, some
from segue.protocols.anthropic_messages.protocol import PROTOCOL as CODEC

ENDPOINTS = (SONNET, OPUS, endpoint_of("MiniMax-M2.7", "minimax"), endpoint_of("m", "somebody"))


SOURCE = some(type=one("base64", "url", "text", "file", "content"), media_type=one("image/png", "x"), data=one("AAAA"))
BLOCK = some(
    type=one(
        "text", "image", "document", "thinking", "redacted_thinking", "tool_use", "tool_result", "server_tool_use",
        "image_url", "web_search_tool_result", "odd",
    ),
    text=one("hi", " "),
    id=one("t1", "t2"),
    tool_use_id=one("t1", "t2"),
    name=one("f"),
    input=one({}, {"a": 1}),
    content=one("x", [{"type": "text", "text": "a"}]),
    thinking=one("hm"),
    signature=one("s", ""),
    data=one("AAAA"),
    source=SOURCE,
    is_error=st.booleans(),
    cache_control=one({"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}),
)  # fmt: skip
TURN = some(role=one("user", "assistant", "system", "developer"), content=st.lists(BLOCK, max_size=3), name=one("bob"))
BODY = some(
    model=one("claude-sonnet-4-5", "m"),
    max_tokens=one(0, 100, 4000, 10**9),
    messages=st.lists(TURN, max_size=4),
    system=one("Be kind.", [{"type": "text", "text": "a"}]),
    tools=st.lists(
        some(name=one("f", "a.b"), input_schema=one({"type": "object"}), type=one("custom", "bash_20250124"))
    ),
    tool_choice=some(type=one("auto", "any", "tool", "none"), name=one("f"), disable_parallel_tool_use=st.booleans()),
    thinking=some(type=one("enabled", "adaptive", "disabled", "between_tools"), budget_tokens=one(0, 1024, 5000)),
    output_config=some(effort=one("low", "xhigh", "heroic"), format=one({"type": "json_schema", "schema": {}})),
    temperature=one(0, 1, 0.5),
    top_p=one(0.9),
    top_k=one(5),
    stop_sequences=one(["x"], []),
    metadata=some(user_id=one("u")),
    stream=st.booleans(),
)
REPLY = some(
    type=one("message", "error"),
    role=one("assistant"),
    model=one("claude-x"),
    content=st.lists(BLOCK, max_size=3),
    stop_reason=one("end_turn", "tool_use", "max_tokens", "refusal", "new"),
    usage=some(input_tokens=one(1), output_tokens=one(2), cache_creation=ODD),
    error=some(type=one("overloaded_error"), message=one("No."), details=ODD),
)


@scaled_examples(3)
@given(body=BODY, endpoint=st.sampled_from(ENDPOINTS))
def test_any_body_is_checked(body, endpoint):
    assert_checked(CODEC, body, endpoint)


@scaled_examples(3)
@given(body=BODY, endpoint=st.sampled_from(ENDPOINTS))
def test_any_body_that_can_be_read_comes_out_as_it_was(body, endpoint):
    assert_request_comes_back(CODEC, body, endpoint)


@scaled_examples(3)
@given(body=REPLY, endpoint=st.sampled_from(ENDPOINTS))
def test_any_reply_that_can_be_read_comes_out_as_it_was(body, endpoint):
    assert_reply_comes_back(CODEC, body, endpoint)
