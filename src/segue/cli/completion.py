"""`segue completion`: prints the script that completes commands, options and names of models in a shell."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

from segue.cli.program import COMPLETE_VARIABLE, NAME, program

_SHELLS: Final = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(_SHELLS))
def command(*, shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    bash: add to ~/.bashrc     eval "$(segue completion bash)"
    zsh:  add to ~/.zshrc      eval "$(segue completion zsh)"
    fish: run once             segue completion fish > ~/.config/fish/completions/segue.fish
    """  # noqa: D301 - click's own mark of a paragraph that is not wrapped
    completion = get_completion_class(shell)
    assert completion is not None, "click knows these shells"
    click.echo(completion(program, {}, NAME, COMPLETE_VARIABLE).source())
