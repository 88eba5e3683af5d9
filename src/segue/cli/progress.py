"""The progress of a long run: a bar in the terminal, and a progress file that lets a later run resume."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol, final

import msgspec

from segue.errors import LoadError

_EVERY: Final = 1000
"""The number of conversations after which the progress file is written."""


@final
class _Position(msgspec.Struct, frozen=True):
    """The last line of the input that was converted, and the size of the output up to there."""

    line: int
    bytes: int


@final
class Resumable:
    """An output file that a later run can resume.

    `<output>.progress` has the position until the run is complete. When a run resumes, output after that position is
    removed.
    """

    def __init__(self, path: str, *, resume: bool) -> None:
        self._progress = Path(f"{path}.progress")
        done = self._read(path) if resume else _Position(0, 0)
        self._file = Path(path).open("r+b" if done.bytes else "wb")  # noqa: SIM115 - closed by `close`
        if done.bytes:
            # Not for a new file: ext4 flushes a truncated file to the disk when it is closed.
            self._file.truncate(done.bytes)
            self._file.seek(done.bytes)
        self.line: int = done.line
        self._unrecorded = 0

    def _read(self, path: str) -> _Position:
        if not self._progress.exists():
            reason = "the run is complete, or was never started" if Path(path).exists() else "there was no such run"
            raise LoadError(
                f"{path}: cannot resume, because {self._progress.name} does not exist: {reason}; run without --resume"
            )
        try:
            position = msgspec.json.decode(self._progress.read_bytes(), type=_Position)
        except msgspec.DecodeError as error:
            raise LoadError(
                f"{self._progress}: cannot resume, because this is not a progress file: {error}; run without --resume"
            ) from error
        if not Path(path).exists() or Path(path).stat().st_size < position.bytes:
            raise LoadError(
                f"{path}: cannot resume, because it was changed: it is shorter than {self._progress.name} records; run"
                " without --resume"
            )
        return position

    def write(self, data: bytes | memoryview, conversations: int, line: int) -> None:
        """Write the requests of the lines up to `line`."""
        self._file.write(data)
        self.line = line
        self._unrecorded += conversations
        if self._unrecorded >= _EVERY:
            self._unrecorded = 0
            self.record()

    def record(self) -> None:
        """Write the progress file, after the output up to that position."""
        self._file.flush()
        fresh = self._progress.with_name(f"{self._progress.name}.new")
        fresh.write_bytes(msgspec.json.encode(_Position(self.line, self._file.tell())))
        fresh.replace(self._progress)

    def close(self, *, done: bool) -> None:
        """Close the output; the progress file is removed if the run is `done`."""
        if done:
            self._progress.unlink(missing_ok=True)
        else:
            self.record()
        self._file.close()


class Advance(Protocol):
    """Adds converted bytes of the input and their messages to the progress."""

    def __call__(self, read: int, messages: int) -> None:
        """Add to the progress."""


@contextmanager
def show_progress(total: int | None, *, shows: bool = True) -> Generator[Advance]:
    """Show a bar with rate and remaining time in a terminal; nothing in a pipe, or if `shows` is false."""
    if not shows or not sys.stderr.isatty():
        yield lambda read, messages: None  # noqa: ARG005 - no terminal
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
