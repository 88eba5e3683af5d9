"""Writes to a store, in a thread or on the event loop. Every caller learns whether its own item is durable.

- A local database commits in a fraction of a millisecond, less than the way to a thread and back costs. So what is put
  in one turn of the event loop is committed there, together; what a commit takes is measured. While commits are slow,
  another transaction is in the way, or the thread has something to write, everything goes to the thread.

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
from contextlib import suppress
from typing import Final, final

import msgspec

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
_SLOW: Final = 0.01
"""Seconds of recent commits, on average, after which the next ones are left to the thread. A commit takes 0.2 ms; more
where other programs take the processor, which a thread does not help."""
_STALLED: Final = 0.1
"""Seconds of one commit after which the next ones are."""
_SHARE: Final = 0.1
"""The share of the newest commit in the average."""
_REST: Final = 1.0
"""Seconds for which they are, at first; twice as long after each slow commit that follows, up to a minute."""
_LONGEST_REST: Final = 60.0
_CHECKPOINT: Final = 256
"""Commits of the event loop after which the thread moves what they wrote from the log into the database."""
_LARGE: Final = 64_000
"""Bytes of an item that the thread writes."""


@final
class Item(msgspec.Struct, eq=False):
    """Something to write, when it was made, and who waits for it. `done` is called once, in the writing thread."""

    work: Stored
    now: int
    done: Callable[[bool], object] | None = None
    is_kept: bool = False
    """Whether it may still be stored after its caller learned that it is not."""
    is_alone: bool = False
    """Whether it may be written before what was put earlier and nobody waits for."""
    tries: int = 0

    def resolve(self, *, is_durable: bool) -> None:
        """Tell the caller; whoever waits is told once."""
        done, self.done = self.done, None
        if done is not None:
            done(is_durable)


class Writer:
    """Writes items in its own thread, or on the event loop. `on_error` gets a sentence about each failure.

    `soon` calls a function in the next turn of the event loop; without it, or if it gives False, the thread writes.
    What nobody waits for is written with the next item that somebody waits for. `later` is given what wakes the thread
    for it otherwise, to be called after a moment in which more may come.
    """

    def __init__(
        self,
        store: Store,
        reads: Circuit,
        writes: Circuit,
        on_error: Callable[[str], object],
        *,
        later: Callable[[Callable[[], None]], object],
        soon: Callable[[Callable[[], None]], bool] = lambda _: False,
    ) -> None:
        self._store = store
        self._soon = soon
        self._now: list[Item] = []  # committed in the next turn of the event loop
        self._handed = 0  # items that the thread was given, and those that it has written
        self._taken = 0
        self._turn = threading.Lock()
        self._commits = 0
        self._rests_until = 0.0
        self._rest = _REST
        self._pace = 0.0
        self._later = later
        self._reads = reads
        self._writes = writes
        self._on_error = on_error
        self._queue: queue.SimpleQueue[Item | None] = queue.SimpleQueue()
        self._unhurried: deque[Item] = deque()
        self._has_large = False  # among what nobody waits for
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
            if _size_of(item) >= _LARGE:
                self._has_large = True
            if not self._is_announced:  # else the thread takes it with the others
                self._is_announced = True
                self._later(self._take_unhurried)
            return True
        if self._now:
            self._now.append(item)
            return True
        if self._may_commit and _size_of(item) < _LARGE and self._soon(self._commit):
            self._now.append(item)
            return True
        return self._hand(item)

    def _hand(self, item: Item) -> bool:
        """Return an item to the thread."""
        if self._queue.qsize() >= _MOST_WAITING:
            return False
        self._handed += 1
        self._queue.put(item)
        return True

    # -- the event loop ------------------------------------------------------------------------------------------------

    @property
    def _may_commit(self) -> bool:
        """Whether the event loop may write: the database is fast, and the thread has nothing older."""
        return (
            self._store.database.is_local
            and self._handed == self._taken
            and not self._backlog
            and not self._writes.is_open
            and time.monotonic() >= self._rests_until
        )

    def _commit(self) -> None:
        """Write what was put in this turn. What nobody waits for comes later, in larger batches: fewer pages change."""
        batch, self._now = self._now, []
        is_alone = all(item.is_alone for item in batch)
        if not self._in_turn(lambda: self._write_here(batch) if is_alone else self._commit_all(batch)):
            self._hand_all(batch)

    def _commit_all(self, batch: list[Item]) -> bool:
        """Write everything that was put; False if the thread has to, because there is too much of it."""
        is_much = len(self._unhurried) > _BATCH or self._has_large
        return not is_much and (not self._unhurried or self._commit_unhurried()) and self._write_here(batch)

    def _commit_unhurried(self) -> bool:
        """Write what nobody waits for, if all of it is small."""
        if self._has_large:
            return False
        unhurried = self._take_batch()
        if unhurried and not self._write_here(unhurried):
            self._unhurried.extendleft(reversed(unhurried))
            return False
        return bool(unhurried)

    def _take_batch(self) -> list[Item]:
        """Take some of what nobody waits for."""
        take = self._unhurried.popleft
        return [take() for _ in range(min(_BATCH, len(self._unhurried)))]

    def _in_turn(self, work: Callable[[], bool]) -> bool:
        """Do work while the thread does nothing; False if that is not possible now."""
        if not self._may_commit or not self._turn.acquire(blocking=False):
            return False
        try:
            return work()
        finally:
            self._turn.release()

    def _write_here(self, items: list[Item]) -> bool:
        """Write items; False if the thread has to try."""
        began = time.perf_counter()
        try:
            self._store.put_all([item.work for item in items], max([item.now for item in items]), waits=False)
        except Exception:  # noqa: BLE001 - the thread tries again, and finds out which item is to blame
            self._note_pace(_STALLED)
            return False
        self._note_pace(time.perf_counter() - began)
        self._writes.succeed()
        for item in items:
            item.resolve(is_durable=True)
        self._commits += 1
        if self._commits == _CHECKPOINT:
            self.wake()
        return True

    def _note_pace(self, seconds: float) -> None:
        """Note how long a commit took, and rest if that is too long."""
        self._pace += (seconds - self._pace) * _SHARE
        if self._pace > _SLOW or seconds >= _STALLED:
            self._rests_until = time.monotonic() + self._rest
            self._rest = min(2 * self._rest, _LONGEST_REST)
            self._pace = 0.0
        else:
            self._rest = max(_REST, self._rest * 0.99)

    def _hand_all(self, batch: list[Item]) -> None:
        for item in batch:
            if not self._hand(item):
                item.resolve(is_durable=False)

    def flush(self) -> None:
        """Leave to the thread what was put in this turn; called on the event loop before `close`."""
        batch, self._now = self._now, []
        self._hand_all(batch)

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
        if not self._unhurried:
            return
        if not self._in_turn(self._commit_unhurried):
            self.wake()
        elif self._unhurried:
            self._is_announced = True
            if not self._soon(self._take_unhurried):  # what came since then is more than a batch
                self._later(self._take_unhurried)

    def waiting(self) -> list[Stored]:
        """Return what is in the backlog, the oldest first."""
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
            first = self._wait(None if is_idle and not is_closing else 0.0 if is_closing else _PROBE_SECONDS)
            with self._turn:
                given, unhurried = self._collect(first)
                if self._writes.is_open and not is_closing:
                    self._keep(unhurried + given)
                else:
                    self._write(unhurried + given)
                if self._backlog or self._writes.is_open or self._reads.is_open:
                    now = time.monotonic()
                    if now >= next_probe or is_closing:
                        self._probe()
                        next_probe = time.monotonic() + _PROBE_SECONDS
                self._taken += len(given)
            if self._commits >= _CHECKPOINT:
                self._commits = 0
                with suppress(StoreError):
                    self._store.database.checkpoint()
            self._report_end()
            if is_closing and self._queue.empty() and not self._unhurried:
                self._end()
                return

    def _wait(self, seconds: float | None) -> Item | None:
        """Wait for an item, or for a call of `wake`."""
        try:
            return self._queue.get(block=seconds != 0.0 and not self._has_more, timeout=seconds or None)
        except queue.Empty:
            return None

    def _collect(self, first: Item | None) -> tuple[list[Item], list[Item]]:
        """Take the items that wait with the first one, and those that nobody waits for."""
        batch: list[Item] = [] if first is None else [first]
        with suppress(queue.Empty):
            while batch and len(batch) < _BATCH and (more := self._queue.get_nowait()) is not None:
                batch.append(more)
        is_last = len(self._unhurried) <= _BATCH
        if is_last:
            self._has_large = False  # before they are taken: the event loop may add more at any time
        unhurried = self._take_batch()
        self._has_more = not is_last
        return batch, unhurried

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
                for _ in batch:  # what failed again is at the end now
                    self._backlog.popleft()

    def _end(self) -> None:
        lost = len(self._backlog) + self._dropped
        if lost:
            self._on_error(f"the gateway ends, and {counted(lost, 'item')} could not be stored")


def _size_of(item: Item) -> int:
    """Return the bytes of an item that has its data already."""
    return len(getattr(item.work, "data", b""))
