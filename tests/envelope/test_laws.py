"""Laws 11 to 13: returned state is transparent, never misused, and its absence is forgiven."""

from __future__ import annotations

from itertools import count
from random import Random
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from envelope.simulated import (
    HABITS,
    INBOUND,
    TARGETS,
    TOOL,
    Gateway,
    ask,
    decode_as_client,
    drop_signatures,
    make_reply,
    results_of,
    rewrite_arguments,
    show,
    thinking_as_text,
    through_wire,
)
from property_testing import scaled_examples
from segue.conversation.content import TextContent
from segue.conversation.context import Context
from segue.conversation.messages import AssistantMessage, Message, StopReason
from segue.conversation.replayed import message_events
from segue.envelope.attaching import Attachment
from segue.envelope.conversation import has_envelopes
from segue.envelope.envelopes import MARK
from segue.envelope.keys import digest_reply
from segue.models.model import Model
from segue.protocols.registry import get_protocol
from segue.requests.prepare import prepare

_JOINED = ("openai-chat", "ollama-chat")
"""Protocols whose messages have one text: thinking as text cannot be told from it."""
SEEDS = st.integers(min_value=0, max_value=2**32)


def test_the_digest_of_a_reply_leaves_out_every_blank_of_its_text():
    def digest(text: str) -> bytes:
        return digest_reply(AssistantMessage(content=(TextContent(text=text),), model="m"))

    # Also next to a character that is not ASCII, which has the digest computed in another way.
    for text in [chr(code) for code in range(0x3001)]:
        assert (digest(f"a{text}b") == digest("ab")) is text.isspace(), ascii(text)
        assert (digest(f"ä{text}b") == digest("äb")) is text.isspace(), ascii(text)


def _run(
    protocol: str, gateway: Gateway, dice: Random, turns: int, habits: tuple[object, ...]
) -> tuple[Context, Context, list[Model]]:
    """Play a conversation; give the true history, and what the gateway restores of what the client sends."""
    true = Context(tools=(TOOL,))
    client = Context(tools=(TOOL,))
    used: list[Model] = []
    for number in range(turns):
        question = ask(number)
        true, client = true.add(question), client.add(question)
        for step in range(3):
            model = dice.choice(TARGETS)
            used.append(model)
            reply = make_reply(dice, model, number * 10 + step)
            if step == 2:
                rest = tuple(piece for piece in reply.content if piece.kind != "toolCall")
                reply = replace(reply, content=(*rest, TextContent(text=f"done {number}")), stop_reason=StopReason.STOP)
            asked = through_wire(protocol, client)
            events, _ = gateway.reply(protocol, asked, reply, model)
            returned = decode_as_client(protocol, events)
            habit = cast("object", dice.choice(habits))
            assert callable(habit)
            client = client.add(cast("AssistantMessage", habit(returned, dice)))
            true = true.add(reply)
            if not reply.tool_calls():
                break
            true = true.add(*results_of(reply, number))
            client = client.add(*results_of(returned, number))
    final = ask(turns)
    return true.add(final), client.add(final), used


@pytest.mark.parametrize("protocol", INBOUND)
@given(seed=SEEDS)
@scaled_examples(1)
def test_a_client_that_returns_what_it_got_has_the_history_of_a_client_of_segue(protocol: str, seed: int) -> None:
    dice = Random(seed)
    gateway = Gateway(dice)
    true, client, _ = _run(protocol, gateway, dice, 3, (rewrite_arguments, HABITS[0]))
    restored = gateway.read(through_wire(protocol, client))
    _expect_same(true, restored.context)
    assert restored.report.changes == ()


@pytest.mark.parametrize("protocol", INBOUND)
@given(seed=SEEDS)
@scaled_examples(1)
def test_a_client_that_drops_signatures_or_shows_thinking_as_text_has_it_too(protocol: str, seed: int) -> None:
    dice = Random(seed)
    gateway = Gateway(dice)
    is_joined = protocol in _JOINED
    true, client, _ = _run(
        protocol, gateway, dice, 3, (drop_signatures,) if is_joined else (drop_signatures, thinking_as_text)
    )
    restored = gateway.read(through_wire(protocol, client))
    _expect_same(true, restored.context)


def _expect_same(true: Context, restored: Context) -> None:
    """Compare with the true history; blanks that the wire cannot hold, and the form of numbers, do not count."""
    ours = [_plain(message) for message in true.messages if _counts(message)]
    theirs = [_plain(message) for message in restored.messages if _counts(message)]
    assert theirs == ours


def _counts(message: Message) -> bool:
    return message.role != "assistant" or bool(message.content)


def _plain(message: Message) -> object:
    if message.role == "toolResult":
        return (message.tool_call_id, list(message.content))
    if message.role == "assistant":
        return message
    return message.content


@pytest.mark.parametrize("has_store", [True, False])
@pytest.mark.parametrize("protocol", INBOUND)
@given(seed=SEEDS)
@scaled_examples(1)
def test_no_envelope_and_no_foreign_signature_reaches_a_provider(protocol: str, seed: int, has_store: bool) -> None:
    dice = Random(seed)
    gateway = Gateway(dice, has_store=has_store)
    _, client, _ = _run(protocol, gateway, dice, 2, HABITS)
    client = _compact(client, dice)
    stranger = Gateway(dice, has_store=False, tenant="other")
    for reader in (gateway, stranger):
        context = reader.read(through_wire(protocol, client)).context
        assert not has_envelopes(context)
        for target in TARGETS:
            content = prepare(context, target).content.decode()
            assert MARK not in content
            others = [f"SIG-{other.provider}-" for other in TARGETS if other is not target]
            if reader is stranger:
                others.append(f"SIG-{target.provider}-")
            assert not [name for name in others if name in content]


def _compact(client: Context, dice: Random) -> Context:
    """Cut the history anywhere, as a client does that summarises it or edits a message."""
    if dice.random() < 0.5:
        return client
    at = dice.randrange(len(client.messages))
    return replace(client, messages=(ask(99), *client.messages[at:]))


@pytest.mark.parametrize("protocol", ["anthropic-messages", "openai-responses", "google-genai", "openai-chat"])
@given(seed=SEEDS)
@scaled_examples(1)
def test_without_a_store_signatures_of_a_turn_with_state_return_to_their_model(protocol: str, seed: int) -> None:
    dice = Random(seed)
    gateway = Gateway(dice, has_store=False)
    true, client, _ = _run(protocol, gateway, dice, 2, (HABITS[0],))
    restored = gateway.read(through_wire(protocol, client)).context
    for target in TARGETS:
        name = f"SIG-{target.provider}-"
        assert _marks(prepare(restored, target).content.decode(), name) == _marks(
            prepare(true, target).content.decode(), name
        )


def _marks(content: str, name: str) -> int:
    return content.count(name)


@pytest.mark.parametrize("protocol", INBOUND)
@pytest.mark.parametrize("has_store", [True, False], ids=["store", "envelopes"])
@given(seed=SEEDS)
def test_a_whole_reply_has_the_state_of_its_streamed_form(protocol, has_store, seed):
    dice = Random(seed)
    model = dice.choice(TARGETS)
    reply = make_reply(dice, model, 1)
    made = []
    for with_deltas in (True, False):
        numbers = count()
        attachment = Attachment(
            get_protocol(protocol).state_slots,
            model,
            None,
            write=lambda state: f"envelope of {len(state.pieces)}",
            new_id=lambda numbers=numbers: f"{next(numbers)}",
            has_store=has_store,
        )
        events = message_events(reply, with_deltas=with_deltas)
        attachment.look_ahead(events)
        for event in events:
            attachment.feed(event, show(event))
        made.append((attachment.seen, attachment.state))
    assert made[0][0] is not None
    assert made[0] == made[1]
