"""Backups of a SQLite store: whole at any time, also while a gateway writes.

Facts:
- The online backup API copies a consistent state; a writer of another process restarts the copy, and all pages at once
  are copied under one read transaction.                                        (SQLite documentation: backup API)
- In write-ahead mode the files `-wal` and `-shm` belong to their database: next to another one they would corrupt it.
                                                                               (SQLite documentation: howtocorrupt)
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from segue.errors import SettingsError
from segue.gateway.store.private_files import make_private_file, make_private_folder
from segue.gateway.store.schema import MIGRATIONS, VERSION_NAME


def back_up(source: Path, target: Path) -> None:
    """Copy a store to a file, which only its owner can read; the file is replaced when the copy is complete.

    Raises:
        SettingsError: there is no store, it is not whole, or the file cannot be written.
    """
    if not source.exists():
        raise SettingsError(f"there is no store {source}; check state.store", key="state.store")
    _copy(source, target)


def restore_file(backup: Path, target: Path) -> None:
    """Make a store from a backup; one that is not whole, or of a later version, changes nothing.

    Raises:
        SettingsError: the backup cannot be used, or the store cannot be written.
    """
    _copy(backup, target)
    for ending in ("-wal", "-shm"):  # of the store that was replaced
        target.with_name(target.name + ending).unlink(missing_ok=True)


def _copy(source: Path, target: Path) -> None:
    new = target.with_name(f"{target.name}.{os.getpid()}.new")
    try:
        make_private_folder(target.absolute().parent)
        make_private_file(new)
        with closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as read:
            _check(read, source)
            with closing(sqlite3.connect(new)) as written:
                read.backup(written)
                written.execute("pragma journal_mode=delete")  # one file, with nothing next to it
                _check(written, source)
        handle = os.open(new, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        new.replace(target)
    except (OSError, sqlite3.Error) as error:
        raise SettingsError(f"{source} cannot be copied to {target}: {error}", key="state.store") from error
    finally:
        with suppress(OSError):
            new.unlink()


def _check(database: sqlite3.Connection, source: Path) -> None:
    """Refuse a file that is not a store of this version or an earlier one, or that is damaged."""
    found = database.execute("pragma quick_check(1)").fetchone()
    if found != ("ok",):
        raise SettingsError(f"{source} is damaged: {found[0]}; use another backup", key="state.store")
    try:
        row = database.execute("select value from meta where name = ?", (VERSION_NAME,)).fetchone()
    except sqlite3.OperationalError:
        row = None
    if row is None:
        raise SettingsError(f"{source} is not a store of segue; check the path", key="state.store")
    if int(row[0]) > len(MIGRATIONS):
        raise SettingsError(f"{source} is of a later version of segue; upgrade segue first", key="state.store")
