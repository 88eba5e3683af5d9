"""How commands open their input: errors name the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final, NoReturn, TypeVar

import click

from segue.cli.history_inputs import open_given
from segue.errors import DecodeError, LoadError, SegueError
from segue.histories.opening import Opened
from segue.models.model import Model

_Command = TypeVar("_Command", bound=Callable[..., object])

EXAMPLE: Final = Path(__file__).with_name("example.jsonl")
"""A session with models of four providers, in the package, so that a first try needs no file."""


def example_option(command: _Command) -> _Command:
    """Add the option for the session that comes with segue, in place of a file."""
    return click.option("--example", is_flag=True, help="Use the example session that comes with segue, not a FILE.")(
        command
    )


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
    """Give the FILE of a command, or the example session.

    Raises:
        UsageError: there are both or neither.
    """
    check_input(file, example=example)
    return EXAMPLE.open("rb") if file is None else file


def open_input(file: BinaryIO, protocol: str | None, model: Model | None = None) -> Opened:
    """Open the FILE of a command, see `open_given`.

    Raises:
        LoadError: the file cannot be read as a conversation; the message starts with its name.
        DecodeError: the file is not a request of that protocol, or of no known protocol.
    """
    try:
        return open_given(file, protocol, model)
    except (LoadError, DecodeError) as error:
        raise_named(error, file.name)


def raise_named(error: SegueError, name: str) -> NoReturn:
    """Raise an error again, with the name of its file, and with advice if the message has none."""
    text = str(error)
    name = "standard input" if name in ("-", "<stdin>") else name
    named = "" if text.startswith(name) else f"{name}: "
    advice = "" if "; " in text or not isinstance(error, LoadError | DecodeError) else "; correct the file"
    error.args = (f"{named}{text}{advice}",)
    raise error
