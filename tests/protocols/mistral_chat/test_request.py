"""Whole requests: the system prompt, prefixes, tools, options, and what a new request no longer has."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from protocols.every_protocol import wire_messages
from protocols.mistral_chat.endpoints import LARGE, MEDIUM, endpoint_of
from segue.conversation.content import NativeContent, TextContent, ToolCall
from segue.conversation.context import Context, NativeTool, Options, Prompt, ToolDefinition
from segue.conversation.messages import AssistantMessage, StopReason, UserMessage
from segue.errors import EncodeError
from segue.models.model import Model
from segue.models.origin import new_assistant_message
from segue.protocols.kit.json_values import object_of
from segue.protocols.mistral_chat.protocol import PROTOCOL as CODEC
from segue.requests.outbox import Outbox
from segue.requests.prepare import prepare

HI = {"role": "user", "content": "hi"}
SCHEMA = {"type": "object", "properties": {}}


def body_of(options: Options, endpoint=LARGE, **context) -> dict:
    prompt = Prompt(context=Context(messages=(UserMessage.of("hi"),), **context), options=options)
    return CODEC.encode_request(prompt, endpoint)


OPTIONS = {
    "a limit": (Options(max_tokens=5), {"max_tokens": 5}),
    "a temperature": (Options(temperature=0.5), {"temperature": 0.5}),
    "a share of the likeliest": (Options(top_p=0.9), {"top_p": 0.9}),
    "stops": (Options(stop=("a", "b")), {"stop": ["a", "b"]}),
    "a seed": (Options(seed=7), {"random_seed": 7}),
    "any tool": (Options(tool_choice="required"), {"tool_choice": "required"}),
    "a free choice": (Options(tool_choice="auto"), {"tool_choice": "auto"}),
    "a tool by name": (
        Options(tool_choice="read"),
        {"tool_choice": {"type": "function", "function": {"name": "read"}}},
    ),
    "calls one by one": (Options(parallel_tool_calls=False), {"parallel_tool_calls": False}),
    "a schema": (
        Options(output_schema=SCHEMA),
        {"response_format": {"type": "json_schema", "json_schema": {"name": "output", "schema": SCHEMA}}},
    ),
    "a session": (Options(session_id="s"), {"prompt_cache_key": "s"}),
    "a stream": (Options(stream=True), {"stream": True}),
    "much thinking": (Options(thinking="high"), {"reasoning_effort": "high"}),
    "no thinking": (Options(thinking="off"), {"reasoning_effort": "none"}),
}


@pytest.mark.parametrize(("options", "wire"), OPTIONS.values(), ids=OPTIONS.keys())
def test_options_survive_both_directions(options, wire):
    body = body_of(options, MEDIUM)
    assert body == {"model": "mistral-medium-latest", "messages": [HI], **wire}
    assert CODEC.decode_request(body, MEDIUM).options == options


OTHER_FORMATS = {
    "the earlier value for any tool": ({"tool_choice": "any"}, Options(tool_choice="required")),
    "one stop": ({"stop": "END"}, Options(stop=("END",))),
    "a schema with a name": (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}}},
        Options(output_schema=SCHEMA),
    ),
    "thinking by prompt_mode": ({"prompt_mode": "reasoning"}, Options(thinking="high")),
    "nulls and unknown parameters": (
        {"stop": None, "n": 1, "metadata": {"a": 1}, "safe_prompt": True, "guardrails": [{"block_on_error": True}]},
        Options(),
    ),
    "JSON without a schema": ({"response_format": {"type": "json_object"}}, Options()),
    "an unknown effort": ({"reasoning_effort": "heroic"}, Options()),
}


@pytest.mark.parametrize(("wire", "options"), OTHER_FORMATS.values(), ids=OTHER_FORMATS.keys())
@pytest.mark.parametrize("endpoint", [LARGE, MEDIUM], ids=["plain", "reasoning"])
def test_options_in_another_format_come_back(wire, options, endpoint):
    body = {"model": "m", "messages": [HI], **wire}
    prompt = CODEC.decode_request(body, endpoint)
    assert replace(prompt.options, extra=None) == options
    assert CODEC.encode_request(prompt, endpoint) == body


def test_a_changed_option_changes_the_request():
    prompt = CODEC.decode_request({"model": "m", "messages": [HI], "tool_choice": "any", "stop": "a"}, LARGE)
    changed = replace(prompt, options=replace(prompt.options, stop=("b", "c")))
    assert CODEC.encode_request(changed, LARGE)["stop"] == ["b", "c"]
    assert CODEC.encode_request(changed, LARGE)["tool_choice"] == "any"
    one = replace(prompt, options=replace(prompt.options, stop=("b",), tool_choice="none"))
    assert CODEC.encode_request(one, LARGE)["stop"] == "b"
    assert CODEC.encode_request(one, LARGE)["tool_choice"] == "none"


def test_the_format_of_options_is_for_the_model_that_the_body_named():
    prompt = CODEC.decode_request({"model": "m", "messages": [HI], "tool_choice": "any", "n": 2}, LARGE)
    other = CODEC.encode_request(replace(prompt, model="m2"), LARGE)
    assert (other["tool_choice"], other["n"]) == ("required", 2)


@pytest.mark.parametrize("effort", [{}, {"reasoning_effort": None}, {"reasoning_effort": "high"}])
def test_a_prompt_mode_that_was_removed_leaves_the_effort(effort):
    body = {"model": MEDIUM.model.id, "messages": [HI], "prompt_mode": "reasoning", **effort}
    prompt = CODEC.decode_request(body, MEDIUM)
    assert CODEC.encode_request(prompt, MEDIUM) == body
    assert prepare(prompt.context, MEDIUM.model, options=prompt.options).body["reasoning_effort"] == "high"


THINKING = {
    "a budget is the next level up": (MEDIUM, 2000, {"reasoning_effort": "low"}),
    "no budget at all": (MEDIUM, 0, {"reasoning_effort": "none"}),
    "a level with a value of the model's own": (
        endpoint_of("zai-glm-5-3", reasoning=True, thinking_levels={"high": "very much"}),
        "high",
        {"reasoning_effort": "very much"},
    ),
    "a model that does not reason gets no parameter": (LARGE, "off", {}),
}


@pytest.mark.parametrize(("endpoint", "thinking", "wire"), THINKING.values(), ids=THINKING.keys())
def test_thinking_is_written_as_the_models_own_value(endpoint, thinking, wire):
    body = body_of(Options(thinking=thinking), endpoint)
    assert {key: value for key, value in body.items() if key not in ("model", "messages")} == wire


def test_a_new_request_sets_the_effort_and_no_prompt_mode():
    # "Reasoning prompt mode is not enabled for this model" (pi-go #245, 2026-08-28)
    prompt = CODEC.decode_request({"model": "m", "messages": [HI], "prompt_mode": "reasoning"}, MEDIUM)
    request = prepare(prompt.context, MEDIUM.model, options=prompt.options)
    assert request.body["reasoning_effort"] == "high"
    assert "prompt_mode" not in request.body
    assert [change.path for change in request.report.changes] == [("options", "extra")]


# -- prompts -----------------------------------------------------------------------------------------------------------

THINK = {"type": "thinking", "thinking": [{"type": "text", "text": "Your thoughts."}], "closed": True}
PROMPTS = {
    "a string": ("Be brief.", "Be brief."),
    "an empty string": ("", ""),
    "a list": ([{"type": "text", "text": "Be brief."}], (TextContent(text="Be brief."),)),
    "a template for thinking": (
        [{"type": "text", "text": "First think:"}, THINK],
        (
            TextContent(text="First think:"),
            NativeContent(protocol="mistral-chat", block=THINK, fallback=(TextContent(text="Your thoughts."),)),
        ),
    ),
    "an empty list": ([], ()),
    "nothing": (None, ()),
}


@pytest.mark.parametrize(("content", "prompt"), PROMPTS.values(), ids=PROMPTS.keys())
def test_the_first_system_message_is_the_prompt(content, prompt):
    body = {"model": "m", "messages": [{"role": "system", "content": content, "name": "x"}, HI]}
    read = CODEC.decode_request(body, LARGE)
    assert read.context.system_prompt == prompt
    assert CODEC.encode_request(read, LARGE) == body


# -- prefixes ----------------------------------------------------------------------------------------------------------

BEGUN = {"role": "assistant", "content": "Once", "prefix": True}


def test_a_prefix_is_written_back_unchanged_at_any_position():
    for messages in ([HI, BEGUN], [HI, BEGUN, HI]):
        body = {"model": "m", "messages": messages}
        assert CODEC.encode_request(CODEC.decode_request(body, LARGE), LARGE) == body


def test_a_prefix_before_the_last_message_is_not_part_of_a_new_request():
    prompt = CODEC.decode_request({"model": LARGE.model.id, "messages": [HI, BEGUN, HI]}, LARGE)
    request = prepare(prompt.context, LARGE.model, options=prompt.options)
    assert request.body["messages"] == [HI, {"role": "assistant", "content": "Once"}, HI]
    assert [getattr(message, "prefix", None) for message in prompt.context.messages] == [None, False, None]


def test_a_message_that_others_follow_has_no_prefix():
    # "Assistant message with prefix True must be last message" (mistral-common 1.13.0)
    prompt = CODEC.decode_request({"model": "m", "messages": [HI, BEGUN]}, LARGE)
    request = prepare(prompt.context.add(UserMessage.of("and?")), LARGE.model, options=prompt.options)
    assert request.body["messages"] == [
        HI,
        {"role": "assistant", "content": "Once"},
        {"role": "user", "content": "and?"},
    ]


def test_a_prefix_is_sent_as_one():
    # "Expected last role User or Tool (or Assistant with prefix True)" (rig #1130)
    prompt = CODEC.decode_request({"model": "mistral-large-latest", "messages": [HI, BEGUN]}, LARGE)
    request = prepare(prompt.context, LARGE.model, options=prompt.options)
    assert request.body["messages"] == [HI, BEGUN]
    assert request.report.changes == ()
    assert CODEC.check(request.body, LARGE) == []
    assert prompt.context.messages[1] == replace(prompt.context.messages[1], prefix=True, extra=None)


def test_a_message_without_a_prefix_does_not_get_one():
    prompt = CODEC.decode_request({"messages": [HI, {"role": "assistant", "content": "Once", "prefix": False}]}, LARGE)
    sent = wire_messages(prepare(prompt.context, LARGE.model).body)
    assert sent[-1] == {"role": "user", "content": "(continue)"}


def test_a_prefix_is_sent_to_every_provider_that_supports_it_and_is_reported_elsewhere():
    prompt = CODEC.decode_request({"model": "mistral-large-latest", "messages": [HI, BEGUN]}, LARGE)
    model = Model("mistral-large-latest", "somebody", "mistral-chat")
    assert prepare(prompt.context, model).body["messages"] == [HI, BEGUN]
    without = replace(model, rules={"assistant_prefix": False})
    request = prepare(prompt.context, without)
    assert [object_of(message).get("prefix") for message in wire_messages(request.body)] == [None, None, None]
    assert ("messages", 1) in [change.path for change in request.report.changes]


def test_an_outbox_drops_a_prefix_that_others_follow():
    context = CODEC.decode_request({"model": "mistral-large-latest", "messages": [HI, BEGUN]}, LARGE).context
    outbox = Outbox(LARGE.model)
    for text in ("upon", "a", "time"):
        given = new_assistant_message(LARGE.model, content=(TextContent(text=text),))
        assert outbox.prepare(context).content == prepare(context, LARGE.model).content
        context = context.add(given, UserMessage.of("on"))
        assert outbox.prepare(context).content == prepare(context, LARGE.model).content


def test_where_the_caller_allows_a_last_assistant_turn_it_is_a_prefix():
    model = Model("mistral-large-latest", "mistral", "mistral-chat", rules={"last_assistant": True})
    given = AssistantMessage(
        content=(TextContent(text="Once"),), protocol="mistral-chat", provider="mistral", model="x"
    )
    request = prepare(Context(messages=(UserMessage.of("hi"), given)), model)
    assert request.body["messages"] == [HI, BEGUN]
    endpoint = endpoint_of(rules={"last_assistant": True})
    for last in (BEGUN, {"role": "assistant", "content": "Once"}):
        body = {"model": "m", "messages": [HI, last]}
        assert CODEC.encode_request(CODEC.decode_request(body, endpoint), endpoint) == body


# -- tools and the rest ------------------------------------------------------------------------------------------------

TOOLS = {
    "a function": {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}},
    "a strict function": {"type": "function", "function": {"name": "f", "parameters": SCHEMA, "strict": True}},
    "a function without a type": {"function": {"name": "f", "description": "", "parameters": SCHEMA}},
    "a function with unknown keys": {
        "type": "function",
        "x": 1,
        "function": {"name": "f", "parameters": None, "strict": None, "y": 2},
    },
    "a function without a schema": {"type": "function", "function": {"name": "f"}},
    "a connector": {"type": "connector", "connector_id": "c"},
    "a library": {"type": "document_library", "library_ids": ["l"]},
    "pictures on demand": {"type": "image_generation"},
}


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS.keys())
def test_a_tool_survives_both_directions(tool):
    body = {"model": "m", "messages": [HI], "tools": [tool]}
    prompt = CODEC.decode_request(body, LARGE)
    assert prompt.context.tools[0].kind == ("function" if "function" in tool else "native")
    assert CODEC.encode_request(prompt, LARGE) == body


@pytest.mark.parametrize("tools", [[], None], ids=["an empty list", "null"])
def test_an_empty_list_of_tools_is_written_back_unchanged(tools):
    body = {"model": "m", "messages": [HI], "tools": tools}
    assert CODEC.encode_request(CODEC.decode_request(body, LARGE), LARGE) == body


def test_a_tool_is_written_with_what_it_says():
    tool = ToolDefinition(name="f", parameters=SCHEMA, strict=True)
    wire = {"type": "function", "function": {"name": "f", "parameters": SCHEMA, "strict": True}}
    assert body_of(Options(), tools=(tool,))["tools"] == [wire]


def test_another_providers_tool_is_refused():
    with pytest.raises(EncodeError) as caught:
        body_of(Options(), tools=(NativeTool(protocol="openai-chat", definition={}),))
    assert caught.value.path == ("tools", 0)


def test_a_bare_list_of_messages_is_read():
    assert CODEC.decode_request([HI], LARGE).context.messages == (UserMessage.of("hi"),)


@pytest.mark.parametrize("model", [{}, {"model": None}, {"model": 3}], ids=["absent", "null", "a number"])
def test_a_body_without_a_model_is_written_back_unchanged(model):
    body = {"messages": [HI], **model}
    assert CODEC.encode_request(CODEC.decode_request(body, LARGE), LARGE) == body


def test_a_reply_is_sent_back_without_keys_of_replies():
    call = {"id": "abcdef123", "function": {"name": "f", "arguments": "{}"}, "index": 0}
    message = {"role": "assistant", "content": "", "tool_calls": [call], "odd": 1}
    reply = {"id": "1", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}], "usage": {}}
    turn = CODEC.decode_response(reply, LARGE, {})
    assert turn.stop_reason == StopReason.TOOL_USE
    assert turn.content == (ToolCall(id="abcdef123", name="f"),)
    sent = CODEC.encode_request(Prompt(context=Context(messages=(turn,))), LARGE)["messages"]
    assert sent == [{"role": "assistant", "content": "", "tool_calls": [{**call_of(call)}]}]


def call_of(call: dict) -> dict:
    return {"id": call["id"], "type": "function", "function": call["function"]}
