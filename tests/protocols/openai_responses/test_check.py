"""What the provider refuses, each with a body that shows it; what it takes is tested on recordings."""

from __future__ import annotations

import pytest

from protocols.openai_responses.bodies import PLAIN, VENDOR, call, endpoint, output, reasoning, text_item, user
from segue.models.model import Model
from segue.protocols.openai_responses.protocol import PROTOCOL as CODEC

LONG = "x" * 65
SOUND = {"type": "input_file", "file_data": "data:audio/mpeg;base64,AAAA", "filename": "a.mp3"}


def strict(*required):
    inner = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "additionalProperties": False,
    }
    return {"type": "function", "name": "f", "parameters": {**inner, "required": list(required)}, "strict": True}


REFUSED = {
    "nothing to answer": ({}, [("messages_missing", ("input",))]),
    "two histories": (
        {"input": "x", "previous_response_id": "resp_1", "conversation": "c"},
        [("options_conflict", ("conversation",))],
    ),
    "too few tokens": ({"input": "x", "max_output_tokens": 1}, [("value_out_of_range", ("max_output_tokens",))]),
    "a parameter of another protocol": ({"input": "x", "max_tokens": 99}, [("option_renamed", ("max_tokens",))]),
    "an output without a call": (
        {"input": [user(), output()]},
        [("result_orphaned", ("input", 1, "call_id"))],
    ),
    "a call without an output": ({"input": [user(), call()]}, [("result_missing", ("input", 1))]),
    "a call id that is too long": (
        {"input": [call(call_id=LONG), output(call_id=LONG)]},
        [("call_id_too_long", ("input", 0, "call_id")), ("call_id_too_long", ("input", 1, "call_id"))],
    ),
    "a name with a dot": (
        {"input": [call(name="a.b"), output()], "tools": [{"type": "function", "name": "a.b"}]},
        [("tool_name_invalid", ("tools", 0, "name")), ("tool_name_invalid", ("input", 0, "name"))],
    ),
    "two items with one id": (
        {"input": [user(id="msg_1"), user(role="assistant", id="msg_1", type="message"), user()]},
        [("value_duplicate", ("input", 1, "id"))],
    ),
    "reasoning at the end": ({"input": [user(), reasoning()]}, [("reasoning_alone", ("input", 1))]),
    "reasoning before a user turn": ({"input": [reasoning(), user()]}, [("reasoning_alone", ("input", 0))]),
    "reasoning behind a message that has its id": (
        {"input": [{"type": "message", "role": "assistant", "id": "msg_1", "content": "yes"}, reasoning(), user()]},
        [("reasoning_alone", ("input", 1))],
    ),
    "stored reasoning before text that is not stored": (
        {"input": [reasoning(), user(role="assistant"), user()]},
        [("reasoning_alone", ("input", 0))],
    ),
    "a strict tool with something to leave out": (
        {"input": "x", "tools": [strict("a")]},
        [("schema_not_strict", ("tools", 0, "parameters"))],
    ),
    "too cold": ({"input": "x", "temperature": -1}, [("value_out_of_range", ("temperature",))]),
    "too hot": ({"input": "x", "temperature": 2.5}, [("value_out_of_range", ("temperature",))]),
    "an effort of a model that does not reason": (
        {"input": "x", "reasoning": {"effort": "none"}},
        [("option_unsupported", ("reasoning", "effort"))],
    ),
    "a role of another protocol": (
        {"input": [user(), user(role="tool", tool_call_id="call_1")]},
        [("role_unknown", ("input", 1, "role"))],
    ),
    "a role that is a list": ({"input": [user(role=["user"])]}, [("role_unknown", ("input", 0, "role"))]),
    "arguments that are an object": (
        {"input": [call(arguments={"path": "a"}), output()]},
        [("arguments_invalid", ("input", 0, "arguments"))],
    ),
    "a second output of one call": (
        {"input": [call(), output(), output()]},
        [("result_duplicate", ("input", 2, "call_id"))],
    ),
    "bare reasoning that nothing stored": (
        {"input": [user(), {"type": "reasoning", "id": "rs_1", "summary": []}, text_item(), user()], "store": False},
        [("item_not_stored", ("input", 1, "id"))],
    ),
    "another provider's item id": (
        {"input": [reasoning(id="thinking_0"), text_item(id="chatcmpl-1"), user()]},
        [("item_id_invalid", ("input", 0, "id")), ("item_id_invalid", ("input", 1, "id"))],
    ),
    "sound as a file": (
        {"input": [user([SOUND])]},
        [("media_type_unsupported", ("input", 0, "content", 0, "file_data"))],
    ),
    "an input part in the model's turn": (
        {"input": [user([{"type": "input_text", "text": "a"}], role="assistant"), user()]},
        [("block_misplaced", ("input", 0, "content", 0, "type"))],
    ),
    "a trigger that is not last": (
        {"input": [{"type": "compaction_trigger"}, user()]},
        [("item_misplaced", ("input", 0))],
    ),
}


@pytest.mark.parametrize(("body", "violations"), REFUSED.values(), ids=REFUSED.keys())
def test_a_refused_body_is_reported_with_the_path(body, violations):
    assert [(found.code, found.path) for found in CODEC.check(body, endpoint(PLAIN))] == violations


def test_a_temperature_is_accepted_with_effort_none():
    body = {"input": "x", "temperature": 0.5, "reasoning": {"effort": "none"}}
    assert CODEC.check(body, endpoint(Model("gpt-5.6-sol", "openai", "openai-responses", reasoning=True))) == []


def test_sampling_is_refused_by_models_that_always_think():
    found = CODEC.check({"input": "x", "temperature": 0.2}, endpoint(Model("o3", "openai", "openai-responses")))
    assert [violation.path for violation in found] == [("temperature",)]


ACCEPTED = {
    "an item and a reference to it": {"input": [user(id="msg_1"), {"type": "item_reference", "id": "msg_1"}]},
    "reasoning behind the text it led to": {"input": [user(), user(role="assistant"), reasoning(), user()]},
    "a pair": {"input": [user(), call(), output(), user()]},
    "an output of a stored call": {"input": [output()], "previous_response_id": "resp_1"},
    "an output of a call that is referred to": {"input": [{"type": "item_reference", "id": "fc_1"}, output()]},
    "an output of a tool search": {
        "input": [{"type": "tool_search_call", "call_id": "call_1", "execution": "client"}, output()]
    },
    "bare reasoning that was stored": {
        "input": [{"type": "reasoning", "id": "rs_1", "summary": []}, text_item(), user()]
    },
    "an id that is used again": {"input": [call(), output(), call(), output()]},
    "a tool search's arguments": {
        "input": [
            {"type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": {"query": "x"}},
            {"type": "tool_search_output", "call_id": "c", "execution": "client", "tools": []},
        ]
    },
    "a summary of what a model that does not reason thought": {"input": "x", "reasoning": {"summary": "auto"}},
    "a call that runs on its own": {"input": [user(), call(**{"async": True})]},
    "reasoning that is not stored before text without an id": {
        "input": [reasoning(), user(role="assistant"), user()],
        "store": False,
    },
    "a strict tool": {"input": "x", "tools": [strict("a", "b")]},
    "reasoning and what it led to": {"input": [user(), reasoning(), text_item(), user()]},
}


@pytest.mark.parametrize("body", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_an_accepted_body_passes(body):
    assert CODEC.check(body, endpoint(PLAIN)) == []


def test_text_behind_a_call_is_refused_where_calls_come_last():
    body = {
        "input": [
            text_item(id="m"),
            call(),
            text_item(id="n"),
            call(call_id="b"),
            output(),
            output(call_id="b"),
            text_item(),
        ]
    }
    picky = endpoint(Model("deepseek-v4-flash", "deepseek", "openai-responses"))
    assert [(found.code, found.path) for found in CODEC.check(body, picky)] == [("text_after_call", ("input", 2))]
    assert CODEC.check(body, endpoint(VENDOR)) == []


def test_a_vendor_may_name_its_items_as_it_likes():
    assert CODEC.check({"input": [text_item(id="x-1"), user()]}, endpoint(VENDOR)) == []
