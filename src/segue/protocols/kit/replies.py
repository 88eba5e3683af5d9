"""Whole replies: their stop reason, the names of their calls, and the format in which they were received.

A reply is written in the default format. The difference to the received reply is one entry (`kit.json_patch`) under
`reply` of the message's `extra`. Only the encoder of replies reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import cast

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, Extra
from segue.conversation.messages import StopReason
from segue.protocols.kit.json_patch import apply, difference
from segue.protocols.kit.json_values import Block, Wire
from segue.protocols.kit.reading import of_reply, reply_extra

_STOP, _TOOL_USE = StopReason.STOP, StopReason.TOOL_USE  # to look up a member takes as long as a call
_FAILED = (StopReason.ERROR, StopReason.ABORTED)


def read_stop(reasons: Mapping[str, StopReason], reason: str | None, kinds: Collection[str]) -> StopReason:
    """Return the stop reason of a complete reply; `kinds` are the kinds of its content.

    An unknown reason means STOP if the reply has content, so that the content is kept, and ERROR if it has none. STOP
    becomes TOOL_USE if the reply has calls.
    """
    found = _STOP if reason is None else reasons.get(reason)
    if found is None:
        found = _STOP if kinds else StopReason.ERROR
    return _TOOL_USE if found is _STOP and "toolCall" in kinds else found


def read_required_stop(
    reasons: Mapping[str, StopReason], reason: str | None, pieces: Sequence[AssistantContent]
) -> StopReason:
    """Return the stop reason of a reply of a protocol whose complete replies always have one.

    Without a reason only complete calls show that the reply is finished. An unknown reason comes with a complete reply.
    STOP becomes TOOL_USE if the reply has calls.
    """
    calls = [piece for piece in pieces if piece.kind == "toolCall"]
    if reason is None:
        is_complete = bool(calls) and all(call.arguments_text is None for call in calls)
        return StopReason.TOOL_USE if is_complete else StopReason.ERROR
    stop = reasons.get(reason, StopReason.STOP)
    return StopReason.TOOL_USE if calls and stop == StopReason.STOP else stop


def ended_with(reason: str | None, stop: StopReason) -> str | None:
    """Return the error message of a reply whose stop reason is an error; None for any other."""
    if stop not in _FAILED:
        return None
    return f"the reply ended with {reason or stop.value}"


def rename_calls(pieces: Sequence[AssistantContent], tool_names: Mapping[str, str]) -> tuple[AssistantContent, ...]:
    """Map the tool names of the wire back to the given ones."""
    return tuple(
        replace(piece, name=tool_names[piece.name]) if piece.kind == "toolCall" and piece.name in tool_names else piece
        for piece in pieces
    )


def keep_reply(protocol: str, default: Wire, received: Block, extra: Extra | None = None) -> Extra | None:
    """Add the difference between the default and the received reply to the message's `extra`."""
    entry = difference(default, received)
    return extra if entry is None else {**(extra or {}), **of_reply(protocol, entry)}


def restore_reply(protocol: str, default: Wire, extra: Extra | None) -> Wire:
    """Return the reply in the format in which it was received, as kept by `keep_reply`."""
    entry = reply_extra(extra, protocol)
    return default if entry is None else cast("Wire", apply(default, entry))
