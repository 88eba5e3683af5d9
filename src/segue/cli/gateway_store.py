"""`segue gateway doctor`, `reload`, `backup`, `restore`, `gc` and `erase`: the operation of a gateway and its store."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from segue.cli.printable import echo_styled
from segue.errors import SettingsError
from segue.foundation.plurals import counted
from segue.gateway.config import Config, load_config, read_config
from segue.gateway.defaults import complete_config
from segue.gateway.store.backups import back_up, restore_file
from segue.gateway.store.database import StoreError
from segue.gateway.store.opening import file_of_store, open_store, read_store_name
from segue.gateway.store.store import Store, StoreLimits

_Command = TypeVar("_Command", bound=Callable[..., Any])
_COLOURS: Final = {"ok": "green", "warn": "yellow", "fail": "red"}


def _options(command: _Command) -> _Command:
    options = (
        click.option("--config", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="As for serve."),
        click.option("--store", metavar="STORE", help='In place of the one in the file: "sqlite:FILE" or an address.'),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _read(config: Path | None, store: str | None) -> tuple[Config, str]:
    """Return the configuration, and the name of its store."""
    known = load_config("") if config is None else read_config(config)
    return known, read_store_name(store or known.state.store, os.environ)


@contextmanager
def _opened(config: Path | None, store: str | None) -> Generator[tuple[Config, Store]]:
    known, name = _read(config, store)
    found = open_store(name)
    if found is None:
        raise SettingsError("this gateway has no store; see state.store", key="state.store")
    try:
        yield known, found
    except StoreError as error:
        raise SettingsError(f"the store failed: {error}; try again", key="state.store") from error
    finally:
        found.close()


def _file_of(name: str, task: str, instead: str) -> Path:
    """Return the file of a SQLite store."""
    if (file := file_of_store(name)) is None:
        raise click.UsageError(f"{task} is for SQLite; for PostgreSQL use its own tools: {instead}")
    return file


@click.command("doctor")
@click.option("--config", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="As for serve.")
@click.option("--offline", is_flag=True, help="Ask no other machine.")
def doctor(*, config: Path | None, offline: bool) -> None:
    """Look at the configuration, the store, the clock, the keys and the way to the providers. No model is asked.

    The exit status is 1 if the gateway would not work.
    """
    from segue.gateway.doctor import examine, get_over_network

    known = complete_config(load_config(""), os.environ) if config is None else read_config(config)
    has_failed = False
    for finding in examine(known, os.environ, None if offline else get_over_network):
        has_failed |= finding.state == "fail"
        text = f"  {finding.subject}: {finding.text}"
        echo_styled(f"{finding.state:4}", fg=_COLOURS[finding.state], after=text)
    if has_failed:
        raise click.exceptions.Exit(1)


@click.command("reload")
@click.option(
    "--config", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), required=True, help="As for serve."
)
@click.option("--accept", "accepts", is_flag=True, help="Use it although requests and keys would go elsewhere.")
def reload(*, config: Path, accepts: bool) -> None:
    """Check a changed file, and accept it. Gateways that run read their file again by themselves.

    A file that no longer has a provider or a base_url is not used by itself: it may be cut short, and the keys would go
    to another address. /health, the console and the log say what is missing. This needs --accept, or a new start.
    """
    from segue.gateway.reloading import accept

    read_config(config)
    if not accepts:
        click.echo(f"{config} is valid. Gateways use it within seconds, unless /health reports that it is held.")
        return
    accept(config)
    click.echo(f"{config} is accepted as it is now. Gateways use it within seconds.")


@click.command("backup")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@_options
def backup(*, file: Path, config: Path | None, store: str | None) -> None:
    """Write the whole store to FILE while the gateway runs. FILE has the secrets of the store: keep it private."""
    source = _file_of(_read(config, store)[1], "backup", "pg_dump --format=custom --file=FILE ADDRESS")
    back_up(source, file)
    click.echo(f"wrote {file}")


@click.command("restore")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--replace", "replaces", is_flag=True, help="Replace the store that is there. Stop the gateway before.")
@_options
def restore(*, file: Path, replaces: bool, config: Path | None, store: str | None) -> None:
    """Make the store from FILE, which `backup` wrote."""
    target = _file_of(_read(config, store)[1], "restore", "pg_restore --clean --dbname=ADDRESS FILE")
    if target.exists() and not replaces:
        raise click.UsageError(f"{target} exists; stop the gateway and pass --replace to replace it")
    restore_file(file, target)
    click.echo(f"restored {target}")


@click.command("gc")
@_options
def gc(*, config: Path | None, store: str | None) -> None:
    """Delete what has expired, and return its space to the disk. The gateway itself deletes once an hour."""
    with _opened(config, store) as (known, found):
        deleted = found.sweep(StoreLimits.of_days(known.state), time.time_ns() // 1_000_000)
        found.database.compact()
        click.echo(f"deleted {counted(deleted, 'state')} and what else had expired")


@click.command("erase")
@click.option("--conversation", metavar="ID", help="Everything of a conversation, by its id in the console.")
@click.option("--tenant", metavar="ID", help="Everything of a key, by its id in the console (the column Key).")
@click.confirmation_option(prompt="This cannot be undone. Erase it?")
@_options
def erase(*, conversation: str | None, tenant: str | None, config: Path | None, store: str | None) -> None:
    """Erase everything of a conversation, or of a key: requests, contents, states and stored replies."""
    if (conversation is None) == (tenant is None):
        raise click.UsageError("name one: --conversation ID or --tenant ID")
    with _opened(config, store) as (_, found):
        if conversation is not None:
            click.echo(f"erased {counted(found.delete_conversation(conversation, None), 'row')}")
        elif tenant is not None:
            found.delete_tenant(tenant)
            click.echo(f"erased everything of {tenant}")
