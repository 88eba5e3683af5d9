"""The value types: names of fields, allowed content, methods, and that values are frozen."""

from __future__ import annotations

import pickle
from copy import deepcopy
from typing import Final, get_args

import msgspec
import pytest

from samples import EVERYTHING
from segue.conversation.content import (
    AnyContent,
    AssistantContent,
    FallbackContent,
    FileContent,
    ImageContent,
    NativeContent,
    SystemContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultContent,
    UserContent,
)
from segue.conversation.context import Context, NativeTool, Options, Origin, Prompt, Summary, Tool, ToolDefinition
from segue.conversation.messages import (
    AssistantMessage,
    Diagnostic,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    Usage,
    UsageCost,
    UserMessage,
)

IMAGE: Final = ImageContent(data="aGk=", mime_type="image/png")
TEXT: Final = TextContent(text="hi")
CALL: Final = ToolCall(id="1", name="look")

FIELDS: Final = {
    TextContent: "text text_signature phase cache_mark extra",
    ImageContent: "data url mime_type cache_mark extra",
    FileContent: "data url file_id mime_type name context cache_mark extra",
    ThinkingContent: "thinking thinking_signature redacted cache_mark extra",
    ToolCall: "id name arguments arguments_text thought_signature cache_mark extra",
    NativeContent: "protocol block fallback cache_mark extra",
    UserMessage: "content timestamp extra",
    AssistantMessage: (
        "content protocol provider model response_model response_id usage stop_reason raw_stop_reason error_message"
        " diagnostics prefix sent timestamp extra"
    ),
    ToolResultMessage: "tool_call_id tool_name content is_error details cache_mark timestamp extra",
    SystemMessage: "content extra",
    Usage: "input output cache_read cache_write reasoning total_tokens cost extra",
    UsageCost: "input output cache_read cache_write total extra",
    Diagnostic: "type message details timestamp extra",
    ToolDefinition: "name description parameters strict cache_mark extra",
    NativeTool: "protocol definition cache_mark extra",
    Context: "system_prompt messages tools summaries pins extra",
    Summary: "covers text origin timestamp extra",
    Origin: "protocol provider model extra",
    Options: (
        "max_tokens temperature top_p stop seed thinking tool_choice parallel_tool_calls output_schema cache_retention"
        " session_id user_id stream shared extra"
    ),
    Prompt: "context options model anchored plain_system",
}


@pytest.mark.parametrize(("kind", "names"), FIELDS.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_the_fields_have_the_names_that_other_programs_rely_on(kind, names):
    assert sorted(kind.__struct_fields__) == sorted(names.split())


PLACES: Final = {
    "user": (UserContent, {TextContent, ImageContent, FileContent, NativeContent}),
    "assistant": (AssistantContent, {TextContent, ThinkingContent, ToolCall, NativeContent}),
    "tool result": (ToolResultContent, {TextContent, ImageContent, FileContent, NativeContent}),
    "system": (SystemContent, {TextContent, NativeContent}),
    "fallback": (FallbackContent, {TextContent, ImageContent, FileContent}),
}


@pytest.mark.parametrize(("union", "kinds"), PLACES.values(), ids=PLACES.keys())
def test_the_content_that_is_allowed_in(union, kinds):
    assert set(get_args(union)) == kinds


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, "kind") for kind in (*get_args(AnyContent), *get_args(Tool))] + [(m, "role") for m in get_args(Message)],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_the_tag_of_a_value_is_the_same_in_python_and_json(kind, name):
    assert getattr(kind, name) == kind.__struct_config__.tag


def test_plain_strings_and_content_make_a_user_message():
    assert UserMessage.of("hi", IMAGE, timestamp=1) == UserMessage(content=(TEXT, IMAGE), timestamp=1)
    assert UserMessage.of() == UserMessage(content=())
    assert SystemMessage.of("hi") == SystemMessage(content=(TEXT,))


def test_the_text_of_a_reply_joins_its_texts_and_skips_thinking_and_calls():
    reply = AssistantMessage(
        content=(
            ThinkingContent(thinking="hm"),
            TEXT,
            CALL,
            NativeContent(protocol="p", block={}, fallback=(TextContent(text="fallback"),)),
            TextContent(text=" there"),
        )
    )
    assert reply.text() == "hi there"
    assert AssistantMessage(content=(CALL,)).text() == ""


def test_the_calls_of_a_reply_come_in_order():
    second = ToolCall(id="2", name="look", arguments={"at": "b"})
    assert AssistantMessage(content=(CALL, TEXT, second)).tool_calls() == (CALL, second)
    assert AssistantMessage(content=(TEXT,)).tool_calls() == ()


def test_a_stop_reason_equals_its_string():
    assert [str(reason) for reason in StopReason] == ["stop", "length", "toolUse", "error", "aborted"]
    assert AssistantMessage(content=(), stop_reason="error").stop_reason == StopReason.ERROR  # type: ignore[arg-type]


def test_adding_gives_a_new_conversation():
    first, second, third = (UserMessage.of(text) for text in "abc")
    before = Context(system_prompt="Be brief.", messages=(first,), tools=(ToolDefinition(name="look"),))
    after = before.add(second, third)
    assert after == Context(system_prompt="Be brief.", messages=(first, second, third), tools=before.tools)
    assert before.messages == (first,)
    assert after.messages[0] is first


def test_adding_a_summary_gives_a_new_conversation():
    before = Context(messages=(UserMessage.of("a"),))
    summary = Summary(covers=1, text="a letter")
    assert before.add_summary(summary) == Context(messages=before.messages, summaries=(summary,))
    assert before.summaries == ()


def test_adding_to_a_list_gives_a_tuple():
    context = Context(messages=[UserMessage.of("a")])  # type: ignore[arg-type]
    assert context.add(UserMessage.of("b")).messages == (UserMessage.of("a"), UserMessage.of("b"))


def values(value: object) -> list[msgspec.Struct]:
    """Every value of ours inside a value."""
    if isinstance(value, msgspec.Struct):
        inside = [getattr(value, name) for name in value.__struct_fields__]
        return [value, *(found for item in inside for found in values(item))]
    return [found for item in value for found in values(item)] if isinstance(value, tuple) else []


@pytest.mark.parametrize(
    "value", [*values(EVERYTHING), Options(), Prompt(context=Context())], ids=lambda v: type(v).__name__
)
def test_a_value_cannot_be_changed_and_can_be_copied(value):
    for name in value.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(value, name, None)
    assert pickle.loads(pickle.dumps(value)) == value == deepcopy(value)


def test_values_take_their_fields_by_name_only_but_a_text():
    assert TextContent("hi") == TextContent(text="hi")
    with pytest.raises(TypeError):
        ThinkingContent("hm")  # type: ignore[misc]  # pyright: ignore[reportCallIssue]
