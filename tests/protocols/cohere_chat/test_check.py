"""What the provider refuses, each with its source; and what it accepts."""

from __future__ import annotations

import pytest

from protocols.cohere_chat.endpoints import PLAIN, REASONING, endpoint_of
from segue.protocols.cohere_chat.protocol import PROTOCOL as CODEC

HI = {"role": "user", "content": "hi"}
CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CALLING = {"role": "assistant", "tool_calls": [CALL]}
DONE = {"role": "tool", "tool_call_id": "a", "content": "ok"}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}

REFUSED = {
    "no messages": ([], ["messages_missing"]),
    "a role that there is not": ([{"role": "developer", "content": "x"}], ["role_unknown"]),
    "text content is not allowed when tool_calls are provided (vercel/ai #5794)": (
        [HI, {**CALLING, "content": "Let me see."}, DONE],
        ["text_with_calls"],
    ),
    "the same in a block": (
        [HI, {**CALLING, "content": [{"type": "text", "text": "Let me see."}]}, DONE],
        ["text_with_calls"],
    ),
    "another protocol's block": ([{"role": "user", "content": [{"type": "file", "file": {}}]}], ["block_type_unknown"]),
    "a block of another role": (
        [{"role": "user", "content": [{"type": "thinking", "thinking": "x"}]}],
        ["block_misplaced"],
    ),
    "a result without a call": ([HI, {**DONE, "tool_call_id": "z"}], ["result_orphaned"]),
    "a second result": ([HI, CALLING, DONE, DONE], ["result_duplicate"]),
    "two calls with one id": ([HI, {**CALLING, "tool_calls": [CALL, CALL]}, DONE], ["call_id_duplicate"]),
}


@pytest.mark.parametrize(("messages", "codes"), REFUSED.values(), ids=REFUSED.keys())
def test_what_the_provider_refuses_is_named(messages, codes):
    found = CODEC.check({"model": "m", "messages": messages}, PLAIN)
    assert [violation.code for violation in found] == codes


BODIES = {
    "a name with a dash": ({"tools": [{"function": {"name": "a-b", "parameters": {}}}]}, ["tool_name_invalid"]),
    "a name that begins with a digit": (
        {"tools": [{"function": {"name": "9a", "parameters": {}}}]},
        ["tool_name_invalid"],
    ),
    "no schema": ({"tools": [{"function": {"name": "f"}}]}, ["schema_root_invalid"]),
    "unknown field: parameter 'requires_confirmation' (agno #3503)": (
        {"tools": [{"function": {**TOOL["function"], "requires_confirmation": True}}]},
        ["field_unknown"],
    ),
    "a choice that there is not": ({"tool_choice": "auto", "tools": [TOOL]}, ["tool_choice_invalid"]),
    "a tool demanded where there is none": ({"tool_choice": "REQUIRED"}, ["tool_choice_without_tools"]),
    "six stops": ({"stop_sequences": list("abcdef")}, ["stop_invalid"]),
    "all of the likeliest": ({"p": 1.0}, ["value_out_of_range"]),
    "nothing to think with": ({"thinking": {"type": "enabled", "token_budget": 0}}, ["thinking_budget_invalid"]),
    "a format beside tools": ({"response_format": {"type": "json_object"}, "tools": [TOOL]}, ["json_with_tools"]),
    "a format beside documents": (
        {"response_format": {"type": "json_object"}, "documents": ["x"]},
        ["json_with_tools"],
    ),
    "half a character": ({"documents": ["\ud800"]}, ["body_not_json"]),
    "all of it well": (
        {"tools": [TOOL], "tool_choice": "NONE", "p": 0.99, "thinking": {"type": "enabled"}, "stop_sequences": ["a"]},
        [],
    ),
}


@pytest.mark.parametrize(("more", "codes"), BODIES.values(), ids=BODIES.keys())
def test_tools_and_options_are_checked(more, codes):
    found = CODEC.check({"model": "m", "messages": [HI], **more}, REASONING)
    assert [violation.code for violation in found] == codes


TAKEN = {
    "turns of one role in a row, and an assistant last (SillyTavern #3692)": [
        HI,
        HI,
        {"role": "assistant", "content": "a"},
    ],
    "instructions anywhere (Risuai #633)": [HI, {"role": "system", "content": "x"}],
    "a plan beside calls": [HI, {**CALLING, "tool_plan": "I will."}, DONE],
    "an empty text beside calls": [HI, {**CALLING, "content": [{"type": "text", "text": ""}]}, DONE],
    "an empty string beside calls": [HI, {**CALLING, "content": ""}, DONE],
    "thinking beside calls": [HI, {**CALLING, "content": [{"type": "thinking", "thinking": "hm"}]}, DONE],
}


@pytest.mark.parametrize("messages", TAKEN.values(), ids=TAKEN.keys())
def test_what_is_taken_is_not_held_against_anybody(messages):
    assert CODEC.check({"model": "m", "messages": messages}, PLAIN) == []


def test_a_model_that_does_not_see_is_not_shown_pictures():
    picture = {"type": "image_url", "image_url": {"url": "https://e.org"}}
    body = {"model": "m", "messages": [{"role": "user", "content": [picture]}]}
    assert [violation.code for violation in CODEC.check(body, endpoint_of(input=("text",)))] == ["media_unsupported"]
    assert CODEC.check(body, PLAIN) == []
