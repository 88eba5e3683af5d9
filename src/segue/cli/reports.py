"""Reports: a table of the changes, or the changes as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar

import click

from segue.cli.printable import open_console as open_safe_console
from segue.cli.wording import in_program_words
from segue.errors import render_path
from segue.foundation.json_text import encode_valid_json
from segue.foundation.safe_text import printable
from segue.projection.report import (
    OPAQUE_MEANING,
    SENTENCES,
    Change,
    ChangeCode,
    Loss,
    Report,
    describe_loss,
    describe_size,
)
from segue.requests.tokens import Length

if TYPE_CHECKING:
    from rich.console import Console

Kinds: TypeAlias = Counter[tuple[Loss, ChangeCode]]

_COLOURS: Final[Mapping[Loss, str]] = {Loss.CONTENT: "bold red", Loss.OPAQUE: "yellow", Loss.NONE: "green"}
_SEVERITY: Final = (Loss.CONTENT, Loss.OPAQUE, Loss.NONE)
_WIDE: Final = 160
"""Columns of a table in a pipe: a narrow table would split words and could not be searched."""
_NARROW: Final = 72
"""Columns of a terminal below which a table would have one word on a line: each change has its own lines."""
_DETAIL: Final = 120
"""Characters of what was changed in one place."""
_PLACES: Final = 3
"""How many places are listed for each kind of change."""


_Command = TypeVar("_Command", bound=Callable[..., object])
ReportForm: TypeAlias = Literal["table", "json", "none"]


def report_option(command: _Command) -> _Command:
    """Add the option that says how the report is printed."""
    option = click.option(
        "--report",
        "form",
        type=click.Choice(["table", "json", "none"]),
        default="table",
        show_default=True,
        help="How to print the report to standard error.",
    )
    return option(command)


def open_console(*, stderr: bool = False) -> Console:
    """Return a console of the width that reports have."""
    console = open_safe_console(stderr=stderr)
    if not console.is_terminal:
        console.width = _WIDE
    return console


def show_report(report: Report, *, converts: bool = False) -> None:
    """Print a report to standard error: one row for each kind of change, the most severe first.

    `converts` says that the command is `convert`, whose options the sentences may name.
    """
    console = open_console(stderr=True)
    if not report.changes:
        console.print("No changes.")
        return
    kinds = dict(report.kinds())
    places = {kind: [_place(change) for change in changes] for kind, changes in kinds.items()}
    sizes = {kind: describe_size(changes) for kind, changes in kinds.items()}
    counts = {kind: len(changes) for kind, changes in kinds.items()}
    _show_kinds(console, counts, places, converts=converts, sizes=sizes)


def _place(change: Change) -> str:
    """Return where a change is, and what was changed there: the field, the value."""
    detail = printable(" ".join(change.detail.split()))
    detail = f" ({detail[:_DETAIL]}{'...' if len(detail) > _DETAIL else ''})" if detail and not change.tokens else ""
    return f"{printable(render_path(change.path))}{detail}"


def show_kinds(
    kinds: Kinds,
    places: Mapping[tuple[Loss, ChangeCode], list[str]],
    *,
    stderr: bool = True,
    converts: bool = False,
) -> None:
    """Print the changes of many conversations, with the places of samples; `converts` as in `show_report`."""
    ordered = sorted(kinds, key=lambda kind: (_SEVERITY.index(kind[0]), -kinds[kind], kind[1]))
    _show_kinds(open_console(stderr=stderr), {kind: kinds[kind] for kind in ordered}, places, converts=converts)


def _show_kinds(
    console: Console,
    kinds: Mapping[tuple[Loss, ChangeCode], int],
    places: Mapping[tuple[Loss, ChangeCode], list[str]],
    *,
    converts: bool,
    sizes: Mapping[tuple[Loss, ChangeCode], str] | None = None,
) -> None:
    from rich.padding import Padding
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("count", justify="right")
    table.add_column("dropped")
    table.add_column("change")
    table.add_column("meaning", overflow="fold")
    is_narrow = console.is_terminal and console.width < _NARROW
    for (loss, code), count in kinds.items():
        where = places.get((loss, code), [])
        more = ", ..." if len(where) > _PLACES else ""
        at = f"\nat {', '.join(where[:_PLACES])}{more}" if where else ""
        dropped = f"[{_COLOURS[loss]}]{describe_loss(code, loss)}[/]"
        size = f"{text}: " if sizes and (text := sizes[loss, code]) else ""
        meaning = _plain(size + in_program_words(SENTENCES[code], converts=converts) + at)
        if is_narrow:
            console.print(f"{count} x [bold]{code.value}[/], {dropped} dropped", soft_wrap=True)
            console.print(Padding(meaning, (0, 0, 0, 2)))
        else:
            table.add_row(str(count), dropped, code.value, meaning)
    if not is_narrow:
        console.print(table)
    if any(loss == Loss.OPAQUE for loss, _ in kinds):
        console.print(f"[dim]{OPAQUE_MEANING}[/]")


def _plain(text: str) -> str:
    """Escape square brackets, which rich would read as markup."""
    return text.replace("[", r"\[")


def measured_report(report: Report, length: Length | None = None) -> bytes:
    """Write a report on one line, with the length of the request if it was measured."""
    parts: dict[str, object] = {"lossless": report.lossless, "changes": report.changes}
    return encode_valid_json(parts if length is None else {**parts, "length": length_json(length)})


def length_json(length: Length) -> dict[str, object]:
    """Return the length of a request as JSON."""
    return {
        "fits": length.fits,
        "tokens": length.whole,
        "sentTokens": length.sent,
        "limit": length.limit,
        "share": round(length.share, 4),
        "cost": length.cost,
    }


def numbered_report(line: int, report: bytes, file: str = "") -> bytes:
    """Add the line number to an encoded report, as its first field, after the file if there are several."""
    named = b'"file":%b,' % encode_valid_json(file) if file else b""
    return b'{%b"line":%d,%b' % (named, line, report.removeprefix(b"{"))
