"""One output file for one input, which a later run can continue.

Until it is complete, the output has a hidden name, and a progress file next to it has the position: `.NAME.part` and
`.NAME.progress`. Then it is synchronised with the disk and renamed, and a note is written last, as for a shard.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO, Final, final

import msgspec

from segue.corpus.batches import Batch
from segue.corpus.files import LOCAL, sync_folder
from segue.corpus.jobs import JobDescription
from segue.corpus.notes import ShardNote, find_note, later_writer, refuse_other_job, write_note
from segue.corpus.shards import BAD, DONE
from segue.corpus.summary import Summary, rounded
from segue.errors import CorpusError

_EVERY: Final = 1000
"""The number of lines after which the progress file is written."""


@final
class _Progress(msgspec.Struct):
    """The job, the version of the input, the sizes of output and quarantine file, and what was converted."""

    job: JobDescription
    stamp: str
    written: int
    quarantined: int
    summary: Summary


@final
class ResumableOutput:
    """An output file that a later run can continue.

    `line` is the last line of the input that was converted; `is_complete` says that an earlier run did it all.

    Raises:
        CorpusError: the output, or its part, is that of another job.
    """

    def __init__(
        self, path: str, job: JobDescription, *, file: str, stamp: str, resume: bool, quarantine: str | None = None
    ) -> None:
        self._path = Path(path)
        self._folder, self._name = self._path.parent, self._path.name
        self._part = self._folder / f".{self._name}.part"
        self._bad_part = self._folder / f".{self._name}{BAD}.part"
        self._progress = self._folder / f".{self._name}.progress"
        self.quarantine_path: str = quarantine or f"{path}{BAD}"
        self._job, self._file, self._stamp = job, file, stamp
        self.summary: Summary = Summary()
        self.is_complete: bool = False
        written = quarantined = 0
        if resume:
            note = find_note(str(self._folder), self._name) if self._path.exists() else None
            if note is not None:
                refuse_other_job(note.job, job, path)
                self.is_complete = note.stamp == stamp
                self.summary = note.summary if self.is_complete else self.summary
            elif (found := self._read_progress()) is not None:
                written, quarantined, self.summary = found.written, found.quarantined, found.summary
        self.line: int = self.summary.lines
        self._unrecorded = 0
        if not self.is_complete:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._out = _open_at(self._part, written)
            self._bad = _open_at(self._bad_part, quarantined) if quarantined else None
            self.record()

    def _read_progress(self) -> _Progress | None:
        if not self._progress.exists():
            return None
        data = self._progress.read_bytes()
        try:
            found = msgspec.json.decode(data, type=_Progress)
        except msgspec.DecodeError as error:
            reason = later_writer(data) or f"this is not a progress file: {error}"
            raise CorpusError(f"{self._progress}: cannot resume, because {reason}; run without --resume") from error
        refuse_other_job(found.job, self._job, str(self._path))
        if found.stamp != self._stamp:
            return None  # the input has changed, so all of it is converted again
        for part, size in ((self._part, found.written), (self._bad_part, found.quarantined)):
            if size and (not part.exists() or part.stat().st_size < size):
                raise CorpusError(
                    f"{part}: cannot resume, because it was changed: it is shorter than {self._progress.name} records;"
                    " run without --resume"
                )
        return found

    def write(self, batch: Batch) -> None:
        """Write the requests of a batch, and its bad rows to the quarantine file."""
        self._out.write(batch.output)
        for row in batch.bad:
            if self._bad is None:
                self._bad = _open_at(self._bad_part, 0)
            self._bad.write(row.entry(self._file))
        self.summary.add(batch.summary)
        self._unrecorded += batch.summary.lines
        if self._unrecorded >= _EVERY:
            self._unrecorded = 0
            self.record()

    def record(self) -> None:
        """Write the progress file, after the output up to that position."""
        self._out.flush()
        quarantined = 0
        if self._bad is not None:
            self._bad.flush()
            quarantined = self._bad.tell()
        progress = _Progress(self._job, self._stamp, self._out.tell(), quarantined, self.summary)
        fresh = self._progress.with_name(f"{self._progress.name}.new")
        fresh.write_bytes(msgspec.json.encode(progress))
        fresh.replace(self._progress)

    def finish(self) -> ShardNote:
        """Make the files appear under their names, the note last."""
        LOCAL.remove(str(self._folder), f"{self._name}{DONE}")  # a note of an earlier output
        self._rename(self._out, self._part, self._path)
        final_bad = Path(self.quarantine_path)
        if self._bad is not None:
            self._rename(self._bad, self._bad_part, final_bad)
        else:
            final_bad.unlink(missing_ok=True)
        sync_folder(self._folder)
        note = ShardNote(
            output=self._name, file=self._file, stamp=self._stamp, job=self._job, summary=rounded(self.summary)
        )
        write_note(LOCAL, str(self._folder), note)
        self._progress.unlink(missing_ok=True)
        return note

    def _rename(self, file: BinaryIO, part: Path, final_path: Path) -> None:
        file.flush()
        os.fsync(file.fileno())
        file.close()
        part.replace(final_path)

    def stop(self) -> None:
        """Record the position and close the files; a later run continues here."""
        self.record()
        self._out.close()
        if self._bad is not None:
            self._bad.close()


def _open_at(path: Path, size: int) -> BinaryIO:
    file = path.open("r+b" if size else "wb")
    if size:
        # Not for a new file: ext4 flushes a truncated file to the disk when it is closed.
        file.truncate(size)
        file.seek(size)
    return file
