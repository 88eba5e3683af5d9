"""Whole requests: options, the system prompt, tools, documents, citations."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from protocols.cohere_chat.endpoints import PLAIN, REASONING
from segue.conversation.content import TextContent
from segue.conversation.context import Context, NativeTool, Options, Prompt, ToolDefinition
from segue.conversation.messages import UserMessage
from segue.errors import DecodeError, EncodeError
from segue.protocols.cohere_chat.protocol import PROTOCOL as CODEC
from segue.requests.prepare import convert, prepare

HI = {"role": "user", "content": "hi"}
SCHEMA = {"type": "object", "properties": {}}
TOOL = ToolDefinition(name="read", parameters=SCHEMA)


def body_of(options: Options, endpoint=PLAIN, **context) -> dict:
    prompt = Prompt(context=Context(messages=(UserMessage.of("hi"),), **context), options=options)
    return CODEC.encode_request(prompt, endpoint)


OPTIONS = {
    "a limit": (Options(max_tokens=5), {"max_tokens": 5}),
    "a temperature": (Options(temperature=0.5), {"temperature": 0.5}),
    "a share of the likeliest": (Options(top_p=0.9), {"p": 0.9}),
    "stops": (Options(stop=("a", "b")), {"stop_sequences": ["a", "b"]}),
    "a seed": (Options(seed=7), {"seed": 7}),
    "any tool": (Options(tool_choice="required"), {"tool_choice": "REQUIRED"}),
    "no tool": (Options(tool_choice="none"), {"tool_choice": "NONE"}),
    "a schema": (Options(output_schema=SCHEMA), {"response_format": {"type": "json_object", "json_schema": SCHEMA}}),
    "a stream": (Options(stream=True), {"stream": True}),
    "a budget to think": (Options(thinking=500), {"thinking": {"type": "enabled", "token_budget": 500}}),
    "no thinking": (Options(thinking="off"), {"thinking": {"type": "disabled"}}),
}


@pytest.mark.parametrize(("options", "wire"), OPTIONS.values(), ids=OPTIONS.keys())
def test_options_survive_both_directions(options, wire):
    body = body_of(options, REASONING)
    assert body == {"model": "command-a-reasoning-08-2025", "messages": [HI], **wire}
    assert CODEC.decode_request(body, REASONING).options == options


OTHER_FORMATS = {
    "thinking without a budget": ({"thinking": {"type": "enabled"}}, Options(thinking="high")),
    "nulls and unknown parameters": (
        {
            "k": 5,
            "documents": ["a", {"id": "1", "data": {"b": "c"}}],
            "citation_options": {"mode": "OFF"},
            "safety_mode": "STRICT",
            "strict_tools": True,
            "priority": 3,
            "max_tokens": None,
        },
        Options(),
    ),
    "JSON without a schema": ({"response_format": {"type": "json_object"}}, Options()),
    "an unknown choice": ({"tool_choice": "PERHAPS"}, Options()),
}


@pytest.mark.parametrize(("wire", "options"), OTHER_FORMATS.values(), ids=OTHER_FORMATS.keys())
@pytest.mark.parametrize("endpoint", [PLAIN, REASONING], ids=["plain", "reasoning"])
def test_options_in_another_format_come_back(wire, options, endpoint):
    body = {"model": "m", "messages": [HI], **wire}
    prompt = CODEC.decode_request(body, endpoint)
    assert replace(prompt.options, extra=None) == options
    assert CODEC.encode_request(prompt, endpoint) == body


WRITTEN = {
    "a level is a budget": (
        REASONING,
        Options(thinking="low"),
        {"thinking": {"type": "enabled", "token_budget": 2048}},
    ),
    "a budget of nothing is no thinking": (REASONING, Options(thinking=0), {"thinking": {"type": "disabled"}}),
    "a model that does not reason gets no parameter": (PLAIN, Options(thinking="off"), {}),
    "auto needs no parameter": (PLAIN, Options(tool_choice="auto"), {}),
}


@pytest.mark.parametrize(("endpoint", "options", "wire"), WRITTEN.values(), ids=WRITTEN.keys())
def test_options_are_written_in_the_format_of_the_protocol(endpoint, options, wire):
    body = body_of(options, endpoint)
    assert {key: value for key, value in body.items() if key not in ("model", "messages")} == wire


@pytest.mark.parametrize(
    "options",
    [Options(tool_choice="read"), Options(session_id="s"), Options(user_id="u"), Options(parallel_tool_calls=True)],
    ids=["a tool by name", "a session", "a user", "parallel calls"],
)
def test_unsupported_options_are_refused_by_the_codec_and_removed_by_projection(options):
    with pytest.raises(EncodeError) as caught:
        body_of(options)
    assert caught.value.path[0] == "options"
    request = prepare(Context(messages=(UserMessage.of("hi"),), tools=(TOOL,)), PLAIN.model, options=options)
    assert request.body.keys() == {"model", "messages", "tools"}
    assert [change.path for change in request.report.changes] == [caught.value.path]


def test_a_schema_gives_way_to_tools_and_a_share_to_its_limit():
    # cohere 7.3.1: "not supported when used in combinations with the documents or tools"; p: "max value of 0.99"
    options = Options(output_schema=SCHEMA, top_p=1.0)
    context = Context(messages=(UserMessage.of("hi"),))
    assert "response_format" in prepare(context, PLAIN.model, options=options).body
    request = prepare(replace(context, tools=(TOOL,)), PLAIN.model, options=options)
    assert "response_format" not in request.body
    assert request.body["p"] == 0.99
    assert {change.path for change in request.report.changes} == {("options", "output_schema"), ("options", "top_p")}


def test_documents_that_another_protocol_does_not_support_are_reported():
    body = {"model": "command-a", "messages": [HI], "documents": ["A note."]}
    request = convert(body, source="cohere-chat", target="gpt-5", target_protocol="openai-chat")
    assert "documents" not in request.body
    assert [change.path for change in request.report.changes] == [("options", "extra")]


PROMPTS = {
    "a string": ("Be brief.", "Be brief."),
    "an empty string": ("", ""),
    "a list": ([{"type": "text", "text": "Be brief."}], (TextContent(text="Be brief."),)),
    "an empty list": ([], ()),
    "nothing": (None, ()),
}


@pytest.mark.parametrize(("content", "prompt"), PROMPTS.values(), ids=PROMPTS.keys())
def test_the_first_system_message_is_the_prompt(content, prompt):
    body = {"model": "m", "messages": [{"role": "system", "content": content, "name": "x"}, HI]}
    read = CODEC.decode_request(body, PLAIN)
    assert read.context.system_prompt == prompt
    assert CODEC.encode_request(read, PLAIN) == body


TOOLS = {
    "a function": {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}},
    "a function with unknown keys": {"x": 1, "function": {"name": "f", "strict": True, "parameters": None, "y": 2}},
    "no function": {"type": "function"},
    "an unknown type": {"type": "web"},
}


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS.keys())
def test_a_tool_survives_both_directions(tool):
    body = {"model": "m", "messages": [HI], "tools": [tool]}
    prompt = CODEC.decode_request(body, PLAIN)
    assert prompt.context.tools[0].kind == ("function" if "function" in tool else "native")
    assert CODEC.encode_request(prompt, PLAIN) == body


@pytest.mark.parametrize("tools", [[], None], ids=["an empty list", "null"])
def test_an_empty_list_of_tools_is_written_back_unchanged(tools):
    body = {"messages": [HI], "tools": tools}
    assert CODEC.encode_request(CODEC.decode_request(body, PLAIN), PLAIN) == body


def test_another_providers_tool_is_refused():
    with pytest.raises(EncodeError) as caught:
        body_of(Options(), tools=(NativeTool(protocol="openai-chat", definition={}),))
    assert caught.value.path == ("tools", 0)


def test_a_bare_list_of_messages_is_read():
    assert CODEC.decode_request([HI], PLAIN).context.messages == (UserMessage.of("hi"),)


def test_a_reply_is_sent_back_with_its_citations_and_without_its_format():
    cited = [{"start": 0, "end": 2, "text": "hi"}]
    message = {"role": "assistant", "content": [{"type": "text", "text": "hi"}], "citations": cited, "odd": 1}
    turn = CODEC.decode_response({"id": "1", "message": message, "finish_reason": "COMPLETE"}, PLAIN, {})
    sent = CODEC.encode_request(Prompt(context=Context(messages=(turn,))), PLAIN)["messages"]
    assert sent == [{"role": "assistant", "content": "hi", "citations": cited}]


def test_json_without_a_schema_is_not_sent_beside_tools():
    tools = [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}]
    body = {"model": "m", "messages": [HI], "response_format": {"type": "json_object"}, "tools": tools}
    request = convert(body, source="cohere-chat", target=PLAIN.model)
    assert "response_format" not in request.body
    assert [change.path for change in request.report.changes] == [("options", "extra")]


V1_REQUESTS = {
    "one message": {"model": "command", "message": "hi"},
    "a history beside it": {"model": "command-r", "message": "hi", "chat_history": [{"role": "USER", "message": "x"}]},
}


@pytest.mark.parametrize("body", V1_REQUESTS.values(), ids=V1_REQUESTS.keys())
def test_a_v1_request_is_refused_by_its_name(body):
    with pytest.raises(DecodeError, match="v1/chat"):
        convert(body, target=PLAIN.model)
    assert [violation.code for violation in CODEC.check(body, PLAIN)] == ["protocol_wrong"]
