"""What a store needs of a database: transactions of statements with `?` for each value, and errors by their cause."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from typing import Protocol, TypeAlias

Value: TypeAlias = str | int | bytes | None
Row: TypeAlias = tuple[Value, ...]


class Transaction(Protocol):
    """One transaction; it is committed at the end of its block, and rolled back by an exception."""

    def run(self, statement: str, values: Sequence[Value] = ()) -> int:
        """Run a statement; return the number of rows that it changed."""
        ...

    def run_many(self, statement: str, rows: Sequence[Sequence[Value]]) -> int:
        """Run a statement once for each row; return the number of rows that were changed in all."""
        ...

    def run_numbers(self, statement: str, rows: Sequence[Sequence[int]]) -> None:
        """Run a statement once for each row of integers of 64 bits: there is no text that has to be clean."""
        ...

    def read(self, statement: str, values: Sequence[Value] = ()) -> list[Row]:
        """Run a query and give all of its rows."""
        ...


class Database(Protocol):
    """A database of one kind. Its methods may be called from several threads and raise `StoreError` alone."""

    is_local: bool
    """Whether a query takes so little time that an event loop may wait for it."""

    def transaction(self, *, waits: bool = True) -> AbstractContextManager[Transaction]:
        """Begin a transaction that may write; without `waits`, one that fails at once where another is in the way."""
        ...

    def query(self, statement: str, values: Sequence[Value] = (), *, numbers: Sequence[int] = ()) -> list[Row]:
        """Run one query outside of a transaction; `numbers` are integers of 64 bits that come before the values."""
        ...

    def checkpoint(self) -> None:
        """Move what was written from a log into the database, where transactions that do not wait leave that."""
        ...

    def compact(self) -> None:
        """Return the space of deleted rows to the disk, where the database does not do so itself."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...


class StoreError(Exception):
    """The database refuses a statement or its values; another try has the same result."""


class StoreBusy(StoreError):
    """Another transaction was in the way (a lock, a deadlock); the next try may succeed."""


class StoreAway(StoreError):
    """The database cannot be reached, or the connection to it broke."""


class StoreNotWritable(StoreError):
    """The database can be read and takes no writes: the disk is full, or it is read-only."""


def clean_values(values: Sequence[Value]) -> Sequence[Value]:
    """Return values that every database can store. All texts of all statements pass through here or `clean_rows`.

    PostgreSQL has no null character in a text, and neither database has half a surrogate. They are replaced, and a
    digest of the original follows, so that two different ids stay different. A driver refuses an integer that has more
    than 64 bits.
    """
    texts = "".join([value for value in values if isinstance(value, str)])  # one look at all of them
    return values if texts.isascii() and "\x00" not in texts else [_clean(value) for value in values]


def clean_rows(rows: Sequence[Sequence[Value]]) -> Iterable[Sequence[Value]]:
    """Return rows of such values."""
    texts = "".join([value for row in rows for value in row if isinstance(value, str)])
    return rows if texts.isascii() and "\x00" not in texts else map(clean_values, rows)


def clean_text(text: str) -> str:
    """Return a text as `clean_values` does."""
    return str(_clean(text))


def _clean(value: Value) -> Value:
    if not isinstance(value, str) or ("\x00" not in value and _is_unicode(value)):
        return value
    digest = sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return value.replace("\x00", "\ufffd").encode("utf-8", "replace").decode() + "~" + digest


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
