"""The outboxes of one conversation: one for each recently used model, so that a request encodes only new messages."""

from __future__ import annotations

from threading import Lock
from typing import Final

from segue.conversation.context import Context, Options
from segue.conversation.exact import is_exact
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.requests.outbox import Outbox
from segue.requests.prepare import Request

_KEPT: Final = 4
"""How many outboxes are kept: a conversation alternates between a few models, and each outbox holds encoded bytes."""


class Outboxes:
    """Prepares requests of one growing conversation; keeps the outboxes of the last few models."""

    def __init__(self) -> None:
        self._kept: list[tuple[Model, Policy | None, Outbox]] = []  # in order of use, the most recent last
        self._lock = Lock()

    def prepare(
        self,
        context: Context,
        model: Model,
        options: Options | None,
        policy: Policy | None,
        *,
        account: str | None = None,
        refused: frozenset[str] = frozenset(),
    ) -> Request:
        """Project and encode the conversation for a model, like `segue.requests.prepare.prepare`."""
        with self._lock:
            outbox = self._find(model, policy)
        return outbox.prepare(context, options=options, account=account, refused=refused)

    def _find(self, model: Model, policy: Policy | None) -> Outbox:
        for place, (known, its_policy, outbox) in enumerate(self._kept):
            if is_exact(known, model) and (its_policy is policy or its_policy == policy):
                self._kept.append(self._kept.pop(place))
                return outbox
        outbox = Outbox(model, policy)
        self._kept = [*self._kept[1 - _KEPT :], (model, policy, outbox)]
        return outbox
