"""SQLite: the default store, one file in write-ahead mode.

Facts:
- In write-ahead mode readers do not wait for a writer, and `synchronous=normal` loses nothing when the process is
  killed, only when the machine loses power.                                               (SQLite documentation: WAL)
- The files next to the database (`-wal`, `-shm`) are created with the permissions of the database itself.
                                                                                (os_unix.c, findCreateFileMode)
- A commit that fails (a full disk) may leave the transaction open, or may have rolled it back.
                                                                                 (SQLite documentation: transactions)
- A program that finds the database locked sleeps, up to 100 ms between two tries, and any other may come before it: of
  two gateways that wrote all the time, one did 8 to 14 % of the work. Workers of one gateway take turns by the lock of
  another file, which they try more often.                      (main.c, sqliteDefaultBusyCallback; measured 2026-11-18)
- A state takes 130 us, with 15 others 70 us, a look-up 45 us of CPU.                         (measured 2026-11)
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Self, final

from segue.errors import SettingsError
from segue.gateway.store.database import (
    Row,
    StoreAway,
    StoreBusy,
    StoreError,
    StoreNotWritable,
    Value,
    clean_rows,
    clean_values,
)
from segue.gateway.store.private_files import make_private_file, make_private_folder, narrow
from segue.gateway.store.turns import end_turn, take_turn

_BUSY_SECONDS: Final = 1.0
_IN_MEMORY: Final = ":memory:"
_CLOSE_SECONDS: Final = 5.0
"""How long closing waits for statements of other threads; a connection that is in use cannot be closed safely."""
_KINDS: Final[Mapping[int, type[StoreError]]] = {
    sqlite3.SQLITE_BUSY: StoreBusy,
    sqlite3.SQLITE_LOCKED: StoreBusy,
    sqlite3.SQLITE_PROTOCOL: StoreBusy,
    sqlite3.SQLITE_FULL: StoreNotWritable,
    sqlite3.SQLITE_READONLY: StoreNotWritable,
    sqlite3.SQLITE_IOERR: StoreNotWritable,
    sqlite3.SQLITE_CANTOPEN: StoreAway,
    sqlite3.SQLITE_CORRUPT: StoreAway,
    sqlite3.SQLITE_NOTADB: StoreAway,
}
"""What a result code means; all others are about the statement or its values."""
_FAILURES: Final = (sqlite3.Error, TypeError, ValueError, OverflowError)
"""Also what the driver raises for values that it cannot pass on."""


@final
class _Connection(NamedTuple):
    """The connection of a thread, and the lock that the thread holds while it uses it: then it is not closed."""

    connection: sqlite3.Connection
    lock: threading.RLock
    turns: int | None = None
    """The file by which processes take turns: each thread has its own, because a lock belongs to an open file."""


@final
class SqliteDatabase:
    """A SQLite file; each thread has its own connection."""

    is_local: bool = True

    def __init__(self, path: str, *, turns: Path | None = None) -> None:
        self._path = path
        self._turns = turns
        self._local = threading.local()
        self._lock = threading.Lock()
        self._opened: list[_Connection] = []
        if path != _IN_MEMORY:
            try:
                file = Path(path).expanduser()
                make_private_folder(file.parent)
                make_private_file(file)
                for ending in ("-wal", "-shm"):
                    narrow(file.with_name(file.name + ending))
            except OSError as error:
                raise SettingsError(
                    f"the store {path} cannot be opened: {error.strerror}; choose another file", key="state.store"
                ) from error
        try:
            self.connect()
        except sqlite3.Error as error:
            raise SettingsError(
                f"the store {path} cannot be opened: {error}; choose another file", key="state.store"
            ) from error

    def __repr__(self) -> str:
        return f"SqliteDatabase({self._path!r})"

    def connect(self, *, waits: bool = True) -> _Connection:
        """Return the connection of this thread; without `waits`, one that does not wait for locks."""
        place = "connection" if waits or self._path == _IN_MEMORY else "impatient"
        found: _Connection | None = getattr(self._local, place, None)
        if found is None:
            name = self._path if self._path == _IN_MEMORY else str(Path(self._path).expanduser())
            patience = _BUSY_SECONDS if waits else 0.0
            opened = sqlite3.connect(name, timeout=patience, isolation_level=None, check_same_thread=False)
            opened.execute("pragma journal_mode=wal")
            opened.execute("pragma synchronous=normal")
            opened.execute("pragma foreign_keys=on")
            if not waits:
                opened.execute("pragma wal_autocheckpoint=0")  # it waits for the disk: another thread does it
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC if self._turns is not None else 0
            turns = None if self._turns is None else os.open(self._turns, flags, 0o600)
            found = _Connection(opened, threading.RLock(), turns)
            setattr(self._local, place, found)
            with self._lock:
                self._opened.append(found)
        return found

    def transaction(self, *, waits: bool = True) -> _SqliteTransaction:
        """Begin a transaction that may write; without `waits`, one that fails at once where another is in the way."""
        return _SqliteTransaction(self, waits=waits)

    def query(self, statement: str, values: Sequence[Value] = (), *, numbers: Sequence[int] = ()) -> list[Row]:
        """Run one query outside of a transaction; `numbers` come before the values."""
        try:
            connection, lock, _ = self.connect()
            with lock:
                return connection.execute(statement, (*numbers, *clean_values(values))).fetchall()
        except _FAILURES as error:
            raise _explain(error) from error

    def checkpoint(self) -> None:
        """Move what was written from the log into the database; transactions go on meanwhile."""
        self.query("pragma wal_checkpoint(passive)")

    def compact(self) -> None:
        """Return the space of deleted rows to the disk."""
        self.query("vacuum")
        self.query("pragma wal_checkpoint(truncate)")

    def close(self) -> None:
        """Close the connections of all threads, when their statements have ended."""
        until = time.monotonic() + _CLOSE_SECONDS
        with self._lock:
            for connection, lock, turns in self._opened:
                if not lock.acquire(timeout=max(0.0, until - time.monotonic())):
                    return  # the process ends soon, and the file is whole without it
                connection.close()
                if turns is not None:
                    os.close(turns)
                lock.release()
            self._opened.clear()
            self._local = threading.local()


def _explain(error: Exception) -> StoreError:
    code = getattr(error, "sqlite_errorcode", None)
    kind = _KINDS.get(code & 0xFF, StoreError) if isinstance(code, int) else StoreError
    return kind(f"{type(error).__name__}: {error}" if not isinstance(error, sqlite3.Error) else str(error))


@final
class _SqliteTransaction:
    """No generator, and one lock: every reply that has a state waits for such a transaction."""

    def __init__(self, database: SqliteDatabase, *, waits: bool) -> None:
        self._database = database
        self._waits = waits

    def __enter__(self) -> Self:
        try:
            self._connection, self._lock, self._turns = self._database.connect(waits=self._waits)
            self._lock.acquire()
            try:
                if self._turns is not None:
                    take_turn(self._turns, waits=self._waits)
                self._connection.execute("begin immediate")
            except BaseException:
                self._end()
                raise
        except _FAILURES as error:
            raise _explain(error) from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        try:
            if error is None:
                self._connection.execute("commit")
                return
        except _FAILURES as failure:
            error = failure
        finally:
            try:
                if self._connection.in_transaction:
                    self._connection.execute("rollback")
            except _FAILURES as failure:
                error = failure
            finally:
                self._end()
        if isinstance(error, _FAILURES):
            raise _explain(error) from error

    def _end(self) -> None:
        if self._turns is not None:
            end_turn(self._turns)
        self._lock.release()

    def run(self, statement: str, values: Sequence[Value] = ()) -> int:
        return self._connection.execute(statement, clean_values(values)).rowcount

    def run_many(self, statement: str, rows: Sequence[Sequence[Value]]) -> int:
        return self._connection.executemany(statement, clean_rows(rows)).rowcount

    def run_numbers(self, statement: str, rows: Sequence[Sequence[int]]) -> None:
        self._connection.executemany(statement, rows)

    def read(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        return self._connection.execute(statement, clean_values(values)).fetchall()
