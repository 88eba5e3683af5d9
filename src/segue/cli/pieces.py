"""Splits the input of a long run into pieces of complete lines.

A piece of a file that can be opened again is a range of bytes; the process that converts it reads it. A pipe can be
read only once, so its pieces are bytes.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TypeAlias, final

from segue.documents import Lines

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


Piece: TypeAlias = Span | bytes


def find_again(file: BinaryIO) -> Path | None:
    """Return the path by which another process can open the same file; None for a pipe and standard input."""
    if file is sys.stdin.buffer:
        return None
    path = Path(file.name).resolve()
    status = os.fstat(file.fileno())
    if stat.S_ISREG(status.st_mode) and path.exists() and os.path.samestat(path.stat(), status):
        return path
    return None


def cut_file(path: Path, *, skipped: int) -> Iterator[Span]:
    """Split a file after its first `skipped` lines; only the ends of pieces are read."""
    with path.open("rb") as file:
        start = sum(map(len, islice(file, skipped)))
        size = path.stat().st_size
        while start < size:
            file.seek(min(start + SIZE, size))
            file.readline()
            end = file.tell()
            yield Span(path, start, end)
            start = end


def cut_lines(lines: Lines, *, skipped: int, size: int) -> Iterator[bytes]:
    """Join lines, numbered from 1, into pieces of about `size` bytes; the first `skipped` lines are left out."""
    piece: list[bytes] = []
    last = skipped
    length = 0
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
