"""`segue import`: reads a session of an agent, an export or messages of a framework into a session file of segue."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import click
from msgspec.structs import replace

from segue.cli.history_outputs import print_report, session_lines, store_new
from segue.cli.inputs import chosen_view, open_history, view_options
from segue.cli.reports import ReportForm, report_option
from segue.cli.targets import name_option
from segue.histories.kit.history import History
from segue.histories.reading import HISTORY

RECORDS: Final = "records"


@click.command("import")
@click.argument("source")
@name_option
@click.option("--session", metavar="ID", help="The conversation to read, of a source with several.  [default: newest]")
@view_options
@click.option("--keep-records", is_flag=True, help="Also store records that are not part of the conversation.")
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The session file to write; it must not exist.  [default: standard output]",
)
@report_option
def command(
    *,
    source: str,
    name: str | None,
    session: str | None,
    view: str,
    branch: str | None,
    keep_records: bool,
    output: Path | None,
    form: ReportForm,
) -> None:
    """Read SOURCE into a session file of segue, and report what is not in its messages.

    SOURCE is a session file of an agent, its folder or database, an export, messages of a framework as JSON,
    `last`, `codex:last` or an ID (`segue sessions` lists them), or `-` for standard input. It is never changed.
    """
    chosen = chosen_view(view, branch)
    history = open_history(source, name=name, view=chosen, session=session, keep_records=keep_records)
    data = session_lines(_with_records(history).context if keep_records else history.context)
    if output is None:
        sys.stdout.buffer.write(data)
    else:
        store_new(output, data)
    print_report(history.report, form)


def _with_records(history: History) -> History:
    """Store the records in the header of the session file."""
    records = [{"kind": each.kind, "line": each.line, "data": each.data} for each in history.records]
    extra = dict(history.context.extra or {})
    extra[HISTORY] = {**extra.get(HISTORY, {}), RECORDS: records}
    return replace(history, context=replace(history.context, extra=extra))
