"""Blocks and messages, both ways; a case is the neutral value and its wire."""

from __future__ import annotations

import pytest

from protocols.cohere_chat.endpoints import PLAIN
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
from segue.protocols.cohere_chat.protocol import PROTOCOL as CODEC


def read(*messages) -> Context:
    return CODEC.decode_request({"model": "m", "messages": list(messages)}, PLAIN).context


def written(*messages) -> list:
    body = CODEC.encode_request(Prompt(context=Context(messages=messages)), PLAIN)
    turns = body["messages"]
    assert isinstance(turns, list)
    return turns


def native(block, *fallback) -> NativeContent:
    return NativeContent(protocol="cohere-chat", block=block, fallback=fallback)


DOCUMENT = {"type": "document", "document": {"data": {"sky": "clear"}, "id": "d"}}
CALL = {"id": "f_1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
CALLED = ToolCall(id="f_1", name="f", arguments={"a": 1})

USER = {
    "one text is a string": ("hi", (TextContent(text="hi"),)),
    "nothing is an empty string": ("", ()),
    "several texts are blocks": (
        [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        (TextContent(text="a"), TextContent(text="b")),
    ),
    "an image by its URL": (
        [{"type": "image_url", "image_url": {"url": "https://e.org/i.png"}}],
        (ImageContent(url="https://e.org/i.png"),),
    ),
    "an image with its data": (
        [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}],
        (ImageContent(data="AAAA", mime_type="image/png"),),
    ),
    "an unknown type": (
        [{"type": "odd", "text": "x"}],
        (native({"type": "odd", "text": "x"}, TextContent(text="x")),),
    ),
}


@pytest.mark.parametrize(("content", "pieces"), USER.values(), ids=USER.keys())
def test_user_content_survives_both_directions(content, pieces):
    wire = {"role": "user", "content": content}
    assert read(wire).messages == (UserMessage(content=pieces),)
    assert written(UserMessage(content=pieces)) == [wire]


ASSISTANT = {
    "one text is a string": ({"content": "hi"}, (TextContent(text="hi"),)),
    "calls alone": ({"tool_calls": [CALL]}, (CALLED,)),
    "text before calls is the plan": (
        {"tool_plan": "I will look.", "tool_calls": [CALL]},
        (TextContent(text="I will look."), CALLED),
    ),
    "thinking before calls": (
        {"content": [{"type": "thinking", "thinking": "hm"}], "tool_calls": [CALL]},
        (ThinkingContent(thinking="hm"), CALLED),
    ),
    "thinking, a plan and calls": (
        {"content": [{"type": "thinking", "thinking": "hm"}], "tool_plan": "So.", "tool_calls": [CALL]},
        (ThinkingContent(thinking="hm"), TextContent(text="So."), CALLED),
    ),
    "thinking before text": (
        {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "hi"}]},
        (ThinkingContent(thinking="hm"), TextContent(text="hi")),
    ),
    "a call that names no function": (
        {"tool_calls": [{"id": "1", "type": "odd"}]},
        (native({"tool_calls": [{"id": "1", "type": "odd"}]}),),
    ),
    "an unknown block": ({"content": [{"type": "odd"}]}, (native({"type": "odd"}),)),
}


@pytest.mark.parametrize(("wire", "pieces"), ASSISTANT.values(), ids=ASSISTANT.keys())
def test_assistant_content_survives_both_directions(wire, pieces):
    turn = {"role": "assistant", **wire}
    message = read(turn).messages[0]
    assert message.content == pieces
    assert message.extra is None
    assert written(AssistantMessage(content=pieces)) == [turn]


def test_texts_among_calls_are_one_plan():
    # "text content is not allowed when tool_calls are provided" (vercel/ai #5794, 2025-04-15)
    turn = AssistantMessage(content=(TextContent(text="First."), CALLED, TextContent(text="Then.")))
    assert written(turn) == [{"role": "assistant", "tool_plan": "First.\nThen.", "tool_calls": [CALL]}]


RESULTS = {
    "a string": ("ok", (TextContent(text="ok"),)),
    "nothing": ("", ()),
    "a document": ([DOCUMENT], (native(DOCUMENT, TextContent(text='{"sky": "clear"}')),)),
    "a document of text": (
        [{"type": "document", "document": {"data": "clear"}}],
        (native({"type": "document", "document": {"data": "clear"}}, TextContent(text="clear")),),
    ),
    "a text and a document": (
        [{"type": "text", "text": "see"}, DOCUMENT],
        (TextContent(text="see"), native(DOCUMENT, TextContent(text='{"sky": "clear"}'))),
    ),
}


@pytest.mark.parametrize(("content", "pieces"), RESULTS.values(), ids=RESULTS.keys())
def test_a_result_survives_both_directions_and_finds_its_tool(content, pieces):
    calling, wire = (
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "f_1", "content": content},
    )
    result = ToolResultMessage(tool_call_id="f_1", tool_name="f", content=pieces)
    assert read(calling, wire).messages[1] == result
    assert written(result) == [wire]


FORMATS = {
    "a list of one text": {"role": "user", "content": [{"type": "text", "text": "hi"}]},
    "an empty list": {"role": "user", "content": []},
    "no content": {"role": "user"},
    "null content": {"role": "user", "content": None, "name": None, "x": 1},
    "an image as a bare URL": {"role": "user", "content": [{"type": "image_url", "image_url": "https://e.org"}]},
    "an image with a detail": {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": "data:;base64,AAAA", "detail": "low"}, "x": 1}],
    },
    "text beside calls": {"role": "assistant", "content": "a", "tool_calls": [CALL]},
    "blocks of text beside calls and a plan": {
        "role": "assistant",
        "content": [{"type": "text", "text": "a", "x": 1}],
        "tool_plan": "b",
        "tool_calls": [CALL],
    },
    "a plan without calls": {"role": "assistant", "content": "a", "tool_plan": "b", "tool_calls": []},
    "a plan and nothing else": {"role": "assistant", "tool_plan": "b"},
    "an empty plan, null calls, null content": {
        "role": "assistant",
        "content": None,
        "tool_plan": "",
        "tool_calls": None,
        "citations": None,
    },
    "an empty string beside calls": {"role": "assistant", "content": "", "tool_plan": None, "tool_calls": [CALL]},
    "a list of one text without calls": {"role": "assistant", "content": [{"type": "text", "text": "a"}]},
    "citations": {"role": "assistant", "content": "a", "citations": [{"start": 0, "end": 1, "text": "a"}]},
    "a call with unknown keys": {
        "role": "assistant",
        "tool_calls": [{"id": None, "x": 1, "function": {"name": "f", "arguments": None, "y": 1}}],
    },
    "a result without an id": {"role": "tool", "content": "x"},
    "a result with nulls": {"role": "tool", "content": None, "tool_call_id": None},
    "instructions later on": {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
    "an unknown role": {"role": "developer", "content": "x"},
}


@pytest.mark.parametrize("message", FORMATS.values(), ids=FORMATS.keys())
def test_a_format_is_written_back_unchanged(message):
    calling = {"role": "assistant", "tool_calls": [CALL]}
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}, calling, message, message]}
    assert CODEC.encode_request(CODEC.decode_request(body, PLAIN), PLAIN) == body


def test_results_without_ids_answer_the_batch_before_them_in_order():
    def batch(*ids):
        return {"role": "assistant", "tool_calls": [{**CALL, "id": name, "function": {"name": name}} for name in ids]}

    context = read(batch("a", "b"), {"role": "tool", "content": "1"}, {"role": "tool", "content": "2"})
    found = [(m.tool_call_id, m.tool_name) for m in context.messages if m.role == "toolResult"]
    assert found == [("a", "a"), ("b", "b")]


REFUSED = {
    "another protocol's block": UserMessage(content=(NativeContent(protocol="openai-chat", block={}),)),
    "an image without a source": UserMessage(content=(ImageContent(),)),
    "a file": UserMessage(content=(FileContent(data="AAAA", mime_type="application/pdf"),)),
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
    "a block that is a text": ({"messages": [{"role": "assistant", "content": ["x"]}]}, ("messages", 0, "content", 0)),
    "calls that are an object": (
        {"messages": [{"role": "assistant", "tool_calls": {}}]},
        ("messages", 0, "tool_calls"),
    ),
    "a tool that is a text": ({"messages": [], "tools": ["x"]}, ("tools", 0)),
}


@pytest.mark.parametrize(("body", "path"), NO_REQUEST.values(), ids=NO_REQUEST.keys())
def test_what_is_no_request_is_refused_with_its_path(body, path):
    with pytest.raises(DecodeError) as caught:
        CODEC.decode_request(body, PLAIN)
    assert caught.value.path == path
