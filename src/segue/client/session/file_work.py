"""File work of one conversation, done in the order it was submitted and never on a running event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock
from typing import TypeVar

from segue.client.http.loops import find_loop

_Result = TypeVar("_Result")


class FileWork:
    """A queue of functions. A thread of the running loop's executor runs them one at a time.

    Where no event loop runs in the calling thread, the caller runs them, before `submit` returns.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._queue: deque[Callable[[], None]] = deque()
        self._is_running = False

    def submit(self, work: Callable[[], _Result]) -> Future[_Result]:
        """Add a function to the queue. It runs even if no caller waits for the result."""
        future: Future[_Result] = Future()

        def run() -> None:
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001  # the exception is raised in the waiting caller
                future.set_exception(error)

        with self._lock:
            self._queue.append(run)
            if self._is_running:
                return future
            self._is_running = True
        loop = find_loop()
        if loop is None:
            self._run_queue()
        else:
            loop.run_in_executor(None, self._run_queue)
        return future

    def _run_queue(self) -> None:
        while True:
            with self._lock:
                if not self._queue:
                    self._is_running = False
                    return
                run = self._queue.popleft()
            run()


async def wait_for_work(future: Future[_Result]) -> _Result:
    """Wait for the result. Cancelling the waiting task does not cancel the work."""
    if future.done():
        return future.result()
    return await asyncio.shield(asyncio.wrap_future(future))
