"""Splits the input of a long run into pieces of complete rows.

A piece of a file that can be opened again is a range of bytes or of rows; the process that converts it reads it. A pipe
or a compressed file can be read only from its start, so its pieces are bytes.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TypeAlias, final

from segue.histories.opening import Lines

SIZE: Final = 512 * 1024
"""The approximate size of a piece in bytes: some milliseconds of work, and little memory for each."""


@final
class Span(NamedTuple):
    """Complete lines of a file: the start and the end, in bytes."""

    path: Path
    start: int
    end: int

    def read(self) -> bytes:
        """Read the lines.

        Raises:
            OSError: the file no longer exists.
        """
        with self.path.open("rb") as file:
            file.seek(self.start)
            return file.read(self.end - self.start)


@final
class RowSpan(NamedTuple):
    """Rows of one row group of a Parquet file."""

    path: str
    group: int
    start: int
    end: int


@final
class WholeFile(NamedTuple):
    """A file that holds one conversation; `ending` is that of a compressed file."""

    path: str
    ending: str = ""


Rows: TypeAlias = Span | bytes | RowSpan | WholeFile


@final
class ShardPiece(NamedTuple):
    """Rows of one shard: its number in the run, the file that they come from, and their position in it.

    `offset` is the position of the first row: in bytes, or in rows for Parquet. `last`
    marks the last piece of a shard.
    """

    rows: Rows
    shard: int = 0
    file: str = ""
    offset: int = 0
    last: bool = False
    failed: str = ""
    """Why the rest of the shard cannot be read; such a piece is the last one."""

    def halves(self) -> tuple[ShardPiece, ShardPiece] | None:
        """Divide a piece between its rows; None if it has only one row. Blank lines are rows, too."""
        rows = self.rows
        if isinstance(rows, RowSpan):
            middle = (rows.start + rows.end) // 2
            if middle == rows.start:
                return None
            before, after = rows._replace(end=middle), rows._replace(start=middle)
            first = self._replace(rows=before, last=False)
            return first, self._replace(rows=after, offset=self.offset + middle - rows.start)
        if isinstance(rows, WholeFile):
            return None
        data = rows if isinstance(rows, bytes) else rows.read()
        lines = list(BytesIO(data))
        if len(lines) < 2:
            return None
        middle = len(lines) // 2
        before, after = b"".join(lines[:middle]), b"".join(lines[middle:])
        return self._replace(rows=before, last=False), self._replace(rows=after, offset=self.offset + len(before))


def find_again(file: BinaryIO) -> Path | None:
    """Return the path by which another process can open the same file; None for a pipe or a file in memory."""
    if file is sys.stdin.buffer:
        return None
    path = Path(file.name).resolve()
    try:
        status = os.fstat(file.fileno())
    except OSError:  # it is in memory
        return None
    if stat.S_ISREG(status.st_mode) and path.exists() and os.path.samestat(path.stat(), status):
        return path
    return None


def cut_file(path: Path, *, start: int = 0, end: int | None = None, skipped: int = 0) -> Iterator[Span]:
    """Split a part of a file after its first `skipped` lines; only the ends of pieces are read."""
    with path.open("rb") as file:
        file.seek(start)
        start += sum(map(len, islice(file, skipped)))
        size = path.stat().st_size if end is None else end
        while start < size:
            file.seek(min(start + SIZE, size))
            file.readline()
            cut = min(file.tell(), size)
            yield Span(path, start, cut)
            start = cut


def cut_lines(lines: Lines, *, size: int, skipped: int = 0) -> Iterator[bytes]:
    """Join lines, numbered from 1, into pieces of about `size` bytes; the first `skipped` lines are left out."""
    piece: list[bytes] = []
    last, length = skipped, 0
    for number, line in lines:
        if number <= skipped:
            continue
        # The caller leaves out blank lines. They are added again, so that later lines keep their numbers.
        piece += (b"\n" * (number - last - 1), line)
        last = number
        length += len(line)
        if length >= size:
            yield b"".join(piece)
            piece.clear()
            length = 0
    if piece:
        yield b"".join(piece)


def cut_stream(file: BinaryIO, size: int | None = None) -> Iterator[bytes]:
    """Read a file from its position to its end, or so many bytes, in pieces of complete lines."""
    waiting: list[bytes] = []
    left = sys.maxsize if size is None else size
    while data := file.read(min(SIZE, left)):
        left -= len(data)
        end = data.rfind(b"\n") + 1
        if end:
            yield b"".join((*waiting, data[:end]))
            waiting.clear()
        if end < len(data):
            waiting.append(data[end:])
    if waiting:
        yield b"".join(waiting)


def cut_span(file: BinaryIO, size: int, start: int, end: int | None) -> tuple[int, int]:
    """Move the ends of a range of bytes to the ends of the lines that they are in; the file has `size` bytes."""
    return _line_start(file, start), size if end is None or end >= size else _line_start(file, end)


def _line_start(file: BinaryIO, position: int) -> int:
    if position == 0:
        return 0
    file.seek(position - 1)
    file.readline()
    return file.tell()
