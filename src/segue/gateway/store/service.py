"""The store of a running gateway: no call blocks the event loop for long, and no failure of the store fails a reply.

Writes go to one thread, which commits those that wait together. A caller waits for its commit, so that a state is on
disk before the client has the end of the reply: a gateway that is killed then has lost nothing.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, TypeVar

from segue.envelope.state import State
from segue.gateway.store.database import StoreError
from segue.gateway.store.store import Limits, Store, StoredReply, StoredRow, StoredState

_Result = TypeVar("_Result")
_Done: TypeAlias = tuple[asyncio.AbstractEventLoop, "asyncio.Future[None]"]
_Work: TypeAlias = tuple[StoredState | StoredRow | StoredReply, int, _Done | None]

_BATCH: Final = 100
_PATIENCE: Final = 0.2
"""Seconds that a write waits for others if nobody waits for it."""
_MOST_WAITING: Final = 5_000
"""Writes that wait at most; while the database does not answer, further ones are dropped."""


class StoreService:
    """Reads and writes a store from an event loop. `on_error` gets a sentence about each failure."""

    def __init__(self, store: Store | None, limits: Limits, on_error: Callable[[str], object]) -> None:
        self.store: Store | None = store
        self._limits = limits
        self._on_error = on_error
        self._queue: queue.Queue[_Work | None] = queue.Queue(_MOST_WAITING)
        self._thread: threading.Thread | None = None

    def __repr__(self) -> str:
        return f"StoreService({self.store!r})"

    def start(self) -> None:
        """Start the thread that writes."""
        if self.store is not None and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="segue-store", daemon=True)
            self._thread.start()

    async def close(self) -> None:
        """Write what waits, and close the database."""
        if self._thread is not None:
            thread, self._thread = self._thread, None
            await asyncio.to_thread(self._queue.put, None)
            await asyncio.to_thread(thread.join, 10.0)
        if self.store is not None:
            self.store.close()

    # -- reading -------------------------------------------------------------------------------------------------------

    async def get_states(self, keys: Sequence[str], now: int) -> dict[str, list[State]]:
        """Give the states of keys; none if the store fails."""
        store = self.store
        if store is None or not keys:
            return {}
        return await self.read(lambda: store.get_states(keys, now)) or {}

    async def read(self, work: Callable[[], _Result]) -> _Result | None:
        """Run a query; None if the store fails."""
        store = self.store
        assert store is not None, "a query needs a store"
        try:
            return work() if store.database.is_local else await asyncio.to_thread(work)
        except StoreError as error:
            self._on_error(f"the store cannot be read: {error}")
            return None

    # -- writing -------------------------------------------------------------------------------------------------------

    async def put(self, work: StoredState | StoredRow | StoredReply, now: int) -> None:
        """Write and wait for the commit."""
        if self._thread is None:
            return
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        if self._enqueue((work, now, (loop, done))):
            await done

    def put_later(self, work: StoredState | StoredRow | StoredReply, now: int) -> None:
        """Write without waiting."""
        if self._thread is not None:
            self._enqueue((work, now, None))

    def _enqueue(self, work: _Work) -> bool:
        try:
            self._queue.put_nowait(work)
        except queue.Full:
            self._on_error("the store is too slow; the state of a reply was not stored")
            return False
        return True

    def _run(self) -> None:
        while True:
            first = self._queue.get()
            batch: list[_Work] = []
            is_last = first is None
            if first is not None:
                batch.append(first)
            end = time.monotonic() + _PATIENCE
            while not is_last and len(batch) < _BATCH:
                # What nobody waits for is written together with what comes next.
                is_urgent = any(done is not None for _, _, done in batch)
                try:
                    more = self._queue.get(block=not is_urgent, timeout=max(0.001, end - time.monotonic()))
                except queue.Empty:
                    break
                if more is None:
                    is_last = True
                else:
                    batch.append(more)
            self._write(batch)
            if is_last:
                return

    def _write(self, batch: list[_Work]) -> None:
        store = self.store
        if store is None or not batch:
            return
        now = max(at for _, at, _ in batch)
        states = [work for work, _, _ in batch if isinstance(work, StoredState)]
        rows = [work for work, _, _ in batch if isinstance(work, StoredRow)]
        replies = [work for work, _, _ in batch if isinstance(work, StoredReply)]
        try:
            store.put_all(states, rows, replies, now)
        except Exception as error:  # noqa: BLE001 - whatever fails here, the thread has to go on
            self._on_error(f"the store cannot be written: {error}")
        for _, _, done in batch:
            if done is not None:
                loop, future = done
                if not loop.is_closed():
                    loop.call_soon_threadsafe(_resolve, future)

    def sweep(self, now: int) -> None:
        """Delete what is too old or too much; blocks."""
        if self.store is not None:
            try:
                self.store.sweep(self._limits, now)
            except StoreError as error:
                self._on_error(f"old states cannot be deleted: {error}")


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
