"""`segue gateway keys`: the keys of a gateway's clients, in its store."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import click
import msgspec

from segue.errors import SettingsError
from segue.gateway.config import Config, load_config, read_config
from segue.gateway.defaults import needs_key
from segue.gateway.key_lists import describe_key
from segue.gateway.keys import PERIODS, Budget, Period, Rights, digest_of, make_key
from segue.gateway.store.database import StoreError
from segue.gateway.store.key_table import keys_version, put_key, read_spending, revoke_key
from segue.gateway.store.opening import open_store, read_store_name
from segue.gateway.store.store import Store

_Command = TypeVar("_Command", bound=Callable[..., Any])
_BUDGET: Final = re.compile(r"(?P<amount>\d+(?:\.\d+)?)(?P<unit>\$|usd|tokens)?/(?P<period>[a-z]+)", re.IGNORECASE)
_FIRST: Final = """
This is the first key of the store: from now on every client of its gateways needs a key, also on this machine.
Set it where a client has its key, such as ANTHROPIC_API_KEY or OPENAI_API_KEY; `segue serve --setup CLIENT` prints
the place, and `segue gateway keys create` makes a key for each client. `segue run` goes on without one."""
_DURATION: Final = re.compile(r"(\d+)([mhdw])")
_UNITS: Final = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}


@click.group("keys")
def keys() -> None:
    """Make, list and revoke keys. A gateway that runs follows within a second, and so do all gateways of the store.

    Once the store has a key, every client needs one, also on this machine; revoking the last key opens nothing.
    """


def _store_options(command: _Command) -> _Command:
    options = (
        click.option(
            "--config", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="The gateway's TOML file."
        ),
        click.option("--store", metavar="STORE", help='The store, if it is not in the file: "sqlite:FILE" or a URL.'),
    )
    for option in options:
        command = option(command)
    return command


def _read(config: Path | None) -> Config:
    return load_config("") if config is None else read_config(config)


@contextmanager
def _opened(config: Path | None, store: str | None) -> Generator[Store]:
    """Open the store of a gateway."""
    found = open_store(read_store_name(store or _read(config).state.store, os.environ))
    if found is None:
        raise click.UsageError("this gateway has no store (state.store is none); keys are kept in one")
    try:
        yield found
    except StoreError as error:
        raise click.ClickException(f"the store does not answer: {error}") from error
    finally:
        found.close()


@keys.command("create")
@click.argument("name")
@click.option(
    "--route", "routes", multiple=True, metavar="NAME", help="A name that it may ask for; * and ? are patterns."
)
@click.option(
    "--model", "models", multiple=True, metavar="MODEL", help="A model that may answer: provider/id or a pattern."
)
@click.option("--expires", metavar="TIME", help="When it ends: 12h, 30d or 4w from now.")
@click.option(
    "--budget",
    "budgets",
    multiple=True,
    metavar="AMOUNT/PERIOD",
    help="What it may spend: 20$/month, 1000000tokens/day; periods are day, week, month and total.",
)
@click.option("--requests", type=click.IntRange(1), metavar="N", help="Requests a minute.")
@click.option("--tokens", type=click.IntRange(1), metavar="N", help="Tokens a minute.")
@_store_options
def create(
    *,
    name: str,
    routes: tuple[str, ...],
    models: tuple[str, ...],
    expires: str | None,
    budgets: tuple[str, ...],
    requests: int | None,
    tokens: int | None,
    config: Path | None,
    store: str | None,
) -> None:
    """Make the key NAME and print it. It is shown once; the store has only its digest."""
    now = time.time_ns() // 1_000_000
    rights = Rights(
        routes=routes,
        models=models,
        expires=None if expires is None else now + _read_duration(expires),
        budgets=_read_budgets(budgets),
        requests_per_minute=requests,
        tokens_per_minute=tokens,
    )
    try:
        secret, key = make_key(name, rights, now)
        with _opened(config, store) as opened:
            is_first = keys_version(opened.database) is None and not needs_key(_read(config))
            put_key(opened.database, key, digest_of(secret))
    except SettingsError as error:
        raise click.UsageError(str(error)) from error
    click.echo(f"The key {name} ({key.id}) is made. It is not shown again:", err=True)
    click.echo(secret)
    if is_first:
        click.echo(_FIRST, err=True)


@keys.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--all", "all_keys", is_flag=True, help="Also those that are revoked.")
@_store_options
def list_keys(*, as_json: bool, all_keys: bool, config: Path | None, store: str | None) -> None:
    """List the keys with their limits and what they spent; the keys themselves are nowhere."""
    now = time.time_ns() // 1_000_000
    with _opened(config, store) as opened:
        rows = [row for row in read_spending(opened.database, now) if all_keys or row.key.revoked is None]
    described = [describe_key(row, now) for row in rows]
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(described)))
        return
    for each in described:
        click.echo(each.line())
    if not described:
        click.echo("There are no keys; `segue gateway keys create NAME` makes one.", err=True)


@keys.command("revoke")
@click.argument("name")
@_store_options
def revoke(*, name: str, config: Path | None, store: str | None) -> None:
    """Revoke the key NAME, by its name or id. Gateways refuse it within a second."""
    try:
        with _opened(config, store) as opened:
            key = revoke_key(opened.database, name, time.time_ns() // 1_000_000)
    except SettingsError as error:
        raise click.UsageError(str(error)) from error
    click.echo(f"The key {key.name} ({key.id}) is revoked.", err=True)


def _read_duration(text: str) -> int:
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise click.UsageError(f"--expires {text!r} is not a time; use 12h, 30d or 4w")
    return int(found[1]) * _UNITS[found[2]] * 1000


def _read_budgets(given: tuple[str, ...]) -> dict[Period, Budget]:
    budgets: dict[Period, Budget] = {}
    for text in given:
        found = _BUDGET.fullmatch(text.replace(",", "").replace(" ", ""))
        period = cast("Period", "" if found is None else found["period"].lower())
        if found is None or period not in PERIODS:
            raise click.UsageError(
                f"--budget {text!r} is not a budget; use 20$/month or 1000000tokens/day ({', '.join(PERIODS)})"
            )
        before = budgets.get(period, Budget())
        if (found["unit"] or "$").lower() == "tokens":
            budgets[period] = msgspec.structs.replace(before, tokens=int(min(float(found["amount"]), 1e18)))
        else:
            budgets[period] = msgspec.structs.replace(before, dollars=float(found["amount"]))
    return budgets
