"""Strategies of random bodies for `test_any_body.py`."""

from __future__ import annotations

from hypothesis import strategies as st

from protocols.any_bodies import one, some
from protocols.google_interactions.endpoints import NEWER, OLDER, endpoint_of

ENDPOINTS = (OLDER, NEWER, endpoint_of("m", "somebody"))
CONTENT = some(
    type=one("text", "image", "audio", "video", "document", "odd"),
    text=one("hi", ""),
    data=one("AAAA", "+/8="),
    uri=one("files/a", "https://x.org/i.png", "gs://b/o"),
    mime_type=one("image/png", "application/pdf"),
    name=one("film"),
    annotations=one([{"type": "url_citation", "url": "https://a.org"}]),
    step=one("s"),
    verbatim=one("v"),
)
CONTENTS = st.lists(CONTENT, max_size=3)
STEP = some(
    type=one(
        *("user_input", "model_output", "thought", "function_call", "function_result", "google_search_call"),
        *("code_execution_result", "text", "image", "odd"),
    ),
    content=st.one_of(one("hi"), CONTENTS),
    summary=CONTENTS,
    signature=one("c2VhbA=="),
    id=one("c1", "c2"),
    call_id=one("c1", "c2"),
    name=one("f", "g"),
    arguments=one({}, {"a": 1}, '{"a": 1}', "{"),
    result=st.one_of(one("x", "", {"a": 1}, {}), CONTENTS),
    is_error=st.booleans(),
    error=one({"message": "no"}),
    text=one("hi"),
    verbatim=one("v"),
)
BODY = some(
    model=one(NEWER.model.id, "m"),
    agent=one("deep-research"),
    input=st.one_of(one("hi", ""), CONTENT, CONTENTS, st.lists(STEP, max_size=4)),
    system_instruction=one("Be brief."),
    tools=st.lists(
        some(
            type=one("function", "google_search"), name=one("f"), description=one("d", ""), parameters=one({}, {"a": 1})
        ),
        max_size=2,
    ),
    generation_config=some(
        max_output_tokens=one(5),
        temperature=one(0.5),
        stop_sequences=one("a", ["a"], [1]),
        thinking_level=one("low", "minimal", "odd"),
        thinking_summaries=one("auto", "none"),
        tool_choice=one("auto", "any", "validated", {"allowed_tools": {"mode": "any", "tools": ["f"]}}),
        speech_config=one([]),
    ),
    response_format=one(
        {"type": "text", "mime_type": "application/json", "schema": {"a": 1}}, [{"type": "image"}], {"type": "text"}
    ),
    store=st.booleans(),
    stream=st.booleans(),
    previous_interaction_id=one("v1"),
    labels=one({"a": "b"}),
    verbatim=one("v"),
)
USAGE = some(total_input_tokens=one(3), total_output_tokens=one(2), total_thought_tokens=one(1), total_tokens=one(6))
REPLY = some(
    id=one("v1"),
    model=one("m"),
    status=one("completed", "requires_action", "failed", "incomplete", "cancelled", "in_progress", "odd"),
    steps=st.lists(STEP, max_size=4),
    errors=one([{"code": "safety", "message": "no"}], [{}]),
    error=one({"code": "internal", "message": "no"}, "no"),
    usage=USAGE,
    created=one("2026-11-17T03:00:00Z"),
)
DELTA = some(
    type=one(
        *("text", "thought_summary", "thought_signature", "arguments_delta", "text_annotation_delta", "image"),
        *("google_search_result", "code_execution_result", "odd"),
    ),
    text=one("a"),
    content=CONTENT,
    signature=one("c2VhbA=="),
    arguments=st.one_of(one('{"a"', ": 1}", {"a": 1})),
    annotations=one([{"type": "url_citation"}]),
    data=one("AAAA"),
    result=one("x", [{"a": 1}]),
)
FRAME = some(
    event_type=one(
        *("interaction.created", "interaction.status_update", "interaction.completed"),
        *("step.start", "step.delta", "step.stop", "error", "odd"),
    ),
    index=one(0, 1),
    step=STEP,
    delta=DELTA,
    interaction=REPLY,
    status=one("in_progress"),
    error=one({"code": "internal", "message": "no"}, "no"),
)
