"""Reading questions in a terminal: one line each, and a pasted text as one question.

Facts:
- A terminal sends pasted text between ESC[200~ and ESC[201~ after a program has printed ESC[?2004h.  (xterm, 2026-11)
- GNU readline does both and returns the lines as one, if `enable-bracketed-paste` is on; Python turns it off.
                                                                           (readline 8.0; CPython 3.11, readline.c)
- libedit, which replaces readline on macOS, does not know these sequences. Of pasted lines, those after the first are
  waiting to be read when `input` returns.                                                     (libedit 3.1, 2026-11)
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Final, Literal

import click

from segue.cli.printable import Control, draw

BEGIN: Final = "\x1b[200~"
END: Final = "\x1b[201~"
_ON: Final = Control("\x1b[?2004h")
_OFF: Final = Control("\x1b[?2004l")
_WAIT: Final = 0.05
"""Seconds within which the next line of a pasted text is there. Nobody types a line in this time."""

Editor = Literal["readline", "libedit", "none"]


def read_questions(complete: Callable[[str], list[str]] | None = None) -> Iterator[str]:
    """Yield the typed questions; Ctrl-C at the prompt clears the line, Ctrl-D ends. Of a pipe, each line is one.

    `complete` gives what a line can be completed to.
    """
    if not sys.stdin.isatty():
        for line in sys.stdin:  # noqa: UP028 - `yield from` would close the input with this generator
            yield line
        return
    editor = _load_editor(complete)
    asks_for_marks = editor == "none" and _marks_pastes() and sys.stderr.isatty()
    try:
        while True:
            if asks_for_marks:
                draw((_ON,))
            try:
                yield read_question(input, is_waiting if editor == "libedit" else None)
            except KeyboardInterrupt:
                click.echo("\n(Ctrl-D or /quit ends the chat)", err=True)
            except EOFError:
                click.echo()
                return
    finally:
        if asks_for_marks:
            draw((_OFF,))


def read_question(read: Callable[[str], str], more: Callable[[], bool] | None = None) -> str:
    """Read a line, and the lines of a pasted text that began in it; `more` tells whether another one is waiting."""
    text = read("> ")
    with suppress(EOFError):
        while True:
            if text.count(BEGIN) > text.count(END) or (more is not None and more()):
                text += "\n" + read("")
            elif text.endswith("\\"):
                text = text[:-1] + "\n" + read("… ")
            else:
                break
    return text.replace(BEGIN, "").replace(END, "")


def is_waiting() -> bool:
    """Whether another line can be read at once."""
    return sys.platform != "win32" and bool(select.select([sys.stdin], [], [], _WAIT)[0])


def _load_editor(complete: Callable[[str], list[str]] | None) -> Editor:
    """Load line editing, completion and a history, if the system has them."""
    try:
        readline = import_module("readline")
    except ImportError:
        return "none"
    if not sys.stdout.isatty():
        return "none"  # `input` uses it only in a terminal
    is_libedit = "libedit" in (readline.__doc__ or "")
    if complete is not None:
        readline.set_completer(partial(_nth_completion, complete))
        readline.set_completer_delims("")  # a whole line is completed
        readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
    if is_libedit:
        return "libedit"
    if _marks_pastes():
        readline.parse_and_bind("set enable-bracketed-paste on")
    return "readline"


def _nth_completion(complete: Callable[[str], list[str]], text: str, at: int) -> str | None:
    found = complete(text)
    return found[at] if at < len(found) else None


def _marks_pastes() -> bool:
    """Whether the terminal understands control sequences."""
    return os.environ.get("TERM", "dumb") != "dumb"
