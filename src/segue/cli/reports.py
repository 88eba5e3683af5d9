"""Reports for people and for programs: a table of what was changed, or the changes as JSON."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from segue.errors import render_path
from segue.projection.report import SENTENCES, Change, ChangeCode, Loss, Report
from segue.projection.requirements import Requirement

if TYPE_CHECKING:
    from rich.console import Console

Kinds: TypeAlias = Counter[tuple[Loss, ChangeCode]]

_COLOURS: Final[Mapping[Loss, str]] = {Loss.CONTENT: "bold red", Loss.OPAQUE: "yellow", Loss.NONE: "green"}
_SEVERITY: Final = (Loss.CONTENT, Loss.OPAQUE, Loss.NONE)
_WIDE: Final = 160
"""Columns where there is no screen: a table that is folded for one cannot be searched."""
_PLACES: Final = 3
"""How many places of one kind of change are named."""


def kinds_of(changes: Iterable[Change]) -> list[tuple[Loss, ChangeCode]]:
    """Say of each change what it costs and what it is, to be counted."""
    return [(change.loss, change.code) for change in changes]


def open_console(*, stderr: bool = False) -> Console:
    """Give a console that speaks plainly where nobody watches: no colour with NO_COLOR, no control codes in a pipe."""
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = _WIDE
    return console


def show_report(report: Report, requirements: Iterable[Requirement] = ()) -> None:
    """Print a report to standard error: one row for each kind of change, the costliest first."""
    console = open_console(stderr=True)
    if not report.changes:
        console.print("Nothing was changed.")
    else:
        places: defaultdict[tuple[Loss, ChangeCode], list[str]] = defaultdict(list)
        for change in report.changes:
            places[change.loss, change.code].append(render_path(change.path))
        _show_kinds(console, Counter(kinds_of(report.changes)), places)
    for requirement in requirements:
        console.print(f"needed: {requirement}", markup=False)


def show_kinds(kinds: Kinds) -> None:
    """Print what was changed in many conversations, to standard error."""
    _show_kinds(open_console(stderr=True), kinds, {})


def _show_kinds(console: Console, kinds: Kinds, places: Mapping[tuple[Loss, ChangeCode], list[str]]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("times", justify="right")
    table.add_column("loss")
    table.add_column("change")
    table.add_column("what it means", overflow="fold")
    for loss, code in sorted(kinds, key=lambda kind: (_SEVERITY.index(kind[0]), -kinds[kind], kind[1])):
        where = places.get((loss, code), [])
        more = ", ..." if len(where) > _PLACES else ""
        at = f"\nat {', '.join(where[:_PLACES])}{more}" if where else ""
        colour = _COLOURS[loss]
        table.add_row(str(kinds[loss, code]), f"[{colour}]{loss.value}[/]", code.value, _plain(SENTENCES[code] + at))
    console.print(table)


def _plain(text: str) -> str:
    """Keep square brackets from being read as colours."""
    return text.replace("[", r"\[")


def report_json(report: Report) -> bytes:
    """Write a report on one line."""
    return msgspec.json.encode({"lossless": report.lossless, "changes": report.changes})


def numbered_report(line: int, report: bytes) -> bytes:
    """Add to a report, written already, the line of the file that it belongs to: first, and the line is ended."""
    return b'{"line":%d,%b\n' % (line, report.removeprefix(b"{"))
