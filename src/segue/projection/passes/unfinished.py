"""Pass 1: turns that ended in an error or were aborted are left out, together with their results.

Facts this file rests on:
- A cut-off turn may hold unsigned thinking and half a call; every provider refuses one or the other.   (alchemy-rs)
- A result whose call was left out is refused as well.   (pi #7777; the ancestors keep it: a proven bug of theirs)
- A failed turn between a call and its result must not close the batch.    (pi-ai 1.5.0 sends two results, run 2026-11)

First of all passes, so that pairing never sees what will not be sent. A user turn after a failed one stays.
"""

from __future__ import annotations

from segue.conversation.messages import Message
from segue.projection.passes.matching import match_results
from segue.projection.report import ChangeCode, Loss
from segue.projection.workspace.scan import UNFINISHED
from segue.projection.workspace.workspace import Workspace


def leave_out_unfinished(workspace: Workspace) -> None:
    """Drop every unfinished assistant turn and whatever answers its calls."""
    if not workspace.scan.unfinished:
        return
    owners = match_results(workspace.messages, workspace.prefix_state).owners()
    unfinished: set[int] = set()
    messages: list[Message] = []
    places: list[int] = []
    for index, message in enumerate(workspace.messages):
        if message.role == "assistant" and message.stop_reason in UNFINISHED:
            unfinished.add(index)
            workspace.note(ChangeCode.UNFINISHED_TURN, workspace.path(index), Loss.CONTENT, str(message.stop_reason))
        elif index in owners and owners[index][0] in unfinished:
            workspace.note(ChangeCode.UNFINISHED_RESULT, workspace.path(index), Loss.CONTENT)
        else:
            messages.append(message)
            places.append(workspace.places[index])
    workspace.keep(messages, places)
