"""Databases for the tests: SQLite in a folder, and a PostgreSQL server that the tests start themselves.

The server comes from Debian's package `postgresql`. It listens on a Unix socket only. As root it runs as `postgres`,
because it refuses to run as root.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp

REASON = "with PostgreSQL (no server program or no psycopg)"


def find_programs() -> Path | None:
    """Find the folder of the server's programs, the newest version."""
    if find_spec("psycopg") is None:
        return None
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


@contextmanager
def postgresql() -> Iterator[str]:
    """Start a server in a temporary folder, and give the URL of its database."""
    programs = find_programs()
    assert programs is not None
    folder = Path(mkdtemp(prefix="segue-pg-"))
    owner = pwd.getpwnam("postgres") if os.getuid() == 0 else None
    if owner is not None:
        os.chown(folder, owner.pw_uid, owner.pw_gid)

    def run(*command: str) -> None:
        user = None if owner is None else owner.pw_uid
        group = None if owner is None else owner.pw_gid
        subprocess.run(command, check=True, capture_output=True, user=user, group=group, cwd=folder, timeout=60)

    data = folder / "data"
    options = f"-k {folder} -c listen_addresses='' -c fsync=off -c max_connections=60"
    try:
        run(str(programs / "initdb"), "-D", str(data), "-U", "segue", "-A", "trust", "--no-sync")
        run(str(programs / "pg_ctl"), "-D", str(data), "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield f"postgresql://segue@/postgres?host={folder}"
        finally:
            run(str(programs / "pg_ctl"), "-D", str(data), "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
