"""What a store needs of a database: transactions of statements with `?` for each value."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias

Value: TypeAlias = str | int | bytes | None
Row: TypeAlias = tuple[Value, ...]


class Transaction(Protocol):
    """One transaction; it is committed at the end of its block, and rolled back by an exception."""

    def run(self, statement: str, values: Sequence[Value] = ()) -> int:
        """Run a statement; give the number of rows that it changed."""
        ...

    def run_many(self, statement: str, rows: Sequence[Sequence[Value]]) -> None:
        """Run a statement once for each row."""
        ...

    def read(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """Run a query and give all of its rows."""
        ...


class Database(Protocol):
    """A database of one kind. Its methods may be called from several threads."""

    bytes_type: str
    is_local: bool
    """Whether a query takes so little time that an event loop may wait for it."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Begin a transaction that may write."""
        ...

    def query(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """Run one query outside of a transaction."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...


class StoreError(Exception):
    """The database cannot be reached or refuses a statement. Replies go on without their state."""
