"""What the provider refuses, each with the text of the refusal; and what it accepts."""

from __future__ import annotations

import pytest
from mistral_common.tokens.tokenizers.base import TokenizerVersion

from protocols.mistral_chat.endpoints import LARGE, endpoint_of
from protocols.mistral_chat.referee import objections
from segue.protocols.mistral_chat.protocol import PROTOCOL as CODEC

HI = {"role": "user", "content": "hi"}
ANSWER = {"role": "assistant", "content": "yes"}
CALLING = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "abcdef123", "function": {"name": "f", "arguments": "{}"}}],
}
DONE = {"role": "tool", "tool_call_id": "abcdef123", "name": "f", "content": "ok"}


def renamed(name) -> dict:
    return {**CALLING, "tool_calls": [{"id": "abcdef123", "function": {"name": name, "arguments": "{}"}}]}


def with_id(call_id) -> list:
    call = {"id": call_id, "function": {"name": "f", "arguments": "{}"}}
    return [HI, {**CALLING, "tool_calls": [call]}, {**DONE, "tool_call_id": call_id}]


REFUSED = {
    "an id of ten characters": (
        [
            HI,
            {**CALLING, "tool_calls": [{"id": "abcdef1234", "function": {"name": "f", "arguments": "{}"}}]},
            {**DONE, "tool_call_id": "abcdef1234"},
        ],
        ["call_id_too_long"],
    ),
    "Conversation must have at least one message": ([], ["messages_missing"]),
    "Input tag 'developer' found using 'role' (chatgpt-md #189)": (
        [{"role": "developer", "content": "x"}, HI],
        ["role_unknown"],
    ),
    "Unexpected role 'system' after role 'assistant' (spring-ai #2380)": (
        [HI, ANSWER, {"role": "system", "content": "x"}, HI],
        ["system_misplaced"],
    ),
    "Unexpected role 'tool' after role 'user'": ([HI, DONE], ["turns_not_alternating", "result_orphaned"]),
    "Expected last role User or Tool (rig #1130)": ([HI, ANSWER], ["last_turn_wrong"]),
    "Assistant message with prefix True must be last message": (
        [HI, {**ANSWER, "prefix": True}, HI],
        ["prefix_misplaced"],
    ),
    "Conversation must start with a user message or system message": ([DONE], ["first_turn_wrong", "result_orphaned"]),
    "Not the same number of function calls and responses": ([HI, CALLING, HI], ["result_missing"]),
    "Not the same number of function calls and responses, the response behind the user's turn": (
        [HI, CALLING, HI, DONE],
        ["turns_not_alternating", "result_missing", "result_orphaned"],
    ),
    "Duplicate tool call id in tool results": ([HI, CALLING, DONE, DONE], ["result_duplicate"]),
    "Unexpected tool call id in tool results": (
        [HI, CALLING, DONE, {**DONE, "tool_call_id": "zzzzzz123"}],
        ["result_orphaned"],
    ),
    "Duplicate tool call id in assistant message": (
        [HI, {**CALLING, "tool_calls": CALLING["tool_calls"] * 2}, DONE, DONE],
        ["call_id_duplicate"],
    ),
    "Tool call id was call_0fypS1hVX but must be a-z, A-Z, 0-9, with a length of 9, code 3280 (gptel #1203)": (
        with_id("call_0fypS1hVX"),
        ["call_id_too_long"],
    ),
    "Tool call id has to be defined in serving mode": (with_id("null"), ["call_id_missing"]),
    "Function name must be a-z, A-Z, 0-9": ([HI, renamed("a.b"), DONE], ["tool_name_invalid"]),
    "Function name of a result": ([HI, CALLING, {**DONE, "name": "a b"}], ["tool_name_invalid"]),
    "Assistant message must have either content or tool_calls, but not none (OpenHands #8685)": (
        [HI, {"role": "assistant", "content": ""}, HI],
        ["content_missing"],
    ),
    "System prompt must have content": ([{"role": "system", "content": None}, HI], ["content_missing"]),
    "Extra inputs are not permitted: reasoning_content (crush #1590)": (
        [HI, {**ANSWER, "reasoning_content": "hm"}, HI],
        ["field_unknown"],
    ),
    "another protocol's block": (
        [{"role": "user", "content": [{"type": "image", "source": {}}]}],
        ["block_type_unknown"],
    ),
    "Unexpected content chunk types in assistant message": (
        [HI, {**ANSWER, "content": [{"type": "image_url", "image_url": "https://e.org"}]}, HI],
        ["block_misplaced"],
    ),
}


@pytest.mark.parametrize(("messages", "codes"), REFUSED.values(), ids=REFUSED.keys())
def test_what_the_provider_refuses_is_named(messages, codes):
    found = CODEC.check({"model": "m", "messages": messages}, LARGE)
    assert [violation.code for violation in found] == codes


BODIES = {
    "a function without a name": (
        {"tools": [{"type": "function", "function": {"parameters": {}}}]},
        ["tool_name_invalid"],
    ),
    "a function name with other characters": (
        {"tools": [{"function": {"name": "a.b", "parameters": {}}}]},
        ["tool_name_invalid"],
    ),
    "a function without a schema": ({"tools": [{"function": {"name": "f"}}]}, ["schema_root_invalid"]),
    "Reasoning prompt mode is not enabled for this model, code 3051 (pi-go #245)": (
        {"prompt_mode": "reasoning"},
        ["option_unsupported"],
    ),
    "a limit below nothing": ({"max_tokens": -1}, ["value_out_of_range"]),
    "a limit of nothing": ({"max_tokens": 0}, []),
    "half a character": ({"metadata": {"a": "\ud800"}}, ["body_not_json"]),
    "the provider's own tools, and no prompt mode": (
        {"tools": [{"type": "document_library", "library_ids": ["x"]}], "prompt_mode": None},
        [],
    ),
}


@pytest.mark.parametrize(("more", "codes"), BODIES.values(), ids=BODIES.keys())
def test_tools_and_options_are_checked(more, codes):
    found = CODEC.check({"model": "m", "messages": [HI], **more}, LARGE)
    assert [violation.code for violation in found] == codes


TAKEN = {
    "instructions after the user's turn": [HI, {"role": "system", "content": "x"}, HI],
    "several turns of one role": [HI, HI, ANSWER, ANSWER, HI],
    "a prefix at the end": [HI, {**ANSWER, "prefix": True}],
    "an id used again in a later turn": [HI, CALLING, DONE, CALLING, DONE],
    "results in another order": [
        HI,
        {
            **CALLING,
            "tool_calls": [*CALLING["tool_calls"], {"id": "abcdef124", "function": {"name": "f", "arguments": "{}"}}],
        },
        {**DONE, "tool_call_id": "abcdef124"},
        DONE,
    ],
    "thinking before calls": [
        HI,
        {**CALLING, "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
        DONE,
    ],
}


@pytest.mark.parametrize("messages", TAKEN.values(), ids=TAKEN.keys())
def test_what_the_library_takes_is_not_held_against_anybody(messages):
    body = {"model": "m", "messages": messages}
    assert objections(body, TokenizerVersion.v11) == []
    assert CODEC.check(body, LARGE) == []


def test_a_picture_in_a_result_is_not_held_against_anybody():
    # refused by the library before tokenizer v15, sent to the service by pi-ai 1.5.0
    body = {
        "model": "m",
        "messages": [HI, CALLING, {**DONE, "content": [{"type": "image_url", "image_url": "https://e.org"}]}],
    }
    assert objections(body, TokenizerVersion.v15) == []
    assert objections(body, TokenizerVersion.v13) != []
    assert CODEC.check(body, LARGE) == []


def test_a_target_that_takes_more_is_not_held_to_less():
    body = {"model": "m", "messages": [*with_id("call_1"), HI]}
    free = endpoint_of(rules={"call_id_alphabet": None})
    assert objections(body, TokenizerVersion.v13) == []
    assert CODEC.check(body, free) == []
    assert [violation.code for violation in CODEC.check(body, LARGE)] == ["call_id_invalid"]


def test_a_user_message_after_a_result_is_refused_only_where_the_rules_say_so():
    body = {"model": "m", "messages": [HI, CALLING, DONE, HI]}
    strict = endpoint_of(rules={"user_after_result": False})  # hosts of older versions of the library (zed #37021)
    assert CODEC.check(body, LARGE) == []
    assert [violation.code for violation in CODEC.check(body, strict)] == ["user_after_result"]


def test_a_model_that_does_not_see_is_not_shown_pictures():
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "https://e.org"}]}],
    }
    assert [violation.code for violation in CODEC.check(body, endpoint_of(input=("text",)))] == ["media_unsupported"]
    assert CODEC.check(body, LARGE) == []
