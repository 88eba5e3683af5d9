"""The list of commands. Each is imported when it is run, so that `--help` is fast."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Final, cast, final

import click

from segue.foundation.version import __version__

COMMANDS: Final[dict[str, str]] = {
    "convert": "Write a conversation as a request for another model, and report every change.",
    "check": "List what a provider would refuse in a request, or what a conversation would lose.",
    "report": "Show what a conversion of many files changed, with its tokens and their price.",
    "results": "Read the results of a provider's batch back into their conversations.",
    "show": "Print a conversation as readable text.",
    "plan": "Compare models for the next requests of a conversation: cost, caches, what is lost.",
    "pin": "Pin messages of a conversation, so that no request leaves them out.",
    "sessions": "List the sessions of agents (Claude Code, Codex, ...) on this machine.",
    "formats": "List the formats of histories: what is read and written, and how sure it is.",
    "import": "Read a session of an agent, an export or messages of a framework into a session file.",
    "export": "Write a conversation in the format of an agent or a framework.",
    "repair": "Repair a session that its agent no longer continues.",
    "handover": "Continue a session of one agent in another one, on another model.",
    "models": "List the models of the catalogue, or show all data of one.",
    "ask": "Ask a model one question and print the answer, in a pipe or in the terminal.",
    "chat": "Chat with a model in the terminal, and switch models during the conversation.",
    "config": "Set what is used if nothing else is named, such as the model of `ask` and `chat`.",
    "keys": "Store API keys, in the system keyring or in a file that only you can read.",
    "local": "Fetch a small model that answers on this machine, without a key or an account.",
    "serve": "Run the gateway: clients of any protocol, models of any provider.",
    "gateway": "Manage a gateway: the keys of its clients, its state, and what is stored.",
    "run": "Run a client such as Claude Code or codex on another model.",
    "emulate": "Answer like the providers, without a network, and refuse what they refuse.",
    "conformance": "Send histories of real conversations to a server or gateway, and score what it does.",
    "facts": "Compare recorded exchanges with the rules, and keep what they show.",
    "probe": "Ask a server what it supports, and write what segue has to know about it.",
    "mcp": "Serve the sessions of agents on this machine to an agent, by the Model Context Protocol.",
    "acp": "Serve the sessions of agents on this machine to an editor, by the Agent Client Protocol.",
    "ui": "Open the inspector: a local web page that shows the request for each model.",
    "doctor": "Show the keys, URLs, extras, sessions and stores that segue finds, and what is missing.",
    "completion": "Print the script that completes commands, options and names of models in a shell.",
}

NAME: Final = "segue"
COMPLETE_VARIABLE: Final = "_SEGUE_COMPLETE"
"""The environment variable by which a shell's script asks for completions."""


@final
class Program(click.Group):
    """The commands, in the order of the table, imported when they are run."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's own
        """List the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's own
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        return cast("click.Command", import_module(f"segue.cli.{cmd_name}").command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown one is an error that names similar ones."""
        is_option = not args or args[0].startswith("-")
        if not ctx.resilient_parsing and not is_option and args[0] not in COMMANDS:
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, n=2)
            hint = f"did you mean {' or '.join(near)}?" if near else f"the commands are {', '.join(COMMANDS)}"
            raise click.UsageError(f"No such command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def opening(self, arguments: list[str]) -> click.Context:
        """Parse the arguments, or answer a shell that completes them; without click's handling of errors.

        Raises:
            ClickException: an argument is wrong.
            Exit: the program has nothing more to do.
        """
        if instruction := os.environ.get(COMPLETE_VARIABLE):
            from click.shell_completion import shell_complete

            raise click.exceptions.Exit(shell_complete(self, {}, NAME, COMPLETE_VARIABLE, instruction))
        return self.make_context(NAME, arguments)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the table of commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="segue")
@click.pass_context
def program(ctx: click.Context) -> None:
    """Convert, check, show and continue conversations with language models of any provider."""
    if os.environ.get("NO_COLOR"):
        ctx.color = False
