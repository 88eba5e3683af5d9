"""Databases that nobody's agent wrote: only stored values of tables are read, within limits, for every format."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from segue import LoadError, SegueError, find_sessions, read_history
from segue.histories import databases
from segue.histories.api import list_source
from segue.histories.databases import ReadOnlyDatabase
from segue.histories.forms import FORMS
from segue.histories.registry import FORMATS

READERS = sorted(name for name in FORMATS if any(form.where == "database" for form in FORMS.get(name, ())))
COLUMNS = ("id", "session_id", "data", "parts", "content_json", "key", "value", "thread_id", "title", "updated_at")
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT {columns} FROM n"
STEPS = 2_000_000


def tables_of(name: str) -> list[dict[str, tuple[str, ...]]]:
    """Give the tables that a reader looks for, one mapping for each form, each with the columns that readers use."""
    found = []
    for form in FORMS[name]:
        if form.where == "database":
            signs = [sign.partition(".") for sign in form.needs if not sign.startswith("!")]
            tables: dict[str, tuple[str, ...]] = {}
            for table, _, column in signs:
                known = tables.get(table, COLUMNS)
                tables[table] = known if not column or column in known else (*known, column)
            found.append(tables)
    return found


def endless_views(database: sqlite3.Connection, tables: dict[str, tuple[str, ...]]) -> None:
    for table, columns in tables.items():
        values = ", ".join(f"x AS {column}" for column in columns)
        database.execute(f"CREATE VIEW {table} AS {ENDLESS.format(columns=values)}")


def disguised_views(database: sqlite3.Connection, tables: dict[str, tuple[str, ...]]) -> None:
    endless_views(database, tables)
    database.execute("PRAGMA writable_schema = ON")
    database.execute("UPDATE sqlite_master SET type = 'table'")


def renamed_views(database: sqlite3.Connection, tables: dict[str, tuple[str, ...]]) -> None:
    """Make rows of the schema whose names are not those that SQLite reads."""
    endless_views(database, {f"a{table}": columns for table, columns in tables.items()})
    for table, columns in tables.items():
        database.execute(f"CREATE TABLE b{table} ({', '.join(columns)})")
    database.execute("PRAGMA writable_schema = ON")
    for table in tables:
        database.execute(
            "UPDATE sqlite_master SET type = 'table', sql = replace(sql, 'VIEW a', 'VIEW ') WHERE name = ?",
            (f"a{table}",),
        )
        database.execute("UPDATE sqlite_master SET name = ?, tbl_name = ? WHERE name = ?", (table, table, f"b{table}"))


def virtual_tables(database: sqlite3.Connection, tables: dict[str, tuple[str, ...]]) -> None:
    for table, columns in tables.items():
        try:
            database.execute(f"CREATE VIRTUAL TABLE {table} USING fts5({', '.join(columns)})")
        except sqlite3.OperationalError:
            pytest.skip("this SQLite has no fts5")
        database.execute(f"INSERT INTO {table} ({columns[0]}) VALUES ('SECRET')")


def computed_columns(database: sqlite3.Connection, tables: dict[str, tuple[str, ...]]) -> None:
    """Make columns of a hundred megabytes in each row; they are added last, because an insertion computes them."""
    for table, columns in tables.items():
        database.execute(f"CREATE TABLE {table} ({columns[0]})")
        database.executemany(f"INSERT INTO {table} VALUES (?)", [(str(at),) for at in range(300)])
        for column in (*columns[1:], "rowid"):
            database.execute(f"ALTER TABLE {table} ADD COLUMN {column} AS (hex(zeroblob(50000000)))")


def long_defaults(database: sqlite3.Connection, tables: dict[str, tuple[str, ...]]) -> None:
    """Make rows without values, which get a long default each."""
    for table, columns in tables.items():
        database.execute(f"CREATE TABLE {table} ({columns[0]})")
        database.executemany(f"INSERT INTO {table} VALUES (?)", [(str(at),) for at in range(2000)])
        for column in columns[1:]:
            database.execute(f"ALTER TABLE {table} ADD COLUMN {column} DEFAULT '{'x' * 20_000}'")


HOSTILE: dict[str, Callable[[sqlite3.Connection, dict[str, tuple[str, ...]]], None]] = {
    "views that never end": endless_views,
    "views that are called tables": disguised_views,
    "views with the names of tables": renamed_views,
    "virtual tables": virtual_tables,
    "computed columns": computed_columns,
    "defaults that fill the memory": long_defaults,
}


def make(path: Path, kind: str, tables: dict[str, tuple[str, ...]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(path)
    HOSTILE[kind](database, tables)
    database.commit()
    database.close()
    return path


def test_every_reader_of_databases_is_among_these():
    assert set(READERS) >= {"crush", "cursor", "goose", "google-adk", "langchain", "llm", "openai-agents", "opencode"}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("name", READERS)
def test_a_hostile_database_is_one_error_or_has_no_session(name, kind, tmp_path, monkeypatch):
    monkeypatch.setattr(databases, "STEPS", STEPS)
    monkeypatch.setattr(databases, "SMALL", 2**20)
    for at, tables in enumerate(tables_of(name)):
        path = make(tmp_path / f"{at}.db", kind, tables)
        for use in (read_history, list_source):
            for given in (None, name):
                with suppress(SegueError):
                    assert "SECRET" not in str(use(path, format=given))


def test_a_project_with_a_hostile_database_does_not_stop_the_list(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    make(tmp_path / ".crush" / "crush.db", "views that never end", tables_of("crush")[0])
    assert list(find_sessions(formats=["crush"])) == []


@pytest.mark.parametrize("end", ["", "-wal", "-journal", "-shm"])
@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_pipe_or_link_in_the_place_of_a_file_of_a_database_is_not_opened(end, kind, tmp_path):
    path = tmp_path / "some.db"
    if end:
        database = sqlite3.connect(path)
        database.executescript("CREATE TABLE t (x); INSERT INTO t VALUES (1);")
        database.close()
    other = path.with_name(path.name + end)
    if kind == "pipe":
        os.mkfifo(other)
    else:
        other.symlink_to("/dev/zero")
    with pytest.raises(LoadError, match="regular file"):
        ReadOnlyDatabase(path).tables()


def test_work_is_counted_over_all_questions(tmp_path, monkeypatch):
    path = tmp_path / "some.db"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE t (x)")
    database.executemany("INSERT INTO t VALUES (?)", [(at,) for at in range(20_000)])
    database.commit()
    database.close()
    monkeypatch.setattr(databases, "STEPS", 500_000)
    opened = ReadOnlyDatabase(path)
    assert list(opened.rows("t", x=3)) == [{"x": 3}]
    with pytest.raises(LoadError, match="takes too long; export the session"):
        _ = [list(opened.rows("t", x=at)) for at in range(1000)]


def test_rows_and_bytes_of_one_answer_are_limited(tmp_path, monkeypatch):
    path = tmp_path / "some.db"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE t (x)")
    database.executemany("INSERT INTO t VALUES (?)", [("x" * 100,)] * 100)
    database.execute(f"ALTER TABLE t ADD COLUMN y DEFAULT '{'y' * 10_000}'")
    database.commit()
    database.close()
    assert len(list(ReadOnlyDatabase(path).rows("t"))) == 100
    monkeypatch.setattr(databases, "MOST_ROWS", 99)
    with pytest.raises(LoadError, match="or 99 rows"):
        list(ReadOnlyDatabase(path).rows("t"))
    monkeypatch.undo()
    monkeypatch.setattr(databases, "SMALL", 0)
    with pytest.raises(LoadError, match="bytes or"):
        list(ReadOnlyDatabase(path).rows("t"))


def test_real_schemas_are_read(tmp_path):
    path = tmp_path / "some.db"
    database = sqlite3.connect(path)
    database.executescript(
        """
        CREATE TABLE IF NOT EXISTS main . "a ""b" (/* a comment */ id INTEGER PRIMARY KEY AUTOINCREMENT, x UNIQUE);
        create table `c`(x); CREATE TABLE [d e] (x); CREATE TABLE 'f' (x, y AS (x + 1), z AS (x + 2) STORED);
        CREATE UNIQUE INDEX IF NOT EXISTS i ON c (x); CREATE VIEW v AS SELECT * FROM c;
        CREATE TRIGGER IF NOT EXISTS t AFTER INSERT ON c BEGIN SELECT 1; END;
        CREATE TABLE old (x); ALTER TABLE old RENAME TO renamed; CREATE TABLE made AS SELECT 1 AS x;
        INSERT INTO 'f' (x) VALUES (1); ANALYZE;
        """
    )
    database.close()
    opened = ReadOnlyDatabase(path)
    own = {name for name in opened.tables() if not name.startswith("sqlite_")}
    assert own == {'a "b', "c", "d e", "f", "renamed", "made"}
    assert list(opened.rows("f")) == [{"x": 1, "z": 3}]
    assert list(opened.column("made", "x")) == [1]
    assert list(opened.rows("made", missing=1)) == []
    with pytest.raises(LoadError, match="views are not read"):
        list(opened.rows("v"))
