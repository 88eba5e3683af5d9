"""What a request asks besides the conversation: read, written, and written back as it was."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from protocols.openai_chat.endpoints import GPT, PROTOCOL, body_of, endpoint, read, write
from segue.conversation.content import CacheMark
from segue.conversation.context import Context, NativeTool, Options, Prompt, ToolDefinition
from segue.conversation.messages import UserMessage
from segue.errors import EncodeError
from segue.protocols.api import decode_request, encode_request
from segue.protocols.openai_chat.protocol import PROTOCOL as CODEC
from segue.requests.prepare import convert, prepare

HI = {"role": "user", "content": "hi"}
HELLO = UserMessage.of("hi")
SCHEMA = {"type": "object", "properties": {}}
FUNCTION = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}


def asked(options: Options, at=GPT, **context: object) -> dict[str, object]:
    """Give a request without model, messages and `store`."""
    body = write(HELLO, at=at, options=options, **context)
    return {key: value for key, value in body.items() if key not in ("model", "messages", "store")}


BOTH_WAYS = {
    "a limit": (Options(max_tokens=9), {"max_completion_tokens": 9}),
    "sampling": (Options(temperature=0.5, top_p=0.9, seed=7), {"temperature": 0.5, "top_p": 0.9, "seed": 7}),
    "stops": (Options(stop=("a", "b")), {"stop": ["a", "b"]}),
    "a stream": (Options(stream=True), {"stream": True, "stream_options": {"include_usage": True}}),
    "no stream": (Options(stream=False), {"stream": False}),
    "a choice": (Options(tool_choice="required"), {"tool_choice": "required"}),
    "a tool by name": (Options(tool_choice="f"), {"tool_choice": {"type": "function", "function": {"name": "f"}}}),
    "one call at a time": (Options(parallel_tool_calls=False), {"parallel_tool_calls": False}),
    "a schema": (
        Options(output_schema=SCHEMA),
        {"response_format": {"type": "json_schema", "json_schema": {"name": "output", "schema": SCHEMA}}},
    ),
    "a session": (Options(session_id="s"), {"prompt_cache_key": "s"}),
    "a user": (Options(user_id="u"), {"user": "u"}),
}


@pytest.mark.parametrize(("options", "wire"), BOTH_WAYS.values(), ids=BOTH_WAYS.keys())
def test_an_option_is_written_and_read(options, wire):
    assert asked(options) == wire
    assert read(HI, **wire).options == options


def test_a_long_cache_is_asked_for_where_a_model_has_one():
    long = Options(cache_retention="long")
    assert asked(long, at=endpoint("openai", "gpt-4.1")) == {"prompt_cache_retention": "24h"}
    assert asked(long) == {}
    assert read(HI, prompt_cache_retention="24h").options.cache_retention == "long"


OTHER_FORMATS = {
    "the old name of the limit": ({"max_tokens": 9}, Options(max_tokens=9)),
    "both names of the limit": ({"max_tokens": 9, "max_completion_tokens": 8}, Options(max_tokens=8)),
    "one stop as a string": ({"stop": "a"}, Options(stop=("a",))),
    "a stream without usage": ({"stream": True}, Options(stream=True)),
    "a stream with noise off": (
        {"stream": True, "stream_options": {"include_usage": True, "include_obfuscation": False}},
        Options(stream=True),
    ),
    "a choice without its type": ({"tool_choice": {"function": {"name": "f"}}}, Options(tool_choice="f")),
    "a choice of a custom tool": (
        {"tool_choice": {"type": "custom", "custom": {"name": "f"}}},
        Options(tool_choice="f"),
    ),
    "an old choice": ({"function_call": {"name": "f"}}, Options(tool_choice="f")),
    "a strict schema": (
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "x", "schema": SCHEMA, "strict": True, "description": "d"},
            }
        },
        Options(output_schema=SCHEMA),
    ),
    "a short cache": ({"prompt_cache_retention": "in_memory"}, Options(cache_retention="short")),
    "a user under the new name": ({"safety_identifier": "u"}, Options(user_id="u")),
    "an effort beside a switch": ({"reasoning": {"effort": "high", "enabled": True}}, Options(thinking="high")),
    "a bare switch": ({"thinking": {"type": "enabled"}}, Options(thinking="medium")),
    "a budget": ({"thinking": {"type": "enabled", "budget_tokens": 99}}, Options(thinking=99)),
    "a template's switch": ({"chat_template_kwargs": {"enable_thinking": False, "x": 1}}, Options(thinking="off")),
}


@pytest.mark.parametrize(("wire", "options"), OTHER_FORMATS.values(), ids=OTHER_FORMATS.keys())
def test_an_option_in_another_format_is_read_and_comes_out_as_it_was(wire, options):
    body = body_of(HI, **wire)
    prompt = CODEC.decode_request(body, GPT)
    assert replace(prompt.options, extra=None) == options
    assert CODEC.encode_request(prompt, GPT) == body


KEPT = {
    "unknown keys": {"n": 2, "logprobs": True, "metadata": {"a": "b"}, "verbosity": "low", "moderation": {}},
    "null options": {"temperature": None, "max_tokens": None, "stop": None, "stream": None, "tool_choice": None},
    "an unknown choice": {"tool_choice": "sometimes"},
    "allowed tools": {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}},
    "another format": {"response_format": {"type": "json_object"}},
    "reasoning without a level": {"reasoning": {"exclude": True}},
    "stream options without a stream": {"stream_options": {"include_usage": True}},
    "a request to keep it": {"store": True},
    "cache options": {"prompt_cache_options": {"mode": "explicit", "ttl": "30m"}},
    "no tools": {"tools": []},
    "null tools": {"tools": None},
}


@pytest.mark.parametrize("wire", KEPT.values(), ids=KEPT.keys())
def test_what_is_not_understood_is_kept_and_comes_out_as_it_was(wire):
    body = body_of(HI) | wire
    prompt = CODEC.decode_request(body, GPT)
    assert replace(prompt.options, extra=None) == Options()
    assert CODEC.encode_request(prompt, GPT) == body


def test_a_body_that_names_no_model_and_does_not_mind_being_kept_comes_out_so():
    body = {"messages": [HI]}
    assert CODEC.encode_request(CODEC.decode_request(body, GPT), GPT) == body


def test_the_format_of_another_provider_is_not_used():
    given = read(HI, tool_choice={"function": {"name": "f"}}, tools=[], at=endpoint("huggingface"))
    body = CODEC.encode_request(given, GPT)
    assert body["tool_choice"] == {"type": "function", "function": {"name": "f"}}
    assert "tools" not in body


def test_a_changed_option_is_not_written_as_it_was():
    prompt = read(HI, stop="a", max_tokens=9)
    changed = Prompt(context=prompt.context, options=replace(prompt.options, max_tokens=5), model=prompt.model)
    body = CODEC.encode_request(changed, GPT)
    assert body["max_completion_tokens"] == 5
    assert "max_tokens" not in body
    assert body["stop"] == "a"


def test_a_changed_choice_does_not_mix_two_formats():
    prompt = read(HI, tool_choice={"type": "custom", "custom": {"name": "f"}})
    changed = Prompt(context=prompt.context, options=replace(prompt.options, tool_choice="g"), model=prompt.model)
    body = CODEC.encode_request(changed, GPT)
    assert body["tool_choice"] == {"type": "function", "function": {"name": "g"}}


def test_a_name_of_the_limit_that_the_next_model_refuses_is_not_imitated():
    prompt = read(HI, max_tokens=9)
    request = prepare(prompt.context, endpoint("openai", "gpt-5-mini").model, options=prompt.options)
    assert request.body["max_completion_tokens"] == 9
    assert "max_tokens" not in request.body


def test_a_request_that_was_refused_for_the_name_of_its_limit_comes_out_as_it_was():
    at, body = endpoint("openai", "gpt-5-mini"), {**body_of(HI, max_tokens=9), "model": "gpt-5-mini"}
    prompt = CODEC.decode_request(body, at)
    assert CODEC.encode_request(prompt, at) == body
    assert "max_tokens" not in prepare(prompt.context, at.model, options=prompt.options).body


NAMED = {"name": "person", "description": "Someone.", "strict": False, "schema": SCHEMA}
CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


def schema_at(at, **form):
    given = read(HI, response_format={"type": "json_schema", "json_schema": {**NAMED, **form}})
    body: Any = CODEC.encode_request(given, at)
    return body["response_format"]["json_schema"]


def test_a_schema_keeps_its_name_at_another_provider():
    assert schema_at(endpoint("groq")) == NAMED


def form_of(options: Options, at=GPT) -> dict[str, object]:
    body: Any = asked(options, at)
    return body["response_format"]["json_schema"]


def test_a_schema_that_can_be_followed_strictly_is_strict_for_every_vendor():
    options = Options(output_schema={**CLOSED, "title": "A person!"})
    assert form_of(options) == {"name": "A_person", "schema": options.output_schema, "strict": True}
    assert form_of(options, endpoint("groq"))["strict"] is True


@pytest.mark.parametrize("required", [[{}], "a", None, ["b"]], ids=str)
def test_a_schema_that_leaves_things_open_is_not_strict(required):
    assert "strict" not in form_of(Options(output_schema={**CLOSED, "required": required}))


def test_no_key_of_a_session_without_a_cache():
    assert asked(Options(session_id="s", cache_retention="none")) == {}


def test_a_session_key_is_not_changed():
    assert asked(Options(session_id="s" * 99)) == {"prompt_cache_key": "s" * 99}


# -- tools -------------------------------------------------------------------------------------------------------------

TOOLS = {
    "a function": FUNCTION,
    "a described one": {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}},
    "one described by nothing": {
        "type": "function",
        "function": {"name": "f", "description": "", "parameters": SCHEMA},
    },
    "one with a null description": {
        "type": "function",
        "function": {"name": "f", "description": None, "parameters": SCHEMA},
    },
    "a strict one": {"type": "function", "function": {"name": "f", "parameters": SCHEMA, "strict": True}},
    "one with strictness null": {"type": "function", "function": {"name": "f", "parameters": SCHEMA, "strict": None}},
    "one without parameters": {"type": "function", "function": {"name": "f"}},
    "one with null parameters": {"type": "function", "function": {"name": "f", "parameters": None}},
    "one with more keys": {
        "type": "function",
        "function": {"name": "f", "parameters": SCHEMA, "response": {}},
        "cache_control": {"type": "ephemeral"},
    },
    "one without a type": {"function": {"name": "f", "parameters": SCHEMA}},
    "one with parameters that are none": {"type": "function", "function": {"name": "f", "parameters": [1]}},
    "one with a list for a description": {"type": "function", "function": {"name": "f", "description": ["a"]}},
    "one with a number for strictness": {"type": "function", "function": {"name": "f", "strict": 1}},
}


@pytest.mark.parametrize("provider", ["openai", "together"])
@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS.keys())
def test_a_tool_comes_out_as_it_was(tool, provider):
    at = endpoint(provider)
    prompt = read(HI, tools=[tool], at=at)
    assert prompt.context.tools[0].name == "f"
    assert CODEC.encode_request(prompt, at)["tools"] == [tool]


NATIVE_TOOLS = {
    "a custom tool without a name": {"type": "custom", "custom": {"format": {"type": "text"}}},
    "a gateway's own tool": {"type": "openrouter:advisor", "parameters": {"model": "m"}},
    "a search": {"type": "web_search"},
}


@pytest.mark.parametrize("tool", NATIVE_TOOLS.values(), ids=NATIVE_TOOLS.keys())
def test_a_tool_that_only_this_wire_knows_is_kept(tool):
    prompt = read(HI, tools=[tool])
    assert prompt.context.tools == (NativeTool(protocol=PROTOCOL, definition=tool),)
    assert CODEC.encode_request(prompt, GPT)["tools"] == [tool]


@pytest.mark.parametrize("function", [{}, {"name": None}, {"name": 1, "parameters": "x"}], ids=str)
def test_a_function_of_old_without_a_name_comes_out_as_it_was(function):
    body = body_of(HI, functions=[function])
    assert CODEC.encode_request(CODEC.decode_request(body, GPT), GPT) == body


def test_functions_of_old_are_tools_and_come_out_as_they_were():
    body = body_of(HI, functions=[{"name": "f", "parameters": SCHEMA}], function_call="auto")
    prompt = CODEC.decode_request(body, GPT)
    assert [getattr(tool, "name", None) for tool in prompt.context.tools] == ["f"]
    assert prompt.options.tool_choice == "auto"
    assert CODEC.encode_request(prompt, GPT) == body


@pytest.mark.parametrize("tool", [FUNCTION, {"type": "web_search"}], ids=["a function", "a native tool"])
def test_a_mark_of_a_tool_is_a_cache_mark(tool):
    wire = {**tool, "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    given = read(HI, tools=[wire]).context.tools[0]
    assert (given.cache_mark, given.extra) == (CacheMark(ttl="1h"), None)
    assert write(HELLO, tools=(given,))["tools"] == [wire]
    assert write(HELLO, tools=(replace(given, cache_mark=None),))["tools"] == [tool]


def test_another_protocols_tool_is_an_error():
    with pytest.raises(EncodeError, match=r"^tools\[0\]:"):
        write(HELLO, tools=(NativeTool(protocol="anthropic-messages", definition={}),))


def test_a_tool_is_strict_only_where_strictness_is_known():
    tool = ToolDefinition(name="f", parameters=SCHEMA, strict=True)
    assert write(HELLO, tools=(tool,))["tools"][0]["function"]["strict"] is True
    assert "strict" not in write(HELLO, tools=(tool,), at=endpoint("together"))["tools"][0]["function"]


# -- caches ------------------------------------------------------------------------------------------------------------

MARK = {"type": "ephemeral"}
CLAUDE = endpoint("openrouter", "anthropic/claude-sonnet-4.5")


def test_marks_go_on_the_prompt_the_last_tool_and_the_last_text():
    tool = ToolDefinition(name="f", parameters=SCHEMA)
    options = Options(cache_retention="short")
    messages = (HELLO, UserMessage.of("a", "b"))
    body = write(*messages, at=CLAUDE, options=options, system_prompt="s", tools=(tool, tool))
    assert body["messages"][0]["content"] == [{"type": "text", "text": "s", "cache_control": MARK}]
    assert body["messages"][1] == HI
    assert body["messages"][2]["content"][1] == {"type": "text", "text": "b", "cache_control": MARK}
    assert "cache_control" not in body["messages"][2]["content"][0]
    assert ["cache_control" in entry for entry in body["tools"]] == [False, True]


def test_a_conversation_with_its_own_marks_gets_no_others():
    marked = {"role": "user", "content": [{"type": "text", "text": "x", "cache_control": MARK}]}
    given = read(marked, HI, at=CLAUDE)
    asking = Prompt(context=given.context, options=Options(cache_retention="long"))
    assert CODEC.encode_request(asking, CLAUDE)["messages"] == [marked, HI]


@pytest.mark.parametrize("retention", [None, "none"])
def test_no_marks_without_a_cache_retention(retention):
    body = write(HELLO, at=CLAUDE, options=Options(cache_retention=retention))
    assert body["messages"] == [HI]


def test_no_marks_where_they_mean_nothing():
    assert write(HELLO, options=Options(cache_retention="short"))["messages"] == [HI]


def test_the_context_is_not_touched_by_marks():
    context = Context(messages=(HELLO,), system_prompt="s")
    prompt = Prompt(context=context, options=Options(cache_retention="short"))
    assert CODEC.encode_request(prompt, CLAUDE) == CODEC.encode_request(prompt, CLAUDE)
    assert context == Context(messages=(HELLO,), system_prompt="s")


CHOICES: dict[str, tuple[object, str | None]] = {
    "any": ("any", "required"),
    "an object with a mode": ({"type": "any"}, "required"),
    "an object with the default": ({"type": "auto"}, "auto"),
    "a tool named directly": ({"type": "tool", "name": "f"}, "f"),
    "a function named directly": ({"type": "function", "name": "f"}, "f"),
    "a tool whose name is a mode elsewhere": ({"type": "function", "function": {"name": "any"}}, "any"),
    "a narrower choice": ({"type": "allowed_tools", "mode": "auto"}, None),
    "an unknown word": ("sometimes", None),
}


@pytest.mark.parametrize(("given", "choice"), CHOICES.values(), ids=CHOICES.keys())
def test_tool_choices_of_other_vendors_are_read(given, choice):
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [tool], "tool_choice": given}
    prompt = decode_request(body, protocol="openai-chat")
    assert prompt.options.tool_choice == choice
    assert encode_request(prompt, protocol="openai-chat") == body
    if choice == "required":
        assert (
            convert(body, source="openai-chat", target="openai/gpt-4o", target_protocol="openai-chat").body[
                "tool_choice"
            ]
            == "required"
        )
        assert convert(body, source="openai-chat", target="anthropic/claude-opus-4-8").body["tool_choice"] == {
            "type": "any"
        }
