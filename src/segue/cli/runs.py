"""A long run: pieces of the input become batches of requests, in order, here or in other processes."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice

from segue.cli.batches import Batch, Job, convert_piece
from segue.cli.pieces import Piece


@contextmanager
def converting(job: Job, pieces: Iterator[Piece], *, skipped: int, processes: int) -> Generator[Iterator[Batch]]:
    """Convert every piece and give the batches in the order of the input, whose first `skipped` lines are not in it.

    Memory does not grow with the input. On the way in there must be no threads yet: processes may be forked.
    """
    if processes <= 1:
        yield _numbered((convert_piece(job, piece) for piece in pieces), skipped)
        return
    first = list(islice(pieces, 1 + processes))
    # The first is converted here: it loads the wires that are needed, and a forked process has what its parent has.
    begun = [convert_piece(job, piece) for piece in first[:1]]
    if len(first) <= 1:
        yield _numbered(begun, skipped)
        return
    from segue.cli.workers import Workers  # only here: one process needs none of it

    with Workers(job, min(processes, len(first) - 1)) as workers:
        yield _numbered(chain(begun, workers.convert(chain(first[1:], pieces))), skipped)


def _numbered(batches: Iterable[Batch], lines: int) -> Iterator[Batch]:
    """Give the lines of batches that follow each other their numbers; nothing follows one that was stopped."""
    for batch in batches:
        placed = batch.after(lines)
        yield placed
        if placed.stopped:
            return
        lines = placed.last
