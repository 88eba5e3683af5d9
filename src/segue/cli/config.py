"""`segue config`: settings that are used whenever nothing else is named."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import click

from segue.cli.targets import ModelWords, catalogue_option, find_target
from segue.client.local.user_files import SETTINGS, read_settings, write_setting

_NAMES: Final = click.Choice(tuple(SETTINGS))
_MODEL: Final = ModelWords("VALUE", "--protocol", alone=False, other="Add a model of your own with --catalogue FILE")


@click.group("config")
def command() -> None:
    """Settings that are used if nothing else is named: in the file config.json of your configuration folder.

    \b
    model          the model of `segue ask`, `segue chat` and `segue run`
    local_model    the GGUF file of the model `local`
    url_variables  `off`: no URLs from variables such as OPENAI_BASE_URL
    """  # noqa: D301 - click's own mark of a paragraph that is not wrapped


@command.command("get")
@click.argument("name", type=_NAMES)
@click.pass_context
def get_setting(ctx: click.Context, *, name: str) -> None:
    """Print a setting; the exit status is 1 if it is not set."""
    value = read_settings(os.environ).get(name)
    if value is None:
        ctx.exit(1)
    click.echo(value)


@command.command("set")
@click.argument("name", type=_NAMES)
@click.argument("value")
@catalogue_option
def set_setting(*, name: str, value: str, catalogue: str | None) -> None:
    """Set a setting."""
    if name == "model":
        find_target(value, None, catalogue, _MODEL)  # raises if there is no such model
    elif name == "url_variables":
        if value not in ("on", "off"):
            raise click.UsageError(f"{name} is `on` or `off`, not {value!r}")
    else:
        path = Path(value).expanduser().absolute()
        if not path.is_file():
            raise click.UsageError(f"{value} is not a file; {name} takes the path of a GGUF file")
        value = str(path)
    write_setting(name, value, os.environ)


@command.command("list")
def list_settings() -> None:
    """List what is set."""
    for name, value in sorted(read_settings(os.environ).items()):
        click.echo(f"{name} = {value}")


@command.command("unset")
@click.argument("name", type=_NAMES)
def unset_setting(*, name: str) -> None:
    """Remove a setting."""
    write_setting(name, None, os.environ)
