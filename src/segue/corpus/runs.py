"""A long run: converts pieces of the input to batches of requests, in order, in this process or in others."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from typing import NamedTuple, final

from segue.corpus.batches import Batch
from segue.corpus.conversion import RowConverter, convert_piece
from segue.corpus.files import files_at
from segue.corpus.jobs import Job
from segue.corpus.notes import ShardNote, find_note, refuse_other_job
from segue.corpus.outputs import ShardOutput
from segue.corpus.pieces import ShardPiece
from segue.corpus.shards import Shard, pieces_of
from segue.errors import CorpusError


@contextmanager
def converting(
    job: Job, pieces: Iterator[ShardPiece], *, processes: int, skipped: int = 0
) -> Generator[Iterator[Batch]]:
    """Convert every piece and yield the batches in the order of the input, without the `skipped` lines.

    Memory does not grow with the input. No threads may run when this is called, because processes may be forked.
    """
    converter = RowConverter(job)
    if processes <= 1:
        yield _numbered((convert_piece(converter, piece) for piece in pieces), skipped)
        return
    first = list(islice(pieces, 1 + processes))
    if len(first) <= 1:
        yield _numbered((convert_piece(converter, piece) for piece in first), skipped)
        return
    # What the protocols import is shared by forked processes if it is imported before.
    converter.warm_up()
    from segue.corpus.workers import Workers  # not needed for one process

    with Workers(job, min(processes, len(first))) as workers:
        yield _numbered(workers.convert(chain(first, pieces)), skipped)


def _numbered(batches: Iterable[Batch], lines: int) -> Iterator[Batch]:
    """Number the lines of each shard; end after a batch that stopped the run."""
    for batch in batches:
        numbered = batch.after(lines)
        read = numbered.summary.lines
        yield numbered
        if numbered.stopped:
            return
        lines = 0 if numbered.last else lines + read


@final
class RunStep(NamedTuple):
    """One step of a run over shards: the batch that was written, and the note if its shard is finished.

    `failed` says why the shard could not be read to its end; nothing of it is kept, and the run continues.
    """

    batch: Batch | None
    shard: Shard
    note: ShardNote | None
    failed: str = ""


def convert_shards(
    shards: Iterable[Shard], folder: str, job: Job, *, processes: int = 1, resume: bool = False
) -> Generator[RunStep]:
    """Convert shards to files of a folder, in order; with `resume`, shards that are finished are left out.

    A shard is finished if its note names the same job and the same version of its input.

    Raises:
        CorpusError: the folder has the output of another job.
        OSError: the input cannot be read, or the output cannot be written.
    """
    files, description = files_at(folder), job.description()
    waiting: list[Shard] = []
    for shard in shards:
        note = find_note(folder, shard.name, files)
        if note is not None:
            refuse_other_job(note.job, description, folder)
            if resume and note.is_of(shard):
                yield RunStep(None, shard, note)
                continue
        waiting.append(shard)
    output: ShardOutput | None = None
    pieces = (piece for number, shard in enumerate(waiting) for piece in _readable_pieces(shard, number))
    try:
        with converting(job, pieces, processes=processes) as batches:
            for batch in batches:
                if output is None:
                    output = ShardOutput(files, folder, waiting[batch.shard], description)
                if batch.stopped:
                    yield RunStep(batch, output.shard, None)
                    return
                shard, note = output.shard, None
                if batch.failed:
                    output.discard()
                else:
                    output.write(batch)
                    note = output.finish() if batch.last else None
                if batch.last:
                    output = None
                yield RunStep(batch, shard, note, batch.failed)
    finally:
        if output is not None:
            output.discard()


def _readable_pieces(shard: Shard, number: int) -> Iterator[ShardPiece]:
    """Read a shard; a file that cannot be read, such as a damaged archive, ends with a piece that says why."""
    try:
        yield from pieces_of(shard, number)
    except Exception as error:  # noqa: BLE001 - compression libraries have errors of many classes
        reason = str(error) or type(error).__name__
        yield ShardPiece(
            b"", number, shard.file, last=True, failed=f"{shard.file}: cannot be read to its end: {reason}"
        )


def convert_shard(shard: Shard, folder: str, job: Job, *, resume: bool = True, isolated: bool = False) -> ShardNote:
    """Convert one shard in this process; with `isolated`, in a separate process, which a row may crash.

    Raises:
        CorpusError: the folder has the output of another job, or a bad row stopped the run.
        OSError: the input cannot be read, or the output cannot be written.
    """
    if isolated:
        return _convert_isolated(shard, folder, job)
    for step in convert_shards([shard], folder, job, resume=resume):
        if step.note is not None:
            return step.note
        if step.failed:
            raise CorpusError(step.failed)
        if step.batch is not None and step.batch.stopped:
            raise bad_row_error(shard, step.batch)
    raise AssertionError("a shard ends with its note")


def _convert_isolated(shard: Shard, folder: str, job: Job) -> ShardNote:
    from segue.corpus.workers import Workers

    output = ShardOutput(files_at(folder), folder, shard, job.description())
    stopped: Batch | None = None
    try:
        with Workers(job, 1) as workers:
            for batch in _numbered((workers.convert_alone(piece) for piece in pieces_of(shard)), 0):
                if batch.stopped:
                    stopped = batch
                    break
                output.write(batch)
        if stopped is None:
            return output.finish()
    except BaseException:
        output.discard()
        raise
    output.discard()
    raise bad_row_error(shard, stopped)


@final
class RowStopped(CorpusError):
    """A bad row stopped a run that was asked to stop at one."""


def bad_row_error(shard: Shard, batch: Batch) -> RowStopped:
    """Describe the row that stopped a run."""
    row = batch.bad[-1]
    return RowStopped(f"{shard.file}: line {row.line}: {row.reason}")
