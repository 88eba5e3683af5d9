"""What requests cost, by key, model, day and client, for the console."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias, final, get_args

import msgspec

from segue.conversation.messages import Usage

Group: TypeAlias = Literal["key", "model", "day", "client"]
GROUPS: Final[tuple[Group, ...]] = get_args(Group)
_MOST_NAMES: Final = 100
"""Names that a list has; the costs of the rest are one row."""


class _Row(msgspec.Struct, rename="camel"):
    """The part of the row of a request that costs are made of."""

    id: str
    time: int
    client: str
    asked: str
    model: str | None = None
    key: str = ""
    usage: Usage | None = None
    spent: Usage | None = None
    figures: str | None = None


@final
class CostRow(msgspec.Struct, kw_only=True):
    """What the requests of one key, model, day or client cost, in dollars.

    `estimated` is the part of `cost` for which no provider gave a figure; `unpriced` requests were billed at a price
    that is not known, and are not in `cost`.
    """

    name: str
    requests: int = 0
    cost: float = 0.0
    estimated: float = 0.0
    input: int = 0
    output: int = 0
    unpriced: int = 0

    def add(self, row: _Row) -> None:
        """Count a request."""
        billed = row.spent or row.usage
        self.requests += 1
        if billed is None:
            return
        self.input += billed.input + billed.cache_read + billed.cache_write
        self.output += billed.output
        if billed.cost is None:
            self.unpriced += 1
            return
        self.cost += billed.cost.total
        self.estimated += billed.cost.total if row.figures == "estimated" else 0.0

    def merge(self, other: CostRow) -> None:
        """Add the figures of another row."""
        for name in ("requests", "cost", "estimated", "input", "output", "unpriced"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


_ROWS: Final = msgspec.json.Decoder(_Row)


class Costs:
    """Costs of requests from a start on, in Unix milliseconds."""

    def __init__(self, start: int) -> None:
        self.start: int = start
        self.is_cut: bool = False
        """Whether there are more rows than were added."""
        self._found: dict[Group, dict[str, CostRow]] = {group: {} for group in GROUPS}

    def add(self, rows: Iterable[tuple[str, str, bytes]]) -> tuple[int, str] | None:
        """Add rows, each with its id and tenant; return the time and id of the last one."""
        last: tuple[int, str] | None = None
        for _, tenant, data in rows:
            row = _ROWS.decode(data)
            last = row.time, row.id
            if row.time < self.start:
                continue
            names: dict[Group, str] = {
                "key": row.key or tenant or "no key",
                "model": row.model or "no model",
                "day": f"{datetime.fromtimestamp(row.time / 1000, UTC):%Y-%m-%d}",
                "client": row.client or "unknown",
            }
            for group, name in names.items():
                found = self._found[group]
                if name not in found:
                    found[name] = CostRow(name=name)
                found[name].add(row)
        return last

    def result(self) -> dict[str, object]:
        """Return the rows of each group: days in order, the newest first, all others by what they cost."""
        listed = {group: _listed(group, [*found.values()]) for group, found in self._found.items()}
        return {"start": self.start, "by": listed, "isCut": self.is_cut}


def _listed(group: Group, rows: list[CostRow]) -> list[CostRow]:
    if group == "day":
        return sorted(rows, key=lambda row: row.name, reverse=True)
    ordered = sorted(rows, key=lambda row: (-row.cost, -row.requests, row.name))
    kept, rest = ordered[:_MOST_NAMES], ordered[_MOST_NAMES:]
    if rest:
        others = CostRow(name=f"{len(rest)} others")
        for row in rest:
            others.merge(row)
        kept.append(others)
    return kept
