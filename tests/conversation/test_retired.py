"""Cache marks and prefixes of files written by earlier versions are loaded as typed fields."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from segue import load, load_message, read_session
from segue.conversation.content import (
    CacheMark,
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    ToolCall,
)
from segue.conversation.context import Context, NativeTool, ToolDefinition
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage
from segue.conversation.stored import Document, dump, dump_message

ANTHROPIC = {"anthropic-messages": {"cache_control": {"type": "ephemeral"}}}
HOUR = {"openai-chat": {"cache_control": {"type": "ephemeral", "ttl": "1h"}}}
BEDROCK = {"bedrock-converse": {"cachePoint": {"type": "default"}}}
SHORT, LONG = CacheMark(), CacheMark(ttl="1h")


def as_json(value: object) -> bytes:
    """Write a value like an earlier version, which had no typed marks; a lone surrogate as its escape."""
    return json.dumps(msgspec.to_builtins(value)).encode("ascii")


def as_stored(context: Context) -> bytes:
    return as_json(Document(format="segue/1", **msgspec.structs.asdict(context)))


def user(**fields: Any) -> Context:
    return Context(messages=(UserMessage.of(TextContent(text="hi", **fields)),))


def result(**fields: Any) -> Context:
    return Context(messages=(ToolResultMessage(tool_call_id="a", content=(TextContent(text="hi"),), **fields),))


def assistant(**fields: Any) -> Context:
    return Context(messages=(AssistantMessage(content=(TextContent(text="hi"),), **fields),))


UPGRADED: dict[str, tuple[Context, Context]] = {
    "a mark of Anthropic": (user(extra=ANTHROPIC), user(cache_mark=SHORT)),
    "a mark of OpenAI chat with a ttl": (user(extra=HOUR), user(cache_mark=LONG)),
    "a cache point of Bedrock": (user(extra=BEDROCK), user(cache_mark=SHORT)),
    "other keys of extra stay": (
        user(extra={"anthropic-messages": {"cache_control": {"type": "ephemeral"}, "a": 1}, "x": {"b": 2}}),
        user(cache_mark=SHORT, extra={"anthropic-messages": {"a": 1}, "x": {"b": 2}}),
    ),
    "other fields of a mark stay": (
        user(extra={"bedrock-converse": {"cachePoint": {"type": "default", "ttl": 5, "a": 1}}}),
        user(cache_mark=CacheMark(extra={"bedrock-converse": {"ttl": 5, "a": 1}})),
    ),
    "an image, a file and a native block": (
        Context(
            messages=(
                UserMessage(
                    content=(
                        ImageContent(data="AAAA", extra=ANTHROPIC),
                        FileContent(file_id="f", extra=ANTHROPIC),
                        NativeContent(protocol="p", block={}, extra=ANTHROPIC),
                    )
                ),
            )
        ),
        Context(
            messages=(
                UserMessage(
                    content=(
                        ImageContent(data="AAAA", cache_mark=SHORT),
                        FileContent(file_id="f", cache_mark=SHORT),
                        NativeContent(protocol="p", block={}, cache_mark=SHORT),
                    )
                ),
            )
        ),
    ),
    "a tool call": (
        Context(messages=(AssistantMessage(content=(ToolCall(id="a", name="b", extra=BEDROCK),)),)),
        Context(messages=(AssistantMessage(content=(ToolCall(id="a", name="b", cache_mark=SHORT),)),)),
    ),
    "a tool result of Anthropic": (result(extra=ANTHROPIC), result(cache_mark=SHORT)),
    "a tool result of Bedrock": (result(extra=BEDROCK), result(cache_mark=SHORT)),
    "tools": (
        Context(tools=(ToolDefinition(name="a", extra=HOUR), NativeTool(protocol="p", definition={}, extra=BEDROCK))),
        Context(
            tools=(ToolDefinition(name="a", cache_mark=LONG), NativeTool(protocol="p", definition={}, cache_mark=SHORT))
        ),
    ),
    "the system prompt": (
        Context(system_prompt=(TextContent(text="a", extra=ANTHROPIC),)),
        Context(system_prompt=(TextContent(text="a", cache_mark=SHORT),)),
    ),
    "a system message": (
        Context(messages=(SystemMessage(content=(TextContent(text="a", extra=ANTHROPIC),)),)),
        Context(messages=(SystemMessage(content=(TextContent(text="a", cache_mark=SHORT),)),)),
    ),
    "a prefix": (assistant(extra={"mistral-chat": {"shape": {"prefix": True}}}), assistant(prefix=True)),
    "a prefix beside other format and data": (
        assistant(extra={"mistral-chat": {"shape": {"prefix": True, "null": ["a"]}, "b": 1}}),
        assistant(prefix=True, extra={"mistral-chat": {"shape": {"null": ["a"]}, "b": 1}}),
    ),
    "text with a lone surrogate, on the slow path": (
        user(extra={**ANTHROPIC, "x": {"a": "\ud800"}}),
        user(cache_mark=SHORT, extra={"x": {"a": "\ud800"}}),
    ),
}

UNCHANGED: dict[str, Context] = {
    "a mark of an unknown type": user(extra={"anthropic-messages": {"cache_control": {"type": "new"}}}),
    "a mark that is not an object": user(extra={"anthropic-messages": {"cache_control": None}}),
    "a mark of another protocol": user(extra={"google-genai": {"cache_control": {"type": "ephemeral"}}}),
    "the key of another protocol": user(extra={"bedrock-converse": {"cache_control": {"type": "ephemeral"}}}),
    "a second mark": user(extra=ANTHROPIC, cache_mark=LONG),
    "a user message, which has no mark": Context(messages=(UserMessage(content=(), extra=ANTHROPIC),)),
    "an OpenAI tool message, which has no mark": result(extra=HOUR),
    "the conversation, which has no mark": Context(extra=ANTHROPIC),
    "a prefix that is false": assistant(extra={"mistral-chat": {"shape": {"prefix": False}}}),
    "a prefix that is set already": assistant(extra={"mistral-chat": {"shape": {"prefix": True}}}, prefix=True),
    "the same keys in arguments": Context(
        messages=(AssistantMessage(content=(ToolCall(id="a", name="b", arguments=ANTHROPIC),)),)
    ),
}


def load_as_session(data: bytes, tmp_path: Any) -> Context:
    path = tmp_path / "session.jsonl"
    path.write_bytes(data + b"\n")
    return read_session(path)


def as_session_lines(context: Context, encode: Callable[[Message], bytes]) -> bytes:
    header = as_stored(msgspec.structs.replace(context, messages=()))
    return b"\n".join([header, *map(encode, context.messages)])


@pytest.mark.parametrize(("old", "new"), UPGRADED.values(), ids=UPGRADED.keys())
def test_a_retired_form_is_loaded_as_a_typed_field(old, new, tmp_path):
    assert load(dump(old)) == new
    assert [load_message(dump_message(message)) for message in old.messages] == list(new.messages)
    data = as_stored(old)
    assert load(data) == new
    assert load_as_session(data, tmp_path) == new
    assert load_as_session(as_session_lines(old, as_json), tmp_path) == new
    assert [load_message(as_json(message)) for message in old.messages] == list(new.messages)


@pytest.mark.parametrize(("old", "new"), UPGRADED.values(), ids=UPGRADED.keys())
def test_a_retired_form_is_never_written(old, new):
    assert dump(old) == dump(new)
    assert list(map(dump_message, old.messages)) == list(map(dump_message, new.messages))
    assert load(dump(new)) == new


@pytest.mark.parametrize("context", UNCHANGED.values(), ids=UNCHANGED.keys())
def test_other_data_in_extra_is_loaded_unchanged(context, tmp_path):
    assert load(dump(context)) == context
    assert load_as_session(as_session_lines(context, dump_message), tmp_path) == context
    assert [load_message(dump_message(message)) for message in context.messages] == list(context.messages)
