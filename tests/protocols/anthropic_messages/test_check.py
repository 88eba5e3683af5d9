"""What the provider would refuse, and what it does not although it is widely held to."""

from __future__ import annotations

import pytest

from protocols.anthropic_messages.endpoints import OPUS, SONNET, endpoint_of
from segue.protocols.anthropic_messages.protocol import PROTOCOL as CODEC

TEXT = {"type": "text", "text": "hi"}
CALL = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
CALL2 = {**CALL, "id": "t2"}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}
RESULT2 = {**RESULT, "tool_use_id": "t2"}
SIGNED = {"type": "thinking", "thinking": "hm", "signature": "s"}
TOOL = {"name": "f", "input_schema": {"type": "object"}}
COMPUTER = {"type": "computer_20251124", "name": "computer", "display_width_px": 9, "display_height_px": 9}
MARK = {"cache_control": {"type": "ephemeral"}}
HOUR = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
BUDGET = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4000}
OLD = endpoint_of("claude-opus-4-6")


def user(*content):
    return {"role": "user", "content": list(content)}


def assistant(*content):
    return {"role": "assistant", "content": list(content)}


def system(*content):
    return {"role": "system", "content": list(content)}


def body(*messages, **rest):
    return {"model": "m", "max_tokens": 100, "messages": list(messages or [user(TEXT)]), **rest}


REFUSED = {
    "no messages": ("messages_missing", {"model": "m", "max_tokens": 1, "messages": []}, SONNET),
    "no limit": ("max_tokens_missing", {"messages": [user(TEXT)]}, SONNET),
    "a limit beyond the model's": ("max_tokens_too_large", body(max_tokens=64_001), SONNET),
    "a lone surrogate": ("body_not_json", body(user({"type": "text", "text": "\ud83d"})), SONNET),
    "a role of OpenAI's": ("role_unknown", body({"role": "developer", "content": "x"}), SONNET),
    "a role that is a list": ("role_unknown", body({"role": ["user"], "content": "x"}), SONNET),
    "a part of the other wire's": (
        "block_type_unknown",
        body(user(TEXT, {"type": "image_url", "image_url": {"url": "https://x.org/a.png"}})),
        SONNET,
    ),
    "an image of the assistant's": ("block_misplaced", body(user(TEXT), assistant(TEXT, PNG), user(TEXT)), SONNET),
    "an effort that is a list": ("effort_unsupported", body(output_config={"effort": ["low"]}), OPUS),
    "a turn of blanks": ("text_blank", body(user({"type": "text", "text": " \n"})), SONNET),
    "an empty turn": ("text_blank", body(user()), SONNET),
    "an empty string": ("text_blank", body({"role": "user", "content": ""}), SONNET),
    "a blank system prompt": ("text_blank", body(system=[{"type": "text", "text": ""}]), SONNET),
    "a call without its result": ("result_missing", body(assistant(CALL), user(TEXT)), SONNET),
    "a call at the end": ("result_missing", body(user(TEXT), assistant(CALL)), SONNET),
    "half of the results": ("result_missing", body(assistant(CALL, CALL2), user(RESULT)), SONNET),
    "a result without its call": ("result_orphaned", body(user(RESULT)), SONNET),
    "a result of an earlier turn": (
        "result_orphaned",
        body(assistant(CALL), user(RESULT), assistant(TEXT), user(RESULT)),
        SONNET,
    ),
    "a second result": ("result_duplicate", body(assistant(CALL), user(RESULT, RESULT)), SONNET),
    "text before a result": ("result_misplaced", body(assistant(CALL), user(TEXT, RESULT)), SONNET),
    "text in a turn before the results'": (
        "result_misplaced",
        body(assistant(CALL), user(TEXT), user(RESULT)),
        SONNET,
    ),
    "two calls of one id": ("call_id_duplicate", body(assistant(CALL, CALL), user(RESULT)), SONNET),
    "a call of a bad id": (
        "call_id_invalid",
        body(assistant({**CALL, "id": "a.b"}), user({**RESULT, "tool_use_id": "a.b"})),
        SONNET,
    ),
    "a call whose input is text": ("arguments_invalid", body(assistant({**CALL, "input": "{}"}), user(RESULT)), SONNET),
    "a call of the user's": ("block_misplaced", body(user(TEXT, CALL)), SONNET),
    "a result of the assistant's": ("block_misplaced", body(user(TEXT), assistant(RESULT, TEXT)), SONNET),
    "a server's call of a foreign id": (
        "call_id_invalid",
        body(user(TEXT), assistant({"type": "server_tool_use", "id": "ws_1", "name": "web_search", "input": {}})),
        SONNET,
    ),
    "an image in an error": (
        "result_media_unsupported",
        body(assistant(CALL), user({**RESULT, "content": [PNG], "is_error": True})),
        SONNET,
    ),
    "thinking without a signature": (
        "thinking_unsigned",
        body(user(TEXT), assistant({"type": "thinking", "thinking": "x"}, TEXT)),
        SONNET,
    ),
    "thinking without its text": (
        "thinking_text_missing",
        body(user(TEXT), assistant({"type": "thinking", "signature": "x"}, TEXT)),
        SONNET,
    ),
    "a turn that ends in thinking": ("thinking_last", body(user(TEXT), assistant(TEXT, SIGNED), user(TEXT)), SONNET),
    "a call without thinking while it is on": (
        "thinking_missing",
        body(user(TEXT), assistant(TEXT, CALL), user(RESULT), **BUDGET),
        SONNET,
    ),
    "a blank text beside thinking": (
        "text_blank",
        body(user(TEXT), assistant(SIGNED, {"type": "text", "text": "\n"}, CALL), user(RESULT)),
        SONNET,
    ),
    "a mark on thinking": (
        "cache_mark_misplaced",
        body(user(TEXT), assistant({**SIGNED, **MARK}, TEXT), user(TEXT)),
        SONNET,
    ),
    "a mark on a tool loaded later": (
        "cache_mark_misplaced",
        body(tools=[TOOL, {**TOOL, "name": "g", "defer_loading": True, **MARK}]),
        SONNET,
    ),
    "an answer begun while thinking is on": ("thinking_missing", body(user(TEXT), assistant(TEXT), **BUDGET), SONNET),
    "an answer begun with thinking while it is off": (
        "thinking_while_off",
        body(user(TEXT), assistant(SIGNED, TEXT), thinking={"type": "disabled"}),
        SONNET,
    ),
    "thinking in a cycle while it is off": (
        "thinking_while_off",
        body(user(TEXT), assistant(SIGNED, CALL), user(RESULT), thinking={"type": "disabled"}),
        SONNET,
    ),
    "an answer begun for a model that takes none": ("last_turn_wrong", body(user(TEXT), assistant(TEXT)), OPUS),
    "an answer begun that ends in a space": (
        "final_space",
        body(user(TEXT), assistant({"type": "text", "text": "So "})),
        SONNET,
    ),
    "instructions for a model that takes none": ("system_unsupported", body(user(TEXT), system(TEXT)), SONNET),
    "instructions at the beginning": ("system_misplaced", body(system(TEXT), user(TEXT)), OPUS),
    "instructions behind an answer": ("system_misplaced", body(user(TEXT), assistant(TEXT), system(TEXT)), OPUS),
    "instructions before the user's turn": ("system_misplaced", body(user(TEXT), system(TEXT), user(TEXT)), OPUS),
    "a tool of a bad name": ("tool_name_invalid", body(tools=[{**TOOL, "name": "a.b"}]), SONNET),
    "a tool of the Chat protocol": (
        "tool_name_invalid",
        body(tools=[{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]),
        SONNET,
    ),
    "a tool of a name too long": ("tool_name_invalid", body(tools=[{**TOOL, "name": "a" * 129}]), SONNET),
    "two tools of one name": ("value_duplicate", body(tools=[TOOL, TOOL]), SONNET),
    "a tool without a schema": ("schema_root_invalid", body(tools=[{"name": "f"}]), SONNET),
    "a schema of no type": ("schema_root_invalid", body(tools=[{"name": "f", "input_schema": {}}]), SONNET),
    "a schema of alternatives": (
        "schema_root_invalid",
        body(tools=[{"name": "f", "input_schema": {"type": "object", "anyOf": []}}]),
        SONNET,
    ),
    "any tool of none": ("tool_choice_without_tools", body(tool_choice={"type": "any"}), SONNET),
    "a tool that is not there": (
        "tool_choice_invalid",
        body(tools=[TOOL], tool_choice={"type": "tool", "name": "g"}),
        SONNET,
    ),
    "a forced tool while thinking": (
        "tool_choice_with_thinking",
        body(tools=[TOOL], tool_choice={"type": "any"}, **BUDGET),
        SONNET,
    ),
    "too small a budget": (
        "thinking_budget_invalid",
        body(thinking={"type": "enabled", "budget_tokens": 1023}, max_tokens=4000),
        SONNET,
    ),
    "a budget beyond the limit": (
        "thinking_budget_invalid",
        body(thinking={"type": "enabled", "budget_tokens": 4000}, max_tokens=4000),
        SONNET,
    ),
    "a forced tool for a model that chooses itself": (
        "tool_choice_invalid",
        body(tools=[TOOL], tool_choice={"type": "any"}),
        endpoint_of("claude-opus-5-5", "somebody"),
    ),
    "no thinking for a model that always thinks": (
        "thinking_mode_unsupported",
        body(thinking={"type": "disabled"}),
        endpoint_of("claude-fable-5", "somebody"),
    ),
    **{
        f"a budget for a model without budgets: {name}": (
            "thinking_mode_unsupported",
            body(**BUDGET),
            endpoint_of(name),
        )
        for name in ("claude-opus-4-7", "claude-sonnet-5", "claude-opus-5-5", "claude-haiku-5-5", "claude-fable-5-2")
    },
    "adaptive thinking for an older model": ("thinking_mode_unsupported", body(thinking={"type": "adaptive"}), SONNET),
    "notes between calls of another model": (
        "thinking_mode_unsupported",
        body(thinking={"type": "between_tools"}),
        endpoint_of("claude-opus-5-5"),
    ),
    "notes between calls beside another field": (
        "thinking_mode_unsupported",
        body(thinking={"type": "between_tools", "display": "omitted"}),
        endpoint_of("claude-sonnet-5-5"),
    ),
    "notes between calls with a high effort": (
        "effort_unsupported",
        body(thinking={"type": "between_tools"}, output_config={"effort": "max"}),
        endpoint_of("claude-sonnet-5-5"),
    ),
    "a high effort without thinking": (
        "effort_unsupported",
        body(thinking={"type": "disabled"}, output_config={"effort": "max"}),
        endpoint_of("claude-haiku-5-5"),
    ),
    "a computer of an earlier generation": (
        "tool_type_unsupported",
        body(tools=[COMPUTER]),
        endpoint_of("claude-opus-5-5"),
    ),
    "a forced tool for Fable 5.2": (
        "tool_choice_invalid",
        body(tools=[TOOL], tool_choice={"type": "any"}),
        endpoint_of("claude-fable-5-2", "somebody"),
    ),
    "an effort the model does not have": ("effort_unsupported", body(output_config={"effort": "xhigh"}), OLD),
    "an effort that does not exist": ("effort_unsupported", body(output_config={"effort": "minimal"}), OPUS),
    "a temperature for a model that takes none": ("option_unsupported", body(temperature=0.5), OPUS),
    "top_k for a model that takes none": ("option_unsupported", body(top_k=5), OPUS),
    "a temperature while thinking": ("option_with_thinking", body(temperature=0.5, **BUDGET), SONNET),
    "a temperature and top_p": ("options_conflict", body(temperature=0.5, top_p=0.9), SONNET),
    "a temperature beyond one": ("value_out_of_range", body(temperature=1.5), SONNET),
    "five cache marks": ("cache_marks_too_many", body(user(*[{**TEXT, **MARK}] * 5)), SONNET),
    "four cache marks, and that of the request": (
        "cache_marks_too_many",
        body(user(*[{**TEXT, **MARK}] * 4), **MARK),
        SONNET,
    ),
    "a cache mark on nothing": ("cache_mark_misplaced", body(user(TEXT, {"type": "text", "text": "", **MARK})), SONNET),
    "an hour after five minutes": ("cache_mark_order", body(user({**TEXT, **HOUR}), tools=[{**TOOL, **MARK}]), SONNET),
    "an image of a type it does not know": (
        "media_type_unsupported",
        body(user({"type": "image", "source": {"type": "base64", "media_type": "image/svg+xml", "data": ""}})),
        SONNET,
    ),
    "an image too large": (
        "media_too_large",
        body(user({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 5_300_000}})),
        SONNET,
    ),
    "where an image lies, at a host that does not fetch": (
        "media_source_unsupported",
        body(user({"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}})),
        endpoint_of("anthropic.claude-sonnet-5", "amazon-bedrock"),
    ),
    "where a document lies, at a host that does not fetch": (
        "media_source_unsupported",
        body(user({"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}})),
        endpoint_of("anthropic.claude-sonnet-5", "amazon-bedrock"),
    ),
    "too many images": ("media_too_many", body(user(*[PNG] * 101)), SONNET),
}


@pytest.mark.parametrize(("code", "given", "endpoint"), REFUSED.values(), ids=REFUSED.keys())
def test_what_would_be_refused_is_named(code, given, endpoint):
    assert code in {violation.code for violation in CODEC.check(given, endpoint)}


@pytest.mark.parametrize(("code", "given", "endpoint"), REFUSED.values(), ids=REFUSED.keys())
def test_a_violation_leads_to_its_place(code, given, endpoint):
    (path,) = {violation.path for violation in CODEC.check(given, endpoint) if violation.code == code}
    place = given
    for step in path[:-1]:
        place = place[step]
    assert not path or isinstance(place, dict | list)


ACCEPTED = {
    "a budget for 4.6": (body(**BUDGET), OLD),
    "notes between calls": (
        body(thinking={"type": "between_tools"}, output_config={"effort": "high"}),
        endpoint_of("claude-sonnet-5-5"),
    ),
    "no thinking at a high effort": (
        body(thinking={"type": "disabled"}, output_config={"effort": "high"}),
        endpoint_of("claude-haiku-5-5"),
    ),
    "a computer of an earlier generation at Bedrock": (
        body(tools=[COMPUTER]),
        endpoint_of("anthropic.claude-opus-5-5", "amazon-bedrock"),
    ),
    "a computer of an earlier generation for Opus 5": (body(tools=[COMPUTER]), endpoint_of("claude-opus-5")),
    "a temperature and top_p for Sonnet 4": (
        body(temperature=0.5, top_p=0.9),
        endpoint_of("claude-sonnet-4-20250514"),
    ),
    "a turn paused in a block of an unknown type": (
        body(user(TEXT), {"role": "assistant", "content": [{"type": "new_server_work", "id": "1"}]}),
        OPUS,
    ),
    "the least": (body(), SONNET),
    "a limit of nothing": (body(max_tokens=0), SONNET),
    "three cache marks, the last one also that of the request": (body(user(*[{**TEXT, **MARK}] * 3), **MARK), SONNET),
    "the least top_p with thinking": (body(**BUDGET, top_p=0.95), OLD),
    "content as a string": (body({"role": "user", "content": "hi"}), SONNET),
    "a blank text beside another": (body(user(TEXT, {"type": "text", "text": " "})), SONNET),
    "an empty answer to begin with": (body(user(TEXT), assistant()), SONNET),
    "the assistant first": (body(assistant(TEXT), user(TEXT)), SONNET),
    "several turns of one role": (body(user(TEXT), user(TEXT), assistant(TEXT), assistant(TEXT), user(TEXT)), OPUS),
    "results in turns of their own": (body(assistant(CALL, CALL2), user(RESULT), user(RESULT2), user(TEXT)), SONNET),
    "an id used again in a later turn": (body(assistant(CALL), user(RESULT), assistant(CALL), user(RESULT)), SONNET),
    "a call without tools in the request": (body(assistant(CALL), user(RESULT)), SONNET),
    "an MCP call without its result": (
        body(
            assistant({"type": "mcp_tool_use", "id": "m", "name": "f", "server_name": "s", "input": {}}, CALL),
            user(RESULT),
        ),
        SONNET,
    ),
    "a reply that was paused": (
        body(user(TEXT), assistant({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}})),
        OPUS,
    ),
    "a result without content": (body(assistant(CALL), user({"type": "tool_result", "tool_use_id": "t1"})), SONNET),
    "instructions in a row": (body(user(TEXT), system(TEXT), system(TEXT), assistant(TEXT), user(TEXT)), OPUS),
    "instructions at the end": (body(user(TEXT), system(TEXT)), OPUS),
    "a forced tool beside adaptive thinking": (
        body(tools=[TOOL], tool_choice={"type": "any"}, thinking={"type": "adaptive"}),
        OLD,
    ),
    "an automatic choice without tools": (body(tool_choice={"type": "auto"}), SONNET),
    "a budget that spans rounds of tools": (
        body(tools=[TOOL], thinking={"type": "enabled", "budget_tokens": 5000}, max_tokens=4000),
        SONNET,
    ),
    "a temperature of one while thinking": (body(temperature=1, **BUDGET), SONNET),
    "thinking where calls were made without it, later in the cycle": (
        body(user(TEXT), assistant(SIGNED, CALL), user(RESULT), assistant(CALL2), user(RESULT2), **BUDGET),
        SONNET,
    ),
    "thinking over a cycle that is closed": (
        body(user(TEXT), assistant(CALL), user(RESULT), assistant(TEXT), user(TEXT), **BUDGET),
        SONNET,
    ),
    "four cache marks, the long ones first": (
        body(user({**TEXT, **MARK}), tools=[{**TOOL, **HOUR}], system=[{**TEXT, **HOUR}, {**TEXT, **MARK}]),
        SONNET,
    ),
    "marks that are null": (body(user(*[{**TEXT, "cache_control": None}] * 5)), SONNET),
    "server tools and toolsets": (
        body(tools=[{"type": "web_search_20250305", "name": "web_search"}, {"type": "computer_toolset_20260801"}]),
        SONNET,
    ),
    "unsigned thinking where it is taken": (
        body(user(TEXT), assistant({"type": "thinking", "thinking": "x", "signature": ""}, TEXT), user(TEXT)),
        endpoint_of("accounts/fireworks/models/glm-5p1", "fireworks"),
    ),
}


@pytest.mark.parametrize(("given", "endpoint"), ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_is_accepted_is_not_named(given, endpoint):
    assert CODEC.check(given, endpoint) == []
