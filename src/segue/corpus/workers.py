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

from segue.corpus.batches import Batch
from segue.corpus.conversion import RowConverter, convert_piece, died
from segue.corpus.jobs import Job
from segue.corpus.pieces import SIZE, ShardPiece
from segue.corpus.summary import Summary
from segue.errors import SegueError

_AHEAD: Final = 4
"""How many pieces for each process may be in progress or wait for an earlier one; more would only use memory."""

_TRIES: Final = 2
"""How often a piece may end its process before it is divided: the first time somebody may have killed the process."""
_MOST_FATAL_ROWS: Final = 100
"""How many rows may end their processes: more are a fault of the machine, not of the rows."""

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
    """Worker processes end again and again: they are killed, or run out of memory."""


@final
class _Task(NamedTuple):
    """One piece: its number, the slot of shared memory for its result, and how often it was tried."""

    order: int
    slot: int
    piece: ShardPiece
    deaths: int = 0


@final
class _Made(NamedTuple):
    """The result of a piece; `length` is the size of the output in its slot, None if the batch has the output."""

    batch: Batch
    length: int | None


@final
class Workers:
    """Worker processes for one job; they end with the `with` block.

    A process that dies is replaced, and its piece is tried again. A piece that ends its process twice is divided, half
    by half, until the row is found that does it: that row is bad, and all others are converted.
    """

    def __init__(self, job: Job, processes: int) -> None:
        self._job = job
        slots = processes * _AHEAD
        # Shared memory is inherited by forked processes only.
        self._memory = memoryview(mmap.mmap(-1, slots * _SLOT)) if start_method() == "fork" else None
        self._free = list(range(slots))
        self._busy: dict[Connection, _Task] = {}
        self._processes: dict[Connection, BaseProcess] = {}
        self._fatal_rows = 0
        # Garbage collection would write to all existing objects, and forked processes could no longer share them.
        gc.freeze()
        self._idle = [self._start() for _ in range(processes)]

    def _start(self) -> Connection:
        method = start_method()
        context = get_context("fork") if method == "fork" else get_context("spawn")
        with _interrupts_held():
            pipe, theirs = context.Pipe()
            # A forked process inherits this side of the pipes. It closes them, to see the end of its own pipe.
            ours = [*self._processes, pipe] if method == "fork" else []
            memory = self._memory if method == "fork" else None
            process = context.Process(target=_serve, args=(theirs, ours, self._job, memory), daemon=True)
            process.start()
            theirs.close()
        self._processes[pipe] = process
        return pipe

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe, process in self._processes.items():
            pipe.close()
            process.terminate()
        for process in self._processes.values():
            process.join()

    def convert(self, pieces: Iterator[ShardPiece]) -> Iterator[Batch]:
        """Convert pieces and yield their batches in order; an output is valid until the next batch is requested.

        Raises:
            WorkerLost: processes die again and again.
            OSError: the input can no longer be read.
        """
        done: dict[int, tuple[_Made, int]] = {}
        again: list[_Task] = []
        sent = given = 0
        while True:
            while self._idle and again:
                self._hand_out(again.pop())
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
                    if made is not None:
                        done[task.order] = made, task.slot
                    elif task.deaths < _TRIES:
                        again.append(task)
                    else:
                        done[task.order] = _Made(join_batches(self._isolate(task.piece)), None), task.slot
            else:
                return

    def convert_alone(self, piece: ShardPiece) -> Batch:
        """Convert a piece that ended its process before: divided at once if it does so again."""
        made = self._try(piece)
        return made if made is not None else join_batches(self._isolate(piece))

    def _isolate(self, piece: ShardPiece) -> list[Batch]:
        """Convert the rows of a piece that ends its process, all but those that do it."""
        halves = piece.halves()
        if halves is None:
            self._fatal_rows += 1
            if self._fatal_rows > _MOST_FATAL_ROWS:
                raise WorkerLost(
                    f"more than {_MOST_FATAL_ROWS} rows ended their processes; if memory ran out, use a smaller --jobs,"
                    " then continue with --resume"
                )
            return [died(piece, self._job)]
        batches: list[Batch] = []
        for half in halves:
            made = self._try(half)
            batches += self._isolate(half) if made is None else [made]
        return batches

    def _try(self, piece: ShardPiece) -> Batch | None:
        """Convert a piece and wait for the result; None if the process died."""
        self._hand_out(_Task(-1, -1, piece))
        pipe = next(pipe for pipe, task in self._busy.items() if task.order < 0)
        _, made = self._receive(pipe)
        return None if made is None else made.batch

    def _hand_out(self, task: _Task) -> None:
        pipe = self._idle.pop() if self._idle else self._start()
        try:
            pipe.send(task)
        except OSError:  # it died before it got anything
            self._drop(pipe)
            pipe = self._start()
            pipe.send(task)
        self._busy[pipe] = task

    def _receive(self, pipe: Connection) -> tuple[_Task, _Made | None]:
        task = self._busy.pop(pipe)
        try:
            made: _Made | OSError = pipe.recv()
        except (EOFError, OSError):
            self._drop(pipe)
            self._idle.append(self._start())
            return task._replace(deaths=task.deaths + 1), None
        if isinstance(made, OSError):
            raise made
        self._idle.append(pipe)
        return task, made

    def _drop(self, pipe: Connection) -> None:
        pipe.close()
        process = self._processes.pop(pipe)
        process.kill()
        process.join()

    def _view_slot(self, slot: int, length: int) -> memoryview:
        assert self._memory is not None, "results have a length only with shared memory"
        return self._memory[slot * _SLOT : slot * _SLOT + length]


def join_batches(batches: list[Batch]) -> Batch:
    """Join the results of consecutive pieces."""
    if len(batches) == 1:
        return batches[0]
    summary, numbered = Summary(), list[Batch]()
    for batch in batches:
        numbered.append(batch.after(summary.lines))
        summary.add(batch.summary)
        if batch.stopped:
            break
    last = numbered[-1]
    return Batch(
        b"".join(batch.output for batch in numbered),
        summary,
        [row for batch in numbered for row in batch.details],
        [report for batch in numbered for report in batch.reports],
        [row for batch in numbered for row in batch.bad],
        last.stopped,
        last.shard,
        last.last,
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
    converter = RowConverter(job)
    try:
        while True:
            task: _Task = pipe.recv()
            try:
                batch = convert_piece(converter, task.piece)
            except OSError as error:
                pipe.send(error)
                return
            length = len(batch.output)
            if memory is None or task.slot < 0 or length > _SLOT:
                pipe.send(_Made(batch, None))
            else:
                memory[task.slot * _SLOT : task.slot * _SLOT + length] = batch.output
                pipe.send(_Made(batch._replace(output=b""), length))
    except (EOFError, ConnectionError):
        return
