"""Files of pi-ai and ktsoator/or are read without loss; unknown fields are kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ancestors import GO, GO_READ, NO_USAGE, PI, PI_READ
from segue.conversation.content import ImageContent, TextContent, ToolCall
from segue.conversation.context import Context
from segue.conversation.foreign import PROTOCOLS
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    Usage,
    UsageCost,
    UserMessage,
)
from segue.conversation.stored import dump, dump_message, load, load_message
from segue.errors import LoadError

# -- whole files ------------------------------------------------------------------------------------------------------

FILES: Final[Mapping[str, tuple[object, Context]]] = {
    "a conversation of the Go library": (GO, GO_READ),
    "a conversation of pi": (PI, PI_READ),
    "a bare list of messages": (GO["messages"], Context(messages=GO_READ.messages)),
    "no messages at all": ([], Context()),
    "messages, tools and prompt that are null": ({"systemPrompt": None, "messages": None, "tools": None}, Context()),
    "a field that is called as ours": (
        {"messages": [], "summaries": ["a"]},
        Context(extra={"stored": {"summaries": ["a"]}}),
    ),
    "unknown fields of the conversation": ({"messages": [], "title": "t"}, Context(extra={"stored": {"title": "t"}})),
    "a field of another program with the name of ours": (
        {"messages": [], "extra": [1]},
        Context(extra={"stored": {"extra": [1]}}),
    ),
    "a system message first": (
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
        Context(system_prompt="Be brief.", messages=(UserMessage.of("hi"),)),
    ),
    "a system message of several pieces first": (
        [{"role": "system", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}],
        Context(system_prompt=(TextContent(text="a"), TextContent(text="b"))),
    ),
    "a leading system message of one signed text": (
        [{"role": "system", "content": [{"type": "text", "text": "a", "textSignature": "s"}]}],
        Context(system_prompt=(TextContent(text="a", text_signature="s"),)),
    ),
    "an empty text as system message first": ([{"role": "system", "content": ""}], Context(system_prompt="")),
    "a leading system message without content": (
        [{"role": "system", "timestamp": 0}],
        Context(messages=(SystemMessage(content=(), extra={"stored": {"timestamp": 0}}),)),
    ),
    "a system message first, and a prompt besides": (
        {"systemPrompt": "a", "messages": [{"role": "system", "content": "b"}]},
        Context(system_prompt="a", messages=(SystemMessage.of("b"),)),
    ),
    "a system message first whose fields would hide the conversation's": (
        {"messages": [{"role": "system", "content": "b", "timestamp": 1}], "timestamp": 2},
        Context(
            messages=(SystemMessage(content=(TextContent(text="b"),), extra={"stored": {"timestamp": 1}}),),
            extra={"stored": {"timestamp": 2}},
        ),
    ),
    "a system message further down": (
        [{"role": "user", "content": "hi"}, {"role": "system", "content": "b"}],
        Context(messages=(UserMessage.of("hi"), SystemMessage.of("b"))),
    ),
}


@pytest.mark.parametrize(("stored", "context"), FILES.values(), ids=FILES.keys())
def test_a_foreign_file_is_read(stored, context):
    assert load(json.dumps(stored)) == context


@pytest.mark.parametrize(("stored", "context"), FILES.values(), ids=FILES.keys())
def test_a_foreign_file_that_was_read_can_be_stored(stored, context):
    assert load(dump(load(json.dumps(stored)))) == context


def test_a_leading_system_message_of_a_segue_file_stays_a_message():
    context = Context(messages=(SystemMessage.of("a"), UserMessage.of("hi")))
    assert load(dump(context)) == context
    assert load(dump(context).replace(b'{"format"', b'{"unknown":1,"format"')).messages == context.messages


# -- single messages --------------------------------------------------------------------------------------------------


def reply(*content: object, **fields: object) -> dict[str, object]:
    return {"role": "assistant", "content": list(content), **fields}


def show(**fields: object) -> dict[str, object]:
    return {"role": "user", "content": [{"type": "image", **fields}], "unknown": 1}


def shown(data: str, mime_type: str | None = None) -> UserMessage:
    return UserMessage(content=(ImageContent(data=data, mime_type=mime_type),), extra={"stored": {"unknown": 1}})


def call(**fields: object) -> AssistantMessage:
    return AssistantMessage(content=(ToolCall(id="x", name="noop", **fields),))  # type: ignore[arg-type]


NOOP: Final = {"type": "toolCall", "id": "x", "name": "noop"}

MESSAGES: Final[Mapping[str, tuple[object, Message]]] = {
    "a user message": ({"role": "user", "content": [{"type": "text", "text": "hi"}]}, UserMessage.of("hi")),
    "an assistant message": (
        reply(
            protocol="anthropic-messages",
            provider="anthropic",
            model="x",
            usage=NO_USAGE,
            stopReason="stop",
            timestamp=0,
        ),
        AssistantMessage(
            content=(),
            protocol="anthropic-messages",
            provider="anthropic",
            model="x",
            usage=Usage(cost=UsageCost()),
            timestamp=0,
        ),
    ),
    "a tool result": (
        {"role": "toolResult", "toolCallId": "x", "toolName": "y", "content": [], "isError": False},
        ToolResultMessage(tool_call_id="x", tool_name="y", content=()),
    ),
    "content that is text": ({"role": "user", "content": "hi"}, UserMessage.of("hi")),
    "content that is an empty text": ({"role": "user", "content": ""}, UserMessage.of("")),
    "a reply whose content is text": (reply() | {"content": "hi"}, AssistantMessage(content=(TextContent(text="hi"),))),
    "content that is null": ({"role": "user", "content": None}, UserMessage(content=())),
    "no content": ({"role": "user"}, UserMessage(content=())),
    "arguments that are null": (reply({**NOOP, "arguments": None}), call()),
    "no arguments": (reply(NOOP), call()),
    "a signature that is empty": (reply({**NOOP, "thoughtSignature": ""}), call(thought_signature="")),
    "a signature that is null": (reply({**NOOP, "thoughtSignature": None}), call()),
    "usage that is null": (reply(usage=None), AssistantMessage(content=())),
    "diagnostics that are null": (reply(diagnostics=None), AssistantMessage(content=())),
    "a stop reason that is pending": (
        reply(stopReason="pending"),
        AssistantMessage(content=(), stop_reason=StopReason.ERROR, raw_stop_reason="pending"),
    ),
    "a stop reason beyond ours, with the provider's own": (
        reply(stopReason="deferred", rawStopReason="queued"),
        AssistantMessage(
            content=(),
            stop_reason=StopReason.ERROR,
            raw_stop_reason="queued",
            extra={"stored": {"stopReason": "deferred"}},
        ),
    ),
    "an api that nobody knows": (reply(api="pi-messages"), AssistantMessage(content=(), protocol="pi-messages")),
    "an api and a protocol": (
        reply(api="openai-completions", protocol="openai-responses"),
        AssistantMessage(content=(), protocol="openai-responses", extra={"stored": {"api": "openai-completions"}}),
    ),
    "an api, and a protocol that is null": (
        reply(api="openai-completions", protocol=None),
        AssistantMessage(content=(), protocol="openai-chat"),
    ),
    "whole numbers with a decimal point": (
        reply(timestamp=5.0, usage={"input": 12.0, "totalTokens": 1e3}),
        AssistantMessage(content=(), timestamp=5, usage=Usage(input=12, total_tokens=1000)),
    ),
    "a lone surrogate": ({"role": "user", "content": [{"type": "text", "text": "\ud800"}]}, UserMessage.of("\ud800")),
    "an image in standard base64": (show(data="/+8=", mimeType="image/png"), shown(data="/+8=", mime_type="image/png")),
    "an image in the alphabet of addresses": (show(data="_-8="), shown(data="/+8=")),
    "an image without padding": (show(data="/+8"), shown(data="/+8=")),
    "an image in lines": (show(data="AAAA\r\nAAAA\n"), shown(data="AAAAAAAA")),
    "an image as a data URL": (show(data="data:image/png;base64,/+8="), shown(data="/+8=", mime_type="image/png")),
    "a data URL in capitals, with a parameter": (
        show(data="DATA:image/png;a=b;BASE64,_-8"),
        shown(data="/+8=", mime_type="image/png"),
    ),
    "a data URL and a type of its own": (
        show(data="data:image/png;base64,AAAA", mimeType="image/webp"),
        shown(data="AAAA", mime_type="image/webp"),
    ),
    "a data URL without a type": (show(data="data:;base64,AAAA"), shown(data="AAAA")),
    "a data URL that is no base64": (
        show(data="data:image/svg+xml,%3Csvg/%3E"),
        shown(data="PHN2Zy8+", mime_type="image/svg+xml"),
    ),
    "an image that is no base64": (show(data="not base64!"), shown(data="not base64!")),
    "an image of an impossible length": (show(data="AAAAA"), shown(data="AAAAA")),
    "a data URL that names base64 and is not": (
        show(data="data:image/png;base64,?"),
        shown(data="data:image/png;base64,?"),
    ),
}


@pytest.mark.parametrize(("stored", "message"), MESSAGES.values(), ids=MESSAGES.keys())
def test_a_foreign_message_is_read(stored, message):
    read = load_message(json.dumps(stored))
    assert read == message
    assert type(read) is type(message)
    assert load(json.dumps([{"role": "user"}, stored])).messages == (UserMessage(content=()), message)


@pytest.mark.parametrize(("theirs", "ours"), PROTOCOLS.items(), ids=PROTOCOLS.keys())
def test_a_protocol_of_a_foreign_file_gets_the_name_in_segue(theirs, ours):
    for field in ("api", "protocol"):
        for stored in (reply(**{field: theirs}), reply(**{field: theirs, "unknown": 1})):
            message = load_message(json.dumps(stored))
            assert isinstance(message, AssistantMessage)
            assert message.protocol == ours
            assert load(json.dumps([stored])).messages == (message,)


SHARED_PROTOCOLS: Final = ("anthropic-messages", "openai-responses", "minimax-completions", "")


@pytest.mark.parametrize("name", SHARED_PROTOCOLS)
def test_a_protocol_of_segue_or_an_unknown_one_keeps_its_name(name):
    message = load_message(json.dumps(reply(api=name)))
    assert isinstance(message, AssistantMessage)
    assert message.protocol == name


def test_protocols_of_segue_files_are_not_renamed():
    context = Context(messages=(AssistantMessage(content=(), protocol="openai-completions"),))
    assert load(dump(context)) == context
    with_unknown = dump(context).replace(b'{"role"', b'{"unknown":1,"role"')
    assert [m.protocol for m in load(with_unknown).messages if m.role == "assistant"] == ["openai-completions"]


def test_images_of_segue_files_are_not_converted():
    context = Context(messages=(UserMessage(content=(ImageContent(data="data:,x"), TextContent(text="\ud800"))),))
    assert load(dump(context)) == context
    assert load_message(dump_message(context.messages[0])) == context.messages[0]


class Refused(NamedTuple):
    stored: str
    path: tuple[str | int, ...]
    reason: str


REFUSED: Final[Mapping[str, Refused]] = {
    "null": Refused("null", (), "got null"),
    "bad JSON": Refused("{", (), "not valid JSON"),
    "a message without a role": Refused('{"content":[]}', ("role",), "is missing"),
    "a role of a provider's wire": Refused('{"role":"tool","content":"x"}', ("role",), "unknown role 'tool'"),
    "content that is null": Refused('{"role":"user","content":[null]}', ("content", 0), "got null"),
    "content without a type": Refused('{"role":"user","content":[{"text":"hi"}]}', ("content", 0, "type"), "missing"),
    "content of an unknown type": Refused(
        '{"role":"user","content":[{"type":"audio"}]}', ("content", 0, "type"), "unknown type 'audio'"
    ),
    "thinking in a user message": Refused(
        '{"role":"user","content":[{"type":"thinking","thinking":"x"}]}',
        ("content", 0, "type"),
        "is not allowed in user",
    ),
    "an image in a reply": Refused(
        '{"role":"assistant","api":"x","content":[{"type":"image","data":"x","mimeType":"image/png"}]}',
        ("content", 0, "type"),
        "is not allowed in assistant",
    ),
    "a call in a tool result": Refused(
        '{"role":"toolResult","toolCallId":"x","content":[{"type":"toolCall","id":"a","name":"b"}]}',
        ("content", 0, "type"),
        "is not allowed in toolResult",
    ),
    "a stop reason that is a number": Refused('{"role":"assistant","stopReason":1}', ("stopReason",), "Expected"),
}


@pytest.mark.parametrize(("stored", "path", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_a_foreign_message_is_refused_for(stored, path, reason):
    with pytest.raises(LoadError, match=reason) as caught:
        load_message(stored)
    assert caught.value.path == path


def test_a_bad_message_in_a_foreign_file_is_named():
    for document, front in (({"messages": [{"role": "nope"}]}, ("messages",)), ([{"role": "nope"}], ())):
        with pytest.raises(LoadError, match="unknown role 'nope'") as caught:
            load(json.dumps(document))
        assert caught.value.path == (*front, 0, "role")


def test_a_wrong_type_in_a_bare_list_is_named():
    with pytest.raises(LoadError) as caught:
        load(json.dumps([{"role": "user"}, {"role": "user", "content": [{"type": "text", "text": 1}]}]))
    assert caught.value.path == (1, "content", 0, "text")


JSON: Final = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.sampled_from(("user", "text", "toolCall"))
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(("role", "type", "content", "messages", "tools", "text", "extra", "usage", "cost", "api")),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_read_or_refused_and_what_was_read_can_be_stored(value):
    for read, write in ((load, dump), (load_message, dump_message)):
        try:
            result = read(json.dumps(value))
        except LoadError:
            continue
        assert read(write(result)) == result  # type: ignore[arg-type]
