"""Requests on Ollama's wire: each message both ways, and messages in another format than the default."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from protocols.ollama_chat.endpoints import QWEN
from segue.conversation.content import (
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from segue.conversation.context import Context, NativeTool, Options, Prompt, ToolDefinition
from segue.conversation.messages import AssistantMessage, StopReason, SystemMessage, ToolResultMessage, UserMessage
from segue.errors import DecodeError, EncodeError
from segue.models.model import Model
from segue.protocols.api import encode_request
from segue.protocols.ollama_chat.protocol import PROTOCOL as CODEC
from segue.requests.prepare import convert, prepare

P = "ollama-chat"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def text(value: str) -> TextContent:
    return TextContent(text=value)


def read(*messages, **body) -> Prompt:
    return CODEC.decode_request({"model": "qwen3", "messages": list(messages), **body}, QWEN)


def write(*messages, **fields) -> list:
    prompt = Prompt(context=Context(messages=messages, **fields))
    return CODEC.encode_request(prompt, QWEN)["messages"]  # pyright: ignore[reportReturnType]


def answer(*content) -> AssistantMessage:
    return AssistantMessage(content=content, protocol=P, provider="ollama", model="qwen3")


CALL = ToolCall(id="c1", name="f", arguments={"a": 1})
WIRE_CALL = {"id": "c1", "function": {"name": "f", "arguments": {"a": 1}}}


def test_a_native_block_adds_keys_and_replaces_none():
    block = NativeContent(protocol=P, block={"role": "user", "content": "other", "mood": "calm"})
    assert write(answer(text("yes"), block)) == [{"role": "assistant", "content": "yes", "mood": "calm"}]


BOTH_WAYS = {
    "text": ({"role": "user", "content": "hi"}, UserMessage.of("hi")),
    "an image, its type found from its bytes": (
        {"role": "user", "content": "see", "images": [PNG]},
        UserMessage.of("see", ImageContent(data=PNG, mime_type="image/png")),
    ),
    "an image alone": (
        {"role": "user", "content": "", "images": [PNG]},
        UserMessage.of(ImageContent(data=PNG, mime_type="image/png")),
    ),
    "an answer": ({"role": "assistant", "content": "yes"}, answer(text("yes"))),
    "thinking": (
        {"role": "assistant", "content": "yes", "thinking": "hm"},
        answer(ThinkingContent(thinking="hm"), text("yes")),
    ),
    "calls": (
        {"role": "assistant", "content": "", "tool_calls": [WIRE_CALL]},
        replace(answer(CALL), stop_reason=StopReason.TOOL_USE),
    ),
    "instructions in mid-conversation": (
        {"role": "system", "content": "louder"},
        SystemMessage.of("louder"),
    ),
    "an image that a model made": (
        {"role": "assistant", "content": "there", "images": [PNG]},
        answer(
            text("there"),
            NativeContent(
                protocol=P, block={"images": [PNG]}, fallback=(ImageContent(data=PNG, mime_type="image/png"),)
            ),
        ),
    ),
    "a call that names no tool": (
        {"role": "assistant", "content": "", "tool_calls": [{"custom": 1}]},
        answer(NativeContent(protocol=P, block={"tool_calls": [{"custom": 1}]})),
    ),
}


@pytest.mark.parametrize(("wire", "message"), BOTH_WAYS.values(), ids=BOTH_WAYS.keys())
def test_a_message_survives_both_directions(wire, message):
    opening = {"role": "user", "content": "x"}
    assert read(opening, wire).context.messages[1] == message
    assert write(message) == [wire]


TYPES = {
    "PNG": (PNG, "image/png"),
    "JPEG": ("/9j/4AAQSkZJRgABAQEASABI", "image/jpeg"),
    "GIF": ("R0lGODlhAQABAIAAAAAAAP///yH5", "image/gif"),
    "WebP": ("UklGRiQAAABXRUJQVlA4IBgA", "image/webp"),
    "WAV, which begins like WebP": ("UklGRiQAAABXQVZFZm10IBAA", None),
    "BMP": ("Qk06AAAAAAAAADYAAAAoAAAA", "image/bmp"),
    "TIFF": ("SUkqAAgAAAAAAAAAAAAAAAAA", "image/tiff"),
    "AVIF": ("AAAAHGZ0eXBhdmlmAAAAAGF2", "image/avif"),
    "HEIC": ("AAAAGGZ0eXBoZWljAAAAAG1p", "image/heic"),
    "nothing known": ("AAAA", None),
    "no base64": ("?", None),
}


@pytest.mark.parametrize(("data", "mime"), TYPES.values(), ids=TYPES.keys())
def test_the_type_of_an_image_is_found_from_its_first_bytes(data, mime):
    image = read({"role": "user", "content": "", "images": [data]}).context.messages[0].content[0]
    assert (image.kind, image.kind == "image" and image.mime_type) == ("image", mime)


OTHER_FORMATS = {
    "roles in capitals": [{"role": "User", "content": "a"}, {"role": "ASSISTANT", "content": "b"}],
    "a role that is missing": [{"content": "a"}],
    "an unknown role": [{"role": "control", "content": "a"}],
    "developer for system": [{"role": "developer", "content": "a"}, {"role": "developer", "content": "b"}],
    "null for nothing": [{"role": "user", "content": None, "images": None, "tool_calls": None, "thinking": None}],
    "empty lists": [{"role": "assistant", "content": "a", "images": [], "tool_calls": [], "thinking": ""}],
    "content that is missing": [{"role": "assistant", "tool_calls": [WIRE_CALL]}],
    "unknown keys": [{"role": "user", "content": "a", "name": "bob", "shape": 1}],
    "two system messages": [{"role": "system", "content": "a", "x": 1}, {"role": "system", "content": "b"}],
    "an empty system message": [{"role": "system", "content": ""}],
    "an image in a system message": [{"role": "system", "content": "a", "images": [PNG]}],
    "a call as the documentation shows it": [
        {"role": "assistant", "content": "", "tool_calls": [{"type": "function", **WIRE_CALL}]},
    ],
    "calls with an index and without arguments": [
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"index": 0, "name": "f"}}]},
    ],
    "calls without ids, and results in another order": [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": name, "arguments": {}}} for name in ("f", "g", "f")],
        },
        {"role": "tool", "tool_name": "g", "content": "1"},
        {"role": "tool", "tool_name": "f", "content": "2"},
        {"role": "tool", "content": "3"},
    ],
    "a result that answers nothing": [{"role": "tool", "content": "x"}, {"role": "tool", "tool_name": "f"}],
    "an image in a result": [{"role": "tool", "content": "x", "images": [PNG], "tool_name": "f"}],
    "an image as a data URL": [{"role": "user", "content": "", "images": [f"data:image/png;base64,{PNG}"]}],
    "the URL of an image": [{"role": "user", "content": "", "images": ["https://example.org/i.png"]}],
    "arguments as a string": [
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": given}}]}
        for given in ('{"a": 1}', "", '{"a', "[]")
    ],
}


@pytest.mark.parametrize("messages", OTHER_FORMATS.values(), ids=OTHER_FORMATS.keys())
def test_messages_in_another_format_are_written_as_received(messages):
    body = {"model": "qwen3", "messages": messages}
    assert CODEC.encode_request(CODEC.decode_request(body, QWEN), QWEN) == body


REFUSED = {
    "no messages": ({"model": "m"}, ("messages",)),
    "messages that are a string": ({"messages": "hi"}, ("messages",)),
    "a message that is a string": ({"messages": ["hi"]}, ("messages", 0)),
    "a list as content": ({"messages": [{"role": "user", "content": [{}]}]}, ("messages", 0, "content")),
    "a number as role": ({"messages": [{"role": 1}]}, ("messages", 0, "role")),
    "an image that is a number": ({"messages": [{"role": "user", "images": [1]}]}, ("messages", 0, "images", 0)),
    "an id that is a number": (
        {"messages": [{"role": "assistant", "tool_calls": [{"id": 1, "function": {"name": "f"}}]}]},
        ("messages", 0, "tool_calls", 0, "id"),
    ),
    "tools that are an object": ({"messages": [], "tools": {"a": 1}}, ("tools",)),
}


@pytest.mark.parametrize(("body", "path"), REFUSED.values(), ids=REFUSED.keys())
def test_what_the_server_cannot_decode_is_reported(body, path):
    with pytest.raises(DecodeError) as caught:
        CODEC.decode_request(body, QWEN)
    assert caught.value.path == path


def test_calls_without_ids_get_some_that_are_their_own_and_always_the_same():
    calls = [{"function": {"name": "f", "arguments": {}}}, {"function": {"name": "f", "arguments": {}}}]
    wire = {"role": "assistant", "content": "", "tool_calls": calls}
    once, again = (read(wire).context.messages[0].content for _ in range(2))
    assert once == again
    ids = [call.id for call in once if call.kind == "toolCall"]
    assert len(set(ids)) == 2
    assert all(call_id.startswith("call_") for call_id in ids)


def test_results_find_their_calls_by_id_by_name_and_by_order():
    calls = [{"function": {"name": name, "arguments": {}}} for name in ("f", "g", "f")]
    prompt = read(
        {"role": "assistant", "content": "", "tool_calls": [*calls, WIRE_CALL]},
        {"role": "tool", "tool_name": "g", "content": "1"},
        {"role": "tool", "tool_call_id": "c1", "content": "2"},
        {"role": "tool", "content": "3"},
        {"role": "tool", "tool_name": "f", "content": "4"},
    )
    turn, *results = prompt.context.messages
    ids = [call.id for call in turn.content if call.kind == "toolCall"]
    found = [(result.tool_call_id, result.tool_name) for result in results if result.role == "toolResult"]
    assert found == [(ids[1], "g"), ("c1", "f"), (ids[0], "f"), (ids[2], "f")]


def test_an_id_used_again_in_a_later_turn_pairs_with_its_own_turn():
    turns = []
    for name in ("f", "g"):
        call = {"id": "same", "function": {"name": name, "arguments": {}}}
        turns += [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "same", "content": name},
        ]
    results = [message for message in read(*turns).context.messages if message.role == "toolResult"]
    assert [result.tool_name for result in results] == ["f", "g"]


def test_a_result_names_its_tool_also_where_only_the_call_does():
    result = ToolResultMessage(tool_call_id="c1", content=(text("1"),))
    assert write(answer(CALL), result)[1] == {
        "role": "tool",
        "content": "1",
        "tool_name": "f",
        "tool_call_id": "c1",
    }


def test_texts_of_a_user_are_joined_by_newlines_and_those_of_an_assistant_are_not():
    assert write(UserMessage.of("a", "b"))[0]["content"] == "a\nb"
    assert write(answer(text("a"), CALL, text("b")))[0]["content"] == "ab"


def test_a_format_that_the_server_refuses_is_not_sent_in_a_new_request():
    call = {"id": "c", "function": {"name": "f", "arguments": '{"a": 1}'}}
    body = {
        "model": "qwen3",
        "messages": [
            {"role": "user", "content": "x", "images": [f"data:image/png;base64,{PNG}"]},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "1"},
        ],
    }
    assert len(CODEC.check(body, QWEN)) == 2
    request = convert(body, source=P, target=QWEN.model)
    assert CODEC.check(request.body, QWEN) == []
    messages: list = request.body["messages"]  # pyright: ignore[reportAssignmentType]
    assert messages[0]["images"] == [PNG]
    assert messages[1]["tool_calls"][0]["function"]["arguments"] == {"a": 1}


UNSUPPORTED = {
    "a file": (UserMessage.of(FileContent(data="AAAA", mime_type="application/pdf")), ("messages", 0, "content", 0)),
    "a URL": (UserMessage.of("x", ImageContent(url="https://x")), ("messages", 0, "content", 1)),
    "a block of another wire": (answer(NativeContent(protocol="x", block={})), ("messages", 0, "content", 0)),
}


@pytest.mark.parametrize(("message", "path"), UNSUPPORTED.values(), ids=UNSUPPORTED.keys())
def test_unsupported_content_is_reported(message, path):
    with pytest.raises(EncodeError) as caught:
        write(message)
    assert caught.value.path == path


TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
TOOLS = {
    "a tool": (TOOL, ToolDefinition(name="f", description="d", parameters={"type": "object"})),
    "one without a type": ({"function": TOOL["function"]}, None),
    "one with less and more": ({"type": "function", "x": 1, "function": {"name": "f", "strict": True}}, None),
    "one with nulls": ({"type": "function", "function": {"name": "f", "description": "", "parameters": None}}, None),
    "one of another kind": (
        {"type": "web_search"},
        NativeTool(protocol=P, definition={"type": "web_search"}),
    ),
    "one without a name": ({"type": "function", "function": {"parameters": {}}}, None),
}


@pytest.mark.parametrize(("wire", "tool"), TOOLS.values(), ids=TOOLS.keys())
def test_a_tool_survives_both_directions(wire, tool):
    prompt = read(tools=[wire])
    assert tool is None or prompt.context.tools == (tool,)
    assert CODEC.encode_request(prompt, QWEN)["tools"] == [wire]


@pytest.mark.parametrize("given", [None, []])
def test_an_empty_list_of_tools_is_written_as_received(given):
    assert CODEC.encode_request(read(tools=given), QWEN)["tools"] == given


def test_a_tool_of_another_wire_is_reported():
    with pytest.raises(EncodeError) as caught:
        write(tools=(NativeTool(protocol="x", definition={}),))
    assert caught.value.path == ("tools", 0)


def test_a_bare_list_of_messages_is_read():
    assert CODEC.decode_request([{"role": "user", "content": "hi"}], QWEN) == Prompt(
        context=Context(messages=(UserMessage.of("hi"),))
    )


def test_a_conversation_is_written_without_a_prompt_around_it():
    body = encode_request(Context(messages=(UserMessage.of("hi"),)), model=QWEN.model)
    assert body == {"model": "qwen3", "messages": [{"role": "user", "content": "hi"}], "stream": False}


FAILURES = {
    "P-18: arguments are an object, never a string": (
        Context(messages=(UserMessage.of("x"), replace(answer(replace(CALL, arguments_text='{"a": 1}')), model="o"))),
        lambda messages: messages[1]["tool_calls"][0]["function"]["arguments"] == {"a": 1},
    ),
    "V-05: images hold bare base64, the image of a tool moves to the user": (
        Context(
            messages=(
                UserMessage.of("x"),
                answer(CALL),
                ToolResultMessage(tool_call_id="c1", content=(ImageContent(data=PNG, mime_type="image/png"),)),
            )
        ),
        lambda messages: "images" not in messages[2] and messages[3]["images"] == [PNG],
    ),
    "V-05: a URL becomes a placeholder": (
        Context(messages=(UserMessage.of(ImageContent(url="https://example.org/i.png")),)),
        lambda messages: messages[0] == {"role": "user", "content": "(image omitted: not available to this model)"},
    ),
    "V-05: a tool message has the name of the tool": (
        Context(messages=(UserMessage.of("x"), answer(CALL), ToolResultMessage(tool_call_id="c1", content=()))),
        lambda messages: messages[2]["tool_name"] == "f",
    ),
    "T-19 and T-21: thinking of another model is sent without its signature": (
        Context(
            messages=(
                UserMessage.of("x"),
                AssistantMessage(
                    content=(ThinkingContent(thinking="hm", thinking_signature="s"), text("y")), protocol="z"
                ),
            )
        ),
        lambda messages: messages[1] == {"role": "assistant", "content": "y", "thinking": "hm"},
    ),
}


@pytest.mark.parametrize(("context", "holds"), FAILURES.values(), ids=FAILURES.keys())
def test_known_failures_of_other_clients_do_not_occur(context, holds):
    request = prepare(context, Model("qwen3", "ollama", P, reasoning=True))
    assert holds(request.body["messages"]), request.body["messages"]
    assert CODEC.check(request.body, QWEN) == []


UNSUPPORTED_OPTIONS = {
    "tool_choice": Options(tool_choice="auto"),
    "user_id": Options(user_id="u"),
    "session_id": Options(session_id="s"),
    "parallel_tool_calls": Options(parallel_tool_calls=True),
    "cache_retention": Options(cache_retention="short"),
}


@pytest.mark.parametrize("name", UNSUPPORTED_OPTIONS)
def test_an_unsupported_option_is_reported(name):
    with pytest.raises(EncodeError) as caught:
        CODEC.encode_request(Prompt(context=Context(), options=UNSUPPORTED_OPTIONS[name]), QWEN)
    assert caught.value.path == ("options", name)


def test_changed_content_is_written_in_the_default_format():
    call = {"type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    prompt = read(
        {"role": "user", "images": [f"data:image/png;base64,{PNG}"]}, {"role": "Assistant", "tool_calls": [call]}
    )
    user, turn = prompt.context.messages
    [image], [found] = user.content, turn.content
    assert image.kind == "image"
    assert found.kind == "toolCall"
    changed = (
        replace(user, content=(replace(image, data="AAAA"),)),
        replace(turn, content=(replace(found, id="c9", arguments={"a": 2}),)),
    )
    body = CODEC.encode_request(replace(prompt, context=Context(messages=changed)), QWEN)
    assert body["messages"] == [
        {"role": "user", "images": ["AAAA"]},
        {
            "role": "Assistant",
            "tool_calls": [{"id": "c9", "type": "function", "function": {"name": "f", "arguments": {"a": 2}}}],
        },
    ]


def test_an_image_that_is_no_base64_is_not_changed():
    prompt = read({"role": "user", "content": "", "images": ["?"]})
    assert prompt.context.messages == (UserMessage.of(ImageContent(data="?")),)
    assert write(*prompt.context.messages)[0]["images"] == ["?"]


def test_format_of_older_files_is_ignored_and_data_is_written():
    retired = {"spelt": {"role": {"usual": "user", "said": "User"}}}
    message = UserMessage(content=(text("x"),), extra={P: {"shape": retired, "name": "bob"}})
    assert write(message) == [{"role": "user", "content": "x", "name": "bob"}]
