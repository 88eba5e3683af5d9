"""The JSON of the VS Code language model API: parts, messages, options, replies, streams."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import segue
from projection.histories import TARGETS, make_options, ugly_contexts
from property_testing import scaled_examples
from protocols.every_protocol import vouched_for
from protocols.vscode_lm.endpoints import EDITOR
from protocols.vscode_lm.referee import complaints
from segue.conversation.content import (
    AnyContent,
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from segue.conversation.context import Context, NativeTool, Options, Prompt, ToolDefinition
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from segue.errors import DecodeError, EmptyConversation, EncodeError
from segue.projection.report import ChangeCode
from segue.protocols.detection import detect_protocol
from segue.protocols.kit.codec import WireError
from segue.protocols.vscode_lm.protocol import PROTOCOL as CODEC
from segue.requests.prepare import prepare

P = "vscode-lm"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE = ImageContent(data=PNG, mime_type="image/png")
DATA = {"$": "data", "data": PNG, "mimeType": "image/png"}
CALL = ToolCall(id="c1", name="f", arguments={"a": 1})
WIRE_CALL = {"$": "toolCall", "callId": "c1", "name": "f", "input": {"a": 1}}


def part_of(value: str) -> dict[str, object]:
    return {"$": "text", "value": value}


def text(value: str) -> TextContent:
    return TextContent(text=value)


def result(call_id: str, *parts: object) -> dict[str, object]:
    return {"$": "toolResult", "callId": call_id, "content": list(parts)}


def turn(role: str, *parts: object, **beside: object) -> dict[str, object]:
    return {"role": role, "content": list(parts), **beside}


def answer(*content) -> AssistantMessage:
    calls = any(piece.kind == "toolCall" for piece in content)
    stop = StopReason.TOOL_USE if calls else StopReason.STOP
    return AssistantMessage(content=content, protocol=P, provider="vscode", model="copilot-gpt", stop_reason=stop)


def answered(call_id: str, *content, name: str = "f") -> ToolResultMessage:
    return ToolResultMessage(tool_call_id=call_id, tool_name=name, content=content)


def read(*messages: object, **body: object) -> Prompt:
    return CODEC.decode_request({"messages": list(messages), **body}, EDITOR)


def write(*messages: Message, **fields) -> dict[str, object]:
    return CODEC.encode_request(Prompt(context=Context(messages=messages, **fields)), EDITOR)


USER_PARTS: dict[str, tuple[Mapping[str, object], AnyContent]] = {
    "text": (part_of("hi"), text("hi")),
    "an image": (DATA, IMAGE),
    "a file": (
        {"$": "data", "data": "e30=", "mimeType": "application/json"},
        FileContent(data="e30=", mime_type="application/json"),
    ),
    "data without padding": (
        {"$": "data", "data": "AAA", "mimeType": "image/png"},
        ImageContent(
            data="AAA=", mime_type="image/png", extra={P: {"verbatim": {"data": {"from": "AAA=", "to": "AAA"}}}}
        ),
    ),
    "data in the URL alphabet": (
        {"$": "data", "data": "A-_A", "mimeType": "application/pdf"},
        FileContent(
            data="A+/A", mime_type="application/pdf", extra={P: {"verbatim": {"data": {"from": "A+/A", "to": "A-_A"}}}}
        ),
    ),
    "data that cannot be base64": (
        {"$": "data", "data": "x", "mimeType": "image/png"},
        ImageContent(data="x", mime_type="image/png"),
    ),
    "an unknown part": (
        {"$": "promptTsx", "value": {"node": 1}},
        NativeContent(protocol=P, block={"$": "promptTsx", "value": {"node": 1}}),
    ),
    "a part with an unknown key": ({**part_of("hi"), "tag": 1}, replace(text("hi"), extra={P: {"tag": 1}})),
}
ASSISTANT_PARTS: dict[str, tuple[Mapping[str, object], AnyContent]] = {
    "text": (part_of("hi"), text("hi")),
    "a call": (WIRE_CALL, CALL),
    "an image that a model made": (DATA, NativeContent(protocol=P, block=DATA, fallback=(IMAGE,))),
    "thinking, a proposal": (
        {"$": "thinking", "value": "hm"},
        NativeContent(protocol=P, block={"$": "thinking", "value": "hm"}),
    ),
    "a call whose input is JSON text": (
        {**WIRE_CALL, "input": '{"a":1}'},
        ToolCall(
            id="c1",
            name="f",
            arguments={"a": 1},
            extra={P: {"verbatim": {"input": {"fromDigest": "1f8c00645b7df6ce", "to": '{"a":1}'}}}},
        ),
    ),
    "a call whose input is null": (
        {**WIRE_CALL, "input": None},
        ToolCall(id="c1", name="f", arguments={}, extra={P: {"verbatim": {"input": {"from": {}, "to": None}}}}),
    ),
}


@pytest.mark.parametrize(("wire", "piece"), USER_PARTS.values(), ids=USER_PARTS.keys())
def test_a_users_part_survives_both_directions(wire, piece):
    assert read(turn("user", wire)).context.messages == (UserMessage(content=(piece,)),)
    assert write(UserMessage(content=(piece,))) == {"messages": [turn("user", wire)]}


@pytest.mark.parametrize(("wire", "piece"), USER_PARTS.values(), ids=USER_PARTS.keys())
def test_a_part_of_a_result_survives_both_directions(wire, piece):
    turns = [turn("assistant", WIRE_CALL), turn("user", result("c1", wire))]
    messages = (answer(CALL), answered("c1", piece))
    assert read(*turns).context.messages == messages
    assert write(*messages) == {"messages": turns}


@pytest.mark.parametrize(("wire", "piece"), ASSISTANT_PARTS.values(), ids=ASSISTANT_PARTS.keys())
def test_an_assistants_part_survives_both_directions(wire, piece):
    assert read(turn("assistant", wire)).context.messages == (answer(piece),)
    assert write(answer(piece)) == {"messages": [turn("assistant", wire)]}


BASE64 = {
    "without padding": ("YQ", "YQ=="),
    "the alphabet of URLs": ("YWI-_w", "YWI+/w=="),
    "long and without padding": ("YWJj" * 40 + "YQ", "YWJj" * 40 + "YQ=="),
    "no base64, one character": ("x", "x"),
    "no base64, other characters": ("a b?", "a b?"),
    "empty": ("", ""),
}


@pytest.mark.parametrize(("received", "data"), BASE64.values(), ids=BASE64.keys())
@pytest.mark.parametrize("mime_type", ["image/png", "text/plain"])
def test_base64_is_read_in_the_standard_form_and_written_as_received(received, data, mime_type):
    part = {"$": "data", "data": received, "mimeType": mime_type}
    body = {"messages": [turn("user", part), turn("assistant", WIRE_CALL), turn("user", result("c1", part))]}
    prompt = CODEC.decode_request(body, EDITOR)
    media = [message.content[0] for message in (prompt.context.messages[0], prompt.context.messages[2])]
    assert [piece.data for piece in media if isinstance(piece, ImageContent | FileContent)] == [data, data]
    assert CODEC.encode_request(prompt, EDITOR) == body
    reply = turn("assistant", part)
    message = CODEC.decode_response(reply, EDITOR, {})
    assert [piece.data for piece in message.content[0].fallback] == [data]  # pyright: ignore[reportAttributeAccessIssue]
    assert CODEC.encode_response(message, EDITOR) == reply


def test_a_data_part_without_a_type_is_written_as_received():
    body = {"messages": [turn("user", {"$": "data", "data": "x"})]}
    assert CODEC.encode_request(CODEC.decode_request(body, EDITOR), EDITOR) == body


def test_changed_data_is_written_in_the_standard_form():
    [message] = read(turn("user", {"$": "data", "data": "YQ", "mimeType": "image/png"})).context.messages
    [image] = message.content
    assert image.kind == "image"
    changed = UserMessage(content=(replace(image, data="Yg=="),))
    assert write(changed) == {"messages": [turn("user", {"$": "data", "data": "Yg==", "mimeType": "image/png"})]}


BATCH = turn("assistant", WIRE_CALL, {**WIRE_CALL, "callId": "c2"})
ONE, TWO = result("c1", part_of("1")), result("c2", part_of("2"))
TURNS = {
    "results in one message, text in the next": [BATCH, turn("user", ONE, TWO), turn("user", part_of("x"))],
    "results apart": [BATCH, turn("user", ONE), turn("user", TWO)],
    "results on both sides of the text": [BATCH, turn("user", ONE), turn("user", part_of("x")), turn("user", TWO)],
    "text behind results": [BATCH, turn("user", ONE, TWO, part_of("x"))],
    "text before results": [BATCH, turn("user", part_of("x"), ONE, TWO)],
    "text between results": [BATCH, turn("user", ONE, part_of("x"), TWO, part_of("y"), name="bob")],
    "names and other keys": [
        turn("user", part_of("x"), name="bob", tag=1),
        turn("assistant", part_of("y"), name="ann"),
    ],
    "strings": [{"role": "user", "content": "x"}, {"role": "assistant", "content": ""}],
    "nothing in it": [turn("user"), turn("assistant")],
    "a malformed result": [turn("user", {"$": "toolResult", "callId": 1}, {"$": "toolResult", "content": "x"})],
    "a result with an unknown key": [BATCH, turn("user", {**ONE, "isError": True}, TWO, name="bob")],
}


@pytest.mark.parametrize("turns", TURNS.values(), ids=TURNS.keys())
def test_messages_grouped_in_another_way_are_written_as_received(turns):
    body = {"messages": turns}
    assert CODEC.encode_request(CODEC.decode_request(body, EDITOR), EDITOR) == body


def test_results_of_a_batch_share_a_message_and_the_text_of_the_user_does_not():
    second = replace(CALL, id="c2")
    messages = (answer(CALL, second), answered("c1", text("1")), answered("c2", text("2")), UserMessage.of("x"))
    assert write(*messages)["messages"] == TURNS["results in one message, text in the next"]


OPTIONS = {
    "tools and a mode": {"tools": [{"name": "f", "description": "d", "inputSchema": {"a": 1}}], "toolMode": 2},
    "options that only the editor has": {"justification": "why", "modelOptions": {"temperature": 0}},
    "a tool without a schema": {"tools": [{"name": "f", "description": ""}]},
    "a schema that is null": {"tools": [{"name": "f", "description": "", "inputSchema": None}]},
    "unknown tools": {"tools": [{"type": "x"}, {"name": "f"}]},
    "no tools": {"tools": []},
    "an unknown mode": {"toolMode": 3},
    "nothing": {},
    "null": None,
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_options_are_written_as_received(options):
    body = {"messages": [turn("user", part_of("x"))], "options": options, "model": "m", "beside": 1}
    assert CODEC.encode_request(CODEC.decode_request(body, EDITOR), EDITOR) == body


def test_a_new_request_has_options_in_the_default_format():
    body = {
        "messages": [turn("user", part_of("x"))],
        "model": "m",
        "options": {"tools": None, "modelOptions": {"a": 1}},
    }
    prompt = CODEC.decode_request(body, EDITOR)
    request = prepare(prompt.context, EDITOR.model, options=prompt.options)
    assert request.body == {"messages": body["messages"], "options": {"modelOptions": {"a": 1}}}


def test_format_of_older_files_is_ignored_and_data_is_written():
    message = UserMessage(content=(text("x"),), extra={P: {"shape": {"content": "string"}, "name": "bob"}})
    stored = replace(answered("c1", text("1")), extra={P: {"shape": {"joined": True}, "message": {"name": "ann"}}})
    assert write(message, answer(CALL), stored)["messages"] == [
        turn("user", part_of("x"), name="bob"),
        turn("assistant", WIRE_CALL),
        turn("user", result("c1", part_of("1")), name="ann"),
    ]


def test_tools_and_their_mode_are_read():
    prompt = read(options=OPTIONS["tools and a mode"])
    assert prompt.context.tools == (ToolDefinition(name="f", description="d", parameters={"a": 1}),)
    assert prompt.options == Options(tool_choice="required")
    assert read(options={"toolMode": 1}).options.tool_choice == "auto"


UNSUPPORTED = {
    "a system prompt": (Prompt(context=Context(system_prompt="x")), ("system_prompt",)),
    "instructions": (Prompt(context=Context(messages=(SystemMessage.of("x"),))), ("messages", 0)),
    "thinking": (
        Prompt(context=Context(messages=(answer(ThinkingContent(thinking="x")),))),
        ("messages", 0, "content", 0),
    ),
    "a URL": (
        Prompt(context=Context(messages=(UserMessage.of(ImageContent(url="x")),))),
        ("messages", 0, "content", 0),
    ),
    "data without a type": (
        Prompt(context=Context(messages=(UserMessage.of(ImageContent(data=PNG)),))),
        ("messages", 0, "content", 0),
    ),
    "a tool of another wire": (
        Prompt(context=Context(tools=(NativeTool(protocol="x", definition={}),))),
        ("tools", 0),
    ),
    "a choice by name": (Prompt(context=Context(), options=Options(tool_choice="f")), ("options", "tool_choice")),
    "a limit": (Prompt(context=Context(), options=Options(max_tokens=1)), ("options", "max_tokens")),
}


@pytest.mark.parametrize(("prompt", "path"), UNSUPPORTED.values(), ids=UNSUPPORTED.keys())
def test_what_is_unsupported_is_reported(prompt, path):
    with pytest.raises(EncodeError) as caught:
        CODEC.encode_request(prompt, EDITOR)
    assert caught.value.path == path


DECODE_ERRORS = {
    "no messages": ({}, ("messages",)),
    "a message that is a string": ({"messages": ["x"]}, ("messages", 0)),
    "a system role": ({"messages": [turn("system", part_of("x"))]}, ("messages", 0, "role")),
    "a part that is a string": ({"messages": [turn("user", "x")]}, ("messages", 0, "content", 0)),
    "no content": ({"messages": [{"role": "user"}]}, ("messages", 0, "content")),
    "options that are a list": ({"messages": [], "options": [1]}, ("options",)),
}


@pytest.mark.parametrize(("body", "path"), DECODE_ERRORS.values(), ids=DECODE_ERRORS.keys())
def test_a_malformed_body_is_reported(body, path):
    with pytest.raises(DecodeError) as caught:
        CODEC.decode_request(body, EDITOR)
    assert caught.value.path == path


FAILURES = {
    "system text goes into the first user turn": (
        Context(system_prompt="Be brief.", messages=(UserMessage.of("x"),)),
        lambda turns: turns[0] == turn("user", part_of("Be brief.")),
        "system_as_user",
    ),
    "V-01: thinking is not replayed": (
        Context(messages=(UserMessage.of("x"), answer(ThinkingContent(thinking="hm"), text("y")), UserMessage.of("z"))),
        lambda turns: turns[1] == turn("assistant", part_of("y")),
        "thinking_dropped",
    ),
    "V-02: calls and results stay parts, never text": (
        Context(messages=(UserMessage.of("x"), answer(CALL), answered("c1", text("1")))),
        lambda turns: turns[1:] == [turn("assistant", WIRE_CALL), turn("user", result("c1", part_of("1")))],
        None,
    ),
    "the image of a result stays in the result": (
        Context(messages=(UserMessage.of("x"), answer(CALL), answered("c1", IMAGE))),
        lambda turns: turns[2] == turn("user", result("c1", DATA)),
        None,
    ),
    "a file becomes text": (
        Context(messages=(UserMessage.of("x", FileContent(data="JVBERi0x", mime_type="application/pdf")),)),
        lambda turns: "document omitted" in turns[0]["content"][1]["value"],
        "media_omitted",
    ),
    "a choice by name is unsupported": (
        Context(messages=(UserMessage.of("x"),), tools=(ToolDefinition(name="f"),)),
        bool,
        "option_removed",
    ),
}


@pytest.mark.parametrize(("context", "holds", "code"), FAILURES.values(), ids=FAILURES.keys())
def test_what_the_api_does_not_support_is_changed_and_reported(context, holds, code):
    options = Options(tool_choice="f") if context.tools else None
    request = prepare(context, EDITOR.model, options=options)
    assert holds(request.body["messages"]), request.body["messages"]
    codes = [str(change.code) for change in request.report.changes]
    assert (code in codes) if code else codes == []
    assert CODEC.check(request.body, EDITOR) == []


VIOLATIONS = {
    "no messages": ({"messages": []}, ["messages_missing"]),
    "a system role": ({"messages": [turn("system", part_of("x"))]}, ["role_unknown"]),
    "a call in a user message": ({"messages": [turn("user", WIRE_CALL)]}, ["block_misplaced"]),
    "a result in an assistant message": (
        {"messages": [turn("assistant", ONE)]},
        ["block_misplaced", "result_orphaned"],
    ),
    "a text that is a number": ({"messages": [turn("user", {"$": "text", "value": 1}, part_of("x"))]}, ["type_wrong"]),
    "input as a string": ({"messages": [turn("assistant", {**WIRE_CALL, "input": "{}"})]}, ["type_wrong"]),
    "a wrong part in a result": (
        {"messages": [turn("assistant", WIRE_CALL), turn("user", result("c1", {"$": "text"}))]},
        ["type_wrong"],
    ),
    "no text": ({"messages": [turn("user", part_of(" "))]}, ["text_blank"]),
    "a call without a result": (
        {"messages": [turn("assistant", WIRE_CALL), turn("user", part_of("x"))]},
        ["result_missing"],
    ),
    "a result without a call": ({"messages": [turn("user", ONE)]}, ["result_orphaned"]),
    "an unknown mode": ({"messages": [turn("user", part_of("x"))], "options": {"toolMode": 3}}, ["value_unknown"]),
    "a tool name that models refuse": (
        {"messages": [turn("user", part_of("x"))], "options": {"tools": [{"name": "a.b", "description": "d"}]}},
        ["tool_name_invalid"],
    ),
    "a schema without a type": (
        {
            "messages": [turn("user", part_of("x"))],
            "options": {"tools": [{"name": "f", "description": "d", "inputSchema": {"properties": {}}}]},
        },
        ["schema_root_invalid"],
    ),
    "a tool without a description": (
        {"messages": [turn("user", part_of("x"))], "options": {"tools": [{"name": "f", "inputSchema": 1}]}},
        ["tool_description_missing", "schema_root_invalid"],
    ),
    "options that are a list": ({"messages": [turn("user", part_of("x"))], "options": []}, ["type_wrong"]),
    "a whole conversation": (
        {
            "messages": [
                BATCH,
                turn("user", ONE, TWO),
                turn("assistant", part_of("x")),
                {"role": "user", "content": "y"},
            ]
        },
        [],
    ),
    "calls left open at the end": ({"messages": [turn("user", part_of("x")), BATCH]}, []),
    "unknown parts": ({"messages": [turn("user", {"$": "new"}, {"odd": 1})]}, []),
}


@pytest.mark.parametrize(("body", "codes"), VIOLATIONS.values(), ids=VIOLATIONS.keys())
def test_the_check_reports_what_is_refused(body, codes):
    assert [violation.code for violation in CODEC.check(body, EDITOR)] == codes


@scaled_examples(2)
@given(data=st.data())
def test_every_prepared_request_is_valid(data):
    [model] = TARGETS[P]
    context, seed = data.draw(ugly_contexts(model)), data.draw(st.integers(0, 2**32))
    try:
        request = prepare(vouched_for(context), model, options=make_options(seed))
    except EmptyConversation:
        return
    assert complaints(request.body) == []
    assert CODEC.check(request.body, EDITOR) == []


# -- replies -----------------------------------------------------------------------------------------------------------

REPLIES = {
    "text": turn("assistant", part_of("hi")),
    "a string": {"role": "assistant", "content": "hi"},
    "no role": {"content": [part_of("hi")]},
    "another role": {"role": 2, "content": [], "mood": 1},
    "an error": {"error": {"code": "NotFound", "message": "gone"}},
    "an error as a string": {"error": "gone", "beside": 1},
}


@pytest.mark.parametrize("body", REPLIES.values(), ids=REPLIES.keys())
def test_a_reply_is_written_as_received(body):
    message = CODEC.decode_response(body, EDITOR, {})
    assert CODEC.encode_response(message, EDITOR) == body
    assert (message.stop_reason == StopReason.ERROR) == ("error" in body)


def test_names_of_tools_are_mapped_back():
    body = turn("assistant", WIRE_CALL)
    assert CODEC.decode_response(body, EDITOR, {"f": "mcp.f"}).tool_calls()[0].name == "mcp.f"
    decoder = CODEC.stream_decoder(EDITOR, {"f": "g", "g": "h"})
    decoder.feed(WIRE_CALL)
    assert decoder.message.tool_calls()[0].name == "g"


def fold(*frames: object) -> tuple[list[str], AssistantMessage]:
    decoder = CODEC.stream_decoder(EDITOR, {})
    events = [event for frame in frames for event in decoder.feed(frame)]  # pyright: ignore[reportArgumentType]
    return [event.type for event in events + decoder.finish()], decoder.message


STREAMS = {
    "fragments are one text": (
        [part_of("a"), part_of("b")],
        ["start", "text_start", "text_delta", "text_delta", "text_end", "done"],
    ),
    "a call between texts": (
        [part_of("a"), WIRE_CALL, part_of("b")],
        [
            *("start", "text_start", "text_delta", "text_end", "toolcall_start", "toolcall_end"),
            *("text_start", "text_delta", "text_end", "done"),
        ],
    ),
    "an unknown part": ([{"$": "new"}], ["start", "native", "done"]),
    "an empty text": ([part_of("")], ["start", "done"]),
    "nothing at all": ([], ["start", "error"]),
    "an error": (
        [part_of("a"), {"$": "error", "code": "Blocked", "message": "quota"}, part_of("b")],
        ["start", "text_start", "text_delta", "text_end", "error"],
    ),
    "no JSON": ([b"x"], ["start", "error"]),
}


@pytest.mark.parametrize(("frames", "events"), STREAMS.values(), ids=STREAMS.keys())
def test_a_stream_gives_its_parts_and_ends_once(frames, events):
    observed, message = fold(*frames)
    assert observed == events
    assert (message.stop_reason == StopReason.ERROR) == (observed[-1] == "error")


ERRORS = {
    "whole": ({"error": {"code": "NotFound", "message": "gone"}}, WireError(code="NotFound", message="gone")),
    "a line": (
        {"$": "error", "code": "Unknown", "message": "no", "cause": "429"},
        WireError(code="Unknown", message="no: 429"),
    ),
    "bytes": (b'{"error": "gone"}', WireError(message="gone")),
    "bare text": ("gone", WireError(message="gone")),
    "nothing": (None, WireError()),
}


@pytest.mark.parametrize(("body", "error"), ERRORS.values(), ids=ERRORS.keys())
def test_an_error_is_read(body, error):
    assert CODEC.decode_error(body, None) == error


def test_a_body_is_recognised_by_its_tools_alone():
    body = {"messages": [{"role": "user", "content": "x"}], "options": {"tools": [{"name": "f", "inputSchema": {}}]}}
    assert detect_protocol(body) == P


# -- any body ----------------------------------------------------------------------------------------------------------

ODD = st.sampled_from([None, 0, 1.5, True, "x", "", [], {}, ["x"], [{}], {"$": "text"}, {"a": None}])


def some(**values):
    return st.fixed_dictionaries({}, optional={key: st.one_of(value, ODD) for key, value in values.items()})


def keyed(**values):
    return some(**values).map(lambda wire: {"$" if key == "kind" else key: value for key, value in wire.items()})


PART = keyed(
    kind=st.sampled_from(["text", "data", "toolCall", "toolResult", "new"]),
    value=st.just("hi"),
    tag=st.just(1),
    data=st.sampled_from(["AAAA", "AAA", "A-_A", "x", "x!"]),
    mimeType=st.sampled_from(["image/png", "text/plain"]),
    callId=st.sampled_from(["c1", "c2"]),
    name=st.just("f"),
    input=st.just({"a": 1}),
    content=st.just([part_of("x")]),
)
TURN = some(
    role=st.sampled_from(["user", "assistant"]),
    content=st.one_of(st.just("x"), st.lists(PART, max_size=4)),
    name=st.just("bob"),
)
BODY = some(
    messages=st.lists(TURN, max_size=4),
    options=some(
        tools=st.lists(some(name=st.just("f"), description=st.just("d"), inputSchema=st.just({})), max_size=2),
        toolMode=st.sampled_from([1, 2, 3]),
        modelOptions=st.just({"a": 1}),
    ),
    model=st.just("m"),
)


@scaled_examples(5)
@given(body=BODY)
def test_any_body_that_can_be_read_is_written_as_received(body):
    for violation in CODEC.check(body, EDITOR):
        assert violation.message
    with suppress(DecodeError):
        read_body = CODEC.decode_request(body, EDITOR)
        assert CODEC.encode_request(read_body, EDITOR) == body


@scaled_examples(3)
@given(body=TURN)
def test_any_reply_that_can_be_read_is_written_as_received(body):
    with suppress(DecodeError):
        assert CODEC.encode_response(CODEC.decode_response(body, EDITOR, {}), EDITOR) == body


@pytest.mark.parametrize("schema", [{}, {"properties": {"a": {}}}, {"anyOf": [{"type": "object"}]}, {"type": "string"}])
def test_the_schema_of_a_tool_always_has_a_type(schema):
    context = Context(messages=(UserMessage.of("hi"),), tools=(ToolDefinition(name="f", parameters=schema),))
    request = prepare(context, EDITOR.model)
    assert request.body["options"]["tools"][0]["inputSchema"]["type"] == "object"
    assert request.report.of(ChangeCode.TOOL_SCHEMA)
    assert CODEC.check(request.body, EDITOR) == []


# -- results in an assistant message -----------------------------------------------------------------------------------


def part_of_text(value):
    return {"$": "text", "value": value}


def part_of_call(call_id):
    return {"$": "toolCall", "callId": call_id, "name": "f", "input": {}}


def part_of_result(call_id, value):
    return {"$": "toolResult", "callId": call_id, "content": [part_of_text(value)]}


ANSWERED_AT_ONCE = {
    "a call, its result and a text": [part_of_call("1"), part_of_result("1", "42"), part_of_text("done")],
    "two calls in turn": [part_of_call("1"), part_of_result("1", "42"), part_of_call("2"), part_of_result("2", "43")],
    "two calls and their results": [
        *(part_of_call("1"), part_of_call("2")),
        *(part_of_result("1", "42"), part_of_result("2", "43")),
    ],
}


@pytest.mark.parametrize("content", ANSWERED_AT_ONCE.values(), ids=ANSWERED_AT_ONCE.keys())
def test_a_result_behind_its_call_in_an_assistant_message_is_a_result(content):
    turns = [
        {"role": "user", "content": [part_of_text("hi")]},
        {"role": "assistant", "content": content},
        {"role": "user", "content": [part_of_text("ok")]},
    ]
    prompt = segue.decode_request({"messages": turns}, protocol="vscode-lm")
    assert segue.encode_request(prompt, protocol="vscode-lm")["messages"] == turns
    converted = segue.convert({"messages": turns}, source="vscode-lm", target="anthropic/claude-opus-4-8")
    blocks = [block for turn in converted.body["messages"] for block in turn["content"]]
    results = [block["content"][0]["text"] for block in blocks if block["type"] == "tool_result"]
    assert results == [part["content"][0]["value"] for part in content if part["$"] == "toolResult"]
    assert not converted.report.changes


def test_a_result_without_its_call_stays_where_it_was():
    turns = [{"role": "assistant", "content": [part_of_result("9", "x"), part_of_text("y")]}]
    prompt = segue.decode_request({"messages": turns}, protocol="vscode-lm")
    assert segue.encode_request(prompt, protocol="vscode-lm")["messages"] == turns


RESULT_OF_C1 = {"$": "toolResult", "callId": "c1", "content": [part_of("RES")]}
ASSISTANTS_RESULTS = {
    "in the turn of its call": [[WIRE_CALL, RESULT_OF_C1]],
    "in the next turn": [[WIRE_CALL], [RESULT_OF_C1]],
    "before more text": [[WIRE_CALL], [RESULT_OF_C1, part_of("done")]],
}


@pytest.mark.parametrize("turns", ASSISTANTS_RESULTS.values(), ids=ASSISTANTS_RESULTS.keys())
@pytest.mark.parametrize("keys", [{}, {"name": "agent"}], ids=["plain", "named"])
def test_a_result_in_a_turn_of_the_assistant_is_one(turns, keys):
    said = [{"role": "assistant", "content": parts, **keys} for parts in turns]
    messages = [{"role": "user", "content": [part_of("hi")]}, *said, {"role": "user", "content": [part_of("go")]}]
    prompt = CODEC.decode_request({"messages": messages}, EDITOR)
    assert CODEC.encode_request(prompt, EDITOR)["messages"] == messages
    for target in (EDITOR.model, segue.get_model("anthropic/claude-opus-4-5")):
        body = prepare(prompt.context, target).body
        assert "RES" in repr(body)
        assert "No result" not in repr(body)
        assert segue.check(body, protocol=target.protocol, model=target) == []
