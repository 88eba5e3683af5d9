"""Opens the store that a configuration names: a SQLite file, a PostgreSQL database, or none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from segue.errors import SettingsError
from segue.gateway.config import read_secret
from segue.gateway.store.postgresql import PostgresqlDatabase
from segue.gateway.store.sqlite import SqliteDatabase
from segue.gateway.store.store import Store


def read_store_name(given: str, environment: Mapping[str, str]) -> str:
    """Return the name of a store; the address of a database has its password, so a variable or a file may have it.

    Raises:
        SettingsError: the variable or the file has none.
    """
    return read_secret(given, environment, key="state.store") if given.startswith(("env:", "file:")) else given


def file_of_store(name: str) -> Path | None:
    """Return the file of a SQLite store; None for any other."""
    return Path(name.removeprefix("sqlite:").removeprefix("//")).expanduser() if name.startswith("sqlite:") else None


def open_store(name: str, *, turns: Path | None = None) -> Store | None:
    """Open a store: `none`, `sqlite:FILE`, or the URL of a PostgreSQL database.

    `turns` is a file by which several processes that write to a SQLite file take turns.

    Raises:
        SettingsError: the name is none of these, the database cannot be opened, or a later version of segue made it.
        MissingExtra: the driver is not installed.
    """
    if name == "none":
        return None
    scheme, _, rest = name.partition(":")
    if scheme == "sqlite" and rest:
        return Store(SqliteDatabase(rest.removeprefix("//") or ":memory:", turns=turns))
    if scheme in ("postgresql", "postgres") and rest.startswith("//"):
        return Store(PostgresqlDatabase(name))
    raise SettingsError(
        f'there is no store {name!r}; use "sqlite:FILE", "postgresql://USER@HOST/NAME" or "none"', key="state.store"
    )
