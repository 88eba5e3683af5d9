"""Whole requests: turns, results, the system prompt, tools, cache points, and where they go."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from protocols.bedrock_converse.endpoints import ANYONE, GPT, KIMI, LLAMA, NOVA, OPUS, SONNET, SONNET_3, endpoint_of
from segue.conversation.content import CacheMark, ImageContent, NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Context, NativeTool, Options, Prompt, ToolDefinition
from segue.conversation.messages import (
    AssistantMessage,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from segue.errors import DecodeError, EncodeError
from segue.models.model import Model
from segue.protocols.api import decode_request, encode_request
from segue.protocols.bedrock_converse.protocol import PROTOCOL as CODEC
from segue.requests.prepare import prepare

P = "bedrock-converse"


def text(value):
    return {"text": value}


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def use(call_id, name="f", **given):
    return {"toolUse": {"toolUseId": call_id, "name": name, "input": given}}


def result(call_id, *blocks, **more):
    return {"toolResult": {"toolUseId": call_id, "content": list(blocks), **more}}


def reply(*content, stop=StopReason.STOP):
    return AssistantMessage(content=content, protocol=P, provider="amazon-bedrock", stop_reason=stop)


def answered(call_id, value, **more):
    return ToolResultMessage(tool_call_id=call_id, tool_name="f", content=(TextContent(text=value),), **more)


def prepared(context: Context, model: Model, options: Options | None = None) -> Any:
    return prepare(context, model, options=options).body


def verbatim(**patch):
    return {P: {"verbatim": patch}}


def turn(default, received):
    return verbatim(**{"@turn": {"from": default, "to": received}})


CALL = ToolCall(id="a", name="f")
POINT = {"cachePoint": {"type": "default"}}
MARK = CacheMark()

TURNS = {
    "a question and an answer": (
        (UserMessage.of("hi"), reply(TextContent(text="yes"))),
        [user(text("hi")), assistant(text("yes"))],
    ),
    "results and the text behind them share a turn": (
        (reply(CALL, stop=StopReason.TOOL_USE), answered("a", "1"), UserMessage.of("and?")),
        [assistant(use("a")), user(result("a", text("1")), text("and?"))],
    ),
    "all results of a batch share a turn": (
        (
            reply(CALL, ToolCall(id="b", name="f"), stop=StopReason.TOOL_USE),
            answered("a", "1"),
            answered("b", "2", is_error=True),
        ),
        [assistant(use("a"), use("b")), user(result("a", text("1")), result("b", text("2"), status="error"))],
    ),
    "a status of success": (
        (
            reply(CALL, stop=StopReason.TOOL_USE),
            answered("a", "1", extra=verbatim(toolResult={"add": {"status": "success"}})),
        ),
        [assistant(use("a")), user(result("a", text("1"), status="success"))],
    ),
    "a result with an unknown key": (
        (reply(CALL, stop=StopReason.TOOL_USE), answered("a", "1", extra={P: {"toolResult": {"type": "x"}}})),
        [assistant(use("a")), user(result("a", text("1"), type="x"))],
    ),
    "results in turns of their own": (
        (
            reply(CALL, ToolCall(id="b", name="f"), stop=StopReason.TOOL_USE),
            answered("a", "1"),
            answered("b", "2", extra=turn("same", "new")),
        ),
        [assistant(use("a"), use("b")), user(result("a", text("1"))), user(result("b", text("2")))],
    ),
    "text before a result": (
        (
            reply(CALL, stop=StopReason.TOOL_USE),
            UserMessage.of("wait"),
            answered("a", "1", extra=turn("new", "same")),
        ),
        [assistant(use("a")), user(text("wait"), result("a", text("1")))],
    ),
    "instructions in mid-conversation": (
        (UserMessage.of("hi"), SystemMessage.of("Be brief.")),
        [user(text("hi")), {"role": "system", "content": [text("Be brief.")]}],
    ),
    "a cache point behind text": (
        (UserMessage(content=(TextContent(text="hi", cache_mark=MARK), TextContent(text="so"))),),
        [user(text("hi"), POINT, text("so"))],
    ),
    "a cache point behind a result": (
        (reply(CALL, stop=StopReason.TOOL_USE), answered("a", "1", cache_mark=MARK), UserMessage.of("and?")),
        [assistant(use("a")), user(result("a", text("1")), POINT, text("and?"))],
    ),
    "a cache point behind a call": (
        (reply(replace(CALL, cache_mark=MARK), stop=StopReason.TOOL_USE), answered("a", "1")),
        [assistant(use("a"), POINT), user(result("a", text("1")))],
    ),
    "a cache point behind nothing": (
        (UserMessage(content=(NativeContent(protocol=P, block=POINT), TextContent(text="hi"))),),
        [user(POINT, text("hi"))],
    ),
    "a second cache point in one place": (
        (UserMessage(content=(TextContent(text="hi", cache_mark=MARK), NativeContent(protocol=P, block=POINT))),),
        [user(text("hi"), POINT, POINT)],
    ),
    "a third cache point in one place": (
        (
            UserMessage(
                content=(
                    TextContent(text="hi", cache_mark=MARK),
                    NativeContent(protocol=P, block=POINT),
                    NativeContent(protocol=P, block=POINT),
                )
            ),
        ),
        [user(text("hi"), POINT, POINT, POINT)],
    ),
    "a cache point for an hour": (
        (UserMessage(content=(TextContent(text="hi", cache_mark=CacheMark(ttl="1h")),)),),
        [user(text("hi"), {"cachePoint": {"type": "default", "ttl": "1h"}})],
    ),
    "a cache point with an unknown key": (
        (UserMessage(content=(TextContent(text="hi", cache_mark=CacheMark(extra={P: {"scope": "org"}})),)),),
        [user(text("hi"), {"cachePoint": {"type": "default", "scope": "org"}})],
    ),
    "a cache point of an unknown type": (
        (
            UserMessage(
                content=(TextContent(text="hi"), NativeContent(protocol=P, block={"cachePoint": {"type": "x"}}))
            ),
        ),
        [user(text("hi"), {"cachePoint": {"type": "x"}})],
    ),
    "a cache point behind reasoning": (
        (reply(ThinkingContent(thinking="hm", thinking_signature="s", cache_mark=CacheMark())),),
        [assistant({"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}}, POINT)],
    ),
    "content that is a text": (
        (
            UserMessage(
                content=(TextContent(text="hi"),),
                extra=verbatim(message={"in": {"content": {"unwrap": [0, "text"], "from": [{"text": ""}]}}}),
            ),
        ),
        [{"role": "user", "content": "hi"}],
    ),
    "a turn with an unknown key": (
        (UserMessage(content=(TextContent(text="hi"),), extra={P: {"message": {"id": 7}}}),),
        [{**user(text("hi")), "id": 7}],
    ),
}


@pytest.mark.parametrize(("messages", "wire"), TURNS.values(), ids=TURNS.keys())
def test_turns_survive_both_directions(messages, wire):
    read = CODEC.decode_request({"messages": wire}, SONNET).context.messages
    named = tuple(replace(m, model=SONNET.model.id) if m.role == "assistant" else m for m in messages)
    assert read == named
    written = CODEC.encode_request(Prompt(context=Context(messages=messages)), SONNET)
    assert written == {"messages": wire}


def test_the_name_of_a_tool_is_that_of_the_call_before():
    wire = [
        assistant(use("x", "first")),
        user(result("x", text("1"))),
        assistant(use("x", "second")),
        user(result("x", text("2"))),
        user(result("y", text("?"))),
    ]
    messages = CODEC.decode_request({"messages": wire}, SONNET).context.messages
    assert [m.tool_name for m in messages if m.role == "toolResult"] == ["first", "second", ""]


def test_an_error_is_a_status_for_models_that_accept_one_and_a_text_for_the_others():
    history = (UserMessage.of("go"), reply(CALL, stop=StopReason.TOOL_USE), answered("a", "broken", is_error=True))
    flagged = prepared(Context(messages=history), SONNET.model)["messages"][-1]["content"][0]["toolResult"]
    assert flagged == {"toolUseId": "a", "content": [text("broken")], "status": "error"}
    plain = prepared(Context(messages=history), KIMI.model)["messages"][-1]["content"][0]["toolResult"]
    assert "status" not in plain
    assert "broken" in plain["content"][0]["text"] != "broken"


SYSTEM = {
    "one text": ("Be brief.", [text("Be brief.")]),
    "several texts": ((TextContent(text="a"), TextContent(text="b")), [text("a"), text("b")]),
    "a cache point": ((TextContent(text="a", cache_mark=MARK),), [text("a"), POINT]),
    "guarded text": (
        (
            NativeContent(
                protocol=P, block={"guardContent": {"text": {"text": "g"}}}, fallback=(TextContent(text="g"),)
            ),
        ),
        [{"guardContent": {"text": {"text": "g"}}}],
    ),
}


@pytest.mark.parametrize(("prompt", "wire"), SYSTEM.values(), ids=SYSTEM.keys())
def test_a_system_prompt_survives_both_directions(prompt, wire):
    read = CODEC.decode_request({"messages": [], "system": wire}, SONNET).context
    assert read.system_prompt == prompt
    assert CODEC.encode_request(Prompt(context=Context(system_prompt=prompt)), SONNET)["system"] == wire


SCHEMA = {"type": "object", "properties": {}}
TOOLS = {
    "a tool": (
        ToolDefinition(name="f", description="d", parameters=SCHEMA),
        [{"toolSpec": {"name": "f", "description": "d", "inputSchema": {"json": SCHEMA}}}],
        SONNET,
    ),
    "a tool without a description": (
        ToolDefinition(name="f", parameters=SCHEMA),
        [{"toolSpec": {"name": "f", "inputSchema": {"json": SCHEMA}}}],
        SONNET,
    ),
    "a strict tool": (
        ToolDefinition(name="f", parameters=SCHEMA, strict=True),
        [{"toolSpec": {"name": "f", "inputSchema": {"json": SCHEMA}, "strict": True}}],
        SONNET,
    ),
    "a strict tool for a model without strict tools": (
        ToolDefinition(name="f", parameters=SCHEMA, strict=True, extra=verbatim(strict={"to": True})),
        [{"toolSpec": {"name": "f", "inputSchema": {"json": SCHEMA}, "strict": True}}],
        OPUS,
    ),
    "a tool that the provider runs": (
        NativeTool(protocol=P, definition={"systemTool": {"name": "nova_grounding"}}),
        [{"systemTool": {"name": "nova_grounding"}}],
        NOVA,
    ),
    "a cache point behind a tool": (
        ToolDefinition(name="f", parameters=SCHEMA, cache_mark=MARK),
        [{"toolSpec": {"name": "f", "inputSchema": {"json": SCHEMA}}}, POINT],
        SONNET,
    ),
}


@pytest.mark.parametrize(("tool", "wire", "endpoint"), TOOLS.values(), ids=TOOLS.keys())
def test_a_tool_survives_both_directions(tool, wire, endpoint):
    body = {"messages": [], "toolConfig": {"tools": wire}}
    assert CODEC.decode_request(body, endpoint).context.tools == (tool,)
    assert CODEC.encode_request(Prompt(context=Context(tools=(tool,))), endpoint)["toolConfig"] == {"tools": wire}


def test_strict_is_not_sent_to_a_model_that_refuses_it():
    strict = ToolDefinition(name="f", parameters=SCHEMA, strict=True)
    body: Any = CODEC.encode_request(Prompt(context=Context(tools=(strict,))), OPUS)
    assert "strict" not in body["toolConfig"]["tools"][0]["toolSpec"]


def test_history_with_calls_brings_its_tools():
    history = (UserMessage.of("go"), reply(CALL, stop=StopReason.TOOL_USE), answered("a", "1"))
    body = prepared(Context(messages=history), SONNET.model)
    assert [tool["toolSpec"]["name"] for tool in body["toolConfig"]["tools"]] == ["f"]
    assert CODEC.check(body, SONNET) == []


LONG = {"cachePoint": {"type": "default", "ttl": "1h"}}
MARKS = {
    "Claude, for a while": (SONNET, "short", (POINT, POINT, POINT)),
    "Claude, for long": (SONNET, "long", (LONG, LONG, LONG)),
    "an older Claude has no long cache": (SONNET_3, "long", (POINT, POINT, POINT)),
    "Nova takes none behind tools": (NOVA, "short", (None, POINT, POINT)),
    "a model without a cache": (LLAMA, "short", (None, None, None)),
    "not requested": (SONNET, None, (None, None, None)),
    "none requested": (SONNET, "none", (None, None, None)),
}


@pytest.mark.parametrize(("endpoint", "retention", "expected"), MARKS.values(), ids=MARKS.keys())
def test_cache_points_go_where_the_next_request_reads_from(endpoint, retention, expected):
    context = Context(
        system_prompt="Be brief.",
        messages=(UserMessage.of("hi"),),
        tools=(ToolDefinition(name="f", parameters=SCHEMA),),
    )
    body = prepared(context, endpoint.model, Options(cache_retention=retention))
    lasts = (body["toolConfig"]["tools"][-1], body["system"][-1], body["messages"][-1]["content"][-1])
    assert tuple(last if "cachePoint" in last else None for last in lasts) == expected
    assert CODEC.check(body, endpoint) == []


def test_a_conversation_with_cache_points_of_its_own_gets_no_others():
    context = Context(system_prompt="s", messages=(UserMessage(content=(TextContent(text="hi", cache_mark=MARK),)),))
    body = prepare(context, SONNET.model, options=Options(cache_retention="short")).body
    assert json.dumps(body).count("cachePoint") == 1


def test_a_fifth_cache_point_and_those_of_a_model_that_does_not_cache_are_taken_away_and_reported():
    content = tuple(TextContent(text=str(number), cache_mark=MARK) for number in range(5))
    context = Context(messages=(UserMessage(content=content),))
    for endpoint, left in ((SONNET, 4), (NOVA, 4), (LLAMA, 0), (ANYONE, 0)):
        request = prepare(context, endpoint.model)
        assert json.dumps(request.body).count("cachePoint") == left
        assert len(request.report.changes) == 5 - left


def test_a_body_without_messages_is_refused():
    with pytest.raises(DecodeError, match="messages"):
        CODEC.decode_request({"system": []}, SONNET)


PLACES = {
    "a turn that is no object": ({"messages": ["hi"]}, ("messages", 0)),
    "a block that is no object": ({"messages": [{"role": "user", "content": ["hi"]}]}, ("messages", 0, "content", 0)),
    "a tool that is no object": ({"messages": [], "toolConfig": {"tools": [3]}}, ("toolConfig", "tools", 0)),
    "a system prompt that is a text": ({"messages": [], "system": "hi"}, ("system",)),
}


@pytest.mark.parametrize(("body", "path"), PLACES.values(), ids=PLACES.keys())
def test_an_unreadable_value_is_reported_with_its_path(body, path):
    with pytest.raises(DecodeError) as caught:
        CODEC.decode_request(body, SONNET)
    assert caught.value.path == path


def test_an_unsupported_value_is_reported_with_its_path():
    image = ImageContent(url="https://example.org/a.png")
    with pytest.raises(EncodeError) as caught:
        CODEC.encode_request(Prompt(context=Context(messages=(UserMessage.of("hi", image),))), SONNET)
    assert caught.value.path == ("messages", 0, "content", 1)
    unsigned = reply(TextContent(text="a"), ThinkingContent(thinking="hm"))
    with pytest.raises(EncodeError) as caught:
        CODEC.encode_request(Prompt(context=Context(messages=(unsigned,))), SONNET)
    assert caught.value.path == ("messages", 0, "content", 1)


ARN = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-opus-4-6-v1"
ADDRESSES = {
    "a colon is escaped": ("amazon.nova-pro-v1:0", False, "/model/amazon.nova-pro-v1%3A0/converse"),
    "a stream has its own": ("amazon.nova-pro-v1:0", True, "/model/amazon.nova-pro-v1%3A0/converse-stream"),
    "so is what an ARN holds": (ARN, False, f"/model/{ARN.replace(':', '%3A').replace('/', '%2F')}/converse"),
}


@pytest.mark.parametrize(("model_id", "stream", "path"), ADDRESSES.values(), ids=ADDRESSES.keys())
def test_the_address_names_the_model(model_id, stream, path):
    assert CODEC.path(endpoint_of(model_id), stream) == path


def test_the_arguments_of_boto3_are_a_request_as_well():
    body = {"modelId": SONNET.model.id, "messages": [user(text("hi"))], "inferenceConfig": {"maxTokens": 5}}
    prompt = decode_request(body, protocol=P)
    assert prompt.model == SONNET.model.id
    assert encode_request(prompt, protocol=P) == body
    other = prepare(prompt.context, GPT.model, options=prompt.options).body
    assert "modelId" not in other


def test_an_s3_location_is_sent_to_nova_and_replaced_for_other_models():
    video = {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://bucket/a.mp4"}}}}
    context = CODEC.decode_request([user(text("Look."), video)], NOVA).context
    nova = Model("us.amazon.nova-2-lite-v1:0", "amazon-bedrock", P, input=("text", "video"))
    assert prepare(context, nova).body["messages"] == [user(text("Look."), video)]
    claude = replace(SONNET.model, input=("text", "image", "document", "video"))
    assert "s3Location" not in json.dumps(prepare(context, claude).body)


def test_the_format_of_older_stored_files_is_ignored():
    old = {P: {"shape": {"apart": True, "content": "string", "status": "success"}, "cachePoint": {"type": "default"}}}
    messages = (
        reply(CALL, stop=StopReason.TOOL_USE),
        answered("a", "1", extra=old),
        UserMessage(content=(TextContent(text="so"),), extra=old),
    )
    written = CODEC.encode_request(Prompt(context=Context(messages=messages)), SONNET)
    assert written == {"messages": [assistant(use("a")), user(result("a", text("1")), text("so"))]}


def test_changed_content_is_written_as_blocks():
    prompt = CODEC.decode_request([{"role": "user", "content": "hi"}], SONNET)
    (message,) = prompt.context.messages
    more = replace(message, content=(*message.content, TextContent(text="so")))
    written = CODEC.encode_request(Prompt(context=Context(messages=(more,))), SONNET)
    assert written == {"messages": [user(text("hi"), text("so"))]}
