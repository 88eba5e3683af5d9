"""The input of a long run, cut into pieces of whole lines.

A file that can be opened a second time is only measured: a piece of it is a place, and whoever converts the piece reads
it there. What comes through a pipe can be read once, so a piece of that carries its bytes.
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
"""About how many bytes a piece has: some milliseconds of work, and little memory for each that is under way."""


@final
class Span(NamedTuple):
    """Whole lines of a file: where they begin and where they end."""

    path: Path
    start: int
    end: int

    def read(self) -> bytes:
        """Read them.

        Raises:
            OSError: the file is not there any more.
        """
        with self.path.open("rb") as file:
            file.seek(self.start)
            return file.read(self.end - self.start)


Piece: TypeAlias = Span | bytes


def find_again(file: BinaryIO) -> Path | None:
    """Give the path under which others can open the same file; None for a pipe, and for standard input."""
    if file is sys.stdin.buffer:
        return None
    path = Path(file.name).resolve()
    status = os.fstat(file.fileno())
    if stat.S_ISREG(status.st_mode) and path.exists() and os.path.samestat(path.stat(), status):
        return path
    return None


def cut_file(path: Path, *, skipped: int) -> Iterator[Span]:
    """Cut a file after its first `skipped` lines, without reading more of it than the ends of pieces."""
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
    """Gather lines, numbered from 1, until they make a piece; the first `skipped` are left out."""
    piece: list[bytes] = []
    last = skipped
    length = 0
    for number, line in lines:
        if number <= skipped:
            continue
        # Blank lines were left out before: without them those that follow would lose their number.
        piece += (b"\n" * (number - last - 1), line)
        last = number
        length += len(line)
        if length >= size:
            yield b"".join(piece)
            piece.clear()
            length = 0
    if piece:
        yield b"".join(piece)
