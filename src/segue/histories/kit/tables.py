"""A database in memory: for samples and tests of formats that are read from one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
