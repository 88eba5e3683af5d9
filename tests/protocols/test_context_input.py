"""A text or a list of OpenAI chat messages in place of a `Context`, where a request is made."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

import segue
from segue import (
    AsyncClient,
    AsyncConversation,
    Client,
    Context,
    ContextInput,
    Conversation,
    ConversationError,
    DecodeError,
    EmptyConversation,
    Outbox,
    Projector,
    UserMessage,
    decode_request,
    dump,
    get_model,
    prepare,
)
from segue.protocols.registry import PROTOCOLS, get_protocol

CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Weather in Bergen?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
    {"role": "user", "content": [{"type": "text", "text": "And tomorrow?"}]},
]
GIVEN: dict[str, tuple[ContextInput, Context]] = {
    "a text": ("Hello", Context(messages=(UserMessage.of("Hello"),))),
    "a list": (CHAT, decode_request({"messages": CHAT}, protocol="openai-chat").context),
    "a tuple": (tuple(CHAT), decode_request({"messages": CHAT}, protocol="openai-chat").context),
    "a context": (Context(messages=(UserMessage.of("Hello"),)), Context(messages=(UserMessage.of("Hello"),))),
    "a message": (UserMessage.of("Hello"), Context(messages=(UserMessage.of("Hello"),))),
    "a list of messages": ([UserMessage.of("Hello")], Context(messages=(UserMessage.of("Hello"),))),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("given", "meant"), GIVEN.values(), ids=GIVEN)
def test_a_request_is_that_of_the_context(protocol: str, given: ContextInput, meant: Context):
    model = get_protocol(protocol).example
    assert prepare(given, model).content == prepare(meant, model).content


def test_the_list_is_not_changed():
    before = repr(CHAT)
    prepare(CHAT, "anthropic/claude-opus-4-8")
    assert repr(CHAT) == before


@pytest.mark.parametrize(("given", "meant"), GIVEN.values(), ids=GIVEN)
def test_every_way_to_send_accepts_it(given: ContextInput, meant: Context):
    pytest.importorskip("httpx2")
    expected = "And tomorrow?" if len(meant.messages) > 1 else "Hello"
    assert segue.complete(given, "echo").text() == expected
    assert segue.stream(given, "echo").result().text() == expected
    with Client() as client:
        assert client.complete(given, "echo").text() == expected
        assert client.stream(given, "echo").result().text() == expected
    with Conversation("echo", context=given) as conversation:
        assert conversation.context == meant
        assert conversation.ask().text() == expected

    async def run() -> None:
        async with AsyncClient() as client:
            assert (await client.complete(given, "echo")).text() == expected
            async with client.stream(given, "echo") as stream:
                assert (await stream.result()).text() == expected
        async with AsyncConversation("echo", context=given) as conversation:
            assert (await conversation.ask()).text() == expected

    asyncio.run(run())


WRONG: dict[str, tuple[object, str]] = {
    "nothing": (None, "got None; pass a Context, a text, or a list"),
    "a number": (7, "value of type int; pass a Context"),
    "one message": ({"role": "user", "content": "hi"}, "value of type dict; pass a Context, a text, or a list"),
    "bytes": (b"hi", "value of type bytes"),
    "messages of two kinds": (
        [CHAT[0], UserMessage.of("hi")],
        r"messages\[1\]: .*type UserMessage; .*only messages of",
    ),
    "a text in the list": ([CHAT[0], "hi"], r"messages\[1\]: .*type str"),
    "a role that does not exist": (
        [{"role": "usr", "content": "hi"}],
        r"messages\[0\].role: there is no role 'usr'; use",
    ),
    "no role": ([{"content": "hi"}], r"messages\[0\].role: the message has no role"),
    "no content": ([{"role": "user", "text": "hi"}], r"messages\[0\]: the message has no content; write"),
}


@pytest.mark.parametrize(("given", "reason"), WRONG.values(), ids=WRONG)
def test_anything_else_is_refused_with_what_to_write(given: Any, reason: str):
    with pytest.raises(ConversationError, match=reason):
        prepare(given, "echo")


def test_a_wrong_message_is_located():
    with pytest.raises(DecodeError):
        prepare([{"role": "user", "content": 7}], "echo")
    for empty in ("", []):
        with pytest.raises(EmptyConversation):
            prepare(empty, "echo")


def test_functions_of_stored_conversations_take_a_context_alone():
    model = get_model("echo")
    calls: Sequence[Any] = (
        lambda: Projector(model).project("hi"),  # pyright: ignore[reportArgumentType]
        lambda: Outbox(model).prepare("hi"),  # pyright: ignore[reportArgumentType]
        lambda: dump("hi"),  # pyright: ignore[reportArgumentType]
    )
    for call in calls:
        with pytest.raises(segue.SegueError):
            call()


def test_a_typed_list_is_accepted():
    messages: list[Mapping[str, object]] = [{"role": "user", "content": "hi"}]
    assert prepare(messages, "echo").body["messages"] == messages


def test_the_echo_model_answers_whole_and_streamed():
    pytest.importorskip("httpx2")
    answer = segue.complete("one two three", "echo")
    assert (answer.text(), answer.provider, answer.model, answer.stop_reason) == (
        "one two three",
        "segue",
        "echo",
        "stop",
    )
    assert answer.usage is not None
    assert answer.usage.output == 3
    deltas = [event.delta for event in segue.stream("one two three", "echo") if event.type == "text_delta"]
    assert deltas == ["one ", "two ", "three"]
