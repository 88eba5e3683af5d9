"""The command line in the documents: the help of every command, and the output of example commands."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, cast

import click

from segue.cli.program import COMMANDS, program
from segue.cli.statuses import MEANINGS

ROOT: Final = Path(__file__).parent.parent
_WIDTH: Final = 100
_CATALOGUE_DATE: Final = re.compile(r"^(warning: )?the catalogue was updated on ")
"""Left out of documents: with time it becomes a warning."""


def commands(_: str) -> str:
    """Return the help of the program and of each command."""
    parent = click.Context(program, info_name="segue", terminal_width=_WIDTH, max_content_width=_WIDTH)
    parent.help_option_names = ["-h", "--help"]
    parts = [f"```text\n{program.get_help(parent)}\n```\n"]
    for name in COMMANDS:
        command = cast("click.Command", import_module(f"segue.cli.{name}").command)
        inner = click.Context(command, info_name=name, parent=parent, terminal_width=_WIDTH)
        parts.append(f"### segue {name}\n\n```text\n{command.get_help(inner)}\n```\n")
    return "\n".join(parts)


def statuses(_: str) -> str:
    """List the exit statuses."""
    rows = "".join(f"| {int(status)} | {meaning} |\n" for status, meaning in MEANINGS.items())
    return f"| status | meaning |\n| --- | --- |\n{rows}"


def output(command: str) -> str:
    """Run a command in a folder with the examples and return it with its output; a test runs it again."""
    with TemporaryDirectory() as folder:
        Path(folder, "examples").symlink_to(ROOT / "examples")
        done = subprocess.run(
            [sys.executable, "-m", "segue", *shlex.split(command)],
            cwd=folder,
            env={**os.environ, "NO_COLOR": "1", "COLUMNS": str(_WIDTH)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    end = f"  # exit status {done.returncode}" if done.returncode else ""
    lines = [line.rstrip() for line in done.stdout.strip("\n").splitlines()]
    text = "\n".join(line for line in lines if not _CATALOGUE_DATE.search(line))
    return f"```sh\nsegue {command}{end}\n```\n\n```text\n{text}\n```\n"
