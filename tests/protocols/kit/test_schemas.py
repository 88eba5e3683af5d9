"""Schemas: an output schema keeps its name, its description and `strict`, and dialects are named and adapted."""

from __future__ import annotations

from typing import Any

import pytest

import segue
from segue.models.model import Model
from segue.protocols.api import decode_request, resolve_endpoint
from segue.protocols.kit.schemas import find_faults, is_closed, refused_in, schema_name
from segue.requests.prepare import convert

CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
FORM = {"name": "person", "description": "Someone.", "schema": CLOSED, "strict": True}
CHAT: dict[str, Any] = {
    "model": "gpt-4o",
    "messages": [{"role": "user", "content": "hi"}],
    "response_format": {"type": "json_schema", "json_schema": FORM},
}
RESPONSES: dict[str, Any] = {"model": "gpt-5", "input": "hi", "text": {"format": {"type": "json_schema", **FORM}}}
TO_CHAT = Model("gpt-4o", "openai", "openai-chat")
TO_RESPONSES = Model("gpt-5", "openai", "openai-responses", reasoning=True)
CLAUDE = Model("claude-sonnet-4-6", "anthropic", "anthropic-messages")
TITLED = {**CLOSED, "title": "person", "description": "Someone."}


def test_a_named_schema_is_converted_from_chat_to_responses():
    form: Any = convert(CHAT, source="openai-chat", target=TO_RESPONSES).body["text"]
    assert form == {"format": {"type": "json_schema", **FORM}}


def test_a_named_schema_is_converted_from_responses_to_chat():
    form: Any = convert(RESPONSES, source="openai-responses", target=TO_CHAT).body["response_format"]
    assert form["json_schema"] == FORM


@pytest.mark.parametrize(
    ("body", "source"), [(CHAT, "openai-chat"), (RESPONSES, "openai-responses")], ids=["chat", "responses"]
)
def test_a_protocol_without_schema_names_gets_title_and_description(body: Any, source: str):
    config: Any = convert(body, source=source, target=CLAUDE).body["output_config"]
    assert config["format"]["schema"] == TITLED


@pytest.mark.parametrize(
    ("body", "source"), [(CHAT, "openai-chat"), (RESPONSES, "openai-responses")], ids=["chat", "responses"]
)
def test_the_schema_itself_is_read_unchanged(body: Any, source: str):
    assert decode_request(body, protocol=source).options.output_schema == CLOSED


def test_an_existing_title_is_not_replaced():
    named = {**FORM, "schema": {**CLOSED, "title": "Human"}}
    body = {**CHAT, "response_format": {"type": "json_schema", "json_schema": named}}
    form: Any = convert(body, source="openai-chat", target=CLAUDE).body["output_config"]
    assert form["format"]["schema"]["title"] == "Human"


NAMES = {
    "a title": ({"title": "Person"}, "Person"),
    "a title with other characters": ({"title": "A person, née X"}, "A_person_n_e_X"),
    "a title of other characters only": ({"title": "??"}, "output"),
    "a title that is too long": ({"title": "x" * 99}, "x" * 64),
    "a title that is not a string": ({"title": {"type": "string"}}, "output"),
    "no title": ({}, "output"),
}


@pytest.mark.parametrize(("schema", "name"), NAMES.values(), ids=NAMES.keys())
def test_the_name_of_a_schema_is_its_title(schema: dict[str, object], name: str):
    assert schema_name(schema) == name


OPEN = {
    "an object that is not closed": {**CLOSED, "additionalProperties": True},
    "a property that may be missing": {**CLOSED, "required": []},
    "an open object inside": {**CLOSED, "properties": {"a": {"type": "object"}}},
    "an open object in a list": {"anyOf": [CLOSED, {"type": "object"}]},
    "a required list without names": {**CLOSED, "required": [{}]},
}


@pytest.mark.parametrize("schema", OPEN.values(), ids=OPEN.keys())
def test_an_open_schema_cannot_be_strict(schema: dict[str, object]):
    assert not is_closed(schema)
    assert is_closed(CLOSED)


# -- dialects: what check names, projection adapts ---------------------------------------------------------------------

TEXT = {"type": "string"}
REFERENCE = {"$ref": "#/$defs/A", "description": "d"}
GPT = Model("gpt-4.1", "openai", "openai-chat")
GEMINI = Model("gemini-2.5-flash", "google", "google-genai")
KIMI = Model("kimi-k2.6", "moonshotai", "openai-chat")

DIALECTS = {
    "a format that Gemini does not have": (
        GEMINI,
        {"a": {**TEXT, "format": "uri"}},
        False,
        "schema_format_unsupported",
    ),
    "an enumeration of numbers for Gemini": (
        GEMINI,
        {"a": {"type": "integer", "enum": ["1", "2"]}},
        False,
        "schema_enum_invalid",
    ),
    "an empty value for Gemini": (GEMINI, {"a": {**TEXT, "enum": ["", "b"]}}, False, "schema_enum_invalid"),
    "a list without items for Gemini": (GEMINI, {"a": {"type": "array"}}, False, "schema_invalid"),
    "a type beside anyOf for Kimi": (
        KIMI,
        {"a": {"type": "object", "anyOf": [{"properties": {}}]}},
        False,
        "schema_invalid",
    ),
    "a property without a type for Kimi": (KIMI, {"a": {"description": "d"}}, False, "schema_invalid"),
    "a reference with a description in a strict schema": (GPT, {"a": REFERENCE}, True, "schema_reference_invalid"),
    "a format that strict mode does not have": (
        GPT,
        {"a": {**TEXT, "format": "uri"}},
        True,
        "schema_format_unsupported",
    ),
}


@pytest.mark.parametrize(("model", "properties", "strict", "code"), DIALECTS.values(), ids=DIALECTS.keys())
def test_what_a_dialect_refuses_is_named_and_adapted(model, properties, strict, code):
    schema = {"type": "object", "properties": properties, "required": ["a"]}
    if strict:
        definitions = {"A": {**CLOSED}}
        schema |= {"additionalProperties": False, "$defs": definitions}
    rules = resolve_endpoint(model).rules
    assert code in {fault.code for fault in find_faults(schema, rules, strict=strict)}
    tool = segue.ToolDefinition(name="f", description="d", parameters=schema, strict=strict)
    context = segue.Context(tools=(tool,)).add(segue.UserMessage.of("hi"))
    request = segue.prepare(context, model)
    assert not segue.check(request.body, protocol=model.protocol, model=model)
    assert any(change.path[:1] == ("tools",) for change in request.report.changes)


SIZES = {
    "too deep": {"type": "object", "properties": {"a": CLOSED}},
    "too many properties": {"type": "object", "properties": {str(at): TEXT for at in range(5001)}},
    "too many values": {"type": "object", "properties": {"a": {**TEXT, "enum": [str(at) for at in range(1001)]}}},
}


@pytest.mark.parametrize("name", SIZES)
def test_a_strict_schema_that_is_too_large_is_named(name):
    schema: dict[str, object] = SIZES[name]
    for _ in range(10 if name == "too deep" else 0):
        schema = {"type": "object", "properties": {"a": schema}}
    faults = find_faults(schema, resolve_endpoint(GPT).rules, strict=True)
    assert "schema_too_large" in {fault.code for fault in faults}


REFUSED_KEYWORDS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a number above the limit": ({"minItems": 2}, ["minItems"]),
    "a number at the limit": ({"minItems": 1}, []),
    "a number below the limit": ({"minItems": 0}, []),
    "no number": ({"minItems": "many"}, []),
    "a keyword without a limit": ({"maxItems": 1, "minItems": 1, "items": {"maxItems": 1}}, ["maxItems"]),
    "a keyword that is null": ({"maxItems": None}, ["maxItems"]),
    "none of them": ({"items": {"maxItems": 1, "minItems": 2}}, []),
}


@pytest.mark.parametrize(("schema", "refused"), REFUSED_KEYWORDS.values(), ids=REFUSED_KEYWORDS.keys())
def test_the_refused_keywords_of_a_schema_are_listed(schema: dict[str, Any], refused: list[str]):
    assert refused_in(schema, frozenset({"minItems>1", "maxItems"})) == refused
