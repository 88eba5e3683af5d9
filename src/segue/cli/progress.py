"""The progress of a long run: a bar in the terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

import click

from segue.cli.printable import Control, draw, open_console, write_lines
from segue.histories.regular_files import WATCH

if TYPE_CHECKING:
    from rich.progress import Progress

_REFRESH: Final = 0.1
"""Seconds between two refreshes of the bar."""


class Advance(Protocol):
    """Adds converted bytes of the input, their rows and messages to the progress."""

    def __call__(self, read: int, rows: int, messages: int) -> None:
        """Add to the progress."""


_bars: Final[list[Progress]] = []
"""The bar that is shown; a line that is printed over it would be mixed with it."""


def print_line(text: str | bytes) -> None:
    """Print a line to standard error, above the bar if one is shown; bytes are not flushed, there may be many."""
    if _bars:
        shown = text if isinstance(text, str) else text.decode()
        _bars[-1].console.print(shown, markup=False, highlight=False, soft_wrap=True)
    elif isinstance(text, str):
        click.echo(text, err=True)
    else:
        write_lines(text + b"\n")


@contextmanager
def show_reading() -> Generator[None]:
    """Show in a terminal how much of a long session was read; nothing for a short one, or in a pipe."""
    if not sys.stderr.isatty():
        yield
        return
    passes = last = 0
    shown = 0.0

    def watch(position: int, size: int) -> None:
        nonlocal passes, last, shown
        passes += position < last - size // 2  # the lines are placed first, then read
        last = position
        if time.monotonic() - shown >= _REFRESH:
            shown = time.monotonic()
            share = min(passes + position / size, 2) / 2
            draw((Control("\r"), f"reading {size / 1e6:,.0f} MB: {share:.0%}"))

    token = WATCH.set(watch)
    try:
        yield
    finally:
        WATCH.reset(token)
        if shown:
            draw((Control("\r\x1b[K"),))


@contextmanager
def show_searching(total: int) -> Generator[Callable[[int], None]]:
    """Show in a terminal how many of the sessions were searched; nothing in a pipe, or in a search of no time."""
    if not sys.stderr.isatty():
        yield lambda count: None  # noqa: ARG005 - no terminal
        return
    started = shown = time.monotonic()

    def searched(count: int) -> None:
        nonlocal shown
        if time.monotonic() - shown >= _REFRESH:
            shown = time.monotonic()
            draw((Control("\r"), f"searching: {count:,} of {total:,} sessions"))

    try:
        yield searched
    finally:
        if shown > started:
            draw((Control("\r\x1b[K"),))


@contextmanager
def show_progress(total: int | None, *, shows: bool = True) -> Generator[Advance]:
    """Show a bar with rows, rate and remaining time in a terminal; nothing in a pipe, or if `shows` is false."""
    if not shows or not sys.stderr.isatty():
        yield lambda read, rows, messages: None  # noqa: ARG005 - no terminal
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rows]:,} rows, {task.fields[messages]:,} messages, {task.fields[rate]:,.0f}/s"),
        TimeRemainingColumn(),
    )
    # Without a thread that refreshes it: processes are forked during the run.
    with Progress(*columns, console=open_console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task("", total=total, rows=0, messages=0, rate=0.0)
        seen = counted = 0
        shown = 0.0

        def advance(read: int, rows: int, messages: int) -> None:
            nonlocal seen, counted, shown
            seen += messages
            counted += rows
            elapsed = bar.tasks[0].elapsed or 0.0
            bar.update(task, advance=read, rows=counted, messages=seen, rate=seen / elapsed if elapsed else 0.0)
            if time.monotonic() - shown >= _REFRESH:
                shown = time.monotonic()
                bar.refresh()

        _bars.append(bar)
        try:
            yield advance
        finally:
            _bars.remove(bar)
