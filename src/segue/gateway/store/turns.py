"""Turns of the processes that write to one SQLite file, by the lock of another file.

Facts:
- A lock of flock(2) is freed when its process ends, however that happens.                (flock(2), Linux and macOS)
- It cannot be waited for with a limit of time, so it is tried again every few milliseconds.
"""

from __future__ import annotations

import sys
import time
from typing import Final

from segue.gateway.store.database import StoreBusy

_SECONDS: Final = 1.0
"""How long a thread waits for its turn, as for a lock of SQLite."""
_NAP: Final = 0.0002
_NAPS: Final = 5
"""How often the event loop tries again: another worker's commit takes 0.2 ms, the way to a thread and back more."""
_LONG_NAP: Final = 0.002


def take_turn(file: int, *, waits: bool) -> None:
    """Wait for the turn of this process, without `waits` for a millisecond.

    Raises:
        StoreBusy: it did not come in time.
    """
    if sys.platform == "win32":
        return
    import fcntl

    until = time.monotonic() + _SECONDS
    naps = _NAPS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            naps -= 1
            if naps < 0 and (not waits or time.monotonic() > until):
                raise StoreBusy("another worker writes") from None
            time.sleep(_NAP if naps >= 0 else _LONG_NAP)
        else:
            return


def end_turn(file: int) -> None:
    """End the turn of this process, if it has it."""
    if sys.platform == "win32":
        return
    import fcntl

    fcntl.flock(file, fcntl.LOCK_UN)
