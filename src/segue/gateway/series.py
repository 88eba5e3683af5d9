"""Figures of requests over time, for the plots of the console."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from segue.conversation.messages import Usage


class _Row(msgspec.Struct, rename="camel"):
    """The part of the row of a request that figures are made of."""

    id: str
    time: int
    outcome: str
    usage: Usage | None = None
    spent: Usage | None = None
    first_byte_ms: int | None = None
    figures: str | None = None


class SeriesStep(msgspec.Struct, rename="camel"):
    """One step of time: requests, errors, dollars, input tokens and those from a cache, and waits in milliseconds."""

    requests: int = 0
    errors: int = 0
    cost: float = 0.0
    estimated: float = 0.0
    """The part of `cost` for which no provider gave a figure."""
    input: int = 0
    cached: int = 0
    waits: list[int] = msgspec.field(default_factory=list[int])

    def figures(self) -> dict[str, float | None]:
        """Return the figures of the step; None where there is nothing to divide."""
        waits = sorted(self.waits)
        return {
            "requests": self.requests,
            "errors": self.errors,
            "cost": self.cost,
            "estimatedCost": self.estimated,
            "cacheShare": self.cached / self.input if self.input else None,
            "firstByte": waits[len(waits) // 2] if waits else None,
            "slowFirstByte": waits[(len(waits) * 19) // 20] if waits else None,
        }


_ROWS: Final = msgspec.json.Decoder(_Row)


class Series:
    """Steps of the same length from a start, in Unix milliseconds."""

    def __init__(self, start: int, length: int, steps: int) -> None:
        self.start: int = start
        self.is_cut: bool = False
        """Whether there are more rows than were added."""
        self._step = max(1, length // steps)
        self._steps = [SeriesStep() for _ in range(steps)]

    def add(self, rows: Iterable[bytes]) -> tuple[int, str] | None:
        """Add rows; return the time and id of the last one."""
        last: tuple[int, str] | None = None
        for data in rows:
            row = _ROWS.decode(data)
            last = row.time, row.id
            at = (row.time - self.start) // self._step
            if at >= 0:
                self._count(self._steps[min(at, len(self._steps) - 1)], row)
        return last

    def _count(self, step: SeriesStep, row: _Row) -> None:
        step.requests += 1
        step.errors += row.outcome == "error"
        billed = row.spent or row.usage
        if billed is not None and billed.cost is not None:
            step.cost += billed.cost.total
            step.estimated += billed.cost.total if row.figures == "estimated" else 0.0
        if (usage := row.usage) is not None:
            step.input += usage.input + usage.cache_read + usage.cache_write
            step.cached += usage.cache_read
        if row.first_byte_ms is not None:
            step.waits.append(row.first_byte_ms)

    def result(self) -> dict[str, object]:
        """Return the figures of all steps."""
        steps = [{"time": self.start + at * self._step, **step.figures()} for at, step in enumerate(self._steps)]
        return {"start": self.start, "step": self._step, "steps": steps, "isCut": self.is_cut}
