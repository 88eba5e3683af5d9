"""What keys spend: requests that may begin, attempts that are billed, and the store that counts them for all gateways.

A request of a key with a budget or a limit waits for the store before it is sent to a provider. It is let through while
what was spent, and what the requests that run are expected to cost, is below every budget: only what is in flight can
be overspent. Other keys wait for nothing, and are counted afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from secrets import token_hex
from typing import Final

from msgspec.structs import replace

from segue.conversation.context import Options
from segue.conversation.messages import Usage
from segue.failures.failure import FailureKind
from segue.gateway.intake import Admission, Refused
from segue.gateway.keys import ClientKey
from segue.gateway.routing import is_priced
from segue.gateway.store.accounts import Account, Lease, StoredAccount
from segue.gateway.store.ledger import LEASE, NANO, Amount
from segue.gateway.store.service import StoreService
from segue.models.model import Model
from segue.models.price import find_cost

_BYTES_PER_TOKEN: Final = 4
_WINDOW: Final = 200_000
"""Tokens of a window that is not known: more input than that is not expected, as of a body with pictures."""
_MOST_OUTPUT: Final = 4_000
"""Output tokens that a request is expected to cost at most; clients ask for many times what replies have."""
_AWAY: Final = (
    "the budget of this key cannot be checked, because the database of the gateway does not answer; try again"
)


class Spending:
    """The accounts of the keys of one gateway. `clock` gives Unix milliseconds."""

    def __init__(self, store: StoreService, clock: Callable[[], int]) -> None:
        self._store = store
        self._clock = clock
        self._accounts: dict[str, Account] = {}
        self._name = token_hex(6)

    def _account(self, key: ClientKey) -> Account:
        found = self._accounts.get(key.tenant)
        if found is None:
            found = self._accounts[key.tenant] = Account(key.tenant, self._name)
        return found

    async def begin(self, admission: Admission, model: Model, options: Options | None, protocol: str) -> None:
        """Let a request begin; `options` is None if it writes nothing, as a count of tokens.

        Raises:
            Refused: a budget is spent, a limit is reached, or that cannot be found out.
        """
        key = admission.key
        if not key.id or self._store.store is None or admission.lease is not None:
            return
        account, now = self._account(key), self._clock()
        expected, known = _expect(model, admission.held, options) if options is not None else (Amount(), Amount())
        lease = Lease(account, key.rights, expected, known, lambda: self._write_later(account, self._clock()))
        if not key.rights.has_limits:
            account.take(lease, now)
            admission.lease = lease
            self._write_later(account, now)
            return
        try:
            is_written = await self._store.put(StoredAccount(account, lease), now)
        except asyncio.CancelledError:
            account.end(lease)
            raise
        if not is_written:
            account.end(lease)
            raise Refused(_AWAY, 503, FailureKind.OVERLOADED, protocol, retry_after=2)
        if (denied := lease.denied) is not None:
            kind = FailureKind.RATE_LIMIT if denied.is_rate else FailureKind.QUOTA
            raise Refused(denied.text, None, kind, protocol, retry_after=denied.retry_after)
        admission.lease = lease

    def begin_attempt(self, lease: Lease) -> None:
        """Note that a request to a provider begins: if this process dies, its input was sent."""
        lease.account.note_known(lease, lease.input)

    def count(self, lease: Lease, usage: Usage) -> None:
        """Count an attempt that was billed."""
        now = self._clock()
        lease.account.count(lease, amount_of(usage), now, is_priced=usage.cost is not None)
        self._write_later(lease.account, now)

    def _write_later(self, account: Account, now: int) -> None:
        if not account.is_queued:
            account.is_queued = True
            self._store.put_later(StoredAccount(account), now)

    @property
    def is_written(self) -> bool:
        """Whether the store has everything that was counted."""
        return all(account.is_written for account in self._accounts.values())

    async def renew(self) -> None:
        """Write what running requests hold, again and again: other gateways see that this one lives."""
        while True:
            await asyncio.sleep(LEASE / 4 / 1000)
            for account in self._accounts.values():
                if account.leases:
                    for lease in tuple(account.leases):
                        if lease.progress is not None and (usage := lease.progress()) is not None:
                            has_input = usage.input or usage.cache_read or usage.cache_write
                            known = amount_of(usage)
                            account.note_known(lease, known if has_input else known.plus(lease.input))
                    self._write_later(account, self._clock())


def amount_of(usage: Usage) -> Amount:
    """Give the money and the tokens of a usage."""
    cost = 0.0 if usage.cost is None else usage.cost.total
    tokens = usage.input + usage.output + usage.cache_read + usage.cache_write
    return Amount(round(cost * NANO), max(tokens, usage.total_tokens))  # the total has those of a compaction as well


def _expect(model: Model, size: int, options: Options) -> tuple[Amount, Amount]:
    """Give what a request is expected to cost, and the part of it that its input costs."""
    written = min(_MOST_OUTPUT, options.max_tokens or _MOST_OUTPUT)
    read = min(size // _BYTES_PER_TOKEN, model.max_input or model.context_window or _WINDOW)
    return _price(model, Usage(input=read, output=written)), _price(model, Usage(input=read))


def _price(model: Model, usage: Usage) -> Amount:
    return amount_of(replace(usage, cost=find_cost(model.cost, usage)))


def check_name(name: str, key: ClientKey, protocol: str) -> None:
    """Check that a key may ask for a name.

    Raises:
        Refused: it may not.
    """
    if not key.rights.may_ask(name):
        raise Refused(f"this key may not ask for {name!r}", 403, FailureKind.AUTH, protocol)


def usable_models(models: tuple[Model, ...], key: ClientKey) -> tuple[Model, ...]:
    """Give the models that a key may use; those without a known price are left out if its money is limited."""
    rights = key.rights
    if not rights.models and not rights.has_money_budget:
        return models
    return tuple(
        model
        for model in models
        if rights.may_use(model.full_name()) and (is_priced(model) or not rights.has_money_budget)
    )


def select_models(models: tuple[Model, ...], key: ClientKey, protocol: str) -> tuple[Model, ...]:
    """Give the models that a key may use (`usable_models`).

    Raises:
        Refused: none is left.
    """
    if usable := usable_models(models, key):
        return usable
    unpriced = next((model for model in models if key.rights.may_use(model.full_name())), None)
    text = f"this key may not use {models[0].full_name()}"
    if unpriced is not None:
        text = (
            f"the price of {unpriced.full_name()} is not known, and this key has a budget in dollars; give the price"
            " in a catalogue file, or a budget in tokens"
        )
    raise Refused(text, 403, FailureKind.AUTH, protocol)
