"""`segue sessions`: lists the sessions of agents on this machine, or in a file or folder."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click
import msgspec
from msgspec.structs import replace

from segue.cli.history_inputs import FORMAT_NAMES
from segue.errors import SegueError
from segue.histories.api import find_sessions, list_source, read_history
from segue.histories.kit.history import Session
from segue.json_text import encode_valid_json
from segue.plurals import counted

if TYPE_CHECKING:
    from rich.console import Console

_SHORTEST = 8
"""How much of an id is shown at least."""
_NARROW: Final = 100
"""Columns of a terminal below which the table of sessions would be cut: each session has lines of its own."""
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


@click.command("sessions")
@click.argument("source", required=False)
@click.option(
    "--agent", "agents", metavar="AGENT", type=FORMAT_NAMES, multiple=True, help="Only this agent; can be repeated."
)
@click.option("--cwd", metavar="DIR", help="Only sessions of this project; `.` is the current folder.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the newest N sessions.")
@click.option(
    "--count", is_flag=True, help="Read whole files, to count the messages, tokens and cost of long sessions."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    *, source: str | None, agents: tuple[str, ...], cwd: str | None, limit: int | None, count: bool, as_json: bool
) -> None:
    """List the sessions of agents on this machine, the newest first; or those in SOURCE, a file, folder or database.

    `segue show AGENT:ID` prints one, `segue handover AGENT:ID --to AGENT` continues it in another agent; the beginning
    of the ID is enough. Of long files only the beginning and the end are read; --count reads them whole.
    """
    folder = None if cwd is None else os.path.abspath(os.path.expanduser(cwd))  # noqa: PTH100, PTH111 - as agents do
    if source is None:
        found = list(find_sessions(formats=agents or None, cwd=folder))
    else:
        listed = list_source(source, format=agents[0] if len(agents) == 1 else None)
        found = [
            session
            for session in listed
            if (not agents or session.format in agents) and (folder is None or session.cwd == folder)
        ]
    found = found[:limit]
    if count:
        found = [_counted(session) for session in found]
    if as_json:
        click.echo(msgspec.json.format(encode_valid_json([_json(session) for session in found]), indent=2))
    else:
        _show(found)


def _counted(session: Session) -> Session:
    """Read a session whose counts are not known from its beginning and its end."""
    if session.messages is not None:
        return session
    try:
        messages = read_history(session).context.messages
    except SegueError:
        return session
    turns = [message for message in messages if message.role == "assistant"]
    usages = [turn.usage for turn in turns if turn.usage is not None]
    costs = [usage.cost.total for usage in usages if usage.cost is not None]
    return replace(
        session,
        messages=len(messages),
        tokens=sum(usage.total_tokens for usage in usages) if session.tokens is None else session.tokens,
        cost=sum(costs) if costs and session.cost is None else session.cost,
        models=session.models or tuple(dict.fromkeys(turn.model for turn in turns if turn.model)),
    )


def _json(session: Session) -> dict[str, object]:
    return {"source": f"{session.format}:{session.id}", **msgspec.structs.asdict(session)}


def _show(sessions: Sequence[Session]) -> None:
    from rich.table import Table
    from rich.text import Text

    from segue.cli.reports import open_console

    if not sessions:
        click.echo("no sessions found", err=True)
        return
    console = open_console()
    is_narrow = console.is_terminal and console.width < _NARROW
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("agent", "id", "age", "project", "title", "models"):
        table.add_column(
            name, overflow="fold" if name in {"models", "project"} else "ellipsis", no_wrap=name != "models"
        )
    for name in ("messages", "tokens", "$"):
        table.add_column(name, justify="right")
    now = int(time.time() * 1000)
    for session in sessions:
        cells = (
            session.format,
            _short_id(session, sessions),
            _age(now, session.updated),
            _short(session.cwd),
            (session.title or "").replace("\n", " ")[:60],
            " ".join(session.models),
            "" if session.messages is None else f"{session.messages:,}",
            "" if session.tokens is None else f"{session.tokens:,}",
            "" if not session.cost else f"{session.cost:.2f}",
        )
        if is_narrow:
            _print_lines(console, [_printable(cell) for cell in cells])
        else:
            table.add_row(*(Text(_printable(cell)) for cell in cells))
    if not is_narrow:
        console.print(table)
    click.echo(counted(len(sessions), "session"), err=True)


def _print_lines(console: Console, cells: list[str]) -> None:
    """Print a session in a narrow terminal: its name, then its title, then the rest, each on a line."""
    from rich.text import Text

    agent, name, age, project, title, models, messages, tokens, cost = cells
    console.print(Text(f"{agent}:{name}", "bold").append(f"  {age}", "dim"), soft_wrap=True)
    rest = (project, models, messages and f"messages: {messages}", tokens and f"tokens: {tokens}", cost and f"${cost}")
    for line in (title, ", ".join(filter(None, rest))):
        if line:
            console.print(Text(f"  {line}"), no_wrap=True, overflow="ellipsis", crop=True)


def _short_id(session: Session, sessions: Sequence[Session]) -> str:
    """Write the beginning of an id that no other session of the agent in the list has."""
    others = [each.id for each in sessions if each.format == session.format and each.id != session.id]
    for length in range(_SHORTEST, len(session.id)):
        if not any(other.startswith(session.id[:length]) for other in others):
            return session.id[:length]
    return session.id


def _printable(text: str) -> str:
    """Replace control characters: a title is text of a file, and must not control the terminal."""
    return "".join(each if each.isprintable() else "?" for each in text)


def _short(folder: str | None) -> str:
    """Write a folder with `~` for the home folder."""
    if folder is None:
        return ""
    home = os.path.expanduser("~")  # noqa: PTH111 - a text is compared
    return f"~{folder.removeprefix(home)}" if folder == home or folder.startswith(home + "/") else folder


def _age(now: int, updated: int | None) -> str:
    """Write how long ago something was."""
    if updated is None:
        return ""
    seconds = max(0, now - updated) // 1000
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return "now"
