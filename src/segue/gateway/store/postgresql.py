"""PostgreSQL: the store of several gateways behind a load balancer, through psycopg and its connection pool."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, cast, final

from segue.errors import MissingExtra, SettingsError
from segue.gateway.store.database import Row, StoreError, Value

if TYPE_CHECKING:
    import psycopg
    import psycopg_pool

_CONNECTIONS: Final = 8
_CONNECT_SECONDS: Final = 5.0


@final
class PostgresqlDatabase:
    """A PostgreSQL database by its URL. The repr has no password."""

    bytes_type: str = "bytea"
    is_local: bool = False

    def __init__(self, url: str) -> None:
        try:
            import psycopg
            import psycopg_pool
        except ModuleNotFoundError as error:
            raise MissingExtra(
                "a store in PostgreSQL needs psycopg, which is not installed", extra="postgres"
            ) from error
        self._errors: tuple[type[Exception], ...] = (psycopg.Error, psycopg_pool.PoolTimeout, psycopg_pool.PoolClosed)
        self._pool: psycopg_pool.ConnectionPool[Any] = psycopg_pool.ConnectionPool(
            url, min_size=1, max_size=_CONNECTIONS, open=False, timeout=_CONNECT_SECONDS, kwargs={"autocommit": True}
        )
        try:
            self._pool.open(wait=True, timeout=_CONNECT_SECONDS)
        except self._errors as error:
            self._pool.close()
            text = "the PostgreSQL store cannot be reached; check the host, the user and the password of state.store"
            raise SettingsError(text, key="state.store") from error

    def __repr__(self) -> str:
        return "PostgresqlDatabase()"

    @contextmanager
    def transaction(self) -> Generator[_PostgresqlTransaction]:
        """Begin a transaction that may write."""
        try:
            with self._pool.connection() as connection, connection.transaction(), connection.cursor() as cursor:
                yield _PostgresqlTransaction(cursor)
        except self._errors as error:
            raise StoreError(_explain(error)) from error

    def query(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """Run one query outside of a transaction."""
        try:
            with self._pool.connection() as connection, connection.cursor() as cursor:
                return _PostgresqlTransaction(cursor).read(statement, values)
        except self._errors as error:
            raise StoreError(_explain(error)) from error

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


def _explain(error: Exception) -> str:
    """Describe an error by its first line: later lines may have values of the statement."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


@final
class _PostgresqlTransaction:
    def __init__(self, cursor: psycopg.Cursor[Any]) -> None:
        self._cursor = cursor

    def run(self, statement: str, values: Sequence[Value] = ()) -> int:
        self._cursor.execute(_placed(statement), values)
        return self._cursor.rowcount

    def run_many(self, statement: str, rows: Sequence[Sequence[Value]]) -> None:
        self._cursor.executemany(_placed(statement), rows)

    def read(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        self._cursor.execute(_placed(statement), values)
        return cast("list[Row]", self._cursor.fetchall())


def _placed(statement: str) -> bytes:
    """Write the statement with psycopg's marks for values; no statement of a store has a question mark of its own."""
    return statement.replace("?", "%s").encode()
