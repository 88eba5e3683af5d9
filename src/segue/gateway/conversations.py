"""Which model answered a conversation last, and which one the user chose for it.

Both are in memory and in the store, so that they outlive a restart. A store on another machine is shared by several
gateways: there the store is asked for every request, because the last one may have gone to another gateway.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, final

import msgspec
from msgspec.structs import replace

from segue.gateway.routing import Routed
from segue.gateway.store.database import StoreError
from segue.gateway.store.service import StoreService
from segue.gateway.store.store import StoredConversation
from segue.models.model import Model

_MOST: Final = 20_000
"""Conversations in memory; the oldest are dropped."""
_MOST_LISTED: Final = 200
_PATIENCE: Final = 60_000
"""Milliseconds after which the time of a conversation is written again, if nothing else has changed."""


@final
class ConversationRow(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation in a list: when it was last used (Unix milliseconds), by which client, and its models."""

    id: str
    time: int
    client: str = ""
    model: str | None = None
    chosen: str | None = None


class Conversations:
    """The models of the conversations of one gateway."""

    def __init__(self, store: StoreService) -> None:
        self._store = store
        self._rows: OrderedDict[str, tuple[str, ConversationRow]] = OrderedDict()

    async def load(self, conversation: str) -> None:
        """Read a conversation from the store, unless what is in memory is known to be the newest."""
        store = self._store.store
        if store is None or (store.database.is_local and conversation in self._rows):
            return
        found = await self._store.read(lambda: store.get_conversation(conversation))
        if found is not None:
            self._keep(found)

    def note(self, conversation: str, model: Model, *, client: str, tenant: str, now: int) -> None:
        """Note the model that answered."""
        _, known = self._rows.get(conversation, ("", None))
        row = known or ConversationRow(id=conversation, time=now)
        noted = replace(row, time=now, client=client, model=model.full_name())
        if known is not None and noted == replace(known, time=now) and now - known.time < _PATIENCE:
            return
        self._put(noted, tenant)
        self._store.put_later(_stored(noted, tenant), now)

    async def choose(self, conversation: str, name: str | None, tenant: str, now: int) -> bool:
        """Send a conversation to a model from now on; None ends that. The choice is stored when this returns.

        Gives False if the conversation belongs to another tenant.

        Raises:
            StoreError: the choice cannot be stored; it does not hold.
        """
        await self.load(conversation)
        owner, known = self._rows.get(conversation, (tenant, None))
        if owner != tenant:
            return False
        row = replace(known or ConversationRow(id=conversation, time=now), chosen=name)
        if self._store.store is not None and not await self._store.put(_stored(row, tenant), now):
            raise StoreError("the database does not answer")
        self._put(row, tenant)
        return True

    def chosen(self, conversation: str) -> str | None:
        """Give the model that was chosen for a conversation."""
        known = self._rows.get(conversation)
        return None if known is None else known[1].chosen

    def order(self, conversation: str, routed: Routed) -> tuple[Model, ...]:
        """Put the model that answered last first, if the route is sticky."""
        known = self._rows.get(conversation)
        last = known[1].model if known is not None and routed.route.sticky else None
        return tuple(sorted(routed.models, key=lambda model: model.full_name() != last))

    async def list_rows(self, tenant: str) -> list[ConversationRow]:
        """Give the conversations of a tenant, the latest first."""
        store = self._store.store
        if store is not None:
            for found in await self._store.read(lambda: store.list_conversations(tenant, _MOST_LISTED)) or []:
                self._keep(found)
        rows = [row for owner, row in self._rows.values() if owner == tenant]
        return sorted(rows, key=lambda row: (-row.time, row.id))[:_MOST_LISTED]

    def _keep(self, found: StoredConversation) -> None:
        try:
            row = msgspec.json.decode(found.data, type=ConversationRow)
        except msgspec.DecodeError:
            return
        self._put(row, found.tenant)

    def _put(self, row: ConversationRow, tenant: str) -> None:
        self._rows[row.id] = (tenant, row)
        self._rows.move_to_end(row.id)
        if len(self._rows) > _MOST:
            self._rows.popitem(last=False)


def _stored(row: ConversationRow, tenant: str) -> StoredConversation:
    return StoredConversation(row.id, tenant, msgspec.json.encode(row))
