"""Starts `segue` as a fork of a process that has imported it, so that a test does not pay for the imports.

A run is a process of its own with its own streams, environment and folder, and it ends as the program ends. What the
interpreter itself decides at its start is not repeated; `PER_START` names the variables that it reads there.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import pkgutil
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final, NoReturn

CAN_FORK: Final = hasattr(os, "fork") and sys.platform != "win32"
PER_START: Final = ("PYTHON", "LC_", "LANG")
"""How the names of the variables begin that Python reads when it starts."""
SELDOM: Final = ("segue.cli.mcp_server", "segue.testing.pytest_plugin")
"""No run of the program needs the plug-in, and few the server, whose package takes as long as all of segue."""


class ForkServer:
    """A process that has imported the program and is forked for each run."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__)), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        atexit.register(self.close)

    def run(
        self,
        arguments: Sequence[str],
        streams: tuple[int, int, int],
        env: Mapping[str, str],
        cwd: str | None,
        before: str = "",
    ) -> int:
        """Run the program with these descriptors as its streams, and give its exit status.

        `before` is Python code that runs first and may change the program.
        """
        message = json.dumps([list(arguments), dict(env), cwd or str(Path.cwd()), before]).encode()
        socket.send_fds(self._socket, [struct.pack("!I", len(message))], streams)
        self._socket.sendall(message)
        return struct.unpack("!i", _receive(self._socket, 4))[0]

    def close(self) -> None:
        self._socket.close()
        self._process.wait()


@cache
def fork_server() -> ForkServer:
    """Start the server of this process of tests at its first use."""
    return ForkServer()


def _receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        got = connection.recv(size - len(data))
        if not got:
            raise EOFError
        data += got
    return data


def _serve(connection: socket.socket) -> None:
    """Fork for each message, until the tests have ended."""
    _import_everything()
    while True:
        head, streams, _, _ = socket.recv_fds(connection, 4, 3)
        if not head:
            return
        (size,) = struct.unpack("!I", head + _receive(connection, 4 - len(head)))
        arguments, env, cwd, before = json.loads(_receive(connection, size))
        child = os.fork()
        if child == 0:
            connection.close()
            _start(arguments, streams, env, cwd, before)
        for each in streams:
            os.close(each)
        _, status = os.waitpid(child, 0)
        connection.sendall(struct.pack("!i", os.waitstatus_to_exitcode(status)))


def _import_everything() -> None:
    """Import what any command uses, and fill the caches that are the same for each run."""
    import segue
    from segue.client.http.settings import shared_tls
    from segue.models.catalogue import packaged_catalogue

    names = (module.name for module in pkgutil.walk_packages(segue.__path__, "segue."))
    for name in (*names, "h11", "httpcore2", "httpx2", "rich.console", "rich.table"):
        if not name.endswith(".__main__") and name not in SELDOM:
            with suppress(ImportError):  # of packages that are optional and not there
                import_module(name)
    packaged_catalogue()
    shared_tls()
    gc.freeze()  # a collection in a fork would copy all of it


def _start(arguments: list[str], streams: list[int], env: dict[str, str], cwd: str, before: str) -> NoReturn:
    """Become the program: its streams, environment, folder and arguments."""
    from segue.cli.entry import main

    for number, given in enumerate(streams):  # Python's own streams, which nothing has used yet
        os.dup2(given, number)
        os.close(given)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.argv = ["segue", *arguments]
    exec(before, {})
    status: object = None
    try:
        main()
    except SystemExit as ended:
        status = ended.code
    # The end of the interpreter, without freeing every module one by one: that takes longer than most runs.
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(status if isinstance(status, int) else 0)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as given:
        _serve(given)
