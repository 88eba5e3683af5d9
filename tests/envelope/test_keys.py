"""The keys under which stores have states: what they are made of never changes."""

from __future__ import annotations

from segue.conversation.content import TextContent, ThinkingContent, ToolCall
from segue.conversation.messages import AssistantMessage, UserMessage
from segue.envelope.keys import digest_message, keys_of_reply, keys_of_turns

BEFORE = (UserMessage.of("What is in it?"), UserMessage(content=(TextContent(text=" a "), TextContent(text="b"))))
THINKING = ThinkingContent(thinking="It is better to look at the file first.", thinking_signature="s" * 24)
CALL = ToolCall(id="call_1", name="read", arguments={"path": "a", "line": 1.0})
REPLY = AssistantMessage(content=(THINKING, TextContent(text="I look at the file."), CALL), model="m")
KEYS = (
    "call:3ea06e3ed5aa899838d12e597183e9fc57edf3c1",
    "signature:80aaf9bbf01e6cd073595a9242ac619e752f2875",
    "chain:433218b6d34cf5f07225881f23ca2f75cba369ab",
    "thought:f4386c29cf2c84ef44284dbb3c2edd82e861080a",
    "near:77b797dc7eb5cc290f8676b5ba2cd1ab4352c2b7",
)
"""Those that stores of earlier versions have."""


def test_the_keys_of_a_reply_are_those_that_stores_have() -> None:
    assert keys_of_reply(BEFORE, REPLY, "t", native=True) == KEYS
    assert keys_of_turns((*BEFORE, REPLY), "t")[0][0].keys == KEYS


def test_a_digest_that_is_known_is_used_for_its_own_message_alone() -> None:
    first = BEFORE[0]
    assert keys_of_turns((*BEFORE, REPLY), "t", digested=(first, digest_message(first)))[0][0].keys == KEYS
    assert keys_of_turns((*BEFORE, REPLY), "t", digested=(first, b"\x00" * 32))[0][0].keys != KEYS
    assert keys_of_turns((*BEFORE, REPLY), "t", digested=(UserMessage.of("-"), b"\x00" * 32))[0][0].keys == KEYS
