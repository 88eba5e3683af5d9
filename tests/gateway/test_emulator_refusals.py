"""What the emulator refuses, in the words and error types of the providers, and what `strict=False` lets through."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import httpx2
import openai
import pytest

from segue.testing.emulator import Emulator, Step, emulate

VERSION = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
GEMINI = "/v1beta/models/gemini-2.5-flash:generateContent"
OPEN = {"type": "object", "properties": {"a": {"type": "string"}}}
HI = [{"role": "user", "content": "hi"}]
LONG = "word " * 280_000
NO_PNG = "data:image/png;base64,@@@"


def _claude(**more: Any) -> dict[str, Any]:
    return {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": HI, **more}


def _chat(**more: Any) -> dict[str, Any]:
    return {"model": "gpt-5.4", "messages": HI, **more}


def _responses(**more: Any) -> dict[str, Any]:
    return {"model": "gpt-5.4", "input": "hi", **more}


def _gemini(*parts: Any, **more: Any) -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": list(parts) or [{"text": "hi"}]}], **more}


def _image(data: str) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


DROPPED = [
    *HI,
    {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "r", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}]},
]
THINKING = {"type": "enabled", "budget_tokens": 2000}
REF = {"type": "object", "properties": {"a": {"$ref": "#/x"}}}
CALLED = [
    {"role": "user", "parts": [{"text": "hi"}]},
    {"role": "model", "parts": [{"functionCall": {"name": "r", "args": {}}}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "r", "response": {}}}]},
]


class Case(NamedTuple):
    """A request, and a part of the refusal."""

    name: str
    path: str
    body: Mapping[str, Any]
    status: int
    text: str
    headers: Mapping[str, str] = VERSION


CASES = (
    Case("Claude, an unknown field", "/v1/messages", _claude(foo=1), 400, "foo: Extra inputs are not permitted"),
    Case("Claude, an unknown model", "/v1/messages", _claude(model="claude-9"), 404, "not_found_error"),
    Case(
        "Claude, a huge limit", "/v1/messages", _claude(max_tokens=9_000_000), 400, "max_tokens: 9000000 > 64000, whi"
    ),
    Case("Claude, no version", "/v1/messages", _claude(), 400, "anthropic-version: header is required", {}),
    Case(
        "Claude, data that is not base64",
        "/v1/messages",
        _claude(messages=[{"role": "user", "content": [_image("@@@")]}]),
        400,
        "messages.0.content.0.source.data: Invalid base64 data",
    ),
    Case(
        "Claude, a prompt that does not fit",
        "/v1/messages",
        _claude(messages=[{"role": "user", "content": LONG}]),
        400,
        "prompt is too long: ",
    ),
    Case(
        "Claude, thinking that is missing in a tool loop",
        "/v1/messages",
        _claude(max_tokens=4000, thinking=THINKING, messages=DROPPED, tools=[{"name": "r", "input_schema": OPEN}]),
        400,
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`",
    ),
    Case(
        "Claude, an open schema of a strict tool",
        "/v1/messages",
        _claude(tools=[{"name": "r", "strict": True, "input_schema": OPEN}]),
        400,
        "`additionalProperties` has to be false",
    ),
    Case("Chat, an unknown field", "/v1/chat/completions", _chat(foo=1), 400, '"code":"unknown_parameter"'),
    Case("Chat, an unknown model", "/v1/chat/completions", _chat(model="gpt-x"), 404, '"code":"model_not_found"'),
    Case("Chat, a wrong type", "/v1/chat/completions", _chat(temperature="hot"), 400, '"param":"temperature"'),
    Case(
        "Chat, a renamed limit",
        "/v1/chat/completions",
        _chat(max_tokens=9),
        400,
        "Use 'max_completion_tokens' instead.",
    ),
    Case(
        "Chat, data that is not base64",
        "/v1/chat/completions",
        _chat(messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": NO_PNG}}]}]),
        400,
        '"code":"invalid_base64"',
    ),
    Case(
        "Chat, a prompt that does not fit",
        "/v1/chat/completions",
        _chat(messages=[{"role": "user", "content": LONG}]),
        400,
        '"code":"context_length_exceeded"',
    ),
    Case(
        "Responses, a reply that was never stored",
        "/v1/responses",
        _responses(previous_response_id="resp_1"),
        400,
        "Previous response with id 'resp_1' not found.",
    ),
    Case(
        "Responses, an output without its call",
        "/v1/responses",
        _responses(input=[{"type": "function_call_output", "call_id": "c", "output": "x"}]),
        400,
        "No tool call found for function call output",
    ),
    Case(
        "Responses, an open schema of a strict tool",
        "/v1/responses",
        _responses(tools=[{"type": "function", "name": "r", "strict": True, "parameters": OPEN}]),
        400,
        "'additionalProperties' is required to be supplied and to be false",
    ),
    Case("Gemini, an unknown field", GEMINI, _gemini(foo=1), 400, 'Unknown name \\"foo\\"'),
    Case(
        "Gemini, an unknown model", GEMINI.replace("2.5", "9.5"), _gemini(), 404, "is not found for API version v1beta"
    ),
    Case(
        "Gemini, a schema with $ref",
        GEMINI,
        _gemini(tools=[{"functionDeclarations": [{"name": "r", "parameters": REF}]}]),
        400,
        "$ref",
    ),
    Case(
        "Gemini, data that is not base64",
        GEMINI,
        _gemini({"inlineData": {"mimeType": "image/png", "data": "@@@"}}),
        400,
        "Base64 decoding failed",
    ),
    Case(
        "Gemini, a call without its signature",
        "/v1beta/models/gemini-3.1-pro-preview:generateContent",
        {"contents": CALLED, "tools": [{"functionDeclarations": [{"name": "r"}]}]},
        400,
        "Function call is missing a thought_signature",
    ),
    Case(
        "Bedrock, an unknown model",
        "/model/amazon.nothing-v1:0/converse",
        {"messages": [{"role": "user", "content": [{"text": "hi"}]}]},
        400,
        "The provided model identifier is invalid.",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_bad_request_is_refused_in_the_words_of_its_provider(case: Case) -> None:
    emulator = Emulator()
    reply = emulator.respond("POST", case.path, case.headers, json.dumps(case.body).encode())
    assert (reply.status, case.text in reply.body.decode()) == (case.status, True), reply.body
    assert emulator.requests[0].refusal
    assert emulator.bill().requests == 0


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_lenient_emulator_accepts_it(case: Case) -> None:
    reply = Emulator(strict=False).respond("POST", case.path, case.headers, json.dumps(case.body).encode())
    assert reply.status == 200, reply.body


def test_a_stored_reply_can_be_continued_by_its_organization_alone() -> None:
    emulator = Emulator(organizations={"b": "org-b"})

    def send(key: str, **more: Any) -> Any:
        body = json.dumps(_responses(**more)).encode()
        return emulator.respond("POST", "/v1/responses", {"authorization": f"Bearer {key}"}, body)

    stored, unstored = json.loads(send("a").body)["id"], json.loads(send("a", store=False).body)["id"]
    assert send("a", previous_response_id=stored).status == 200
    assert send("b", previous_response_id=stored).status == 400
    assert send("a", previous_response_id=unstored).status == 400


@pytest.mark.parametrize(
    "served", [{"models": ("my-deployment",)}, {"steps": (Step(model="my-deployment", text="Hello."),)}]
)
def test_a_model_of_your_own_is_served_if_it_is_named(served: Mapping[str, Any]) -> None:
    emulator = Emulator(*served.get("steps", ()), models=served.get("models", ()))
    body = json.dumps(_chat(model="my-deployment")).encode()
    assert emulator.respond("POST", "/v1/chat/completions", {}, body).status == 200


@pytest.mark.parametrize(
    ("path", "body", "kinds"),
    [
        ("/v1/messages", _claude(model="claude-opus-4-8"), ["text"]),
        ("/v1/messages", _claude(model="claude-opus-4-8", thinking={"type": "adaptive"}), ["thinking", "text"]),
        ("/v1/messages", _claude(model="claude-opus-5-5"), ["thinking", "text"]),
    ],
)
def test_claude_shows_thinking_where_it_is_asked_for(path: str, body: Any, kinds: list[str]) -> None:
    reply = Emulator().respond("POST", path, VERSION, json.dumps(body).encode())
    assert [block["type"] for block in json.loads(reply.body)["content"]] == kinds


def test_gemini_shows_thoughts_where_they_are_asked_for() -> None:
    asked = {"generationConfig": {"thinkingConfig": {"includeThoughts": True}}}
    for more, count in ((asked, 2), ({}, 1)):
        reply = Emulator().respond("POST", GEMINI, {}, json.dumps(_gemini(**more)).encode())
        assert len(json.loads(reply.body)["candidates"][0]["content"]["parts"]) == count


def test_official_clients_raise_their_own_errors() -> None:
    with emulate() as server, openai.OpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0) as sdk:
        with pytest.raises(openai.NotFoundError, match="gpt-nonsense"):
            sdk.chat.completions.create(model="gpt-nonsense", messages=[{"role": "user", "content": "hi"}])
        with pytest.raises(openai.BadRequestError) as caught:
            sdk.responses.create(model="gpt-5.4", input="hi", extra_body={"foo": 1})
        assert (caught.value.param, caught.value.code) == ("foo", "unknown_parameter")
        assert [each["refusal"] for each in httpx2.get(f"{server.url}/emulator/requests").json()] == [
            "model",
            "field_unknown",
        ]


# -- which rule --------------------------------------------------------------------------------------------------------

RULES = {
    "a limit": (
        "/v1/chat/completions",
        _chat(messages=[{**HI[0], "name": "a b"}]),
        "messages.*.name of the limits of openai-chat (",
    ),
    "a row of a protocol": (
        "/v1/messages",
        _claude(temperature=1.5),
        "temperature of the protocol anthropic-messages (",
    ),
    "a field of a family": ("/v1/chat/completions", _chat(max_tokens=9), "refused_extra=max_tokens of the family "),
    "the fields of an SDK": ("/v1/messages", _claude(foo=1), "body_fields of the provider anthropic (anthropic "),
    "a check of the protocol": (
        "/v1/messages",
        _claude(messages=[]),
        "messages_missing of the check of anthropic-messages (",
    ),
}


@pytest.mark.parametrize(("path", "body", "rule"), RULES.values(), ids=RULES.keys())
def test_a_refusal_names_the_rule_its_row_and_its_source(path, body, rule):
    with emulate() as emulator:
        answer = httpx2.post(emulator.url + path, json=body, headers=VERSION, timeout=30)
        (recorded,) = emulator.emulator.requests
    assert answer.status_code == 400
    assert answer.headers["x-segue-rule"].startswith(rule)
    assert recorded.rule is not None
    assert recorded.rule.startswith(rule)
    assert f"[rule: {rule}" in answer.text.replace('\\"', '"')


def test_what_is_not_known_to_be_refused_is_answered():
    """A tool named search at Qwen: a thread reports a refusal, and recorded replies contradict it."""
    tool = {"type": "function", "function": {"name": "search", "parameters": {"type": "object", "properties": {}}}}
    with emulate() as emulator:
        body = {"model": "qwen-plus", "messages": HI, "tools": [tool]}
        answer = httpx2.post(emulator.url + "/v1/chat/completions", json=body, headers=VERSION, timeout=30)
    assert answer.status_code == 200
