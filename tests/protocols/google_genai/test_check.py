"""What Google would refuse, and what it would not."""

from __future__ import annotations

import pytest

from protocols.google_genai.endpoints import NEWER, OLDER, endpoint_of
from segue.protocols.google_genai.protocol import PROTOCOL as CODEC

PRO = endpoint_of("gemini-2.5-pro")
FLASH = endpoint_of("gemini-3.6-flash")
OLDEST = endpoint_of("gemini-2.0-flash")
GEMMA = endpoint_of("gemma-3-27b-it")
SIGNATURE = {"thoughtSignature": "c2VhbA=="}


def user(*parts):
    return {"role": "user", "parts": list(parts) or [{"text": "hi"}]}


def model(*parts):
    return {"role": "model", "parts": list(parts)}


def call(name="f", **beside):
    return {"functionCall": {"name": name, "args": {}}, **beside}


def result(name="f"):
    return {"functionResponse": {"name": name, "response": {}}}


def function(name="f", **beside):
    return {"name": name, **beside}


def tools(*functions):
    return [{"functionDeclarations": list(functions)}]


def asks(**body):
    return {"contents": [user()], **body}


def generation(**config):
    return asks(generationConfig=config)


REFUSED = {
    "thinking of a model without it": (generation(thinkingConfig={"thinkingBudget": 0}), OLDEST, "setting_refused"),
    "a prompt of Gemma 3": (asks(systemInstruction=user()), GEMMA, "system_refused"),
    "tools of Gemma 3": (asks(tools=tools(function())), GEMMA, "tools_refused"),
    "JSON mode of Gemma 3": (generation(responseMimeType="application/json"), GEMMA, "setting_refused"),
    "no contents": ({"contents": []}, OLDER, "no_contents"),
    "an unknown role": ({"contents": [{"role": "assistant", "parts": [{"text": "x"}]}]}, OLDER, "role"),
    "no parts": ({"contents": [user(), {"role": "model", "parts": []}, user()]}, OLDER, "no_parts"),
    "an empty text alone": ({"contents": [user({"text": ""})]}, OLDEST, "empty_text"),
    "a part of nothing": ({"contents": [user(), model({"thought": True}), user()]}, OLDER, "no_data"),
    "a call without a name": ({"contents": [user(), model(call("")), user(result())]}, OLDER, "no_name"),
    "a result without a name": ({"contents": [user(), model(call()), user(result(""))]}, OLDER, "no_name"),
    "a call that comes first": ({"contents": [model(call()), user(result())]}, OLDER, "call_first"),
    "a call without a result": ({"contents": [user(), model(call()), user()]}, OLDER, "result_count"),
    "two calls, one result": ({"contents": [user(), model(call(), call()), user(result())]}, OLDER, "result_count"),
    "a result without a call": (
        {"contents": [user(), model({"text": "x"}), user(result())]},
        OLDER,
        "result_without_call",
    ),
    "a first result": ({"contents": [user(result())]}, OLDER, "result_without_call"),
    "a call without its signature": ({"contents": [user(), model(call()), user(result())]}, NEWER, "no_signature"),
    "a signature on the second call": (
        {"contents": [user(), model(call(), call(**SIGNATURE)), user(result(), result())]},
        NEWER,
        "no_signature",
    ),
    "the model has the last turn": ({"contents": [user(), model({"text": "x"})]}, FLASH, "last_turn"),
    "a tool without a name": (asks(tools=tools({"description": "x"})), OLDER, "tool_name"),
    "a tool that begins with a digit": (asks(tools=tools(function("9lives"))), OLDER, "tool_name"),
    "a tool with a long name": (asks(tools=tools(function("x" * 129))), OLDER, "tool_name"),
    "two tools of one name": (asks(tools=[*tools(function()), *tools(function())]), OLDER, "tool_name_taken"),
    "more tools than are taken": (asks(tools=tools(*(function(f"f{n}") for n in range(513)))), OLDER, "too_many_tools"),
    "a tool with two schemas": (
        asks(tools=tools(function(parameters={"type": "OBJECT"}, parametersJsonSchema={"type": "object"}))),
        OLDER,
        "tool_schema",
    ),
    "a tool that takes a list": (
        asks(tools=tools(function(parametersJsonSchema={"type": "array"}))),
        OLDER,
        "tool_schema",
    ),
    "names without a mode for them": (
        asks(
            tools=tools(function()),
            toolConfig={"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["f"]}},
        ),
        OLDER,
        "tool_choice",
    ),
    "a choice of nothing": (
        asks(tools=[{"googleSearch": {}}], toolConfig={"functionCallingConfig": {"mode": "AUTO"}}),
        OLDER,
        "tool_choice",
    ),
    "instructions beside a cache": (
        asks(cachedContent="cachedContents/a", systemInstruction={"parts": [{"text": "x"}]}),
        OLDER,
        "cached_content",
    ),
    "a budget and a level": (
        generation(thinkingConfig={"thinkingBudget": 5, "thinkingLevel": "LOW"}),
        NEWER,
        "thinking_both",
    ),
    "a level for a model with budgets": (generation(thinkingConfig={"thinkingLevel": "LOW"}), OLDER, "thinking_level"),
    "a level the model lacks": (generation(thinkingConfig={"thinkingLevel": "MINIMAL"}), NEWER, "thinking_level"),
    "no thinking for a model that always thinks": (
        generation(thinkingConfig={"thinkingBudget": 0}),
        PRO,
        "thinking_budget",
    ),
    "too hot": (generation(temperature=2.5), OLDER, "temperature"),
    "no tokens": (generation(maxOutputTokens=0), OLDER, "max_tokens"),
    "more thinking than the model has": (
        generation(thinkingConfig={"thinkingBudget": 52_428}),
        OLDER,
        "thinking_budget",
    ),
    "a penalty": (generation(presencePenalty=0.5), OLDER, "penalty"),
    "too many stops": (generation(stopSequences=list("abcdef")), OLDER, "stop"),
    "a schema without its type": (generation(responseJsonSchema={"type": "object"}), OLDER, "output_schema"),
    "JSON beside a tool": (
        asks(tools=tools(function()), generationConfig={"responseMimeType": "application/json"}),
        OLDER,
        "json_beside_tools",
    ),
    "JSON where a call is demanded": (
        asks(
            tools=tools(function()),
            toolConfig={"functionCallingConfig": {"mode": "ANY"}},
            generationConfig={"responseMimeType": "application/json"},
        ),
        NEWER,
        "json_beside_tools",
    ),
    "half a character": ({"contents": [user({"text": "\ud800"})]}, OLDER, "not_json"),
}


@pytest.mark.parametrize(("body", "endpoint", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_what_would_be_refused_is_named(body, endpoint, code):
    assert [violation.code for violation in CODEC.check(body, endpoint)] == [code]


ACCEPTED = {
    "both spellings": {
        "contents": [user(), model({"function_call": {"name": "f"}, "thought_signature": "x"}), user(result())],
        "generation_config": {"max_output_tokens": 1},
    },
    "contents of one role side by side": {
        "contents": [user(), user(), model({"text": "a"}), model({"text": "b"}), user()]
    },
    "text behind results": {"contents": [user(), model(call(**SIGNATURE)), user(result()), user()]},
    "results in two contents": {
        "contents": [user(), model(call(**SIGNATURE), call()), user(result()), user(result()), user({"text": "x"})]
    },
    "no signatures in finished turns": {
        "contents": [user(), model(call()), user(result()), model({"text": "x"}), user({"text": "next"})]
    },
    "a signature on an empty text": {"contents": [user(), model({"text": "x"}, {"text": "", **SIGNATURE}), user()]},
    "an empty text alone, beside instructions": {
        "contents": [user({"text": ""})],
        "systemInstruction": {"parts": [{"text": "x"}]},
    },
    "a turn of the model's that is empty": {"contents": [user(), model({"text": ""}), user()]},
    "how to look at a video, behind it": {
        "contents": [user({"inlineData": {"mimeType": "video/mp4", "data": "AAAA"}}, {"videoMetadata": {"fps": 1}})]
    },
    "a content without a role": {"contents": [{"parts": [{"text": "x"}]}]},
    "tools as one object": asks(tools={"functionDeclarations": [function()]}),
    "a mode that keeps to the schemas": asks(
        tools=tools(function()),
        toolConfig={"functionCallingConfig": {"mode": "VALIDATED", "allowedFunctionNames": ["f"]}},
    ),
    "JSON beside a tool, of the newer": asks(
        tools=tools(function()), generationConfig={"responseMimeType": "application/json"}
    ),
    "an older budget": generation(thinkingConfig={"thinkingBudget": -1}),
}


@pytest.mark.parametrize("body", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_is_accepted_passes(body):
    assert CODEC.check(body, NEWER) == []


def test_the_oldest_models_answer_an_empty_text():
    body = {"contents": [user(), model({"text": ""}), user()]}
    assert CODEC.check(body, endpoint_of("gemini-1.5-flash")) == []
