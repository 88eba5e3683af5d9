"""Parts, both ways, one by one."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from protocols.google_genai.endpoints import NEWER
from segue.conversation.content import (
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from segue.conversation.context import Context, Prompt
from segue.conversation.messages import AssistantMessage, SystemMessage, ToolResultMessage, UserMessage
from segue.errors import EncodeError
from segue.protocols.google_genai.protocol import PROTOCOL as CODEC
from segue.protocols.kit.codec import Endpoint
from segue.requests.prepare import prepare

PNG = "iVBORw0KGgo="


def kept(**data):
    return {"google-genai": data}


def formatted(**patch):
    return kept(verbatim=patch)


def native(block, *fallback):
    return NativeContent(protocol="google-genai", block=block, fallback=fallback)


USER = {
    "a text": ({"text": "hi"}, TextContent(text="hi")),
    "an empty text": ({"text": ""}, TextContent(text="")),
    "a picture": (
        {"inlineData": {"mimeType": "image/png", "data": PNG}},
        ImageContent(data=PNG, mime_type="image/png"),
    ),
    "a picture in snake_case": (
        {"inline_data": {"mime_type": "image/png", "data": PNG}},
        ImageContent(
            data=PNG,
            mime_type="image/png",
            extra=formatted(inline_data={"as": "inlineData", "in": {"mime_type": {"as": "mimeType"}}}),
        ),
    ),
    "a picture in the alphabet of URLs": (
        {"inlineData": {"mimeType": "image/png", "data": "-_8"}},
        ImageContent(
            data="+/8=",
            mime_type="image/png",
            extra=formatted(inlineData={"in": {"data": {"from": "+/8=", "to": "-_8"}}}),
        ),
    ),
    "a large picture in the alphabet of URLs": (
        {"inline_data": {"mime_type": "image/png", "data": "-_8A" * 200}},
        ImageContent(
            data="+/8A" * 200,
            mime_type="image/png",
            extra=formatted(
                inline_data={
                    "as": "inlineData",
                    "in": {"mime_type": {"as": "mimeType"}, "data": {"base64": ["url"]}},
                }
            ),
        ),
    ),
    "a named picture": (
        {"inlineData": {"mimeType": "image/png", "data": PNG, "displayName": "a.png"}},
        ImageContent(data=PNG, mime_type="image/png", extra=kept(inlineData={"displayName": "a.png"})),
    ),
    "a file": (
        {"inlineData": {"mimeType": "application/pdf", "data": "JVBERi0=", "displayName": "a.pdf"}},
        FileContent(data="JVBERi0=", mime_type="application/pdf", name="a.pdf"),
    ),
    "a picture on the web": (
        {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://example.org/i"}},
        ImageContent(url="https://example.org/i", mime_type="image/jpeg"),
    ),
    "a picture on the web whose name has the type": (
        {"fileData": {"fileUri": "https://example.org/i.webp?x=1"}},
        ImageContent(
            url="https://example.org/i.webp?x=1",
            extra=formatted(fileData={"in": {"mimeType": {"from": "image/webp"}}}),
        ),
    ),
    "a video on the web": (
        {"fileData": {"mimeType": "video/mp4", "fileUri": "https://youtu.be/x"}, "videoMetadata": {"fps": 2}},
        FileContent(url="https://youtu.be/x", mime_type="video/mp4", extra=kept(videoMetadata={"fps": 2})),
    ),
    "an uploaded file": (
        {"fileData": {"mimeType": "audio/wav", "fileUri": "https://generativelanguage.googleapis.com/v1beta/files/a"}},
        FileContent(file_id="https://generativelanguage.googleapis.com/v1beta/files/a", mime_type="audio/wav"),
    ),
    "a picture in a bucket": (
        {"fileData": {"mimeType": "image/png", "fileUri": "gs://bucket/i.png"}},
        FileContent(file_id="gs://bucket/i.png", mime_type="image/png"),
    ),
    "a signature on the user's text": (
        {"text": "hi", "thoughtSignature": "c2VhbA=="},
        TextContent(text="hi", extra=kept(thoughtSignature="c2VhbA==")),
    ),
    "a call in the user's turn": ({"functionCall": {"name": "f"}}, native({"functionCall": {"name": "f"}})),
    "a block of another API": (
        {"type": "text", "text": "hi"},
        native({"type": "text", "text": "hi"}, TextContent(text="hi")),
    ),
    "an unknown part": ({"hologram": {"a": 1}}, native({"hologram": {"a": 1}})),
    "two kinds of data": (
        {"text": "hi", "fileData": {"fileUri": "gs://a/b"}},
        native({"text": "hi", "fileData": {"fileUri": "gs://a/b"}}, FileContent(file_id="gs://a/b")),
    ),
}
MODEL = {
    "a text": ({"text": "hi"}, TextContent(text="hi")),
    "a signed text": (
        {"text": "hi", "thoughtSignature": "c2VhbA=="},
        TextContent(text="hi", text_signature="c2VhbA=="),
    ),
    "a signature on an empty text": (
        {"text": "", "thoughtSignature": "c2VhbA=="},
        TextContent(text="", text_signature="c2VhbA=="),
    ),
    "a signature alone": (
        {"thoughtSignature": "c2VhbA=="},
        TextContent(text="", text_signature="c2VhbA==", extra=formatted(text={"from": ""})),
    ),
    "an empty signature": (
        {"text": "hi", "thoughtSignature": ""},
        TextContent(text="hi", extra=formatted(thoughtSignature={"to": ""})),
    ),
    "no thought": (
        {"text": "hi", "thought": False},
        TextContent(text="hi", extra=formatted(thought={"to": False})),
    ),
    "a thought": ({"text": "hm", "thought": True}, ThinkingContent(thinking="hm")),
    "a signed thought": (
        {"text": "hm", "thought": True, "thoughtSignature": "c2VhbA=="},
        ThinkingContent(thinking="hm", thinking_signature="c2VhbA=="),
    ),
    "a call": (
        {"functionCall": {"id": "c", "name": "f", "args": {"a": 1}}},
        ToolCall(id="c", name="f", arguments={"a": 1}),
    ),
    "a signed call, its signature beside it": (
        {"functionCall": {"id": "c", "name": "f", "args": {}}, "thoughtSignature": "c2VhbA=="},
        ToolCall(id="c", name="f", thought_signature="c2VhbA=="),
    ),
    "a call in snake_case": (
        {"function_call": {"id": "c", "name": "f", "args": {}}, "thought_signature": "c2VhbA=="},
        ToolCall(
            id="c",
            name="f",
            thought_signature="c2VhbA==",
            extra=formatted(function_call={"as": "functionCall"}, thought_signature={"as": "thoughtSignature"}),
        ),
    ),
    "a call without an id": (
        {"functionCall": {"name": "f", "args": {}}},
        ToolCall(id="call_0_0", name="f", extra=formatted(functionCall={"in": {"id": {"from": "call_0_0"}}})),
    ),
    "a call without arguments": (
        {"functionCall": {"id": "c", "name": "f"}},
        ToolCall(id="c", name="f", extra=formatted(functionCall={"in": {"args": {"from": {}}}})),
    ),
    "a call with unknown keys": (
        {"functionCall": {"id": "c", "name": "f", "args": {}, "note": 1}, "partMetadata": {"a": 1}},
        ToolCall(id="c", name="f", extra=kept(partMetadata={"a": 1}, functionCall={"note": 1})),
    ),
    "a call with a null": (
        {"functionCall": {"id": "c", "name": "f", "args": {}, "note": None}},
        ToolCall(id="c", name="f", extra=formatted(functionCall={"add": {"note": None}})),
    ),
    "a program": ({"executableCode": {"code": "1"}}, native({"executableCode": {"code": "1"}})),
    "what it printed": (
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42\n"}},
        native(
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42\n"}},
            TextContent(text="[output of executed code]\n42"),
        ),
    ),
    "a drawn picture": (
        {"inlineData": {"mimeType": "image/png", "data": PNG}, "thoughtSignature": "c2VhbA=="},
        native(
            {"inlineData": {"mimeType": "image/png", "data": PNG}, "thoughtSignature": "c2VhbA=="},
            ImageContent(data=PNG, mime_type="image/png"),
        ),
    ),
    "a picture it thought of": (
        {"inlineData": {"mimeType": "image/png", "data": PNG}, "thought": True},
        native({"inlineData": {"mimeType": "image/png", "data": PNG}, "thought": True}),
    ),
    "a server's call": ({"toolCall": {"id": "t"}}, native({"toolCall": {"id": "t"}})),
}


def roundtrip(part, role):
    body = {"contents": [{"role": role, "parts": [part]}]}
    prompt = CODEC.decode_request(body, NEWER)
    return prompt.context.messages[0].content, body, CODEC.encode_request(prompt, NEWER)


@pytest.mark.parametrize(("part", "content"), USER.values(), ids=USER.keys())
def test_a_part_of_the_user_survives_both_directions(part, content):
    pieces, body, again = roundtrip(part, "user")
    assert pieces == (content,)
    assert again == body


@pytest.mark.parametrize(("part", "content"), MODEL.values(), ids=MODEL.keys())
def test_a_part_of_the_model_survives_both_directions(part, content):
    pieces, body, again = roundtrip(part, "model")
    assert pieces == (content,)
    assert again == body


def written(*messages, endpoint: Endpoint = NEWER) -> Any:
    return CODEC.encode_request(Prompt(context=Context(messages=messages)), endpoint)["contents"]


def turn(*content):
    return AssistantMessage(content=content, protocol="google-genai")


UNSUPPORTED = {
    "another protocol's block": (
        UserMessage.of(NativeContent(protocol="openai-chat", block={})),
        ("messages", 0, "content", 0),
    ),
    "a picture of nothing": (UserMessage.of("a", ImageContent()), ("messages", 0, "content", 1)),
    "a picture of no type": (UserMessage.of(ImageContent(data=PNG)), ("messages", 0, "content", 0)),
    "a file of nothing": (UserMessage.of(FileContent()), ("messages", 0, "content", 0)),
    "instructions in between": (SystemMessage.of("x"), ("messages", 0)),
    "a result without a tool name": (ToolResultMessage(tool_call_id="c", content=()), ("messages", 0)),
}


@pytest.mark.parametrize(("message", "path"), UNSUPPORTED.values(), ids=UNSUPPORTED.keys())
def test_what_is_not_supported_is_refused_with_its_path(message, path):
    with pytest.raises(EncodeError) as refused:
        written(message)
    assert refused.value.path == path


def test_ids_are_left_out_where_they_are_not_wanted():
    bare = Endpoint(NEWER.model, NEWER.rules, replace(NEWER.dialect, call_ids=False))
    contents = written(
        turn(ToolCall(id="c", name="f")),
        ToolResultMessage(tool_call_id="c", content=(TextContent(text="x"),)),
        endpoint=bare,
    )
    assert contents[0]["parts"] == [{"functionCall": {"name": "f", "args": {}}}]
    assert contents[1]["parts"] == [{"functionResponse": {"name": "f", "response": {"output": "x"}}}]


def test_a_call_of_another_model_gets_the_documented_placeholder_and_later_ones_none():
    history = Context(
        messages=(
            UserMessage.of("hi"),
            AssistantMessage(
                content=(ToolCall(id="a", name="f"), ToolCall(id="b", name="f")), protocol="openai-chat", model="gpt"
            ),
            ToolResultMessage(tool_call_id="b", tool_name="f", content=(TextContent(text="2"),)),
            ToolResultMessage(tool_call_id="a", tool_name="f", content=(TextContent(text="1"),)),
        )
    )
    body: Any = prepare(history, NEWER.model).body
    first, second = body["contents"][1]["parts"]
    assert first["thoughtSignature"] == "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
    assert "thoughtSignature" not in second
    results = [part["functionResponse"]["id"] for part in body["contents"][2]["parts"]]
    assert results == ["a", "b"]  # in the order of the calls
