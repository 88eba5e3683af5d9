"""Outputs: the file of a shard, its quarantine file and its note, in the form of the input."""

from __future__ import annotations

from contextlib import suppress
from typing import BinaryIO, Protocol, final

from segue.corpus.batches import Batch
from segue.corpus.compression import open_writer
from segue.corpus.files import Files, Pending
from segue.corpus.jobs import JobDescription
from segue.corpus.notes import ShardNote, span_of, write_note
from segue.corpus.shards import BAD, DONE, Shard, form_of
from segue.corpus.summary import Summary, rounded


class RowWriter(Protocol):
    """Writes the rows of batches in one form."""

    def write(self, batch: Batch) -> None:
        """Write the rows of a batch."""
        ...

    def close(self) -> None:
        """Write what is left."""
        ...


@final
class LineWriter:
    """Writes requests as lines, compressed if the name says so."""

    def __init__(self, file: BinaryIO, ending: str) -> None:
        self._file = file
        self._writer = open_writer(file, ending)

    def write(self, batch: Batch) -> None:
        """Write the requests of a batch."""
        self._writer.write(batch.output)

    def close(self) -> None:
        """Write the end of compressed data."""
        if self._writer is not self._file:
            self._writer.close()


@final
class ShardOutput:
    """The output of one shard: complete with its note, or not there."""

    def __init__(self, files: Files, folder: str, shard: Shard, job: JobDescription) -> None:
        self.shard: Shard = shard
        self.summary: Summary = Summary()
        self._files, self._folder, self._job = files, folder, job
        for name in (shard.name, shard.name + BAD):
            files.clean(folder, name)
        self._pending = files.begin(folder, shard.name)
        self._bad: Pending | None = None
        self._rows: RowWriter = self._open_rows()

    def _open_rows(self) -> RowWriter:
        form, ending = form_of(self.shard.name) or ("lines", "")
        if form == "rows":
            from segue.corpus.parquet import ParquetRows

            return ParquetRows(self._pending.file, self.shard.file)
        return LineWriter(self._pending.file, ending)

    def write(self, batch: Batch) -> None:
        """Write the requests of a batch, and its bad rows to the quarantine file."""
        self._rows.write(batch)
        if batch.bad:
            if self._bad is None:
                self._bad = self._files.begin(self._folder, self.shard.name + BAD)
            for row in batch.bad:
                self._bad.file.write(row.entry(self.shard.file, self.shard.start))
        self.summary.add(batch.summary)

    def finish(self) -> ShardNote:
        """Make the files appear under their names, the note last."""
        assert self.summary.is_complete(), "every line is converted, bad or blank"
        self._rows.close()
        # An output without its note is made again, so the note of an earlier run must not be next to a new output.
        self._files.remove(self._folder, self.shard.name + DONE)
        self._pending.commit()
        if self._bad is not None:
            self._bad.commit()
        else:
            self._files.remove(self._folder, self.shard.name + BAD)
        note = ShardNote(
            output=self.shard.name,
            file=self.shard.file,
            span=span_of(self.shard),
            stamp=self.shard.stamp,
            job=self._job,
            summary=rounded(self.summary),
        )
        write_note(self._files, self._folder, note)
        return note

    def discard(self) -> None:
        """Remove what was written."""
        with suppress(Exception):  # a writer that is not closed would do so when it is deleted
            self._rows.close()
        self._pending.discard()
        if self._bad is not None:
            self._bad.discard()
