"""SQLite: the default store, one file in write-ahead mode.

Facts this file relies on:
- In write-ahead mode readers do not wait for a writer, and `synchronous=normal` loses nothing when the process is
  killed, only when the machine loses power.                                               (SQLite documentation: WAL)
- The files beside the database (`-wal`, `-shm`) are created with the permissions of the database itself.
                                                                                (os_unix.c, findCreateFileMode)
- A commit that fails (a full disk) may leave the transaction open, or may have rolled it back.
                                                                                 (SQLite documentation: transactions)
- An insert takes 84 us, a lookup 30 us of CPU.                                                  (measured 2026-11)
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, cast, final

from segue.errors import SettingsError
from segue.gateway.store.database import (
    Row,
    StoreAway,
    StoreBusy,
    StoreError,
    StoreNotWritable,
    Value,
    clean_values,
)
from segue.gateway.store.private_files import make_private_file, make_private_folder, narrow

_BUSY_SECONDS: Final = 1.0
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
_REFUSED: Final = (TypeError, ValueError, OverflowError)
"""What the driver raises for values that it cannot pass on."""


@final
class SqliteDatabase:
    """A SQLite file; each thread has its own connection."""

    bytes_type: str = "blob"
    is_local: bool = True

    def __init__(self, path: str) -> None:
        self._path = path
        self._local = threading.local()
        self._lock = threading.Lock()
        self._idle = threading.Condition()
        self._running = 0
        self._opened: list[sqlite3.Connection] = []
        if path != ":memory:":
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
            self._connect()
        except sqlite3.Error as error:
            raise SettingsError(
                f"the store {path} cannot be opened: {error}; choose another file", key="state.store"
            ) from error

    def __repr__(self) -> str:
        return f"SqliteDatabase({self._path!r})"

    def _connect(self) -> sqlite3.Connection:
        found = cast("sqlite3.Connection | None", getattr(self._local, "connection", None))
        if found is None:
            name = self._path if self._path == ":memory:" else str(Path(self._path).expanduser())
            found = sqlite3.connect(name, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            found.execute("pragma journal_mode=wal")
            found.execute("pragma synchronous=normal")
            found.execute("pragma foreign_keys=on")
            self._local.connection = found
            with self._lock:
                self._opened.append(found)
        return found

    @contextmanager
    def _used(self) -> Generator[sqlite3.Connection]:
        """Give the connection of this thread; it is not closed meanwhile."""
        with self._idle:
            self._running += 1
        try:
            yield self._connect()
        except (sqlite3.Error, *_REFUSED) as error:
            raise _explain(error) from error
        finally:
            with self._idle:
                self._running -= 1
                self._idle.notify_all()

    @contextmanager
    def transaction(self) -> Generator[_SqliteTransaction]:
        """Begin a transaction that may write."""
        with self._used() as connection:
            connection.execute("begin immediate")
            try:
                yield _SqliteTransaction(connection)
                connection.execute("commit")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("rollback")
                raise

    def query(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """Run one query outside of a transaction."""
        with self._used() as connection:
            return _SqliteTransaction(connection).read(statement, values)

    def compact(self) -> None:
        """Give the space of deleted rows back to the disk."""
        with self._used() as connection:
            connection.execute("vacuum")
            connection.execute("pragma wal_checkpoint(truncate)")

    def close(self) -> None:
        """Close the connections of all threads, when their statements have ended."""
        with self._idle:
            if not self._idle.wait_for(lambda: not self._running, _CLOSE_SECONDS):
                return  # the process ends soon, and the file is whole without it
            for connection in self._opened:
                connection.close()
            self._opened.clear()
            self._local = threading.local()


def _explain(error: Exception) -> StoreError:
    code = getattr(error, "sqlite_errorcode", None)
    kind = _KINDS.get(code & 0xFF, StoreError) if isinstance(code, int) else StoreError
    return kind(f"{type(error).__name__}: {error}" if not isinstance(error, sqlite3.Error) else str(error))


@final
class _SqliteTransaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, statement: str, values: Sequence[Value] = ()) -> int:
        return self._connection.execute(statement, clean_values(values)).rowcount

    def run_many(self, statement: str, rows: Sequence[Sequence[Value]]) -> None:
        self._connection.executemany(statement, [clean_values(row) for row in rows])

    def read(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        return cast("list[Row]", self._connection.execute(statement, clean_values(values)).fetchall())
