"""The processes of `segue serve --workers N`: a supervisor that has the port, and the workers that serve it.

The supervisor opens the port once for each worker and keeps it open: connections that wait for a worker that died are
served by its successor. It starts a worker again that ends by itself, passes signals on, and serves nothing itself.
Workers end with their supervisor, however that ends: their standard input does.

Facts:
- With SO_REUSEPORT, Linux gives each new connection to one of the sockets, by a digest of its addresses; connections
  that wait at a socket are reset when its last descriptor is closed.                          (socket(7), Linux 3.9)
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Final, Self, final

import msgspec

from segue.cli.listening import listen
from segue.foundation.plurals import counted
from segue.gateway.board import Board
from segue.gateway.defaults import Address
from segue.gateway.logs import find_logger

_LOG: Final = find_logger()
_SHORT_LIFE: Final = 10.0
"""Seconds after which a worker that ends has worked: it is started again at once."""
_FIRST_WAIT: Final = 0.5
_LONGEST_WAIT: Final = 30.0
_STOPS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LOOK_SECONDS: Final = 1.0
_MORE_SECONDS: Final = 15.0
"""Seconds that workers have to end in addition to those for their replies."""


@final
class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is told: its place among `count`, the folder of the board, its socket, and the address."""

    index: int
    count: int
    folder: str
    listener: int
    place: tuple[str, int]

    @classmethod
    def read(cls, stream: IO[bytes]) -> Self:
        """Read it from the first line of a stream."""
        return msgspec.json.decode(stream.readline(), type=cls)


def follow_supervisor(stream: IO[bytes]) -> None:
    """End this process, as with a signal, when a stream of the supervisor ends."""

    def wait() -> None:
        with suppress(OSError, ValueError):
            stream.read()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="segue-supervisor", daemon=True).start()


@final
class _Place:
    """The place of a worker: its socket, the process that has it now, and how its predecessors ended."""

    def __init__(self, index: int, listener: socket.socket) -> None:
        self.index: int = index
        self.listener: socket.socket = listener
        self.process: subprocess.Popen[bytes] | None = None
        self.began: float = 0.0
        self.starts_at: float = 0.0
        self.failures: int = 0


class Supervisor:
    """Starts workers, and starts them again, until a signal ends them all. `options` are those of each worker."""

    def __init__(
        self,
        board: Board,
        place: Address,
        listeners: Sequence[socket.socket],
        options: Sequence[str],
        *,
        drain_seconds: float,
    ) -> None:
        self._board = board
        self._address = place
        # -P: without the modules of the folder in which it was started
        self._command = (sys.executable, "-P", "-m", "segue", "serve", *options, "--worker")
        self._drain_seconds = drain_seconds
        self._places = [_Place(index, listener) for index, listener in enumerate(listeners)]
        self._is_divided = len(set(listeners)) > 1
        self._signal: int = 0

    def run(self) -> None:
        """Run the workers until a signal to stop; it is raised again when they have ended."""
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        before = {each: signal.signal(each, self._note) for each in (*_STOPS, signal.SIGCHLD)}
        wakes = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        try:
            while not self._signal:
                self._look()
                ready, _, _ = select.select([reader], [], [], _LOOK_SECONDS)
                if ready:
                    os.read(reader, 1000)
        finally:
            try:
                self._stop()
            finally:
                signal.set_wakeup_fd(wakes)
                for number, handler in before.items():
                    signal.signal(number, handler)
                os.close(reader)
                os.close(writer)
        if self._signal:
            signal.raise_signal(self._signal)

    def _note(self, number: int, _: object) -> None:
        if number != signal.SIGCHLD:
            self._signal = number

    def _look(self) -> None:
        """Start the workers that are missing."""
        for place in self._places:
            if place.process is not None and place.process.poll() is not None:
                self._note_end(place, place.process)
            if place.process is None and time.monotonic() >= place.starts_at:
                self._start(place)

    def _note_end(self, place: _Place, process: subprocess.Popen[bytes]) -> None:
        lived, status = time.monotonic() - place.began, process.returncode
        self._forget(place, process)
        place.failures = place.failures + 1 if lived < _SHORT_LIFE else 0
        wait = min(_FIRST_WAIT * 2 ** (place.failures - 1), _LONGEST_WAIT) if place.failures else 0.0
        place.starts_at = time.monotonic() + wait
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        _LOG.warning(
            "worker %d ended %s after %s; it is started again", place.index, how, counted(round(lived), "second")
        )
        if place.failures > 1 and self._is_divided:
            place.listener.close()  # the others get its connections

    def _forget(self, place: _Place, process: subprocess.Popen[bytes]) -> None:
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
        place.process = None
        self._board.clear(place.index)  # the limits that its requests took up

    def _start(self, place: _Place) -> None:
        place.began = time.monotonic()
        if place.listener.fileno() < 0:
            place.listener = listen(self._address.name, self._address.port, is_shared=True)
        worker = Worker(
            index=place.index,
            count=self._board.count,
            folder=str(self._board.folder),
            listener=place.listener.fileno(),
            place=(self._address.name, self._address.port),
        )
        place.process = subprocess.Popen(  # noqa: S603 - the program itself
            self._command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, pass_fds=(worker.listener,)
        )
        assert place.process.stdin is not None, "it is a pipe"
        with suppress(OSError):  # it has ended already
            place.process.stdin.write(msgspec.json.encode(worker) + b"\n")
            place.process.stdin.flush()

    def _stop(self) -> None:
        """End the workers; wait for the replies that run."""
        running = [place.process for place in self._places if place.process is not None]
        for process in running:
            process.terminate()
        for place in self._places:
            place.listener.close()
        until = time.monotonic() + self._drain_seconds + _MORE_SECONDS
        for process in running:
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
