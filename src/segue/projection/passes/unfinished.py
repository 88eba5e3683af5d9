"""Pass 1: remove turns that ended in an error or were aborted, together with the results of their calls.

Facts:
- An unfinished turn may hold unsigned thinking or a partial call; every provider refuses one or the other. (alchemy-rs)
- A result without its call is refused as well.              (pi #7777; pi-ai and ktsoator/or send it, run 2026-11)
- A failed turn between a call and its result does not end the batch.      (pi-ai 1.5.0 sends two results, run 2026-11)

This is the first pass, so that pairing does not see what will not be sent. A user turn after a failed turn is kept.
"""

from __future__ import annotations

from segue.conversation.messages import Message
from segue.projection.passes.extra import lost_extra
from segue.projection.passes.matching import match_results
from segue.projection.report import ChangeCode, Loss
from segue.projection.workspace.scan import UNFINISHED
from segue.projection.workspace.workspace import Workspace


def leave_out_unfinished(workspace: Workspace) -> None:
    """Remove every unfinished assistant turn and the results of its calls."""
    if not workspace.scan.unfinished:
        return
    owners = match_results(workspace.messages, workspace.prefix_state).owners()
    unfinished: set[int] = set()
    messages: list[Message] = []
    places: list[int] = []
    for index, message in enumerate(workspace.messages):
        if message.role == "assistant" and message.stop_reason in UNFINISHED:
            unfinished.add(index)
            loss = Loss.CONTENT if message.content else lost_extra(message.extra)
            workspace.note(ChangeCode.UNFINISHED_TURN, workspace.path(index), loss, str(message.stop_reason))
        elif index in owners and owners[index][0] in unfinished:
            workspace.note(ChangeCode.UNFINISHED_RESULT, workspace.path(index), Loss.CONTENT)
        else:
            messages.append(message)
            places.append(workspace.places[index])
    workspace.keep(messages, places, added=0)
