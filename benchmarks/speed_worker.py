"""Measures hot paths for `speed_guard.py`: reads names from standard input and writes costs, a line each."""

from __future__ import annotations

import sys
from collections.abc import Callable

import msgspec
from hot_paths import HotPath, open_paths
from measure import settled


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
    with open_paths() as listed, settled():
        paths = {path.name: path for path in listed}
        for path in listed:
            check_result(path)
        for line in sys.stdin:
            path = paths.get(line.strip())
            sys.stdout.write(msgspec.json.encode(None if path is None else measure(path)).decode() + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
