"""What a turn keeps of its reply is told to nobody: it stays with the turn wherever that goes, and is no change."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from projection.building import GPT, GPT_AZURE, GPT_CHAT, GPT_NEXT, SONNET
from segue.conversation.content import Extra, TextContent, ThinkingContent
from segue.conversation.context import Context
from segue.conversation.messages import AssistantMessage, UserMessage
from segue.projection.projector import project
from segue.protocols.api import encode_response
from segue.request import prepare

HI = UserMessage.of("hi")
REPLY: Extra = {"reply": {"openai-responses": {"in": {"service_tier": {"to": "default"}, "odd": {"to": "\ud800"}}}}}
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
DATA: Extra = {**REPLY, "openai-responses": {"odd": 1}}
CASES = {
    "at home it stays": (by_gpt(), GPT, REPLY, []),
    "it stays with another model of the same provider": (by_gpt(), GPT_NEXT, REPLY, []),
    "it stays at another provider of the wire": (by_gpt(), GPT_AZURE, REPLY, []),
    "it stays on another wire": (by_gpt(), SONNET, REPLY, []),
    "it stays on another wire of the same provider": (by_gpt(), GPT_CHAT, REPLY, []),
    "so does what a file said besides": (by_gpt(extra=STORED), SONNET, STORED, []),
    "what a request would say goes": (by_gpt(extra=DATA), SONNET, REPLY, [("messages", 1, "opaque")]),
    "a turn whose seal is broken keeps it": (
        by_gpt(ThinkingContent(thinking="\ud800", thinking_signature="seal"), TextContent(text="yes")),
        GPT,
        REPLY,
        [],
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


@pytest.mark.parametrize("target", [GPT, GPT_AZURE, GPT_CHAT, SONNET], ids=lambda model: model.full_name())
def test_no_request_is_another_for_it(target):
    turns = by_gpt(), replace(by_gpt(), extra=None)
    told, untold = (prepare(Context(messages=(HI, turn, HI)), target) for turn in turns)
    assert told.body == untold.body
    assert told.report == untold.report


def test_a_reply_of_another_wire_is_not_taken_for_ones_own():
    assert encode_response(by_gpt(), protocol="openai-responses")["service_tier"] == "default"
    assert "service_tier" not in encode_response(by_gpt(), protocol="openai-chat")
