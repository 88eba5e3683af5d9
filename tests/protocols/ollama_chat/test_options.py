"""The options of a request: each option both ways, and options that only Ollama has."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from protocols.ollama_chat.endpoints import GPT_OSS, QWEN
from segue.conversation.context import Context, Options, Prompt, ToolDefinition
from segue.conversation.messages import UserMessage
from segue.protocols.kit.codec import Endpoint
from segue.protocols.ollama_chat.protocol import PROTOCOL as CODEC
from segue.requests.prepare import convert, prepare

HI = Context(messages=(UserMessage.of("hi"),))


def written(options: Options, endpoint: Endpoint = QWEN) -> dict[str, object]:
    body = CODEC.encode_request(Prompt(context=HI, options=options), endpoint)
    return {key: value for key, value in body.items() if key not in ("model", "messages")}


def read(endpoint: Endpoint = QWEN, **body: object) -> Options:
    return CODEC.decode_request({"model": endpoint.model.id, "messages": [], **body}, endpoint).options


SETTINGS = {
    "a limit": ({"options": {"num_predict": 5}}, Options(max_tokens=5)),
    "a temperature": ({"options": {"temperature": 0.5}}, Options(temperature=0.5)),
    "top_p": ({"options": {"top_p": 0.5}}, Options(top_p=0.5)),
    "a seed": ({"options": {"seed": 3}}, Options(seed=3)),
    "stops": ({"options": {"stop": ["a", "b"]}}, Options(stop=("a", "b"))),
    "thinking": ({"think": True}, Options(thinking="medium")),
    "no thinking": ({"think": False}, Options(thinking="off")),
    "a schema": ({"format": {"type": "object"}}, Options(output_schema={"type": "object"})),
}


@pytest.mark.parametrize(("wire", "options"), SETTINGS.values(), ids=SETTINGS.keys())
def test_an_option_survives_both_directions(wire, options):
    assert written(options) == {**wire, "stream": False}
    assert read(**wire, stream=False) == replace(options, stream=False)


def test_options_without_stream_ask_for_a_whole_reply():
    assert written(Options()) == {"stream": False}
    assert written(Options(stream=True)) == {"stream": True}


def test_a_body_without_stream_asks_for_a_stream():
    assert read().stream is True
    assert read(stream=None).stream is True
    body = {"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": "hi"}]}
    request = convert(body, source="ollama-chat", target="anthropic/claude-sonnet-4-5")
    assert request.body["stream"] is True


LEVELS = {
    "off": (False, False),
    "minimal": (True, "low"),
    "low": (True, "low"),
    "medium": (True, "medium"),
    "high": (True, "high"),
    0: (False, False),
    2048: (True, "low"),
    10**6: (True, "high"),
}


@pytest.mark.parametrize(("level", "given"), LEVELS.items(), ids=map(str, LEVELS))
def test_a_level_is_a_switch_and_for_gpt_oss_a_name(level, given):
    options = Options(thinking=level)
    assert (written(options)["think"], written(options, GPT_OSS)["think"]) == given


def test_a_model_that_lists_its_own_levels_gets_them():
    model = replace(GPT_OSS.model, thinking_levels={"max": "max"})
    assert written(Options(thinking="max"), Endpoint(model, GPT_OSS.rules, GPT_OSS.dialect))["think"] == "max"


@pytest.mark.parametrize("think", ["low", "medium", "high", "max", True, False, "weird", 3])
@pytest.mark.parametrize("endpoint", [QWEN, GPT_OSS])
def test_every_value_of_think_is_written_as_received(endpoint, think):
    options = read(endpoint, think=think, stream=True)
    assert written(options, endpoint) == {"think": think, "stream": True}


BODIES = {
    "only Ollama's": {"options": {"num_ctx": 8192, "min_p": 0.1}, "keep_alive": "5m", "stream": True},
    "no limit": {"options": {"num_predict": -1}, "stream": True},
    "one stop as a string": {"options": {"stop": "x"}, "stream": False},
    "numbers as strings": {"options": {"seed": "1", "temperature": True}, "stream": False},
    "empty options": {"options": {}, "stream": False},
    "no options": {"options": None, "stream": False},
    "odd options": {"options": [1], "stream": False},
    "nothing": {},
    "everything null": dict.fromkeys(("stream", "think", "format", "options", "keep_alive", "logprobs")),
    "JSON and no schema": {"format": "json", "stream": False},
    "an empty format": {"format": "", "stream": False},
    "probabilities and truncation": {"logprobs": True, "top_logprobs": 3, "truncate": False, "shift": True},
    "unknown keys": {"vendor": {"a": 1}, "shape": 2, "stream": True},
    "a stream that is a string": {"stream": "yes"},
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_options_in_another_format_are_written_as_received(body):
    assert written(read(**body)) == body


@pytest.mark.parametrize("model", [{}, {"model": None}, {"model": 3}, {"model": "m"}])
def test_the_name_of_a_model_is_written_as_received(model):
    body = {**model, "messages": []}
    assert CODEC.encode_request(CODEC.decode_request(body, QWEN), QWEN) == body


def test_a_changed_option_is_written_in_the_default_format():
    options = read(think="high", options={"num_predict": -1, "stop": "x", "num_ctx": 9}, stream=True)
    changed = replace(options, thinking="off", max_tokens=7, stop=("y",), stream=None)
    assert written(changed) == {
        "think": False,
        "stream": False,
        "options": {"num_predict": 7, "stop": ["y"], "num_ctx": 9},
    }


def test_options_that_only_ollama_has_are_set_through_extra():
    options = Options(temperature=0.5, extra={"ollama-chat": {"options": {"num_ctx": 9000}, "keep_alive": 0}})
    body = prepare(HI, QWEN.model, options=options).body
    assert body["options"] == {"temperature": 0.5, "num_ctx": 9000}
    assert body["keep_alive"] == 0


def test_a_changed_level_is_written_though_the_default_value_is_the_same():
    options = read(think="high", stream=True)
    assert written(replace(options, thinking="low"))["think"] is True


def test_another_model_gets_options_in_the_default_format():
    options = read(think="high", options={"num_predict": -1, "temperature": 0.5}, stream=None)
    assert written(options, GPT_OSS) == {
        "think": "high",
        "stream": True,
        "options": {"num_predict": -1, "temperature": 0.5},
    }


PARAMETERS = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize(("given", "parameters"), [(PARAMETERS, PARAMETERS), ({}, {}), (None, {})])
def test_the_parameters_of_a_tool_are_read_and_written_as_received(given, parameters):
    wire = {"type": "function", "function": {"name": "f", "description": "x", "parameters": given}}
    prompt = CODEC.decode_request({"model": QWEN.model.id, "messages": [], "tools": [wire]}, QWEN)
    (tool,) = prompt.context.tools
    assert isinstance(tool, ToolDefinition)
    assert (tool.name, tool.description, tool.parameters) == ("f", "x", parameters)
    assert CODEC.encode_request(prompt, QWEN)["tools"] == [wire]
