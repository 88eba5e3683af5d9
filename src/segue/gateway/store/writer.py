"""The thread that writes to a store. Every caller learns whether its own item is durable.

- Items that wait are committed together. If the database refuses a batch, its halves are tried alone, down to the item
  that is to blame: the others are stored.
- While the database does not answer, the items of a batch are tried again for about a second. Then the circuit opens:
  callers learn at once that nothing is stored now, and a probe closes the circuit again.
- Items that may be stored later wait in a backlog meanwhile. It is in memory and bounded; readers see what is in it.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, final

from segue.foundation.plurals import counted
from segue.gateway.store.circuit import Circuit
from segue.gateway.store.database import StoreAway, StoreBusy, StoreError, StoreNotWritable
from segue.gateway.store.store import Store, Stored

_BATCH: Final = 100
_MOST_WAITING: Final = 5_000
"""Items that wait at most, in the queue and again in the backlog."""
_MOST_TRIES: Final = 4
"""How often an item of the backlog is tried while the database answers otherwise."""
_RETRY_SECONDS: Final = 0.1
_PROBE_SECONDS: Final = 0.5


@final
class Item:
    """Something to write, when it was made, and who waits for it. `done` is called once, in the writing thread."""

    __slots__ = ("work", "now", "done", "is_kept", "tries")

    def __init__(self, work: Stored, now: int, done: Callable[[bool], object] | None, *, is_kept: bool) -> None:
        self.work: Stored = work
        self.now: int = now
        self.done: Callable[[bool], object] | None = done
        self.is_kept: bool = is_kept
        """Whether it may still be stored after its caller learned that it is not."""
        self.tries: int = 0

    def resolve(self, *, is_durable: bool) -> None:
        """Tell the caller; whoever waits is told once."""
        done, self.done = self.done, None
        if done is not None:
            done(is_durable)


class Writer:
    """Writes items in a thread of its own. `on_error` gets a sentence about each failure.

    What nobody waits for is written with the next item that somebody waits for. `later` is given what wakes the thread
    for it otherwise, to be called after a moment in which more may come.
    """

    def __init__(
        self,
        store: Store,
        reads: Circuit,
        writes: Circuit,
        on_error: Callable[[str], object],
        later: Callable[[Callable[[], None]], object],
    ) -> None:
        self._store = store
        self._later = later
        self._reads = reads
        self._writes = writes
        self._on_error = on_error
        self._queue: queue.SimpleQueue[Item | None] = queue.SimpleQueue()
        self._unhurried: deque[Item] = deque()
        self._is_announced = False
        self._has_more = False
        self._backlog: deque[Item] = deque()
        self._lock = threading.Lock()
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="segue-store", daemon=True)
        self._dropped = 0
        self._is_reported = False

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def put(self, item: Item) -> bool:
        """Take an item; False if too many wait, or if the writer is closed."""
        if self._is_closing.is_set():
            return False
        if item.done is None:
            if len(self._unhurried) >= _MOST_WAITING:
                return False
            self._unhurried.append(item)
            if not self._is_announced:  # else the thread takes it with the others
                self._is_announced = True
                self._later(self._take_unhurried)
            return True
        if self._queue.qsize() >= _MOST_WAITING:
            return False
        self._queue.put(item)
        return True

    def keep(self, item: Item) -> None:
        """Take an item that is to be written when the database answers again; readers see it at once."""
        self._keep((item,))
        self.wake()

    def wake(self) -> None:
        """Make the thread look at the circuits."""
        if self._queue.qsize() < _MOST_WAITING:
            self._queue.put(None)

    def _take_unhurried(self) -> None:
        self._is_announced = False
        if self._unhurried:
            self.wake()

    def waiting(self) -> list[Stored]:
        """Give what is in the backlog, the oldest first."""
        if not self._backlog:
            return []
        with self._lock:
            return [item.work for item in self._backlog]

    def close(self, seconds: float) -> bool:
        """Write what waits; callers of what cannot be written are told. Gives whether the thread has ended."""
        self._is_closing.set()
        self.wake()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    # -- the thread ----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        next_probe = 0.0
        while True:
            is_closing = self._is_closing.is_set()
            is_idle = not (self._backlog or self._writes.is_open or self._reads.is_open)
            batch = self._collect(None if is_idle and not is_closing else 0.0 if is_closing else _PROBE_SECONDS)
            if self._writes.is_open and not is_closing:
                self._keep(batch)
            else:
                self._write(batch)
            if self._backlog or self._writes.is_open or self._reads.is_open:
                now = time.monotonic()
                if now >= next_probe or is_closing:
                    self._probe()
                    next_probe = time.monotonic() + _PROBE_SECONDS
            self._report_end()
            if is_closing and self._queue.empty() and not self._unhurried:
                self._end()
                return

    def _collect(self, seconds: float | None) -> list[Item]:
        """Wait for a first item, and take those that wait with it."""
        batch: list[Item] = []
        try:
            first = self._queue.get(block=seconds != 0.0 and not self._has_more, timeout=seconds or None)
            if first is not None:
                batch.append(first)
            while batch and len(batch) < _BATCH and (more := self._queue.get_nowait()) is not None:
                batch.append(more)
        except queue.Empty:
            pass
        unhurried = [self._unhurried.popleft() for _ in range(min(_BATCH, len(self._unhurried)))]
        self._has_more = len(unhurried) == _BATCH
        return unhurried + batch

    def _write(self, batch: list[Item]) -> None:
        """Write items, and tell their callers."""
        if not batch:
            return
        while True:
            try:
                self._store.put_all([item.work for item in batch], max([item.now for item in batch]))
            except StoreNotWritable as error:
                self._writes.open()
                self._report(error)
                self._keep(batch)
                return
            except (StoreAway, StoreBusy) as error:
                if not self._writes.fail():
                    self._report(error)
                    for item in batch:
                        item.tries += 1
                    self._keep(batch)
                    return
                # A transaction in the way ends soon; closing does not shorten this, so that a restart loses nothing.
                time.sleep(_RETRY_SECONDS)
            except Exception as error:  # noqa: BLE001 - whatever an item does, the others have to be written
                if len(batch) == 1:
                    self._on_error(f"one item cannot be stored: {error}")
                    batch[0].resolve(is_durable=False)
                    return
                middle = len(batch) // 2
                self._write(batch[:middle])
                self._write(batch[middle:])
                return
            else:
                self._writes.succeed()
                for item in batch:
                    item.resolve(is_durable=True)
                return

    def _report(self, error: StoreError) -> None:
        """Report that the database is away, once until it is back."""
        if not self._is_reported:
            self._is_reported = True
            self._on_error(f"the store cannot be written: {error}; replies have their state in envelopes meanwhile")

    def _report_end(self) -> None:
        if self._is_reported and not self._writes.is_open and not self._backlog:
            dropped, self._dropped, self._is_reported = self._dropped, 0, False
            lost = f"; {counted(dropped, 'item')} of the time before could not be kept" if dropped else ""
            self._on_error(f"the store can be written again{lost}")

    def _keep(self, batch: Iterable[Item]) -> None:
        """Tell callers that nothing is stored now, and keep what may be stored later."""
        for item in batch:
            with self._lock:
                if item.is_kept and item.tries < _MOST_TRIES and (item.tries or len(self._backlog) < _MOST_WAITING):
                    self._backlog.append(item)
                elif item.is_kept:
                    self._dropped += 1
            item.resolve(is_durable=False)

    def _probe(self) -> None:
        """Find out whether the database answers; if it does, write the backlog."""
        try:
            if self._reads.is_open:
                self._store.database.query("select 1")
                self._reads.succeed()
                self._on_error("the store can be read again")
            if self._writes.is_open:
                self._store.probe(time.time_ns() // 1_000_000)
                self._writes.succeed()
        except StoreError:
            return
        while self._backlog and not self._writes.is_open:
            # Those that failed while the database answered otherwise are written alone.
            size = 1 if self._backlog[0].tries > 1 else _BATCH
            with self._lock:
                batch = [self._backlog[at] for at in range(min(size, len(self._backlog)))]
            self._write(batch)
            with self._lock:
                for _ in batch:  # what failed again stands at the end now
                    self._backlog.popleft()

    def _end(self) -> None:
        lost = len(self._backlog) + self._dropped
        if lost:
            self._on_error(f"the gateway ends, and {counted(lost, 'item')} could not be stored")
