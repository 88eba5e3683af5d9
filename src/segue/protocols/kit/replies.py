"""Whole replies of the chat protocols: why they stopped, and the format they came in.

A reply is written in the default format. How the received one differs from that is one entry (`kit.verbatim`) under
`reply` of the message's `extra`. Only the encoder of replies reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import cast

from segue.conversation.content import Extra
from segue.conversation.messages import StopReason
from segue.protocols.kit.json_patch import apply, difference
from segue.protocols.kit.json_values import Block, Wire
from segue.protocols.kit.reading import of_reply, reply_extra


def read_stop(reasons: Mapping[str, StopReason], reason: str | None, kinds: Collection[str]) -> StopReason:
    """Give the stop reason of a reply that was received to its end; `kinds` are those of its content.

    With an unknown reason a reply that has content stopped normally, so that the content is not thrown away; one
    without content has failed. A reply that stopped with calls in it waits for their results, whatever its reason.
    """
    found = StopReason.STOP if reason is None else reasons.get(reason)
    if found is None:
        found = StopReason.STOP if kinds else StopReason.ERROR
    return StopReason.TOOL_USE if found == StopReason.STOP and "toolCall" in kinds else found


def ended_with(reason: str | None, stop: StopReason) -> str | None:
    """Give the error message of a reply whose stop reason is an error; None for any other."""
    if stop not in (StopReason.ERROR, StopReason.ABORTED):
        return None
    return f"the reply ended with {reason or stop.value}"


def keep_reply(protocol: str, default: Wire, received: Block, extra: Extra | None = None) -> Extra | None:
    """Add the difference between the default and the received reply to what is kept for requests."""
    entry = difference(default, received)
    return extra if entry is None else {**(extra or {}), **of_reply(protocol, entry)}


def restore_reply(protocol: str, default: Wire, extra: Extra | None) -> Wire:
    """Give the reply in the format that `keep_reply` kept."""
    entry = reply_extra(extra, protocol)
    return default if entry is None else cast("Wire", apply(default, entry))
