"""Whole requests, both ways: turns, system prompt, tools."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from protocols.anthropic_messages.endpoints import OPUS, SONNET, endpoint_of
from segue.conversation.content import CacheMark, ImageContent, NativeContent, TextContent, ToolCall
from segue.conversation.context import Context, NativeTool, Options, Prompt, ToolDefinition
from segue.conversation.messages import AssistantMessage, StopReason, SystemMessage, ToolResultMessage, UserMessage
from segue.errors import DecodeError, EncodeError
from segue.models.model import Model
from segue.protocols.anthropic_messages.protocol import PROTOCOL as CODEC
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.verbatim import data_of
from segue.protocols.registry import resolve_dialect, resolve_rules

P = "anthropic-messages"
TEXT = {"type": "text", "text": "hi"}
CALL = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
CALL2 = {"type": "tool_use", "id": "t2", "name": "g", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": [TEXT]}
RESULT2 = {"type": "tool_result", "tool_use_id": "t2", "content": []}
TOOL = {"name": "f", "description": "F", "input_schema": {"type": "object", "properties": {}}}


def body_of(*messages, **rest):
    return {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": list(messages), **rest}


def user(*content):
    return {"role": "user", "content": list(content)}


def assistant(*content):
    return {"role": "assistant", "content": list(content)}


def asked(*messages, **rest):
    return body_of(user(TEXT), assistant(CALL, CALL2), *messages, **rest)


BODIES = {
    "content as a string": body_of({"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}),
    "an empty string": body_of({"role": "user", "content": ""}),
    "content that is null, missing or an empty list": body_of(
        {"role": "user", "content": None}, {"role": "assistant"}, {"role": "user", "content": []}
    ),
    "results and text in one turn": asked(user(RESULT, RESULT2, TEXT)),
    "results and text in turns of their own": asked(user(RESULT), user(RESULT2), user(TEXT)),
    "text as a string after results": asked(user(RESULT, RESULT2), {"role": "user", "content": "hi"}),
    "text before and between results": asked(user(TEXT, RESULT, TEXT, TEXT, RESULT2, TEXT)),
    "two turns of the user": body_of(user(TEXT), user(TEXT)),
    "two turns of the assistant": body_of(user(TEXT), assistant(TEXT), assistant(TEXT)),
    "a result that is a string": asked(user({**RESULT, "content": "x"}, {**RESULT2, "content": ""})),
    "a result without content": asked(user({"type": "tool_result", "tool_use_id": "t1"}, {**RESULT2, "content": None})),
    "a result whose is_error is false": asked(user({**RESULT, "is_error": False}, {**RESULT2, "is_error": True})),
    "a result with a mark, of a toolset": asked(
        user({**RESULT, "cache_control": {"type": "ephemeral"}, "toolset_name": "computer"}, RESULT2)
    ),
    "a result with an image, a reference and a search result": asked(
        user(
            {
                **RESULT,
                "content": [
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
                    {"type": "tool_reference", "tool_name": "f"},
                    {"type": "search_result", "source": "s", "title": "t", "content": [TEXT]},
                ],
            },
            RESULT2,
        )
    ),
    "a result without an id": asked(user({"type": "tool_result", "content": "x"})),
    "turns with more keys than role and content": asked(
        {"role": "user", "content": [RESULT, RESULT2, TEXT], "name": "bob"},
        {"role": "assistant", "content": "x", "id": "msg_1"},
        {"role": "user", "content": [TEXT], "name": None},
        {"role": "system", "content": "now", "clear_at": "x"},
    ),
    "an unknown role": body_of({"role": "developer", "content": "hi"}),
    "instructions in mid-conversation": body_of(user(TEXT), {"role": "system", "content": [TEXT]}, assistant(TEXT)),
    "a system prompt as a string": body_of(user(TEXT), system="Be kind."),
    "an empty system prompt": body_of(user(TEXT), system=""),
    "a system prompt of blocks": body_of(user(TEXT), system=[{**TEXT, "cache_control": {"type": "ephemeral"}}]),
    "a system prompt that is null": body_of(user(TEXT), system=None),
    "no tools, as a list": body_of(user(TEXT), tools=[]),
    "no tools, as null": body_of(user(TEXT), tools=None),
    "tools of every kind": body_of(
        user(TEXT),
        tools=[
            TOOL,
            {**TOOL, "name": "g", "type": "custom", "strict": True, "defer_loading": True},
            {"name": "h", "input_schema": {}, "description": "", "type": None},
            {
                "name": "i",
                "input_schema": {"type": "object"},
                "description": None,
                "cache_control": {"type": "ephemeral"},
            },
            {
                "type": "web_search_20250305",
                "name": "web_search",
                "max_uses": 3,
                "cache_control": {"type": "ephemeral"},
            },
            {"type": "computer_toolset_20260801", "display_width_px": 100},
            {"name": "no_schema"},
        ],
    ),
    "a turn without a role": body_of({"content": "hi"}, assistant(TEXT), {"content": [RESULT, TEXT]}),
    "a model of null": {"model": None, "max_tokens": 1, "messages": [user(TEXT)]},
    "a model that is a number": {"model": 5, "max_tokens": 1, "messages": [user(TEXT)]},
    "no model": {"max_tokens": 1, "messages": [user(TEXT)], "anthropic_version": "vertex-2023-10-16"},
    "no limit": {"model": "m", "messages": [user(TEXT)]},
    "a limit of nothing, to warm the cache": {"model": "m", "max_tokens": 0, "messages": [user(TEXT)]},
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
@pytest.mark.parametrize(
    "endpoint", [SONNET, OPUS, endpoint_of("glm-5", "somebody")], ids=["sonnet", "opus", "somebody"]
)
def test_a_body_comes_out_as_it_was(body, endpoint):
    assert CODEC.encode_request(CODEC.decode_request(body, endpoint), endpoint) == body


def read(body) -> Context:
    return CODEC.decode_request(body, SONNET).context


def test_a_turn_of_results_and_text_is_read_as_messages():
    _, _, first, second, text = read(asked(user(RESULT, RESULT2), user(TEXT))).messages
    assert first == ToolResultMessage(tool_call_id="t1", tool_name="f", content=(TextContent(text="hi"),))
    assert second == ToolResultMessage(tool_call_id="t2", tool_name="g", content=())
    assert text == UserMessage.of("hi")
    _, _, *results, joined = read(asked(user(RESULT, RESULT2, TEXT))).messages
    assert results == [first, second]
    choice = {"@turn": {"from": "new", "to": "same"}}
    assert joined == UserMessage(content=(TextContent(text="hi"),), extra={P: {"verbatim": choice}})


def test_an_assistant_turn_has_its_origin():
    message = read(asked()).messages[1]
    assert message == AssistantMessage(
        content=(ToolCall(id="t1", name="f"), ToolCall(id="t2", name="g")),
        protocol=P,
        provider="anthropic",
        model="claude-sonnet-4-5",
        stop_reason=StopReason.TOOL_USE,
    )


def test_a_reused_id_pairs_with_the_call_before_it():
    body = body_of(assistant({**CALL, "name": "old"}), user(RESULT), assistant(CALL), user(RESULT))
    assert [m.tool_name for m in read(body).messages if m.role == "toolResult"] == ["old", "f"]


def test_a_bare_list_of_messages_is_a_request():
    prompt = CODEC.decode_request([user(TEXT)], SONNET)
    assert prompt == Prompt(context=Context(messages=(UserMessage.of("hi"),)))


def test_tools_differ_by_who_runs_them():
    own, server = read(body_of(user(TEXT), tools=[TOOL, {"type": "bash_20250124", "name": "bash"}])).tools
    assert own == ToolDefinition(name="f", description="F", parameters={"type": "object", "properties": {}})
    assert server == NativeTool(protocol=P, definition={"type": "bash_20250124", "name": "bash"})


WRONG = {
    "no messages": ({"model": "m"}, ("messages",)),
    "messages that are no list": ({"messages": "hi"}, ("messages",)),
    "a message that is no object": ({"messages": ["hi"]}, ("messages", 0)),
    "content that is a number": ({"messages": [{"role": "user", "content": 3}]}, ("messages", 0, "content")),
    "a block that is no object": (
        {"messages": [{"role": "assistant", "content": ["x"]}]},
        ("messages", 0, "content", 0),
    ),
    "tools that are an object": ({"messages": [], "tools": {"a": 1}}, ("tools",)),
    "a system prompt that is a number": ({"messages": [], "system": 3}, ("system",)),
}


@pytest.mark.parametrize(("body", "path"), WRONG.values(), ids=WRONG.keys())
def test_a_malformed_body_is_refused_with_its_path(body, path):
    with pytest.raises(DecodeError) as caught:
        CODEC.decode_request(body, SONNET)
    assert caught.value.path == path


def test_a_changed_message_is_written_in_the_default_format():
    context = read(asked(user({**RESULT, "content": "x", "is_error": False}, RESULT2, TEXT)))
    *before, result, second, text = context.messages
    changed = replace(result, is_error=True, content=(TextContent(text="a"), TextContent(text="b")))
    body: Any = CODEC.encode_request(Prompt(context=Context(messages=(*before, changed, second, text))), SONNET)
    block = body["messages"][-1]["content"][0]
    assert block["is_error"] is True
    assert [piece["text"] for piece in block["content"]] == ["a", "b"]


def test_that_a_result_is_no_error_is_format_and_not_data():
    [*_, result] = read(asked(user({**RESULT, "is_error": False}))).messages
    assert result.extra is not None
    assert data_of(result.extra, P) == {}


OLD = {"shape": {"joined": True, "content": "string", "is_error": False, "null": ["x"], "direct": True}, "x": 1}


def test_the_format_that_older_versions_kept_is_ignored():
    message = UserMessage(content=(TextContent(text="hi", extra={P: OLD}),), extra={P: OLD})
    history = (message, replace(call("a"), extra={P: OLD}), replace(result("a"), extra={P: OLD}))
    options = Options(max_tokens=9, extra={P: {"shape": {"absent": ["max_tokens"], "asked_of": "m"}}})
    body = written(*history, options=options, tools=(ToolDefinition(name="f", extra={P: OLD}),))
    assert body["max_tokens"] == 9
    assert body["messages"][0] == {"role": "user", "content": [{"type": "text", "text": "hi", "x": 1}], "x": 1}


# -- what segue writes itself ------------------------------------------------------------------------------------------


LITTLE = Options(max_tokens=9)


def written(*messages, options=LITTLE, endpoint=SONNET, **context) -> dict:
    return CODEC.encode_request(Prompt(context=Context(messages=messages, **context), options=options), endpoint)


def call(name: str) -> AssistantMessage:
    return AssistantMessage(content=(ToolCall(id=name, name=name),))


def result(name: str, *texts: str, **rest) -> ToolResultMessage:
    return ToolResultMessage(tool_call_id=name, content=tuple(TextContent(text=text) for text in texts), **rest)


def test_results_share_a_turn_and_text_after_them_has_its_own():
    turns = written(
        call("a"), result("a", "1"), result("b", is_error=True), UserMessage.of("so?"), UserMessage.of("hm")
    )
    results = [
        {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "1"}]},
        {"type": "tool_result", "tool_use_id": "b", "content": [], "is_error": True},
    ]
    assert turns["messages"][1:] == [
        {"role": "user", "content": results},
        {"role": "user", "content": [{"type": "text", "text": "so?"}]},
        {"role": "user", "content": [{"type": "text", "text": "hm"}]},
    ]


def test_user_text_joins_the_results_where_turns_have_to_alternate():
    model = Model("m", "somebody", P, rules={"alternate": True})
    endpoint = Endpoint(model, resolve_rules(model), resolve_dialect(model))
    turns = written(call("a"), result("a", "1"), UserMessage.of("so?"), endpoint=endpoint)["messages"]
    assert [block["type"] for block in turns[1]["content"]] == ["tool_result", "text"]
    body = asked(user(RESULT), user(RESULT2, TEXT))
    assert CODEC.encode_request(CODEC.decode_request(body, endpoint), endpoint) == body


def test_user_text_never_goes_into_a_result():
    minimax = endpoint_of("MiniMax-M2.7", "minimax")
    turns = written(call("a"), result("a", "1"), UserMessage.of("so?"), endpoint=minimax)["messages"]
    assert turns[:2] == written(call("a"), result("a", "1"), endpoint=minimax)["messages"]
    assert turns[2] == {"role": "user", "content": [{"type": "text", "text": "so?"}]}


def test_the_model_of_the_endpoint_is_named_unless_the_prompt_names_one():
    assert written(UserMessage.of("hi"))["model"] == "claude-sonnet-4-5"
    prompt = Prompt(context=Context(messages=(UserMessage.of("hi"),)), model="claude-x")
    assert CODEC.encode_request(prompt, SONNET)["model"] == "claude-x"


def test_what_stands_in_a_message_does_not_depend_on_what_follows():
    history = (UserMessage.of("hi"), call("a"), result("a", "1"), UserMessage.of("so?"), call("b"), result("b", "2"))
    whole = written(*history)["messages"]
    for cut in (1, 4):
        assert written(*history[:cut])["messages"] == whole[: len(written(*history[:cut])["messages"])]


PLACES = {
    "in a message": (
        {"messages": (UserMessage.of("a"), UserMessage.of("b", NativeContent(protocol="x", block={})))},
        ("messages", 1, "content", 1),
    ),
    "in a result": (
        {"messages": (ToolResultMessage(tool_call_id="a", content=(ImageContent(),)),)},
        ("messages", 0, "content", 0),
    ),
    "in the system prompt": ({"system_prompt": (NativeContent(protocol="x", block={}),)}, ("system_prompt", 0)),
    "among the tools": ({"tools": (NativeTool(protocol="x", definition={}),)}, ("tools", 0)),
}


@pytest.mark.parametrize(("context", "path"), PLACES.values(), ids=PLACES.keys())
def test_unsupported_content_is_an_error_with_its_path(context, path):
    with pytest.raises(EncodeError) as caught:
        CODEC.encode_request(Prompt(context=Context(**context)), SONNET)
    assert caught.value.path == path


def test_strict_is_sent_where_the_provider_supports_it():
    tool = ToolDefinition(name="f", parameters={"type": "object"}, strict=True)
    assert written(UserMessage.of("hi"), tools=(tool,))["tools"][0]["strict"] is True
    assert (
        "strict" not in written(UserMessage.of("hi"), tools=(tool,), endpoint=endpoint_of("m", "somebody"))["tools"][0]
    )


# -- cache marks -------------------------------------------------------------------------------------------------------

SHORT = {"type": "ephemeral"}
LONG = {"type": "ephemeral", "ttl": "1h"}


def marks(body) -> list[tuple[str, object]]:
    found = [("tools", tool["cache_control"]) for tool in body.get("tools", ()) if "cache_control" in tool]
    system = body.get("system", ())
    found += [
        ("system", block["cache_control"]) for block in system if isinstance(block, dict) and "cache_control" in block
    ]
    for at, turn in enumerate(body["messages"]):
        found += [(f"messages.{at}", block["cache_control"]) for block in turn["content"] if "cache_control" in block]
    return found


TOOLS = (ToolDefinition(name="f"), ToolDefinition(name="g"))
RETENTIONS = {
    "nothing asked": (None, SONNET, []),
    "none": ("none", SONNET, []),
    "short": ("short", SONNET, [("tools", SHORT), ("system", SHORT), ("messages.2", SHORT)]),
    "long": ("long", SONNET, [("tools", LONG), ("system", LONG), ("messages.2", LONG)]),
    "long where there is no long": (
        "long",
        endpoint_of("accounts/fireworks/models/glm-5p1", "fireworks"),
        [("system", SHORT), ("messages.2", SHORT)],
    ),
}


@pytest.mark.parametrize(("retention", "endpoint", "expected"), RETENTIONS.values(), ids=RETENTIONS.keys())
def test_cache_marks_go_where_the_next_request_reads_from(retention, endpoint, expected):
    history = (UserMessage.of("hi"), call("a"), result("a", "1"), AssistantMessage(content=(TextContent(text="ok"),)))
    options = Options(cache_retention=retention)
    body = written(*history, options=options, endpoint=endpoint, system_prompt="Be kind.", tools=TOOLS)
    assert marks(body) == expected


def test_no_mark_is_added_to_those_of_the_conversation():
    marked = TextContent(text="hi", cache_mark=CacheMark())
    body = written(
        UserMessage.of(marked), UserMessage.of("b"), options=Options(cache_retention="long"), system_prompt="x"
    )
    assert marks(body) == [("messages.0", SHORT)]


def test_a_mark_skips_blocks_that_cannot_have_one():
    message = UserMessage.of("hi", TextContent(text=" "), NativeContent(protocol=P, block={"type": "container_upload"}))
    tools = (ToolDefinition(name="f"), ToolDefinition(name="g", extra={P: {"defer_loading": True}}))
    body = written(message, options=Options(cache_retention="short"), tools=tools)
    assert "cache_control" in body["tools"][0]
    assert "cache_control" in body["messages"][0]["content"][0]


def test_a_marked_conversation_has_no_content_that_is_a_string():
    context = read(
        body_of(
            {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}
        )
    )
    body: dict = CODEC.encode_request(Prompt(context=context, options=Options(cache_retention="short")), SONNET)
    assert all(isinstance(turn["content"], list) for turn in body["messages"])


def test_a_mark_skips_a_turn_without_a_role():
    context = read(body_of(user(TEXT), {"content": [TEXT]}))
    body: Any = CODEC.encode_request(Prompt(context=context, options=Options(cache_retention="short")), SONNET)
    assert "cache_control" in body["messages"][0]["content"][0]


def test_a_mark_leaves_the_history_as_it_is():
    block = {"type": "search_result", "source": "s", "title": "t", "content": []}
    message = UserMessage(content=(NativeContent(protocol=P, block=block),))
    assert marks(written(message, options=Options(cache_retention="short")))
    assert "cache_control" not in block


def test_instructions_in_mid_conversation_are_a_turn():
    assert written(UserMessage.of("hi"), SystemMessage.of("now"), endpoint=OPUS)["messages"][1] == {
        "role": "system",
        "content": [{"type": "text", "text": "now"}],
    }
