"""What the keys of one gateway spend, in memory: shared by the event loop and the thread that writes the store.

A `Lease` is a request that runs. It holds what it is expected to cost, so that other requests cannot spend the same
money; what its attempts were billed is counted when they end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from math import ceil
from typing import Final, NamedTuple, Self, final

import msgspec

from segue.conversation.messages import Usage
from segue.gateway.keys import Rights
from segue.gateway.store.database import Transaction
from segue.gateway.store.ledger import (
    LEASE,
    SLOT,
    Amount,
    Denied,
    Ledger,
    LedgerPart,
    Recent,
    Reserving,
    Slot,
    Wanted,
    advance,
    decide,
    dump_ledger,
    find_more,
    find_room,
    is_recent,
    load_ledger,
    write_part,
    write_recent,
)

_NOTHING: Final = Amount()
_READ: Final = "select data from ledgers where key = ?"
_READ_LOCKED: Final = "select data from ledgers where key = ? for update"


@final
class Snapshot(NamedTuple):
    """What a gateway writes of an account."""

    part: LedgerPart = LedgerPart()
    recent: Recent = Recent()


class Account:
    """What this gateway has counted for one key, and what its running requests hold."""

    def __init__(self, tenant: str, gateway: str) -> None:
        self.tenant: str = tenant
        self.gateway: str = gateway
        self.lock: threading.Lock = threading.Lock()
        self.written: Snapshot = Snapshot()
        """What the store has; only the thread that writes uses it."""
        self.is_queued: bool = False
        """Whether a write waits that will have the newest values."""
        self.leases: set[Lease] = set()
        self._nano = self._tokens = self._requests = self._unpriced = 0
        self._slots: dict[int, Slot] = {}
        self._estimated = Amount()
        self._held_nano = self._held_tokens = self._known_nano = self._known_tokens = 0

    def snapshot(self, now: int) -> Snapshot:
        """Return what is to be written now."""
        with self.lock:
            self.is_queued = False
            return self._at(now + LEASE)

    @property
    def is_written(self) -> bool:
        """Whether the store has all of it."""
        with self.lock:
            return self.written == self._at(self.written.part.until)

    def take(self, lease: Lease, now: int) -> bool:
        """Begin a request; False if its client is gone."""
        with self.lock:
            if lease.is_ended:
                return False
            lease.is_taken = True
            self.leases.add(lease)
            self._hold(lease, 1)
            self._requests += 1
            lease.slot = self._add_recent(now, requests=1)
        return True

    def give_back(self, lease: Lease) -> None:
        """Undo `take`: what was decided was not written."""
        with self.lock:
            if lease.is_taken:
                lease.is_taken = False
                if not lease.is_ended:
                    self.leases.discard(lease)
                    self._hold(lease, -1)
                self._requests -= 1
                self._add_recent(lease.slot, requests=-1)

    def end(self, lease: Lease) -> None:
        """End a request; it holds nothing any more."""
        with self.lock:
            if lease.is_taken and not lease.is_ended:
                self.leases.discard(lease)
                self._hold(lease, -1)
            lease.is_ended = True

    def note_known(self, lease: Lease, known: Amount) -> None:
        """Note what the running attempt of a request costs at least."""
        with self.lock:
            self._note_known(lease, known)

    def count(self, lease: Lease, amount: Amount, now: int, *, is_priced: bool, is_measured: bool = True) -> None:
        """Count an attempt that ended; `is_measured`: the amount is that of the provider."""
        with self.lock:
            self._note_known(lease, _NOTHING)
            lease.counted = lease.counted.plus(amount)
            self._nano += amount.nano
            self._tokens += amount.tokens
            self._unpriced += not is_priced
            self._add_recent(now, tokens=amount.tokens)
            if not is_measured:
                self._estimated = self._estimated.plus(amount)

    def _note_known(self, lease: Lease, known: Amount) -> None:
        before = lease.known
        if known is not before and lease.is_taken and not lease.is_ended:
            self._known_nano += known.nano - before.nano
            self._known_tokens += known.tokens - before.tokens
            lease.known = known

    def _hold(self, lease: Lease, sign: int) -> None:
        expected, known = lease.expected, lease.known
        self._held_nano += sign * expected.nano
        self._held_tokens += sign * expected.tokens
        self._known_nano += sign * known.nano
        self._known_tokens += sign * known.tokens

    def _add_recent(self, now: int, *, requests: int = 0, tokens: int = 0) -> int:
        """Count in the slot of a time; give when it began."""
        start = now - now % SLOT
        slot = self._slots.get(start)
        if slot is None:
            slot, self._slots = Slot(start), {key: each for key, each in self._slots.items() if is_recent(each, now)}
        self._slots[start] = Slot(start, max(0, slot.requests + requests), slot.tokens + tokens)
        return start

    def _at(self, until: int) -> Snapshot:
        counted = (self._nano, self._tokens, self._requests, self._unpriced)
        held, known = Amount(self._held_nano, self._held_tokens), Amount(self._known_nano, self._known_tokens)
        recent = Recent(slots=tuple(sorted(self._slots.values())), estimated=self._estimated)
        return Snapshot(LedgerPart(until, *counted, held, known), recent)


@final
class Lease(msgspec.Struct, eq=False):
    """A request of a key that runs: what it may cost in all, and what the running attempt costs at least."""

    account: Account
    rights: Rights
    wanted: Wanted
    on_end: Callable[[Account], object]
    reserving: Reserving = "lower"
    estimates: dict[str, int] = {}
    """What the input was estimated at, for each model that it was reserved for."""
    output: int = 0
    """The output tokens that it may have: those that are wanted, or fewer."""
    room: int | None = None
    """The output tokens that everything that was left had room for."""
    counted: Amount = _NOTHING
    """What its attempts were billed so far."""
    expected: Amount = _NOTHING
    known: Amount = _NOTHING
    slot: int = 0
    """The slot that it was counted in."""
    progress: Callable[[], Usage | None] | None = None
    """Returns what the attempt that runs costs at this moment."""
    denied: Denied | None = None
    """Why the store refused it, once it was decided."""
    is_taken: bool = False
    is_ended: bool = False

    def __post_init__(self) -> None:
        wanted = self.wanted
        self.output, self.expected, self.known = wanted.output, wanted.at_most(wanted.output), wanted.input

    def grant(self, output: int, room: int | None, more: Amount) -> None:
        """Allow the request so many output tokens, and hold `more` as well; all that is left has `room` for more."""
        self.output, self.room, self.expected = output, room, self.wanted.at_most(output).plus(more)

    def output_again(self) -> int:
        """Return the output tokens of an attempt after those that were counted: they used what was left."""
        if self.room is None or self.reserving == "loose" or not self.counted:
            return self.output
        wanted = self.wanted
        by_money = ceil(self.counted.nano / (wanted.rate * wanted.choices)) if wanted.rate else 0
        by_tokens = ceil(self.counted.tokens / wanted.choices) if self.rights.has_token_limit else 0
        left = self.room - max(by_money, by_tokens)
        return max(min(self.output, left), min(wanted.least, wanted.output))

    def end(self) -> None:
        """End the request; it holds nothing any more."""
        self.account.end(self)
        self.on_end(self.account)


@final
class StoredAccount(NamedTuple):
    """An account to write, and a request that may begin only if its key may spend more."""

    account: Account
    lease: Lease | None = None


class Syncing:
    """Writes accounts in one transaction. If it is not committed, what was decided is taken back."""

    def __init__(self) -> None:
        self._wanted: dict[str, tuple[Account, list[Lease]]] = {}
        self._taken: list[Lease] = []
        self._written: list[tuple[Account, Snapshot]] = []

    def add(self, work: StoredAccount) -> None:
        """Add an account."""
        _, leases = self._wanted.setdefault(work.account.tenant, (work.account, []))
        if work.lease is not None:
            leases.append(work.lease)

    def write(self, transaction: Transaction, now: int, *, is_local: bool) -> None:
        """Write the accounts, in one order in every gateway, and decide which requests may begin."""
        for tenant, (account, leases) in sorted(self._wanted.items()):
            ledger = load_ledger(_read_locked(transaction, tenant, is_local=is_local))
            advance(ledger, now)
            snapshot = _write_snapshot(ledger, account, now)
            for lease in leases:
                decided = decide(ledger, lease.rights, lease.wanted, now, lease.reserving)
                lease.denied = decided if isinstance(decided, Denied) else None
                if isinstance(decided, Denied):
                    continue
                more = find_more(ledger, lease.rights, lease.wanted, decided, now)
                lease.grant(decided, find_room(ledger, lease.rights, lease.wanted, now), more)
                if account.take(lease, now):
                    self._taken.append(lease)
                    snapshot = _write_snapshot(ledger, account, now)
            self._written.append((account, snapshot))
            transaction.run("update ledgers set data = ? where key = ?", (dump_ledger(ledger), tenant))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Note that all of it is committed, or take back what was decided."""
        if kind is None:
            for account, snapshot in self._written:
                account.written = snapshot
        else:
            for lease in self._taken:
                lease.account.give_back(lease)


def _write_snapshot(ledger: Ledger, account: Account, now: int) -> Snapshot:
    snapshot = account.snapshot(now)
    write_part(ledger, account.gateway, snapshot.part, account.written.part)
    write_recent(ledger, account.gateway, snapshot.recent, account.written.recent)
    return snapshot


def _read_locked(transaction: Transaction, tenant: str, *, is_local: bool) -> bytes | None:
    """Read the row of a key, and lock it until the end of the transaction; a transaction of SQLite is alone anyway."""
    statement = _READ if is_local else _READ_LOCKED
    rows = transaction.read(statement, (tenant,))
    if not rows:
        transaction.run("insert into ledgers (key, data) values (?, ?) on conflict do nothing", (tenant, b"{}"))
        rows = transaction.read(statement, (tenant,))
    data = rows[0][0]
    return bytes(data) if isinstance(data, (bytes, memoryview)) else None
