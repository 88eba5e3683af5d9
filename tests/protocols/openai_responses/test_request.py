"""Requests: bodies are written unchanged, and segue writes by default what the provider requires."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from protocols.openai_responses.bodies import PLAIN, THINKER, call, endpoint, output, reasoning, reply, text_item, user
from segue.conversation.content import FileContent, ImageContent, TextContent
from segue.conversation.context import Context, Options, Prompt, ToolDefinition
from segue.conversation.messages import AssistantMessage, SystemMessage, ToolResultMessage, UserMessage
from segue.errors import DecodeError, EncodeError
from segue.models.model import Model
from segue.projection.projector import project
from segue.projection.report import ChangeCode
from segue.protocols.api import decode_request, encode_request
from segue.protocols.openai_responses.protocol import PROTOCOL as CODEC
from segue.requests.prepare import convert, prepare

P = "openai-responses"
IMAGE = "data:image/png;base64,iVBORw0KGgo="
PDF = "data:application/pdf;base64,JVBERi0x"
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
CLOSED = {**SCHEMA, "required": ["a"], "additionalProperties": False}
BREAK = {"mode": "explicit", "ttl": "30m"}

BODIES = {
    "a string": {"input": "Hi."},
    "an empty string": {"input": ""},
    "no input at all": {"previous_response_id": "resp_1"},
    "input of null": {"input": None, "conversation": "conv_1"},
    "an empty list": {"input": []},
    "instructions": {"input": [user()], "instructions": "Be brief."},
    "instructions of null": {"input": [user()], "instructions": None},
    "a system message": {"input": [user("Be brief.", role="system"), user()]},
    "a developer message with a type": {"input": [user("Be brief.", role="developer", type="message"), user()]},
    "a system message of parts": {"input": [user([{"type": "input_text", "text": "Be brief."}], role="system")]},
    "a system message with an id": {"input": [user("Be brief.", role="system", id="msg_0"), user()]},
    "instructions and a system message": {"input": [user("Also.", role="system"), user()], "instructions": "Be brief."},
    "a system message of no parts": {"input": [user([], role="system"), user()]},
    "a first system message of null": {"input": [user(None, role="system"), user()]},
    "a first system message without content": {"input": [{"role": "developer"}, user()]},
    "a schema that is missing": {"input": "x", "text": {"format": {"type": "json_schema", "name": "a"}}},
    "a schema of null": {"input": "x", "text": {"format": {"type": "json_schema", "name": "a", "schema": None}}},
    "a model of null": {"model": None, "input": "x"},
    "two system messages": {"input": [user("One.", role="system"), user("Two.", role="developer"), user()]},
    "instructions in mid-conversation": {
        "input": [user(), text_item(), user("Now in French.", role="developer"), user()]
    },
    "a typed message": {"input": [user(type="message")]},
    "a message with a null type": {"input": [user(type=None)]},
    "a message of one part": {"input": [user([{"type": "input_text", "text": "Hi."}])]},
    "a message of no parts": {"input": [user([])]},
    "a message of an empty part": {"input": [user([{"type": "input_text", "text": ""}])]},
    "a part with a cache breakpoint": {
        "input": [user([{"type": "input_text", "text": "Hi.", "prompt_cache_breakpoint": BREAK}])]
    },
    "an image by data": {"input": [user([{"type": "input_image", "image_url": IMAGE, "detail": "auto"}])]},
    "an image by address": {"input": [user([{"type": "input_image", "image_url": "https://a.example/b.png"}])]},
    "an image in detail": {"input": [user([{"type": "input_image", "image_url": IMAGE, "detail": "original"}])]},
    "an image by file id": {"input": [user([{"type": "input_image", "file_id": "file-1", "detail": "low"}])]},
    "an image with nulls": {"input": [user([{"type": "input_image", "image_url": None, "file_id": "file-1"}])]},
    "a file by data": {"input": [user([{"type": "input_file", "file_data": PDF, "filename": "a.pdf"}])]},
    "a file without a name": {"input": [user([{"type": "input_file", "file_data": PDF}])]},
    "a file by address": {"input": [user([{"type": "input_file", "file_url": "https://a.example/b.pdf"}])]},
    "a file by id": {"input": [user([{"type": "input_file", "file_id": "file-1", "detail": "high"}])]},
    "a file that is no data URL": {"input": [user([{"type": "input_file", "file_data": "JVBERi0x"}])]},
    "sound": {"input": [user([{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}])]},
    "a part of a new kind": {"input": [user([{"type": "input_smell", "smell": "roses"}])]},
    "an output of parts": {"input": [user(), call(), output([{"type": "input_text", "text": "done"}])]},
    "an output of nothing": {"input": [user(), call(), output("")]},
    "an output with a status": {"input": [user(), call(), output(id="fco_1", status="completed")]},
    "an output of a file": {"input": [user(), call(), output([{"type": "input_file", "file_id": "file-1"}])]},
    "an output that is no text": {"input": [user(), call(), output({"a": 1})]},
    "a custom output for a function call": {"input": [user(), call(), output(type="custom_tool_call_output")]},
    "a function call with the id of an earlier custom call": {
        "input": [
            user(),
            {"type": "custom_tool_call", "call_id": "call_1", "name": "sql", "input": "select"},
            output(type="custom_tool_call_output"),
            call(),
            output(),
        ]
    },
    "bare reasoning of a stored reply": {
        "input": [user(), {"type": "reasoning", "id": "rs_1", "summary": []}, text_item()]
    },
    "bare reasoning that nothing stored": {
        "input": [user(), {"type": "reasoning", "id": "rs_1", "summary": []}, text_item()],
        "store": False,
        "include": ["reasoning.encrypted_content"],
    },
    "what segue writes itself": {"input": [user()], "store": False, "include": ["reasoning.encrypted_content"]},
    "stored": {"input": [user()], "store": True, "include": []},
    "no tools": {"input": [user()], "tools": []},
    "tools of null": {"input": [user()], "tools": None},
    "a function": {
        "input": [user()],
        "tools": [{"type": "function", "name": "f", "description": "d", "parameters": SCHEMA, "strict": True}],
    },
    "a function without strict": {
        "input": [user()],
        "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}],
    },
    "a function with nulls": {
        "input": [user()],
        "tools": [{"type": "function", "name": "f", "description": None, "parameters": None, "strict": None}],
    },
    "a function to be loaded later": {
        "input": [user()],
        "tools": [{"type": "function", "name": "f", "description": "", "parameters": {}, "defer_loading": True}],
    },
    "a custom tool": {
        "input": [user()],
        "tools": [{"type": "custom", "name": "sql", "description": "d", "format": {"type": "text"}}],
        "tool_choice": {"type": "custom", "name": "sql"},
    },
    "the provider's tools": {
        "input": [user()],
        "tools": [{"type": "web_search"}, {"type": "namespace", "name": "n", "tools": []}, {"type": "tool_search"}],
        "tool_choice": {"type": "web_search"},
    },
    "a choice by name": {
        "input": [user()],
        "tools": [{"type": "function", "name": "f", "parameters": SCHEMA, "strict": False}],
        "tool_choice": {"type": "function", "name": "f"},
    },
    "a choice among some": {"input": [user()], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}},
    "settings": {
        "input": [user()],
        "max_output_tokens": 5,
        "temperature": 0.5,
        "top_p": 1,
        "parallel_tool_calls": False,
        "stream": True,
        "metadata": {"a": "b"},
        "truncation": "auto",
        "service_tier": "flex",
        "background": None,
    },
    "an effort": {"input": [user()], "reasoning": {"effort": "low"}},
    "an effort with a summary": {"input": [user()], "reasoning": {"effort": "high", "summary": "auto"}},
    "no effort": {"input": [user()], "reasoning": {"effort": "none"}},
    "an unknown effort": {"input": [user()], "reasoning": {"effort": "heroic", "context": "all_turns"}},
    "reasoning of null": {"input": [user()], "reasoning": None},
    "a schema": {"input": [user()], "text": {"format": {"type": "json_schema", "name": "x", "schema": SCHEMA}}},
    "a schema with a verbosity": {
        "input": [user()],
        "text": {
            "format": {"type": "json_schema", "name": "output", "schema": SCHEMA, "strict": False},
            "verbosity": "low",
        },
    },
    "a verbosity": {"input": [user()], "text": {"format": {"type": "text"}, "verbosity": "low"}},
    "a user": {"input": [user()], "user": "u"},
    "a user by both names": {"input": [user()], "user": "u", "safety_identifier": "s"},
    "a cache key": {"input": [user()], "prompt_cache_key": "k", "prompt_cache_retention": "24h"},
    "cache options": {"input": [user()], "prompt_cache_options": {"ttl": "12h", "prewarm": True}},
}


@pytest.mark.parametrize("model", [THINKER, PLAIN], ids=["a model that reasons", "one that does not"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_body_is_written_unchanged(body, model):
    whole = {"model": model.id, **body}
    assert CODEC.encode_request(CODEC.decode_request(whole, endpoint(model)), endpoint(model)) == whole


def test_a_bare_list_of_items_is_a_conversation():
    prompt = CODEC.decode_request([user(), text_item("Yes?")], endpoint())
    assert prompt.model is None
    assert [message.role for message in prompt.context.messages] == ["user", "assistant"]


def test_an_imported_turn_has_the_bodys_model_for_origin():
    turn = CODEC.decode_request({"model": "gpt-x", "input": [call()]}, endpoint()).context.messages[0]
    assert isinstance(turn, AssistantMessage)
    assert (turn.protocol, turn.provider, turn.model, turn.stop_reason) == (P, "openai", "gpt-x", "toolUse")


MEDIA = {
    "an image": ({"type": "input_image", "image_url": IMAGE}, ImageContent(data="iVBORw0KGgo=", mime_type="image/png")),
    "base64 for addresses is respelt": (
        {"type": "input_image", "image_url": "data:image/png;base64,_-8"},
        ImageContent(data="/+8=", mime_type="image/png"),
    ),
    "a file": (
        {"type": "input_file", "file_data": PDF, "filename": "a.pdf"},
        FileContent(data="JVBERi0x", mime_type="application/pdf", name="a.pdf"),
    ),
    "a file id": ({"type": "input_file", "file_id": "file-1"}, FileContent(file_id="file-1")),
}


@pytest.mark.parametrize(("part", "content"), MEDIA.values(), ids=MEDIA.keys())
def test_media_are_read(part, content):
    read = CODEC.decode_request([user([part])], endpoint()).context.messages[0].content[0]
    assert type(read)(**{name: getattr(read, name) for name in read.__struct_fields__ if name != "extra"}) == content


@pytest.mark.parametrize(
    ("body", "path"),
    [({"input": 1}, ("input",)), ({"input": ["x"]}, ("input", 0)), ({"input": [], "tools": [1]}, ("tools", 0))],
    ids=["input is a number", "an item is a text", "a tool is a number"],
)
def test_another_structure_is_refused_with_its_path(body, path):
    with pytest.raises(DecodeError) as caught:
        CODEC.decode_request(body, endpoint())
    assert caught.value.path == path


# -- what segue writes itself ------------------------------------------------------------------------------------------

HELLO = (UserMessage.of("Hi."),)


def written(model=THINKER, *, context=None, **options):
    prompt = Prompt(context=context or Context(messages=HELLO), options=Options(**options), model=model.id)
    return CODEC.encode_request(prompt, endpoint(model))


BASE = {"model": "gpt-5.4", "input": [user()], "store": False, "include": ["reasoning.encrypted_content"]}
WRITTEN = {
    "no options": ({}, {}),
    "a level": ({"thinking": "low"}, {"reasoning": {"effort": "low", "summary": "auto"}}),
    "no thinking": ({"thinking": "off"}, {"reasoning": {"effort": "none"}}),
    "a small budget": ({"thinking": 1500}, {"reasoning": {"effort": "low", "summary": "auto"}}),
    "a huge budget": ({"thinking": 99_999}, {"reasoning": {"effort": "high", "summary": "auto"}}),
    "tokens": ({"max_tokens": 300}, {"max_output_tokens": 300}),
    "sampling": ({"temperature": 0.1, "top_p": 0.2}, {"temperature": 0.1, "top_p": 0.2}),
    "a choice by mode": ({"tool_choice": "required"}, {"tool_choice": "required"}),
    "a tool by name": ({"tool_choice": "read"}, {"tool_choice": {"type": "function", "name": "read"}}),
    "one call at a time": ({"parallel_tool_calls": False}, {"parallel_tool_calls": False}),
    "an open schema": (
        {"output_schema": SCHEMA},
        {"text": {"format": {"type": "json_schema", "name": "output", "schema": SCHEMA, "strict": False}}},
    ),
    "a closed schema": (
        {"output_schema": CLOSED},
        {"text": {"format": {"type": "json_schema", "name": "output", "schema": CLOSED, "strict": True}}},
    ),
    "a long session id": ({"session_id": "s" * 70}, {"prompt_cache_key": "s" * 70}),
    "a user": ({"user_id": "u"}, {"safety_identifier": "u"}),
    "a stream": ({"stream": True}, {"stream": True}),
}


@pytest.mark.parametrize(("options", "wire"), WRITTEN.values(), ids=WRITTEN.keys())
def test_options_are_written(options, wire):
    body = written(**options)
    assert body == {**BASE, **wire}
    assert CODEC.encode_request(CODEC.decode_request(body, endpoint()), endpoint()) == body


@pytest.mark.parametrize(
    ("long", "retention", "wire"),
    [
        ("24h", "long", {"prompt_cache_retention": "24h"}),
        ("30m", "long", {"prompt_cache_options": {"ttl": "30m"}}),
        ("30m", "none", {"prompt_cache_options": {"mode": "explicit"}}),
        ("none", "long", {}),
        ("24h", "short", {}),
    ],
)
def test_cache_retention_depends_on_the_dialect(long, retention, wire):
    model = Model("gpt-5.4", "openai", P, reasoning=True, dialect={"cache_long": long})
    assert written(model, cache_retention=retention) == {**BASE, **wire}


@pytest.mark.parametrize("option", [{"stop": ("x",)}, {"seed": 1}], ids=["stop", "seed"])
def test_an_option_that_is_not_supported_is_refused(option):
    with pytest.raises(EncodeError) as caught:
        written(**option)
    assert caught.value.path == ("options", *option)


def test_encrypted_content_is_not_requested_from_a_model_that_does_not_reason():
    assert "include" not in written(PLAIN)


def test_store_is_left_out_for_a_provider_without_it():
    assert "store" not in written(Model("m", "somebody", P, dialect={"store": False}))


def test_a_models_own_names_of_levels_are_read_and_written():
    model = Model("m", "openai", P, reasoning=True, thinking_levels={"max": "ultra", "off": None})
    body = written(model, thinking="max")
    assert body["reasoning"] == {"effort": "ultra", "summary": "auto"}
    assert CODEC.decode_request(body, endpoint(model)).options.thinking == "max"


def test_a_changed_level_replaces_the_received_one():
    prompt = CODEC.decode_request({"input": [], "reasoning": {"effort": "low", "context": "all_turns"}}, endpoint())
    extra = prompt.options.extra
    body = CODEC.encode_request(
        Prompt(context=prompt.context, options=Options(thinking="high", extra=extra)), endpoint()
    )
    assert body["reasoning"] == {"effort": "high", "context": "all_turns"}
    body = CODEC.encode_request(Prompt(context=prompt.context, options=Options(extra=extra)), endpoint())
    assert body["reasoning"] == {"context": "all_turns"}


PROMPTS = {
    "a text is the developer's message": ("Be brief.", THINKER, [user("Be brief.", role="developer")]),
    "a model that does not reason has a system message": ("Be brief.", PLAIN, [user("Be brief.", role="system")]),
    "pieces are parts": (
        (TextContent(text="Be brief."),),
        PLAIN,
        [user([{"type": "input_text", "text": "Be brief."}], role="system")],
    ),
    "nothing is nothing": ((), PLAIN, []),
}


@pytest.mark.parametrize(("prompt", "model", "items"), PROMPTS.values(), ids=PROMPTS.keys())
def test_a_system_prompt_is_written(prompt, model, items):
    assert written(model, context=Context(system_prompt=prompt, messages=HELLO))["input"] == [*items, user()]


def test_a_body_in_the_default_format_is_read_without_extra():
    context = Context(
        system_prompt="Be brief.",
        messages=(
            *HELLO,
            AssistantMessage(content=(TextContent(text="Yes?"),)),
            UserMessage.of("Look.", ImageContent(data="iVBORw0KGgo=", mime_type="image/png")),
            SystemMessage.of("In French."),
            UserMessage.of(FileContent(data="JVBERi0x", mime_type="application/pdf")),
        ),
        tools=(ToolDefinition(name="read", description="Reads.", parameters=SCHEMA),),
    )
    body = written(context=context)
    read = CODEC.decode_request(body, endpoint())
    assert read.context.extra is None
    assert read.options == Options()
    assert read.context.tools == context.tools
    assert read.context.messages[0] == context.messages[0]
    assert read.context.messages[2:] == context.messages[2:]


# -- what others were refused for --------------------------------------------------------------------------------------

OTHER = Model("gpt-5.5", "openai", P, reasoning=True)


def history(*items, model=THINKER):
    message = CODEC.decode_response(reply(*items), endpoint(model), {})
    results = tuple(
        ToolResultMessage(tool_call_id=piece.id, tool_name=piece.name, content=(TextContent(text="done"),))
        for piece in message.tool_calls()
    )
    return Context(messages=(*HELLO, message, *results, UserMessage.of("Go on.")))


def test_a_turn_of_reasoning_alone_leaves_nothing_behind():
    body = prepare(history(reasoning()), THINKER).body
    assert body["input"] == [user(), user("Go on.")]


def test_an_own_turn_is_replayed_with_its_ids_and_its_reasoning():
    items = [reasoning(), text_item("Looking."), call(id="fc_1", status="completed")]
    request = prepare(history(*items), THINKER)
    assert request.body["input"] == [user(), *items, output(), user("Go on.")]
    assert request.report.changes == ()


def test_another_models_turn_has_neither():
    items = [reasoning(), text_item("Looking."), call(id="fc_1", namespace="n")]
    body = prepare(history(*items), OTHER).body
    assert body["input"] == [
        user(),
        {"type": "message", "role": "assistant", "content": "Looking."},
        call(),
        output(),
        user("Go on."),
    ]


def test_reasoning_that_cannot_be_decrypted_is_left_out_with_the_ids_behind_it():
    shown = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]}
    body: Any = prepare(history(shown, text_item("Looking."), call(id="fc_1")), THINKER).body
    assert all("id" not in item for item in body["input"])
    assert CODEC.check(body, endpoint()) == []


def test_encrypted_content_is_not_sent_to_another_provider():
    assert "gAAA" not in str(
        prepare(history(reasoning(), text_item()), Model("gpt-5.4", "azure", P, reasoning=True)).body
    )


def test_a_long_call_id_is_shortened_for_call_and_output_alike():
    long = "call_" + "x" * 100
    body: Any = prepare(history(call(call_id=long)), OTHER).body
    ids = [item["call_id"] for item in body["input"] if "call_id" in item]
    assert len(set(ids)) == 1
    assert len(ids[0]) <= 64


def test_a_call_without_an_output_is_answered():
    context = history(call())
    context = Context(messages=(context.messages[0], context.messages[1], context.messages[-1]))
    assert CODEC.check(prepare(context, THINKER).body, endpoint()) == []


def test_an_output_without_a_call_is_left_out():
    orphan = ToolResultMessage(tool_call_id="call_9", content=(TextContent(text="?"),))
    body = prepare(Context(messages=(*HELLO, orphan)), THINKER).body
    assert body["input"] == [user()]


def test_an_own_turn_stays_the_same_object():
    context = history(reasoning(), text_item("Looking."))
    assert project(context, THINKER).context.messages[1] is context.messages[1]


# -- models that do not reason -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("thinking", ["off", 0], ids=["off", "no budget"])
@pytest.mark.parametrize("name", ["openai/gpt-4o", "openai/gpt-4.1"])
def test_no_effort_is_sent_to_a_model_that_does_not_reason(name, thinking):
    context = Context(messages=HELLO)
    assert "reasoning" not in prepare(context, name, options=Options(thinking=thinking)).body
    assert "reasoning" not in written(PLAIN, context=context, thinking=thinking)


REASONED = {
    "off with a summary": {"effort": "none", "summary": "detailed"},
    "a level with a summary": {"effort": "low", "summary": "detailed"},
    "something new": {"mode": "deep"},
}


@pytest.mark.parametrize("given", REASONED.values(), ids=REASONED.keys())
def test_reasoning_parameters_are_not_sent_to_another_model_that_does_not_reason(given):
    include = ["reasoning.encrypted_content", "file_search_call.results"]
    body = {"model": "gpt-5.4", "input": "Hi.", "reasoning": given, "include": include}
    prompt = CODEC.decode_request(body, endpoint())
    assert CODEC.encode_request(prompt, endpoint()) == body
    request = prepare(prompt.context, "openai/gpt-4o", options=prompt.options)
    assert "reasoning" not in request.body
    assert request.body["include"] == ["file_search_call.results"]


def test_a_removed_schema_is_not_sent():
    body = {
        "input": "x",
        "text": {"verbosity": "low", "format": {"type": "json_schema", "name": "a", "schema": SCHEMA}},
    }
    prompt = CODEC.decode_request(body, endpoint())
    changed = Prompt(context=prompt.context, options=Options(extra=prompt.options.extra))
    assert CODEC.encode_request(changed, endpoint())["text"] == {"verbosity": "low"}


def test_a_named_model_replaces_the_null_that_was_read():
    prompt = CODEC.decode_request({"model": None, "input": "x"}, endpoint())
    named = Prompt(context=prompt.context, options=prompt.options, model="gpt-4o")
    assert CODEC.encode_request(named, endpoint())["model"] == "gpt-4o"


# -- options that were changed, or are sent to another model -----------------------------------------------------------


def sent_to(model, body, **changes):
    prompt = CODEC.decode_request({"model": "gpt-5.4", "input": "Hi.", **body}, endpoint())
    options = replace(prompt.options, **changes)
    return CODEC.encode_request(Prompt(context=prompt.context, options=options, model=model.id), endpoint(model))


DEFAULTS = {"store": False, "include": ["reasoning.encrypted_content"]}
CHANGED = {
    "format is kept for the same model": (
        THINKER,
        {**DEFAULTS, "reasoning": {"effort": "low"}},
        {},
        {"reasoning": {"effort": "low"}},
    ),
    "another model gets the default format": (
        OTHER,
        {**DEFAULTS, "reasoning": {"effort": "low"}},
        {},
        {"reasoning": {"effort": "low", "summary": "auto"}},
    ),
    "absent keys are default keys for another model": (OTHER, {}, {}, DEFAULTS),
    "another model gets the data": (
        OTHER,
        {"store": True, "include": ["file_search_call.results"], "reasoning": {"effort": "low", "summary": "detailed"}},
        {},
        {
            "store": True,
            "include": ["file_search_call.results"],
            "reasoning": {"effort": "low", "summary": "detailed"},
        },
    ),
    "a changed user id stands in the same key": (THINKER, {"user": "u"}, {"user_id": "v"}, {"user": "v"}),
    "a removed level": (
        THINKER,
        {"reasoning": {"effort": "low", "summary": "detailed"}},
        {"thinking": None},
        {"reasoning": {"summary": "detailed"}},
    ),
    "a changed choice": (
        THINKER,
        {"tool_choice": {"type": "web_search"}},
        {"tool_choice": "auto"},
        {"tool_choice": "auto"},
    ),
    "a changed schema": (
        THINKER,
        {"text": {"format": {"type": "json_schema", "name": "x", "description": "d", "schema": SCHEMA}}},
        {"output_schema": CLOSED},
        {
            "text": {
                "format": {
                    "type": "json_schema",
                    "name": "output",
                    "schema": CLOSED,
                    "strict": True,
                }
            }
        },
    ),
}


@pytest.mark.parametrize(("model", "body", "changes", "wire"), CHANGED.values(), ids=CHANGED.keys())
def test_changed_options_and_other_models_get_the_default_format(model, body, changes, wire):
    written_body = sent_to(model, body, **changes)
    assert {key: written_body[key] for key in wire} == wire
    assert written_body.keys() - wire.keys() <= {"model", "input", "include", "store"}


def test_the_schema_is_read_unchanged_and_its_name_is_kept_beside_it():
    given = {"type": "json_schema", "name": "x", "description": "d", "schema": SCHEMA, "strict": False}
    body = {"input": "Hi.", "text": {"format": given}}
    prompt = CODEC.decode_request(body, endpoint())
    assert prompt.options.output_schema == SCHEMA
    assert CODEC.encode_request(prompt, endpoint())["text"] == body["text"]


def test_a_prepared_request_has_no_reasoning_for_a_model_that_does_not_reason():
    body = {"model": "gpt-4o", "input": "Hi.", "reasoning": {"effort": "none", "summary": "auto"}}
    prompt = CODEC.decode_request(body, endpoint(PLAIN))
    assert CODEC.encode_request(prompt, endpoint(PLAIN))["reasoning"] == body["reasoning"]
    assert "reasoning" not in prepare(prompt.context, "openai/gpt-4o", options=prompt.options).body


GROWN = {
    "a string": ({"input": "Hi."}, [user()]),
    "no input": ({"previous_response_id": "resp_1"}, []),
    "a list of one part": (
        {"input": [user([{"type": "input_text", "text": "Hi."}])]},
        [user([{"type": "input_text", "text": "Hi."}])],
    ),
}


@pytest.mark.parametrize(("body", "items"), GROWN.values(), ids=GROWN.keys())
def test_a_conversation_that_has_grown_is_a_list(body, items):
    prompt = CODEC.decode_request(body, endpoint())
    grown = replace(prompt, context=prompt.context.add(UserMessage.of("More.")))
    assert CODEC.encode_request(grown, endpoint())["input"] == [*items, user("More.")]


def test_instructions_of_parts_stand_in_the_input():
    prompt = CODEC.decode_request({"input": "Hi.", "instructions": "Be brief."}, endpoint())
    context = replace(prompt.context, system_prompt=(TextContent(text="Be brief."),))
    body = CODEC.encode_request(replace(prompt, context=context), endpoint())
    part = {"type": "input_text", "text": "Be brief."}
    assert body["input"] == [user([part], role="developer"), user()]
    assert "instructions" not in body


def test_format_of_an_older_file_is_ignored():
    old = {P: {"shape": {"input": "string", "system": {"role": "system"}, "list": True, "asked_of": "m", "item": True}}}
    context = Context(
        system_prompt="Be brief.",
        messages=(
            UserMessage(content=(TextContent(text="Hi."),), extra=old),
            ToolResultMessage(tool_call_id="c", content=(TextContent(text="done"),), extra=old),
        ),
        tools=(ToolDefinition(name="f", extra=old),),
        extra=old,
    )
    body = CODEC.encode_request(Prompt(context=context, options=Options(extra=old), model="gpt-5.4"), endpoint())
    assert body == {
        **BASE,
        "input": [user("Be brief.", role="developer"), user(), output(call_id="c")],
        "tools": [{"type": "function", "name": "f", "parameters": {}, "strict": False}],
    }


SHELL = {"type": "function", "name": "shell", "parameters": {"type": "object", "properties": {}}, "strict": False}
PATCH = {"type": "custom", "name": "apply_patch", "format": {"type": "text"}}
ADDED = {"type": "additional_tools", "role": "developer", "tools": [SHELL, PATCH]}


@pytest.mark.parametrize("more", [{}, {"instructions": ""}, {"instructions": "Be brief."}])
def test_tools_in_the_first_item_are_the_tools_of_the_request(more):
    body = {"model": "gpt-6-astra", "input": [ADDED, {"role": "user", "content": "hi"}], **more}
    prompt = decode_request(body, protocol="openai-responses")
    assert [getattr(tool, "name", "") for tool in prompt.context.tools] == ["shell", "apply_patch"]
    assert encode_request(prompt, protocol="openai-responses") == body
    same = convert(body, source="openai-responses", target="openai/gpt-6-astra")
    assert same.body["input"] == body["input"]
    assert "tools" not in same.body
    other = convert(body, source="openai-responses", target="anthropic/claude-opus-5-5")
    assert [tool["name"] for tool in other.body["tools"]] == ["shell", "apply_patch"]
    vendor = convert(body, source="openai-responses", target="xai/grok-4.5")
    assert [tool["name"] for tool in vendor.body["tools"]] == ["shell", "apply_patch"]


def test_an_item_that_becomes_the_system_prompt_stays_an_item():
    item = {"type": "configuration_update", "reasoning": {"effort": "low"}}
    body = {"model": "gpt-6-astra", "input": [item, {"role": "user", "content": "hi"}], "tools": [SHELL]}
    assert convert(body, source="openai-responses", target="openai/gpt-6-astra").body["input"][0] == item


def test_tools_of_a_later_item_are_tools_of_the_request():
    later = {"type": "additional_tools", "role": "developer", "tools": [PATCH, SHELL]}
    body = {"model": "gpt-6-astra", "input": [user(), later, user("more")], "tools": [SHELL]}
    prompt = decode_request(body, protocol="openai-responses")
    assert [getattr(tool, "name", "") for tool in prompt.context.tools] == ["shell", "apply_patch"]
    assert encode_request(prompt, protocol="openai-responses") == body
    same = convert(body, source="openai-responses", target="openai/gpt-6-astra")
    assert (same.body["input"], same.body["tools"]) == (body["input"], body["tools"])
    other = convert(body, source="openai-responses", target="anthropic/claude-opus-5-5")
    assert [tool["name"] for tool in other.body["tools"]] == ["shell", "apply_patch"]
    assert not other.report.of(ChangeCode.NATIVE_DROPPED)
    vendor = convert(body, source="openai-responses", target="xai/grok-4.5")
    assert [tool["name"] for tool in vendor.body["tools"]] == ["shell", "apply_patch"]
    assert "additional_tools" not in str(vendor.body["input"])


@pytest.mark.parametrize("tools", [{}, {"tools": []}])
def test_tools_of_a_later_item_alone_are_written_back_there(tools):
    later = {"type": "additional_tools", "role": "developer", "tools": [SHELL, {"type": "web_search"}]}
    body = {"model": "gpt-6-astra", "input": [user(), later], **tools}
    prompt = decode_request(body, protocol="openai-responses")
    assert len(prompt.context.tools) == 2
    assert encode_request(prompt, protocol="openai-responses") == body
    # Where the item was cut away, its tools stay.
    cut = replace(prompt, context=replace(prompt.context, messages=prompt.context.messages[:1]))
    assert len(encode_request(cut, protocol="openai-responses")["tools"]) == 2


@pytest.mark.parametrize("text", ["a", "input_text", "user", ""])
@pytest.mark.parametrize("beside", [{}, {"type": "message"}])
def test_a_message_of_one_text_in_a_list_is_read_alike_in_every_order_of_its_keys(text, beside):
    part = {"type": "input_text", "text": text}
    common = {**beside, "role": "user", "content": [part]}
    others = {**common, "content": [dict(reversed(part.items()))]}, dict(reversed(common.items()))
    read, *again = [decode_request([item], protocol="openai-responses").context.messages for item in (common, *others)]
    assert all(messages == read for messages in again)
