"""Grades: only what was refused, or is stated by the provider, changes a request or fails a check."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

import segue
from segue import Context, ImageContent, Model, TextContent, ToolDefinition, UserMessage
from segue.models.catalogue import packaged_catalogue
from segue.models.evidence import GRADES
from segue.models.providers import PROVIDERS
from segue.models.rules import Rules
from segue.models.weights import WEIGHTS
from segue.protocols import counterevidence
from segue.protocols.api import check, resolve_endpoint
from segue.protocols.counterevidence import Answered, graded
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.codec import Violation
from segue.protocols.kit.limits import Limit, Limits
from segue.protocols.registry import PROTOCOLS, resolve_rules

PICTURE = ImageContent(data="iVBORw0KGgo=", mime_type="image/png")
TOOL = ToolDefinition(name="look", description="Look.", parameters={"type": "object", "properties": {}})
HI = UserMessage.of("Hi")

# -- flags of the catalogue --------------------------------------------------------------------------------------------

WITHOUT_TOOLS = ("deepseek/deepseek-reasoner", "azure/gpt-5.1-chat-2025-11-13", "xai/grok-4.20-multi-agent")
"""Models that the catalogue lists without tools, where no refusal is known."""


@pytest.mark.parametrize("name", WITHOUT_TOOLS)
def test_a_flag_removes_no_tool_and_a_strict_check_names_it(name):
    model = segue.get_model(name)
    request = segue.prepare(Context(messages=(HI,), tools=(TOOL,)), model)
    assert request.body["tools"]
    assert check(request.body, protocol=model.protocol, model=model) == []
    found = check(request.body, protocol=model.protocol, model=model, strict=True)
    assert [(one.path, one.grade) for one in found if one.path == ("tools",)] == [(("tools",), "unsure")]


def test_an_image_is_sent_to_a_model_that_is_only_listed_without_images():
    model = segue.get_model("perplexity/sonar-pro")
    assert "image" not in model.input
    request = segue.prepare(Context(messages=(UserMessage.of("What is it?", PICTURE),)), model)
    assert "image_url" in str(request.body)
    assert request.report.lossless
    assert check(request.body, protocol=model.protocol, model=model) == []
    assert [one.grade for one in check(request.body, protocol=model.protocol, model=model, strict=True)] == ["unsure"]


def test_an_image_is_replaced_where_the_provider_was_seen_to_refuse_it():
    model = segue.get_model("deepseek/deepseek-v4-pro")
    assert PROVIDERS["deepseek"].stated["refused_input=image"]
    request = segue.prepare(Context(messages=(UserMessage.of("What is it?", PICTURE),)), model)
    assert "image_url" not in str(request.body)
    assert not request.report.lossless


def test_the_word_of_a_user_about_their_own_model_counts():
    mine = Model("mine", "elsewhere", "openai-chat", input=("text",), rules={"tools": False})
    request = segue.prepare(Context(messages=(UserMessage.of("What is it?", PICTURE),), tools=(TOOL,)), mine)
    assert "image_url" not in str(request.body)
    assert "tools" not in request.body


def test_flags_are_rules_and_are_followed_only_by_a_cautious_endpoint():
    names = set(Rules.__struct_fields__)
    models = packaged_catalogue().models
    assert any(model.flags for model in models)
    for model in models:
        assert set(model.flags) <= names, model.full_name()
        assert not set(model.flags) & set(model.rules), model.full_name()
    model = segue.get_model("deepseek/deepseek-reasoner")
    assert resolve_rules(model).tools
    assert not resolve_rules(model, cautious=True).tools
    assert not resolve_endpoint(model, cautious=True).rules.tools


def test_every_confirmed_flag_has_a_source_and_can_be_a_flag():
    for row in PROVIDERS.values():
        for rule, source in row.stated.items():
            assert rule.partition("=")[0] in Rules.__struct_fields__, row.name
            assert source, row.name


# -- rows --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grade", GRADES)
def test_a_row_is_reported_by_its_grade(grade):
    limits = Limits((Limit("seed", "a source", refused="remove it", grade=grade),))
    body = {"seed": 1}
    plain, wary = (resolve_endpoint(segue.get_model("gpt-4o"), cautious=cautious) for cautious in (False, True))
    found = [(one.code, one.grade) for one in limits.check(body, plain)]
    assert found == ([("option_unsupported", "refused")] if grade == "refused" else [])
    assert [one.grade for one in limits.check(body, wary)] == [grade]


def test_a_name_that_was_answered_is_only_a_notice():
    body = {"model": "qwen-plus", "messages": [{"role": "user", "content": "Hi"}]}
    body["tools"] = [{"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}]
    model = Model("qwen-plus", "alibaba", "openai-chat")
    assert check(body, protocol="openai-chat", model=model) == []
    found = check(body, protocol="openai-chat", model=model, strict=True)
    assert [(one.path, one.grade) for one in found] == [(("tools", 0, "function", "name"), "unsure")]


def test_families_of_the_weights_hold_on_every_protocol_that_serves_them():
    for protocol, provider in (("openai-chat", "vllm"), ("ollama-chat", "ollama"), ("anthropic-messages", "ollama")):
        rules = resolve_rules(Model("qwen3:8b", provider, protocol))
        assert rules.system_messages == "none", protocol
        assert resolve_rules(Model("gemma3:12b", provider, protocol)).alternate, protocol
    assert not resolve_rules(Model("gemma-4-27b", "vllm", "openai-chat")).alternate
    assert all(row.source and row.read for row in WEIGHTS)


# -- replies that contradict a check -----------------------------------------------------------------------------------

ENDPOINT = resolve_endpoint(Model("gemini-2.5-flash", "google", "google-genai"))
FOUND = [
    Violation(CheckCode.RESULT_COUNT_WRONG, ("contents", 1), "x"),
    Violation(CheckCode.ROLE_UNKNOWN, ("contents", 0), "x"),
]


def test_a_recorded_reply_lowers_the_grade_of_a_finding():
    assert [one.code for one in graded(FOUND, ENDPOINT)] == ["role_unknown"]
    wary = replace(ENDPOINT, cautious=True)
    assert [(one.code, one.grade) for one in graded(FOUND, wary)] == [
        ("result_count_wrong", "unsure"),
        ("role_unknown", "refused"),
    ]


def test_it_does_so_only_for_the_models_it_was_recorded_for():
    newer = resolve_endpoint(Model("gemini-3-pro", "google", "google-genai"))
    assert [one.code for one in graded(FOUND, newer)] == ["result_count_wrong", "role_unknown"]


@pytest.mark.parametrize(
    "row", [*counterevidence.ROWS, *counterevidence.FIELD_ROWS], ids=lambda row: f"{row.protocol} {row.code} {row.path}"
)
def test_a_row_names_a_protocol_a_grade_and_its_figures(row: Answered):
    assert row.protocol in PROTOCOLS
    assert row.grade in ("ignored", "unsure")
    assert row.source
    assert not (row.providers and row.others)


def test_a_chat_host_that_pairs_loosely_is_not_accused_and_openai_is():
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    body = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "tool_calls": [call]}]}
    body["messages"].append({"role": "user", "content": "Go on"})
    assert check(body, protocol="openai-chat", model=Model("glm-5", "zai", "openai-chat")) == []
    found = check(body, protocol="openai-chat", model=Model("gpt-4o", "openai", "openai-chat"))
    assert [one.code for one in found] == ["result_missing"]


def test_text_alone_is_never_a_doubt():
    text = Context(messages=(UserMessage(content=(TextContent(text="Hi"),)),))
    for model in packaged_catalogue().models[::40]:
        body = segue.prepare(text, model).body
        found = check(body, protocol=model.protocol, model=model, strict=True)
        assert [one for one in found if one.grade != "refused"] == [], model.full_name()


# -- a model that is newer than the catalogue --------------------------------------------------------------------------

GUESSED = ("claude-opus-6", "gpt-7", "o5", "kimi-k4", "gemini-5-flash", "grok-6", "deepseek-v5", "muse-ember")
ASKED: dict[str, dict[str, Any]] = {
    "sampling": {"temperature": 0.5, "top_p": 0.9},
    "a forced tool": {"tool_choice": "required"},
    "an effort": {"thinking": "max"},
    "no thinking": {"thinking": "off"},
}


@pytest.mark.parametrize("name", GUESSED)
@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED.keys())
def test_the_rules_of_a_family_are_unsure_for_a_model_that_is_guessed_to_belong_to_it(name, asked):
    model = segue.get_model(name)
    tools = (segue.ToolDefinition(name="f", parameters={"type": "object", "properties": {}}),)
    context = segue.Context(messages=(segue.UserMessage.of("Hi"),), tools=tools if "tool_choice" in asked else ())
    request = segue.prepare(context, model, options=segue.Options(**asked))
    removed = {change.code for change in request.report.changes} & {"option_removed", "tools_removed"}
    assert not removed
    assert segue.check(request.body, protocol=model.protocol, model=model) == []


def test_a_strict_check_reports_the_rules_of_the_newest_model_of_a_family():
    body = {
        "model": "claude-opus-6",
        "max_tokens": 100,
        "temperature": 0.5,
        "messages": [{"role": "user", "content": "Hi"}],
    }
    for model in (None, "claude-opus-6"):  # also where the body alone names the model
        assert segue.check(body, protocol="anthropic-messages", model=model) == []
        found = segue.check(body, protocol="anthropic-messages", model=model, strict=True)
        assert [(one.code, one.path, one.grade) for one in found] == [
            ("option_unsupported", ("temperature",), "unsure")
        ]
    listed = segue.check(body, protocol="anthropic-messages", model="claude-opus-5-5")
    assert [one.grade for one in listed] == ["refused"]


def test_what_a_provider_refuses_of_every_model_is_refused_of_a_guessed_one():
    body = {"model": "claude-opus-6", "messages": [{"role": "user", "content": "Hi"}]}  # without max_tokens
    found = segue.check(body, protocol="anthropic-messages", model="claude-opus-6")
    assert [one.grade for one in found] == ["refused"]


def test_a_history_is_written_for_a_guessed_model_as_for_the_newest_of_its_family():
    """Calls without a signature were refused by every Gemini since 3; a guess adds the placeholder, too."""
    gpt, call = segue.get_model("openai/gpt-5.4"), segue.ToolCall(id="1", name="f", arguments={})
    turn = segue.new_assistant_message(gpt, content=(call,))
    result = segue.ToolResultMessage(tool_call_id="1", tool_name="f", content=(segue.TextContent(text="x"),))
    tool = segue.ToolDefinition(name="f", parameters={"type": "object", "properties": {}})
    context = segue.Context(messages=(segue.UserMessage.of("Hi"), turn, result), tools=(tool,))
    newest, guess = (
        segue.prepare(context, segue.get_model(name)).body["contents"] for name in ("gemini-4-argon", "gemini-5-pro")
    )
    assert guess == newest
    assert "thoughtSignature" in str(guess)
