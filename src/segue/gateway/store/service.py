"""The store of a running gateway: no call blocks the event loop for long, and no failure of the store fails a reply.

A caller of `put` waits for its commit and learns whether it is durable, so that a state is on disk before the client
has the end of the reply: a gateway that is killed then has lost nothing. While the database is away nobody waits for
it: `is_available` is False, `put` gives False at once, and queries fail at once.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import get_ident
from typing import Final, TypeVar

from segue.envelope.keys import UNIQUE, kind_of
from segue.envelope.state import State
from segue.gateway.store.circuit import Circuit
from segue.gateway.store.database import StoreAway, StoreBusy, StoreError
from segue.gateway.store.store import Store, Stored, StoredConversation, StoredState, StoreLimits
from segue.gateway.store.writer import Item, Writer

_Result = TypeVar("_Result")

_LONGEST_WAIT: Final = 3.0
"""Seconds that a request waits for the database at most; after them the circuit opens."""
_PATIENCE: Final = 0.2
"""Seconds that a write waits for others if nobody waits for it."""
_RETRY_SECONDS: Final = 0.1
_MANY_KEYS: Final = 500
"""Keys of states that are looked for in a thread."""
_READERS: Final = 8
_CLOSE_SECONDS: Final = 10.0
_SWEEP_TRIES: Final = 3
_GROWTH: Final = 20
"""The part of the limit that may be written until the store is swept again."""


class StoreService:
    """Reads and writes a store from an event loop. `on_error` gets a sentence about each failure."""

    def __init__(self, store: Store | None, limits: StoreLimits, on_error: Callable[[str], object]) -> None:
        self.store: Store | None = store
        self._limits = limits
        self._on_error = on_error
        self._reads = Circuit(self._wake)
        self._writes = Circuit(self._wake)
        self._writer: Writer | None = None
        self._readers: ThreadPoolExecutor | None = None
        self._written: deque[tuple[asyncio.Future[bool], bool]] = deque()
        self._is_waking = False
        self._waiting: deque[tuple[float, asyncio.Future[bool]]] = deque()

    def __repr__(self) -> str:
        return f"StoreService({self.store!r})"

    def _wake(self) -> None:
        if self._writer is not None:
            self._writer.wake()

    @property
    def is_available(self) -> bool:
        """Whether there is a store, and it answers."""
        return self.store is not None and not self._writes.is_open and not self._reads.is_open

    def start(self) -> None:
        """Start the threads that read and write."""
        if self.store is not None and self._writer is None:
            self._is_waking = False
            self._waiting.clear()  # of another event loop
            self._writer = Writer(self.store, self._reads, self._writes, self._on_error, later=_later, soon=_soon)
            self._writer.start()

    async def close(self) -> None:
        """Write what waits, and close the database; who waits for something that cannot be written is told."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.flush()
        is_ended = writer is None or await asyncio.to_thread(writer.close, _CLOSE_SECONDS)
        if not is_ended:
            self._on_error("the database does not answer; what waited for it was not stored")
        if self._readers is not None:
            readers, self._readers = self._readers, None
            await asyncio.to_thread(readers.shutdown, wait=is_ended, cancel_futures=True)
        if self.store is not None and is_ended:
            self.store.close()

    # -- reading -------------------------------------------------------------------------------------------------------

    async def find(
        self, keys: Sequence[str], conversation: str, now: int, tenant: str = ""
    ) -> tuple[dict[str, list[State]], StoredConversation | None]:
        """Return the states of a tenant's keys, and a conversation; none if the store fails."""
        store = self.store
        if store is None:
            return {}, None
        read = await self.read(partial(store.find, keys, conversation, now, tenant), is_long=len(keys) > _MANY_KEYS)
        if read is None:
            # Whether a weak key has one state alone is not known without the database.
            return self._with_waiting({}, [key for key in keys if kind_of(key) not in UNIQUE]), None
        if read.used.ids:
            self.put_later(read.used, now)
        return self._with_waiting(read.states, keys), read.conversation

    def _with_waiting(self, found: dict[str, list[State]], keys: Sequence[str]) -> dict[str, list[State]]:
        """Add the states that wait for the database."""
        waiting = [] if self._writer is None else self._writer.waiting()
        if not waiting:
            return found
        wanted = frozenset(keys)
        for work in waiting:
            if isinstance(work, StoredState):
                for key in wanted.intersection(work.keys):
                    known = found.setdefault(key, [])
                    if work.state not in known:
                        known.insert(0, work.state)
        return found

    async def read(self, work: Callable[[], _Result], *, is_long: bool = False) -> _Result | None:
        """Run a query; None if the store fails. `is_long`: it reads many rows, and runs in a thread in any case."""
        try:
            return await self.fetch(work, is_long=is_long)
        except StoreError as error:
            if not self._reads.is_open:
                self._on_error(f"the store cannot be read: {error}")
            return None

    async def fetch(self, work: Callable[[], _Result], *, is_long: bool = False) -> _Result:
        """Run a query, again if the connection broke. `is_long` as in `read`.

        Raises:
            StoreError: the store fails; at once while it is known to be away.
        """
        store = self.store
        assert store is not None, "a query needs a store"
        if self._reads.is_open:
            raise StoreAway("the database does not answer")
        while True:
            try:
                found = work() if store.database.is_local and not is_long else await self._run(store, work)
            except (StoreAway, StoreBusy) as error:
                if not self._reads.fail():
                    self._on_error(f"the store cannot be read: {error}")
                    raise
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                self._reads.succeed()
                return found

    async def _run(self, store: Store, work: Callable[[], _Result]) -> _Result:
        if self._readers is None:
            self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="segue-store")
        running = asyncio.get_running_loop().run_in_executor(self._readers, work)
        if store.database.is_local:  # a file does not go away: what takes long here waits for the processor
            return await running
        try:
            return await asyncio.wait_for(running, _LONGEST_WAIT)
        except TimeoutError as error:
            self._reads.open()
            raise StoreAway(f"no answer in {_LONGEST_WAIT:g} seconds") from error

    # -- writing -------------------------------------------------------------------------------------------------------

    async def put(self, work: Stored, now: int, *, is_kept: bool = False, is_alone: bool = False) -> bool:
        """Write, wait for the commit, and return whether it is durable.

        `is_kept`: what is not stored now may be stored later, when the database answers again. `is_alone`: it does not
        matter whether what was put before it with `put_later` is written; otherwise that is.
        """
        if self._writer is None:
            return False
        if self._writes.is_open:
            if is_kept:
                self._writer.keep(Item(work, now, None, is_kept=True))
            return False
        loop = asyncio.get_running_loop()
        done: asyncio.Future[bool] = loop.create_future()
        if not self._enqueue(Item(work, now, partial(self._note_written, done, get_ident()), is_kept, is_alone)):
            return False
        self._waiting.append((loop.time() + _LONGEST_WAIT, done))
        if len(self._waiting) == 1:
            loop.call_later(_LONGEST_WAIT, self._check_waiting)
        return await done

    def _note_written(self, done: asyncio.Future[bool], waiting: int, is_durable: bool) -> None:
        """Resolve what is written, in the thread that waits for it."""
        if get_ident() == waiting:
            if not done.done():
                done.set_result(is_durable)
            return
        self._written.append((done, is_durable))
        loop = done.get_loop()
        if not self._is_waking and not loop.is_closed():  # else the loop takes it with the others
            self._is_waking = True
            loop.call_soon_threadsafe(self._resolve)

    def _resolve(self) -> None:
        """Resolve what is written. A wake-up of the event loop costs more than the rest of it."""
        self._is_waking = False
        while self._written:
            done, is_durable = self._written.popleft()
            if not done.done():
                done.set_result(is_durable)

    def _check_waiting(self) -> None:
        """Stop waiting for what should be written by now: one timer for all, which ends when nobody waits."""
        loop, waiting = asyncio.get_running_loop(), self._waiting
        while waiting and (waiting[0][1].done() or waiting[0][0] <= loop.time()):
            _, done = waiting.popleft()
            if not done.done():
                if not self._writes.is_open:
                    self._on_error("the store does not answer; replies have their state in envelopes meanwhile")
                self._writes.open()
                done.set_result(False)
        if waiting:
            loop.call_at(waiting[0][0], self._check_waiting)

    def put_later(self, work: Stored, now: int) -> None:
        """Write without waiting."""
        if self._writer is not None:
            self._enqueue(Item(work, now, None, is_kept=True))

    def _enqueue(self, item: Item) -> bool:
        assert self._writer is not None, "only a service that was started writes"
        if self._writer.put(item):
            return True
        self._on_error("the store is too slow; the state of a reply was not stored")
        return False

    @property
    def has_grown(self) -> bool:
        """Whether much was written since the last sweep."""
        return self.store is not None and self.store.grown > self._limits.state_bytes // _GROWTH

    def sweep(self, now: int) -> None:
        """Delete what is too old or too much; blocks."""
        if self.store is None or not self.is_available:
            return
        for left in reversed(range(_SWEEP_TRIES)):
            try:
                self.store.sweep(self._limits, now)
            except StoreBusy as error:
                if not left:
                    self._on_error(f"old states cannot be deleted: {error}")
                time.sleep(_RETRY_SECONDS)
            except StoreError as error:
                self._on_error(f"old states cannot be deleted: {error}")
                return
            else:
                return


def _later(call: Callable[[], None]) -> None:
    """Call a function after a moment, or at once where no event loop runs."""
    try:
        asyncio.get_running_loop().call_later(_PATIENCE, call)
    except RuntimeError:
        call()


def _soon(call: Callable[[], None]) -> bool:
    """Call a function in the next turn of the event loop; give False where none runs."""
    try:
        asyncio.get_running_loop().call_soon(call)
    except RuntimeError:
        return False
    return True
