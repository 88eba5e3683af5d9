"""Data that cannot be read raises exactly one `LoadError` with a path."""

from __future__ import annotations

import contextlib
import inspect
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from samples import EVERYTHING, nested, with_details
from segue.conversation.content import (
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from segue.conversation.context import Context
from segue.conversation.limits import MAX_DIGITS, MAX_NESTING
from segue.conversation.messages import (
    AssistantMessage,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from segue.conversation.stored import dump, dump_message, load, load_message
from segue.errors import DumpError, LoadError, NewerFormat
from strategies import storable_contexts


def ours(**fields: object) -> str:
    return json.dumps({"format": "segue/1", **fields})


def message_given(*content: object, role: str = "user", **fields: object) -> str:
    return ours(messages=[{"role": "user", "content": []}, {"role": role, "content": list(content), **fields}])


HERE: Final = ("messages", 1)


class Refused(NamedTuple):
    data: str | bytes
    path: tuple[str | int, ...]
    reason: str


REFUSED: Final[Mapping[str, Refused]] = {
    "empty input": Refused(b"", (), "the input is empty"),
    "white space": Refused(b" \n", (), "the input is empty"),
    "data that is not JSON": Refused(b"hello", (), "not valid JSON"),
    "a document that is cut off": Refused(dump(EVERYTHING)[:-1], (), "not valid JSON"),
    "two documents": Refused(dump(Context()) * 2, (), "read_session"),
    "a session file": Refused(dump(Context()) + b"\n" + b'{"role":"user","content":[]}\n', (), "on line 2"),
    "bytes that are no UTF-8": Refused(b'{"format":"segue/1","systemPrompt":"\xff"}', (), "not valid UTF-8"),
    "a half of a character in bytes": Refused(
        b'{"format":"segue/1","systemPrompt":"\xed\xa0\x80"}', (), "not valid UTF-8"
    ),
    "UTF-16": Refused(dump(Context()).decode().encode("utf-16"), (), "not valid UTF-8"),
    "null": Refused(b"null", (), "expected an object, got null"),
    "a number": Refused(b"1", (), "expected an object, got int"),
    "text": Refused(b'"hello"', (), "expected an object, got str"),
    "a format of another program": Refused(b'{"format":"other/1"}', ("format",), "unknown format 'other/1'"),
    "a format that is no text": Refused(b'{"format":1,"messages":[]}', ("format",), "unknown format 1"),
    "no format and no messages": Refused(b'{"foo":1}', ("messages",), "is missing"),
    "summaries that are no list": Refused(ours(summaries={}), ("summaries",), "expected a list, got dict"),
    "a summary that is text": Refused(ours(summaries=["a"]), ("summaries", 0), "expected an object, got str"),
    "a summary without its number of messages": Refused(
        ours(summaries=[{"text": "a"}]), ("summaries", 0, "covers"), "is missing"
    ),
    "a summary of fewer than no messages": Refused(
        ours(summaries=[{"covers": -1, "text": "a"}]), ("summaries", 0, "covers"), "`int` >= 0"
    ),
    "the origin of a summary without a model": Refused(
        ours(summaries=[{"covers": 1, "text": "a", "origin": {"protocol": "p", "provider": "v"}}]),
        ("summaries", 0, "origin", "model"),
        "is missing",
    ),
    "a summary of another type": Refused(
        ours(summaries=[{"type": "note", "covers": 1, "text": "a"}]), ("summaries", 0, "type"), "Invalid value 'note'"
    ),
    "messages that are no list": Refused(ours(messages={}), ("messages",), "expected a list, got dict"),
    "a message that is null": Refused(ours(messages=[None]), ("messages", 0), "expected an object, got null"),
    "a message that is text": Refused(ours(messages=["hi"]), ("messages", 0), "expected an object, got str"),
    "a message without a role": Refused(ours(messages=[{"content": []}]), ("messages", 0, "role"), "is missing"),
    "an unknown role": Refused(message_given(role="nope"), (*HERE, "role"), "unknown role 'nope'"),
    "a role that is no text": Refused(ours(messages=[{"role": ["user"]}]), ("messages", 0, "role"), "unknown role"),
    "content that is no list": Refused(
        ours(messages=[{"role": "user", "content": 1}]), ("messages", 0, "content"), "list"
    ),
    "content that is null": Refused(message_given(None), (*HERE, "content", 0), "expected an object, got null"),
    "content without a type": Refused(message_given({"text": "hi"}), (*HERE, "content", 0, "type"), "is missing"),
    "an unknown type": Refused(message_given({"type": "audio"}), (*HERE, "content", 0, "type"), "unknown type 'audio'"),
    "text without a value": Refused(message_given({"type": "text"}), (*HERE, "content", 0, "text"), "is missing"),
    "text that is null": Refused(
        message_given({"type": "text", "text": None}), (*HERE, "content", 0, "text"), "is missing"
    ),
    "text that is a number": Refused(
        message_given({"type": "text", "text": 1}), (*HERE, "content", 0, "text"), "Expected `str`"
    ),
    "a call without an id": Refused(
        message_given({"type": "toolCall", "name": "a"}, role="assistant"), (*HERE, "content", 0, "id"), "is missing"
    ),
    "arguments that are text": Refused(
        message_given({"type": "toolCall", "id": "a", "name": "b", "arguments": "{}"}, role="assistant"),
        (*HERE, "content", 0, "arguments"),
        "Expected `object`, got `str`",
    ),
    "a result without its call": Refused(message_given(role="toolResult"), (*HERE, "toolCallId"), "is missing"),
    "a stop reason of another program": Refused(
        message_given(role="assistant", stopReason="deferred"), (*HERE, "stopReason"), "Invalid enum value 'deferred'"
    ),
    "usage that is a list": Refused(message_given(role="assistant", usage=[]), (*HERE, "usage"), "expected an object"),
    "tokens that are text": Refused(
        message_given(role="assistant", usage={"input": "1"}), (*HERE, "usage", "input"), "Expected `int`"
    ),
    "a cost that is text": Refused(
        message_given(role="assistant", usage={"cost": {"total": "1"}}),
        (*HERE, "usage", "cost", "total"),
        "Expected `float`",
    ),
    "a cost that is too large": Refused(
        message_given(role="assistant", usage={"cost": {"total": 10**400}}),
        (*HERE, "usage", "cost", "total"),
        "out of range",
    ),
    "diagnostics that are no list": Refused(
        message_given(role="assistant", diagnostics={}), (*HERE, "diagnostics"), "a list"
    ),
    "a diagnostic without a type": Refused(
        message_given(role="assistant", diagnostics=[{}]), (*HERE, "diagnostics", 0, "type"), "is missing"
    ),
    "a timestamp with a fraction": Refused(message_given(timestamp=1.5), (*HERE, "timestamp"), "Expected `int | null`"),
    "half a character in place of a number": Refused(
        message_given(timestamp="\ud800"), (*HERE, "timestamp"), "Expected `int | null`, got `str`"
    ),
    "half a character in place of an object": Refused(
        message_given({"type": "toolCall", "id": "a", "name": "b", "arguments": "\ud800"}, role="assistant"),
        (*HERE, "content", 0, "arguments"),
        "Expected `object`, got `str`",
    ),
    "half a character in place of a stop reason": Refused(
        message_given(role="assistant", stopReason="\ud800"), (*HERE, "stopReason"), "Invalid enum value"
    ),
    "half a character in place of a number, and in a text": Refused(
        message_given({"type": "text", "text": "\ud800"}, timestamp="\udfff"),
        (*HERE, "timestamp"),
        "Expected `int | null`",
    ),
    "an extra that is no object": Refused(message_given(extra=1), (*HERE, "extra"), "expected an object of objects"),
    "an extra of something else": Refused(
        message_given(extra={"x": 1}), (*HERE, "extra"), "expected an object of objects"
    ),
    "an unknown kind of tool": Refused(ours(tools=[{"type": "x"}]), ("tools", 0, "type"), "unknown type 'x'"),
    "a tool without a name": Refused(ours(tools=[{"type": "function"}]), ("tools", 0, "name"), "is missing"),
    "a schema that is no object": Refused(
        ours(tools=[{"name": "a", "parameters": True}]), ("tools", 0, "parameters"), "Expected `object`, got `bool`"
    ),
    "a system prompt that is a number": Refused(
        ours(systemPrompt=1), ("systemPrompt",), "Expected `str | array | null`"
    ),
    "NaN": Refused('{"format":"segue/1","extra":{"a":{"b":[NaN]}}}', ("extra", "a", "b", 0), "nan"),
    "Infinity": Refused('{"format":"segue/1","extra":{"a":{"b":Infinity}}}', ("extra", "a", "b"), "inf"),
    "a number that is infinite to Python": Refused(
        '{"format":"segue/1","extra":{"a":{"b":-1e999}}}', ("extra", "a", "b"), "inf"
    ),
    "an integer that is too long": Refused(
        b'{"format":"segue/1","extra":{"a":{"b":' + b"1" * (MAX_DIGITS + 1) + b"}}}", (), "4,300 digits"
    ),
    "one level too many": Refused(
        ours(extra={"a": {"b": nested(MAX_NESTING - 2)}}), ("extra", "a", "b", *[0] * (MAX_NESTING - 3)), "200 levels"
    ),
    "a hundred thousand levels": Refused(b'{"format":"segue/1","extra":' + b"[" * 100_000, (), "200 levels"),
}


@pytest.mark.parametrize(("data", "path", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_a_document_is_refused_for(data, path, reason):
    with pytest.raises(LoadError, match=re.escape(reason)) as caught:
        load(data)
    assert caught.value.path == path
    assert caught.value.line is None


NEWER: Final = ("segue/2", "segue/1.1", "segue/10", "segue/", "segue/x")


@pytest.mark.parametrize("name", NEWER)
def test_a_newer_format_is_refused_whole(name):
    document = json.dumps({"format": name, "messages": [{"role": "user", "content": "hi"}]})
    with pytest.raises(NewerFormat, match=re.escape(name)) as caught:
        load(document)
    assert caught.value.path == ("format",)


WRONG_PLACES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "a user message": ("user", ("thinking", "toolCall")),
    "an assistant message": ("assistant", ("image", "file")),
    "a tool result": ("toolResult", ("thinking", "toolCall")),
    "a system message": ("system", ("image", "file", "thinking", "toolCall")),
}
SAMPLES: Final = {
    "text": TextContent(text="x"),
    "image": ImageContent(data="AAAA"),
    "file": FileContent(file_id="x"),
    "thinking": ThinkingContent(thinking="x"),
    "toolCall": ToolCall(id="a", name="b"),
    "native": NativeContent(protocol="x", block={}),
}


def message_of(role: str, *content: object) -> object:
    match role:
        case "user":
            return UserMessage(content=content)  # type: ignore[arg-type]
        case "assistant":
            return AssistantMessage(content=content)  # type: ignore[arg-type]
        case "toolResult":
            return ToolResultMessage(tool_call_id="a", content=content)  # type: ignore[arg-type]
        case _:
            return SystemMessage(content=content)  # type: ignore[arg-type]


@pytest.mark.parametrize(("role", "kinds"), WRONG_PLACES.values(), ids=WRONG_PLACES.keys())
def test_content_in_the_wrong_role_is_refused_by_both_paths(role, kinds):
    for kind, content in SAMPLES.items():
        message = message_of(role, TextContent(text="x"), content)
        if kind not in kinds:
            assert load_message(dump_message(message)) == message  # type: ignore[arg-type]
            continue
        stored = json.loads(msgspec.json.encode(message))
        with pytest.raises(LoadError, match=f"'{kind}' is not allowed in {role}") as caught:
            load(ours(messages=[stored]))
        assert caught.value.path == ("messages", 0, "content", 1, "type")
        with pytest.raises(LoadError) as caught:
            load_message(json.dumps(stored))
        assert caught.value.path == ("content", 1, "type")
        with pytest.raises(DumpError) as refused:
            dump(Context(messages=(message,)))  # type: ignore[arg-type]
        assert refused.value.path == ("messages", 0, "content", 1, "type")
        with pytest.raises(DumpError) as refused:
            dump_message(message)  # type: ignore[arg-type]
        assert refused.value.path == ("content", 1, "type")


def test_only_text_images_and_files_may_be_a_fallback():
    native = json.loads(msgspec.json.encode(SAMPLES["native"]))
    native["fallback"] = [dict(native)]
    with pytest.raises(LoadError, match="'native' is not allowed in fallback") as caught:
        load(message_given(native))
    assert caught.value.path == (*HERE, "content", 0, "fallback", 0, "type")


def test_every_proper_prefix_of_a_document_is_refused():
    small = Context(messages=EVERYTHING.messages[1:3], system_prompt="é😀")
    data = dump(small)
    for cut in range(len(data)):
        with pytest.raises(LoadError):
            load(data[:cut])


def test_every_proper_prefix_of_a_message_is_refused():
    for message in EVERYTHING.messages:
        data = dump_message(message)
        for cut in range(len(data)):
            with pytest.raises(LoadError):
                load_message(data[:cut])


@given(st.one_of(st.binary(max_size=60), st.text(st.characters(categories=None), max_size=60)))
@example(b"[]")
@example(b'{"messages":[]}')
def test_anything_at_all_is_read_or_refused_by_a_load_error(data):
    for read in (load, load_message):
        with contextlib.suppress(LoadError):
            read(data)


@given(storable_contexts(max_messages=2), st.data())
def test_a_damaged_document_is_read_or_refused_by_a_load_error(context, data):
    stored = bytearray(dump(context))
    for _ in range(data.draw(st.integers(1, 3))):
        stored[data.draw(st.integers(0, len(stored) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(LoadError):
        load(stored)


def test_an_error_shows_one_cause_at_most():
    for data, _, _ in REFUSED.values():
        with pytest.raises(LoadError) as caught:
            load(data)
        cause = caught.value.__cause__
        assert caught.value.__context__ is cause
        assert cause is None or cause.__suppress_context__ or cause.__context__ is None


@pytest.mark.parametrize("left", [60, 150, 300, 500])
def test_no_recursion_error_escapes_however_deep_the_callers_stack_is(left):
    """Documents of few levels are always read and written; deep ones are, or raise `LoadError` or `DumpError`."""
    deep = with_details(nested(MAX_NESTING - 3))
    deep_data, data = dump(deep), dump(EVERYTHING)

    def call_deep(frames: int) -> tuple[Context, bytes]:
        if frames > 0:
            return call_deep(frames - 1)
        for call in (lambda: load(deep_data), lambda: dump(deep), lambda: dump_message(deep.messages[0])):
            with contextlib.suppress(LoadError, DumpError):
                call()
        return load(data), dump(EVERYTHING)

    depth = len(inspect.stack(0))
    assert call_deep(sys.getrecursionlimit() - depth - left) == (EVERYTHING, data)


@pytest.mark.parametrize("given", [Path("s.json"), {"messages": []}, None], ids=["a path", "a dict", "nothing"])
def test_what_is_no_json_text_is_named(given: Any):
    with pytest.raises(LoadError, match=r"expected JSON as bytes or text, got a value of type \w+; read the file"):
        load(given)
