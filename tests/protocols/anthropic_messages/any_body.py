"""Strategies of random bodies for `test_any_body.py`."""

from __future__ import annotations

from hypothesis import strategies as st

from protocols.anthropic_messages.endpoints import OPUS, SONNET, endpoint_of
from protocols.any_bodies import ODD, one, some

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
FRAME = some(
    type=one(
        *("message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta"),
        *("message_stop", "ping", "error", "odd"),
    ),
    index=one(0, 1),
    message=REPLY,
    content_block=BLOCK,
    delta=some(
        type=one("text_delta", "thinking_delta", "signature_delta", "input_json_delta", "citations_delta", "odd"),
        text=one("a"),
        thinking=one("t"),
        signature=one("s"),
        partial_json=one("{", "}"),
        citation=one({"type": "char_location"}),
        stop_reason=one("end_turn", "new"),
    ),
    usage=some(output_tokens=one(2)),
    error=some(type=one("overloaded_error"), message=one("No.")),
)
