"""How sessions are shown: one line each, as wide as the terminal, and a list to pick one from."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Final, NamedTuple, final

import click

from segue.cli.printable import Control, draw, selected
from segue.foundation.safe_text import in_one_line
from segue.histories.kit.history import Session

_SHORTEST: Final = 8
"""How much of an id is shown at least."""
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_WIDE: Final = 160
"""Columns in a pipe; there a path is written whole, so that it can be searched."""
_GAP: Final = "  "
_LEAST: Final = 24
"""Columns that the title gets at least before a column is added."""
_TITLE: Final = 60
"""Columns of a title in a pipe, at least."""
_PICKED: Final = 12
"""How many sessions the list to pick from shows at once."""
_ENTER: Final = frozenset({"\r", "\n"})
_ESCAPE: Final = "\x1b"
_END: Final = frozenset({_ESCAPE, "\x03", "\x04"})
_KEY: Final = re.compile(r"\x1b[\[O][A-D]|.", re.DOTALL)
_UP: Final = frozenset({"\x1b[A", "\x1bOA", "\x10", "\xe0H", "\x00H"})
_DOWN: Final = frozenset({"\x1b[B", "\x1bOB", "\x0e", "\xe0P", "\x00P"})
_BACK: Final = frozenset({"\x7f", "\x08"})


@final
class _Column(NamedTuple):
    """A column: its heading, its cells, the most it takes of the terminal, and the terminal that it needs."""

    name: str
    cells: list[str]
    widest: int
    needs: int = 0
    right: bool = False
    is_path: bool = False


def session_lines(sessions: Sequence[Session], width: int | None, found: Sequence[str] = ()) -> list[str]:
    """Return a heading and one line for each session, none wider than `width`; None is a pipe.

    `found` are texts to show in the place of the titles.
    """
    now = int(time.time() * 1000)
    ids = short_ids(sessions)
    columns = [
        _Column("agent", [each.format for each in sessions], 16),
        _Column("id", [ids[each.format, each.id] for each in sessions], 24),
        _Column("age", [_age(now, each.updated) for each in sessions], 8),
        _Column("project", [_short(each.cwd) for each in sessions], 40, is_path=True),
        _Column("models", [" ".join(each.models) for each in sessions], 28, 120),
        _Column("messages", [_number(each.messages) for each in sessions], 9, 104, right=True),
        _Column("tokens", [_number(each.tokens) for each in sessions], 11, 130, right=True),
        _Column("$", [f"{each.cost:.2f}" if each.cost else "" for each in sessions], 8, 130, right=True),
    ]
    whole = width or _WIDE
    shown = [
        column._replace(cells=list(map(in_one_line, column.cells)))
        for column in columns
        if column.needs <= whole and any(column.cells)
    ]
    widths = [
        min(
            _WIDE if width is None and column.is_path else column.widest, max(map(_width, (column.name, *column.cells)))
        )
        for column in shown
    ]
    # A long path gives way to the title, a title of at least some words to nothing.
    left = whole - sum(widths) - len(_GAP) * len(widths)
    for at, column in enumerate(shown):
        if width and column.is_path and left < _LEAST:
            less = min(_LEAST - left, max(0, widths[at] - 12))
            widths[at] -= less
            left += less
    title = max(0 if width else _TITLE, left)
    heading = [
        column.name.rjust(size) if column.right else column.name.ljust(size)
        for column, size in zip(shown, widths, strict=True)
    ]
    lines = [_GAP.join((*heading, "found" if found else "title")).rstrip()]
    for number, session in enumerate(sessions):
        row = [_fit(column.cells[number], size, column) for column, size in zip(shown, widths, strict=True)]
        text = in_one_line(" ".join((found[number] if found else session.title or "").split()))
        lines.append(_GAP.join((*row, cut(text, title))).rstrip())
    return lines


def _fit(text: str, size: int, column: _Column) -> str:
    text = _cut_path(text, size) if column.is_path else cut(text, size)
    space = " " * (size - _width(text))
    return space + text if column.right else text + space


def _cut_path(text: str, size: int) -> str:
    """Cut a path at its beginning: the end tells projects apart."""
    if _width(text) <= size:
        return text
    while text and _width(text) >= size:
        text = text[1:]
    return f"…{text}" if size else ""


def cut(text: str, size: int) -> str:
    """Cut a text to so many columns of a terminal."""
    if _width(text) <= size:
        return text
    text = text[:size]
    while text and _width(text) >= size:
        text = text[:-1]
    return f"{text}…" if size else ""


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def short_ids(sessions: Sequence[Session]) -> dict[tuple[str, str], str]:
    """Return the beginning of each id that no other session of its agent in the list has."""
    names = sorted({(session.format, session.id) for session in sessions})
    shortened: dict[tuple[str, str], str] = {}
    for at, (agent, name) in enumerate(names):
        shared = 0
        for other in (*names[max(0, at - 1) : at], *names[at + 1 : at + 2]):
            if other[0] == agent:
                pairs = zip(name, other[1], strict=False)
                same = next((place for place, (one, two) in enumerate(pairs) if one != two), len(name))
                shared = max(shared, same)
        shortened[agent, name] = name[: max(_SHORTEST, shared + 1)]
    return shortened


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _short(folder: str | None) -> str:
    """Write a folder with `~` for the home folder."""
    if folder is None:
        return ""
    home = os.path.expanduser("~")  # noqa: PTH111 - a text is compared
    return f"~{folder.removeprefix(home)}" if folder == home or folder.startswith(home + "/") else folder


def _age(now: int, updated: int | None) -> str:
    """Write how long ago something was."""
    if updated is None:
        return ""
    seconds = max(0, now - updated) // 1000
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return "now"


def pick_session(sessions: Sequence[Session], width: int) -> Session | None:
    """Let the user pick a session: arrows move, letters filter, Enter chooses, Escape ends without one."""
    heading, *lines = session_lines(sessions, width - 2)
    texts = [" ".join(filter(None, (each.format, each.id, each.cwd, each.title))).lower() for each in sessions]
    wanted, at, height = "", 0, 0
    with _keys() as keys:
        while True:
            words = wanted.lower().split()
            left = [number for number, text in enumerate(texts) if all(word in text for word in words)]
            at = max(0, min(at, len(left) - 1))
            first = max(0, min(at - _PICKED // 2, len(left) - _PICKED))
            rows: list[tuple[str, ...]] = [(f"  {heading}",)]
            for place, number in list(enumerate(left))[first : first + _PICKED]:
                rows.append(selected(f"> {lines[number]}") if place == at else (f"  {lines[number]}",))
            rows.append((cut(f"{len(left)} of {len(sessions)}; arrows, Enter, Escape; filter: {wanted}", width - 1),))
            # Back to the first line of what was drawn before, and over it.
            back = Control(f"\x1b[{height - 1:d}A" if height > 1 else "")
            drawn = (piece for row in rows for piece in (Control("\r\n"), *row))
            draw((Control("\r"), back, Control("\x1b[J"), *islice(drawn, 1, None)))
            height = len(rows)
            key = next(keys, _ESCAPE)
            if key in _ENTER or key in _END:
                draw((Control("\r\n"),))
                return sessions[left[at]] if key in _ENTER and left else None
            if key in _UP or key in _DOWN:
                at += 1 if key in _DOWN else -1
            elif key in _BACK:
                wanted = wanted[:-1]
            elif key.isprintable():
                wanted, at = wanted + key, 0


@contextmanager
def _keys() -> Generator[Iterator[str]]:
    """Yield the keys that are typed, one at a time; what is typed ahead is not lost."""
    try:
        import termios
        import tty
    except ImportError:  # Windows
        yield iter(click.getchar, None)
        return
    handle = sys.stdin.fileno()
    before = termios.tcgetattr(handle)
    try:
        tty.setraw(handle, termios.TCSADRAIN)
        yield (
            key
            for typed in iter(lambda: os.read(handle, 64), b"")
            for key in _KEY.findall(typed.decode(errors="replace"))
        )
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)
