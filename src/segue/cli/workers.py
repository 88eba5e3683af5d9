"""Worker processes that convert pieces, and their results in the order of the input.

Each process gets one piece at a time through a pipe, so that neither side blocks on a full pipe. The result comes back
through shared memory if processes are forked and it is short enough, otherwise through the pipe.

A process ends when its pipe is closed, so none outlives the main process. Only the main process handles Ctrl-C, which a
terminal sends to all of them.
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
"""How many pieces for each process may be in progress or wait for an earlier one; more would only use memory."""

_SLOT: Final = 2 * SIZE
"""Bytes of shared memory for the result of one piece."""

StartMethod: TypeAlias = Literal["fork", "spawn"]


def start_method() -> StartMethod:
    """Choose how processes are started: forked if that is safe, because it saves importing everything again.

    It is safe on Linux without threads, whose locks a child would inherit. System libraries of macOS do not support it,
    and Windows has no fork. (Python's documentation of `multiprocessing`, contexts and start methods, 2026-11-15)
    """
    return "fork" if sys.platform == "linux" and threading.active_count() == 1 else "spawn"


@final
class WorkerLost(SegueError):
    """A worker process ended early: it was killed, or ran out of memory."""


@final
class _Task(NamedTuple):
    """One piece: its number, and the slot of shared memory for its result."""

    order: int
    slot: int
    piece: Piece


@final
class _Made(NamedTuple):
    """The result of a piece; `length` is the size of the output in its slot, None if the batch has the output."""

    batch: Batch
    length: int | None


@final
class Workers:
    """Worker processes for one job; they end with the `with` block."""

    def __init__(self, job: Job, processes: int) -> None:
        method = start_method()
        context = get_context("fork") if method == "fork" else get_context("spawn")
        slots = processes * _AHEAD
        self._memory = memoryview(mmap.mmap(-1, slots * _SLOT)) if method == "fork" else None
        self._free = list(range(slots))
        self._busy: dict[Connection, _Task] = {}
        self._pipes: list[Connection] = []
        self._processes: list[BaseProcess] = []
        # Garbage collection would write to all existing objects, and forked processes could no longer share them.
        gc.freeze()
        with _interrupts_held():
            for _ in range(processes):
                pipe, theirs = context.Pipe()
                self._pipes.append(pipe)
                # A forked process inherits this side of the pipes. It closes them, to see the end of its own pipe.
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
        """Convert pieces and yield their batches in order; an output is valid until the next batch is requested.

        Raises:
            WorkerLost: a process ended early.
            OSError: the input cannot be read any more.
        """
        done: dict[int, tuple[_Made, int]] = {}
        sent = given = 0
        while True:
            while self._idle and self._free and (piece := next(pieces, None)) is not None:
                self._hand_out(_Task(sent, self._free.pop(), piece))
                sent += 1
            if given in done:
                made, slot = done.pop(given)
                yield (
                    made.batch
                    if made.length is None
                    else made.batch._replace(output=self._view_slot(slot, made.length))
                )
                self._free.append(slot)
                given += 1
            elif self._busy:
                ready = wait(self._busy)
                for pipe in [pipe for pipe in self._busy if pipe in ready]:
                    task, made = self._receive(pipe)
                    done[task.order] = made, task.slot
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

    def _view_slot(self, slot: int, length: int) -> memoryview:
        assert self._memory is not None, "results have a length only with shared memory"
        return self._memory[slot * _SLOT : slot * _SLOT + length]

    def _lost(self, pipe: Connection) -> WorkerLost:
        process = self._processes[self._pipes.index(pipe)]
        process.join(timeout=5)
        status = process.exitcode or 0
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        return WorkerLost(
            f"a worker process {how}; the output is complete up to that point. If memory ran out, use a smaller --jobs."
            " A run with --output continues with --resume"
        )


@contextmanager
def _interrupts_held() -> Generator[None]:
    """Block Ctrl-C in this process until the end of the block, and in processes that are started in it for good."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(pipe: Connection, others: list[Connection], job: Job, memory: memoryview | None) -> None:
    """Convert pieces until the pipe is closed; runs in a worker process."""
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
            if memory is None or length > _SLOT:
                pipe.send(_Made(batch, None))
            else:
                memory[task.slot * _SLOT : task.slot * _SLOT + length] = batch.output
                pipe.send(_Made(batch._replace(output=b""), length))
    except (EOFError, ConnectionError):
        return
