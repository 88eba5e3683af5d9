"""Keys as people and programs read them: their rights, and what they spent of their budgets."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, final

import msgspec

from segue.gateway.keys import PERIODS, Budget, Period
from segue.gateway.store.key_table import KeySpending
from segue.gateway.store.ledger import NANO, Ledger, Spent

_NAMES: Final[Mapping[Period, str]] = {"day": "today", "week": "this week", "month": "this month", "total": "in all"}


@final
class SpentRow(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What was spent in the current period: US dollars and tokens, and how much of that is estimated, not measured."""

    dollars: float
    tokens: int
    estimated_dollars: float = 0.0
    estimated_tokens: int = 0

    def render_dollars(self) -> str:
        """Render the dollars, with the part that is estimated."""
        estimated = f" (${self.estimated_dollars:.4f} estimated)" if self.estimated_tokens else ""
        return f"${self.dollars:.4f}{estimated}"


@final
class KeyRow(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A key in a list. Times are Unix milliseconds; `unpriced` requests had no known price and are not in `dollars`."""

    id: str
    name: str
    hint: str
    made: int
    state: str
    routes: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    expires: int | None = None
    revoked: int | None = None
    budgets: dict[Period, Budget] = msgspec.field(default_factory=dict[Period, Budget])
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    spent: dict[Period, SpentRow] = msgspec.field(default_factory=dict[Period, SpentRow])
    requests: int = 0
    unpriced: int = 0

    def line(self) -> str:
        """Render the key in one line."""
        total = self.spent["total"]
        parts = [
            f"{self.name}  {self.id}  ...{self.hint}  {self.state}",
            f"{self.requests} requests, {total.tokens} tokens, {total.render_dollars()}",
        ]
        for period, budget in self.budgets.items():
            spent, name = self.spent[period], _NAMES[period]
            if budget.dollars is not None:
                parts.append(f"{spent.render_dollars()} of ${budget.dollars:g} {name}")
            if budget.tokens is not None:
                parts.append(f"{spent.tokens} of {budget.tokens} tokens {name}")
        if self.requests_per_minute is not None:
            parts.append(f"{self.requests_per_minute} requests a minute")
        if self.tokens_per_minute is not None:
            parts.append(f"{self.tokens_per_minute} tokens a minute")
        parts += [f"routes {', '.join(self.routes)}"] if self.routes else []
        parts += [f"models {', '.join(self.models)}"] if self.models else []
        if self.expires is not None:
            parts.append(f"expires {datetime.fromtimestamp(self.expires / 1000, UTC):%Y-%m-%d %H:%M UTC}")
        return "; ".join(parts)


def describe_key(row: KeySpending, now: int) -> KeyRow:
    """Describe a key with what it spent up to now."""
    key, ledger = row
    rights = key.rights
    return KeyRow(
        id=key.id,
        name=key.name,
        hint=key.hint,
        made=key.made,
        state="valid" if (problem := key.refusal(now)) is None else problem.rpartition(" ")[2],
        routes=rights.routes,
        models=rights.models,
        expires=rights.expires,
        revoked=key.revoked,
        budgets=rights.budgets,
        requests_per_minute=rights.requests_per_minute,
        tokens_per_minute=rights.tokens_per_minute,
        spent={period: _describe_spent(ledger, period) for period in PERIODS},
        requests=ledger.requests,
        unpriced=ledger.unpriced,
    )


def _describe_spent(ledger: Ledger, period: Period) -> SpentRow:
    spent, estimated = ledger.spent[period], ledger.estimated.get(period, Spent())
    return SpentRow(
        dollars=spent.nano / NANO,
        tokens=spent.tokens,
        estimated_dollars=estimated.nano / NANO,
        estimated_tokens=estimated.tokens,
    )
