"""How far a long run is: a bar for whoever watches, and a note beside the output for whoever goes on later."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol, final

import msgspec

from segue.errors import LoadError

_EVERY: Final = 1000
"""After how many conversations the note is written anew."""


@final
class _Note(msgspec.Struct, frozen=True):
    """Up to which line of the input the output is whole, and how many bytes that is."""

    line: int
    bytes: int


@final
class Resumable:
    """An output file that a run which was cut off can go on with.

    Beside it lies a note, `<output>.progress`, until the run is done. What was written after the note is taken back.
    """

    def __init__(self, path: str, *, resume: bool) -> None:
        self._note = Path(f"{path}.progress")
        done = self._read(path) if resume else _Note(0, 0)
        self._file = Path(path).open("r+b" if done.bytes else "wb")  # noqa: SIM115 - closed by `finish` or `close`
        if done.bytes:
            # Only there: a new file that is cut, even to nothing, is sent to the disk by ext4 when it is closed.
            self._file.truncate(done.bytes)
            self._file.seek(done.bytes)
        self.line: int = done.line
        self._strip_leading_extra = 0

    def _read(self, path: str) -> _Note:
        if not self._note.exists():
            reason = "it is whole, or was never begun" if Path(path).exists() else "there is nothing to go on with"
            raise LoadError(f"{path}: no {self._note.name} lies beside it: {reason}")
        try:
            note = msgspec.json.decode(self._note.read_bytes(), type=_Note)
        except msgspec.DecodeError as error:
            raise LoadError(f"{self._note}: not a note of how far it went: {error}") from error
        if not Path(path).exists() or Path(path).stat().st_size < note.bytes:
            raise LoadError(f"{path}: shorter than {self._note.name} says: it was changed meanwhile")
        return note

    def write(self, data: bytes | memoryview, conversations: int, line: int) -> None:
        """Add what was made of the lines up to `line`."""
        self._file.write(data)
        self.line = line
        self._strip_leading_extra += conversations
        if self._strip_leading_extra >= _EVERY:
            self._strip_leading_extra = 0
            self.note()

    def note(self) -> None:
        """Say how far it is, so that the note is never ahead of the output."""
        self._file.flush()
        fresh = self._note.with_name(f"{self._note.name}.new")
        fresh.write_bytes(msgspec.json.encode(_Note(self.line, self._file.tell())))
        fresh.replace(self._note)

    def close(self, *, done: bool) -> None:
        """Close the output; the note stays where there is more to do."""
        if done:
            self._note.unlink(missing_ok=True)
        else:
            self.note()
        self._file.close()


class Advance(Protocol):
    """Says that some bytes of the input, and the messages in them, are done."""

    def __call__(self, read: int, messages: int) -> None:
        """Add to what is done."""


@contextmanager
def show_progress(total: int | None) -> Generator[Advance]:
    """Show a bar with rate and time to go, where someone watches; nothing anywhere else."""
    if not sys.stderr.isatty():
        yield lambda read, messages: None  # noqa: ARG005 - nobody watches
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[messages]:,} messages, {task.fields[rate]:,.0f}/s"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total, messages=0, rate=0.0)
        seen = 0

        def advance(read: int, messages: int) -> None:
            nonlocal seen
            seen += messages
            elapsed = bar.tasks[0].elapsed or 0.0
            bar.update(task, advance=read, messages=seen, rate=seen / elapsed if elapsed else 0.0)

        yield advance
