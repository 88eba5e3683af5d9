"""Options in both directions, with the fields of each model."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from protocols.bedrock_converse.endpoints import (
    ANYONE,
    GPT,
    KIMI,
    LLAMA,
    NOVA,
    NOVA_2,
    OPUS,
    OSS,
    SONNET,
    SONNET_3,
    endpoint_of,
)
from segue.conversation.context import Context, Options, Prompt, ToolDefinition
from segue.conversation.messages import UserMessage
from segue.errors import EncodeError
from segue.protocols.bedrock_converse.protocol import PROTOCOL as CODEC
from segue.protocols.registry import resolve_rules
from segue.requests.prepare import prepare

P = "bedrock-converse"
FIELDS = "additionalModelRequestFields"
HI = {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


def fmt(schema: str, **more):
    structure = {"jsonSchema": {"schema": schema, **more}}
    return {"outputConfig": {"textFormat": {"type": "json_schema", "structure": structure}}}


def thinking(**given):
    return {FIELDS: {"thinking": given}}


OPTIONS = {
    "nothing": (Options(), {}, SONNET),
    "a limit": (Options(max_tokens=5), {"inferenceConfig": {"maxTokens": 5}}, SONNET),
    "sampling": (Options(temperature=0.5), {"inferenceConfig": {"temperature": 0.5}}, SONNET),
    "sampling of another kind": (Options(top_p=0.9), {"inferenceConfig": {"topP": 0.9}}, SONNET),
    "where to stop": (Options(stop=("a", "b")), {"inferenceConfig": {"stopSequences": ["a", "b"]}}, SONNET),
    "a choice left open": (Options(tool_choice="auto"), {"toolConfig": {"toolChoice": {"auto": {}}}}, SONNET),
    "some tool": (Options(tool_choice="required"), {"toolConfig": {"toolChoice": {"any": {}}}}, SONNET),
    "this tool": (Options(tool_choice="f"), {"toolConfig": {"toolChoice": {"tool": {"name": "f"}}}}, SONNET),
    "a form of the answer": (
        Options(output_schema=SCHEMA),
        fmt('{"type":"object","properties":{"a":{"type":"string"}}}'),
        SONNET,
    ),
    "a budget": (Options(thinking=2048), thinking(type="enabled", budget_tokens=2048), SONNET),
    "no thinking": (Options(thinking="off"), thinking(type="disabled"), SONNET),
    "an effort": (
        Options(thinking="medium"),
        {FIELDS: {"thinking": {"type": "adaptive"}, "output_config": {"effort": "medium"}}},
        OPUS,
    ),
    "the greatest effort": (
        Options(thinking="max"),
        {FIELDS: {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}}},
        OPUS,
    ),
    "an effort of gpt-oss": (Options(thinking="high"), {FIELDS: {"reasoning_effort": "high"}}, OSS),
    "an effort of GPT": (Options(thinking="xhigh"), {FIELDS: {"reasoning": {"effort": "xhigh"}}}, GPT),
    "an effort of Nova": (
        Options(thinking="low"),
        {FIELDS: {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"}}},
        NOVA_2,
    ),
    "none of Nova": (Options(thinking="off"), {FIELDS: {"reasoningConfig": {"type": "disabled"}}}, NOVA_2),
}


@pytest.mark.parametrize(("options", "wire", "endpoint"), OPTIONS.values(), ids=OPTIONS.keys())
def test_options_survive_both_directions(options, wire, endpoint):
    assert CODEC.decode_request({**HI, **wire}, endpoint).options == options
    assert CODEC.encode_request(Prompt(context=Context(), options=options), endpoint) == {"messages": [], **wire}


WRITTEN = {
    "a level is a budget for older Claudes": (SONNET, "low", thinking(type="enabled", budget_tokens=2048)),
    "the least level is the least budget": (SONNET_3, "minimal", thinking(type="enabled", budget_tokens=1024)),
    "a budget is an effort for newer ones": (
        OPUS,
        5000,
        {FIELDS: {"thinking": {"type": "adaptive"}, "output_config": {"effort": "medium"}}},
    ),
    "a budget is an effort of gpt-oss": (OSS, 1500, {FIELDS: {"reasoning_effort": "low"}}),
    "gpt-oss cannot turn thinking off": (OSS, "off", {}),
    "Nova has three efforts": (
        NOVA_2,
        "max",
        {FIELDS: {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}}},
    ),
    "Llama does not think, and needs no field for it": (LLAMA, "off", {}),
}


@pytest.mark.parametrize(("endpoint", "thinking", "wire"), WRITTEN.values(), ids=WRITTEN.keys())
def test_thinking_is_written_in_the_fields_of_the_model(endpoint, thinking, wire):
    prompt = Prompt(context=Context(), options=Options(thinking=thinking))
    assert CODEC.encode_request(prompt, endpoint) == {"messages": [], **wire}


KEPT = {
    "an empty config": {"inferenceConfig": {}},
    "an empty tool config": {"toolConfig": {}},
    "settings that are null": {"inferenceConfig": None, "outputConfig": None},
    "unknown members": {"inferenceConfig": {"maxTokens": 5, "topK": 3}},
    "the model's own fields": {FIELDS: {"top_k": 5, "inferenceConfig": {"topK": 20}}},
    "a schema with a name": fmt('{"type": "object"}', name="Answer", description="d"),
    "a schema that is no JSON": fmt("{"),
    "the newer field for an effort": {"outputConfig": {"effort": "low"}},
    "thinking that shows less": thinking(type="enabled", budget_tokens=2048, display="omitted"),
    "a budget that is too small": thinking(type="enabled", budget_tokens=1),
    "both kinds of effort": {FIELDS: {"thinking": {"type": "adaptive"}}, "outputConfig": {"effort": "high"}},
    "an effort beside fields that are no object": {FIELDS: 0, "outputConfig": {"effort": "low"}},
    "an unknown effort": {FIELDS: {"thinking": {"type": "adaptive"}, "output_config": {"effort": "heroic"}}},
    "a choice of two": {"toolConfig": {"toolChoice": {"auto": {}, "any": {}}}},
    "a tool called auto": {"toolConfig": {"toolChoice": {"tool": {"name": "auto"}}}},
    "keys that segue has no field for": {
        "guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1"},
        "requestMetadata": {"a": "b"},
        "performanceConfig": {"latency": "optimized"},
        "serviceTier": {"type": "flex"},
        "promptVariables": {"a": {"text": "b"}},
        "additionalModelResponseFieldPaths": ["/stop_sequence"],
    },
}


@pytest.mark.parametrize("endpoint", [SONNET, OPUS, NOVA_2, OSS, GPT, KIMI, ANYONE], ids=lambda e: e.model.id)
@pytest.mark.parametrize("wire", KEPT.values(), ids=KEPT.keys())
def test_another_format_is_written_back_unchanged(wire, endpoint):
    body = {**HI, **wire}
    assert CODEC.encode_request(CODEC.decode_request(body, endpoint), endpoint) == body


CHANGED = {
    "another limit keeps its neighbours": (
        {"inferenceConfig": {"maxTokens": 5, "topK": 3}},
        {"max_tokens": 6},
        {"inferenceConfig": {"maxTokens": 6, "topK": 3}},
    ),
    "no limit": (
        {"inferenceConfig": {"maxTokens": 5, "topK": 3}},
        {"max_tokens": None},
        {"inferenceConfig": {"topK": 3}},
    ),
    "another schema": (
        fmt('{"type": "object"}', name="Answer"),
        {"output_schema": {"a": 1}},
        fmt('{"a":1}'),
    ),
    "another budget": (
        {FIELDS: {"thinking": {"type": "enabled", "budget_tokens": 2048, "display": "omitted"}, "top_k": 5}},
        {"thinking": 4096},
        {FIELDS: {"thinking": {"type": "enabled", "budget_tokens": 4096}, "top_k": 5}},
    ),
    "no thinking at all": (
        {FIELDS: {"thinking": {"type": "enabled", "budget_tokens": 2048, "display": "omitted"}}},
        {"thinking": None},
        {},
    ),
    "another choice": (
        {"toolConfig": {"toolChoice": {"auto": {}, "x": 1}}},
        {"tool_choice": "required"},
        {"toolConfig": {"toolChoice": {"any": {}}}},
    ),
}


@pytest.mark.parametrize(("wire", "change", "expected"), CHANGED.values(), ids=CHANGED.keys())
def test_a_changed_option_is_written_in_the_default_format(wire, change, expected):
    prompt = CODEC.decode_request({**HI, **wire}, SONNET)
    changed = replace(prompt, options=replace(prompt.options, **change))
    assert CODEC.encode_request(changed, SONNET) == {**HI, **expected}


@pytest.mark.parametrize("others", [{}, {FIELDS: 0}], ids=["alone", "beside fields that are no object"])
def test_an_effort_in_the_newer_field_can_be_changed(others):
    prompt = CODEC.decode_request({**HI, **others, "outputConfig": {"effort": "low"}}, OPUS)
    assert prompt.options.thinking == "low"
    changed = replace(prompt, options=replace(prompt.options, thinking="high"))
    fields = {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}
    assert CODEC.encode_request(changed, OPUS) == {**HI, FIELDS: fields}


@pytest.mark.parametrize(
    ("endpoint", "fields"),
    [
        (OSS, {"reasoning_effort": "low"}),
        (OPUS, {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}),
        (KIMI, None),
    ],
    ids=["gpt-oss", "a newer Claude", "a model without thinking settings"],
)
def test_another_model_of_the_provider_gets_its_own_fields(endpoint, fields):
    prompt = CODEC.decode_request({**HI, **thinking(type="enabled", budget_tokens=2048, display="omitted")}, SONNET)
    request = prepare(prompt.context, endpoint.model, options=prompt.options)
    assert request.body.get(FIELDS) == fields
    assert CODEC.check(request.body, endpoint) == []


UNSUPPORTED = {
    "a seed": Options(seed=1),
    "a session": Options(session_id="s"),
    "a user": Options(user_id="u"),
    "calls one by one": Options(parallel_tool_calls=False),
    "no tools": Options(tool_choice="none"),
}


@pytest.mark.parametrize("options", UNSUPPORTED.values(), ids=UNSUPPORTED.keys())
def test_an_unsupported_option_is_refused_and_projection_removes_it(options):
    tool = ToolDefinition(name="f", parameters={"type": "object", "properties": {}})
    context = Context(messages=(UserMessage.of("hi"),), tools=(tool,))
    with pytest.raises(EncodeError):
        CODEC.encode_request(Prompt(context=context, options=options), SONNET)
    request = prepare(context, SONNET.model, options=options)
    assert [change.code.value for change in request.report.changes] == ["option_removed"]


def test_thinking_for_a_model_without_settings_is_refused_and_projection_reports_it():
    with pytest.raises(EncodeError):
        CODEC.encode_request(Prompt(context=Context(), options=Options(thinking="low")), KIMI)
    request = prepare(Context(messages=(UserMessage.of("hi"),)), KIMI.model, options=Options(thinking="low"))
    assert FIELDS not in request.body
    assert [change.code.value for change in request.report.changes] == ["option_removed"]


def test_high_effort_of_nova_comes_without_limit_and_sampling():
    options = Options(thinking="high", max_tokens=100, temperature=0.5)
    request = prepare(Context(messages=(UserMessage.of("hi"),)), NOVA_2.model, options=options)
    assert "inferenceConfig" not in request.body
    assert len(request.report.changes) == 2


SAMPLING = {
    "before Opus 4.1 both go together": ("us.anthropic.claude-sonnet-4-20250514-v1:0", frozenset()),
    "Opus 4.1 takes one": ("anthropic.claude-opus-4-1-20250805-v1:0", frozenset({"temperature", "top_p"})),
    "4.5 takes one": (SONNET.model.id, frozenset({"temperature", "top_p"})),
    "4.6 takes one": ("anthropic.claude-opus-4-6-v1", frozenset({"temperature", "top_p"})),
    "Nova takes both": (NOVA.model.id, frozenset()),
}


@pytest.mark.parametrize(("model_id", "exclusive"), SAMPLING.values(), ids=SAMPLING.keys())
def test_which_sampling_settings_exclude_each_other(model_id, exclusive):
    assert resolve_rules(endpoint_of(model_id).model).exclusive_options == exclusive


def test_a_schema_is_a_text_of_json():
    body: Any = CODEC.encode_request(Prompt(context=Context(), options=Options(output_schema={"a": "ü"})), SONNET)
    text = body["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"]
    assert json.loads(text) == {"a": "ü"}
