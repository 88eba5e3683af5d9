"""Values that cannot be stored raise exactly one `DumpError` with a path."""

from __future__ import annotations

import datetime as dt
import math
import re
import sys
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec
import pytest
from msgspec.structs import replace

from samples import EVERYTHING, nested, with_details
from segue.conversation.content import (
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from segue.conversation.context import Context, NativeTool, Origin, Summary, ToolDefinition
from segue.conversation.limits import ABOVE_A_MESSAGE, MAX_DIGITS, MAX_NESTING
from segue.conversation.messages import (
    AssistantMessage,
    Diagnostic,
    SystemMessage,
    ToolResultMessage,
    Usage,
    UsageCost,
    UserMessage,
)
from segue.conversation.stored import Document, dump, dump_message, dump_summary, load, load_message
from segue.errors import DumpError, LoadError


def with_arguments(arguments: Mapping[str, object]) -> Context:
    return Context(messages=(AssistantMessage(content=(ToolCall(id="a", name="b", arguments=arguments),)),))


LOOP: Final[list[object]] = []
LOOP.extend((LOOP, LOOP))
KEYED_LOOP: Final[dict[str, object]] = {}
KEYED_LOOP["again"] = KEYED_LOOP


class Unstorable(NamedTuple):
    value: object
    path: tuple[str | int, ...]
    reason: str


UNSTORABLE: Final[Mapping[str, Unstorable]] = {
    "NaN": Unstorable(math.nan, (), "nan"),
    "NaN deep inside": Unstorable({"a": [0, {"b": math.nan}]}, ("a", 1, "b"), "nan"),
    "infinity": Unstorable([1.0, math.inf], (1,), "inf"),
    "minus infinity": Unstorable({"a": -math.inf}, ("a",), "-inf"),
    "a key that is a number": Unstorable({"a": {1: 2}}, ("a",), "the key 1 is not a string"),
    "a key that is null": Unstorable({None: 2}, (), "the key None is not a string"),
    "a key that is bytes": Unstorable({b"a": 2}, (), "the key b'a' is not a string"),
    "bytes": Unstorable({"a": b"x"}, ("a",), "bytes"),
    "a bytearray": Unstorable(bytearray(b"x"), (), "bytearray"),
    "a date": Unstorable([dt.date(2026, 1, 1)], (0,), "date"),
    "a moment": Unstorable(dt.datetime(2026, 1, 1, tzinfo=dt.UTC), (), "datetime"),
    "a set": Unstorable({"a": {1}}, ("a",), "set"),
    "an object": Unstorable({"a": object()}, ("a",), "object"),
    "a function": Unstorable([len], (0,), "builtin_function"),
    "a complex number": Unstorable(1j, (), "complex"),
    "raw JSON": Unstorable(msgspec.Raw(b"1"), (), "Raw"),
    "content among free-form values": Unstorable({"a": TextContent(text="x")}, ("a",), "TextContent is not allowed"),
    "content in a list of free-form values": Unstorable([TextContent(text="x")], (0,), "TextContent is not allowed"),
    "content as a free-form value": Unstorable(TextContent(text="x"), (), "TextContent is not allowed"),
    "an integer that is too long": Unstorable([10**MAX_DIGITS], (0,), "4,300 digits"),
    "a negative integer that is too long": Unstorable([-(10**MAX_DIGITS)], (0,), "4,300 digits"),
    "one level too many": Unstorable(nested(MAX_NESTING - 2), (0,) * (MAX_NESTING - 3), "200 levels"),
    "five hundred levels": Unstorable(nested(500), (0,) * (MAX_NESTING - 3), "200 levels"),
    "a hundred thousand levels": Unstorable(nested(100_000), (0,) * (MAX_NESTING - 3), "200 levels"),
    "a list that contains itself twice": Unstorable(LOOP, (0,) * (MAX_NESTING - 3), "200 levels"),
    "a dict that contains itself": Unstorable(KEYED_LOOP, ("again",) * (MAX_NESTING - 3), "200 levels"),
    "NaN beside a lone surrogate": Unstorable(["\ud800", math.nan], (1,), "nan"),
}


@pytest.mark.parametrize(("value", "path", "reason"), UNSTORABLE.values(), ids=UNSTORABLE.keys())
def test_a_free_form_value_is_not_written_if_it_holds(value, path, reason):
    context = with_details(value)
    with pytest.raises(DumpError, match=re.escape(reason)) as caught:
        dump(context)
    assert caught.value.path == ("messages", 0, "details", *path)
    with pytest.raises(DumpError, match=re.escape(reason)) as caught:
        dump_message(context.messages[0])
    assert caught.value.path == ("details", *path)


NAN: Final = {"x": math.nan}
ORIGIN: Final = Origin(protocol="openai-chat", provider="openai", model="gpt-5")
EVERYWHERE: Final[Mapping[str, tuple[Context, tuple[str | int, ...]]]] = {
    "arguments": (with_arguments(NAN), ("messages", 0, "content", 0, "arguments", "x")),
    "a native block": (
        Context(messages=(UserMessage(content=(NativeContent(protocol="p", block=NAN),)),)),
        ("messages", 0, "content", 0, "block", "x"),
    ),
    "the extra of a fallback": (
        Context(
            messages=(
                UserMessage(
                    content=(NativeContent(protocol="p", block={}, fallback=(TextContent(text="", extra={"a": NAN}),)),)
                ),
            )
        ),
        ("messages", 0, "content", 0, "fallback", 0, "extra", "a", "x"),
    ),
    "the extra of text": (
        Context(messages=(UserMessage(content=(TextContent(text="", extra={"a": NAN}),)),)),
        ("messages", 0, "content", 0, "extra", "a", "x"),
    ),
    "the extra of a result's text": (
        Context(messages=(ToolResultMessage(tool_call_id="", content=(TextContent(text="", extra={"a": NAN}),)),)),
        ("messages", 0, "content", 0, "extra", "a", "x"),
    ),
    "the extra of a reply's text": (
        Context(messages=(AssistantMessage(content=(TextContent(text="", extra={"a": NAN}),)),)),
        ("messages", 0, "content", 0, "extra", "a", "x"),
    ),
    "the extra of thinking": (
        Context(messages=(AssistantMessage(content=(ThinkingContent(thinking="", extra={"a": NAN}),)),)),
        ("messages", 0, "content", 0, "extra", "a", "x"),
    ),
    "the extra of a call": (
        Context(messages=(AssistantMessage(content=(ToolCall(id="", name="", extra={"a": NAN}),)),)),
        ("messages", 0, "content", 0, "extra", "a", "x"),
    ),
    "the extra of a user message": (
        Context(messages=(UserMessage(content=(), extra={"a": NAN}),)),
        ("messages", 0, "extra", "a", "x"),
    ),
    "the extra of an assistant message": (
        Context(messages=(AssistantMessage(content=(), extra={"a": NAN}),)),
        ("messages", 0, "extra", "a", "x"),
    ),
    "the extra of a tool result": (
        Context(messages=(ToolResultMessage(tool_call_id="", content=(), extra={"a": NAN}),)),
        ("messages", 0, "extra", "a", "x"),
    ),
    "the extra of a system message": (
        Context(messages=(SystemMessage(content=(), extra={"a": NAN}),)),
        ("messages", 0, "extra", "a", "x"),
    ),
    "the extra of the usage": (
        Context(messages=(AssistantMessage(content=(), usage=Usage(extra={"a": NAN})),)),
        ("messages", 0, "usage", "extra", "a", "x"),
    ),
    "the extra of the cost": (
        Context(messages=(AssistantMessage(content=(), usage=Usage(cost=UsageCost(extra={"a": NAN}))),)),
        ("messages", 0, "usage", "cost", "extra", "a", "x"),
    ),
    "a cost": (
        Context(messages=(AssistantMessage(content=(), usage=Usage(cost=UsageCost(cache_read=math.nan))),)),
        ("messages", 0, "usage", "cost", "cacheRead"),
    ),
    "the details of a diagnostic": (
        Context(messages=(AssistantMessage(content=(), diagnostics=(Diagnostic(type="", details=NAN),)),)),
        ("messages", 0, "diagnostics", 0, "details", "x"),
    ),
    "the extra of a diagnostic": (
        Context(messages=(AssistantMessage(content=(), diagnostics=(Diagnostic(type="", extra={"a": NAN}),)),)),
        ("messages", 0, "diagnostics", 0, "extra", "a", "x"),
    ),
    "the schema of a tool": (
        Context(tools=(ToolDefinition(name="", parameters=NAN),)),
        ("tools", 0, "parameters", "x"),
    ),
    "the extra of a tool": (
        Context(tools=(ToolDefinition(name="", extra={"a": NAN}),)),
        ("tools", 0, "extra", "a", "x"),
    ),
    "a native tool": (Context(tools=(NativeTool(protocol="", definition=NAN),)), ("tools", 0, "definition", "x")),
    "the system prompt": (
        Context(system_prompt=(NativeContent(protocol="", block=NAN),)),
        ("systemPrompt", 0, "block", "x"),
    ),
    "the extra of a summary": (
        Context(summaries=(Summary(covers=1, text="", extra={"a": NAN}),)),
        ("summaries", 0, "extra", "a", "x"),
    ),
    "the extra of the origin of a summary": (
        Context(summaries=(Summary(covers=1, text="", origin=replace(ORIGIN, extra={"a": NAN})),)),
        ("summaries", 0, "origin", "extra", "a", "x"),
    ),
    "the extra of the conversation": (Context(extra={"a": NAN}), ("extra", "a", "x")),
}


@pytest.mark.parametrize(("context", "path"), EVERYWHERE.values(), ids=EVERYWHERE.keys())
def test_a_value_that_json_cannot_represent_is_found_in(context, path):
    with pytest.raises(DumpError, match="nan") as caught:
        dump(context)
    assert caught.value.path == path
    for message in context.messages:
        with pytest.raises(DumpError, match="nan") as caught:
            dump_message(message)
        assert caught.value.path == path[2:]
    for summary in context.summaries:
        with pytest.raises(DumpError, match="nan") as caught:
            dump_summary(summary)
        assert caught.value.path == path[2:]


SUMMARIES: Final[Mapping[str, tuple[object, tuple[str, ...]]]] = {
    "a negative number of messages": (Summary(covers=-1, text=""), ("covers",)),
    "text for the number of messages": (Summary(covers="1", text=""), ("covers",)),  # type: ignore[arg-type]
    "true for the number of messages": (Summary(covers=True, text=""), ("covers",)),
    "a text that is none": (Summary(covers=1, text=None), ("text",)),  # type: ignore[arg-type]
    "an origin that is text": (Summary(covers=1, text="", origin="gpt-5"), ("origin",)),  # type: ignore[arg-type]
    "an origin without a model": (
        Summary(covers=1, text="", origin=replace(ORIGIN, model=None)),  # type: ignore[arg-type]
        ("origin", "model"),
    ),
    "a timestamp that is text": (Summary(covers=1, text="", timestamp="now"), ("timestamp",)),  # type: ignore[arg-type]
    "an extra that is a list": (Summary(covers=1, text="", extra=[]), ("extra",)),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("summary", "path"), SUMMARIES.values(), ids=SUMMARIES.keys())
def test_a_summary_is_not_written_that_has(summary, path):
    with pytest.raises(DumpError) as caught:
        dump_summary(summary)
    assert caught.value.path == path
    with pytest.raises(DumpError) as caught:
        dump(Context(summaries=(summary,)))
    assert caught.value.path == ("summaries", 0, *path)


def test_a_value_of_another_type_is_no_summary():
    with pytest.raises(DumpError, match="expected a Summary"):
        dump_summary("hi")  # type: ignore[arg-type]
    with pytest.raises(DumpError) as caught:
        dump(Context(summaries=("hi",)))  # type: ignore[arg-type]
    assert caught.value.path == ("summaries", 0)


@pytest.mark.parametrize("given", [{"role": "user"}, {"role": "user", "content": [{"type": "text", "text": "hi"}]}])
def test_an_object_with_the_json_of_a_message_is_no_message(given):
    with pytest.raises(DumpError, match="expected a message, got dict"):
        dump_message(given)
    with pytest.raises(DumpError, match="expected a message, got dict") as caught:
        dump(Context(messages=(UserMessage.of("hi"), given)))
    assert caught.value.path == ("messages", 1)


def with_nesting(context: Context) -> bytes:
    """Put as many levels as possible, and one more, in place of the NaN of a case."""
    return msgspec.json.encode(Document(format="segue/1", **msgspec.structs.asdict(context)))


@pytest.mark.parametrize(("context", "path"), EVERYWHERE.values(), ids=EVERYWHERE.keys())
def test_nesting_is_counted_exactly_when_loading(context, path):
    if path[-1] != "x":
        return  # a cost holds no levels
    # msgspec writes the NaN of the case as null, which gives the place to put lists in.
    frame = with_nesting(context)
    assert frame.count(b'{"x":null}') == 1
    for levels, is_readable in ((MAX_NESTING - len(path), True), (MAX_NESTING - len(path) + 1, False)):
        data = frame.replace(b'{"x":null}', b'{"x":' + b"[" * levels + b"]" * levels + b"}")
        if is_readable:
            assert dump(load(data)) == data
            continue
        with pytest.raises(LoadError, match="200 levels") as caught:
            load(data)
        assert caught.value.path[: len(path)] == path


def test_a_message_alone_may_nest_as_deep_as_in_a_conversation():
    deepest = with_details(nested(MAX_NESTING - ABOVE_A_MESSAGE - 1))
    assert load_message(dump_message(deepest.messages[0])) == load(dump(deepest)).messages[0]
    too_deep = msgspec.json.encode(with_details(nested(MAX_NESTING - ABOVE_A_MESSAGE)).messages[0])
    with pytest.raises(LoadError, match="200 levels"):
        load_message(too_deep)


MISTAKES: Final[Mapping[str, tuple[object, tuple[str | int, ...]]]] = {
    "None in place of a message": (None, ()),
    "text in place of a message": ("hi", ()),
    "a conversation in place of a message": (EVERYTHING, ()),
    "None in place of content": (UserMessage(content=(None,)), ("content", 0)),  # type: ignore[arg-type]
    "text in place of content": (UserMessage(content=("hi",)), ("content", 0)),  # type: ignore[arg-type]
    "a message in place of content": (UserMessage(content=(UserMessage.of("hi"),)), ("content", 0, "type")),  # type: ignore[arg-type]
    "None in place of text": (UserMessage.of(TextContent(text=None)), ("content", 0, "text")),  # type: ignore[arg-type]
    "None in place of a reply's text": (
        AssistantMessage(content=(TextContent(text=None),)),  # type: ignore[arg-type]
        ("content", 0, "text"),
    ),
    "None in place of thinking": (
        AssistantMessage(content=(ThinkingContent(thinking=None),)),  # type: ignore[arg-type]
        ("content", 0, "thinking"),
    ),
    "bytes in place of a result's text": (
        ToolResultMessage(tool_call_id="a", content=(TextContent(text=b"x"),)),  # type: ignore[arg-type]
        ("content", 0, "text"),
    ),
    "text in place of arguments": (
        AssistantMessage(content=(ToolCall(id="a", name="b", arguments="{}"),)),  # type: ignore[arg-type]
        ("content", 0, "arguments"),
    ),
    "text in place of a native block": (
        UserMessage(content=(NativeContent(protocol="a", block="{}"),)),  # type: ignore[arg-type]
        ("content", 0, "block"),
    ),
}


@pytest.mark.parametrize(("message", "path"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_value_that_could_not_be_loaded_again_is_not_written(message, path):
    with pytest.raises(DumpError) as caught:
        dump_message(message)  # type: ignore[arg-type]
    assert caught.value.path in {path, (*path, "role")}
    with pytest.raises(DumpError) as caught:
        dump(Context(messages=(message,)))  # type: ignore[arg-type]
    assert caught.value.path[: 2 + len(path)] == ("messages", 0, *path)


SLIPS: Final[Mapping[str, tuple[object, tuple[str | int, ...]]]] = {
    "a fraction in place of a moment": (UserMessage(content=(), timestamp=1.5), ("timestamp",)),  # type: ignore[arg-type]
    "a fraction on a reply": (AssistantMessage(content=(), timestamp=1.5), ("timestamp",)),  # type: ignore[arg-type]
    "a fraction on a result": (
        ToolResultMessage(tool_call_id="a", content=(), timestamp=1.5),  # type: ignore[arg-type]
        ("timestamp",),
    ),
    "no id of the call": (ToolResultMessage(tool_call_id=None, content=()), ("toolCallId",)),  # type: ignore[arg-type]
    "a call without an id": (
        AssistantMessage(content=(ToolCall(id=None, name="a"),)),  # type: ignore[arg-type]
        ("content", 0, "id"),
    ),
    "a call without a name": (
        AssistantMessage(content=(ToolCall(id="a", name=None),)),  # type: ignore[arg-type]
        ("content", 0, "name"),
    ),
    "an extra that is no object of objects": (UserMessage(content=(), extra={"a": 1}), ("extra",)),  # type: ignore[arg-type]
    "a cost that is text": (
        AssistantMessage(content=(), usage=Usage(cost=UsageCost(total="1"))),  # type: ignore[arg-type]
        ("usage", "cost", "total"),
    ),
    "a string that is no stop reason": (AssistantMessage(content=(), stop_reason="end_turn"), ("stopReason",)),  # type: ignore[arg-type]
    "an error that is no text": (AssistantMessage(content=(), error_message={"code": 1}), ("errorMessage",)),  # type: ignore[arg-type]
    "a number in place of a flag": (
        ToolResultMessage(tool_call_id="a", content=(), is_error=1),  # type: ignore[arg-type]
        ("isError",),
    ),
    "a signature in bytes": (
        AssistantMessage(content=(ThinkingContent(thinking="", thinking_signature=b"x"),)),  # type: ignore[arg-type]
        ("content", 0, "thinkingSignature"),
    ),
    "a call's signature in bytes": (
        AssistantMessage(content=(ToolCall(id="a", name="b", thought_signature=b"x"),)),  # type: ignore[arg-type]
        ("content", 0, "thoughtSignature"),
    ),
    "a text's signature in bytes": (
        AssistantMessage(content=(TextContent(text="", text_signature=b"x"),)),  # type: ignore[arg-type]
        ("content", 0, "textSignature"),
    ),
    "a number in place of the text of arguments": (
        AssistantMessage(content=(ToolCall(id="a", name="b", arguments_text=1),)),  # type: ignore[arg-type]
        ("content", 0, "argumentsText"),
    ),
    "a number in place of an address": (UserMessage.of(ImageContent(url=1)), ("content", 0, "url")),  # type: ignore[arg-type]
    "a number in place of a file's name": (UserMessage.of(FileContent(name=1)), ("content", 0, "name")),  # type: ignore[arg-type]
    "a number in place of a native block's protocol": (
        UserMessage.of(NativeContent(protocol=1, block={})),  # type: ignore[arg-type]
        ("content", 0, "protocol"),
    ),
    "a diagnostic without a type": (
        AssistantMessage(content=(), diagnostics=(Diagnostic(type=None),)),  # type: ignore[arg-type]
        ("diagnostics", 0, "type"),
    ),
}


@pytest.mark.parametrize(("message", "path"), SLIPS.values(), ids=SLIPS.keys())
def test_common_mistakes_are_not_written(message, path):
    with pytest.raises(DumpError) as caught:
        dump_message(message)  # type: ignore[arg-type]
    assert caught.value.path == path
    with pytest.raises(DumpError) as caught:
        dump(Context(messages=(message,)))  # type: ignore[arg-type]
    assert caught.value.path == ("messages", 0, *path)


BESIDES: Final[Mapping[str, tuple[Context, tuple[str | int, ...]]]] = {
    "a tool without a name": (
        Context(tools=(ToolDefinition(name=None),)),  # type: ignore[arg-type]
        ("tools", 0, "name"),
    ),
    "a tool whose flag is a string": (
        Context(tools=(ToolDefinition(name="a", strict="yes"),)),  # type: ignore[arg-type]
        ("tools", 0, "strict"),
    ),
    "a tool whose schema is text": (
        Context(tools=(ToolDefinition(name="a", parameters="{}"),)),  # type: ignore[arg-type]
        ("tools", 0, "parameters"),
    ),
    "a native tool of no protocol": (
        Context(tools=(NativeTool(protocol=None, definition={}),)),  # type: ignore[arg-type]
        ("tools", 0, "protocol"),
    ),
    "a prompt that is a number": (Context(system_prompt=1), ("systemPrompt",)),  # type: ignore[arg-type]
}


class Foreign(msgspec.Struct, tag="user", tag_field="role"):
    """A message of another library, with the fields of one."""

    content: tuple[TextContent, ...] = ()
    extra: None = None


def test_a_message_of_another_class_is_not_written():
    for content in ((), (TextContent(text="hi"),)):
        with pytest.raises(DumpError, match="a value of type Foreign") as caught:
            dump(Context(messages=(Foreign(content=content),)))  # type: ignore[arg-type]
        assert caught.value.path == ("messages", 0)


@pytest.mark.parametrize(("context", "path"), BESIDES.values(), ids=BESIDES.keys())
def test_a_conversation_is_not_written_with(context, path):
    with pytest.raises(DumpError) as caught:
        dump(context)
    assert caught.value.path == path


REREAD: Final[Mapping[str, tuple[object, tuple[str | int, ...]]]] = {
    "bytes in place of a model": (AssistantMessage(content=(), model=b"x"), ("model",)),  # type: ignore[arg-type]
    "a number in place of a response id": (AssistantMessage(content=(), response_id=1), ("responseId",)),  # type: ignore[arg-type]
    "a count that is no whole number": (
        AssistantMessage(content=(), usage=Usage(input=1.5)),  # type: ignore[arg-type]
        ("usage", "input"),
    ),
}


@pytest.mark.parametrize(("message", "path"), REREAD.values(), ids=REREAD.keys())
def test_a_message_is_loaded_again_before_it_is_returned(message, path):
    with pytest.raises(DumpError) as caught:
        dump_message(message)  # type: ignore[arg-type]
    assert caught.value.path == path


@pytest.mark.parametrize("value", [None, "hi", UserMessage.of("hi"), {}], ids=repr)
def test_only_a_conversation_is_dumped_as_one(value):
    with pytest.raises(DumpError, match="expected a Context"):
        dump(value)


def test_only_text_and_bytes_are_loaded():
    for value in (None, 1, ["{}"]):
        with pytest.raises(LoadError, match="expected JSON as bytes or text"):
            load(value)  # type: ignore[arg-type]


def test_an_interpreter_that_converts_fewer_digits_stores_fewer():
    default = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        for details in (10**1000, ["\ud800", 10**1000]):
            with pytest.raises(DumpError, match="640 digits"):
                dump(with_details(details))
        with pytest.raises(LoadError, match="digits"):
            load(b'{"format":"segue/1","extra":{"a":{"b":' + b"1" * 1000 + b"}}}")
    finally:
        sys.set_int_max_str_digits(default)


@pytest.mark.parametrize("wrong", [TextContent(text=1), TextContent(text="b", extra={"p": 1})])  # pyright: ignore[reportArgumentType]
def test_a_wrong_value_is_found_next_to_an_extra_that_several_texts_share(wrong):
    right = AssistantMessage(content=(TextContent(text="a", extra={"p": {"key": "value"}}),))
    shared = replace(wrong, extra=wrong.extra or right.content[0].extra)
    with pytest.raises(DumpError):
        dump(Context(messages=(right, right, AssistantMessage(content=(shared,)), right)))
