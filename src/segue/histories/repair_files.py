"""Opens sessions that can be repaired, and stores them with a backup.

A file is replaced as a whole and only if it is still what was read. What a program appended at the last moment is added
to the repaired file. A database is changed in one transaction, row by row, under its own lock.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from segue.errors import HistoryExists, LoadError, SessionChanged, SettingsError
from segue.histories import places
from segue.histories.kit.format import Format
from segue.histories.kit.source import Source
from segue.histories.opening import How, locate_history
from segue.histories.registry import all_formats
from segue.histories.regular_files import read_regular
from segue.histories.repairs import Repaired

if sys.platform != "win32":
    import fcntl

_BACKUP: Final = ".before-repair"


def find_repairable(path: str, *, name: str | None = None, session: str | None = None) -> tuple[Source, Format]:
    """Open a session that can be repaired.

    Raises:
        LoadError: it cannot be read.
        SettingsError: sessions of this format cannot be repaired.
    """
    source, record = locate_history(path, How(format=name, session=session))
    source = places.settle(source, record)
    if source.long is not None and source.path is not None:
        source = Source(data=read_regular(Path(source.path)), name=source.name, path=source.path)
    if record.anatomy is None:
        names = ", ".join(each.name for each in all_formats() if each.anatomy is not None)
        raise SettingsError(f"{record.title}: its sessions cannot be repaired; those of {names} can", key="format")
    return source, record


def store_in_place(repaired: Repaired) -> Path:
    """Store a repaired session in the place of the old one, and return the backup of that.

    Raises:
        SessionChanged: the session was changed since it was read, or a program has it open; it is unchanged.
        LoadError: it is not a file.
    """
    if repaired.source.path is None:
        raise LoadError("only a session in a file can be repaired in place; use -o FILE")
    path = Path(repaired.source.path)
    if repaired.data is None:
        return _store_rows(repaired, path)
    before = repaired.source.data or b""
    handle = os.open(path, os.O_RDWR)
    try:
        _lock(handle, path)
        raw = read_regular(path)
        if places.as_utf8(raw) != before:
            raise SessionChanged(f"{path} was changed since it was read; repair it again", path=str(path))
        holders = _open_in(path)
        if holders:
            raise SessionChanged(
                f"{path} is open in {', '.join(holders)}; end it, and repair the session again", path=str(path)
            )
        backup = _store_backup(path.with_name(path.name + _BACKUP), raw)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            temporary.write_bytes(repaired.data)
            temporary.chmod(path.stat().st_mode & 0o777)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        # What a program appended between the comparison and the replacement is in the old file alone.
        os.lseek(handle, len(raw), os.SEEK_SET)
        late = b"".join(iter(lambda: os.read(handle, 1 << 20), b""))
        if late:
            with path.open("ab") as file:
                file.write(late)
    finally:
        os.close(handle)
    return backup


def _lock(handle: int, path: Path) -> None:
    if sys.platform == "win32":
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SessionChanged(f"{path} is locked by a program; end it, and repair it again", path=str(path)) from None
    except OSError:  # a file system without locks
        return


def _open_in(path: Path) -> list[str]:
    """Name the other processes of this user that have a file open; only Linux tells."""
    found: list[str] = []
    try:
        target = path.stat()
        processes = [each for each in Path("/proc").iterdir() if each.name.isdigit() and int(each.name) != os.getpid()]
    except OSError:
        return found
    for process in processes:
        with suppress(OSError):
            for each in (process / "fd").iterdir():
                with suppress(OSError):
                    status = each.stat()
                    if (status.st_dev, status.st_ino) == (target.st_dev, target.st_ino):
                        name = (process / "comm").read_text().strip()
                        found.append(f"{name} (process {process.name})")
                        break
    return found


def _store_backup(path: Path, data: bytes) -> Path:
    for number in range(1, 1000):
        name = path if number == 1 else path.with_name(f"{path.name}-{number}")
        with suppress(HistoryExists):
            places.store_file(name, data)
            return name
    raise LoadError(f"there are too many backups of {path}; remove some")


def _store_rows(repaired: Repaired, path: Path) -> Path:
    """Change the rows of a database in one transaction; the backup has each of them as it was."""
    old = [{"table": table, "id": name, "data": data} for table, name, data, _ in repaired.rows]
    document = json.dumps({"database": str(path), "rows": old}, ensure_ascii=False, indent=1).encode()
    name = f"{path.stem}-{repaired.history.origin.id or 'session'}{_BACKUP}.json"
    try:
        with closing(sqlite3.connect(path, timeout=5, isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                for table, row, before, after in repaired.rows:
                    _store_row(database, path, (table, row, before, after))
                backup = _store_backup(path.with_name(name), document)
                database.execute("COMMIT")
            except BaseException:
                database.execute("ROLLBACK")
                raise
    except sqlite3.OperationalError as error:
        raise SessionChanged(f"{path}: {error}; end the program, and repair it again", path=str(path)) from error
    return backup


def _store_row(database: sqlite3.Connection, path: Path, row: tuple[str, str, str, str | None]) -> None:
    table, name, before, after = row
    if table not in {"message", "part"}:
        raise LoadError(f"{path}: no rows of {table} can be changed")
    if after is None:
        done = database.execute(f"DELETE FROM {table} WHERE id = ? AND data = ?", (name, before))  # noqa: S608 - checked
    else:
        done = database.execute(f"UPDATE {table} SET data = ? WHERE id = ? AND data = ?", (after, name, before))  # noqa: S608
    if done.rowcount != 1:
        raise SessionChanged(f"{path} was changed since it was read; repair it again", path=str(path))


def store_copy(repaired: Repaired, output: Path | None, *, new: str) -> Path:
    """Store a repaired session in a file, or next to the old one as a session with the id `new`.

    Raises:
        HistoryExists: there is a file of that name.
        LoadError: it has no id, or it is in a database.
    """
    data = repaired.data
    if data is None:
        raise LoadError("a session in a database has no copy of its own; hand it over to the same program")
    if output is not None:
        places.store_file(output, data)
        return output
    old = repaired.history.origin.id
    if repaired.source.path is None or not old or old.encode() not in data:
        raise LoadError("the session has no id that a copy could replace; use -o FILE")
    path = Path(repaired.source.path)
    name = str(path).replace(old, new)
    if name == str(path):  # Gemini CLI: the beginning of the id
        name = str(path).replace(old[:8], new[:8])
    target = Path(name) if name != str(path) else path.with_name(f"{new}{path.suffix}")
    places.store_file(target, data.replace(old.encode(), new.encode()))
    return target
