"""What a key spent, and whether it may spend more: one row of the store for each key, changed under its lock.

Every gateway has a part of the row: what its process has counted since its start, and what its running requests hold.
A gateway writes absolute values, and the difference from what was counted before is added to the periods: a write
whose outcome is not known may be repeated, and counts once. The functions are pure; the clock is an argument.

A gateway that does not write for a minute is dead. What its requests were known to cost then is counted.
Money is in billionths of a dollar: the cheapest token of the catalogue costs several of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple, final

import msgspec

from segue.gateway.keys import PERIODS, Period, Rights

NANO: Final = 1_000_000_000
_SECOND: Final = 1000
_MINUTE: Final = 60 * _SECOND
LEASE: Final = _MINUTE
"""Milliseconds after which a gateway that wrote nothing is dead."""
_FORGOTTEN: Final = 60 * _MINUTE
_SOON: Final = 60 * _MINUTE
"""Milliseconds to the end of a period within which clients are told to wait for it."""


@final
class Amount(NamedTuple):
    """Money in billionths of a dollar, and tokens."""

    nano: int = 0
    tokens: int = 0

    def plus(self, other: Amount) -> Amount:
        """Add another amount."""
        return Amount(self.nano + other.nano, self.tokens + other.tokens)


@final
class Spent(NamedTuple):
    """What was spent since the start of a period, in Unix milliseconds."""

    start: int = 0
    nano: int = 0
    tokens: int = 0


@final
class Part(NamedTuple):
    """What one gateway wrote last.

    - `nano`, `tokens`, `requests`, `unpriced`: what it has counted since its start; `unpriced` are requests to models
      without a known price.
    - `held`: what its running requests are expected to cost; `known`: what they cost at least.
    - `minute`, `minute_requests`, `minute_tokens`: requests and tokens of the minute that began then.
    """

    until: int = 0
    nano: int = 0
    tokens: int = 0
    requests: int = 0
    unpriced: int = 0
    held: Amount = Amount()
    known: Amount = Amount()
    minute: int = 0
    minute_requests: int = 0
    minute_tokens: int = 0


@final
class Ledger(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The row of a key."""

    spent: dict[Period, Spent] = msgspec.field(default_factory=dict[Period, Spent])
    requests: int = 0
    unpriced: int = 0
    parts: dict[str, Part] = msgspec.field(default_factory=dict[str, Part])


@final
class Denied(NamedTuple):
    """Why a request is refused. `retry_after` is seconds; `is_rate`: a limit of the minute, not a budget."""

    text: str
    is_rate: bool = False
    retry_after: int | None = None


_DECODER: Final = msgspec.json.Decoder(Ledger)
_ENCODER: Final = msgspec.json.Encoder()


def load_ledger(data: bytes | None) -> Ledger:
    """Read a row; a key that spent nothing has none."""
    return Ledger() if data is None else _DECODER.decode(data)


def dump_ledger(ledger: Ledger) -> bytes:
    """Write a row."""
    return _ENCODER.encode(ledger)


def start_of(period: Period, now: int) -> int:
    """Give when the period that holds now began, in UTC; `total` began at 0."""
    return _start_of(period, now - now % (24 * 60 * _MINUTE))


@lru_cache(64)
def _start_of(period: Period, day: int) -> int:
    if period == "total":
        return 0
    if period == "day":
        return day
    date = datetime.fromtimestamp(day // _SECOND, UTC)
    start = date - timedelta(days=date.weekday()) if period == "week" else date.replace(day=1)
    return round(start.timestamp()) * _SECOND


def end_of(period: Period, now: int) -> int | None:
    """Give when the period that holds now ends; `total` does not."""
    if period == "total":
        return None
    days = {"day": 1, "week": 7, "month": 31}[period]
    after = start_of(period, now) + days * 24 * 60 * _MINUTE
    return start_of(period, after) if period == "month" else after


def advance(ledger: Ledger, now: int) -> None:
    """Begin new periods, and count what dead gateways left."""
    day = now - now % (24 * 60 * _MINUTE)
    for period in PERIODS:
        start, known = _start_of(period, day), ledger.spent.get(period)
        if known is None or start > known.start:  # never back: the clocks of gateways differ
            ledger.spent[period] = Spent(start)
    for name, part in list(ledger.parts.items()):
        if part.until < now:
            _count(ledger, part.known)
            left = part._replace(
                nano=part.nano + part.known.nano,
                tokens=part.tokens + part.known.tokens,
                held=Amount(),
                known=Amount(),
            )
            ledger.parts[name] = left  # it may come back, and must not count the same again
            if part.until < now - _FORGOTTEN:
                del ledger.parts[name]


def _count(ledger: Ledger, amount: Amount) -> None:
    if any(amount):
        for period, spent in ledger.spent.items():
            ledger.spent[period] = Spent(spent.start, spent.nano + amount.nano, spent.tokens + amount.tokens)


def write_part(ledger: Ledger, gateway: str, part: Part, before: Part) -> None:
    """Replace the part of a gateway; `before` is what it wrote last, if the row has forgotten that."""
    counted = ledger.parts.get(gateway, before)
    _count(ledger, Amount(part.nano - counted.nano, part.tokens - counted.tokens))
    ledger.requests += part.requests - counted.requests
    ledger.unpriced += part.unpriced - counted.unpriced
    ledger.parts[gateway] = part


def find_denial(ledger: Ledger, rights: Rights, now: int) -> Denied | None:
    """Say why a key may not make another request now: its budgets and limits, with what running requests hold."""
    parts = tuple(ledger.parts.values())
    held = Amount(sum(part.held.nano for part in parts), sum(part.held.tokens for part in parts))
    for period in PERIODS:
        if (budget := rights.budgets.get(period)) is not None:
            spent = ledger.spent[period]
            if budget.dollars is not None:
                text, most = f"${budget.dollars:g}", round(budget.dollars * NANO)
                if denied := _compare(period, text, now, spent=spent.nano, held=held.nano, most=most):
                    return denied
            if budget.tokens is not None:
                text = f"{budget.tokens} tokens"
                if denied := _compare(period, text, now, spent=spent.tokens, held=held.tokens, most=budget.tokens):
                    return denied
    return _find_rate_denial(parts, rights, held, now)


def _compare(period: Period, text: str, now: int, *, spent: int, held: int, most: int) -> Denied | None:
    name = "" if period == "total" else f" for the {period}"
    if spent >= most:
        end = end_of(period, now)
        wait = None if end is None or end - now > _SOON else -(-(end - now) // _SECOND)
        when = "" if end is None else f"; the next {period} begins at {_render_time(end)}"
        return Denied(f"the budget of this key{name}, {text}, is spent{when}", retry_after=wait)
    if spent + held >= most:
        return Denied(
            f"requests of this key that run may use up the rest of its budget{name}, {text}; wait until one has ended",
            is_rate=True,
            retry_after=1,
        )
    return None


def _find_rate_denial(parts: Sequence[Part], rights: Rights, held: Amount, now: int) -> Denied | None:
    minute = now - now % _MINUTE
    wait = -(-(minute + _MINUTE - now) // _SECOND)
    current = [part for part in parts if part.minute == minute]
    most = rights.requests_per_minute
    if most is not None and sum(part.minute_requests for part in current) >= most:
        return Denied(f"this key may make {most} requests a minute", is_rate=True, retry_after=wait)
    most = rights.tokens_per_minute
    if most is not None and sum(part.minute_tokens for part in current) + held.tokens >= most:
        return Denied(f"this key may use {most} tokens a minute", is_rate=True, retry_after=wait)
    return None


def _render_time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / _SECOND, UTC).strftime("%Y-%m-%d %H:%M UTC")
