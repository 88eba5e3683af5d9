"""The outboxes of one conversation: a request costs what is new, for each of the few models it is asked of."""

from __future__ import annotations

from typing import Final

from segue.conversation.context import Context, Options
from segue.models.model import Model
from segue.outbox import Outbox
from segue.projection.policy import Policy
from segue.request import Request

_KEPT: Final = 4
"""How many are kept: a conversation goes back and forth between a few, and each keeps what it has written."""


class Outboxes:
    """Prepares requests of one growing conversation; those last asked of are remembered."""

    def __init__(self) -> None:
        self._kept: list[tuple[Model, Policy | None, Outbox]] = []  # the last used last

    def prepare(self, context: Context, model: Model, options: Options | None, policy: Policy | None) -> Request:
        """Make the conversation ready for a model, as `segue.request.prepare` does."""
        return self._find(model, policy).prepare(context, options=options)

    def _find(self, model: Model, policy: Policy | None) -> Outbox:
        for place, (known, its_policy, outbox) in enumerate(self._kept):
            if known == model and its_policy is policy:
                self._kept.append(self._kept.pop(place))
                return outbox
        outbox = Outbox(model, policy)
        self._kept = [*self._kept[1 - _KEPT :], (model, policy, outbox)]
        return outbox
