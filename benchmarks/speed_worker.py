"""Measures hot paths for `speed_guard.py`: reads names from standard input and writes costs, a line each."""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Callable

import msgspec
from hot_paths import HotPath, open_paths
from measure import settled
from speed_guard import PLANTED

_STEPS = range(100_000)
"""A slowdown of some 1.5 ms for each call. The longest path, a request to a gateway, takes some 10 ms."""
_kept: list[bytes] = []


def plant(path: HotPath) -> None:
    """Turn the planted slowdown of a path on, and all others off: it takes time and keeps memory."""

    def slow_down(through: str) -> None:
        if through == path.through:
            _kept[:] = [bytes(1_000_000)]
            for _ in _STEPS:
                pass

    builtins.planted = slow_down  # pyright: ignore[reportAttributeAccessIssue] - planted code looks for it there
    os.environ[PLANTED] = path.through  # for new interpreters


def measure(path: HotPath) -> tuple[float, float]:
    """Measure a path and its reference; the second call of each finds its data in the processor's caches."""
    spent = min(path.measure(path.begin()) for _ in range(2))
    floor = min(path.measure(path.yardstick) for _ in range(2))
    return spent, floor


def check_result(path: HotPath) -> None:
    """See that a path computes something: a function that was not called is not a result.

    Raises:
        TypeError: the call gives nothing, or a function.
    """
    result = path.begin()()
    if not result or isinstance(result, Callable):
        raise TypeError(f"{path.name} gives {result!r}: it measures nothing")


def main() -> None:
    """Answer until the input ends."""
    has_plants = bool(os.environ.get(PLANTED))
    with open_paths() as listed, settled():
        paths = {path.name: path for path in listed}
        for path in listed:
            check_result(path)
        for line in sys.stdin:
            path = paths.get(line.strip())
            if path is not None and has_plants:
                plant(path)
            sys.stdout.write(msgspec.json.encode(None if path is None else measure(path)).decode() + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
