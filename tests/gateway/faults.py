"""A database that fails on request: faults are injected between a store and its real database."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from segue.gateway.store.database import Database, Row, StoreBusy, StoreError, Transaction, Value


class FaultyDatabase:
    """Passes everything on, unless a fault is set.

    - `failure`: every call raises it; `write_failure`: every transaction does.
    - `busy`: so many of the next transactions end in a deadlock.
    - `poison`: a statement with this value is refused.
    """

    def __init__(self, inner: Database) -> None:
        self.inner = inner
        self.is_local = inner.is_local
        self.failure: StoreError | None = None
        self.write_failure: StoreError | None = None
        self.busy = 0
        self.poison: Value = None
        self.calls = 0
        self.written: list[tuple[str, list[Sequence[Value]]]] = []

    @contextmanager
    def transaction(self, *, waits: bool = True) -> Generator[Transaction]:
        self.calls += 1
        if (failure := self.failure or self.write_failure) is not None:
            raise failure
        if self.busy:
            self.busy -= 1
            raise StoreBusy("deadlock detected")
        with self.inner.transaction(waits=waits) as transaction:
            yield _Faulty(self, transaction)

    def query(self, statement: str, values: Sequence[Value] = (), *, numbers: Sequence[int] = ()) -> list[Row]:
        self.calls += 1
        if self.failure is not None:
            raise self.failure
        return self.inner.query(statement, values, numbers=numbers)

    def checkpoint(self) -> None:
        self.inner.checkpoint()

    def compact(self) -> None:
        self.inner.compact()

    def close(self) -> None:
        self.inner.close()


class _Faulty:
    def __init__(self, database: FaultyDatabase, inner: Transaction) -> None:
        self._database = database
        self._inner = inner

    def run(self, statement: str, values: Sequence[Value] = ()) -> int:
        return self._inner.run(statement, values)

    def run_many(self, statement: str, rows: Sequence[Sequence[Value]]) -> int:
        self._database.written.append((statement, list(rows)))
        if self._database.poison is not None and any(self._database.poison in row for row in rows):
            raise StoreError("this value is refused")
        return self._inner.run_many(statement, rows)

    def run_numbers(self, statement: str, rows: Sequence[Sequence[int]]) -> None:
        self._database.written.append((statement, list(rows)))
        self._inner.run_numbers(statement, rows)

    def read(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        return self._inner.read(statement, values)
