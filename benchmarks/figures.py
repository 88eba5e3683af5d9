"""One measured figure, its goal, and how both are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

Unit: TypeAlias = Literal["times", "part", "MB", "ms", "us", "ns", "a second", "%", "tokens", "requests", "thousand"]


def as_part(value: float) -> str:
    """Write a ratio below one as a fraction, any other as a multiple."""
    if value <= 0.0005:
        return "under 1/2000"
    if value > 1:
        return f"{value:.2f} x"
    return f"1/{1 / value:.1f}" if value > 0.05 else f"1/{1 / value:.0f}"


_WRITTEN: Final[Mapping[Unit, Callable[[float], str]]] = {
    "times": "{:.2f} x".format,
    "part": as_part,
    "MB": "{:.1f} MB".format,
    "ms": "{:.2f} ms".format,
    "us": "{:.2f} µs".format,
    "ns": "{:.1f} ns".format,
    "a second": "{:,.0f} a second".format,
    "%": "{:.1f} %".format,
    "tokens": "{:,.0f} tokens".format,
    "requests": "{:,.0f} requests".format,
    "thousand": "{:,.0f} thousand".format,
}


@dataclass(frozen=True)
class Goal:
    """The bound that a figure must not exceed, and the aim; with `at_least`, bounds that it must reach."""

    must: float
    aim: float | None = None
    at_least: bool = False

    def is_met(self, value: float, bound: float) -> bool:
        """Whether a value meets a bound."""
        return value >= bound if self.at_least else value <= bound


class Mark(NamedTuple):
    """The place of a figure in a plot."""

    plot: str
    row: str
    series: str
    value: float


@dataclass(frozen=True)
class Figure:
    """One row of a table; `key` names its goal. Without a value it was not measured, and `note` has the reason."""

    key: str
    what: str
    unit: Unit
    value: float | None
    spread: str = ""
    note: str = ""
    mark: Mark | None = None

    def written(self) -> str:
        """Write the value for a table."""
        return "not measured" if self.value is None else _WRITTEN[self.unit](self.value)

    def row(self) -> tuple[str, ...]:
        """Return the row for readers: what, value, spread, note."""
        return (self.what, self.written(), self.spread, self.note)

    def cells(self, goal: Goal | None) -> tuple[str, ...]:
        """Return the row: what, value, spread, must, aim, verdict, note."""
        must = aim = ""
        if goal is not None:
            must = _WRITTEN[self.unit](goal.must)
            aim = "" if goal.aim is None else _WRITTEN[self.unit](goal.aim)
        return (self.what, self.written(), self.spread, must, aim, self.verdict(goal), self.note)

    def verdict(self, goal: Goal | None) -> str:
        """Compare the value with the goal, if there is one."""
        if goal is None or self.value is None:
            return ""
        if goal.aim is not None and goal.is_met(self.value, goal.aim):
            return "aim met"
        return "must met" if goal.is_met(self.value, goal.must) else "MISSED"


COLUMNS: Final = ("what", "value", "quartiles of the rounds", "note")
HEADINGS: Final = (*COLUMNS[:3], "must", "aim", "verdict", "note")


def render_table(rows: list[tuple[str, ...]]) -> str:
    """Write rows as a Markdown table with aligned columns."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def render_verdicts(figures: list[Figure], goals: Mapping[str, Goal]) -> str:
    """Write one row for every goal: the number of its figures, and the worst of them."""
    rows: list[tuple[str, ...]] = [("goal", "figures", "worst of them", "value", "must", "aim", "verdict")]
    for key, goal in goals.items():
        compared = [figure for figure in figures if figure.key == key and figure.value is not None]
        if not compared:
            continue
        worst = (min if goal.at_least else max)(compared, key=lambda figure: figure.value or 0.0)
        what, value, _, must, aim, verdict, _ = worst.cells(goal)
        rows.append((key, str(len(compared)), what, value, must, aim, verdict))
    return render_table(rows)
