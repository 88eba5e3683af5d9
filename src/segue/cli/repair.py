"""`segue repair`: repairs a session that its program no longer continues."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import click

from segue.cli.history_outputs import print_report
from segue.cli.reports import ReportForm, report_option
from segue.cli.targets import complete_model, name_option
from segue.histories.kit.repairing import FaultKind
from segue.histories.repair_files import find_repairable, store_copy, store_in_place
from segue.histories.repairs import FAULT_KINDS, repair


@click.command("repair")
@click.argument("session_name", metavar="SESSION")
@click.option(
    "--fix",
    "kinds",
    type=click.Choice(FAULT_KINDS),
    multiple=True,
    help="A fault that you know of, where nothing in the session shows it: takes out all signatures, all pictures, or"
    " the longest parts of results. Can be repeated.",
)
@click.option(
    "--model",
    metavar="MODEL",
    shell_complete=complete_model,
    help="The model that goes on.",
)
@click.option("--dry-run", is_flag=True, help="Store nothing; print what would be done.")
@click.option("--copy", "copies", is_flag=True, help="Store a copy with another id; leave the session unchanged.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Store the repaired session in this file, and leave the session unchanged.",
)
@name_option
@click.option("--session", metavar="ID", help="The conversation, of a source with several.  [default: newest]")
@report_option
@click.pass_context
def command(
    ctx: click.Context,
    *,
    session_name: str,
    kinds: tuple[FaultKind, ...],
    model: str | None,
    dry_run: bool,
    copies: bool,
    output: Path | None,
    name: str | None,
    session: str | None,
    form: ReportForm,
) -> None:
    """Repair SESSION, which its program or the provider no longer accepts, in its place and with a backup.

    SESSION is a file, `claude-code:last`, `codex:ID` or an id, of Claude Code, Codex, Gemini CLI, opencode, pi, Copilot
    CLI or Qwen Code. Found and repaired are lines that cannot be read, calls without a result and results without a
    call, signatures that are malformed or of another provider, results that are too long for the model, and pictures
    that no provider reads. Of errors that the program stored at the end, the cause is repaired as well. Everything
    that is taken out is in the backup; all other lines stay as they are.

    Exit status 1: nothing is wrong with the session as far as can be seen.
    """
    if copies and output is not None:
        raise click.UsageError("--copy and -o both store a copy; use one of them")
    source, record = find_repairable(session_name, name=name, session=session)
    repaired = repair(source, record, kinds=kinds, model=model)
    print_report(repaired.report, form)
    for advice in repaired.advice:
        click.echo(f"segue: {advice}", err=True)
    if not repaired.is_changed:
        click.echo("Nothing to repair was found; name the fault with --fix if the program still refuses it", err=True)
        ctx.exit(1)
    if dry_run:
        click.echo("Nothing was stored (--dry-run)", err=True)
    elif copies or output is not None:
        path = store_copy(repaired, output, new=str(uuid4()))
        click.echo(f"Repaired copy: {path}", err=True)
        click.echo(path)
    else:
        backup = store_in_place(repaired)
        click.echo(f"Repaired: {repaired.source.path}; as it was: {backup}", err=True)
        click.echo(repaired.source.path)
