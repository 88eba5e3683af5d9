"""`segue convert`: writes a conversation as a request for another model, with a report of every change."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import BinaryIO, Final, Literal

import click
import msgspec

from segue.cli.batches import Batch, Job
from segue.cli.history_inputs import SourceFile
from segue.cli.inputs import choose_input, example_option, open_input
from segue.cli.pieces import SIZE, cut_file, cut_lines, find_again
from segue.cli.progress import Resumable, show_progress
from segue.cli.reports import Kinds, numbered_report, report_json, show_kinds, show_report
from segue.cli.runs import converting
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
from segue.documents import Source
from segue.errors import DoesNotFit, EmptyConversation, ProjectionRefused
from segue.projection.policy import Policy, ReasoningPolicy
from segue.projection.report import Loss, Report
from segue.tokens import Length, measure

ReportForm = Literal["table", "json", "none"]
_LOSSES: Final = frozenset({Loss.OPAQUE, Loss.CONTENT})


@click.command("convert")
@click.argument("file", required=False, type=SourceFile())
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
@click.option(
    "--report",
    "form",
    type=click.Choice(["table", "json", "none"]),
    default="table",
    show_default=True,
    help="How to print the report to standard error.",
)
@click.option("--strict", is_flag=True, help="Refuse a conversion that drops content or signatures.")
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    type=click.Path(dir_okay=False),
    help="The file to write.  [default: standard output]",
)
@click.option("--compact", is_flag=True, help="Write the JSON on one line.")
@click.option(
    "--bad-lines",
    type=click.Choice(["stop", "skip"]),
    default="stop",
    show_default=True,
    help="What to do at a line that cannot be converted.",
)
@click.option(
    "--jobs", metavar="N", type=click.IntRange(1), default=1, help="Number of processes, for many conversations."
)
@click.option("--resume", is_flag=True, help="Continue an interrupted run with the same --output.")
@catalogue_option
@click.pass_context
def command(
    ctx: click.Context,
    *,
    file: BinaryIO | None,
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
    bad_lines: str,
    jobs: int,
    resume: bool,
    catalogue: str | None,
) -> None:
    """Write FILE as a request for MODEL; `-` reads standard input.

    FILE is a stored conversation, a request of any protocol or its list of messages, a session (JSON Lines), or one
    conversation on each line. The request goes to standard output, the report of every change to standard error.

    Exit status: 0 for success, 1 if a conversion was refused or a line was bad, 2 for an error.
    """
    file = choose_input(file, example=example)
    if resume and output is None:
        raise click.UsageError("--resume needs --output, the file of the interrupted run")
    model = find_target(target, to_protocol, catalogue)
    refuse, routers = _LOSSES if strict else frozenset[Loss](), open_catalogue(catalogue).routers
    policy = Policy(reasoning=reasoning, refuse=refuse, routers=routers)
    wrote = None if writer is None else find_target(writer, source, catalogue, FROM)
    opened = open_input(file, source, wrote)
    if opened.document is not None:
        if resume:
            raise click.UsageError(
                "--resume works only for files with one conversation on each line; this file is one conversation"
            )
        try:
            request = opened.document.prepare(model, policy)
        except ProjectionRefused as refused:
            _print_report(refused.report, form)
            click.echo(f"segue: refused: {in_program_words(str(refused), converts=True)}", err=True)
            ctx.exit(Status.FOUND)
        except (EmptyConversation, DoesNotFit) as unsendable:
            click.echo(f"segue: {in_program_words(str(unsendable), converts=True)}", err=True)
            ctx.exit(Status.FOUND)
        _write(request.content if compact else msgspec.json.format(request.content, indent=2), output)
        _print_report(request.report, form, measure(opened.document.prompt, model, request.projection))
        return
    job = Job(model, policy, source, wrote, bad_lines == "stop", form == "json")
    ctx.exit(_convert_many(job, opened, find_again(file), file.name, output, jobs=jobs, resume=resume, form=form))


def _write(data: bytes, output: str | None) -> None:
    if output is None:
        sys.stdout.buffer.write(data + b"\n")
    else:
        Path(output).write_bytes(data + b"\n")


def _print_report(report: Report, form: ReportForm, length: Length | None = None) -> None:
    if form == "json":
        click.echo(report_json(report, length), err=True)
    elif form == "table":
        show_report(report, converts=True)
        if length is not None:
            click.echo(f"Length: {length.describe()}", err=True)


def _convert_many(
    job: Job,
    source: Source,
    path: Path | None,
    name: str,
    output: str | None,
    *,
    jobs: int,
    resume: bool,
    form: ReportForm,
) -> int:
    kinds: Kinds = Counter()
    conversations = bad = 0
    out = Resumable(output, resume=resume) if output is not None else None
    skipped = out.line if out is not None else 0
    # From a pipe, each line is converted as it arrives, unless there are several processes.
    size = 1 if jobs == 1 else SIZE
    pieces = cut_lines(source.lines, skipped=skipped, size=size) if path is None else cut_file(path, skipped=skipped)
    total = None if path is None else path.stat().st_size
    stdout = sys.stdout.buffer
    done = False
    try:
        with converting(job, pieces, skipped=skipped, processes=jobs) as batches, show_progress(total) as advance:
            for batch in batches:
                if out is None:
                    stdout.write(batch.output)
                else:
                    out.write(batch.output, batch.conversations, batch.last)
                _print_batch(batch, name)
                advance(batch.read, batch.messages)
                kinds.update(batch.kinds)
                conversations += batch.conversations
                bad += len(batch.bad)
                if batch.stopped:
                    break
            else:
                done = True
        stdout.flush()
    finally:
        if out is not None:
            out.close(done=done)
    if form == "table":
        click.echo(f"{conversations:,} conversations converted, {bad:,} bad lines", err=True)
        if kinds:
            show_kinds(kinds)
    return Status.FOUND if bad else Status.SUCCESS


def _print_batch(batch: Batch, name: str) -> None:
    for line, reason in batch.bad:
        click.echo(f"segue: {name}: line {line}: {in_program_words(reason, converts=True)}", err=True)
    for line, report in batch.reports:
        sys.stderr.buffer.write(numbered_report(line, report))
