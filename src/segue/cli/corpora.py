"""`segue convert` for many conversations: a file of lines or rows, or a folder of them."""

from __future__ import annotations

import sys
import zlib
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import NamedTuple, final

import click

from segue.cli.progress import print_line, show_progress
from segue.cli.reports import Kinds, ReportForm, numbered_report, show_kinds
from segue.cli.statuses import Status
from segue.cli.wording import in_program_words
from segue.corpus import pieces
from segue.corpus.batch_files.writing import BatchFiles
from segue.corpus.batches import Batch
from segue.corpus.files import files_at, is_remote
from segue.corpus.jobs import Job
from segue.corpus.notes import ShardNote, read_notes, refuse_other_jobs, write_note
from segue.corpus.pieces import ShardPiece, cut_lines
from segue.corpus.resumable import ResumableOutput
from segue.corpus.runs import RowStopped, RunStep, convert_shards, converting
from segue.corpus.shards import BAD, Shard, form_of, pieces_of, plan
from segue.corpus.summary import Summary, rounded
from segue.errors import CorpusError
from segue.foundation.plurals import counted
from segue.histories.opening import Opened

_LISTED = 20
"""How many bad lines are printed; all of them are in the quarantine file."""


@final
class Input(NamedTuple):
    """The input of a run: its name, its path if other processes can open it, and its lines if it is opened already."""

    name: str
    path: Path | None
    opened: Opened | None

    @property
    def shown(self) -> str:
        """The name in messages."""
        return "<stdin>" if self.name == "-" else self.name


@final
class CorpusSettings(NamedTuple):
    """How a run is carried out; nothing here changes the output."""

    jobs: int
    share: tuple[int, int]
    engine: str | None
    address: str | None
    resume: bool
    form: ReportForm
    quarantine: str | None


def convert_corpus(job: Job, source: Input, output: str | None, settings: CorpusSettings) -> Status:
    """Convert many conversations and return the exit status."""
    is_folder = source.opened is None and files_at(source.name).is_folder(source.name)
    to_folder = output is not None and (output.endswith("/") or files_at(output).is_folder(output) or is_folder)
    if is_folder and output is None:
        raise click.UsageError("a folder becomes a folder; name it with --output")
    try:
        return _convert(job, source, output, settings, to_folder=to_folder)
    except KeyboardInterrupt:
        if output is None or job.purpose == "batch":
            raise
        raise KeyboardInterrupt("; the same command with --resume goes on where it stopped") from None


def _convert(job: Job, source: Input, output: str | None, settings: CorpusSettings, *, to_folder: bool) -> Status:
    if job.purpose == "batch":
        return _to_batch(job, source, output, settings)
    if to_folder or is_remote(output or ""):
        assert output is not None
        return _to_folder(job, source, output, settings)
    if settings.engine or settings.share != (1, 1):
        raise click.UsageError("--engine and --shard work on folders; end --output with / to write a folder")
    return _to_file(job, source, output, settings)


# -- a folder ----------------------------------------------------------------------------------------------------------


def _to_folder(job: Job, source: Input, output: str, settings: CorpusSettings) -> Status:
    if source.opened is not None and source.path is None:
        raise click.UsageError("standard input has no name for a file of a folder; name a file with --output")
    _refuse_same_folder(source.name, output)
    planned = plan(source.name, span=job.span, share=settings.share)
    refuse_other_jobs(read_notes(output), job.description(), output)
    if any(shard.form == "rows" for shard in planned.shards):
        job = job._replace(details=True)
    total = Summary()
    is_table = settings.form == "table"
    skipped = 0
    stopped = False
    lost = list[str]()
    with (
        show_progress(sum(shard.size for shard in planned.shards) or None) as advance,
        closing(_steps(job, planned.shards, output, settings, lost)) as steps,
    ):
        for step in _until_stopped(steps):
            if step is None:
                stopped = True
            elif step.failed:
                lost.append(f"{step.failed}; replace the file and run again with --resume")
            elif step.batch is not None:
                _print_batch(step.batch, step.shard.file, listed=total.bad, is_one=False)
                total.add(step.batch.summary)
                advance(step.batch.summary.bytes_read, step.batch.summary.lines, step.batch.summary.messages)
                stopped = stopped or step.batch.stopped
            elif step.note is not None:
                skipped += 1
                total.add(step.note.summary)
                advance(step.shard.size, step.note.summary.lines, step.note.summary.messages)
    _print_ignored(planned.ignored)
    for reason in lost:
        click.echo(f"segue: {reason}", err=True)
    if is_table:
        done = f", {skipped:,} finished before" if skipped else ""
        click.echo(f"{counted(len(planned.shards), 'file')}{done}", err=True)
        _print_total(total, f"{output.rstrip('/')}/*.bad.jsonl")
    return Status.USAGE if lost else _status(total.bad or stopped)


def _steps(job: Job, shards: list[Shard], output: str, settings: CorpusSettings, lost: list[str]) -> Generator[RunStep]:
    if settings.engine is None:
        return convert_shards(shards, output, job, processes=settings.jobs, resume=settings.resume)
    from segue.corpus.ray_engine import convert_on_ray

    return convert_on_ray(shards, output, job, address=settings.address, resume=settings.resume, lost=lost)


def _until_stopped(steps: Iterator[RunStep]) -> Iterator[RunStep | None]:
    """Yield the steps of a run; None in place of the error of an engine that a bad row stopped."""
    try:
        yield from steps
    except RowStopped as stopped:
        print_line(f"segue: {in_program_words(str(stopped), converts=True)}")
        yield None


def _refuse_same_folder(source: str, output: str) -> None:
    if is_remote(source) or is_remote(output):
        same = source.rstrip("/") == output.rstrip("/")
    else:
        given, made = Path(source).resolve(), Path(output).resolve()
        same = given == made or given in made.parents
    if same:
        raise click.UsageError(f"--output {output} is inside the input; name another folder")


# -- one file ----------------------------------------------------------------------------------------------------------


def _to_file(job: Job, source: Input, output: str | None, settings: CorpusSettings) -> Status:
    shard = _shard_of(source)
    named = None if output is None else form_of(output)
    job = job._replace(ids=named is None or named[0] != "rows")
    if output is None:
        return _to_standard_output(job, source, shard, settings)
    if named is not None and (named[1] or named[0] == "rows"):
        if shard is None:
            raise click.UsageError("standard input is written to a plain file; name one that ends in .jsonl")
        job = job._replace(details=named[0] == "rows")
        folder, name = str(Path(output).parent), Path(output).name
        return _to_shard(job, shard._replace(name=name), folder, settings)
    return _to_resumable(job, source, shard, output, settings)


def _shard_of(source: Input) -> Shard | None:
    """Return the whole file as one shard; None for a pipe."""
    if source.opened is not None and source.path is None:
        return None
    (shard,) = plan(source.name, span=sys.maxsize).shards
    return shard._replace(form="lines") if source.opened is not None else shard


def _to_shard(job: Job, shard: Shard, folder: str, settings: CorpusSettings) -> Status:
    """Write a form that cannot be continued in the middle."""
    total = Summary()
    steps = convert_shards([shard], folder, job, processes=settings.jobs, resume=settings.resume)
    with show_progress(shard.size or None) as advance, closing(steps):
        for step in steps:
            if step.batch is None:
                click.echo(f"segue: {shard.name} is complete; nothing was converted", err=True)
                return Status.SUCCESS
            if step.failed:
                raise CorpusError(f"{step.failed}; replace the file")
            _print_batch(step.batch, shard.file, listed=total.bad)
            total.add(step.batch.summary)
            advance(step.batch.summary.bytes_read, step.batch.summary.lines, step.batch.summary.messages)
    if settings.form == "table":
        _print_total(total, f"{shard.name}{BAD}")
    return _status(total.bad)


def _to_resumable(job: Job, source: Input, shard: Shard | None, output: str, settings: CorpusSettings) -> Status:
    file, stamp = (shard.file, shard.stamp) if shard is not None else (source.name, "")
    out = ResumableOutput(
        output,
        job.description(),
        file=file,
        stamp=stamp,
        resume=settings.resume,
        quarantine=settings.quarantine,
    )
    if out.is_complete:
        click.echo(f"segue: {output} is complete; nothing was converted", err=True)
        return _status(out.summary.bad)
    done = False
    read = _pieces(source, shard, settings.jobs, skipped=out.line)
    try:
        with (
            converting(job, read, processes=settings.jobs, skipped=out.line) as batches,
            show_progress(shard.size if shard is not None else None) as advance,
        ):
            for batch in batches:
                out.write(batch)
                _print_batch(batch, source.shown, listed=out.summary.bad - len(batch.bad))
                advance(batch.summary.bytes_read, batch.summary.lines, batch.summary.messages)
                if batch.stopped:
                    break
            else:
                done = True
    finally:
        if not done:
            out.stop()
    if done:
        out.finish()
    else:
        click.echo(f"segue: stopped; --resume continues after the bad line and writes {output}", err=True)
    if settings.form == "table":
        _print_total(out.summary, out.quarantine_path)
    return _status(out.summary.bad)


def _pieces(source: Input, shard: Shard | None, jobs: int, *, skipped: int = 0) -> Iterator[ShardPiece]:
    if shard is None:
        assert source.opened is not None
        # From a pipe, each line is converted as it arrives, unless there are several processes.
        offset = 0
        for data in cut_lines(source.opened.lines, skipped=skipped, size=1 if jobs == 1 else pieces.SIZE):
            yield ShardPiece(data, file=source.name, offset=offset)
            offset += len(data)
    else:
        try:
            yield from pieces_of(shard, skipped=skipped)
        except (EOFError, zlib.error) as error:
            raise CorpusError(f"{shard.file}: cannot be read to its end: {error}; replace the file") from None


def _to_standard_output(job: Job, source: Input, shard: Shard | None, settings: CorpusSettings) -> Status:
    total, out = Summary(), sys.stdout.buffer
    quarantine = None if settings.quarantine is None else Path(settings.quarantine).open("wb")  # noqa: SIM115
    with nullcontext() if quarantine is None else quarantine:
        with (
            converting(job, _pieces(source, shard, settings.jobs), processes=settings.jobs) as batches,
            show_progress(shard.size if shard is not None else None) as advance,
        ):
            for batch in batches:
                out.write(batch.output)
                for row in batch.bad if quarantine is not None else ():
                    quarantine.write(row.entry(source.name))  # pyright: ignore[reportOptionalMemberAccess]
                _print_batch(batch, source.shown, listed=total.bad)
                total.add(batch.summary)
                advance(batch.summary.bytes_read, batch.summary.lines, batch.summary.messages)
        out.flush()
    if settings.form == "table":
        _print_total(total, settings.quarantine)
    return _status(total.bad)


# -- batch files -------------------------------------------------------------------------------------------------------


def _to_batch(job: Job, source: Input, output: str | None, settings: CorpusSettings) -> Status:
    """Write the batch files of the target's provider, and next to each a table of ids."""
    if output is None:
        raise click.UsageError("a batch file has a table of ids next to it; name the file or the folder with --output")
    if settings.engine or settings.resume or settings.share != (1, 1):
        raise click.UsageError("--engine, --shard and --resume do not work with --as batch; run it without them")
    folder, stem = _batch_place(output)
    files, job = files_at(folder), job._replace(details=True)
    is_pipe = source.opened is not None and source.path is None
    shards, ignored = ([], []) if is_pipe else plan(source.name, span=sys.maxsize)
    out, total = BatchFiles(files, folder, stem, job.model), Summary()
    bad_rows = files.begin(folder, f"{stem}.jsonl{BAD}")
    read = (
        (piece for number, shard in enumerate(shards) for piece in pieces_of(_as_lines(shard, source), number))
        if shards
        else _pieces(source, None, settings.jobs)
    )
    try:
        with (
            converting(job, read, processes=settings.jobs) as batches,
            show_progress(sum(shard.size for shard in shards) or None) as advance,
        ):
            for batch in batches:
                file = shards[batch.shard].file if shards else source.name
                refused = out.write(batch, file)
                batch.summary.conversations -= len(refused)
                batch.summary.bad += len(refused)
                for row in (*batch.bad, *refused):
                    bad_rows.file.write(row.entry(file))
                found = batch._replace(bad=[*batch.bad, *refused])
                shown = file if shards else source.shown
                _print_batch(found, shown, listed=total.bad, is_one=len(shards) <= 1)
                total.add(batch.summary)
                advance(batch.summary.bytes_read, batch.summary.lines, batch.summary.messages)
        out.close()
    except BaseException:
        out.discard()
        bad_rows.discard()
        raise
    if total.bad:
        bad_rows.commit()
    else:
        bad_rows.discard()
        files.remove(folder, f"{stem}.jsonl{BAD}")
    note = ShardNote(output=f"{stem}.jsonl", file=source.name, job=job.description(), summary=rounded(total))
    write_note(files, folder, note)
    _print_ignored(ignored)
    if settings.form == "table":
        click.echo(f"{counted(len(out.names), 'batch file')}: {', '.join(out.names[:3])}", err=True)
        _print_total(total, f"{stem}.jsonl{BAD}")
    return _status(total.bad)


def _batch_place(output: str) -> tuple[str, str]:
    """Return the folder of the batch files, and the beginning of their names."""
    if output.endswith(".jsonl") and not files_at(output).is_folder(output):
        folder, _, name = output.rpartition("/")
        return folder or ".", name.removesuffix(".jsonl")
    return output, "batch"


def _as_lines(shard: Shard, source: Input) -> Shard:
    return shard._replace(form="lines") if source.opened is not None else shard


# -- what is printed ---------------------------------------------------------------------------------------------------


def _status(found: object) -> Status:
    """Return the status of a run that went through; `found` is true if a line was bad."""
    return Status.FOUND if found else Status.SUCCESS


def _print_ignored(names: list[str]) -> None:
    for name in names:
        click.echo(f"segue: {name}: left out, because its ending is not known", err=True)


def _print_batch(batch: Batch, file: str, *, listed: int, is_one: bool = True) -> None:
    """Print the bad lines of a batch, the first ones of a run, and its reports; these name a file if there are more."""
    for number, row in enumerate(batch.bad, listed):
        if number < _LISTED:
            print_line(f"segue: {file}: line {row.line}: {in_program_words(row.reason, converts=True)}")
        elif number == _LISTED:
            print_line("segue: more lines are bad; the quarantine file has all of them")
    for line, report in batch.reports:
        print_line(numbered_report(line, report, "" if is_one else file))


def _print_total(total: Summary, quarantine: str | None) -> None:
    kept = f"; they are in {quarantine}" if total.bad and quarantine is not None else ""
    click.echo(
        f"{counted(total.conversations, 'conversation')} converted, {counted(total.bad, 'bad line')}{kept}", err=True
    )
    if total.filled_nulls:
        rows = counted(total.filled_nulls, "row has", "rows have")
        click.echo(
            f"{rows} nulls in tool arguments that may have been filled in for missing keys;"
            " store the arguments as JSON text",
            err=True,
        )
    if total.changes:
        kinds: Kinds = Counter({(each.loss, each.code): each.times for each in total.changes.values()})
        show_kinds(kinds, {}, converts=True)
