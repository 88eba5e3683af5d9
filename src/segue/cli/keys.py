"""`segue keys`: stores API keys for library, program and gateway. A key is never printed and never an argument."""

from __future__ import annotations

import os
import sys

import click

from segue.cli.targets import catalogue_option, find_near, open_catalogue
from segue.client.http.keys import check_key
from segue.client.local.user_files import key_sources, remove_key, store_key
from segue.models.providers import OTHER_NAMES, PROVIDERS, provider_name


@click.group("keys")
def command() -> None:
    """Store API keys: in the system keyring if the library keyring is installed, else in a file that only you can read.

    The environment variable of a provider, such as OPENAI_API_KEY, goes before its stored key.
    """


@command.command("set")
@click.argument("provider")
@catalogue_option
def set_key(*, provider: str, catalogue: str | None) -> None:
    """Store the key of PROVIDER. It is asked for, or read from standard input; it is not shown."""
    name = provider_name(provider)
    if name not in PROVIDERS and open_catalogue(catalogue).find_row(name) is None:
        near = find_near(provider, (*PROVIDERS, *OTHER_NAMES))
        hint = f"did you mean {' or '.join(near)}?" if near else "`segue models` lists the providers"
        raise click.UsageError(f"there is no provider {provider!r}; {hint}")
    if sys.stdin.isatty():
        key = click.prompt(f"API key of {name}", hide_input=True, type=str, err=True)
    else:
        key = sys.stdin.readline()
    where = store_key(name, check_key(key), os.environ)
    click.echo(f"The key of {name} is stored ({where}).", err=True)
    if (source := key_sources(os.environ)[name]) != where:
        click.echo(f"{source} is set and goes before it.", err=True)


@command.command("list")
def list_keys() -> None:
    """List the providers that have a key, and where it is; the keys themselves are not shown."""
    found = key_sources(os.environ)
    for name, source in sorted(found.items()):
        click.echo(f"{name}  {source}")
    if not found:
        click.echo(
            "There are no keys; store one with `segue keys set PROVIDER`, or set a variable such as OPENAI_API_KEY.",
            err=True,
        )


@command.command("remove")
@click.argument("provider")
def remove(*, provider: str) -> None:
    """Remove the stored key of PROVIDER."""
    name = provider_name(provider)
    if not remove_key(name, os.environ):
        raise click.UsageError(f"no key of {provider} is stored; `segue keys list` shows where the keys are")
    click.echo(f"The key of {name} is removed.", err=True)
