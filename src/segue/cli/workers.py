"""Other processes that convert pieces, and what they made in the order of the input.

Each process is handed one piece at a time, so that neither side ever waits for the other to read, and the next one
before the last is written. What it made comes back through memory that both see, where processes are forked; else, and
where it is too long for that, through the pipe.

A process ends when its pipe is closed: none outlives this one, however it ends. Ctrl-C, which a terminal sends to all
of them, is this one's to answer.
"""

from __future__ import annotations

import gc
import mmap
import signal
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Final, Literal, NamedTuple, Self, TypeAlias, final

from segue.cli.batches import Batch, Job, convert_piece
from segue.cli.pieces import SIZE, Piece
from segue.errors import SegueError

_AHEAD: Final = 4
"""How many pieces of each process may be under way or wait for one before them; more would only fill memory."""

_ROOM: Final = 2 * SIZE
"""How many bytes of shared memory there are for what becomes of a piece."""

StartMethod: TypeAlias = Literal["fork", "spawn"]


def start_method() -> StartMethod:
    """Say how processes are started: forked where that is safe, as it saves loading everything anew.

    It is where no thread holds anything that a child would share, and on Linux: system libraries of macOS do not bear
    it, and Windows cannot. (Python's documentation of `multiprocessing`, contexts and start methods, 2026-11-15)
    """
    return "fork" if sys.platform == "linux" and threading.active_count() == 1 else "spawn"


@final
class WorkerLost(SegueError):
    """A process ended before its work was done: killed, or out of memory."""


@final
class _Task(NamedTuple):
    """One piece on its way: which it is, and which room may hold what becomes of it."""

    order: int
    room: int
    piece: Piece


@final
class _Made(NamedTuple):
    """What became of a piece; `length` says how much of its room holds the output, None that the batch has it."""

    batch: Batch
    length: int | None


@final
class Workers:
    """Processes that convert pieces for one job, until the block ends."""

    def __init__(self, job: Job, processes: int) -> None:
        method = start_method()
        context = get_context("fork") if method == "fork" else get_context("spawn")
        rooms = processes * _AHEAD
        self._memory = memoryview(mmap.mmap(-1, rooms * _ROOM)) if method == "fork" else None
        self._free = list(range(rooms))
        self._busy: dict[Connection, _Task] = {}
        self._pipes: list[Connection] = []
        self._processes: list[BaseProcess] = []
        # What is there already stays as it is, and so stays shared: collecting garbage would write to all of it.
        gc.freeze()
        with _interrupts_held():
            for _ in range(processes):
                pipe, theirs = context.Pipe()
                self._pipes.append(pipe)
                # A forked process gets this side of the pipes too; it would never see its own closed.
                ours = self._pipes if method == "fork" else []
                process = context.Process(target=_serve, args=(theirs, ours, job, self._memory), daemon=True)
                process.start()
                theirs.close()
                self._processes.append(process)
        self._idle = self._pipes.copy()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            pipe.close()
            process.terminate()
        for process in self._processes:
            process.join()

    def convert(self, pieces: Iterator[Piece]) -> Iterator[Batch]:
        """Convert pieces and give what became of them, in their order; an output holds until the next is asked for.

        Raises:
            WorkerLost: a process has ended.
            OSError: the input cannot be read any more.
        """
        done: dict[int, tuple[_Made, int]] = {}
        sent = given = 0
        while True:
            while self._idle and self._free and (piece := next(pieces, None)) is not None:
                self._hand_out(_Task(sent, self._free.pop(), piece))
                sent += 1
            if given in done:
                made, room = done.pop(given)
                yield made.batch if made.length is None else made.batch._replace(output=self._look(room, made.length))
                self._free.append(room)
                given += 1
            elif self._busy:
                ready = wait(self._busy)
                for pipe in [pipe for pipe in self._busy if pipe in ready]:
                    task, made = self._receive(pipe)
                    done[task.order] = made, task.room
            else:
                return

    def _hand_out(self, task: _Task) -> None:
        pipe = self._idle.pop()
        try:
            pipe.send(task)
        except OSError:
            raise self._lost(pipe) from None
        self._busy[pipe] = task

    def _receive(self, pipe: Connection) -> tuple[_Task, _Made]:
        try:
            made = pipe.recv()
        except (EOFError, OSError):
            raise self._lost(pipe) from None
        if isinstance(made, OSError):
            raise made
        self._idle.append(pipe)
        return self._busy.pop(pipe), made

    def _look(self, room: int, length: int) -> memoryview:
        assert self._memory is not None, "a room without memory"
        return self._memory[room * _ROOM : room * _ROOM + length]

    def _lost(self, pipe: Connection) -> WorkerLost:
        process = self._processes[self._pipes.index(pipe)]
        process.join(timeout=5)
        status = process.exitcode or 0
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        return WorkerLost(f"a process that converts {how}; what was written is whole as far as it goes")


@contextmanager
def _interrupts_held() -> Generator[None]:
    """Keep Ctrl-C back, here and in processes that are started meanwhile; there for good, here until the end."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(pipe: Connection, others: list[Connection], job: Job, memory: memoryview | None) -> None:
    """Convert pieces until there are no more; what the other side of the pipe runs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in others:
        other.close()
    try:
        while True:
            task: _Task = pipe.recv()
            try:
                batch = convert_piece(job, task.piece)
            except OSError as error:
                pipe.send(error)
                return
            length = len(batch.output)
            if memory is None or length > _ROOM:
                pipe.send(_Made(batch, None))
            else:
                memory[task.room * _ROOM : task.room * _ROOM + length] = batch.output
                pipe.send(_Made(batch._replace(output=b""), length))
    except (EOFError, ConnectionError):
        return
