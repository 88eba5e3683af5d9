"""`segue convert`: writes conversations as requests for another model, with a report of every change."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import click
import msgspec

from segue.cli.corpora import CorpusSettings, Input, convert_corpus
from segue.cli.inputs import EXAMPLE, SourceFile, check_input, example_option, open_input
from segue.cli.reports import ReportForm, measured_report, report_option, show_report
from segue.cli.statuses import Status
from segue.cli.targets import (
    FROM,
    PROTOCOL_NAMES,
    catalogue_option,
    complete_model,
    find_target,
    gather,
    open_catalogue,
    reasoning_option,
    source_option,
)
from segue.cli.wording import in_program_words
from segue.corpus.data_sets import FORMATS, data_set_model
from segue.corpus.files import files_at, is_remote
from segue.corpus.jobs import SPAN, Job, Purpose
from segue.corpus.pieces import find_again
from segue.corpus.rows import Reader
from segue.corpus.shards import form_of
from segue.errors import DoesNotFit, EmptyConversation, ProjectionRefused
from segue.histories.opening import Opened, OpenedDocument
from segue.projection.policy import Policy, ReasoningPolicy
from segue.projection.report import Loss, Report
from segue.protocols.registry import PROTOCOLS
from segue.requests.tokens import Length, measure

_LOSSES: Final = frozenset({Loss.OPAQUE, Loss.CONTENT})
_MEGABYTE: Final = 1024 * 1024


class Task(NamedTuple):
    """The options of each conversion: for which model, from which one, and what may be lost."""

    target: str | None
    to_protocol: str | None
    source: str | None
    writer: str | None
    reasoning: ReasoningPolicy
    strict: bool
    catalogue: str | None

    @property
    def protocol(self) -> str | None:
        """The protocol of the input; None if `--from` names a format of histories, or nothing."""
        return self.source if self.source in PROTOCOLS else None

    def refuse_format(self) -> None:
        """Refuse a format of histories for many conversations."""
        if self.source != self.protocol:
            raise click.UsageError(f"--from {self.source} is for one conversation; rows are recognised each by itself")


class Rows(NamedTuple):
    """The options of many conversations: what to write, and how their rows are read."""

    purpose: Purpose
    row_format: str | None
    column: str | None
    id_column: str | None
    bad_lines: str
    span: int


class _Share(click.ParamType[tuple[int, int]]):
    """K/N: the K-th of N parts."""

    name = "K/N"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value  # pyright: ignore[reportUnknownVariableType]
        number, slash, count = str(value).partition("/")
        if slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count):
            return int(number), int(count)
        raise click.BadParameter(f"{value!r} is not a share; use K/N with K from 1 to N, such as 2/8", ctx, param)


@click.command("convert")
@click.argument("source_path", metavar="[FILE]", required=False)
@example_option
@click.option("--to", "target", metavar="MODEL", shell_complete=complete_model, help="The model that gets the request.")
@click.option(
    "--to-protocol",
    metavar="PROTOCOL",
    type=PROTOCOL_NAMES,
    help="The protocol of that model, if the catalogue does not have it.",
)
@source_option
@click.option(
    "--from-model",
    "writer",
    metavar="MODEL",
    shell_complete=complete_model,
    help="The model that wrote the answers, if FILE does not name it; only that model gets their signatures back.",
)
@reasoning_option
@report_option
@click.option("--strict", is_flag=True, help="Refuse a conversion that drops content or signatures.")
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    help="The file to write, or the folder if FILE is a folder.  [default: standard output]",
)
@click.option("--compact", is_flag=True, help="Write the JSON on one line.")
@click.option(
    "--as",
    "purpose",
    type=click.Choice(["requests", "batch", "training"]),
    default="requests",
    show_default=True,
    help="What to write: requests, a batch file of the target's provider, or lines of a training set.",
)
@click.option(
    "--format",
    "row_format",
    type=click.Choice(FORMATS),
    help="With --as training: the format of a data set, which needs no --to.  [default: that of the target]",
)
@click.option("--column", metavar="NAME", help="The column or key of a row that has the conversation.")
@click.option("--id-column", metavar="NAME", help="The column or key of a row that has its id.  [default: id]")
@click.option(
    "--bad-lines",
    type=click.Choice(["quarantine", "stop"]),
    default="quarantine",
    show_default=True,
    help="What to do with a line that cannot be converted: write it to PATH.bad.jsonl and go on, or stop.",
)
@click.option(
    "--quarantine", metavar="PATH", type=click.Path(dir_okay=False), help="Another file for the bad lines of one file."
)
@click.option(
    "--jobs", metavar="N", type=click.IntRange(1), default=1, help="Number of processes, for many conversations."
)
@click.option("--shard", "share", type=_Share(), default="1/1", help="Convert only the K-th of N parts of a folder.")
@click.option("--engine", type=click.Choice(["ray"]), help="Convert the files of a folder on a cluster.")
@click.option("--address", metavar="ADDRESS", help="The cluster of --engine.  [default: started on this machine]")
@click.option(
    "--span",
    metavar="MB",
    type=click.IntRange(1),
    default=SPAN // _MEGABYTE,
    show_default=True,
    help="Divide files of a folder that are larger than this.",
)
@click.option("--resume", is_flag=True, help="Continue an interrupted run with the same --output.")
@catalogue_option
@click.pass_context
@gather(task=Task, rows=Rows, run=CorpusSettings)
def command(
    ctx: click.Context,
    *,
    source_path: str | None,
    example: bool,
    output: str | None,
    compact: bool,
    task: Task,
    rows: Rows,
    run: CorpusSettings,
) -> None:
    """Write FILE as a request for MODEL; `-` reads standard input.

    FILE is a stored conversation, a request of any protocol or its list of messages, a session (JSON Lines), a session
    of an agent, such as claude-code:last, or one conversation on each line or in each row: JSON Lines, also with gzip
    or zstd, and Parquet. A folder of such files becomes a folder. Requests go to standard output or to --output, the
    report of every change to standard error.

    Exit status: 0 for success, 1 if a conversion was refused or a line was bad, 2 for an error.
    """
    check_input(source_path, example=example)
    path = source_path or str(EXAMPLE)
    _check_options(path, output, rows, run)
    job = _job_of(task, rows, reports=run.form == "json")
    is_folder = path != "-" and files_at(path).is_folder(path)
    named = form_of(path)
    if is_folder or is_remote(path) or (named is not None and (named[1] or named[0] == "rows")):
        task.refuse_format()
        ctx.exit(convert_corpus(job, Input(path, None, None), output, run))
    file = SourceFile().convert(path, None, ctx)
    opened = _open(file, task.source, job)
    if opened.document is None:
        task.refuse_format()
        ctx.exit(convert_corpus(job, Input(path, find_again(file), opened), output, run))
    if run.resume:
        raise click.UsageError(
            "--resume works only for files with one conversation on each line; this file is one conversation"
        )
    ctx.exit(_convert_one(opened.document, job, output, run.form, compact=compact))


def _check_options(path: str, output: str | None, rows: Rows, run: CorpusSettings) -> None:
    """Refuse options that contradict each other."""
    if output is not None and is_same_file(path, output):
        raise click.UsageError(f"--output {output} is the file that is read; name another file")
    if run.resume and output is None:
        raise click.UsageError("--resume needs --output, the output of the interrupted run")
    if run.engine is None and run.address is not None:
        raise click.UsageError("--address is that of a cluster; add --engine ray")
    if rows.row_format is not None and rows.purpose != "training":
        raise click.UsageError("--format is that of a training set; add --as training")


def _job_of(task: Task, rows: Rows, *, reports: bool) -> Job:
    """Make the job of the options; a format of a data set needs no target."""
    if rows.row_format is not None and task.target is None:
        model = data_set_model(rows.row_format)
    else:
        model = find_target(task.target, task.to_protocol, task.catalogue)
    writer = None if task.writer is None else find_target(task.writer, task.protocol, task.catalogue, FROM)
    return Job(
        model,
        Policy(
            reasoning=task.reasoning,
            refuse=_LOSSES if task.strict else frozenset(),
            routers=open_catalogue(task.catalogue).routers,
        ),
        Reader(task.protocol, writer, rows.column, rows.id_column, envelopes=rows.purpose == "batch"),
        rows.purpose,
        stop=rows.bad_lines == "stop",
        reports=reports,
        span=rows.span * _MEGABYTE,
        form=rows.row_format,
    )


def is_same_file(one: str, other: str) -> bool:
    """Whether two paths lead to the same file, which would be overwritten while or after it is read."""
    try:
        return Path(one).is_file() and Path(one).samefile(other)
    except OSError:
        return False


def _open(file: BinaryIO, source: str | None, job: Job) -> Opened:
    """Open a file; one that ends in .jsonl and has a single row of a data set is read as rows."""
    is_rows = job.purpose != "requests" or job.reader.column is not None
    if is_rows:
        return Opened(None, ((number, line) for number, line in enumerate(file, 1) if not line.isspace()))
    return open_input(file, source, job.reader.writer)


def _convert_one(document: OpenedDocument, job: Job, output: str | None, form: ReportForm, *, compact: bool) -> Status:
    try:
        request = document.prepare(job.model, job.policy)
    except ProjectionRefused as refused:
        _print_report(refused.report, form)
        click.echo(f"segue: refused: {in_program_words(str(refused), converts=True)}", err=True)
        return Status.FOUND
    except (EmptyConversation, DoesNotFit) as unsendable:
        click.echo(f"segue: {in_program_words(str(unsendable), converts=True)}", err=True)
        return Status.FOUND
    _write(request.content if compact else msgspec.json.format(request.content, indent=2), output)
    _print_report(request.report, form, measure(document.prompt, job.model, request.projection))
    return Status.SUCCESS


def _write(data: bytes, output: str | None) -> None:
    if output is None:
        sys.stdout.buffer.write(data + b"\n")
    else:
        Path(output).parent.mkdir(parents=True, exist_ok=True)
        Path(output).write_bytes(data + b"\n")


def _print_report(report: Report, form: ReportForm, length: Length | None = None) -> None:
    if form == "json":
        click.echo(measured_report(report, length), err=True)
    elif form == "table":
        show_report(report, converts=True)
        if length is not None:
            click.echo(f"Length: {length.describe()}", err=True)
