"""Chunks and messages, both ways; a case is the neutral value and its wire."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from protocols.mistral_chat.endpoints import LARGE, MEDIUM
from segue.conversation.content import (
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from segue.conversation.context import Context, Prompt
from segue.conversation.messages import AssistantMessage, ToolResultMessage, UserMessage
from segue.errors import DecodeError, EncodeError
from segue.protocols.mistral_chat.protocol import PROTOCOL as CODEC

M = "mistral-chat"
UUID = "3fa85f64-5717-4562-b3fc-2c963f66afa6"


def read(messages, endpoint=LARGE) -> Context:
    return CODEC.decode_request({"model": "m", "messages": messages}, endpoint).context


def written(*messages, endpoint=LARGE) -> list:
    body = CODEC.encode_request(Prompt(context=Context(messages=messages)), endpoint)
    turns = body["messages"]
    assert isinstance(turns, list)
    return turns


def native(block, *fallback) -> NativeContent:
    return NativeContent(protocol=M, block=block, fallback=fallback)


RESOURCE = {"type": "resource", "uri": "mem://1", "content": {"type": "image_url", "image_url": "https://e.org/i.png"}}
LINK = {"type": "resource_link", "uri": "https://e.org/x"}
REFERENCE = {"type": "reference", "reference_ids": [1]}

USER = {
    "one text is a string": ("hi", (TextContent(text="hi"),)),
    "nothing is an empty string": ("", ()),
    "several texts are chunks": (
        [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        (TextContent(text="a"), TextContent(text="b")),
    ),
    "an image by its URL": (
        [{"type": "image_url", "image_url": "https://e.org/i.png"}],
        (ImageContent(url="https://e.org/i.png"),),
    ),
    "an image with its data": (
        [{"type": "image_url", "image_url": "data:image/png;base64,AAAA"}],
        (ImageContent(data="AAAA", mime_type="image/png"),),
    ),
    "a document by its URL": (
        [{"type": "document_url", "document_url": "https://e.org/f.pdf", "document_name": "f.pdf"}],
        (FileContent(url="https://e.org/f.pdf", mime_type="application/pdf", name="f.pdf"),),
    ),
    "a document with its data": (
        [{"type": "document_url", "document_url": "data:application/pdf;base64,JVBE"}],
        (FileContent(data="JVBE", mime_type="application/pdf"),),
    ),
    "a file by its id": (
        [{"type": "file", "file_id": UUID}],
        (FileContent(file_id=UUID, mime_type="application/pdf"),),
    ),
    "audio with a type in its first bytes": (
        [{"type": "input_audio", "input_audio": "SUQzBAAA"}],
        (FileContent(data="SUQzBAAA", mime_type="audio/mpeg"),),
    ),
    "audio of an unknown type": (
        [{"type": "input_audio", "input_audio": "AAAA"}],
        (FileContent(data="AAAA", mime_type="audio/*"),),
    ),
    "audio by its URL": (
        [{"type": "input_audio", "input_audio": "https://e.org/a.mp3"}],
        (FileContent(url="https://e.org/a.mp3", mime_type="audio/*"),),
    ),
    "a resource with an image in it": ([RESOURCE], (native(RESOURCE, ImageContent(url="https://e.org/i.png")),)),
    "a link to a resource": ([LINK], (native(LINK, TextContent(text="https://e.org/x")),)),
    "a reference": ([REFERENCE], (native(REFERENCE),)),
    "an unknown type": (
        [{"type": "odd", "text": "x"}],
        (native({"type": "odd", "text": "x"}, TextContent(text="x")),),
    ),
}


@pytest.mark.parametrize(("content", "pieces"), USER.values(), ids=USER.keys())
def test_user_content_survives_both_directions(content, pieces):
    wire = [{"role": "user", "content": content}]
    assert read(wire).messages == (UserMessage(content=pieces),)
    assert written(UserMessage(content=pieces)) == wire


CALL = {"id": "abcdef123", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
ASSISTANT = {
    "one text is a string": ({"content": "hi"}, (TextContent(text="hi"),)),
    "calls stand beside an empty string": (
        {"content": "", "tool_calls": [CALL]},
        (ToolCall(id="abcdef123", name="f", arguments={"a": 1}),),
    ),
    "text before calls": (
        {"content": "Let me see.", "tool_calls": [CALL]},
        (TextContent(text="Let me see."), ToolCall(id="abcdef123", name="f", arguments={"a": 1})),
    ),
    "the provider's own format of arguments": (
        {"content": "", "tool_calls": [{**CALL, "function": {"name": "f", "arguments": '{ "a": 1 }'}}]},
        (ToolCall(id="abcdef123", name="f", arguments={"a": 1}, arguments_text='{ "a": 1 }'),),
    ),
    "thinking before text": (
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                {"type": "text", "text": "hi"},
            ]
        },
        (ThinkingContent(thinking="hm"), TextContent(text="hi")),
    ),
    "thinking with a signature": (
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "signature": "s"}]},
        (ThinkingContent(thinking="hm", thinking_signature="s"),),
    ),
    "a signature alone": (
        {"content": [{"type": "thinking", "thinking": [], "signature": "s"}]},
        (ThinkingContent(thinking="", thinking_signature="s"),),
    ),
    "a reference between texts": (
        {"content": [{"type": "text", "text": "a"}, REFERENCE]},
        (TextContent(text="a"), native(REFERENCE)),
    ),
    "a call that names no function": (
        {"content": "x", "tool_calls": [{"id": "1", "type": "odd"}]},
        (TextContent(text="x"), native({"tool_calls": [{"id": "1", "type": "odd"}]})),
    ),
}


@pytest.mark.parametrize(("wire", "pieces"), ASSISTANT.values(), ids=ASSISTANT.keys())
def test_assistant_content_survives_both_directions(wire, pieces):
    turn, after = {"role": "assistant", **wire}, {"role": "user", "content": "go on"}
    message = read([turn, after]).messages[0]
    assert message.content == pieces
    assert message.extra is None
    assert written(AssistantMessage(content=pieces), UserMessage.of("go on")) == [turn, after]


FORMATS = {
    "a list of one text": {"role": "user", "content": [{"type": "text", "text": "hi"}]},
    "an empty list": {"role": "user", "content": []},
    "no content": {"role": "user"},
    "null content": {"role": "user", "content": None},
    "a name": {"role": "user", "content": "hi", "name": "bob"},
    "a key that is null": {"role": "user", "content": "hi", "name": None},
    "an image in an object": {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": "https://e.org"}}],
    },
    "an image with a detail": {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": "data:;base64,AAAA", "detail": "low"}, "x": 1}],
    },
    "audio in an object": {
        "role": "user",
        "content": [{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav", "x": 1}}],
    },
    "audio as a data URL": {
        "role": "user",
        "content": [{"type": "input_audio", "input_audio": "data:audio/wav;base64,AAAA"}],
    },
    "audio that may be the name of a file": {
        "role": "user",
        "content": [{"type": "input_audio", "input_audio": "talk-1"}],
    },
    "an image that came as a document": {
        "role": "user",
        "content": [{"type": "document_url", "document_url": "data:image/png;base64,AAAA", "document_name": None}],
    },
    "an empty list of calls": {"role": "assistant", "content": "a", "tool_calls": []},
    "null calls and null content": {"role": "assistant", "content": None, "tool_calls": None, "prefix": False},
    "a call in the format of replies": {
        "role": "assistant",
        "content": [],
        "tool_calls": [{"id": "abcdef123", "function": {"name": "f", "arguments": {"a": 1}}, "index": 0}],
    },
    "a call without arguments or id": {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f"}}]},
    "a call with unknown keys": {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": None, "type": "x", "y": 1, "function": {"name": "f", "arguments": 3, "z": 2}}],
    },
    "thinking that is a string": {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]},
    "thinking in two texts, closed": {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"type": "thinking", "thinking": [], "closed": False, "signature": None, "x": 1},
        ],
    },
    "thinking of another type": {"role": "assistant", "content": [{"type": "thinking", "thinking": [1]}]},
    "instructions later on": {"role": "system", "content": "Be brief."},
    "an unknown role": {"role": "developer", "content": "x"},
    "a result without id and name": {"role": "tool", "content": "x"},
    "a result with nulls": {"role": "tool", "content": None, "tool_call_id": None, "name": None},
    "a result with an empty name": {"role": "tool", "content": [], "tool_call_id": "a", "name": ""},
    "a result without a call": {"role": "tool", "content": "x", "tool_call_id": "nobody"},
}


@pytest.mark.parametrize("message", FORMATS.values(), ids=FORMATS.keys())
def test_a_format_is_written_back_unchanged(message):
    calling = {"role": "assistant", "content": "", "tool_calls": [CALL]}
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}, calling, message, message]}
    assert CODEC.encode_request(CODEC.decode_request(body, MEDIUM), MEDIUM) == body


def test_results_find_id_and_name_in_the_batch_before_them_and_nowhere_else():
    def batch(*names):
        calls = [
            {**CALL, "id": f"same{at}", "function": {"name": name, "arguments": "{}"}} for at, name in enumerate(names)
        ]
        return {"role": "assistant", "content": "", "tool_calls": calls}

    results = [{"role": "tool", "content": "1"}, {"role": "tool", "content": "2"}]
    context = read([batch("a", "b"), *results, batch("c", "d"), results[0], {**results[1], "tool_call_id": "same1"}])
    found = [(m.tool_call_id, m.tool_name) for m in context.messages if m.role == "toolResult"]
    assert found == [("same0", "a"), ("same1", "b"), ("same0", "c"), ("same1", "d")]


def test_a_result_has_the_name_of_its_tool_also_where_the_message_has_none():
    call = ToolCall(id="abcdef123", name="read")
    messages = (
        AssistantMessage(content=(call,)),
        ToolResultMessage(tool_call_id="abcdef123", content=(TextContent(text="ok"),)),
    )
    assert written(*messages)[1] == {"role": "tool", "tool_call_id": "abcdef123", "name": "read", "content": "ok"}


def test_tools_that_the_provider_ran_are_messages_of_their_own_again():
    ran = native({"role": "tool", "tool_call_id": "a", "content": "found"})
    turn = AssistantMessage(content=(TextContent(text="Let me look."), ran, TextContent(text="There.")))
    assert written(turn, UserMessage.of("ok"))[:3] == [
        {"role": "assistant", "content": "Let me look."},
        {"role": "tool", "tool_call_id": "a", "content": "found"},
        {"role": "assistant", "content": "There."},
    ]


def test_references_in_thinking_are_sent_as_long_as_the_text_is_theirs():
    inner = [{"type": "text", "text": "hm"}, REFERENCE]
    chunk = {"type": "thinking", "thinking": inner}
    [turn] = read([{"role": "assistant", "content": [chunk]}]).messages
    [thought] = turn.content
    assert written(turn)[0]["content"] == [chunk]
    edited = replace(turn, content=(replace(thought, thinking="so"),))
    assert written(edited)[0]["content"] == [{"type": "thinking", "thinking": [{"type": "text", "text": "so"}]}]


def test_a_call_before_a_tool_that_the_provider_ran_is_written_once():
    ran = native({"role": "tool", "tool_call_id": "a", "content": "found"})
    call = ToolCall(id="abcdef123", name="f", arguments={"a": 1})
    turn = AssistantMessage(content=(call, ran, TextContent(text="There.")))
    assert written(turn, UserMessage.of("ok"))[:3] == [
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "a", "content": "found"},
        {"role": "assistant", "content": "There."},
    ]


REFUSED = {
    "another protocol's block": UserMessage(content=(NativeContent(protocol="openai-chat", block={}),)),
    "an image without a source": UserMessage(content=(ImageContent(),)),
    "a file without a source": UserMessage(content=(FileContent(),)),
    "another protocol's block in an assistant message": AssistantMessage(
        content=(NativeContent(protocol="openai-chat", block={}),)
    ),
}


@pytest.mark.parametrize("message", REFUSED.values(), ids=REFUSED.keys())
def test_unsupported_content_is_refused_with_its_path(message):
    with pytest.raises(EncodeError) as caught:
        written(UserMessage.of("x"), message)
    assert caught.value.path == ("messages", 1, "content", 0)


NO_REQUEST = {
    "no messages": ({"model": "m"}, ("messages",)),
    "a message that is a text": ({"messages": ["hi"]}, ("messages", 0)),
    "content that is a number": ({"messages": [{"role": "user", "content": 1}]}, ("messages", 0, "content")),
    "a chunk that is a text": ({"messages": [{"role": "user", "content": ["x"]}]}, ("messages", 0, "content", 0)),
    "calls that are an object": (
        {"messages": [{"role": "assistant", "tool_calls": {}}]},
        ("messages", 0, "tool_calls"),
    ),
    "a tool that is a text": ({"messages": [], "tools": ["x"]}, ("tools", 0)),
}


@pytest.mark.parametrize(("body", "path"), NO_REQUEST.values(), ids=NO_REQUEST.keys())
def test_what_is_no_request_is_refused_with_its_path(body, path):
    with pytest.raises(DecodeError) as caught:
        CODEC.decode_request(body, LARGE)
    assert caught.value.path == path


KEPT = {M: {"vendor": 1}}
WITH_KEYS = {
    "a text": (TextContent(text="a", extra=KEPT), {"content": [{"type": "text", "text": "a", "vendor": 1}]}),
    "thinking": (
        ThinkingContent(thinking="hm", extra=KEPT),
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "vendor": 1}]},
    ),
    "a call": (
        ToolCall(id="abcdef123", name="f", arguments={"a": 1}, extra=KEPT),
        {"content": "", "tool_calls": [{**CALL, "vendor": 1}]},
    ),
    "a text of another protocol": (TextContent(text="a", extra={"openai-chat": {"vendor": 1}}), {"content": "a"}),
}


@pytest.mark.parametrize(("piece", "wire"), WITH_KEYS.values(), ids=WITH_KEYS.keys())
def test_content_of_an_assistant_is_written_with_its_own_keys(piece, wire):
    assert written(AssistantMessage(content=(piece,))) == [{"role": "assistant", **wire}]
