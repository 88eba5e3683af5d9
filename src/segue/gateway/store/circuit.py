"""A circuit breaker: after a second of failures nobody waits for the database any more, until it answers again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

_GRACE: Final = 1.0
"""Seconds of failures before the circuit opens: a connection that broke is made again within them."""


class Circuit:
    """Whether an operation is worth a try. It may be used from several threads.

    An operation that fails calls `fail` and is repeated while it gives True. `on_open` is called when the circuit
    opens. The circuit closes when an operation succeeds: the thread that writes tries one from time to time.
    """

    def __init__(self, on_open: Callable[[], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._on_open = on_open
        self._clock = clock
        self._failing_since: float | None = None
        self.is_open: bool = False

    def fail(self) -> bool:
        """Note a failure; return whether another try is worth it."""
        now = self._clock()
        if self._failing_since is None:
            self._failing_since = now
        elif now - self._failing_since >= _GRACE:
            self.open()
        return not self.is_open

    def open(self) -> None:
        """Open the circuit at once."""
        if not self.is_open:
            self.is_open = True
            self._on_open()

    def succeed(self) -> bool:
        """Note a success; return whether the circuit was open."""
        was_open = self.is_open
        self._failing_since = None
        self.is_open = False
        return was_open
