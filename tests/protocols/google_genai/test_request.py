"""Whole requests: contents and turns, results, instructions, tools."""

from __future__ import annotations

from typing import Any

import pytest

import segue
from protocols.google_genai.endpoints import NEWER, OLDER, VERTEX, endpoint_of
from segue.conversation.content import ImageContent, NativeContent, TextContent, ToolCall
from segue.conversation.context import Context, NativeTool, Options, Prompt, ToolDefinition
from segue.conversation.messages import AssistantMessage, StopReason, ToolResultMessage, UserMessage
from segue.errors import DecodeError, EncodeError
from segue.protocols.api import decode_request, encode_request
from segue.protocols.google_genai.protocol import PROTOCOL as CODEC
from segue.requests.prepare import convert, prepare

PNG = "iVBORw0KGgo="
HI = {"role": "user", "parts": [{"text": "hi"}]}


def read(body):
    prompt = CODEC.decode_request(body, NEWER)
    assert CODEC.encode_request(prompt, NEWER) == body
    return prompt


# -- results -----------------------------------------------------------------------------------------------------------

RESPONSES = {
    "an output": ({"output": "x"}, ["x"], False),
    "an output of nothing": ({"output": ""}, [""], False),
    "an error": ({"error": "x"}, ["x"], True),
    "an error without text": ({"error": ""}, [], True),
    "the official client's wrapping": ({"result": "x"}, ["x"], False),
    "pydantic's wrapping": ({"return_value": "x"}, ["x"], False),
    "pydantic's wrapping of an error": ({"call_error": "x"}, ["x"], True),
    "nothing": ({}, [], False),
    "several texts": ({"output": ["a", "b"]}, ["a", "b"], False),
    "a list of something else": ({"output": ["a", 1]}, ['["a",1]'], False),
    "a number": ({"result": 5}, ["5"], False),
    "an object in a wrapping": ({"output": {"a": [1.5, None]}}, ['{"a":[1.5,null]}'], False),
    "an object": ({"city": "Oslo", "snow": True}, ['{"city":"Oslo","snow":true}'], False),
    "one key that is no wrapper": ({"city": "Oslo"}, ['{"city":"Oslo"}'], False),
    "output beside error": ({"output": "a", "error": "b"}, ['{"output":"a","error":"b"}'], False),
    "no object at all": ("x", ["x"], False),
    "an integer of many digits": ({"output": 10**40}, [str(10**40)], False),
}


@pytest.mark.parametrize(("response", "texts", "is_error"), RESPONSES.values(), ids=RESPONSES.keys())
def test_a_response_is_read_as_text_and_comes_out_unchanged(response, texts, is_error):
    call = {"functionCall": {"id": "c", "name": "f", "args": {}}}
    result = {"functionResponse": {"id": "c", "name": "f", "response": response}}
    contents = [HI, {"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}]
    message = read({"contents": contents}).context.messages[2]
    assert message.role == "toolResult"
    assert [piece.text for piece in message.content if piece.kind == "text"] == texts
    assert (message.tool_call_id, message.tool_name, message.is_error) == ("c", "f", is_error)


def written(*messages, endpoint=NEWER) -> Any:
    return CODEC.encode_request(Prompt(context=Context(messages=messages)), endpoint)["contents"]


def calls(*names):
    content = tuple(ToolCall(id=f"c{at}", name=name) for at, name in enumerate(names))
    return AssistantMessage(content=content, stop_reason=StopReason.TOOL_USE)


def result(call_id, *content, name="", is_error=False):
    return ToolResultMessage(tool_call_id=call_id, tool_name=name, content=content, is_error=is_error)


def test_all_results_of_a_step_stand_in_one_content_and_the_users_text_in_the_next():
    contents = written(
        calls("f", "g"),
        result("c0", TextContent(text="a"), TextContent(text="b")),
        result("c1", TextContent(text="no"), is_error=True),
        UserMessage.of("go on"),
    )
    assert [content["role"] for content in contents] == ["model", "user", "user"]
    assert [part["functionResponse"] for part in contents[1]["parts"]] == [
        {"id": "c0", "name": "f", "response": {"output": ["a", "b"]}},
        {"id": "c1", "name": "g", "response": {"error": "no"}},
    ]
    assert contents[2]["parts"] == [{"text": "go on"}]


def test_the_name_of_a_tool_is_the_calls_and_never_the_id():
    assert written(calls("f"), result("c0"))[1]["parts"][0]["functionResponse"]["name"] == "f"
    assert written(result("gone", name="g"))[0]["parts"][0]["functionResponse"]["name"] == "g"


def test_media_stand_inside_of_the_response():
    image = ImageContent(data=PNG, mime_type="image/png")
    [_, content] = written(calls("f"), result("c0", image, TextContent(text="a cat")))
    assert content["parts"][0]["functionResponse"] == {
        "id": "c0",
        "name": "f",
        "response": {"output": "a cat"},
        "parts": [{"inlineData": {"mimeType": "image/png", "data": PNG}}],
    }


def test_results_without_ids_belong_to_the_calls_in_order():
    def call(name):
        return {"functionCall": {"name": name, "args": {}}}

    def answer(name, text):
        return {"functionResponse": {"name": name, "response": {"output": text}}}

    body = {
        "contents": [
            HI,
            {"role": "model", "parts": [call("f"), call("g"), call("f")]},
            {"role": "user", "parts": [answer("f", "1"), answer("g", "2"), answer("f", "3")]},
            {"role": "model", "parts": [call("f")]},
            {"role": "user", "parts": [answer("f", "4")]},
            {"role": "user", "parts": [answer("h", "lost")]},
        ]
    }
    results = [message for message in read(body).context.messages if message.role == "toolResult"]
    assert [message.tool_call_id for message in results] == ["call_1_0", "call_1_1", "call_1_2", "call_3_0", ""]
    assert [message.tool_name for message in results] == ["f", "g", "f", "f", "h"]


def test_a_result_of_a_call_without_an_id_has_none_either():
    reply = {
        "candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}}],
        "responseId": "r",
    }
    message = CODEC.decode_response(reply, OLDER, {})
    [call] = message.tool_calls()
    assert call.id == "call_r_0"
    contents = written(UserMessage.of("hi"), message, result(call.id, TextContent(text="x")))
    assert contents[1]["parts"] == [{"functionCall": {"name": "f", "args": {}}}]
    assert contents[2]["parts"] == [{"functionResponse": {"name": "f", "response": {"output": "x"}}}]


TURNS = {
    "a result behind a turn without calls": {
        "contents": [
            HI,
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
            {"role": "model", "parts": [{"text": "wait"}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "x"}}}]},
        ]
    },
    "a content without a role": {"contents": [{"parts": [{"text": "hi"}]}]},
    "an old role": {"contents": [{"role": "function", "parts": [{"functionResponse": {"name": "f", "response": {}}}]}]},
    "one part without its list": {"contents": [{"role": "user", "parts": {"text": "hi"}}]},
    "no parts": {"contents": [{"role": "user"}, {"role": "model", "parts": None}, {"role": "user", "parts": []}]},
    "one content without its list": {"contents": {"role": "user", "parts": [{"text": "hi"}]}},
    "a text alone": {"contents": "hi"},
    "text behind results in one content": {
        "contents": [
            {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "f", "args": {}}}]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"id": "c", "name": "f", "response": {}}}, {"text": "and now?"}],
            },
        ]
    },
    "text before results in one content": {
        "contents": [
            {"role": "user", "parts": [{"text": "so"}, {"functionResponse": {"id": "c", "name": "f", "response": {}}}]}
        ]
    },
    "results in several contents": {
        "contents": [
            {"role": "user", "parts": [{"functionResponse": {"id": "a", "name": "f", "response": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"id": "b", "name": "f", "response": {}}}], "note": 1},
        ]
    },
    "a call and its result in snake_case": {
        "contents": [
            {"role": "model", "parts": [{"function_call": {"id": "c", "name": "f", "args": {}}}]},
            {"role": "user", "parts": [{"function_response": {"id": "c", "name": "f", "response": {"output": "x"}}}]},
        ]
    },
    "a result in snake_case": {
        "contents": [
            {
                "role": "user",
                "parts": [
                    {
                        "function_response": {
                            "id": "c",
                            "name": "f",
                            "response": {"output": "x"},
                            "parts": [{"inline_data": {"mime_type": "image/png", "data": PNG}}],
                        }
                    }
                ],
            }
        ]
    },
    "a result that goes on": {
        "contents": [
            {
                "role": "user",
                "parts": [
                    {
                        "functionResponse": {"name": "f", "response": {}, "willContinue": True, "scheduling": "SILENT"},
                        "partMetadata": {"a": 1},
                    }
                ],
            }
        ]
    },
    "a result without a name": {"contents": [{"role": "user", "parts": [{"functionResponse": {"id": "c"}}]}]},
    "a body that names its model": {"model": "models/gemini-x", "contents": [HI]},
    "a body in snake_case": {
        "contents": [HI],
        "system_instruction": {"parts": [{"text": "Be kind."}]},
        "generation_config": {"max_output_tokens": 5, "top_p": 0.5, "thinking_config": {"thinking_budget": 5}},
        "tool_config": {"function_calling_config": {"mode": "ANY", "allowed_function_names": ["f"]}},
        "tools": [{"function_declarations": [{"name": "f", "parameters_json_schema": {"type": "object"}}]}],
        "safety_settings": [],
    },
}


@pytest.mark.parametrize("body", TURNS.values(), ids=TURNS.keys())
def test_a_body_comes_out_unchanged(body):
    read(body)


def test_a_bare_list_of_contents_is_read():
    prompt = CODEC.decode_request([HI, {"role": "model", "parts": [{"text": "ho"}]}], NEWER)
    assert prompt.context.messages[0] == UserMessage.of("hi")
    assert prompt.context.messages[1].role == "assistant"


def test_a_lone_part_that_is_joined_later_is_not_lost():
    body = {"contents": [{"role": "user", "parts": {"functionResponse": {"id": "a", "name": "f", "response": {}}}}]}
    context = read(body).context.add(ToolResultMessage(tool_call_id="b", tool_name="f", content=()))
    [content] = written(*context.messages)
    assert [part["functionResponse"]["id"] for part in content["parts"]] == ["a", "b"]


WRONG = {
    "no contents": ({}, ("contents",)),
    "contents that are a number": ({"contents": 5}, ("contents",)),
    "a content that is a text": ({"contents": ["hi"]}, ("contents", 0)),
    "a part that is a text": ({"contents": [{"role": "user", "parts": ["hi"]}]}, ("contents", 0, "parts", 0)),
    "tools that are a text": ({"contents": [HI], "tools": "x"}, ("tools",)),
    "a tool that is a text": ({"contents": [HI], "tools": ["x"]}, ("tools", 0)),
    "instructions that are a number": ({"contents": [HI], "systemInstruction": 5}, ("systemInstruction",)),
}


@pytest.mark.parametrize(("body", "path"), WRONG.values(), ids=WRONG.keys())
def test_what_is_no_request_is_refused_with_its_path(body, path):
    with pytest.raises(DecodeError) as refused:
        CODEC.decode_request(body, NEWER)
    assert refused.value.path == path


# -- instructions ------------------------------------------------------------------------------------------------------

SYSTEM = {
    "a content without a role": ({"parts": [{"text": "Be kind."}]}, "Be kind."),
    "what the client sends": ({"role": "user", "parts": [{"text": "Be kind."}]}, (TextContent(text="Be kind."),)),
    "another role": ({"role": "system", "parts": [{"text": "Be kind."}]}, (TextContent(text="Be kind."),)),
    "two texts": ({"parts": [{"text": "a"}, {"text": "b"}]}, (TextContent(text="a"), TextContent(text="b"))),
    "a text": ("Be kind.", "Be kind."),
    "a part": ({"text": "Be kind."}, (TextContent(text="Be kind."),)),
    "bare parts": ([{"text": "Be kind."}], (TextContent(text="Be kind."),)),
    "one part without its list": ({"parts": {"text": "Be kind."}}, "Be kind."),
    "nothing": (None, None),
    "a picture": (
        {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": PNG}}]},
        (
            NativeContent(
                protocol="google-genai",
                block={"inlineData": {"mimeType": "image/png", "data": PNG}},
                fallback=(ImageContent(data=PNG, mime_type="image/png"),),
            ),
        ),
    ),
}


@pytest.mark.parametrize(("wire", "prompt"), SYSTEM.values(), ids=SYSTEM.keys())
def test_instructions_survive_both_directions(wire, prompt):
    assert read({"contents": [HI], "systemInstruction": wire}).context.system_prompt == prompt


def test_a_prompt_is_read_back_unchanged():
    for prompt in ("Be kind.", (TextContent(text="Be kind."),)):
        body = CODEC.encode_request(Prompt(context=Context(system_prompt=prompt)), NEWER)
        assert CODEC.decode_request(body, NEWER).context.system_prompt == prompt


# -- tools -------------------------------------------------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
F, G = {"name": "f", "parametersJsonSchema": SCHEMA}, {"name": "g", "description": "G.", "parametersJsonSchema": SCHEMA}
TOOLS = {
    "two functions": ([{"functionDeclarations": [F, G]}], ["f", "g"]),
    "each in its own": ([{"functionDeclarations": [F]}, {"functionDeclarations": [G]}], ["f", "g"]),
    "search between them": (
        [{"functionDeclarations": [F]}, {"googleSearch": {}}, {"functionDeclarations": [G]}],
        ["f", {"googleSearch": {}}, "g"],
    ),
    "search beside them": (
        [{"functionDeclarations": [F, G], "googleSearch": {}, "urlContext": {}}],
        ["f", "g", {"googleSearch": {}, "urlContext": {}}],
    ),
    "one without its list": ({"functionDeclarations": [F]}, ["f"]),
    "no functions": ([{"functionDeclarations": []}], [{"functionDeclarations": []}]),
    "a function without a name": (
        [{"functionDeclarations": [{"description": "x"}]}],
        [{"functionDeclarations": [{"description": "x"}]}],
    ),
    "a function with an empty schema": ([{"functionDeclarations": [{"name": "f", "parametersJsonSchema": {}}]}], ["f"]),
    "a function without a schema": ([{"functionDeclarations": [{"name": "f", "description": ""}]}], ["f"]),
    "a function with unknown keys": (
        [{"functionDeclarations": [{**F, "behavior": "NON_BLOCKING", "response": {"type": "STRING"}}]}],
        ["f"],
    ),
    "nothing": ([], []),
}


@pytest.mark.parametrize(("wire", "named"), TOOLS.values(), ids=TOOLS.keys())
def test_tools_survive_both_directions(wire, named):
    tools = read({"contents": [HI], "tools": wire}).context.tools
    assert [tool.name if tool.kind == "function" else tool.definition for tool in tools] == named


def test_a_schema_of_googles_dialect_is_read_as_json_schema_and_comes_out_unchanged():
    wire = {
        "type": "OBJECT",
        "properties": {
            "when": {"type": "STRING", "nullable": True, "format": "date-time"},
            "tags": {"type": "ARRAY", "min_items": "1", "items": {"type": "STRING"}},
            "either": {"anyOf": [{"type": "INTEGER"}, {"type": "BOOLEAN"}], "nullable": True},
        },
        "required": ["when"],
    }
    body = {"contents": [HI], "tools": [{"functionDeclarations": [{"name": "f", "parameters": wire}]}]}
    [tool] = read(body).context.tools
    assert tool.kind == "function"
    assert tool.parameters == {
        "type": "object",
        "properties": {
            "when": {"type": ["string", "null"], "format": "date-time"},
            "tags": {"type": "array", "minItems": 1, "items": {"type": "string"}},
            "either": {"anyOf": [{"type": "integer"}, {"type": "boolean"}, {"type": "null"}]},
        },
        "required": ["when"],
    }


def test_another_protocols_tool_is_refused_with_its_path():
    context = Context(messages=(UserMessage.of("hi"),), tools=(NativeTool(protocol="openai-chat", definition={}),))
    with pytest.raises(EncodeError) as refused:
        CODEC.encode_request(Prompt(context=context), NEWER)
    assert refused.value.path == ("tools", 0)


def test_a_tool_that_takes_nothing_has_no_schema_and_stays_so_for_its_own_protocol():
    declared = [{"functionDeclarations": [{"name": "f"}]}]
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "tools": declared}
    request = convert(body, source="google-genai", target=OLDER.model)
    assert (request.body["tools"], request.report.changes) == (declared, ())
    made = Context(messages=(UserMessage.of("hi"),), tools=(ToolDefinition(name="f", parameters={}),))
    assert prepare(made, OLDER.model).body["tools"] == declared


SETTINGS = {
    "JSON beside a tool": ({"responseMimeType": "application/json", "topK": 3}, OLDER, {"topK": 3}),
    "JSON beside a tool, of a newer model": (
        {"responseMimeType": "application/json"},
        NEWER,
        {"responseMimeType": "application/json"},
    ),
    "penalties": ({"presencePenalty": 0.5, "frequencyPenalty": 0.5}, OLDER, None),
    "penalties, of a newer model": ({"presencePenalty": 0.5}, NEWER, None),
    "a penalty of 0, of a newer model": ({"presencePenalty": 0}, NEWER, {"presencePenalty": 0}),
}


@pytest.mark.parametrize(("config", "endpoint", "sent"), SETTINGS.values(), ids=SETTINGS.keys())
def test_a_setting_that_a_model_refuses_does_not_move_to_it(config, endpoint, sent):
    body = {"contents": [HI], "tools": [{"functionDeclarations": [{"name": "f"}]}], "generationConfig": config}
    request = convert(body, source="google-genai", target=endpoint.model)
    assert request.body.get("generationConfig") == sent
    assert CODEC.check(request.body, endpoint) == []
    places = {change.path[:2] for change in request.report.changes}
    assert places == (set() if sent == config else {("options", "extra")})


def test_a_new_tool_is_written_with_its_schema_untouched():
    schema = {"type": "object", "$defs": {"x": {"const": 1}}, "additionalProperties": False}
    context = Context(messages=(UserMessage.of("hi"),), tools=(ToolDefinition(name="f", parameters=schema),))
    body = CODEC.encode_request(Prompt(context=context), NEWER)
    assert body["tools"] == [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": schema}]}]


# -- where it goes -----------------------------------------------------------------------------------------------------

VERTEX_PATH = "/v1/projects/{GOOGLE_CLOUD_PROJECT}/locations/{GOOGLE_CLOUD_LOCATION}/publishers/google/models"
PATHS = {
    "the Gemini API": (NEWER, False, "/models/gemini-3.1-pro-preview:generateContent"),
    "the Gemini API, streaming": (NEWER, True, "/models/gemini-3.1-pro-preview:streamGenerateContent?alt=sse"),
    "an id with its collection": (endpoint_of("models/gemini-x"), False, "/models/gemini-x:generateContent"),
    "a tuned model": (endpoint_of("tunedModels/mine"), False, "/tunedModels/mine:generateContent"),
    "Vertex": (VERTEX, False, f"{VERTEX_PATH}/gemini-3-flash-preview:generateContent"),
    "a model of one's own at Vertex": (
        endpoint_of("projects/p/locations/l/endpoints/7", "google-vertex"),
        True,
        "/v1/projects/p/locations/l/endpoints/7:streamGenerateContent?alt=sse",
    ),
}


@pytest.mark.parametrize(("endpoint", "stream", "path"), PATHS.values(), ids=PATHS.keys())
def test_a_request_goes_where_the_model_is(endpoint, stream, path):
    assert CODEC.path(endpoint, stream) == path


def test_format_of_older_stored_files_is_ignored():
    older: Any = {"google-genai": {"shape": {"id_made": True, "snake": ["functionCall"], "joined": True}}}
    reply: Any = {"reply": {"google-genai": {"body": {"shape": {}}, "candidate": {"finishReason": "SAFETY"}}}}
    call = ToolCall(id="c", name="f", extra=older)
    answer = AssistantMessage(content=(call,), stop_reason=StopReason.TOOL_USE, extra={**older, **reply})
    message = ToolResultMessage(tool_call_id="c", content=(TextContent(text="x", extra=older),), extra=older)
    tool = ToolDefinition(name="f", extra=older)
    context = Context(system_prompt="Hi.", messages=(UserMessage.of("hi"), answer, message), tools=(tool,), extra=older)
    body = CODEC.encode_request(Prompt(context=context, options=Options(max_tokens=5, extra=older)), NEWER)
    assert body == {
        "contents": [
            HI,
            {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "f", "args": {}}}]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"id": "c", "name": "f", "response": {"output": "x"}}}],
            },
        ],
        "systemInstruction": {"parts": [{"text": "Hi."}]},
        "tools": [{"functionDeclarations": [{"name": "f"}]}],
        "generationConfig": {"maxOutputTokens": 5},
    }
    assert CODEC.encode_response(answer, NEWER)["candidates"]


def test_a_second_schema_of_a_tool_is_not_sent_back():
    function = {"name": "find", "parameters": {"type": "OBJECT"}, "parametersJsonSchema": {"type": "object"}}
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "tools": [{"functionDeclarations": [function]}]}
    prompt = decode_request(body, protocol="google-genai")
    assert encode_request(prompt, protocol="google-genai") == body
    sent = prepare(prompt.context, "google/gemini-3.5-flash").body
    assert sent["tools"] == [{"functionDeclarations": [{"name": "find", "parametersJsonSchema": {"type": "object"}}]}]


@pytest.mark.parametrize("field", [{"id": 0}, {"scheduling": "SILENT"}, {"willContinue": True}])
def test_a_result_without_an_id_keeps_its_other_field(field):
    call = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
    result = {"functionResponse": {"name": "f", "response": {"output": "x"}, **field}}
    contents = [{"role": "user", "parts": [{"text": "q"}]}, call, {"role": "user", "parts": [result]}]
    converted = segue.convert({"contents": contents}, source="google-genai", target="google/gemini-2.5-flash")
    assert converted.body["contents"] == contents
