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
    "thinking of a model without it": (generation(thinkingConfig={"thinkingBudget": 0}), OLDEST, "option_unsupported"),
    "a prompt of Gemma 3": (asks(systemInstruction=user()), GEMMA, "system_unsupported"),
    "tools of Gemma 3": (asks(tools=tools(function())), GEMMA, "tools_unsupported"),
    "JSON mode of Gemma 3": (generation(responseMimeType="application/json"), GEMMA, "option_unsupported"),
    "no contents": ({"contents": []}, OLDER, "messages_missing"),
    "an unknown role": ({"contents": [{"role": "assistant", "parts": [{"text": "x"}]}]}, OLDER, "role_unknown"),
    "no parts": ({"contents": [user(), {"role": "model", "parts": []}, user()]}, OLDER, "content_missing"),
    "an empty text alone": ({"contents": [user({"text": ""})]}, OLDEST, "text_blank"),
    "a part of nothing": ({"contents": [user(), model({"thought": True}), user()]}, OLDER, "content_missing"),
    "a call without a name": ({"contents": [user(), model(call("")), user(result())]}, OLDER, "tool_name_invalid"),
    "a result without a name": ({"contents": [user(), model(call()), user(result(""))]}, OLDER, "tool_name_invalid"),
    "a call that comes first": ({"contents": [model(call()), user(result())]}, OLDER, "first_turn_wrong"),
    "a call without a result": ({"contents": [user(), model(call()), user()]}, OLDER, "result_count_wrong"),
    "two calls, one result": (
        {"contents": [user(), model(call(), call()), user(result())]},
        OLDER,
        "result_count_wrong",
    ),
    "a result without a call": (
        {"contents": [user(), model({"text": "x"}), user(result())]},
        OLDER,
        "result_orphaned",
    ),
    "a first result": ({"contents": [user(result())]}, OLDER, "result_orphaned"),
    "a call without its signature": ({"contents": [user(), model(call()), user(result())]}, NEWER, "signature_missing"),
    "a signature on the second call": (
        {"contents": [user(), model(call(), call(**SIGNATURE)), user(result(), result())]},
        NEWER,
        "signature_missing",
    ),
    "the model has the last turn": ({"contents": [user(), model({"text": "x"})]}, FLASH, "last_turn_wrong"),
    "a tool without a name": (asks(tools=tools({"description": "x"})), OLDER, "tool_name_invalid"),
    "a tool that begins with a digit": (asks(tools=tools(function("9lives"))), OLDER, "tool_name_invalid"),
    "a tool with a long name": (asks(tools=tools(function("x" * 129))), OLDER, "tool_name_invalid"),
    "two tools of one name": (asks(tools=[*tools(function()), *tools(function())]), OLDER, "value_duplicate"),
    "more tools than are taken": (asks(tools=tools(*(function(f"f{n}") for n in range(513)))), OLDER, "tools_too_many"),
    "a tool with two schemas": (
        asks(tools=tools(function(parameters={"type": "OBJECT"}, parametersJsonSchema={"type": "object"}))),
        OLDER,
        "schema_root_invalid",
    ),
    "a tool that takes a list": (
        asks(tools=tools(function(parametersJsonSchema={"type": "array"}))),
        OLDER,
        "schema_root_invalid",
    ),
    "names without a mode for them": (
        asks(
            tools=tools(function()),
            toolConfig={"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["f"]}},
        ),
        OLDER,
        "tool_choice_invalid",
    ),
    "a choice of nothing": (
        asks(tools=[{"googleSearch": {}}], toolConfig={"functionCallingConfig": {"mode": "AUTO"}}),
        OLDER,
        "tool_choice_without_tools",
    ),
    "instructions beside a cache": (
        asks(cachedContent="cachedContents/a", systemInstruction={"parts": [{"text": "x"}]}),
        OLDER,
        "options_conflict",
    ),
    "a budget and a level": (
        generation(thinkingConfig={"thinkingBudget": 5, "thinkingLevel": "LOW"}),
        NEWER,
        "options_conflict",
    ),
    "a level for a model with budgets": (
        generation(thinkingConfig={"thinkingLevel": "LOW"}),
        OLDER,
        "effort_unsupported",
    ),
    "a level the model lacks": (generation(thinkingConfig={"thinkingLevel": "MINIMAL"}), NEWER, "effort_unsupported"),
    "no thinking for a model that always thinks": (
        generation(thinkingConfig={"thinkingBudget": 0}),
        PRO,
        "thinking_budget_invalid",
    ),
    "too hot": (generation(temperature=2.5), OLDER, "value_out_of_range"),
    "no tokens": (generation(maxOutputTokens=0), OLDER, "value_out_of_range"),
    "more thinking than the model has": (
        generation(thinkingConfig={"thinkingBudget": 52_428}),
        OLDER,
        "thinking_budget_invalid",
    ),
    "a penalty": (generation(presencePenalty=0.5), OLDER, "option_unsupported"),
    "too many stops": (generation(stopSequences=list("abcdef")), OLDER, "stop_invalid"),
    "a schema without its type": (generation(responseJsonSchema={"type": "object"}), OLDER, "output_type_missing"),
    "JSON beside a tool": (
        asks(tools=tools(function()), generationConfig={"responseMimeType": "application/json"}),
        OLDER,
        "json_with_tools",
    ),
    "JSON where a call is demanded": (
        asks(
            tools=tools(function()),
            toolConfig={"functionCallingConfig": {"mode": "ANY"}},
            generationConfig={"responseMimeType": "application/json"},
        ),
        NEWER,
        "json_with_tools",
    ),
    "its own search next to a function, without the flag": (
        asks(tools=[*tools(function()), {"googleSearch": {}}]),
        NEWER,
        "tools_not_combinable",
    ),
    "its own search next to a function, of the older": (
        asks(tools=[*tools(function()), {"googleSearch": {}}]),
        OLDER,
        "tools_not_combinable",
    ),
    "half a character": ({"contents": [user({"text": "\ud800"})]}, OLDER, "body_not_json"),
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
    "a call that has no result yet": {"contents": [user(), model(call(**SIGNATURE))]},
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
    "its own search next to a function, with the flag": asks(
        tools=[*tools(function()), {"googleSearch": {}}], toolConfig={"includeServerSideToolInvocations": True}
    ),
    "an older budget": generation(thinkingConfig={"thinkingBudget": -1}),
}


@pytest.mark.parametrize("body", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_is_accepted_passes(body):
    assert CODEC.check(body, NEWER) == []


def test_the_oldest_models_answer_an_empty_text():
    body = {"contents": [user(), model({"text": ""}), user()]}
    assert CODEC.check(body, endpoint_of("gemini-1.5-flash")) == []
