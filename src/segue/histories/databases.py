"""Read SQLite databases that anyone may have written: tables only, within limits.

Facts:
- What SQLite finds in a database is code: a view can be an endless query, a generated column any expression, and a
  virtual table any module of the library.                          (SQLite documentation: Defense Against Dark Arts)
- SQLite parses the column `sql` of the schema. It does not compare it with the columns `type` and `name`, which can
  therefore call a view a table.                                    (tried with 3.40.1, 2026-11-18)
- SQLite writes the `sql` of an entry with one of five beginnings, each followed by the name.
                                                                    (SQLite documentation: The Schema Table)
- Pages can be part of several trees, and rows that are shorter than their table get default values: a small file can
  have any number of rows and bytes.                                (SQLite documentation: Database File Format)
- A name in double quotes that is not a column is a text.           (SQLite documentation: Quirks)
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, cast, final

from segue.errors import LoadError
from segue.histories.regular_files import check_database

STEPS: Final = 500_000_000
"""Instructions of SQLite that all questions to one database may take together: some ten seconds."""
MOST_ROWS: Final = 2_000_000
"""Rows of one answer."""
SMALL: Final = 2**26
"""Bytes that one answer may always have; a larger one has at most the size of the database twice."""
_EVERY: Final = 10_000
"""After how many instructions they are counted."""
_LONGEST_CELL: Final = 2**28
_LONGEST_SCHEMA: Final = 2**20
_ENTRY: Final = re.compile(
    r"""CREATE[ ](TABLE|VIEW|VIRTUAL[ ]TABLE|INDEX|UNIQUE[ ]INDEX|TRIGGER)[ ]
    ("(?:[^"]|"")*"|'(?:[^']|'')*'|`(?:[^`]|``)*`|\[[^\]]*\]|[\w$]+)""",
    re.VERBOSE,
)
_NAMED: Final = frozenset({"TABLE", "VIEW", "VIRTUAL TABLE"})
"""What shares one set of names in a schema."""
_SCHEMA: Final = "SELECT name, sql FROM sqlite_master"
_SCHEMA_TABLES: Final = frozenset({"sqlite_master", "sqlite_schema"})
_ROW_NAMES: Final = ("rowid", "_rowid_", "oid")
_VIRTUAL_COLUMN: Final = 2
_ADVICE: Final = "export the session with its own program, and name that file"


@final
class ReadOnlyDatabase:
    """A database of an agent, opened read-only for each question.

    Only its tables are read, and of them only columns with stored values. `data` are its bytes if they are not in a
    file.
    """

    def __init__(self, path: Path, data: bytes | None = None) -> None:
        self._path: Final = path
        self._data: Final = data
        self._left = STEPS
        self._tables: frozenset[str] | None = None
        self._columns: Final[dict[str, tuple[str, ...]]] = {}
        self._orders: Final[dict[str, str]] = {}

    def tables(self) -> frozenset[str]:
        """Return the names of the tables; views and virtual tables are not among them.

        Raises:
            LoadError: the file is not a database that can be read, or its schema is not what SQLite writes.
        """
        if self._tables is None:
            self._tables = self._find_tables()
        return self._tables

    def _find_tables(self) -> frozenset[str]:
        kinds: dict[str, str] = {}
        for row in self._rows(_SCHEMA, (), _SCHEMA_TABLES):
            name, sql = row["name"], row["sql"]
            if sql is None:  # an index that belongs to a constraint
                continue
            found = _ENTRY.match(sql) if isinstance(sql, str) else None
            kind = "" if found is None else found[1]
            if found is None or (kind in _NAMED and (_unquote(found[2]) != name or name in kinds)):
                raise LoadError(f"{self._path}: the schema of the database is damaged; {_ADVICE}")
            if kind in _NAMED:
                kinds[cast("str", name)] = kind
        return frozenset(name for name, kind in kinds.items() if kind == "TABLE")

    def columns(self, table: str) -> frozenset[str]:
        """Return the names of the columns of a table, without computed ones; none if there is no such table.

        Raises:
            LoadError: the file is not a database that can be read.
        """
        return frozenset(self._stored_columns(table)) if table in self.tables() else frozenset()

    def _stored_columns(self, table: str) -> tuple[str, ...]:
        found = self._columns.get(table)
        if found is None:
            question = f"PRAGMA table_xinfo({_quote(table)})"
            rows = self._rows(question, (), frozenset({table}))
            found = tuple(cast("str", row["name"]) for row in rows if row["hidden"] != _VIRTUAL_COLUMN)
            self._columns[table] = found
            # A column, also a computed one, can have one of these names, and then means something else.
            taken = {cast("str", row["name"]).lower() for row in rows}
            self._orders[table] = next((name for name in _ROW_NAMES if name not in taken), "1")
        return found

    def rows(self, table: str, **equal: object) -> Iterator[Mapping[str, object]]:
        """Yield the rows of a table whose columns have these values, in the order in which they were inserted.

        No row has a value of a column that is not there.

        Raises:
            LoadError: there is no such table, or reading it takes more than the limits allow.
        """
        columns = self._columns_of(table)
        if not columns or not set(equal) <= set(columns):
            return
        where = " AND ".join(f"{_quote(column)} = ?" for column in equal)
        clause = f" WHERE {where}" if where else ""
        names = ", ".join(map(_quote, columns))
        question = f"SELECT {names} FROM {_quote(table)}{clause} ORDER BY {self._orders[table]}"  # noqa: S608 - quoted names
        yield from self._rows(question, tuple(equal.values()), frozenset({table}))

    def column(self, table: str, name: str) -> Iterator[object]:
        """Yield the different values of one column of a table.

        Raises:
            LoadError: there is no such table or column, or reading it takes more than the limits allow.
        """
        if name not in self._columns_of(table):
            raise LoadError(f"{self._path}: the table {table} of the database has no column {name}")
        question = f"SELECT DISTINCT {_quote(name)} AS value FROM {_quote(table)}"  # noqa: S608 - quoted names
        for row in self._rows(question, (), frozenset({table})):
            yield row["value"]

    def _columns_of(self, table: str) -> tuple[str, ...]:
        if table not in self.tables():
            raise LoadError(f"{self._path}: the database has no table {table}; views are not read")
        return self._stored_columns(table)

    def _rows(
        self, question: str, values: tuple[object, ...], tables: frozenset[str]
    ) -> Sequence[Mapping[str, object]]:
        try:
            size = check_database(self._path.resolve()) if self._data is None else len(self._data)
            with closing(self._connect()) as connection:
                self._restrict(connection, tables)
                cursor = connection.execute(question, cast("tuple[str, ...]", values))
                names = [cast("str", column[0]) for column in cursor.description or ()]
                return self._within_limits(cursor, names, max(SMALL, 2 * size))
        except sqlite3.Error as error:
            reason = "reading it takes too long" if self._left <= 0 else str(error)
            raise LoadError(f"{self._path}: cannot read the database: {reason}; {_ADVICE}") from error
        except (OSError, ValueError, RuntimeError) as error:
            raise LoadError(f"{self._path}: cannot read the database: {error}") from error

    def _connect(self) -> sqlite3.Connection:
        if self._data is None:
            return sqlite3.connect(f"{self._path.resolve().as_uri()}?mode=ro", uri=True)
        connection = sqlite3.connect(":memory:")
        connection.deserialize(self._data)
        return connection

    def _restrict(self, connection: sqlite3.Connection, tables: frozenset[str]) -> None:
        """Allow one plain question to one table, a number of instructions, and cells of a certain size."""
        for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0", "query_only = ON"):
            connection.execute(f"PRAGMA {pragma}").close()
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_CELL)
        connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _LONGEST_SCHEMA)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        selects = 0

        def authorize(action: int, first: str | None, _: str | None, __: str | None, inner: str | None) -> int:
            nonlocal selects
            if inner is not None:  # a view or a trigger asks
                return sqlite3.SQLITE_DENY
            if action == sqlite3.SQLITE_SELECT:
                selects += 1
                return sqlite3.SQLITE_OK if selects == 1 else sqlite3.SQLITE_DENY
            if action == sqlite3.SQLITE_READ:
                return sqlite3.SQLITE_OK if first in tables else sqlite3.SQLITE_DENY
            if action == sqlite3.SQLITE_PRAGMA and first == "table_xinfo":
                return sqlite3.SQLITE_OK
            return sqlite3.SQLITE_DENY

        def count() -> int:
            self._left -= _EVERY
            return self._left <= 0

        connection.set_authorizer(authorize)
        connection.set_progress_handler(count, _EVERY)

    def _within_limits(
        self, cursor: sqlite3.Cursor, names: Sequence[str], most_bytes: int
    ) -> Sequence[Mapping[str, object]]:
        found: list[Mapping[str, object]] = []
        size = 0
        for row in cast("Iterator[tuple[object, ...]]", cursor):
            for value in row:
                if isinstance(value, (str, bytes)):
                    size += len(value)
            if size > most_bytes or len(found) >= MOST_ROWS:
                raise LoadError(
                    f"{self._path}: an answer of the database has more than {most_bytes} bytes or {MOST_ROWS} rows;"
                    f" {_ADVICE}"
                )
            found.append(dict(zip(names, row, strict=True)))
        return found


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _unquote(token: str) -> str:
    mark = token[0]
    if mark == "[":
        return token[1:-1]
    return token[1:-1].replace(mark * 2, mark) if mark in "\"'`" else token
