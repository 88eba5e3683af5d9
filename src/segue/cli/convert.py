"""`segue convert`: writes conversations as requests for another model, with a report of every change."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import BinaryIO, Final, Literal

import click
import msgspec

from segue.cli.corpora import Input, Settings, convert_corpus
from segue.cli.history_inputs import SourceFile
from segue.cli.inputs import EXAMPLE, check_input, example_option, open_input
from segue.cli.reports import measured_report, report_option, show_report
from segue.cli.statuses import Status
from segue.cli.targets import (
    FROM,
    PROTOCOL_NAMES,
    catalogue_option,
    complete_model,
    find_target,
    open_catalogue,
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
from segue.histories.opening import Document, Opened
from segue.models.model import Model
from segue.projection.policy import Policy, ReasoningPolicy
from segue.projection.report import Loss, Report
from segue.protocols.registry import PROTOCOLS
from segue.tokens import Length, measure

ReportForm = Literal["table", "json", "none"]
_LOSSES: Final = frozenset({Loss.OPAQUE, Loss.CONTENT})
_MEGABYTE: Final = 1024 * 1024


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
@click.option(
    "--reasoning",
    type=click.Choice(["auto", "text", "drop", "native"]),
    default="auto",
    show_default=True,
    help="What to do with the thinking of other models.",
)
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
def command(
    ctx: click.Context,
    *,
    source_path: str | None,
    example: bool,
    target: str | None,
    to_protocol: str | None,
    source: str | None,
    writer: str | None,
    reasoning: ReasoningPolicy,
    form: ReportForm,
    strict: bool,
    output: str | None,
    compact: bool,
    purpose: Purpose,
    row_format: str | None,
    column: str | None,
    id_column: str | None,
    bad_lines: str,
    quarantine: str | None,
    jobs: int,
    share: tuple[int, int],
    engine: str | None,
    address: str | None,
    span: int,
    resume: bool,
    catalogue: str | None,
) -> None:
    """Write FILE as a request for MODEL; `-` reads standard input.

    FILE is a stored conversation, a request of any protocol or its list of messages, a session (JSON Lines), a session
    of an agent, such as claude-code:last, or one conversation on each line or in each row: JSON Lines, also with gzip
    or zstd, and Parquet. A folder of such files becomes a folder. Requests go to standard output or to --output, the
    report of every change to standard error.

    Exit status: 0 for success, 1 if a conversion was refused or a line was bad, 2 for an error.
    """
    check_input(source_path, example=example)
    source_path = source_path or str(EXAMPLE)
    if output is not None and is_same_file(source_path, output):
        raise click.UsageError(f"--output {output} is the file that is read; name another file")
    if resume and output is None:
        raise click.UsageError("--resume needs --output, the output of the interrupted run")
    if engine is None and address is not None:
        raise click.UsageError("--address is that of a cluster; add --engine ray")
    if row_format is not None and purpose != "training":
        raise click.UsageError("--format is that of a training set; add --as training")
    is_data_set = row_format is not None and target is None
    model = data_set_model(row_format or "") if is_data_set else find_target(target, to_protocol, catalogue)
    refuse, routers = _LOSSES if strict else frozenset[Loss](), open_catalogue(catalogue).routers
    policy = Policy(reasoning=reasoning, refuse=refuse, routers=routers)
    protocol = source if source in PROTOCOLS else None
    wrote = None if writer is None else find_target(writer, protocol, catalogue, FROM)
    reader = Reader(protocol, wrote, column, id_column, envelopes=purpose == "batch")
    job = Job(model, policy, reader, purpose, bad_lines == "stop", form == "json", span=span * _MEGABYTE)._replace(
        form=row_format
    )
    settings = Settings(jobs, share, engine, address, resume, form, quarantine)
    is_folder = source_path != "-" and files_at(source_path).is_folder(source_path)
    named = form_of(source_path)
    if is_folder or is_remote(source_path) or (named is not None and (named[1] or named[0] == "rows")):
        _refuse_format(source, protocol)
        ctx.exit(convert_corpus(job, Input(source_path, None, None), output, settings))
    file = SourceFile().convert(source_path, None, ctx)
    opened = _open(file, source, wrote, job)
    if opened.document is None:
        _refuse_format(source, protocol)
        found = find_again(file)
        ctx.exit(convert_corpus(job, Input(source_path, found, opened), output, settings))
    if resume:
        raise click.UsageError(
            "--resume works only for files with one conversation on each line; this file is one conversation"
        )
    ctx.exit(_convert_one(opened.document, model, policy, output, form, compact=compact))


def _refuse_format(source: str | None, protocol: str | None) -> None:
    if source != protocol:
        raise click.UsageError(f"--from {source} is for one conversation; rows are recognised each by itself")


def is_same_file(one: str, other: str) -> bool:
    """Whether two paths lead to the same file, which would be overwritten while or after it is read."""
    try:
        return Path(one).is_file() and Path(one).samefile(other)
    except OSError:
        return False


def _open(file: BinaryIO, source: str | None, wrote: Model | None, job: Job) -> Opened:
    """Open a file; one that ends in .jsonl and has a single row of a data set is read as rows."""
    is_rows = job.purpose != "requests" or job.reader.column is not None
    if is_rows:
        return Opened(None, ((number, line) for number, line in enumerate(file, 1) if not line.isspace()))
    return open_input(file, source, wrote)


def _convert_one(
    document: Document, model: Model, policy: Policy, output: str | None, form: ReportForm, *, compact: bool
) -> Status:
    try:
        request = document.prepare(model, policy)
    except ProjectionRefused as refused:
        _print_report(refused.report, form)
        click.echo(f"segue: refused: {in_program_words(str(refused), converts=True)}", err=True)
        return Status.FOUND
    except (EmptyConversation, DoesNotFit) as unsendable:
        click.echo(f"segue: {in_program_words(str(unsendable), converts=True)}", err=True)
        return Status.FOUND
    _write(request.content if compact else msgspec.json.format(request.content, indent=2), output)
    _print_report(request.report, form, measure(document.prompt, model, request.projection))
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
