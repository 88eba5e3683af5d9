"""Databases in memory: for samples and tests of formats that are read from one, and to write one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class MemoryDatabase:
    """Tables by name, each a list of rows."""

    content: Mapping[str, Sequence[Mapping[str, object]]]

    def tables(self) -> frozenset[str]:
        """Return the names of the tables."""
        return frozenset(self.content)

    def columns(self, table: str) -> frozenset[str]:
        """Return the names of the columns of a table, as its first row has them."""
        return frozenset(name for row in self.content.get(table, ())[:1] for name in row)

    def column(self, table: str, name: str) -> Iterator[object]:
        """Yield the different values of one column of a table."""
        seen: list[object] = []
        for row in self.content.get(table, ()):
            if row.get(name) not in seen:
                seen.append(row.get(name))
                yield row.get(name)

    def rows(self, table: str, **equal: object) -> Iterator[Mapping[str, object]]:
        """Yield the rows of a table whose columns have these values."""
        for row in self.content.get(table, ()):
            if all(row.get(name) == value for name, value in equal.items()):
                yield row


def make_database(schema: str, tables: Mapping[str, Sequence[Mapping[str, object]]], rules: str) -> bytes:
    """Return the bytes of an SQLite database: its tables, their rows, then triggers and indexes."""
    import sqlite3  # formats are loaded to be listed, too

    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema)
        for table, rows in tables.items():
            for row in rows:
                names, marks = ", ".join(row), ", ".join("?" * len(row))
                values = tuple(_storable(value) for value in row.values())
                connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", values)  # noqa: S608 - own names
        connection.executescript(rules)
        return connection.serialize()


def _storable(value: object) -> str | int | float | bytes | None:
    """Return a value as SQLite takes it; half a surrogate pair is replaced, a number that is too large is a text."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return str(value)
    return value if isinstance(value, (int, float, bytes)) else None
