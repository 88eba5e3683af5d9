"""How commands open a SOURCE: a file, a folder, a database, an archive, `last`, `codex:last`, an id, or `-`.

`acp:AGENT:ID` is loaded by the program of that agent.

What it is and how it is read, `segue.histories.opening` decides, for every command alike. Errors name the file.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final, NoReturn, TypeVar, cast, final

import click

from segue.cli.progress import read_pipe, show_reading
from segue.errors import DecodeError, LoadError, SegueError, UnknownFormat
from segue.foundation.redaction import Redactor
from segue.histories.kit.history import History
from segue.histories.kit.source import View
from segue.histories.opening import How, Opened, choose_line, find_bare_id, open_source
from segue.histories.places import is_binary
from segue.histories.registry import find_format, format_names, get_format
from segue.models.model import Model
from segue.projection.report import Loss, Report

EXAMPLE: Final = Path(__file__).with_name("example.jsonl")
"""A session with models of four providers, in the package, so that a first try needs no file."""
FORMAT_NAMES: Final = click.Choice(format_names())
ACP: Final = "acp:"
"""The beginning of a SOURCE that the program of an agent loads itself."""
_HEAD: Final = 64
_STANDARD_INPUT: Final = "-"
_Command = TypeVar("_Command", bound=Callable[..., object])


def example_option(command: _Command) -> _Command:
    """Add the option for the session that comes with segue, in place of a file."""
    return click.option("--example", is_flag=True, help="Use the example session that comes with segue, not a FILE.")(
        command
    )


def redact_option(command: _Command) -> _Command:
    """Add the option that takes secrets out of what is written or shown."""
    return click.option(
        "--redact", "redacts", is_flag=True, help="Take out keys, passwords and names of home folders, and count them."
    )(command)


def print_redacted(redactor: Redactor) -> None:
    """Print how much was redacted to standard error."""
    click.echo(redactor.summary(), err=True)


def check_input(file: object | None, *, example: bool, is_required: bool = True, name: str = "FILE") -> None:
    """Check the input of a command that has the option `--example`.

    Raises:
        UsageError: there is a file as well, or neither and one is required.
    """
    if example and file is not None:
        raise click.UsageError(f"--example is the input; leave out {name}, or leave out --example")
    if is_required and not example and file is None:
        raise click.UsageError(f"name a {name} to read, or use --example")


def choose_input(file: BinaryIO | None, *, example: bool) -> BinaryIO:
    """Return the FILE of a command, or the example session.

    Raises:
        UsageError: there are both or neither.
    """
    check_input(file, example=example)
    return EXAMPLE.open("rb") if file is None else file


def view_options(command: _Command) -> _Command:
    """Add the options that say which part of a history is read."""
    branch = click.option("--branch", metavar="ID", help="Read this branch; the report lists the branches.")
    view = click.option(
        "--view",
        type=click.Choice(["active", "full"]),
        default="active",
        show_default=True,
        help="What the agent would send, or everything, also what it replaced by a summary.",
    )
    return view(branch(command))


def chosen_view(view: str, branch: str | None) -> str:
    """Return the view that these options name."""
    return view if branch is None else f"branch={branch}"


def open_history(
    given: str,
    *,
    name: str | None = None,
    view: str = "active",
    session: str | None = None,
    keep_records: bool = False,
) -> History:
    """Read a history from any SOURCE.

    Raises:
        SegueError: it cannot be read; the message begins with the name of the source.
    """
    how = How(format=name, session=session, view=View.parse(view, keep_records=keep_records))
    is_standard_input = given == _STANDARD_INPUT
    shown = "standard input" if is_standard_input else given
    _check_place(given)
    try:
        source = read_pipe() if is_standard_input else _replayed(given)
        with show_reading():
            history = choose_line(open_source(source, how, name=shown), how).as_history()
    except UnknownFormat:
        raise
    except SegueError as error:
        raise_named(error, shown)
    if not history.context.messages:
        click.echo(f"segue: {shown}: there is no message in it", err=True)
    return history


def _check_place(given: str) -> bool:
    """Whether this names a session by its agent, or is a folder or a file that is not text.

    Raises:
        LoadError: the agent has no sessions on this machine.
        UnknownFormat: there is no such agent.
    """
    if given == _STANDARD_INPUT:
        return False
    if given.startswith(ACP):
        return True
    agent, colon, rest = given.partition(":")
    if colon and rest and not Path(given).exists():
        record = find_format(agent)
        if record is not None:
            if record.place is None:
                raise LoadError(f"{given}: {record.title} has no sessions on this machine; name a file")
            return True
        if agent.replace("-", "").isalpha() and len(agent) > 1:
            get_format(agent)  # explains which names there are
    path = Path(given).expanduser()
    if not colon and find_bare_id(given) is not None:
        return True
    return path.is_dir() or (path.is_file() and is_binary(_head(path)))


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_HEAD)
    except OSError:
        return b""


@final
class _Place(io.BytesIO):
    """A SOURCE that is not text: it is opened by its name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name: Final = name


@final
class SourceFile(click.ParamType[BinaryIO]):
    """An argument that is a file with a conversation, or any other SOURCE of a history."""

    name = "source"
    _files: Final = click.File("rb")

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> BinaryIO:
        """Return the file; `open_input` reads it."""
        if not isinstance(value, str):
            return cast("BinaryIO", value)
        if _check_place(value):
            return _Place(value)
        return cast("BinaryIO", self._files.convert(value, param, ctx))


def given_source(file: BinaryIO) -> object:
    """Return what `open_source` takes of a SOURCE."""
    return _replayed(file.name) if isinstance(file, _Place) else file


def _replayed(given: str) -> str | bytes:
    """Return the log of the program of an agent that loads `acp:AGENT:ID`; every other SOURCE as it is.

    Raises:
        LoadError: the program is not there, or does not load it.
        MissingExtra: the package of the protocol is not installed.
    """
    if not given.startswith(ACP):
        return given
    from segue.cli.acp_client import load_log, parse_name

    name = parse_name(given)
    assert name is not None, "it has the prefix"
    return load_log(name)


def open_input(file: BinaryIO, protocol: str | None, model: Model | None = None) -> Opened:
    """Open the FILE of a command; what is read from a history and not in its messages is printed to standard error.

    Raises:
        LoadError: the file cannot be read as a conversation; the message starts with its name.
        DecodeError: the file is not a request of that protocol, or of no known protocol.
        UnknownFormat: as `open_source`.
    """
    how = How(format=protocol, model=model)
    name = "standard input" if file.name in (_STANDARD_INPUT, "<stdin>") else file.name
    try:
        with show_reading():
            opened = open_source(given_source(file), how, name=name)
    except (LoadError, DecodeError) as error:
        raise_named(error, name)
    history = None if opened.document is None else opened.document.history
    if history is not None and (summary := summarise(history.report)):
        click.echo(f"segue: {file.name}: {summary}; `segue import {file.name} -o FILE` reports all", err=True)
    return opened


def summarise(report: Report) -> str:
    """Count what a history has in addition to its messages.

    Other branches, sub-agents, messages that were compacted.
    """
    counts = Counter(change.code for change in report.changes if change.loss == Loss.CONTENT)
    return ", ".join(f"{count} x {code.value}" for code, count in sorted(counts.items()))


def raise_named(error: SegueError, name: str) -> NoReturn:
    """Raise an error again, with the name of its file, and with advice if the message has none."""
    text = str(error)
    name = "standard input" if name in ("-", "<stdin>") else name
    named = "" if text.startswith(name) else f"{name}: "
    advice = "" if "; " in text or not isinstance(error, LoadError | DecodeError) else "; correct the file"
    error.args = (f"{named}{text}{advice}",)
    raise error
