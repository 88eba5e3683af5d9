"""What the commands for histories print and store: reports, files, and the command that continues a session."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import uuid4

import click
from msgspec.structs import replace

from segue.cli.printable import quote_word
from segue.cli.reports import ReportForm, measured_report, show_report
from segue.conversation.context import Context
from segue.conversation.stored import dump, dump_message, dump_summary
from segue.errors import HistoryExists, LoadError
from segue.histories.api import save_history, write_history
from segue.histories.kit.format import Format
from segue.histories.kit.history import History, Written
from segue.histories.places import read_settings, store_file
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.projection.report import Report


def print_report(report: Report, form: ReportForm, *, converts: bool = False) -> None:
    """Print a report to standard error; `converts` as in `show_report`."""
    if form == "json":
        click.echo(measured_report(report), err=True)
    elif form == "table":
        show_report(report, converts=converts)


def session_lines(context: Context) -> bytes:
    """Write a conversation as a session file: a header, the messages, the summaries."""
    header = dump(replace(context, messages=(), summaries=()))
    lines = [header, *map(dump_message, context.messages), *map(dump_summary, context.summaries)]
    return b"".join(line.rstrip(b"\n") + b"\n" for line in lines)


def store_new(path: Path, data: bytes) -> None:
    """Store a file that is not there yet, readable for the user alone.

    Raises:
        HistoryExists: the file is there; it is unchanged.
    """
    if path.exists():
        raise HistoryExists(f"{path} is there already and was not changed; choose another name with -o", file=str(path))
    store_file(path, data)


def write_for(
    history: History,
    record: Format,
    model: Model | None,
    cwd: str | None,
    *,
    session_id: str | None = None,
    policy: Policy | None = None,
) -> Written:
    """Write a history for an agent, with the settings of this user."""
    settings = read_settings(record)
    return write_history(
        history, format=record.name, model=model, cwd=cwd, policy=policy, session_id=session_id, settings=settings
    )


def save_fresh(
    history: History,
    record: Format,
    model: Model | None,
    cwd: str | None,
    folder: Path | None,
    *,
    policy: Policy | None = None,
) -> tuple[Written, tuple[Path, ...]]:
    """Write and store a history; if the derived name is taken by a session that went on, it gets a random one."""
    written = write_for(history, record, model, cwd, policy=policy)
    try:
        return written, save_history(written, folder)
    except HistoryExists:
        again = write_for(history, record, model, cwd, session_id=str(uuid4()), policy=policy)
        return again, save_history(again, folder)


def commands_of(written: Written, path: Path, *, elsewhere: bool) -> list[list[str]]:
    """Return the commands that continue a stored session.

    Empty if the program continues only files of its own folder.
    """
    resume = written.resume_file if elsewhere else written.resume
    if not resume:
        return []
    commands = [written.setup, resume] if written.setup else [resume]
    # Absolute, because the commands run in the folder of the project.
    named = {"{file}": str(path.absolute()), "{folder}": str(path.absolute().parent)}
    return [[_filled(part, named) for part in command] for command in commands]


def _filled(part: str, named: Mapping[str, str]) -> str:
    for mark, value in named.items():
        part = part.replace(mark, value)
    return part


def render_commands(commands: Sequence[Sequence[str]], cwd: str | None) -> str:
    """Write commands as one line for a shell."""
    before = [] if cwd is None else [f"cd {quote_word(cwd)}"]
    return " && ".join([*before, *(" ".join(map(quote_word, command)) for command in commands)])


def run_commands(commands: Sequence[Sequence[str]], cwd: str | None) -> int:
    """Run commands in the folder of the project, in this terminal, and return the status of the last one.

    Raises:
        LoadError: the folder or a program is not there.
    """
    import subprocess

    if cwd is not None and not os.path.isdir(cwd):  # noqa: PTH112 - the text that the message shows
        raise LoadError(f"the folder {cwd} of the project is not there; name one with --cwd")
    status = 0
    sys.stdout.flush()
    for command in commands:
        try:
            status = subprocess.run(list(command), cwd=cwd, check=False).returncode  # noqa: S603 - no shell
        except FileNotFoundError:
            raise LoadError(
                f"the program {command[0]!r} is not installed, or not on the PATH; the session is stored, and"
                f" `{render_commands([command], None)}` continues it"
            ) from None
        if status:
            return status
    return status
