"""A long run: converts pieces of the input to batches of requests, in order, in this process or in others."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice

from segue.cli.batches import Batch, Job, convert_piece
from segue.cli.pieces import Piece


@contextmanager
def converting(job: Job, pieces: Iterator[Piece], *, skipped: int, processes: int) -> Generator[Iterator[Batch]]:
    """Convert every piece and yield the batches in the order of the input, of which `skipped` lines are left out.

    Memory does not grow with the input. No threads may run when this is called, because processes may be forked.
    """
    if processes <= 1:
        yield _numbered((convert_piece(job, piece) for piece in pieces), skipped)
        return
    first = list(islice(pieces, 1 + processes))
    # The first piece is converted here: it imports the protocols, which forked processes then share.
    begun = [convert_piece(job, piece) for piece in first[:1]]
    if len(first) <= 1:
        yield _numbered(begun, skipped)
        return
    from segue.cli.workers import Workers  # not needed for one process

    with Workers(job, min(processes, len(first) - 1)) as workers:
        yield _numbered(chain(begun, workers.convert(chain(first[1:], pieces))), skipped)


def _numbered(batches: Iterable[Batch], lines: int) -> Iterator[Batch]:
    """Number the lines of consecutive batches; end after a batch that stopped the run."""
    for batch in batches:
        numbered = batch.after(lines)
        yield numbered
        if numbered.stopped:
            return
        lines = numbered.last
