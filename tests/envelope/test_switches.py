"""A hundred thousand random switches: no provider ever gets an envelope or a signature of another model."""

from __future__ import annotations

import os
from random import Random

import pytest

from envelope.simulated import (
    HABITS,
    INBOUND,
    TARGETS,
    TOOL,
    Gateway,
    ask,
    decode_as_client,
    make_reply,
    results_of,
    through_wire,
)
from segue.conversation.context import Context
from segue.envelope.envelopes import MARK
from segue.errors import EmptyConversation
from segue.requests.prepare import prepare

SWITCHES = int(os.environ.get("SEGUE_SWITCHES", "100000"))
_LONGEST = 12
"""Replies of one conversation."""


@pytest.mark.proof
@pytest.mark.parametrize("has_store", [True, False])
@pytest.mark.parametrize("protocol", INBOUND)
def test_nothing_foreign_is_sent_in_many_random_switches(protocol: str, has_store: bool) -> None:
    assert _play(protocol, SWITCHES // (2 * len(INBOUND)), has_store=has_store, seed=1) == 0


@pytest.mark.parametrize("protocol", INBOUND)
def test_nothing_foreign_is_sent_in_some_random_switches(protocol: str) -> None:
    assert _play(protocol, 60, has_store=True, seed=2) == 0


def _play(protocol: str, switches: int, *, has_store: bool, seed: int) -> int:
    """Play conversations that switch with every reply; give the number of requests with something foreign."""
    dice = Random(seed)
    gateway = Gateway(dice, has_store=has_store)
    client = Context(tools=(TOOL,))
    found = 0
    for number in range(switches):
        if number % _LONGEST == 0:
            gateway = Gateway(dice, has_store=has_store)
            client = Context(tools=(TOOL,))
        last = client.messages[-1].role if client.messages else "user"
        if last != "toolResult":
            client = client.add(ask(number))
        target = dice.choice(TARGETS)
        sent = through_wire(protocol, client)
        context = gateway.read(sent).context
        try:
            content = prepare(context, target).content.decode()
        except EmptyConversation:
            content = ""
        others = [f"SIG-{other.provider}-" for other in TARGETS if other is not target]
        found += MARK in content or any(name in content for name in others)
        reply = make_reply(dice, target, number)
        events, _ = gateway.reply(protocol, sent, reply, target)
        returned = dice.choice(HABITS)(decode_as_client(protocol, events), dice)
        client = client.add(returned, *results_of(returned, number))
        if dice.random() < 0.05:
            client = Context(tools=(TOOL,), messages=(ask(number), *client.messages[-3:]))
    return found
