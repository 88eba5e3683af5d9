"""Strategies of random bodies for `test_any_body.py`."""

from __future__ import annotations

from hypothesis import strategies as st

from protocols.any_bodies import one, some
from protocols.openai_responses.bodies import PLAIN, THINKER, VENDOR, endpoint

ENDPOINTS = (endpoint(THINKER), endpoint(PLAIN), endpoint(VENDOR))


PART = some(
    type=one("input_text", "output_text", "refusal", "input_image", "input_file", "text", "odd"),
    text=one("hi", ""),
    refusal=one("No."),
    image_url=one("https://x.org/a", "data:image/png;base64,AAAA"),
    detail=one("auto", "low"),
    file_data=one("data:application/pdf;base64,AAAA", "AAAA"),
    filename=one("a.pdf"),
    file_id=one("file-1"),
    annotations=one([], [{"type": "file_path"}]),
    logprobs=one([]),
    prompt_cache_breakpoint=one({"mode": "explicit"}),
)
ITEM = some(
    type=one(
        "message", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "reasoning",
        "web_search_call", "item_reference", "compaction_trigger", "odd",
    ),
    role=one("user", "assistant", "system", "developer", "tool"),
    content=st.one_of(st.lists(PART, max_size=2), one("Hi.")),
    id=one("rs_1", "msg_1", "fc_1", "x" * 65),
    call_id=one("call_1", "call_2"),
    name=one("read", "a.b"),
    arguments=one("{}", '{"a": 1}', "{"),
    input=one("text"),
    output=st.one_of(st.lists(PART, max_size=2), one("done")),
    summary=st.lists(some(type=one("summary_text"), text=one("hm")), max_size=2),
    encrypted_content=one("gAAA"),
    status=one("completed"),
    phase=one("commentary"),
)  # fmt: skip
BODY = some(
    model=one("gpt-5.4", "gpt-4o"),
    input=st.one_of(st.lists(ITEM, max_size=4), one("Hi.")),
    instructions=one("Be brief."),
    tools=st.lists(
        some(
            type=one("function", "custom", "web_search"),
            name=one("read"),
            description=one("", "d"),
            parameters=one({}, {"type": "object"}),
            strict=st.booleans(),
            format=one({"type": "text"}),
        )
    ),
    tool_choice=one("auto", {"type": "function", "name": "read"}),
    reasoning=some(effort=one("none", "low", "heroic"), summary=one("auto", "detailed"), context=one("all_turns")),
    text=some(
        format=some(
            type=one("json_schema", "text"),
            name=one("a", "output", "a b"),
            description=one("d", ""),
            schema=one({}, {"title": "t"}, {"description": "x"}),
            strict=st.booleans(),
        ),
        verbosity=one("low"),
    ),
    include=one(["reasoning.encrypted_content"], [], ["file_search_call.results", "reasoning.encrypted_content"]),
    store=st.booleans(),
    max_output_tokens=one(1, 16, 4000),
    temperature=one(0.5),
    prompt_cache_key=one("k"),
    user=one("u"),
    safety_identifier=one("s"),
    previous_response_id=one("resp_1"),
    stream=st.booleans(),
)
REPLY = some(
    id=one("resp_1"),
    model=one("gpt-5.4"),
    type=one("error"),
    status=one("completed", "incomplete", "failed", "queued", "odd"),
    output=st.lists(ITEM, max_size=3),
    error=some(code=one("c"), message=one("No.")),
    incomplete_details=some(reason=one("max_output_tokens", "odd")),
    usage=some(input_tokens=one(3), output_tokens=one(2), input_tokens_details=some(cached_tokens=one(1))),
)
FRAME = some(
    type=one(
        *("response.created", "response.in_progress", "response.completed", "response.incomplete", "response.failed"),
        *("response.output_item.added", "response.output_item.done", "response.content_part.added"),
        *("response.output_text.delta", "response.refusal.delta", "response.reasoning_summary_text.delta"),
        *("response.function_call_arguments.delta", "response.custom_tool_call_input.delta", "error", "odd"),
    ),
    output_index=one(0, 1),
    content_index=one(0, 1),
    summary_index=one(0),
    item_id=one("msg_1", "fc_1"),
    item=ITEM,
    part=PART,
    delta=one("a", "{"),
    response=REPLY,
    message=one("No."),
)
