"""Notes: what a finished shard was made from, by which job, and what the conversion did.

A note is written last, so a shard with a note is complete. A later run skips the shard if the note names the same job
and the same version of the input; it refuses to mix its output with that of another job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import final

import msgspec

from segue.corpus.files import Files, files_at
from segue.corpus.jobs import JobDescription
from segue.corpus.shards import DONE, Shard
from segue.corpus.summary import Summary
from segue.errors import CorpusError
from segue.foundation.json_text import encode_valid_json
from segue.foundation.version import __version__


@final
class ShardNote(msgspec.Struct, kw_only=True):
    """The note of a finished shard: its output, its input and the version of it, the job, and the counts."""

    output: str
    file: str
    span: tuple[int, int] | None = None
    stamp: str = ""
    job: JobDescription
    summary: Summary

    def is_of(self, shard: Shard) -> bool:
        """Whether the note is about this version of the input."""
        return self.stamp == shard.stamp and self.span == span_of(shard)


def span_of(shard: Shard) -> tuple[int, int] | None:
    """Return the part of the file that a shard covers; None for the whole file."""
    return (shard.start, shard.end) if shard.end else None


def find_note(folder: str, name: str, files: Files | None = None) -> ShardNote | None:
    """Read the note of an output file; None if there is none.

    Raises:
        CorpusError: the file is not a note.
    """
    files = files or files_at(folder)
    path = files.join(folder, f"{name}{DONE}")
    return read_note(path, files) if files.entry(path) is not None else None


def read_note(path: str, files: Files) -> ShardNote:
    """Read a note.

    Raises:
        CorpusError: the file is not a note.
    """
    with files.open(path) as file:
        data = file.read()
    try:
        return msgspec.json.decode(data, type=ShardNote)
    except (msgspec.DecodeError, UnicodeError) as error:
        reason = later_writer(data) or f"this is not a note of segue: {error}"
        raise CorpusError(f"{path}: {reason}; remove it, or choose another output") from None


class _Written(msgspec.Struct):
    """The version that wrote a note or a progress file; all other fields are skipped."""

    class Job(msgspec.Struct):
        version: str

    job: Job


def later_writer(data: bytes) -> str | None:
    """Say that another version of segue wrote what this one cannot read; None if the data names no version."""
    try:
        version = msgspec.json.decode(data, type=_Written).job.version
    except (msgspec.DecodeError, UnicodeError):
        return None
    if version == __version__:
        return None
    return f"segue {version} wrote it, and this is segue {__version__}, which cannot read it; use that version"


def read_notes(folder: str) -> Iterator[ShardNote]:
    """Read all notes of a folder, in the order of their names.

    Raises:
        CorpusError: a note cannot be read.
    """
    files = files_at(folder)
    found = sorted((entry.name, entry.path) for entry in files.walk(folder) if entry.name.endswith(DONE))
    for _, path in found:
        yield read_note(path, files)


def write_note(files: Files, folder: str, note: ShardNote) -> None:
    """Write a note; it appears complete or not at all."""
    pending = files.begin(folder, f"{note.output}{DONE}")
    pending.file.write(msgspec.json.format(encode_valid_json(note), indent=1))
    pending.commit()


def refuse_other_jobs(notes: Iterable[ShardNote], job: JobDescription, folder: str) -> None:
    """Refuse to write next to the output of another job.

    Raises:
        CorpusError: a note names another job.
    """
    for note in notes:
        refuse_other_job(note.job, job, folder)


def refuse_other_job(found: JobDescription, job: JobDescription, output: str) -> None:
    """Refuse to continue the output of another job.

    Raises:
        CorpusError: the job is a different one.
    """
    if found.fingerprint != job.fingerprint:
        raise CorpusError(
            f"{output}: it has the output of another run for {found.target}, and this run is for {job.target}"
            f" ({job.differences(found)}); choose another output, or remove that one"
        )
