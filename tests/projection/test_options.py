"""Tools and options: which are sent to a target, and which are changed or removed."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest
from msgspec.structs import replace

from segue.conversation.content import FileContent, ImageContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Context, NativeTool, Options, Prompt, ToolDefinition
from segue.conversation.messages import AssistantMessage, Message, StopReason, ToolResultMessage, UserMessage
from segue.errors import ProjectionError
from segue.models.catalogue import get_model
from segue.models.model import Model
from segue.models.origin import new_assistant_message
from segue.projection.policy import Policy, Texts
from segue.projection.projector import Projector, project
from segue.projection.report import ChangeCode, Loss
from segue.projection.requirements import MediaNeeded, ThinkingOff
from segue.protocols.api import check, decode_request, encode_request
from segue.requests.outbox import Outbox
from segue.requests.prepare import Request, convert, prepare

CLAUDE = Model("claude-sonnet-4-5", "anthropic", "anthropic-messages", reasoning=True, max_tokens=32_000)
NEW_CLAUDE = Model("claude-opus-4-8", "anthropic", "anthropic-messages", reasoning=True)
GPT = Model("gpt-4o", "openai", "openai-chat")
BEDROCK = Model("amazon.nova-pro-v1:0", "amazon-bedrock", "bedrock-converse")
OLLAMA = Model("qwen3", "ollama", "ollama-chat", reasoning=True)
PLAIN = Model("anything", "plain-text", "plain-text")
FLASH = Model("gemini-2.5-flash", "google", "google-genai", reasoning=True)
FLASH_LITE = Model("gemini-2.5-flash-lite", "google", "google-genai", reasoning=True)
GEMINI = Model("gemini-3-pro-preview", "google", "google-genai", reasoning=True)
COHERE = Model("command-a", "cohere", "cohere-chat")
MAGISTRAL = Model("magistral-small", "mistral", "mistral-chat", reasoning=True)
MUTE = Model("some-model", "openai", "openai-chat", reasoning=True, dialect={"effort": False})
GROQ = Model("some-model", "groq", "openai-chat", reasoning=True)
ONE_VALUE = replace(GROQ, thinking_levels={"minimal": "low"})
ALWAYS = replace(NEW_CLAUDE, thinking_levels={"off": None})
GPT_5_5 = Model("gpt-5.5", "openai", "openai-responses", reasoning=True)
LOW_AND_HIGH = replace(CLAUDE, thinking_levels={"minimal": None, "medium": None, "low": "low", "high": "high"})

HI = UserMessage.of("hi")
OBJECT: dict[str, object] = {"type": "object", "properties": {}}
READ = ToolDefinition(name="read", parameters=OBJECT)
DOTTED = ToolDefinition(name="mcp.read", parameters=OBJECT)


def asked(model: Model, options: Options, *tools: ToolDefinition | NativeTool) -> Options:
    return project(Context(messages=(HI,), tools=tools), model, options=options).options


# -- options -----------------------------------------------------------------------------------------------------------

OPTIONS = {
    "a level the model has is asked for": (CLAUDE, Options(thinking="high"), Options(thinking="high")),
    "a level it lacks becomes the next one up": (LOW_AND_HIGH, Options(thinking="minimal"), Options(thinking="low")),
    "and the next one down where there is none above": (CLAUDE, Options(thinking="max"), Options(thinking="high")),
    "a budget stays": (CLAUDE, Options(thinking=2048), Options(thinking=2048)),
    "a model that does not reason is not asked to": (GPT, Options(thinking="high"), Options()),
    "but may be asked not to think": (GPT, Options(thinking="off"), Options(thinking="off")),
    "no budget is no thinking": (GPT, Options(thinking=0), Options()),
    "options that the target does not support are removed": (
        CLAUDE,
        Options(seed=1, session_id="s", top_p=0.5),
        Options(top_p=0.5),
    ),
    "sampling goes while the model thinks": (CLAUDE, Options(thinking="low", top_p=0.5), Options(thinking="low")),
    "sampling goes unless the model is asked not to think": (GPT_5_5, Options(top_p=0.5), Options()),
    "and stays where it is": (
        GPT_5_5,
        Options(thinking="off", temperature=0.5, top_p=0.5),
        Options(thinking="off", temperature=0.5, top_p=0.5),
    ),
    "but not where it cannot be asked": (
        replace(GPT_5_5, thinking_levels={"off": None, "minimal": None}),
        Options(thinking="off", top_p=0.5),
        Options(thinking="low"),
    ),
    "of options that exclude each other the first stays": (
        CLAUDE,
        Options(temperature=0.5, top_p=0.5),
        Options(temperature=0.5),
    ),
    "a temperature beyond the range is brought into it": (CLAUDE, Options(temperature=1.5), Options(temperature=1.0)),
    "a temperature below nothing is nothing": (CLAUDE, Options(temperature=-1.0), Options(temperature=0.0)),
    "more than the whole share is the whole": (GPT, Options(top_p=1.5), Options(top_p=1.0)),
    "a limit of nothing is the least there is": (GPT, Options(max_tokens=0), Options(max_tokens=1)),
    "or is taken where it means something": (CLAUDE, Options(max_tokens=0), Options(max_tokens=0)),
    "a limit below nothing is none": (GPT, Options(max_tokens=-1), Options()),
    "a budget below nothing is none": (CLAUDE, Options(thinking=-1), Options()),
    "empty stop sequences are removed": (GPT, Options(stop=("", "a", "\n")), Options(stop=("a", "\n"))),
    "blank ones where they are refused": (CLAUDE, Options(stop=("", "a", "\n")), Options(stop=("a",))),
    "and all of them, if there are no others": (GPT, Options(stop=("",)), Options()),
    "stop sequences beyond the limit are removed": (GPT, Options(stop=tuple("abcdef")), Options(stop=tuple("abcd"))),
    "more tokens than the model gives": (CLAUDE, Options(max_tokens=50_000), Options(max_tokens=32_000)),
    "a budget leaves room for the answer": (
        CLAUDE,
        Options(thinking="high", max_tokens=5000),
        Options(thinking=3976, max_tokens=5000),
    ),
    "where there is no room for both there is no thinking, and what it excludes stays": (
        CLAUDE,
        Options(thinking="high", max_tokens=500, temperature=0.5),
        Options(thinking="off", max_tokens=500, temperature=0.5),
    ),
    "a key of extra is removed where an option of the same kind is refused": (
        CLAUDE,
        Options(thinking="low", extra={"anthropic-messages": {"top_k": 5, "service_tier": "auto"}}),
        Options(thinking="low", extra={"anthropic-messages": {"service_tier": "auto"}}),
    ),
    "and stays where it is taken": (
        CLAUDE,
        Options(extra={"anthropic-messages": {"top_k": 5}}),
        Options(extra={"anthropic-messages": {"top_k": 5}}),
    ),
    "a search is not asked of a model that does not": (
        Model("gpt-4o", "openai", "openai-chat"),
        Options(extra={"openai-chat": {"web_search_options": {}}}),
        Options(),
    ),
    "a budget beyond what the model can write": (CLAUDE, Options(thinking=100_000), Options(thinking=30_976)),
    "a budget beyond the model's bounds": (FLASH, Options(thinking=100_000), Options(thinking=24_576)),
    "a budget below the model's bounds": (FLASH_LITE, Options(thinking=100), Options(thinking=512)),
    "a budget within them": (FLASH, Options(thinking=24_576), Options(thinking=24_576)),
    "a model that cannot stop thinking thinks least": (ALWAYS, Options(thinking="off"), Options(thinking="low")),
    "an effort that the protocol does not have": (NEW_CLAUDE, Options(thinking="minimal"), Options(thinking="low")),
    "two levels with one wire value are one": (ONE_VALUE, Options(thinking="minimal"), Options(thinking="low")),
    "levels without data are the two that all have": (MAGISTRAL, Options(thinking="low"), Options(thinking="high")),
    "of a switch all levels are one": (OLLAMA, Options(thinking="high"), Options(thinking="medium")),
    "and that one stays": (OLLAMA, Options(thinking="medium"), Options(thinking="medium")),
    "a target without a parameter for thinking gets none": (MUTE, Options(thinking="high"), Options()),
    "a target without a value for it cannot disable thinking": (GROQ, Options(thinking="off"), Options()),
    "a model may have a value for it that its target has not": (
        replace(GROQ, thinking_levels={"off": "none"}),
        Options(thinking="off"),
        Options(thinking="off"),
    ),
    "a budget that is too small is the smallest": (CLAUDE, Options(thinking=100), Options(thinking=1024)),
    "half a surrogate pair": (
        GPT,
        Options(stop=("a\ud800",), user_id="\ud800"),
        Options(stop=("a\ufffd",), user_id="\ufffd"),
    ),
    "extra of another protocol": (GPT, Options(extra={"ollama-chat": {"k": 1}}), Options()),
    "extra of the same protocol is kept": (
        GPT,
        Options(extra={"openai-chat": {"k": 1}}),
        Options(extra={"openai-chat": {"k": 1}}),
    ),
    "parallel calls without tools": (GPT, Options(parallel_tool_calls=False), Options()),
    "nothing has a place in plain text": (PLAIN, Options(max_tokens=5, stream=True, thinking="low"), Options()),
}


@pytest.mark.parametrize(("model", "given", "expected"), OPTIONS.values(), ids=OPTIONS.keys())
def test_options_become_what_the_target_accepts(model, given, expected):
    projection = project(Context(messages=(HI,)), model, options=given)
    assert projection.options == expected
    assert bool(projection.report.changes) == (given != expected)
    assert {change.path[0] for change in projection.report.changes} <= {"options"}


CHOICES = {
    "a choice without tools": (GPT, (), "required", None),
    "a choice of kind": (GPT, (READ,), "required", "required"),
    "a tool by name": (GPT, (READ,), "read", "read"),
    "a tool that is not there": (GPT, (READ,), "write", None),
    "a name that is mapped": (GPT, (DOTTED,), "mcp.read", "mcp_read_iQmLzrXJ"),
    "no value for auto": (OLLAMA, (READ,), "auto", None),
    "no value for none": (BEDROCK, (READ,), "none", None),
}


@pytest.mark.parametrize(("model", "tools", "given", "expected"), CHOICES.values(), ids=CHOICES.keys())
def test_a_tool_choice_names_an_existing_tool(model, tools, given, expected):
    projection = project(Context(messages=(HI,), tools=tools), model, options=Options(tool_choice=given))
    if given == "mcp.read":
        expected = projection.context.tools[0].name  # pyright: ignore[reportAttributeAccessIssue]
        assert projection.tool_names == {expected: "mcp.read"}
    assert projection.options.tool_choice == expected


FUNCTIONS = {
    "GPT-5.6 and later accept functions only if thinking is disabled": ("gpt-5.6-luna", None, "none"),
    "whatever level is set": ("gpt-5.6", "medium", "none"),
    "also if it is disabled already": ("gpt-6-sol", "off", "none"),
    "GPT-5.4 accepts them beside no effort": ("gpt-5.4", None, None),
    "and not beside another one": ("gpt-5.4-mini", "low", "none"),
    "so does GPT-5.5": ("gpt-5.5", "high", "none"),
    "GPT-5.1 accepts them beside every effort": ("gpt-5.1", "medium", "medium"),
}


@pytest.mark.parametrize("provider", ["openai", "azure"])
@pytest.mark.parametrize(("name", "thinking", "effort"), FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_functions_are_kept_where_they_exclude_thinking(provider, name, thinking, effort):
    model = Model(name, provider, "openai-chat", reasoning=True)
    request = prepare(Context(messages=(HI,), tools=(READ,)), model, options=Options(thinking=thinking))
    assert request.body.get("reasoning_effort") == effort
    assert len(request.body["tools"]) == 1
    assert [change.path for change in request.report.changes] == (
        [("options", "thinking")] if effort == "none" and thinking != "off" else []
    )
    assert not check(request.body, protocol="openai-chat", model=model)
    refused = {**request.body, "reasoning_effort": "medium"}
    found = [violation.code for violation in check(refused, protocol="openai-chat", model=model)]
    assert found == ([] if name == "gpt-5.1" else ["option_with_thinking"])


@pytest.mark.parametrize("name", ["gpt-6-astra", "gpt-6.1-sol"])
def test_functions_are_refused_where_thinking_cannot_be_disabled(name):
    model = Model(name, "openai", "openai-chat", reasoning=True)
    with pytest.raises(ProjectionError, match="use the protocol openai-responses"):
        prepare(Context(messages=(HI,), tools=(READ,)), model)
    assert "reasoning_effort" not in prepare(Context(messages=(HI,)), model).body


def test_a_forced_tool_choice_is_removed_where_thinking_refuses_it():
    assert asked(CLAUDE, Options(thinking="low", tool_choice="required"), READ).tool_choice is None
    assert asked(CLAUDE, Options(tool_choice="required"), READ).tool_choice == "required"
    assert asked(NEW_CLAUDE, Options(thinking="low", tool_choice="required"), READ).tool_choice == "required"


UNASKED = {
    "a forced tool at DeepSeek": ("deepseek", "deepseek-v4-pro", Options(tool_choice="required"), "off"),
    "the caller's level there": ("deepseek", "deepseek-v4-pro", Options(tool_choice="required", thinking="low"), "low"),
    "a free choice there": ("deepseek", "deepseek-v4-pro", Options(tool_choice="auto"), None),
    "a whole reply of Qwen": ("alibaba", "qwen3-8b", Options(), "off"),
    "a whole reply of Qwen, with a level": ("alibaba", "qwen3-8b", Options(thinking="low"), "off"),
    "a stream of Qwen": ("alibaba", "qwen3-8b", Options(stream=True), None),
}


@pytest.mark.parametrize(("provider", "name", "options", "thinking"), UNASKED.values(), ids=UNASKED.keys())
def test_thinking_that_nobody_asked_for_is_disabled_where_the_target_refuses_it(provider, name, options, thinking):
    model = Model(name, provider, "openai-chat", reasoning=True)
    context = Context(messages=(HI,), tools=(READ,))
    assert project(context, model, options=options).options.thinking == thinking
    assert check(prepare(context, model, options=options).body, protocol="openai-chat", model=model) == []


@pytest.mark.parametrize(("choice", "is_kept"), {"auto": True, "none": True, "required": False, "read": False}.items())
def test_an_output_schema_is_removed_where_a_forced_choice_refuses_it(choice, is_kept):
    fitted = asked(GEMINI, Options(output_schema=OBJECT, tool_choice=choice), READ)
    assert (fitted.output_schema is not None) == is_kept
    assert fitted.tool_choice == choice


@pytest.mark.parametrize(
    ("model", "part"),
    [
        (COHERE, {"response_format": {"type": "json_object"}}),
        (FLASH, {"generationConfig": {"responseMimeType": "application/json"}}),
    ],
    ids=["Cohere", "Gemini 2"],
)
def test_json_without_a_schema_is_refused_beside_tools_as_a_schema_is(model, part):
    options = Options(extra={model.protocol: part})
    assert asked(model, options) is options
    assert asked(model, options, READ) == Options()
    assert asked(model, Options(output_schema=OBJECT), READ) == Options()


STOPS = {
    "an empty one is never sent": (("", "a"), Loss.NONE),
    "one too many": (tuple("abcde"), Loss.CONTENT),
    "one too many beside an empty one": (("", *"abcde"), Loss.CONTENT),
}


@pytest.mark.parametrize(("stop", "loss"), STOPS.values(), ids=STOPS.keys())
def test_only_non_empty_stop_sequences_count_as_lost(stop, loss):
    [change] = project(Context(messages=(HI,)), GPT, options=Options(stop=stop)).report.changes
    assert change.loss == loss


def test_removing_auto_loses_nothing():
    report = project(Context(messages=(HI,), tools=(READ,)), OLLAMA, options=Options(tool_choice="auto")).report
    assert report.changes
    assert report.lossless


def test_options_that_fit_are_the_same_object_and_unset_ones_stay_unset():
    options = Options(max_tokens=5)
    assert project(Context(messages=(HI,)), GPT, options=options).options is options
    assert project(Context(messages=(HI,)), GPT).options == Options()


SAMPLED = {
    "what happens anyway": (Options(temperature=1, top_p=1.0), Loss.NONE),
    "anything else": (Options(temperature=0.5), Loss.CONTENT),
}


@pytest.mark.parametrize(("options", "loss"), SAMPLED.values(), ids=SAMPLED.keys())
def test_removing_sampling_is_a_loss_unless_it_is_the_default(options, loss):
    projection = project(Context(messages=(HI,)), Model("gpt-5-nano", "openai", "openai-chat"), options=options)
    assert projection.options == Options()
    assert {change.loss for change in projection.report.changes} == {loss}


# -- tools -------------------------------------------------------------------------------------------------------------

KIMI = Model("kimi-k3", "moonshotai", "openai-chat", reasoning=True)
STRICT = replace(GPT, rules={"schema_keywords": {"values": ["$schema", "default"]}, "max_tools": 2})

SCHEMAS = {
    "a root that is an object": (GPT, OBJECT, OBJECT),
    "an empty one": (GPT, {}, OBJECT),
    "a root without a type": (
        GPT,
        {"properties": {"a": {}}},
        {"type": "object", "properties": {"a": {}}},
    ),
    "a root that is something else": (GPT, {"type": "string"}, OBJECT),
    "a choice at the root": (
        GPT,
        {"anyOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["a", "b"]}]},
        {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"]},
    ),
    "all of several": (
        GPT,
        {"type": "object", "allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"required": ["b"]}]},
        {"type": "object", "properties": {"a": {}}, "required": ["a"]},
    ),
    "a choice inside": (
        GPT,
        {"type": "object", "properties": {"a": {"anyOf": [{}, {}]}}},
        {"type": "object", "properties": {"a": {"anyOf": [{}, {}]}}},
    ),
    "keywords that are refused at every depth": (
        STRICT,
        {"$schema": "x", "type": "object", "properties": {"default": {"default": 1, "items": [{"default": 2}]}}},
        {"type": "object", "properties": {"default": {"prefixItems": [{}]}}},
    ),
    "bounds that are flags": (
        GPT,
        {"type": "object", "properties": {"a": {"minimum": 0, "exclusiveMinimum": True, "exclusiveMaximum": False}}},
        {"type": "object", "properties": {"a": {"exclusiveMinimum": 0}}},
    ),
    "references to anything but definitions": (
        KIMI,
        {
            "type": "object",
            "$defs": {"V": {"type": "string", "description": "in"}},
            "properties": {
                "a": {"type": "integer"},
                "b": {"$ref": "#/properties/a", "title": "B"},
                "c": {"$ref": "#/$defs/V", "description": "out", "title": "C"},
                "d": {"$ref": "#/properties/b"},
            },
        },
        {
            "type": "object",
            "$defs": {"V": {"type": "string", "description": "in"}},
            "properties": {
                "a": {"type": "integer"},
                "b": {"type": "integer", "title": "B"},
                "c": {"$ref": "#/$defs/V", "title": "C"},
                "d": {"type": "string"},
            },
        },
    ),
    "keywords of another type": (
        GEMINI,
        {"type": "object", "properties": {"a": {"type": "string", "properties": {}, "required": [], "items": {}}}},
        {"type": "object", "properties": {"a": {"type": "string"}}},
    ),
    "values are not keywords": (
        STRICT,
        {"type": "object", "properties": {"a": {"enum": [{"default": 1}]}}},
        {"type": "object", "properties": {"a": {"enum": [{"default": 1}]}}},
    ),
}


@pytest.mark.parametrize(("model", "given", "expected"), SCHEMAS.values(), ids=SCHEMAS.keys())
def test_a_schema_is_changed_to_what_the_target_accepts(model, given, expected):
    tool = ToolDefinition(name="read", parameters=given)
    projection = project(Context(messages=(HI,), tools=(tool,)), model)
    assert projection.context.tools == (replace(tool, parameters=expected),)
    if given == expected:
        assert projection.context.tools[0] is tool


CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
OPEN = {**CLOSED, "required": []}
PROMISES = {
    "a schema that can be": (GPT, CLOSED, True),
    "one with something to leave out": (GPT, OPEN, None),
    "one that is open inside": (GPT, {**CLOSED, "properties": {"a": {"type": "object", "properties": {}}}}, None),
    "one that takes more than it names": (GPT, {**CLOSED, "additionalProperties": True}, None),
    "and where that is no condition": (CLAUDE, OPEN, True),
    "on the other wire": (replace(GPT, protocol="openai-responses"), OPEN, None),
    "at Azure": (replace(GPT, provider="azure"), OPEN, None),
}


@pytest.mark.parametrize(("model", "schema", "strict"), PROMISES.values(), ids=PROMISES.keys())
def test_a_tool_is_strict_only_if_its_schema_allows_it(model, schema, strict):
    tool = ToolDefinition(name="read", parameters=schema, strict=True)
    projection = project(Context(messages=(HI,), tools=(tool,)), model)
    assert projection.context.tools == (replace(tool, strict=strict),)
    assert [change.path for change in projection.report.changes] == ([] if strict else [("tools", 0, "strict")])


def test_a_native_tool_is_kept_for_its_protocol_and_removed_for_others():
    web = NativeTool(protocol="openai-chat", definition={"type": "vendor_tool"})
    assert project(Context(messages=(HI,), tools=(web, READ)), GPT).context.tools == (web, READ)
    assert project(Context(messages=(HI,), tools=(web, READ)), CLAUDE).context.tools == (READ,)


def test_a_second_tool_of_a_name_and_one_beyond_the_limit_are_removed():
    tools = (READ, READ, *(ToolDefinition(name=f"t{n}", parameters=OBJECT) for n in range(3)))
    projection = project(Context(messages=(HI,), tools=tools), STRICT)
    assert [tool.name for tool in projection.context.tools if tool.kind == "function"] == ["read", "t0"]
    assert [change.path for change in projection.report.changes] == [("tools", 1), ("tools", 3), ("tools", 4)]


def test_a_name_is_the_same_in_tools_choice_and_history():
    call = ToolCall(id="call1", name="mcp.read")
    turn = AssistantMessage(content=(call,), protocol="openai-chat", provider="openai", model="gpt-4o")
    answer = ToolResultMessage(tool_call_id="call1", tool_name="mcp.read", content=(TextContent(text="ok"),))
    context = Context(messages=(HI, turn, answer), tools=(DOTTED,))
    projection = project(context, GPT, options=Options(tool_choice="mcp.read"))
    (name,) = projection.tool_names
    assert projection.tool_names[name] == "mcp.read"
    assistant = projection.context.messages
    assert assistant[1].content[0].name == name  # pyright: ignore[reportAttributeAccessIssue]
    assert assistant[2].tool_name == projection.options.tool_choice == name  # pyright: ignore[reportAttributeAccessIssue]
    assert projection.context.tools == (replace(DOTTED, name=name),)


def test_tools_that_only_the_history_uses_are_declared_where_required():
    turn = AssistantMessage(content=(ToolCall(id="c1", name="read"), ToolCall(id="c2", name="write")))
    answers = (
        ToolResultMessage(tool_call_id="c1", content=(TextContent(text="ok"),)),
        ToolResultMessage(tool_call_id="c2", content=(TextContent(text="ok"),)),
    )
    context = Context(messages=(HI, turn, *answers), tools=(READ,))
    policy = Policy(texts=Texts(tool_gone="gone"))
    declared = project(context, BEDROCK, policy=policy).context.tools
    assert declared == (READ, ToolDefinition(name="write", description="gone", parameters=OBJECT))
    assert project(context, GPT).context.tools is context.tools


# -- user ids ----------------------------------------------------------------------------------------------------------

USERS = {
    "OpenAI chat": (GPT, 64),
    "OpenAI Responses": (GPT_5_5, 64),
    "Azure": (Model("gpt-5", "azure", "openai-chat"), 64),
    "Anthropic": (CLAUDE, 256),
    "Claude at Vertex": (Model("claude-sonnet-4-5@20250929", "google-vertex", "anthropic-messages"), 256),
    "OpenRouter": (Model("openai/gpt-5", "openrouter", "openai-chat"), 128),
    "Z.ai": (Model("glm-5", "zai", "openai-chat"), 128),
    "DeepSeek": (Model("deepseek-chat", "deepseek", "openai-chat"), 512),
}


@pytest.mark.parametrize(("model", "most"), USERS.values(), ids=USERS.keys())
def test_a_user_id_of_a_refused_length_is_hashed(model, most):
    context = Context(messages=(HI,))
    fitting, longer = "u" * most, "u" * (most + 1)
    assert prepare(context, model, options=Options(user_id=fitting)).projection.options.user_id == fitting
    request = prepare(context, model, options=Options(user_id=longer))
    assert request.projection.options.user_id == sha256(longer.encode()).hexdigest()
    (change,) = request.report.changes
    assert (change.code, change.path, change.loss) == ("option_clamped", ("options", "user_id"), Loss.NONE)
    assert check(request.body, protocol=model.protocol, model=model) == []
    sent = encode_request(Prompt(context=context, options=Options(user_id=longer, max_tokens=99)), model=model)
    assert [violation.code for violation in check(sent, protocol=model.protocol, model=model)] == ["user_id_invalid"]


def test_a_user_id_that_is_too_short_is_hashed():
    zai, _ = USERS["Z.ai"]
    assert asked(zai, Options(user_id="ann")).user_id == sha256(b"ann").hexdigest()
    assert asked(zai, Options(user_id="ann-marie")).user_id == "ann-marie"


def test_a_user_id_stays_where_no_limit_is_known():
    other = Model("some-model", "my-server", "openai-chat")
    assert asked(other, Options(user_id="u" * 999)).user_id == "u" * 999
    strict = replace(other, rules={"user_id": {"most": 10}})
    assert asked(strict, Options(user_id="u" * 11)).user_id == sha256(b"u" * 11).hexdigest()[:10]


@pytest.mark.parametrize("model", [GPT, GPT_5_5], ids=lambda model: model.protocol)
def test_a_second_user_id_of_a_body_is_hashed_too(model):
    turns = {"messages": [{"role": "user", "content": "hi"}]} if model is GPT else {"input": "hi"}
    body = {"model": model.id, **turns, "user": "u" * 70, "safety_identifier": "s" * 70}
    codes = [(violation.code, violation.path) for violation in check(body, protocol=model.protocol, model=model)]
    assert codes == [("user_id_invalid", ("safety_identifier",)), ("user_id_invalid", ("user",))]
    request = convert(body, source=model.protocol, target=model)
    assert check(request.body, protocol=model.protocol, model=model) == []
    assert encode_request(decode_request(body, protocol=model.protocol), protocol=model.protocol) == body


# -- what only the caller can give -------------------------------------------------------------------------------------


def own(*content: ThinkingContent | TextContent | ToolCall, model: Model = CLAUDE) -> AssistantMessage:
    return AssistantMessage(content=content, protocol=model.protocol, provider=model.provider, model=model.id)


def cycle(*content: ThinkingContent | TextContent | ToolCall, model: Model = CLAUDE) -> Context:
    turn = own(*content, model=model)
    answer = ToolResultMessage(tool_call_id="c1", tool_name="read", content=(TextContent(text="ok"),))
    return Context(messages=(HI, turn, answer), tools=(READ,))


CALL = ToolCall(id="c1", name="read")
SIGNED = ThinkingContent(thinking="hm", thinking_signature="sig0")

CYCLES = {
    "a cycle opened without thinking": (cycle(CALL), True),
    "a cycle opened by another model's thinking": (cycle(SIGNED, CALL, model=GPT), True),
    "a cycle opened by its own thinking": (cycle(SIGNED, CALL), False),
    "an answer begun without thinking": (Context(messages=(HI, own(TextContent(text="so")))), True),
    "an answer begun in a cycle": (cycle(SIGNED, CALL).add(own(TextContent(text="so"))), True),
    "an answer begun with its own thinking": (Context(messages=(HI, own(SIGNED, TextContent(text="so")))), False),
    "a new turn of the user's": (cycle(CALL).add(own(TextContent(text="so")), UserMessage.of("and")), False),
}


@pytest.mark.parametrize(("context", "is_needed"), CYCLES.values(), ids=CYCLES.keys())
def test_thinking_off_is_required_where_the_tool_cycle_cannot_be_replayed(context, is_needed):
    on = project(context, CLAUDE, options=Options(thinking="low"))
    assert (ThinkingOff() in on.requirements) == is_needed
    for options in (Options(), Options(thinking="off"), Options(thinking=0)):
        assert project(context, CLAUDE, options=options).requirements == ()
    assert project(context, NEW_CLAUDE, options=Options(thinking="low")).requirements == ()


CLAUDES = (
    CLAUDE,
    Model("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "amazon-bedrock", "bedrock-converse", reasoning=True),
    Model("claude-sonnet-4-5@20250929", "google-vertex", "anthropic-messages", reasoning=True),
)
RESULT = ToolResultMessage(tool_call_id="c1", tool_name="read", content=(TextContent(text="ok"),))


@pytest.mark.parametrize("model", CLAUDES, ids=lambda model: model.id)
@pytest.mark.parametrize("thinking", ["off", 0, "low", 2048])
def test_a_request_of_either_mode_is_accepted_whatever_the_cycle_holds(model, thinking):
    say = TextContent(text="so")
    histories = {
        "prefill": (HI, own(say, model=model)),
        "prefill with thinking": (HI, own(SIGNED, say, model=model)),
        "cycle without thinking": (HI, own(CALL, model=model), RESULT),
        "cycle with thinking": (HI, own(SIGNED, CALL, model=model), RESULT),
        "begun by another model": (HI, own(CALL, model=GPT), RESULT, own(SIGNED, CALL, model=model), RESULT),
        "redacted": (HI, own(replace(SIGNED, thinking="", redacted=True), CALL, model=model), RESULT),
    }
    for name, messages in histories.items():
        context = Context(messages=messages, tools=(READ,))
        request = prepare(context, model, options=Options(thinking=thinking, max_tokens=8192))
        assert check(request.body, protocol=model.protocol, model=model) == [], name
        repeated = Outbox(model).prepare(context, options=Options(thinking=thinking, max_tokens=8192))
        assert repeated.content == request.content


def test_thinking_in_a_cycle_is_sent_as_text_while_thinking_is_off():
    context = cycle(SIGNED, CALL)
    off = project(context, CLAUDE, options=Options(thinking="off"))
    assert off.context.messages[1].content == (TextContent(text="hm"), CALL)
    assert [(change.code, change.path) for change in off.report.changes] == [
        ("thinking_as_text", ("messages", 1, "content", 0))
    ]
    dropped = project(context, CLAUDE, options=Options(thinking="off"), policy=Policy(reasoning="drop"))
    assert dropped.context.messages[1].content == (CALL,)
    for options in (Options(), Options(thinking="low")):
        assert project(context, CLAUDE, options=options).context is context


def test_a_model_that_decides_itself_takes_thinking_in_a_cycle_with_thinking_off():
    context = Context(messages=(HI, own(SIGNED, CALL, model=NEW_CLAUDE), RESULT), tools=(READ,))
    assert project(context, NEW_CLAUDE, options=Options(thinking="off")).context is context


def test_a_budget_without_room_turns_thinking_off_in_the_cycle_too():
    off = project(cycle(SIGNED, CALL), CLAUDE, options=Options(thinking="low", max_tokens=1500))
    assert off.options.thinking == "off"
    assert off.context.messages[1].content == (TextContent(text="hm"), CALL)


def test_a_settled_prefix_follows_the_mode_of_each_request():
    projector = Projector(CLAUDE)
    context = cycle(SIGNED, CALL)
    for _ in range(3):
        for thinking in ("off", "low", None):
            options = Options(thinking=thinking)
            assert projector.project(context, options=options) == project(context, CLAUDE, options=options)
        context = context.add(own(SIGNED, CALL), RESULT)


def test_a_turn_before_a_dropped_one_keeps_its_thinking():
    aborted = replace(own(CALL), stop_reason=StopReason.ABORTED)
    messages = (HI, own(SIGNED, TextContent(text="so")), aborted, RESULT, own(TextContent(text="well")))
    context = Context(messages=messages, tools=(READ,))
    sent = project(context, CLAUDE, options=Options(thinking="off"))
    assert sent.context.messages[1] is messages[1]
    assert Projector(CLAUDE).project(context, options=Options(thinking="off")) == sent
    earlier = project(replace(context, messages=messages[:4]), CLAUDE, options=Options(thinking="off"))
    assert earlier.context.messages[1] is messages[1]
    assert check(prepare(context, CLAUDE, options=Options(thinking="off")).body, protocol=CLAUDE.protocol) == []


def test_a_cycle_with_thinking_off_is_sent_alike_while_it_grows():
    context, sent = cycle(SIGNED, CALL), []
    for _ in range(3):
        messages = prepare(context, CLAUDE, options=Options(thinking="off")).body["messages"]
        assert messages[: len(sent)] == sent
        sent = messages
        context = context.add(own(SIGNED, CALL), RESULT)
    context = context.add(own(TextContent(text="so")), UserMessage.of("and"))
    assert prepare(context, CLAUDE, options=Options(thinking="off")).body["messages"][: len(sent)] == sent


def test_media_that_the_target_cannot_fetch_are_required_by_reference():
    image = ImageContent(url="https://example.org/i.png")
    needed = project(Context(messages=(UserMessage.of("see", image),)), OLLAMA).requirements
    assert needed == (MediaNeeded(path=("messages", 0, "content", 1), reference="https://example.org/i.png"),)
    file = FileContent(file_id="another's", mime_type="application/pdf")
    reader = replace(CLAUDE, input=("text", "image", "document"))
    needed = project(Context(messages=(UserMessage.of(file),)), reader).requirements
    assert needed == (MediaNeeded(path=("messages", 0, "content", 0), reference="another's"),)


def test_properties_whose_names_the_target_refuses_are_renamed_and_mapped_back():
    inner = {"type": "object", "properties": {"$inner": {"type": "string"}}}
    names = ("ok", "$top", "größe", "my key!", "", "n" * 65)
    schema = {"type": "object", "properties": dict.fromkeys(names, inner), "required": ["ok", "$top"]}
    odd = ToolDefinition(name="odd", parameters=schema)
    context = Context(messages=(HI,), tools=(READ, odd))
    projector = Projector(NEW_CLAUDE)
    for _ in range(2):  # the second finds the tools fitted
        projected = projector.project(context)
        place = ("tools", 1, "parameters", "properties")
        renamed = [change.path for change in projected.report.changes if change.code == ChangeCode.NAME_CHANGED]
        assert renamed == [(*place, name) for name in names if name != "ok"]
    assert len(projected.tool_names) == len(names) - 1
    assert project(context, GPT).tool_names == {}
    request = prepare(context, NEW_CLAUDE)
    assert check(request.body, protocol=NEW_CLAUDE.protocol, model=NEW_CLAUDE) == []
    tool: Any = request.body["tools"][1]
    wire = list(tool["input_schema"]["properties"])
    assert tool["input_schema"]["required"] == wire[:2]
    values: dict[str, object] = {name: at for at, name in enumerate(wire)}
    block = {"type": "tool_use", "id": "toolu_1", "name": "odd", "input": values}
    reply = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use"}
    whole = request.decode({**reply, "content": [block], "usage": {"input_tokens": 1, "output_tokens": 1}})
    wanted = {name: at for at, name in enumerate(names)}
    assert [call.arguments for call in whole.tool_calls()] == [wanted]
    decoder = request.stream_decoder()
    written = json.dumps(values)
    deltas = [{"type": "input_json_delta", "partial_json": written[at : at + 9]} for at in range(0, len(written), 9)]
    frames = [
        {"type": "message_start", "message": {**reply, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {**block, "input": {}}},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    events: list[Any] = [event for frame in frames for event in decoder.feed(json.dumps(frame).encode())]
    assert json.loads("".join(event.delta for event in events if event.type == "toolcall_delta")) == wanted
    assert events[-1].message.tool_calls() == decoder.message.tool_calls() == whole.tool_calls()
    # The model is sent what it wrote, any other model the given names.
    done = ToolResultMessage(tool_call_id="toolu_1", tool_name="odd", content=(TextContent(text="done"),))
    again: Any = prepare(context.add(whole, done), NEW_CLAUDE).body
    assert list(again["messages"][1]["content"][0]["input"].items()) == list(values.items())
    other: Any = prepare(context.add(whole, done), GPT).body
    assert json.loads(other["messages"][1]["tool_calls"][0]["function"]["arguments"]) == wanted


_JSON_MODE = {"type": "json_object"}
_JSON_TARGETS = ("openai/gpt-4.1", "deepseek/deepseek-chat", "groq/llama-3.3-70b-versatile", "alibaba/qwen-plus")


def _asking_for_json(model: str, *texts: str, protocol: str = "openai-chat") -> Request:
    turns = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)]
    name = model.partition("/")[2]
    body: dict[str, object] = {"model": name, "messages": turns, "response_format": _JSON_MODE}
    if protocol == "openai-responses":
        body = {"model": name, "input": turns, "text": {"format": _JSON_MODE}}
    return convert(body, source=protocol, target=model, target_protocol=protocol)


def _json_mode(request: Request) -> object:
    return request.body.get("response_format") or request.body.get("text", {}).get("format")


JSON_REQUESTS = [
    *((model, "openai-chat") for model in _JSON_TARGETS),
    ("openai/gpt-4.1", "openai-responses"),
]


@pytest.mark.parametrize(("model", "protocol"), JSON_REQUESTS)
@pytest.mark.parametrize("texts", [("Reply in JSON.",), ("As json.", "{}", "And again?")])
def test_json_mode_is_judged_with_the_conversation(model: str, protocol: str, texts: tuple[str, ...]) -> None:
    request = _asking_for_json(model, *texts, protocol=protocol)
    assert _json_mode(request) == _JSON_MODE
    assert not request.report.of(ChangeCode.OPTION_REMOVED)


@pytest.mark.parametrize(("model", "protocol"), JSON_REQUESTS)
def test_json_mode_that_the_target_refuses_here_is_reported_with_the_rule(model: str, protocol: str) -> None:
    request = _asking_for_json(model, "Reply.", protocol=protocol)
    assert _json_mode(request) is None
    [change] = request.report.changes
    assert (change.code, change.loss) == (ChangeCode.OPTION_REMOVED, Loss.CONTENT)
    assert "JSON mode needs the word JSON in a message" in change.detail


def test_json_mode_is_judged_with_turns_that_are_settled() -> None:
    options = Options(extra={"openai-chat": {"response_format": _JSON_MODE}})
    model = get_model("deepseek/deepseek-chat")
    projector = Projector(model)
    turns: tuple[Message, ...] = (UserMessage.of("As JSON."),)
    for _ in range(3):
        projection = projector.project(Context(messages=turns), options=options)
        assert projection.options == options
        assert not projection.report.changes
        turns = (*turns, new_assistant_message(model, content=(TextContent(text="{}"),)), UserMessage.of("Next."))
