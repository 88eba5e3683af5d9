"""Plots of the figures as SVG: labelled bars, and lines with logarithmic scales.

They are written without a library, because they need only three kinds of elements. They are readable without colour
(segue is solid, the others are outlined; lines have different dashes and a label at their end) and in light and dark
mode: the colours follow the preference of the reader's system, and the background is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

from figures import Figure, Mark

_WIDTH: Final = 860
_LEFT, _RIGHT, _TOP = 190, 110, 60
_BAR, _GAP, _HEADING, _ROW_GAP = 14, 4, 18, 12
_OURS: Final = "segue"
_STYLE: Final = """
  .ground { fill: #ffffff } .ink { fill: #1f2328 } .quiet { fill: #59636e } .line { stroke: #59636e }
  .ours { fill: #1f2328; stroke: #1f2328 } .theirs { fill: #d1d9e0; stroke: #59636e } .curve { stroke: #1f2328 }
  .cut { stroke: #ffffff }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117 } .ink { fill: #f0f6fc } .quiet { fill: #9198a1 } .line { stroke: #9198a1 }
    .ours { fill: #f0f6fc; stroke: #f0f6fc } .theirs { fill: #30363d; stroke: #9198a1 } .curve { stroke: #f0f6fc }
    .cut { stroke: #0d1117 }
  }
"""
_SVG: Final = f'width="{_WIDTH}" font-family="sans-serif" font-size="12" role="img"'
_DASHES: Final = ("", "7 4", "2 3", "10 3 2 3", "4 2", "1 4")


@dataclass(frozen=True)
class Plot:
    """The title, the unit and the kind of a plot. Bars longer than `most` are cut."""

    title: str
    unit: str
    most: float = math.inf
    lines: bool = False


PLOTS: Final[Mapping[str, Plot]] = {
    "import": Plot("Import time", "ms of CPU, without the interpreter"),
    "cold": Plot(
        "A request from 1,000 stored messages",
        "x orjson.dumps of that request; shorter is faster; * does less work, see figures.csv",
        most=30,
    ),
    "growth": Plot(
        "anthropic-messages: time for each message, by length of the history", "µs for each message", lines=True
    ),
    "warm": Plot("One more turn, as bytes of the body", "ms of CPU; shorter is faster"),
}


def draw_plots(figures: Sequence[Figure]) -> dict[str, str]:
    """Draw every plot that has figures, by name."""
    marks = [figure.mark for figure in figures if figure.mark is not None]
    drawn: dict[str, str] = {}
    for name, plot in PLOTS.items():
        own = [mark for mark in marks if mark.plot == name]
        if own:
            drawn[name] = _draw_lines(plot, own) if plot.lines else _draw_bars(plot, own)
    return drawn


def _frame(plot: Plot, height: float, elements: Iterator[str]) -> str:
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" height="{height:.0f}" {_SVG}>',
        f"<title>{escape(plot.title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="ground" width="{_WIDTH}" height="{height:.0f}"/>',
        _text(16, 24, plot.title, size=16),
        _text(16, 42, plot.unit, tone="quiet"),
        *elements,
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _text(x: float, y: float, words: str, *, anchor: str = "start", size: int = 12, tone: str = "ink") -> str:
    return (
        f'<text class="{tone}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(words)}</text>'
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


# -- bars --------------------------------------------------------------------------------------------------------------


def _draw_bars(plot: Plot, marks: Sequence[Mark]) -> str:
    rows: dict[str, list[Mark]] = {}
    for mark in marks:
        rows.setdefault(mark.row, []).append(mark)
    most = min(plot.most, max(mark.value for mark in marks))
    scale = (_WIDTH - _LEFT - _RIGHT) / most
    height = _TOP + sum(_HEADING + len(row) * (_BAR + _GAP) + _ROW_GAP for row in rows.values())
    return _frame(plot, height, _bar_elements(rows, scale, most))


def _bar_elements(rows: Mapping[str, Sequence[Mark]], scale: float, most: float) -> Iterator[str]:
    top = float(_TOP)
    for row, marks in rows.items():
        yield _text(16, top + 10, row, size=13)
        top += _HEADING
        for mark in marks:
            long = min(mark.value, most) * scale
            middle = top + _BAR - 3
            tone = "ours" if mark.series == _OURS else "theirs"
            yield _text(_LEFT - 8, middle, mark.series, anchor="end", tone="ink" if tone == "ours" else "quiet")
            yield f'<rect class="{tone}" x="{_LEFT}" y="{top:.1f}" width="{max(long, 1):.1f}" height="{_BAR}"/>'
            if mark.value > most:  # two strokes of the ground's colour: the bar goes on
                for at in (long - 14, long - 8):
                    place = f"M{_LEFT + at:.1f} {top + _BAR + 1:.1f} l5 -{_BAR + 2}"
                    yield f'<path class="cut" fill="none" stroke-width="2.5" d="{place}"/>'
            yield _text(_LEFT + max(long, 1) + 6, middle, _number(mark.value))
            top += _BAR + _GAP
        top += _ROW_GAP


# -- lines -------------------------------------------------------------------------------------------------------------

_HEIGHT: Final = 456
_BOTTOM: Final = _HEIGHT - 52
_SIDE: Final = 64


def _draw_lines(plot: Plot, marks: Sequence[Mark]) -> str:
    series: dict[str, list[tuple[float, float]]] = {}
    for mark in marks:
        series.setdefault(mark.series, []).append((float(mark.row), mark.value))
    across = _logarithmic([float(mark.row) for mark in marks], _SIDE, _WIDTH - _RIGHT - 20)
    upward = _logarithmic([mark.value for mark in marks], _BOTTOM - 14, _TOP + 10)
    return _frame(plot, _HEIGHT, _line_elements(series, across, upward))


def _logarithmic(values: Sequence[float], begin: float, end: float) -> Callable[[float], float]:
    low, high = math.log10(min(values)), math.log10(max(values))
    return lambda value: begin + (math.log10(value) - low) / ((high - low) or 1) * (end - begin)


def _line_elements(
    series: Mapping[str, Sequence[tuple[float, float]]],
    across: Callable[[float], float],
    upward: Callable[[float], float],
) -> Iterator[str]:
    points = [point for line in series.values() for point in line]
    yield f'<path class="line" fill="none" d="M{_SIDE} {_TOP} V{_BOTTOM} H{_WIDTH - _RIGHT}"/>'
    for x in sorted({x for x, _ in points}):
        yield f'<path class="line" d="M{across(x):.1f} {_BOTTOM} v5"/>'
        yield _text(across(x), _BOTTOM + 20, f"{x:,.0f}", anchor="middle", tone="quiet")
    yield _text((_SIDE + _WIDTH - _RIGHT) / 2, _BOTTOM + 38, "messages", anchor="middle", tone="quiet")
    for y in _steps([y for _, y in points]):
        yield f'<path class="line" stroke-opacity="0.35" d="M{_SIDE} {upward(y):.1f} H{_WIDTH - _RIGHT - 20}"/>'
        yield _text(_SIDE - 8, upward(y) + 4, f"{y:g}", anchor="end", tone="quiet")
    ends = _spaced({name: upward(line[-1][1]) for name, line in series.items()})
    for (name, line), dashes in zip(series.items(), _DASHES * len(series), strict=False):
        path = " L".join(f"{across(x):.1f} {upward(y):.1f}" for x, y in line)
        width = 3 if name == _OURS else 1.5
        yield f'<path class="curve" fill="none" stroke-width="{width}" stroke-dasharray="{dashes}" d="M{path}"/>'
        x, y = line[-1]
        yield _text(across(x) + 8, ends[name] + 4, f"{name} {_number(y)}", tone="ink" if name == _OURS else "quiet")


def _steps(values: Sequence[float]) -> list[float]:
    """Choose 1, 2 and 5 times every power of ten in the range of the values."""
    low, high = min(values), max(values)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [step * 10**power for power in powers for step in (1, 2, 5) if low <= step * 10**power <= high]


def _spaced(places: Mapping[str, float]) -> dict[str, float]:
    """Move overlapping labels apart."""
    spaced: dict[str, float] = {}
    last = -math.inf
    for name, place in sorted(places.items(), key=lambda item: item[1]):
        last = spaced[name] = max(place, last + 14)
    return spaced
