"""Options, both ways."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from protocols.google_genai.endpoints import NEWER, OLDER, endpoint_of
from segue.conversation.context import Context, NativeTool, Options, Prompt, ToolDefinition
from segue.conversation.messages import UserMessage
from segue.errors import EncodeError
from segue.models.model import Model
from segue.protocols.api import decode_request, encode_request, resolve_endpoint
from segue.protocols.google_genai.protocol import PROTOCOL as CODEC
from segue.protocols.kit.verbatim import data_of
from segue.requests.prepare import prepare

PRO = endpoint_of("gemini-2.5-pro")
OWN = resolve_endpoint(Model("gemini-3-pro-mine", "google", "google-genai", reasoning=True))
HI = [{"role": "user", "parts": [{"text": "hi"}]}]
TOOL = ToolDefinition(name="f", parameters={"type": "object"})
F = [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": {"type": "object"}}]}]


def written(options, endpoint=NEWER, tools=(TOOL,)):
    context = Context(messages=(UserMessage.of("hi"),), tools=tools)
    body = CODEC.encode_request(Prompt(context=context, options=options), endpoint)
    return {key: value for key, value in body.items() if key not in ("contents", "tools")}


def read(endpoint=NEWER, **body: Any):
    whole: dict[str, Any] = {"contents": HI, "tools": F, **body}
    prompt = CODEC.decode_request(whole, endpoint)
    assert CODEC.encode_request(prompt, endpoint) == whole
    return prompt.options


def generation(**config) -> dict[str, Any]:
    return {"generationConfig": config}


def calling(**config) -> dict[str, Any]:
    return {"toolConfig": {"functionCallingConfig": config}}


def thinking(**config):
    return generation(thinkingConfig=config)


BOTH_WAYS = {
    "a limit": (Options(max_tokens=5), generation(maxOutputTokens=5)),
    "sampling": (Options(temperature=0.5, top_p=0.9, seed=3), generation(temperature=0.5, topP=0.9, seed=3)),
    "where to stop": (Options(stop=("a", "b")), generation(stopSequences=["a", "b"])),
    "a schema": (
        Options(output_schema={"type": "object"}),
        generation(responseMimeType="application/json", responseJsonSchema={"type": "object"}),
    ),
    "the model decides": (Options(tool_choice="auto"), calling(mode="AUTO")),
    "no tool": (Options(tool_choice="none"), calling(mode="NONE")),
    "any tool": (Options(tool_choice="required"), calling(mode="ANY")),
    "this tool": (Options(tool_choice="f"), calling(mode="ANY", allowedFunctionNames=["f"])),
    "a level": (Options(thinking="low"), thinking(thinkingLevel="LOW", includeThoughts=True)),
    "nothing": (Options(), {}),
}


@pytest.mark.parametrize(("options", "wire"), BOTH_WAYS.values(), ids=BOTH_WAYS.keys())
def test_an_option_survives_both_directions(options, wire):
    assert written(options) == wire
    known = read(**wire)
    if "includeThoughts" in repr(wire):  # what segue adds by itself is data where a body has it
        assert known.extra == {"google-genai": {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}}}
        known = replace(known, extra=None)
    assert known == options


THINKING = {
    "off, where it can be": (OLDER, "off", {"thinkingBudget": 0}),
    "none, where it can be": (OLDER, 0, {"thinkingBudget": 0}),
    "off, where it cannot be": (PRO, "off", {"thinkingBudget": 128, "includeThoughts": True}),
    "none, where it cannot be": (PRO, 0, {"thinkingBudget": 128, "includeThoughts": True}),
    "off, with levels": (OWN, "off", {"thinkingLevel": "LOW", "includeThoughts": True}),
    "a level as a budget": (PRO, "high", {"thinkingBudget": 32768, "includeThoughts": True}),
    "a level as a smaller model's budget": (OLDER, "high", {"thinkingBudget": 24576, "includeThoughts": True}),
    "a budget": (OLDER, 5000, {"thinkingBudget": 5000, "includeThoughts": True}),
    "a budget too large": (OLDER, 10**6, {"thinkingBudget": 24576, "includeThoughts": True}),
    "a budget too small": (PRO, 5, {"thinkingBudget": 128, "includeThoughts": True}),
    "a budget as a level": (NEWER, 5000, {"thinkingLevel": "MEDIUM", "includeThoughts": True}),
    "a level the model lacks": (NEWER, "minimal", {"thinkingLevel": "LOW", "includeThoughts": True}),
    "more than there is": (OWN, "max", {"thinkingLevel": "HIGH", "includeThoughts": True}),
}


@pytest.mark.parametrize(("endpoint", "wanted", "config"), THINKING.values(), ids=THINKING.keys())
def test_thinking_is_written_in_the_format_of_the_model(endpoint, wanted, config):
    model = endpoint.model
    request = prepare(Context(messages=(UserMessage.of("hi"),)), model, options=Options(thinking=wanted))
    assert request.body["generationConfig"] == thinking(**config)["generationConfig"]
    assert CODEC.check(request.body, endpoint) == []


def test_a_budget_is_written_unchanged_where_nothing_is_projected():
    assert written(Options(thinking=10**6), OLDER) == thinking(thinkingBudget=10**6, includeThoughts=True)


KEPT = {
    "an open choice that keeps to the schemas": (calling(mode="VALIDATED"), {"tool_choice": None}),
    "one of several tools": (calling(mode="ANY", allowedFunctionNames=["f", "g"]), {"tool_choice": "required"}),
    "no `includeThoughts`": (thinking(thinkingLevel="HIGH"), {"thinking": "high"}),
    "a level in small letters": (thinking(thinkingLevel="high"), {"thinking": "high"}),
    "a budget where levels are": (thinking(thinkingBudget=100), {"thinking": 100}),
    "a budget that the model decides": (thinking(thinkingBudget=-1), {"thinking": None}),
    "thoughts alone": (thinking(includeThoughts=True), {}),
    "JSON without a schema": (generation(responseMimeType="application/json"), {}),
    "a schema in Google's dialect": (
        generation(responseMimeType="application/json", responseSchema={"type": "STRING"}),
        {"output_schema": {"type": "string"}},
    ),
    "settings without a field": (generation(topK=3, candidateCount=2, responseModalities=["TEXT"]), {}),
    "empty objects": ({"generationConfig": {}, "toolConfig": {}}, {}),
    "a limit that is a text": (generation(maxOutputTokens="5"), {"max_tokens": None}),
    "safety, caches and labels": (
        {"safetySettings": [{"category": "x"}], "cachedContent": "cachedContents/a", "labels": {"a": "b"}},
        {},
    ),
    "an unknown setting": ({"somethingNew": {"a": None}}, {}),
}


@pytest.mark.parametrize(("wire", "meaning"), KEPT.values(), ids=KEPT.keys())
def test_what_has_another_format_is_understood_and_kept(wire, meaning):
    options = read(**wire)
    assert {name: getattr(options, name) for name in meaning} == meaning


def test_a_changed_option_changes_the_request():
    options = read(**calling(mode="ANY", allowedFunctionNames=["f", "g"]), **thinking(thinkingLevel="HIGH"))
    changed = written(replace(options, tool_choice="none", thinking=None, max_tokens=7))
    assert changed == {**calling(mode="NONE"), **generation(maxOutputTokens=7)}


def test_another_model_gets_options_in_the_default_format():
    options = read(endpoint_of(""), **thinking(thinkingLevel="HIGH"))
    assert written(options, OLDER) == thinking(thinkingBudget=24576, includeThoughts=True)
    assert written(options, NEWER) == thinking(thinkingLevel="HIGH", includeThoughts=True)
    automatic = read(OLDER, **thinking(thinkingBudget=-1))
    assert written(automatic, OLDER) == thinking(thinkingBudget=-1)
    assert written(automatic, PRO) == {}
    assert written(automatic, NEWER) == {}


NAMED = calling(mode="ANY", allowedFunctionNames=["f", "g"])
CHANGED_CHOICES = {
    "nothing": ("required", NEWER, NAMED),
    "the model": ("required", OLDER, NAMED),
    "to none": ("none", NEWER, calling(mode="NONE")),
    "to no choice": (None, OLDER, {}),
    "to one tool": ("g", NEWER, calling(mode="ANY", allowedFunctionNames=["g"])),
}


@pytest.mark.parametrize(("choice", "endpoint", "wire"), CHANGED_CHOICES.values(), ids=CHANGED_CHOICES.keys())
def test_several_names_are_data_of_their_choice(choice, endpoint, wire):
    options = read(**NAMED)
    assert data_of(options.extra, "google-genai") == {
        "toolConfig": {"functionCallingConfig": {"allowedFunctionNames": ["f", "g"]}}
    }
    assert written(replace(options, tool_choice=choice), endpoint) == wire


def test_settings_in_snake_case_are_kept_under_their_default_names():
    body = {"generation_config": {"top_k": 3, "presence_penalty": 1, "max_output_tokens": 5}, "tool_config": {}}
    options = read(**body)
    assert options.max_tokens == 5
    assert data_of(options.extra, "google-genai") == {"generationConfig": {"topK": 3, "presencePenalty": 1}}
    changed = generation(topK=3, presencePenalty=1, maxOutputTokens=5)
    assert written(options, OLDER) == {**changed, "toolConfig": {}}


def test_a_choice_is_not_written_without_functions():
    search = (NativeTool(protocol="google-genai", definition={"googleSearch": {}}),)
    assert written(Options(tool_choice="auto"), tools=search) == {}
    assert read(tools=[{"googleSearch": {}}], **calling(mode="AUTO")).tool_choice == "auto"


@pytest.mark.parametrize("name", ["user_id", "session_id", "parallel_tool_calls", "cache_retention"])
def test_what_is_not_supported_is_refused_with_its_path(name):
    options = Options(**{name: {"parallel_tool_calls": True, "cache_retention": "short"}.get(name, "x")})
    with pytest.raises(EncodeError) as refused:
        written(options)
    assert refused.value.path == ("options", name)


def test_the_url_decides_whether_it_streams():
    request = prepare(Context(messages=(UserMessage.of("hi"),)), NEWER.model, options=Options(stream=True))
    assert request.url.endswith(":streamGenerateContent?alt=sse")
    assert "stream" not in request.body


def test_numbers_stand_for_the_types_of_a_schema_and_for_the_mode():
    """Vertex writes enums as numbers; protobuf's classes write `type_`."""
    nested = {"type": 6, "properties": {"type": {"type": 1}}}
    parameters = {
        "type": 6,
        "properties": {"a": {"type": 1}, "b": {"type": 5, "items": {"type": 3}}, "c": nested, "d": {"type_": 2}},
        "required": ["a"],
    }
    body = {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "tools": [{"functionDeclarations": [{"name": "f", "parameters": parameters}]}],
        "toolConfig": {"functionCallingConfig": {"mode": 2, "allowedFunctionNames": ["f"]}},
        "generationConfig": {
            "responseMimeType": "application/json",
            "responseSchema": {"type": 6, "properties": {"a": {"type": 4, "nullable": True}, "b": {"type": 0}}},
        },
    }
    prompt = decode_request(body, protocol="google-genai")
    assert encode_request(prompt, protocol="google-genai") == body
    (tool,) = prompt.context.tools
    assert isinstance(tool, ToolDefinition)
    assert tool.parameters == {
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": {"type": "array", "items": {"type": "integer"}},
            "c": {"type": "object", "properties": {"type": {"type": "string"}}},
            "d": {"type": "number"},
        },
        "required": ["a"],
    }
    assert prompt.options.tool_choice == "f"
    assert prompt.options.output_schema == {
        "type": "object",
        "properties": {"a": {"type": ["boolean", "null"]}, "b": {}},
    }
