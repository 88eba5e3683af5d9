"""The list of commands. Each is imported when it is run, so that `--help` is fast."""

from __future__ import annotations

from importlib import import_module
from typing import Final, cast, final

import click

from segue.version import __version__

COMMANDS: Final[dict[str, str]] = {
    "convert": "Write a conversation as a request for another model, and report every change.",
    "check": "List what a provider would refuse in a request, or what a conversation would lose.",
    "report": "Show what a conversion of many files changed, with its tokens and their price.",
    "results": "Read the results of a provider's batch back into their conversations.",
    "show": "Print a conversation as readable text.",
    "models": "List the models of the catalogue, or show all data of one.",
    "chat": "Chat with a model in the terminal, and switch models during the conversation.",
    "ui": "Open the inspector: a local web page that shows the request for each model.",
}


@final
class _Program(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's own
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's own
        if cmd_name not in COMMANDS:
            return None
        return cast("click.Command", import_module(f"segue.cli.{cmd_name}").command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=_Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="segue")
def program() -> None:
    """Convert, check, show and continue conversations with language models of any provider."""
