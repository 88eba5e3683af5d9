"""What a turn keeps of its reply is told to nobody, and still goes only where that reply came from."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from projection.building import GPT, GPT_AZURE, GPT_CHAT, GPT_NEXT, SONNET
from segue.conversation.content import Extra, TextContent, ThinkingContent
from segue.conversation.context import Context
from segue.conversation.messages import AssistantMessage, UserMessage
from segue.projection.projector import project

HI = UserMessage.of("hi")
REPLY: Extra = {"openai-responses": {"shape": {"response": {"service_tier": "default", "odd": "\ud800"}}}}
"""What a reply said beyond segue's words: as it is never told, half a character in it harms nobody."""


def by_gpt(*content: TextContent | ThinkingContent, extra: Extra = REPLY) -> AssistantMessage:
    return AssistantMessage(
        content=content or (TextContent(text="yes"),),
        protocol=GPT.protocol,
        provider=GPT.provider,
        model=GPT.id,
        extra=extra,
    )


STORED: Extra = {**REPLY, "stored": {"theirs": 1}}
DATA: Extra = {"openai-responses": {"shape": {"response": {}}, "odd": 1}}
CASES = {
    "at home it stays": (by_gpt(), GPT, REPLY, []),
    "it stays with another model of the same provider": (by_gpt(), GPT_NEXT, REPLY, []),
    "it goes at another provider of the wire": (by_gpt(), GPT_AZURE, None, [("messages", 1, "none")]),
    "it goes on another wire": (by_gpt(), SONNET, None, [("messages", 1, "none")]),
    "it goes on another wire of the same provider": (by_gpt(), GPT_CHAT, None, [("messages", 1, "none")]),
    "what a file said besides stays": (
        by_gpt(extra=STORED),
        SONNET,
        {"stored": {"theirs": 1}},
        [("messages", 1, "none")],
    ),
    "what is more than spelling is a loss": (by_gpt(extra=DATA), SONNET, None, [("messages", 1, "opaque")]),
    "a turn whose seal is broken keeps nothing": (
        by_gpt(ThinkingContent(thinking="\ud800", thinking_signature="seal"), TextContent(text="yes")),
        GPT,
        None,
        [("messages", 1, "none")],
    ),
}


@pytest.mark.parametrize(("turn", "target", "kept", "removed"), CASES.values(), ids=CASES.keys())
def test_what_a_reply_said(turn, target, kept, removed):
    context = Context(messages=(HI, turn, HI))
    projection = project(context, target)
    assert projection.context.messages[1].extra == kept
    changes = [change for change in projection.report.changes if change.code == "extra_removed"]
    assert [(*change.path, change.loss) for change in changes] == removed
    assert projection.context.messages[0] is projection.context.messages[2] is HI


def test_turns_with_and_without_it_are_told_apart_one_by_one():
    bare, ours, theirs = replace(by_gpt(), extra=None), by_gpt(), replace(by_gpt(), provider="azure")
    context = Context(messages=(HI, bare, HI, ours, HI, theirs, HI, bare, HI))
    projection = project(context, GPT)
    assert [message.extra for message in projection.context.messages[1::2]] == [None, REPLY, None, None]
    assert [change.path for change in projection.report.changes] == [("messages", 5)]
