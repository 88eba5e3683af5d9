"""What a model would not see of a conversation: the messages that a request leaves out or shortens, ranked."""

from __future__ import annotations

from typing import final

import msgspec

from segue.conversation.context import Context
from segue.counting.counter import TokenCounter
from segue.models.model import Model
from segue.projection.fitting.facts import rank_messages
from segue.projection.projector import Projection
from segue.projection.report import ChangeCode

_SHORTENED = (ChangeCode.RESULT_SHORTENED, ChangeCode.MEDIA_SHORTENED, ChangeCode.MEDIA_EVICTED)


@final
class DroppedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message that a model does not see whole: its index, whether it is left out, and the tokens it has."""

    index: int
    is_gone: bool
    tokens: int


def find_dropped(context: Context, projection: Projection, model: Model) -> list[DroppedMessage]:
    """Return what the projection leaves out or shortens; messages that share most names with what is sent come first.

    Pinned messages are not among them: their text is in the note.
    """
    gone: set[int] = set()
    lean: set[int] = set()
    for change in projection.report.changes:
        if change.code == ChangeCode.TURNS_DROPPED and len(change.path) > 1 and change.last is not None:
            gone.update(range(int(change.path[1]), change.last + 1))
        elif change.code in _SHORTENED and len(change.path) > 1:
            lean.add(int(change.path[1]))
    found = sorted((gone | lean) - set(context.pins))
    counter = TokenCounter(model)
    ranked = rank_messages([context.messages[at] for at in found], projection.context.messages)
    return [
        DroppedMessage(
            index=found[at],
            is_gone=found[at] in gone,
            tokens=round(sum(counter.message(context.messages[found[at]]))),
        )
        for at in ranked
    ]
