"""Every kind of content, both ways: read into neutral content, and written as received."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from protocols.openai_chat.endpoints import GPT, PROTOCOL, body_of, endpoint, read, write
from segue.conversation.content import (
    CacheMark,
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from segue.conversation.messages import AssistantMessage, SystemMessage, ToolResultMessage, UserMessage
from segue.errors import DecodeError, EncodeError
from segue.protocols.kit.verbatim import choose
from segue.protocols.openai_chat.protocol import PROTOCOL as CODEC
from segue.requests.prepare import prepare

HI = {"role": "user", "content": "hi"}


def data(**extra: object) -> dict[str, dict[str, object]]:
    return {PROTOCOL: extra}


def formatted(**patch: object) -> dict[str, dict[str, object]]:
    return {PROTOCOL: {"verbatim": patch}}


def chose(name: str, default: object, received: object) -> dict[str, dict[str, object]]:
    return {PROTOCOL: {"verbatim": choose(name, default, received)}}


def function(**patch: object) -> dict[str, dict[str, object]]:
    return formatted(function={"in": patch})


PARTS = {
    "a text": ({"type": "text", "text": "x"}, TextContent(text="x")),
    "a text with a cache mark": (
        {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}},
        TextContent(text="x", cache_mark=CacheMark()),
    ),
    "a text with a long cache mark": (
        {"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
        TextContent(text="x", cache_mark=CacheMark(ttl="1h")),
    ),
    "a text with a cache mark of more keys": (
        {"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": None, "scope": "org"}},
        TextContent(
            text="x",
            cache_mark=CacheMark(extra={PROTOCOL: {"scope": "org", "verbatim": {"ttl": {"to": None}}}}),
        ),
    ),
    "a text with a cache mark of another type": (
        {"type": "text", "text": "x", "cache_control": {"type": "odd"}},
        TextContent(text="x", extra=data(cache_control={"type": "odd"})),
    ),
    "an image with a cache mark": (
        {"type": "image_url", "image_url": {"url": "https://x.org/a.png"}, "cache_control": {"type": "ephemeral"}},
        ImageContent(url="https://x.org/a.png", cache_mark=CacheMark()),
    ),
    "an unknown part with a cache mark": (
        {"type": "hologram", "depth": 3, "cache_control": {"type": "ephemeral"}},
        NativeContent(protocol=PROTOCOL, block={"type": "hologram", "depth": 3}, cache_mark=CacheMark()),
    ),
    "a text with a breakpoint": (
        {"type": "text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit"}},
        TextContent(text="x", cache_mark=CacheMark(extra=chose("key", "cache_control", "prompt_cache_breakpoint"))),
    ),
    "a text with a breakpoint of another mode": (
        {"type": "text", "text": "x", "prompt_cache_breakpoint": {"mode": "new"}},
        TextContent(text="x", extra=data(prompt_cache_breakpoint={"mode": "new"})),
    ),
    "a picture by its address": (
        {"type": "image_url", "image_url": {"url": "https://x.org/a.png"}},
        ImageContent(url="https://x.org/a.png"),
    ),
    "a picture with its data": (
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        ImageContent(data="AAAA", mime_type="image/png"),
    ),
    "a picture looked at closely": (
        {"type": "image_url", "image_url": {"url": "https://x.org/a.png", "detail": "high"}},
        ImageContent(url="https://x.org/a.png", extra=data(image_url={"detail": "high"})),
    ),
    "a picture whose address is a bare string": (
        {"type": "image_url", "image_url": "https://x.org/a.png"},
        ImageContent(url="https://x.org/a.png", extra=formatted(image_url={"unwrap": ["url"], "from": {"url": ""}})),
    ),
    "a picture that names no type": (
        {"type": "image_url", "image_url": {"url": "data:;base64,AAAA"}},
        ImageContent(data="AAAA", extra=chose("data_url", "typed", "untyped")),
    ),
    "a data URL that is no base64": (
        {"type": "image_url", "image_url": {"url": "data:text/plain,hello"}},
        ImageContent(url="data:text/plain,hello"),
    ),
    "a PDF with a name": (
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA", "filename": "a.pdf"}},
        FileContent(data="AAAA", mime_type="application/pdf", name="a.pdf"),
    ),
    "a PDF without a name": (
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA"}},
        FileContent(
            data="AAAA",
            mime_type="application/pdf",
            extra=formatted(file={"in": {"filename": {"from": "attachment.pdf"}}}),
        ),
    ),
    "a PDF that we named": (
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA", "filename": "attachment.pdf"}},
        FileContent(data="AAAA", mime_type="application/pdf"),
    ),
    "a file as bare base64": (
        {"type": "file", "file": {"file_data": "AAAA", "filename": "a"}},
        FileContent(data="AAAA", name="a", extra=chose("data_url", "typed", "bare")),
    ),
    "a file by its id": ({"type": "file", "file": {"file_id": "file-1"}}, FileContent(file_id="file-1")),
    "a file by its address": (
        {"type": "file", "file": {"file_data": "https://x.org/a.pdf", "filename": "a.pdf"}},
        FileContent(url="https://x.org/a.pdf", name="a.pdf"),
    ),
    "sound": (
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
        FileContent(data="AAAA", mime_type="audio/mpeg"),
    ),
    "sound in another format": (
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "opus"}},
        FileContent(data="AAAA", mime_type="audio/opus"),
    ),
    "sound by its address": (
        {"type": "input_audio", "input_audio": {"data": "https://x.org/a.wav", "format": "wav"}},
        FileContent(url="https://x.org/a.wav", mime_type="audio/wav"),
    ),
    "a film with its data": (
        {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AAAA"}},
        FileContent(data="AAAA", mime_type="video/mp4"),
    ),
    "a film by its address": (
        {"type": "video_url", "video_url": {"url": "https://x.org/a.mp4"}},
        FileContent(url="https://x.org/a.mp4", mime_type="video/mp4"),
    ),
    "sound sent as a file": (
        {"type": "file", "file": {"file_data": "data:audio/wav;base64,AAAA", "filename": "a.wav"}},
        FileContent(data="AAAA", mime_type="audio/wav", name="a.wav", extra=chose("field", "input_audio", "file")),
    ),
    "an unknown part": (
        {"type": "hologram", "depth": 3},
        NativeContent(protocol=PROTOCOL, block={"type": "hologram", "depth": 3}),
    ),
    "an unknown part with text": (
        {"type": "document", "text": "x"},
        NativeContent(protocol=PROTOCOL, block={"type": "document", "text": "x"}, fallback=(TextContent(text="x"),)),
    ),
    "a picture without an address": (
        {"type": "image_url", "image_url": {"detail": "low"}},
        NativeContent(protocol=PROTOCOL, block={"type": "image_url", "image_url": {"detail": "low"}}),
    ),
}


@pytest.mark.parametrize(("block", "content"), PARTS.values(), ids=PARTS.keys())
def test_a_part_means_the_same_in_both_directions(block, content):
    wire = {"role": "user", "content": [block, {"type": "text", "text": "and"}]}
    message = read(wire).context.messages[0]
    assert message == UserMessage(content=(content, TextContent(text="and")))
    assert write(message)["messages"] == [wire]


MESSAGES = {
    "a user's string": HI,
    "a user's single text in a list": {"role": "user", "content": [{"type": "text", "text": "x"}]},
    "a user's two texts": {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]},
    "a user's empty string": {"role": "user", "content": ""},
    "a user's empty list": {"role": "user", "content": []},
    "a user with a name": {"role": "user", "content": "x", "name": "ada"},
    "a user with null fields": {"role": "user", "content": "x", "name": None, "tool_calls": None},
    "an assistant's string": {"role": "assistant", "content": "x"},
    "an assistant's empty string": {"role": "assistant", "content": ""},
    "an assistant's list": {"role": "assistant", "content": [{"type": "text", "text": "x"}]},
    "an assistant's marked text": {
        "role": "assistant",
        "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}],
    },
    "an assistant's refusal": {"role": "assistant", "content": None, "refusal": "no"},
    "an assistant's refusal as a part": {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
    "an assistant who refused nothing": {"role": "assistant", "content": "x", "refusal": None},
    "an assistant's refusal behind text": {"role": "assistant", "content": "x", "refusal": "no"},
    "an assistant's refusal among parts": {
        "role": "assistant",
        "content": [{"type": "text", "text": "x"}, {"type": "refusal", "refusal": "no", "cache_control": {"a": 1}}],
    },
    "an assistant's sound": {"role": "assistant", "content": None, "audio": {"id": "audio_1"}},
    "an assistant's sound in full": {
        "role": "assistant",
        "content": None,
        "audio": {"id": "audio_1", "data": "AAAA", "transcript": "x", "expires_at": 9},
    },
    "an assistant with no calls, in a list": {"role": "assistant", "content": "x", "tool_calls": []},
    "an assistant's pictures": {
        "role": "assistant",
        "content": "x",
        "images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}],
    },
    "an assistant's picture as a part": {
        "role": "assistant",
        "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}}],
    },
    "an assistant with annotations": {"role": "assistant", "content": "x", "annotations": []},
    "an assistant message to be continued": {"role": "assistant", "content": "x", "prefix": True},
    "an assistant without calls": {"role": "assistant", "content": "x", "tool_calls": []},
    "an assistant with null for calls": {"role": "assistant", "content": "x", "tool_calls": None},
    "instructions of a developer": {"role": "developer", "content": "x"},
    "instructions in a list": {"role": "system", "content": [{"type": "text", "text": "x"}]},
    "instructions that bring tools": {"role": "system", "tools": [{"type": "function", "function": {"name": "f"}}]},
    "a result as a list": {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "x"}]},
    "a result in two texts": {
        "role": "tool",
        "tool_call_id": "c1",
        "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}],
    },
    "a result with its tool's name": {"role": "tool", "tool_call_id": "c1", "name": "f", "content": "x"},
    "a result with a mark": {
        "role": "tool",
        "tool_call_id": "c1",
        "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}],
    },
    "a result with a picture": {
        "role": "tool",
        "tool_call_id": "c1",
        "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}],
    },
    "a result of nothing": {"role": "tool", "tool_call_id": "c1", "content": ""},
    "a result of null": {"role": "tool", "tool_call_id": "c1", "content": None},
    "a result without an id": {"role": "tool", "content": "x"},
    "an old result": {"role": "function", "name": "f", "content": "x"},
    "an unknown role": {"role": "ipython", "content": "x", "cell": 3},
}


@pytest.mark.parametrize("wire", MESSAGES.values(), ids=MESSAGES.keys())
@pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
def test_a_message_comes_out_as_it_was(wire, first):
    messages = [wire, HI] if first else [HI, wire]
    body = body_of(*messages)
    assert CODEC.encode_request(CODEC.decode_request(body, GPT), GPT) == body


def call(**beside: object) -> dict[str, object]:
    return {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}, **beside}


CALLS = {
    "a call": (call(), ToolCall(id="c1", name="f", arguments={"a": 1})),
    "a call whose arguments have spaces": (
        call(function={"name": "f", "arguments": '{"a": 1}'}),
        ToolCall(id="c1", name="f", arguments={"a": 1}, arguments_text='{"a": 1}'),
    ),
    "a call that was cut off": (
        call(function={"name": "f", "arguments": '{"a": 1, "b": "x'}),
        ToolCall(id="c1", name="f", arguments={"a": 1, "b": "x"}, arguments_text='{"a": 1, "b": "x'),
    ),
    "a call without arguments": (
        call(function={"name": "f", "arguments": ""}),
        ToolCall(id="c1", name="f", extra=function(arguments={"from": "{}", "to": ""})),
    ),
    "a call with an object": (
        call(function={"name": "f", "arguments": {"a": 1}}),
        ToolCall(id="c1", name="f", arguments={"a": 1}, extra=function(arguments={"json": True})),
    ),
    "a call with null": (
        call(function={"name": "f", "arguments": None}),
        ToolCall(id="c1", name="f", extra=function(arguments={"from": "{}", "to": None})),
    ),
    "a call that leaves arguments out": (
        call(function={"name": "f"}),
        ToolCall(id="c1", name="f", extra=function(arguments={"from": "{}"})),
    ),
    "a call with an index": (call(index=0), ToolCall(id="c1", name="f", arguments={"a": 1}, extra=data(index=0))),
    "a call without a type": (
        {"id": "c1", "function": {"name": "f", "arguments": "{}"}},
        ToolCall(id="c1", name="f", extra=formatted(type={"from": "function"})),
    ),
    "a call without an id": (
        {"type": "function", "function": {"name": "f", "arguments": "{}"}},
        ToolCall(id="", name="f", extra=formatted(id={"from": ""})),
    ),
    "a call of a custom tool": (
        {"id": "c1", "type": "custom", "custom": {"name": "f", "input": "raw"}},
        ToolCall(id="c1", name="f", arguments={"input": "raw"}, extra=chose("field", "function", "custom")),
    ),
}


@pytest.mark.parametrize(("wire", "content"), CALLS.values(), ids=CALLS.keys())
def test_a_call_means_the_same_in_both_directions(wire, content):
    turn = {"role": "assistant", "content": None, "tool_calls": [wire]}
    message = read(HI, turn).context.messages[1]
    assert message.content == (content,)
    assert message.stop_reason == "toolUse"
    assert write(message)["messages"] == [turn]


UNKNOWN_CALLS = {
    "an unknown type": {"id": "c", "type": "mcp", "mcp": {"server": "s"}},
    "an unknown type, beside a custom tool": {"id": "c", "type": "mcp", "custom": {"name": "f", "input": "x"}},
    "a custom tool that is none": {"id": "c", "type": "custom", "function": {"name": "f", "arguments": "{}"}},
    "a custom tool without a name": {"id": "c", "type": "custom", "custom": {"input": "x"}},
}


@pytest.mark.parametrize("wire", UNKNOWN_CALLS.values(), ids=UNKNOWN_CALLS.keys())
def test_a_call_of_an_unknown_type_is_kept_between_the_others(wire):
    turn = {"role": "assistant", "content": None, "tool_calls": [call(), wire, call(id="c2")]}
    message = read(HI, turn).context.messages[1]
    assert message.content[1] == NativeContent(protocol="openai-chat", block={"tool_calls": [wire]})
    assert write(message)["messages"] == [turn]


ODD_CALLS = {
    "without a function": {"id": "c", "type": "function"},
    "with null for a function": {"id": "c", "type": "function", "function": None},
    "with a string for a function": {"id": "c", "function": "f"},
    "without a name": {"id": "c", "type": "function", "function": {"arguments": "{}"}},
    "with null for a name": {"id": "c", "type": "function", "function": {"name": None, "arguments": "{}"}},
    "with nothing in its function": {"id": "c", "type": "function", "function": {}},
    "with a list of arguments": {"id": "c", "type": "function", "function": {"name": "f", "arguments": [1]}},
    "with a number for an id": {"id": 7, "type": "function", "function": {"name": "f", "arguments": "{}"}},
    "with an input": {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}", "input": "x"}},
    "with a custom tool beside it": call(custom={"name": "f"}),
    "with a function beside its tool": {
        "id": "c",
        "type": "custom",
        "custom": {"name": "f", "input": "x", "arguments": "{}"},
        "function": {"name": "f"},
    },
    "with a number for its input": {"id": "c", "type": "custom", "custom": {"name": "f", "input": 7}},
    "of a kind that somebody knows": call(type="builtin_function"),
}


@pytest.mark.parametrize("wire", ODD_CALLS.values(), ids=ODD_CALLS.keys())
def test_a_call_with_missing_or_additional_keys_keeps_its_format(wire):
    turn = {"role": "assistant", "content": None, "tool_calls": [wire]}
    message = read(HI, turn).context.messages[1]
    assert message.content[0].kind == "toolCall"
    assert write(message)["messages"] == [turn]


def test_an_empty_list_of_functions_comes_out_as_it_was():
    body = body_of(HI, functions=[])
    assert CODEC.encode_request(CODEC.decode_request(body, GPT), GPT) == body


def test_an_old_call_and_its_result_find_each_other():
    turn = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    result = {"role": "function", "name": "f", "content": "x"}
    _, called, answered = read(HI, turn, result).context.messages
    assert called.tool_calls()[0].id == answered.tool_call_id
    assert answered.tool_name == "f"
    assert write(called, answered)["messages"] == [turn, result]


def test_an_old_call_of_a_reply_is_sent_back_as_a_call_that_its_result_can_answer():
    old = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    body = {"choices": [{"index": 0, "message": old, "finish_reason": "function_call"}]}
    answer = CODEC.decode_response(body, GPT, {})
    assert CODEC.encode_response(answer, GPT) == body
    made = answer.tool_calls()[0]
    result = ToolResultMessage(tool_call_id=made.id, tool_name="f", content=(TextContent(text="x"),))
    turn, answered = write(answer, result)["messages"]
    assert [sent["id"] for sent in turn["tool_calls"]] == [answered["tool_call_id"]]
    assert "function_call" not in turn


def test_a_transcript_without_reasoning_is_encoded_as_received_and_prepared_with_it():
    at = endpoint("deepseek", "deepseek-v4", reasoning=True)
    body = {"model": "deepseek-v4", "messages": [HI, {"role": "assistant", "content": "a"}, HI]}
    prompt = CODEC.decode_request(body, at)
    assert CODEC.encode_request(prompt, at) == body
    anew: Any = prepare(prompt.context, at.model, options=prompt.options).body["messages"]
    assert [sent.get("reasoning_content") for sent in anew] == [None, "", None]


def test_a_part_of_a_turn_without_a_type_stays_a_part():
    turn = {"role": "assistant", "content": [{"image_url": {"url": "AAAA"}}, {"type": "text", "text": "a"}, {}]}
    assert write(read(HI, turn).context.messages[1])["messages"] == [turn]


def test_a_prefix_is_a_field_of_the_message():
    turn = {"role": "assistant", "content": "x", "prefix": True}
    message = read(HI, turn).context.messages[1]
    assert (message.prefix, message.extra) == (True, None)
    assert write(message)["messages"] == [turn]
    assert write(replace(message, prefix=False))["messages"] == [{"role": "assistant", "content": "x"}]


def test_a_mark_of_a_call_is_a_cache_mark():
    turn = {"role": "assistant", "content": None, "tool_calls": [call(cache_control={"type": "ephemeral"})]}
    message = read(HI, turn).context.messages[1]
    assert message.content == (ToolCall(id="c1", name="f", arguments={"a": 1}, cache_mark=CacheMark()),)
    assert write(message)["messages"] == [turn]


def test_a_mark_of_a_result_stands_on_its_text():
    result = ToolResultMessage(tool_call_id="c", content=(TextContent(text="x"),), cache_mark=CacheMark(ttl="1h"))
    part = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    assert write(result)["messages"] == [{"role": "tool", "tool_call_id": "c", "content": [part]}]


def test_a_removed_thought_does_not_return_in_a_field_that_repeats_it():
    turn = {"role": "assistant", "content": "a", "reasoning": "t", "reasoning_content": "t"}
    message = read(HI, turn).context.messages[1]
    bare = replace(message, content=message.content[1:])
    assert write(bare)["messages"] == [{"role": "assistant", "content": "a"}]


def test_a_renamed_tool_is_named_in_its_result():
    wire = {"role": "tool", "tool_call_id": "c1", "name": "f", "content": "x"}
    result = replace(read(wire).context.messages[0], tool_name="g")
    assert write(result)["messages"] == [{**wire, "name": "g"}]


RETIRED = {"shape": {"content": "list", "refusal": "field", "role": "developer", "type": "custom", "old": True}}


def test_the_format_of_older_stored_files_is_ignored():
    old = {PROTOCOL: RETIRED, "reply": {PROTOCOL: {"missing": ["id"], "message": {"x": 1}, "shape": {"calls": {}}}}}
    user = UserMessage(content=(TextContent(text="x", extra=old), ImageContent(url="u", extra=old)), extra=old)
    turn = AssistantMessage(
        content=(TextContent(text="a", extra=old), ToolCall(id="c", name="f", extra=old)), extra=old
    )
    result = ToolResultMessage(tool_call_id="c", content=(FileContent(file_id="i", extra=old),), extra=old)
    bare = [strip(message) for message in (user, turn, result)]
    assert write(user, turn, result) == write(*bare)
    assert CODEC.encode_response(turn, GPT) == CODEC.encode_response(bare[1], GPT)


def strip(message: Any) -> Any:
    return replace(message, content=tuple(replace(piece, extra=None) for piece in message.content), extra=None)


def test_a_result_learns_the_name_of_its_tool_from_the_call():
    result = {"role": "tool", "tool_call_id": "c1", "content": "x"}
    messages = read(HI, {"role": "assistant", "content": None, "tool_calls": [call()]}, result).context.messages
    assert messages[2] == ToolResultMessage(tool_call_id="c1", tool_name="f", content=(TextContent(text="x"),))


def test_a_signature_of_gemini_stays_with_its_call_and_its_text():
    at = endpoint("openrouter", "google/gemini-3-pro")
    signature = {"google": {"thought_signature": "s1"}}
    turn = {
        "role": "assistant",
        "content": "x",
        "tool_calls": [call(extra_content=signature)],
        "extra_content": {"google": {"thought_signature": "other"}, "more": 1},
    }
    message = read(HI, turn, at=at).context.messages[1]
    assert message.content[0] == TextContent(text="x", text_signature="other")
    assert message.content[1].thought_signature == "s1"
    assert write(message, at=at)["messages"] == [turn]


def test_a_signature_of_gemini_beside_several_texts_is_of_none_of_them():
    at = endpoint("openrouter", "google/gemini-3-pro")
    turn = {
        "role": "assistant",
        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        "extra_content": {"google": {"thought_signature": "s"}},
    }
    message = read(HI, turn, at=at).context.messages[1]
    assert [piece.text_signature for piece in message.content] == [None, None]
    assert write(message, at=at)["messages"] == [turn]


ASSISTANT_TURNS = {
    "texts are one string": ((TextContent(text="a"), TextContent(text="b")), {"content": "ab"}),
    "calls alone have null beside them": (
        (ToolCall(id="c1", name="f", arguments={"a": 1}),),
        {"content": None, "tool_calls": [call()]},
    ),
    "text behind a call comes before it": (
        (ToolCall(id="c1", name="f", arguments={"a": 1}), TextContent(text="a")),
        {"content": "a", "tool_calls": [call()]},
    ),
    "thinking goes into the field it came in": (
        (ThinkingContent(thinking="t", thinking_signature="reasoning"), TextContent(text="a")),
        {"content": "a", "reasoning": "t"},
    ),
    "thinking without a signature goes into the provider's field": (
        (ThinkingContent(thinking="t"), TextContent(text="a")),
        {"content": "a", "reasoning_content": "t"},
    ),
    "several thoughts are one": (
        (ThinkingContent(thinking="t"), ThinkingContent(thinking="u"), TextContent(text="a")),
        {"content": "a", "reasoning_content": "t\nu"},
    ),
    "thinking in tags stays in the text": (
        (ThinkingContent(thinking="t", thinking_signature="<think>"), TextContent(text="a")),
        {"content": "<think>t</think>a"},
    ),
    "details are given back as they were": (
        (ThinkingContent(thinking="t", thinking_signature='[{"type":"reasoning.text","text":"t"}]'),),
        {"content": None, "reasoning_details": [{"type": "reasoning.text", "text": "t"}]},
    ),
}


@pytest.mark.parametrize(("content", "wire"), ASSISTANT_TURNS.values(), ids=ASSISTANT_TURNS.keys())
def test_an_assistant_turn_is_written(content, wire):
    assert write(AssistantMessage(content=content))["messages"] == [{"role": "assistant", **wire}]


def test_texts_of_a_result_are_one_string():
    result = ToolResultMessage(tool_call_id="c", content=(TextContent(text="a"), TextContent(text="b")))
    assert write(result)["messages"] == [{"role": "tool", "tool_call_id": "c", "content": "a\nb"}]


REASONING = {
    "reasoning_content": ({"reasoning_content": "t"}, "t", "reasoning_content"),
    "reasoning": ({"reasoning": "t"}, "t", "reasoning"),
    "reasoning_text": ({"reasoning_text": "t"}, "t", "reasoning_text"),
    "two equal fields": ({"reasoning": "t", "reasoning_content": "t"}, "t", "reasoning_content"),
    "two fields that differ": ({"reasoning": "u", "reasoning_content": "t"}, "t", "reasoning_content"),
    "an empty field before a full one": ({"reasoning": "t", "reasoning_content": ""}, "t", "reasoning"),
    "details with their text beside them": (
        {"reasoning": "t", "reasoning_details": [{"type": "reasoning.text", "text": "t", "signature": "s"}]},
        "t",
        '[{"type":"reasoning.text","text":"t","signature":"s"}]',
    ),
    "details alone": (
        {"reasoning_details": [{"summary": "t"}, {"data": "opaque"}, {"text": "u"}]},
        "t\n\nu",
        '[{"summary":"t"},{"data":"opaque"},{"text":"u"}]',
    ),
}


@pytest.mark.parametrize(("fields", "thinking", "signature"), REASONING.values(), ids=REASONING.keys())
def test_reasoning_is_read_from_every_field_and_put_back(fields, thinking, signature):
    turn = {"role": "assistant", "content": "a", **fields}
    message = read(HI, turn).context.messages[1]
    assert message.content == (ThinkingContent(thinking=thinking, thinking_signature=signature), TextContent(text="a"))
    assert write(message)["messages"] == [turn]


NOTHING_THERE = (
    {"reasoning": {"x": 1}, "reasoning_content": None},
    {"reasoning": None},
    {"reasoning_content": ""},
    {"reasoning_details": []},
    {"reasoning": {"x": 1}},
)


@pytest.mark.parametrize("fields", NOTHING_THERE, ids=str)
def test_empty_fields_are_kept_and_are_no_thinking(fields):
    turn = {"role": "assistant", "content": "a", **fields}
    for at in (GPT, endpoint("deepseek", "deepseek-v4", reasoning=True)):
        message = read(HI, turn, at=at).context.messages[1]
        assert message.content == (TextContent(text="a"),)
        assert write(message, at=at)["messages"] == [turn]


def test_the_origin_of_an_imported_turn_is_named_by_the_body():
    message = read(HI, {"role": "assistant", "content": "a"}, model="gpt-x").context.messages[1]
    assert (message.protocol, message.provider, message.model) == (PROTOCOL, "openai", "gpt-x")
    assert message.stop_reason == "stop"


PROMPTS = {
    "a string": ({"role": "system", "content": "s"}, "s"),
    "nothing": ({"role": "system", "content": ""}, ""),
    "a list": ({"role": "system", "content": [{"type": "text", "text": "s"}]}, (TextContent(text="s"),)),
    "an empty list": ({"role": "system", "content": []}, ()),
    "null": ({"role": "system", "content": None}, ()),
    "a developer's": ({"role": "developer", "content": "s"}, "s"),
    "one with a name": ({"role": "system", "content": "s", "name": "n"}, "s"),
}


@pytest.mark.parametrize(("wire", "prompt"), PROMPTS.values(), ids=PROMPTS.keys())
def test_the_first_instructions_are_the_system_prompt(wire, prompt):
    body = body_of(wire, HI)
    given = CODEC.decode_request(body, GPT)
    assert given.context.system_prompt == prompt
    assert len(given.context.messages) == 1
    assert CODEC.encode_request(given, GPT) == body


def test_later_instructions_stay_where_they_are():
    messages = read({"role": "system", "content": "a"}, {"role": "system", "content": "b"}, HI).context.messages
    assert messages[0] == SystemMessage.of("b")


def test_a_bare_list_of_messages_is_a_request():
    given = CODEC.decode_request([HI], GPT)
    assert given.context.messages == (UserMessage.of("hi"),)
    assert given.model is None


BROKEN = {
    "no messages": ({"model": "m"}, "messages"),
    "messages that are no list": ({"messages": "hi"}, "messages"),
    "a message that is no object": ({"messages": ["hi"]}, "messages[0]"),
    "content that is a number": ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content"),
    "a part that is no object": ({"messages": [{"role": "user", "content": [7]}]}, "messages[0].content[0]"),
    "a call that is no object": (
        {"messages": [{"role": "assistant", "tool_calls": [7]}]},
        "messages[0].tool_calls[0]",
    ),
    "tools that are no list": ({"messages": [HI], "tools": {"a": 1}}, "tools"),
}


@pytest.mark.parametrize(("body", "place"), BROKEN.values(), ids=BROKEN.keys())
def test_a_body_that_is_no_request_is_refused_with_the_place(body, place):
    with pytest.raises(DecodeError, match=f"^{place.replace('[', '.').replace(']', '.')}:"):
        CODEC.decode_request(body, GPT)


FOREIGN = {
    "a block of another protocol": UserMessage(content=(NativeContent(protocol="anthropic-messages", block={}),)),
    "a picture of nothing": UserMessage(content=(ImageContent(), TextContent(text="x"))),
    "a file of nothing": UserMessage(content=(FileContent(), TextContent(text="x"))),
    "arguments that are no JSON": AssistantMessage(
        content=(ToolCall(id="a", name="f", arguments={"x": float("nan")}),)
    ),
}


@pytest.mark.parametrize("message", FOREIGN.values(), ids=FOREIGN.keys())
def test_unsupported_content_is_an_error_with_its_path(message):
    with pytest.raises(EncodeError, match=r"^messages\[0\]"):
        write(message)
