"""Which model and account answered a conversation last, which model the user chose, and what providers refused of it.

All of it is in memory and in the store, so that they outlive a restart. Several gateways may share a store: it is asked
for every request, because the last one may have gone to another gateway, and what is written is merged with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from hashlib import sha256
from math import log1p
from typing import Final, final

import msgspec
from msgspec.structs import replace

from segue.conversation.marks import all_marks_of
from segue.conversation.messages import AssistantMessage, Message
from segue.envelope.keys import UNIQUE, keys_of_turns
from segue.foundation.json_text import encode_valid_json
from segue.gateway.routing import Routed, Router
from segue.gateway.shares import SharedCache
from segue.gateway.store.database import StoreError
from segue.gateway.store.service import StoreService
from segue.gateway.store.store import StoredConversation
from segue.models.model import Model
from segue.projection.workspace.ownership import is_same_account, known_account, made_with

_WEAK: Final = tuple(f"{kind}:" for kind in sorted(UNIQUE))
_MOST: Final = 20_000
"""Conversations in memory; the oldest are dropped."""
_MOST_LISTED: Final = 200
_MOST_REFUSED: Final = 2_000
"""Marks of refused signatures that are kept of a conversation; the oldest are dropped."""
_MOST_REFUSED_OF_ALL: Final = 20_000
"""Marks of refused signatures of all conversations in memory; the oldest are dropped."""
_PATIENCE: Final = 60_000
"""Milliseconds after which the time of a conversation is written again, if nothing else has changed."""


@final
class ConversationRow(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation in a list: when it was last used (Unix milliseconds), by which client, and its models.

    `account` is the account that answered last, if the provider has several. `alike`: it may be several conversations
    that begin alike, which nothing separates.
    """

    id: str
    time: int
    client: str = ""
    model: str | None = None
    chosen: str | None = None
    account: str | None = None
    alike: bool = False


@final
class _Learned(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored next to the row: the marks of signatures that a provider refused."""

    refused: tuple[str, ...] = ()


_ROW: Final = msgspec.json.Decoder(ConversationRow)
_LEARNED: Final = msgspec.json.Decoder(_Learned)


@final
class _Known(msgspec.Struct, frozen=True):
    """What is known of a conversation."""

    tenant: str
    row: ConversationRow
    refused: tuple[str, ...] = ()
    read: bytes | None = None
    """The bytes of the store that it was read from, if they are few and nothing has changed since."""


class Conversations:
    """What is known of the conversations of one gateway."""

    def __init__(self, store: StoreService) -> None:
        self._store = store
        self._rows: SharedCache[str, _Known] = SharedCache(_MOST)
        self._refused: SharedCache[tuple[str, str], None] = SharedCache(_MOST_REFUSED_OF_ALL)
        """Refused marks by tenant: a client that replaces its first message gives a conversation another name."""
        self._replies: SharedCache[str, tuple[str, ...]] = SharedCache(_MOST)
        """The keys of replies by the ids of their requests, where nothing names the conversation."""
        self._branches: SharedCache[str, str] = SharedCache(_MOST)
        """The models that were chosen after replies, by the keys of these. They are in memory alone."""

    async def load(self, conversation: str) -> None:
        """Read a conversation from the store: another gateway may have written it."""
        self.keep((await self._store.find((), conversation, 0))[1])

    def note(
        self, conversation: str, model: Model, *, client: str, tenant: str, now: int, is_sure: bool = True
    ) -> None:
        """Note the model that answered, and with which account."""
        known = self._rows.get(conversation)
        name, account = model.full_name(), model.account or None
        chosen = None if known is None else known.row.chosen
        noted = ConversationRow(
            id=conversation, time=now, client=client, model=name, chosen=chosen, account=account, alike=not is_sure
        )
        if known is not None and now - known.row.time < _PATIENCE and noted == replace(known.row, time=now):
            return
        self._keep_later(_Known(tenant, noted, () if known is None else known.refused), now)

    def note_refused(self, conversation: str, marks: Iterable[str], *, tenant: str, now: int) -> None:
        """Note the marks of signatures that a provider refused: they are never sent again in this conversation."""
        known = self._rows.get(conversation) or _Known(tenant, ConversationRow(id=conversation, time=now))
        joined = tuple(dict.fromkeys((*known.refused, *marks)))[-_MOST_REFUSED:]
        if joined != known.refused:
            self._keep_later(_Known(known.tenant, known.row, joined), now)

    def refused(self, conversation: str, tenant: str, messages: Sequence[Message]) -> frozenset[str]:
        """Return the marks of a history that a provider refused, without those that its replies remember.

        What was refused in another conversation may be valid in this one, if something is remembered of it. Blocks
        about which nothing is remembered are not sent again.
        """
        known = self._rows.get(conversation)
        here = frozenset(() if known is None else known.refused)
        if not here and not self._refused:
            return frozenset()
        replies = [message for message in messages if message.role == "assistant"]
        sent = [reply.sent for reply in replies if reply.sent is not None]
        remembered = {mark for each in sent for mark in each.dropped}
        accepted = {mark for each in sent for mark in each.accepted}
        return frozenset(
            mark
            for reply in replies
            if here or not _is_known(reply)
            for mark in all_marks_of(reply)
            if mark not in remembered
            and (mark in here or (mark not in accepted and not _is_known(reply) and (tenant, mark) in self._refused))
        )

    def _keep_later(self, known: _Known, now: int) -> None:
        self._put(known)
        self._store.put_later(_stored(known), now)

    async def choose(self, conversation: str, name: str | None, tenant: str | None, now: int) -> bool:
        """Send a conversation to a model from now on; None ends that. The choice is stored when this returns.

        Gives False if there is no such conversation of the tenant; None represents any of them.

        Raises:
            StoreError: the conversation cannot be looked up, or the choice cannot be stored; it does not hold.
        """
        await self.load(conversation)
        known = self._rows.get(conversation)
        if known is None and self._store.store is not None and not self._store.is_available:
            raise StoreError("the database does not answer")
        if known is None or tenant not in (None, known.tenant):
            return False
        chosen = _Known(known.tenant, replace(known.row, chosen=name), known.refused)
        if self._store.store is not None and not await self._store.put(_stored(chosen, is_choice=True), now):
            raise StoreError("the database does not answer")
        self._put(chosen)
        return True

    def is_alike(self, conversation: str, tenant: str | None) -> bool:
        """Whether a name may be that of several conversations of a tenant; of any tenant with None."""
        known = self._rows.get(conversation)
        return known is not None and tenant in (None, known.tenant) and known.row.alike

    def note_reply(self, request: str, keys: Sequence[str], chosen: str | None, *, tenant: str) -> tuple[str, ...]:
        """Note the keys of a reply, so that what continues it can be switched; a choice holds for the reply as well.

        Gives the keys by which it is found.
        """
        strong = tuple([key for key in keys if not key.startswith(_WEAK)])
        self._replies.put(tenant, request, strong)
        if chosen is not None:
            self.choose_keys(strong, chosen, tenant)
        return strong

    def find_reply(self, request: str) -> tuple[str, tuple[str, ...]] | None:
        """Find the tenant of a request and the keys of its reply; None if it is not known any more."""
        owner, keys = self._replies.owner_of(request), self._replies.get(request)
        return None if owner is None or keys is None else (owner, keys)

    def choose_keys(self, keys: Sequence[str], name: str | None, tenant: str) -> None:
        """Send what continues the reply with these keys to a model; None ends that."""
        for key in keys:
            if name is None:
                self._branches.drop(key)
            else:
                self._branches.put(tenant, key, name)

    def chosen_after(self, messages: Sequence[Message], tenant: str) -> str | None:
        """Return the model that was chosen for what continues a reply: for the newest reply of a history."""
        if not self._branches.count_of(tenant):
            return None
        turns, _ = keys_of_turns(messages, tenant)
        return next((name for key in turns[-1].keys if (name := self._branches.get(key))), None) if turns else None

    def chosen(self, conversation: str) -> str | None:
        """Return the model that was chosen for a conversation."""
        known = self._rows.get(conversation)
        return None if known is None else known.row.chosen

    def order(self, conversation: str, routed: Routed) -> tuple[Model, ...]:
        """Put the model that answered last first, if the route is sticky."""
        known = self._rows.get(conversation)
        last = known.row.model if known is not None and routed.route.sticky else None
        if last is None or len(routed.models) == 1:
            return routed.models
        return tuple(sorted(routed.models, key=lambda model: model.full_name() != last))

    def order_accounts(
        self,
        conversation: str,
        models: Sequence[Model],
        messages: Sequence[Message],
        router: Router,
        label_of: Callable[[Model], str | None],
    ) -> tuple[Model, ...]:
        """Return each model once for each account of its provider, in the order in which they are tried.

        The account that holds the newest state of the history comes first, then the one that answered last. A new
        conversation begins with an account that its name decides: on every gateway the same one, and each account gets
        a share by its weight.
        """
        if not router.has_accounts:
            return tuple(models)
        known = self._rows.get(conversation)
        last = None if known is None else known.row.account
        ordered: list[Model] = []
        for model in models:
            accounts = router.accounts_of(model.provider)
            candidates = [router.at_account(model, name) for name in accounts] or [model]
            if len(candidates) > 1:
                labels = {each.account: known_account(messages, label_of(each)) for each in candidates}
                holders = _find_holders(messages, model.provider, labels)
                weights = {each.account: router.weight_of(each) for each in candidates}
                candidates.sort(key=lambda each: _rank(each.account, holders, last, conversation, weights))
            ordered += candidates
        return tuple(ordered)

    def forget(self, conversation: str, tenant: str | None) -> None:
        """Drop a conversation from memory."""
        known = self._rows.get(conversation)
        if known is not None and tenant in (None, known.tenant):
            self._rows.drop(conversation)

    async def list_rows(self, tenant: str | None) -> list[ConversationRow]:
        """Return the conversations of a tenant or of all, the latest first."""
        store = self._store.store
        if store is not None:
            # Read in the thread of the store: hundreds of rows take the time of many requests.
            listed = await self._store.read(
                lambda: [*map(_read_known, store.list_conversations(tenant, _MOST_LISTED))], is_long=True
            )
            for known in listed or []:
                if known is not None:
                    self._put(known)
        rows = [known.row for _, owner, known in self._rows.items() if tenant in (None, owner)]
        return sorted(rows, key=lambda row: (-row.time, row.id))[:_MOST_LISTED]

    def keep(self, found: StoredConversation | None) -> None:
        """Keep what the store has of a conversation."""
        if found is None:
            return
        mine = self._rows.get(found.id)
        if mine is not None and mine.read == found.data and mine.tenant == found.tenant:  # nearly always
            self._rows.put(mine.tenant, found.id, mine)
            return
        if (known := _read_known(found)) is None:
            return
        if mine is not None and mine.row.time > known.row.time:  # it is not written yet
            known = _Known(mine.tenant, replace(mine.row, chosen=known.row.chosen), mine.refused)
        self._put(known)

    def _put(self, known: _Known) -> None:
        old = self._rows.get(known.row.id)
        if known.refused and (old is None or old.refused != known.refused):
            for mark in known.refused:
                self._refused.put(known.tenant, (known.tenant, mark), None)
        self._rows.put(known.tenant, known.row.id, known)


def _read_known(found: StoredConversation) -> _Known | None:
    try:
        row, learned = _ROW.decode(found.data), _LEARNED.decode(found.data)
    except msgspec.DecodeError:
        return None
    return _Known(found.tenant, row, learned.refused, None if learned.refused else found.data)


def _is_known(reply: AssistantMessage) -> bool:
    """Whether it is remembered what a reply was made after."""
    return reply.sent is not None and bool(reply.sent.messages)


def _find_holders(messages: Sequence[Message], provider: str, labels: Mapping[str, str | None]) -> set[str]:
    """Find the accounts that hold the newest state: several, if their keys are of one account."""
    for message in reversed(messages):
        if message.role != "assistant" or message.provider != provider or not all_marks_of(message):
            continue
        if message.sent is None or message.sent.account is None:
            continue
        found = {
            name for name, label in labels.items() if label and is_same_account(made_with(message), label, is_sure=True)
        }
        if found:
            return found
    return set()


def _rank(
    account: str, holders: AbstractSet[str], last: str | None, conversation: str, weights: Mapping[str, float]
) -> tuple[bool, bool, float]:
    """Return the place of an account. By the digest, another account less or more moves no other conversation.

    The smallest of exponential variables with these rates is each with a probability that is its share of the weights.
    """
    digest = sha256(f"{conversation}\x00{account}".encode()).digest()
    drawn = -log1p(-int.from_bytes(digest[:6]) / 2**48) / weights[account]
    return account not in holders, account != last, drawn


def _stored(known: _Known, *, is_choice: bool = False) -> StoredConversation:
    def merge(stored: bytes) -> bytes:
        """Keep a choice and refused marks of another gateway; only the user changes a choice."""
        found = _read_known(StoredConversation(known.row.id, known.tenant, stored))
        if found is None:
            return _dump(known)
        chosen = known.row.chosen if is_choice else found.row.chosen
        refused = tuple(dict.fromkeys((*found.refused, *known.refused)))[-_MOST_REFUSED:]
        return _dump(_Known(known.tenant, replace(known.row, chosen=chosen), refused))

    return StoredConversation(known.row.id, known.tenant, _dump(known), merge)


def _dump(known: _Known) -> bytes:
    if not known.refused:
        return encode_valid_json(known.row)
    return encode_valid_json({**msgspec.to_builtins(known.row), "refused": known.refused})
