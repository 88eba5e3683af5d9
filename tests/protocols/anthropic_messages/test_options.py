"""What a request asks besides the conversation, both ways."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from protocols.anthropic_messages.endpoints import OPUS, SONNET, endpoint_of
from segue.conversation.context import Context, Options, Prompt
from segue.conversation.messages import UserMessage
from segue.errors import EncodeError
from segue.models.model import Model
from segue.protocols.anthropic_messages.codec import CODEC
from segue.protocols.codec import Endpoint
from segue.protocols.registry import resolve_dialect, resolve_rules

P = "anthropic-messages"
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
JSON = {"type": "json_schema", "schema": SCHEMA}
FABLE = endpoint_of("claude-fable-5")
UNKNOWN = endpoint_of("m", "somebody")
HISTORY = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4000}


def written(options: Options, endpoint=SONNET) -> dict:
    prompt = Prompt(context=Context(messages=(UserMessage.of("hi"),)), options=options)
    body = CODEC.encode_request(prompt, endpoint)
    return {key: value for key, value in body.items() if key not in ("model", "messages")}


def read(endpoint=SONNET, **rest) -> Options:
    return CODEC.decode_request({**HISTORY, **rest}, endpoint).options


WRITTEN = {
    "sampling": (Options(max_tokens=9, temperature=0.5), SONNET, {"max_tokens": 9, "temperature": 0.5}),
    "top_p and stops": (
        Options(max_tokens=9, top_p=0.9, stop=("a", "b")),
        SONNET,
        {"max_tokens": 9, "top_p": 0.9, "stop_sequences": ["a", "b"]},
    ),
    "a user and a stream": (
        Options(max_tokens=9, user_id="u", stream=True),
        SONNET,
        {"max_tokens": 9, "metadata": {"user_id": "u"}, "stream": True},
    ),
    "a schema for the answer": (
        Options(max_tokens=9, output_schema=SCHEMA),
        SONNET,
        {"max_tokens": 9, "output_config": {"format": JSON}},
    ),
    "any tool": (
        Options(max_tokens=9, tool_choice="required"),
        SONNET,
        {"max_tokens": 9, "tool_choice": {"type": "any"}},
    ),
    "one tool, one at a time": (
        Options(max_tokens=9, tool_choice="f", parallel_tool_calls=False),
        SONNET,
        {"max_tokens": 9, "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True}},
    ),
    "calls in parallel": (
        Options(max_tokens=9, parallel_tool_calls=True),
        SONNET,
        {"max_tokens": 9, "tool_choice": {"type": "auto", "disable_parallel_tool_use": False}},
    ),
    "no tool, so nothing in parallel": (
        Options(max_tokens=9, tool_choice="none", parallel_tool_calls=False),
        SONNET,
        {"max_tokens": 9, "tool_choice": {"type": "none"}},
    ),
    "no limit: as much as is written in ten minutes": (Options(), SONNET, {"max_tokens": 21_333}),
    "no limit to a stream: the model's own": (Options(stream=True), SONNET, {"max_tokens": 64_000, "stream": True}),
    "no limit and none known": (Options(stream=True), UNKNOWN, {"max_tokens": 4_096, "stream": True}),
    "thinking off": (
        Options(max_tokens=9, thinking="off"),
        SONNET,
        {"max_tokens": 9, "thinking": {"type": "disabled"}},
    ),
    "a budget of nothing": (
        Options(max_tokens=9, thinking=0),
        OPUS,
        {"max_tokens": 9, "thinking": {"type": "disabled"}},
    ),
    "a level as a budget": (
        Options(max_tokens=9000, thinking="medium"),
        SONNET,
        {"max_tokens": 9000, "thinking": {"type": "enabled", "budget_tokens": 8192}},
    ),
    "a level the model lacks, as the next weaker one's budget": (
        Options(max_tokens=30_000, thinking="max"),
        SONNET,
        {"max_tokens": 30_000, "thinking": {"type": "enabled", "budget_tokens": 16_384}},
    ),
    "a budget below the least": (
        Options(max_tokens=9000, thinking=100),
        SONNET,
        {"max_tokens": 9000, "thinking": {"type": "enabled", "budget_tokens": 1024}},
    ),
    "a budget that the limit cuts": (
        Options(max_tokens=2000, thinking="high"),
        SONNET,
        {"max_tokens": 2000, "thinking": {"type": "enabled", "budget_tokens": 1999}},
    ),
    "a limit that leaves no room for thinking": (
        Options(max_tokens=1024, thinking="high"),
        SONNET,
        {"max_tokens": 1024, "thinking": {"type": "disabled"}},
    ),
    "a budget without a limit": (
        Options(thinking=30_000),
        SONNET,
        {"max_tokens": 34_096, "thinking": {"type": "enabled", "budget_tokens": 30_000}},
    ),
    "a budget beyond what the model can write": (
        Options(thinking=100_000),
        SONNET,
        {"max_tokens": 64_000, "thinking": {"type": "enabled", "budget_tokens": 63_999}},
    ),
    "a level as an effort": (
        Options(max_tokens=9, thinking="xhigh"),
        OPUS,
        {"max_tokens": 9, "thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}},
    ),
    "the weakest level is low": (
        Options(max_tokens=9, thinking="minimal", output_schema=SCHEMA),
        OPUS,
        {"max_tokens": 9, "thinking": {"type": "adaptive"}, "output_config": {"effort": "low", "format": JSON}},
    ),
    "a budget as an effort": (
        Options(max_tokens=9, thinking=5000),
        OPUS,
        {"max_tokens": 9, "thinking": {"type": "adaptive"}, "output_config": {"effort": "medium"}},
    ),
    "a large budget as an effort": (
        Options(max_tokens=9, thinking=50_000),
        OPUS,
        {"max_tokens": 9, "thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}},
    ),
    "off where the model always thinks": (
        Options(max_tokens=9, thinking="off"),
        FABLE,
        {"max_tokens": 9, "thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
    ),
}


@pytest.mark.parametrize(("options", "endpoint", "expected"), WRITTEN.values(), ids=WRITTEN.keys())
def test_options_are_written(options, endpoint, expected):
    assert written(options, endpoint) == expected


@pytest.mark.parametrize(("options", "endpoint", "expected"), WRITTEN.values(), ids=WRITTEN.keys())
def test_what_was_written_is_written_again_after_reading(options, endpoint, expected):
    body = {"model": endpoint.model.id, "messages": [], **expected}
    assert CODEC.encode_request(CODEC.decode_request(body, endpoint), endpoint) == body


READ = {
    "adaptive thinking with an effort": (
        {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
        Options(max_tokens=4000, thinking="low"),
    ),
    "a budget": ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, Options(max_tokens=4000, thinking=2000)),
    "thinking off": ({"thinking": {"type": "disabled"}}, Options(max_tokens=4000, thinking="off")),
    "a schema": ({"output_config": {"format": JSON}}, Options(max_tokens=4000, output_schema=SCHEMA)),
    "one tool": ({"tool_choice": {"type": "tool", "name": "f"}}, Options(max_tokens=4000, tool_choice="f")),
    "any tool, one at a time": (
        {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
        Options(max_tokens=4000, tool_choice="required", parallel_tool_calls=False),
    ),
    "a user": ({"metadata": {"user_id": "u"}}, Options(max_tokens=4000, user_id="u")),
    "stops": ({"stop_sequences": ["x"]}, Options(max_tokens=4000, stop=("x",))),
}


@pytest.mark.parametrize(("rest", "expected"), READ.values(), ids=READ.keys())
def test_options_are_read(rest, expected):
    assert replace(read(OPUS, **rest), extra=None) == expected


UNUSUAL = {
    "adaptive thinking without an effort": {"thinking": {"type": "adaptive"}},
    "adaptive thinking that is shown": {"thinking": {"type": "adaptive", "display": "summarized"}},
    "thinking between tools": {"thinking": {"type": "between_tools"}},
    "a budget with display": {"thinking": {"type": "enabled", "budget_tokens": 2000, "display": "omitted"}},
    "thinking that is just on": {"thinking": {"type": "enabled"}},
    "an effort alone": {"output_config": {"effort": "xhigh"}},
    "an effort nobody knows": {"thinking": {"type": "adaptive"}, "output_config": {"effort": "heroic"}},
    "a budget for the task": {"output_config": {"task_budget": {"total": 9}, "format": JSON}},
    "a format with a name": {"output_config": {"format": {**JSON, "name": "n"}}},
    "a choice of nobody knows what": {"tool_choice": {"type": "maybe"}},
    "a tool called auto": {"tool_choice": {"type": "tool", "name": "auto"}},
    "no choice of tools, one at a time": {"tool_choice": {"type": "none", "disable_parallel_tool_use": True}},
    "more about the user": {"metadata": {"user_id": "u", "plan": "x"}},
    "metadata about nobody": {"metadata": {}},
    "nulls": {"thinking": None, "metadata": None, "stop_sequences": None, "temperature": None, "output_config": None},
    "no stops": {"stop_sequences": []},
    "not streamed": {"stream": False},
    "words of the beta": {
        "container": "c",
        "mcp_servers": [{"name": "x"}],
        "context_management": {"edits": []},
        "service_tier": "auto",
        "speed": "fast",
        "inference_geo": "eu",
        "cache_control": {"type": "ephemeral"},
        "top_k": 5,
        "betas": ["a"],
        "fallbacks": [{"model": "b"}],
    },
}


@pytest.mark.parametrize("rest", UNUSUAL.values(), ids=UNUSUAL.keys())
@pytest.mark.parametrize("endpoint", [SONNET, OPUS, UNKNOWN], ids=["sonnet", "opus", "unknown"])
def test_what_is_unusual_is_kept(rest, endpoint):
    body = {**HISTORY, **rest}
    assert CODEC.encode_request(CODEC.decode_request(body, endpoint), endpoint) == body


CHANGED = {
    "another level": (
        {"thinking": {"type": "adaptive", "display": "omitted"}, "output_config": {"task_budget": 1}},
        {"thinking": "low"},
        {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low", "task_budget": 1}},
    ),
    "no thinking": ({"thinking": {"type": "adaptive", "display": "omitted"}}, {"thinking": None}, {}),
    "another user": (
        {"metadata": {"user_id": "u", "plan": "x"}},
        {"user_id": "v"},
        {"metadata": {"user_id": "v", "plan": "x"}},
    ),
    "another choice": (
        {"tool_choice": {"type": "tool", "name": "auto"}},
        {"tool_choice": "none"},
        {"tool_choice": {"type": "none"}},
    ),
    "something else": (
        {"top_k": 5, "thinking": {"type": "between_tools"}},
        {"stream": True},
        {"top_k": 5, "thinking": {"type": "between_tools"}, "stream": True},
    ),
}


@pytest.mark.parametrize(("rest", "change", "expected"), CHANGED.values(), ids=CHANGED.keys())
def test_who_changes_an_option_changes_the_request(rest, change, expected):
    prompt = CODEC.decode_request({**HISTORY, **rest}, OPUS)
    changed = replace(prompt, options=replace(prompt.options, **change))
    assert CODEC.encode_request(changed, OPUS) == {**HISTORY, **expected}


@pytest.mark.parametrize("model", [None, "claude-sonnet-4-5"], ids=["unnamed", "named"])
def test_another_model_is_told_in_its_own_way(model):
    body = {**HISTORY, "model": "claude-opus-4-8", "thinking": {"type": "adaptive", "display": "omitted"}}
    prompt = CODEC.decode_request(body, OPUS)
    asked = CODEC.encode_request(replace(prompt, model=model), SONNET)
    assert asked["thinking"] == {"type": "enabled", "budget_tokens": 3999}
    assert "output_config" not in asked


def test_a_model_that_was_asked_in_an_older_way_is_asked_so_again():
    body = {**HISTORY, "model": "claude-opus-4-8", "thinking": {"type": "enabled", "budget_tokens": 2000}}
    prompt = CODEC.decode_request(body, OPUS)
    assert CODEC.encode_request(prompt, OPUS) == body
    other = endpoint_of("claude-opus-4-7")
    assert CODEC.encode_request(replace(prompt, model=None), other)["thinking"] == {"type": "adaptive"}


@pytest.mark.parametrize("option", [{"seed": 1}, {"session_id": "s"}], ids=["a seed", "a session"])
def test_what_the_wire_has_no_word_for_is_an_error(option):
    with pytest.raises(EncodeError) as caught:
        written(Options(**option))
    assert caught.value.path == ("options", *option)


def test_a_session_that_goes_into_headers_is_no_error():
    assert written(Options(max_tokens=9, session_id="s"), endpoint_of("accounts/fireworks/models/glm-5p1", "fireworks"))


def test_a_target_that_cannot_be_told_about_thinking_is_not():
    model = Model("m", "somebody", P, dialect={"thinking_format": "none"})
    endpoint = Endpoint(model, resolve_rules(model), resolve_dialect(model))
    assert written(Options(max_tokens=9, thinking="high"), endpoint) == {"max_tokens": 9}
