"""Databases for the tests: SQLite in a folder, and a PostgreSQL server that the tests start themselves.

The server comes from Debian's package `postgresql`. It listens on a Unix socket only. As root it runs as `postgres`,
because it refuses to run as root.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import final

from segue.envelope.state import State
from segue.gateway.store.store import Store

REASON = "with PostgreSQL (no server program or no psycopg)"


def find_programs() -> Path | None:
    """Find the folder of the server's programs, the newest version."""
    if find_spec("psycopg") is None:
        return None
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


@final
class PostgresqlServer:
    """A server in a folder, which can be stopped and started again."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.url = f"postgresql://segue@/postgres?host={folder}"
        self._folder = folder
        self._programs = programs
        self._owner = pwd.getpwnam("postgres") if os.getuid() == 0 else None
        if self._owner is not None:
            os.chown(folder, self._owner.pw_uid, self._owner.pw_gid)
        self._run("initdb", "-U", "segue", "-A", "trust", "--no-sync")

    def _run(self, program: str, *arguments: str) -> None:
        user = None if self._owner is None else self._owner.pw_uid
        group = None if self._owner is None else self._owner.pw_gid
        command = [str(self._programs / program), "-D", str(self._folder / "data"), *arguments]
        subprocess.run(command, check=True, capture_output=True, user=user, group=group, cwd=self._folder, timeout=60)

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = f"-k {self._folder} -c listen_addresses='' -c fsync=off -c max_connections=60"
        self._run("pg_ctl", "-w", "-l", str(self._folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        """Stop the server at once, as a crash does."""
        self._run("pg_ctl", "-w", "-m", "immediate", "stop")


@contextmanager
def postgresql_server() -> Iterator[PostgresqlServer]:
    """Start a server in a temporary folder."""
    programs = find_programs()
    assert programs is not None
    folder = Path(mkdtemp(prefix="segue-pg-"))
    try:
        server = PostgresqlServer(folder, programs)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def postgresql() -> Iterator[str]:
    """Start a server in a temporary folder, and give the URL of its database."""
    with postgresql_server() as server:
        yield server.url


def states_of(store: Store, keys: Iterable[str], now: int, tenant: str = "t") -> dict[str, list[State]]:
    """Return the states of keys, and note that they were used."""
    found = store.find([*keys], "", now, tenant)
    if found.used.ids:
        store.put_all((found.used,), now)
    return found.states
