"""The parts that Mistral and Cohere share: what was changed after decoding is written in the default format."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from protocols.cohere_chat.endpoints import PLAIN
from protocols.mistral_chat.endpoints import LARGE
from segue.conversation.content import TextContent
from segue.conversation.context import Context, Prompt, ToolDefinition
from segue.conversation.messages import AssistantMessage, ToolResultMessage, UserMessage
from segue.protocols.cohere_chat.protocol import PROTOCOL as COHERE
from segue.protocols.kit.verbatim import data_of
from segue.protocols.mistral_chat.protocol import PROTOCOL as MISTRAL

HI = {"role": "user", "content": "hi"}
CODECS = [pytest.param(MISTRAL, LARGE, id="mistral-chat"), pytest.param(COHERE, PLAIN, id="cohere-chat")]
both = pytest.mark.parametrize(("codec", "endpoint"), CODECS)


def decoded(codec, endpoint, *messages, **body) -> Prompt:
    return codec.decode_request({"model": "m", "messages": list(messages), **body}, endpoint)


def encoded(codec, endpoint, context) -> Any:
    return codec.encode_request(Prompt(context=context, model="m"), endpoint)


@both
def test_a_system_prompt_that_was_removed_leaves_no_message(codec, endpoint):
    for content in ("Be brief.", [], None):
        context = decoded(codec, endpoint, {"role": "system", "content": content, "name": "x", "n": None}, HI).context
        assert encoded(codec, endpoint, replace(context, system_prompt=None))["messages"] == [HI]


@both
def test_a_system_prompt_that_was_changed_keeps_its_data(codec, endpoint):
    context = decoded(codec, endpoint, {"role": "system", "content": "Be brief.", "name": "x"}, HI).context
    assert data_of(context.extra, codec.name) == {"system": {"name": "x"}}
    changed = encoded(codec, endpoint, replace(context, system_prompt="Be long."))["messages"][0]
    assert changed == {"role": "system", "content": "Be long.", "name": "x"}


@both
def test_tools_that_were_added_replace_an_empty_list(codec, endpoint):
    context = decoded(codec, endpoint, HI, tools=[]).context
    assert encoded(codec, endpoint, context)["tools"] == []
    assert len(encoded(codec, endpoint, replace(context, tools=(ToolDefinition(name="f"),)))["tools"]) == 1


@both
def test_a_result_without_an_id_gets_the_id_that_projection_gave_its_call(codec, endpoint):
    call = {"id": "abcdef123", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [{"role": "assistant", "content": "", "tool_calls": [call]}, {"role": "tool", "content": "ok"}]
    context = decoded(codec, endpoint, HI, *messages).context
    assert encoded(codec, endpoint, context)["messages"][2] == messages[1]
    result = context.messages[2]
    assert isinstance(result, ToolResultMessage)
    renamed = replace(context, messages=(*context.messages[:2], replace(result, tool_call_id="zzzzzz123")))
    assert encoded(codec, endpoint, renamed)["messages"][2]["tool_call_id"] == "zzzzzz123"


@both
def test_a_changed_text_keeps_its_list(codec, endpoint):
    context = decoded(codec, endpoint, {"role": "user", "content": [{"type": "text", "text": "hi"}]}).context
    changed = replace(context.messages[0], content=(TextContent(text="bye"),))
    written = encoded(codec, endpoint, replace(context, messages=(changed,)))["messages"]
    assert written == [{"role": "user", "content": [{"type": "text", "text": "bye"}]}]


@both
def test_the_format_of_older_stored_files_is_ignored(codec, endpoint):
    old = {codec.name: {"shape": {"content": "list", "system": {"content": "null"}, "name": True, "no_id": "x"}}}
    messages = (
        UserMessage(content=(TextContent(text="hi", extra=old),), extra=old),
        AssistantMessage(content=(TextContent(text="yes", extra=old),), extra=old),
        ToolResultMessage(tool_call_id="x", tool_name="f", content=(), extra=old),
    )
    context = Context(
        system_prompt="Be brief.", messages=messages, tools=(ToolDefinition(name="f", extra=old),), extra=old
    )
    plain = Context(
        system_prompt="Be brief.",
        messages=(
            UserMessage.of("hi"),
            AssistantMessage(content=(TextContent(text="yes"),)),
            ToolResultMessage(tool_call_id="x", tool_name="f", content=()),
        ),
        tools=(ToolDefinition(name="f"),),
    )
    assert encoded(codec, endpoint, context) == encoded(codec, endpoint, plain)
