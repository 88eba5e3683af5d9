"""PostgreSQL: the store of several gateways behind a load balancer, through psycopg.

Facts:
- Classes of SQLSTATE: 08 connection, 40 rollback (deadlock, serialization), 53 resources, 57 operator intervention, 58
  system error. An error without a state comes from the client's side of a connection.  (PostgreSQL 15, appendix A)
- A server that restarts breaks every connection, and each is known to be broken only when it is used. So the
  connections of a broken one are dropped together, and the next try makes a new one. psycopg's own pool waits longer
  and longer between its tries, and is not used for that reason.                         (psycopg_pool 3.3, 2026-11)
- The smallest `connect_timeout` of libpq is two seconds.                                  (libpq documentation)
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast, final

from segue.errors import MissingExtra, SettingsError
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

if TYPE_CHECKING:
    import psycopg

    _Connection: TypeAlias = psycopg.Connection[Any]

_MOST_IDLE: Final = 8
_CONNECTION: Final[Mapping[str, str | int]] = {
    "connect_timeout": 2,
    # A network that drops packets ends a connection after some seconds, not after hours.
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 2,
    "tcp_user_timeout": 5000,
    "application_name": "segue",
}
"""Parameters of a connection, unless the URL has them."""
_KINDS: Final[Mapping[str, type[StoreError]]] = {
    "08": StoreAway,
    "40": StoreBusy,
    "57": StoreAway,
    "58": StoreAway,
    "25006": StoreNotWritable,  # read-only, after a failover
    "53100": StoreNotWritable,  # the disk is full
    "53300": StoreAway,  # too many connections
    "53400": StoreAway,
    "55P03": StoreBusy,  # a lock
    "57014": StoreBusy,  # a statement that took too long
}
"""What an SQLSTATE or its class means; all others are about the statement or its values."""


@final
class PostgresqlDatabase:
    """A PostgreSQL database by its URL. The repr has no password."""

    is_local: bool = False

    def __init__(self, url: str) -> None:
        try:
            import psycopg
            from psycopg.conninfo import conninfo_to_dict
        except ModuleNotFoundError as error:
            raise MissingExtra(
                "a store in PostgreSQL needs psycopg, which is not installed", extra="postgres"
            ) from error
        self._errors: tuple[type[Exception], ...] = (psycopg.Error, TypeError, ValueError, OverflowError)
        self._connection_type: type[_Connection] = psycopg.Connection
        self._url = url
        self._lock = threading.Lock()
        self._idle: list[_Connection] = []
        self._is_closed = False
        try:
            given = conninfo_to_dict(url)
            self._parameters = {name: value for name, value in _CONNECTION.items() if name not in given}
            self._give_back(self._connect())
        except psycopg.Error as error:
            text = "the PostgreSQL store cannot be reached; check the host, the user and the password of state.store"
            raise SettingsError(text, key="state.store") from error

    def __repr__(self) -> str:
        return "PostgresqlDatabase()"

    # -- connections ---------------------------------------------------------------------------------------------------

    def _connect(self) -> _Connection:
        return self._connection_type.connect(self._url, autocommit=True, **cast("Any", self._parameters))

    def _take(self) -> _Connection:
        """Take the connection that was used last, or make a new one."""
        with self._lock:
            if self._is_closed:
                raise StoreAway("the store is closed")
            if self._idle:
                return self._idle.pop()
        return self._connect()

    def _give_back(self, connection: _Connection) -> None:
        unused: list[_Connection] = []
        with self._lock:
            if connection.closed:
                # Whatever ended this connection has most likely ended the others.
                unused, self._idle = self._idle, []
            elif self._is_closed or len(self._idle) >= _MOST_IDLE:
                unused = [connection]
            else:
                self._idle.append(connection)
        for each in unused:
            each.close()

    @contextmanager
    def _connection(self) -> Generator[_Connection]:
        connection: _Connection | None = None
        try:
            connection = self._take()
            yield connection
        except self._errors as error:
            raise _explain(error, is_lost=connection is None or connection.closed) from error
        finally:
            if connection is not None:
                self._give_back(connection)

    # -- statements ----------------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self, *, waits: bool = True) -> Generator[_PostgresqlTransaction]:  # noqa: ARG002
        """Begin a transaction that may write; the server decides how long it waits."""
        with self._connection() as connection, connection.transaction(), connection.cursor() as cursor:
            yield _PostgresqlTransaction(cursor)

    def query(self, statement: str, values: Sequence[Value] = (), *, numbers: Sequence[int] = ()) -> list[Row]:
        """Run one query outside of a transaction; `numbers` come before the values."""
        with self._connection() as connection, connection.cursor() as cursor:
            return _PostgresqlTransaction(cursor).read(statement, (*numbers, *values))

    def checkpoint(self) -> None:
        """Do nothing: the server does it."""

    def compact(self) -> None:
        """Do nothing: the server's own autovacuum does it."""

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            self._is_closed = True
            unused, self._idle = self._idle, []
        for each in unused:
            each.close()


def _explain(error: Exception, *, is_lost: bool) -> StoreError:
    """Describe an error by its first line: later lines may have values of the statement."""
    state = str(getattr(error, "sqlstate", None) or "")
    kind = StoreAway if is_lost else _KINDS.get(state) or _KINDS.get(state[:2], StoreError)
    return kind(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")


@final
class _PostgresqlTransaction:
    def __init__(self, cursor: psycopg.Cursor[Any]) -> None:
        self._cursor = cursor

    def run(self, statement: str, values: Sequence[Value] = ()) -> int:
        self._cursor.execute(_placed(statement), clean_values(values))
        return self._cursor.rowcount

    def run_many(self, statement: str, rows: Sequence[Sequence[Value]]) -> int:
        self._cursor.executemany(_placed(statement), clean_rows(rows))
        return self._cursor.rowcount

    def run_numbers(self, statement: str, rows: Sequence[Sequence[int]]) -> None:
        self._cursor.executemany(_placed(statement), rows)

    def read(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        self._cursor.execute(_placed(statement), clean_values(values))
        return cast("list[Row]", self._cursor.fetchall())


def _placed(statement: str) -> bytes:
    """Write the statement with psycopg's marks for values; no statement of a store has its own question mark."""
    return statement.replace("?", "%s").encode()
