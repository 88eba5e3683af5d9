"""`extra["reply"]`, fields that only a reply has, is never sent, stays with its turn, and is never a change."""

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
"""Fields that only a reply has. They are never sent, so half a surrogate pair in them is not a problem."""


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
    "for the same model it is kept": (by_gpt(), GPT, REPLY, []),
    "it stays with another model of the same provider": (by_gpt(), GPT_NEXT, REPLY, []),
    "it stays at another provider of the wire": (by_gpt(), GPT_AZURE, REPLY, []),
    "it stays on another wire": (by_gpt(), SONNET, REPLY, []),
    "it stays on another wire of the same provider": (by_gpt(), GPT_CHAT, REPLY, []),
    "so are unknown fields of a file": (by_gpt(extra=STORED), SONNET, STORED, []),
    "fields that a request would send are removed": (by_gpt(extra=DATA), SONNET, REPLY, [("messages", 1, "opaque")]),
    "a turn that lost its signed block keeps it": (
        by_gpt(ThinkingContent(thinking="\ud800", thinking_signature="sig0"), TextContent(text="yes")),
        GPT,
        REPLY,
        [],
    ),
}


@pytest.mark.parametrize(("turn", "target", "kept", "removed"), CASES.values(), ids=CASES.keys())
def test_fields_of_a_reply_stay_with_their_turn(turn, target, kept, removed):
    context = Context(messages=(HI, turn, HI))
    projection = project(context, target)
    assert projection.context.messages[1].extra == kept
    changes = [change for change in projection.report.changes if change.code == "extra_removed"]
    assert [(*change.path, change.loss) for change in changes] == removed
    assert projection.context.messages[0] is projection.context.messages[2] is HI


@pytest.mark.parametrize("target", [GPT, GPT_AZURE, GPT_CHAT, SONNET], ids=lambda model: model.full_name())
def test_they_do_not_change_the_request(target):
    turns = by_gpt(), replace(by_gpt(), extra=None)
    with_reply, without_reply = (prepare(Context(messages=(HI, turn, HI)), target) for turn in turns)
    assert with_reply.body == without_reply.body
    assert with_reply.report == without_reply.report


def test_they_are_restored_only_over_their_protocol():
    assert encode_response(by_gpt(), protocol="openai-responses")["service_tier"] == "default"
    assert "service_tier" not in encode_response(by_gpt(), protocol="openai-chat")
