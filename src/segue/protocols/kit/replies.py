"""Whole replies of the chat wires: why they stopped, and how they were spelt.

A reply is written the usual way. What the one that was read had said differently is kept with the message, and only the
way back to a reply looks at it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import cast

from segue.conversation.content import Extra
from segue.conversation.messages import StopReason
from segue.protocols.kit.reading import of_reply, reply_extra
from segue.protocols.kit.retired_format import Block, Wire, difference, restored


def read_stop(reasons: Mapping[str, StopReason], reason: str | None, kinds: Collection[str]) -> StopReason:
    """Say why a reply that came to its end stopped; `kinds` are those of its content.

    A reason nobody knows ends a reply that said something: throwing its words away would be the worse mistake. One that
    said nothing has failed. A reply that stopped with calls in it waits for their results, whatever it says.
    """
    found = StopReason.STOP if reason is None else reasons.get(reason)
    if found is None:
        found = StopReason.STOP if kinds else StopReason.ERROR
    return StopReason.TOOL_USE if found == StopReason.STOP and "toolCall" in kinds else found


def ended_with(reason: str | None, stop: StopReason) -> str | None:
    """Say in words that a reply ended badly; None when it did not."""
    if stop not in (StopReason.ERROR, StopReason.ABORTED):
        return None
    return f"the reply ended with {reason or stop.value}"


def keep_reply(protocol: str, default: Wire, given: Block, extra: Extra | None = None) -> Extra | None:
    """Keep what a reply said differently from how we would have written it, beside what goes back with the turn."""
    found = difference(default, given)
    return extra if found is None else {**(extra or {}), **of_reply(protocol, found)}


def restore_reply(protocol: str, default: Wire, extra: Extra | None) -> Wire:
    """Spell a reply the way `keep_reply` kept it."""
    return cast("Wire", restored(default, reply_extra(extra, protocol)))
