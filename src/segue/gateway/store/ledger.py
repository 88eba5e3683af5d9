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
from math import ceil, floor
from typing import Final, Literal, NamedTuple, TypeAlias, final

import msgspec
from msgspec.structs import replace

from segue.gateway.keys import PERIODS, Period, Rights

Reserving: TypeAlias = Literal["lower", "refuse", "loose"]
"""What happens to a request that may cost more than is left (`SpendingTable.reserve`)."""
NANO: Final = 1_000_000_000
_SECOND: Final = 1000
_MINUTE: Final = 60 * _SECOND
LEASE: Final = _MINUTE
"""Milliseconds after which a gateway that wrote nothing is dead."""
_FORGOTTEN: Final = 60 * _MINUTE
SLOT: Final = 2 * _SECOND
"""Milliseconds that are counted together for the limits of a minute."""


@final
class Amount(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """Money in billionths of a dollar, and tokens."""

    nano: int = 0
    tokens: int = 0

    def __bool__(self) -> bool:
        return bool(self.nano or self.tokens)

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
class Slot(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """Requests and tokens of the `SLOT` that began then."""

    start: int
    requests: int = 0
    tokens: int = 0


@final
class LedgerPart(NamedTuple):
    """What one gateway wrote last. Its length is fixed: gateways of an earlier version read it, too.

    - `nano`, `tokens`, `requests`, `unpriced`: what it has counted since its start; `unpriced` are requests to models
      without a known price.
    - `held`: what its running requests are expected to cost; `known`: what they cost at least.
    - `minute`, `minute_requests`, `minute_tokens`: written by earlier versions (`Recent` has more).
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
class Recent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one gateway wrote last in addition to its part: its last minute, and how much of `Part` is estimated."""

    slots: tuple[Slot, ...] = ()
    estimated: Amount = Amount()


@final
class Ledger(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The row of a key. `estimated` is the part of `spent` for which no provider gave a figure."""

    spent: dict[Period, Spent] = msgspec.field(default_factory=dict[Period, Spent])
    requests: int = 0
    unpriced: int = 0
    parts: dict[str, LedgerPart] = msgspec.field(default_factory=dict[str, LedgerPart])
    recent: dict[str, Recent] = msgspec.field(default_factory=dict[str, Recent])
    estimated: dict[Period, Spent] = msgspec.field(default_factory=dict[Period, Spent])


@final
class Wanted(msgspec.Struct, frozen=True):
    """What a request may cost: its input, and `output` tokens at most, at `rate` billionths of a dollar each.

    `choices` is how many replies it asks for; `least` is the smallest number of output tokens that makes sense. `more`
    is what its provider may read beyond the input, as results of its own tools: that is reserved as far as it is left.
    """

    input: Amount = Amount()
    output: int = 0
    rate: float = 0.0
    choices: int = 1
    least: int = 0
    more: Amount = Amount()

    def at_most(self, output: int) -> Amount:
        """Return what the request costs at most with so many output tokens."""
        written = output * self.choices
        return Amount(self.input.nano + ceil(written * self.rate), self.input.tokens + written)

    def affordable(self, left: int, *, in_tokens: bool) -> int:
        """Return how many output tokens fit into what is left of a limit; below 0 if the input does not."""
        if in_tokens:
            return (left - self.input.tokens) // self.choices
        room = left - self.input.nano
        if not self.rate:
            return self.output if room >= 0 else -1
        return floor(room / (self.rate * self.choices))


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
    """Return when the period that holds now began, in UTC; `total` began at 0."""
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
    """Return when the period that holds now ends; `total` does not."""
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
            ledger.estimated.pop(period, None)
    for name, part in list(ledger.parts.items()):
        if part.until < now:
            _count(ledger, part.known)
            _count_estimated(ledger, part.known)
            nano, tokens = part.nano + part.known.nano, part.tokens + part.known.tokens
            # It may come back, and must not count the same again.
            ledger.parts[name] = part._replace(nano=nano, tokens=tokens, held=Amount(), known=Amount())
            if part.until < now - _FORGOTTEN:
                del ledger.parts[name]
                ledger.recent.pop(name, None)


def _count(ledger: Ledger, amount: Amount) -> None:
    if amount:
        for period, spent in ledger.spent.items():
            ledger.spent[period] = Spent(spent.start, spent.nano + amount.nano, spent.tokens + amount.tokens)


def _count_estimated(ledger: Ledger, amount: Amount) -> None:
    if amount:
        for period, spent in ledger.spent.items():
            known = ledger.estimated.get(period, Spent())
            ledger.estimated[period] = Spent(spent.start, known.nano + amount.nano, known.tokens + amount.tokens)


def write_recent(ledger: Ledger, gateway: str, recent: Recent, before: Recent) -> None:
    """Replace what a gateway wrote in addition to its part; `before` as in `write_part`."""
    counted = ledger.recent.get(gateway, before).estimated
    _count_estimated(ledger, Amount(recent.estimated.nano - counted.nano, recent.estimated.tokens - counted.tokens))
    ledger.recent[gateway] = recent


def write_part(ledger: Ledger, gateway: str, part: LedgerPart, before: LedgerPart) -> None:
    """Replace the part of a gateway; `before` is what it wrote last, if the row has forgotten that."""
    counted = ledger.parts.get(gateway, before)
    _count(ledger, Amount(part.nano - counted.nano, part.tokens - counted.tokens))
    ledger.requests += part.requests - counted.requests
    ledger.unpriced += part.unpriced - counted.unpriced
    ledger.parts[gateway] = part


class _Limit(NamedTuple):
    """One limit of a key as it is now: `most` of it, what is spent, and what running requests hold."""

    name: str
    most: int
    spent: int
    held: int
    in_tokens: bool
    period: Period | None = None
    """None: the last minute."""

    @property
    def left(self) -> int:
        return self.most - self.spent - self.held


def decide(ledger: Ledger, rights: Rights, wanted: Wanted, now: int, reserving: Reserving) -> int | Denied:
    """Return how many output tokens a request may have, or why it may not begin."""
    if (denied := find_denial(ledger, rights, now)) is not None:
        return denied
    if reserving == "loose":
        return wanted.output
    if reserving == "refuse":
        wanted = replace(wanted, input=wanted.input.plus(wanted.more))
    granted, least = wanted.output, wanted.output if reserving == "refuse" else min(wanted.least, wanted.output)
    for limit in _limits_of(ledger, rights, now):
        fits = wanted.affordable(limit.left, in_tokens=limit.in_tokens)
        if fits < least:
            return _deny(limit, wanted, least, now, _slots_of(ledger, now))
        granted = min(granted, fits)
    return granted


def find_room(ledger: Ledger, rights: Rights, wanted: Wanted, now: int) -> int | None:
    """Return how many output tokens all that is left has room for; None if nothing limits them."""
    limits = _limits_of(ledger, rights, now)
    return min((wanted.affordable(limit.left, in_tokens=limit.in_tokens) for limit in limits), default=None)


def find_more(ledger: Ledger, rights: Rights, wanted: Wanted, output: int, now: int) -> Amount:
    """Return how much of what the provider may read in addition is reserved: as much as is left."""
    nano, tokens, asked = wanted.more.nano, wanted.more.tokens, wanted.at_most(output)
    for limit in _limits_of(ledger, rights, now) if wanted.more else ():
        if limit.in_tokens:
            tokens = min(tokens, max(0, limit.left - asked.tokens))
        else:
            nano = min(nano, max(0, limit.left - asked.nano))
    return Amount(nano, tokens)


def find_denial(ledger: Ledger, rights: Rights, now: int) -> Denied | None:
    """Say why a key may not make another request now: its budgets and limits, with what running requests hold."""
    for limit in _limits_of(ledger, rights, now):
        if limit.period is not None and limit.left <= 0:
            return _deny_period(limit, limit.period, now)
    slots, most = _slots_of(ledger, now), rights.requests_per_minute
    if most is not None and sum(slot.requests for slot in slots) >= most:
        wait = _find_wait([(slot.start, slot.requests) for slot in slots], most - 1, now)
        return Denied(f"this key may make {most} requests a minute", is_rate=True, retry_after=wait)
    for limit in _limits_of(ledger, rights, now):
        if limit.period is None and limit.left <= 0:
            wait = _find_wait([(slot.start, slot.tokens) for slot in slots], limit.most - limit.held - 1, now)
            return Denied(f"this key may use {limit.name}", is_rate=True, retry_after=wait)
    return None


def _limits_of(ledger: Ledger, rights: Rights, now: int) -> list[_Limit]:
    parts = tuple(ledger.parts.values())
    held = Amount(sum(part.held.nano for part in parts), sum(part.held.tokens for part in parts))
    limits: list[_Limit] = []
    for period in PERIODS:
        if (budget := rights.budgets.get(period)) is not None:
            spent = ledger.spent[period]
            name = "" if period == "total" else f" for the {period}"
            if budget.dollars is not None:
                text, most = f"{name}, ${budget.dollars:g},", round(budget.dollars * NANO)
                limits.append(_Limit(text, most, spent.nano, held.nano, in_tokens=False, period=period))
            if budget.tokens is not None:
                text = f"{name}, {budget.tokens} tokens,"
                limits.append(_Limit(text, budget.tokens, spent.tokens, held.tokens, in_tokens=True, period=period))
    if (most := rights.tokens_per_minute) is not None:
        used = sum(slot.tokens for slot in _slots_of(ledger, now))
        limits.append(_Limit(f"{most} tokens a minute", most, used, held.tokens, in_tokens=True))
    return limits


def _deny_period(limit: _Limit, period: Period, now: int) -> Denied:
    if limit.spent >= limit.most:
        end = end_of(period, now)
        when = "" if end is None else f"; the next {period} begins at {_render_time(end)}"
        return Denied(f"the budget of this key{limit.name} is spent{when}", retry_after=_seconds_to(end, now))
    return Denied(
        f"requests of this key that run may use up the rest of its budget{limit.name.removesuffix(',')}; wait until"
        " one has ended",
        is_rate=True,
        retry_after=1,
    )


def _deny(limit: _Limit, wanted: Wanted, least: int, now: int, slots: Sequence[Slot]) -> Denied:
    """Say why a request that may cost more than is left of a limit is refused, with the figures."""
    asked = wanted.at_most(least)
    text = f"this request may cost {_render(asked, in_tokens=limit.in_tokens)}, with {least} output tokens"
    left = Amount(limit.left, limit.left)
    if limit.period is not None:
        if wanted.affordable(limit.most - limit.spent, in_tokens=limit.in_tokens) >= least:
            return Denied(
                f"{text}, and requests of this key that run may use up the rest of its budget"
                f"{limit.name.removesuffix(',')}; wait until one has ended",
                is_rate=True,
                retry_after=1,
            )
        end = end_of(limit.period, now)
        return Denied(
            f"{text}, and {_render(left, in_tokens=limit.in_tokens)} of the budget of this key{limit.name} are left;"
            " send less, or ask for fewer output tokens",
            retry_after=_seconds_to(end, now),
        )
    if wanted.affordable(limit.most, in_tokens=True) >= least:
        room = limit.most - limit.held - asked.tokens
        wait = _find_wait([(slot.start, slot.tokens) for slot in slots], room, now)
        return Denied(f"{text}, and this key may use {limit.name}", is_rate=True, retry_after=wait)
    return Denied(f"{text}, and this key may use {limit.name}; send less, or ask for fewer output tokens")


def _render(amount: Amount, *, in_tokens: bool) -> str:
    return f"{amount.tokens} tokens" if in_tokens else f"${amount.nano / NANO:.6f}".rstrip("0").rstrip(".")


def _seconds_to(end: int | None, now: int) -> int | None:
    return None if end is None else -(-(end - now) // _SECOND)


def _slots_of(ledger: Ledger, now: int) -> list[Slot]:
    """Return what all gateways counted in the last minute: a slot counts until all of it is older."""
    given = (slot for recent in ledger.recent.values() for slot in recent.slots)
    return sorted(slot for slot in given if is_recent(slot, now))


def is_recent(slot: Slot, now: int) -> bool:
    """Whether a slot, or a part of it, lies in the last minute."""
    return slot.start + SLOT + _MINUTE > now


def _find_wait(counts: Sequence[tuple[int, int]], most: int, now: int) -> int:
    """Return the seconds after which at most `most` are left in the minute; 1 if running requests have to end."""
    rest, wait = sum(count for _, count in counts), 1
    for start, count in counts:
        if rest <= most:
            break
        rest -= count
        wait = max(1, -(-(start + SLOT + _MINUTE - now) // _SECOND))
    return wait


def _render_time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / _SECOND, UTC).strftime("%Y-%m-%d %H:%M UTC")
