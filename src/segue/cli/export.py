"""`segue export`: writes a conversation in the format of an agent or a framework."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from segue.cli.handover import default_model
from segue.cli.history_outputs import (
    commands_of,
    print_report,
    render_commands,
    save_fresh,
    store_new,
    write_for,
)
from segue.cli.inputs import open_history, print_redacted
from segue.cli.reports import ReportForm, report_option
from segue.cli.targets import catalogue_option, complete_model
from segue.conversation.pages import PAGES
from segue.errors import LoadError
from segue.foundation.plurals import counted
from segue.histories.kit.history import History, Written
from segue.histories.redacting import new_redactor, redact
from segue.histories.registry import all_formats, get_format
from segue.projection.report import Report


@click.command("export")
@click.argument("source", metavar="FILE")
@click.option("--to", "target", metavar="FORMAT", required=True, help="The format to write.")
@click.option(
    "--model",
    metavar="MODEL",
    shell_complete=complete_model,
    help="The model that continues the conversation.  [default: that of the last answer, or one of the format]",
)
@click.option("--cwd", metavar="DIR", help="The folder of the project.  [default: that of the conversation]")
@click.option("--session", metavar="ID", help="The conversation to read, of a source with several.  [default: newest]")
@click.option(
    "-o",
    "--output",
    metavar="FILE|DIR",
    type=click.Path(path_type=Path),
    help="The file, or the folder for the files.  [default: the folder of the agent, or standard output]",
)
@click.option("--dry-run", is_flag=True, help="Store nothing; print the names of the files and the report.")
@click.option(
    "--redact/--no-redact",
    "redacts",
    default=None,
    help="Take out keys, passwords and names of home folders, and count them.  [default: for markdown and html]",
)
@report_option
@catalogue_option
def command(
    *,
    source: str,
    target: str,
    model: str | None,
    cwd: str | None,
    session: str | None,
    output: Path | None,
    dry_run: bool,
    redacts: bool | None,
    form: ReportForm,
    catalogue: str | None,
) -> None:
    """Write FILE in the format of an agent or a framework, and report what could not be kept.

    `--to markdown` and `--to html` write it for people to read: html is a page that needs no other file, with thinking
    and calls folded. They are made to be given to others, so keys and passwords are taken out unless you add
    --no-redact.

    FILE is a session file of segue, a request, or any SOURCE of `segue import`. A file that exists is never changed.
    """
    if target in PAGES:
        history = _open(source, session, redacts=redacts is not False)
        page = PAGES[target](history.context, title=history.title or Path(source).name).encode("utf-8", "replace")
        if output is None or dry_run:
            click.echo(counted(len(page), "byte") if dry_run else page, nl=dry_run)
        else:
            store_new(output, page)
            click.echo(output)
        return
    record = get_format(target)
    if record.write is None:
        names = ", ".join(each.name for each in all_formats() if each.write is not None)
        raise click.UsageError(f"--to {target}: {record.title} can only be read; choose one of {names}")
    history = _open(source, session, redacts=redacts is True)
    chosen = None
    if record.kind == "agent" or model is not None:  # without one, every turn of a framework's messages stays as it is
        chosen = default_model(record, history, model, catalogue)
    if dry_run or (output is None and (record.place is None or not record.place.patterns)):
        written = write_for(history, record, chosen, cwd)
        if dry_run:
            for file in written.files:
                click.echo(f"{file.name}  {counted(len(file.data), 'byte')}")
        else:
            _print(written)
        print_report(Report((*history.report.changes, *written.report.changes)), form)
        return
    if output is not None and not _is_folder(output):
        written = write_for(history, record, chosen, cwd)
        if len(written.files) != 1:
            raise LoadError(f"{record.title} has {len(written.files)} files for this; name a folder with -o DIR/")
        store_new(output, written.files[0].data)
        paths = (output,)
    else:
        written, paths = save_fresh(history, record, chosen, cwd, output)
    for path in paths:
        click.echo(path)
    print_report(Report((*history.report.changes, *written.report.changes)), form)
    if record.kind == "agent" and (commands := commands_of(written, paths[0], elsewhere=output is not None)):
        click.echo(f"Continue with: {render_commands(commands, cwd or history.cwd)}", err=True)


def _open(source: str, session: str | None, *, redacts: bool) -> History:
    history = open_history(source, session=session)
    if not redacts:
        return history
    redactor = new_redactor()
    redacted = redact(history, redactor)
    print_redacted(redactor)
    return redacted


def _is_folder(path: Path) -> bool:
    return path.is_dir() or not path.suffix


def _print(written: Written) -> None:
    if len(written.files) != 1:
        raise LoadError(f"{len(written.files)} files cannot be printed; name a folder with -o DIR/")
    sys.stdout.buffer.write(written.files[0].data)
