"""The peer's side of a comparison: runs in the peer's environment and measures one round on request.

    python worker.py MODULE TASKS.json

Both sides measure in turn, so that other load on the machine affects both. Each also measures `orjson.dumps` of the
same request, and the results are compared as multiples of that, because times of two processes are not comparable.

A task is a history, a target and the request that segue made. `MODULE` has a function `make_call(task)` that builds the
history in the peer's types and returns the function to time; in some tasks, serializing its result is included. Input
is one line (the name of a task, or an empty line for the end), output one line of JSON. Logging of the peers is off.

- The openai and anthropic clients serialize with `json.dumps`, without escaping and without spaces.
                                                                        (openai 3.49.0, anthropic 2.8.0, 2026-11)
"""

from __future__ import annotations

import gc
import importlib
import json
import logging
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import orjson

DUMPS: Mapping[str, Callable[[object], object]] = {
    "json": lambda made: json.dumps(made, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode(),
    "orjson": orjson.dumps,
}
"""How the result may be serialized: as the official clients do, and with the fastest library."""


def main() -> None:
    """Build every task, print which can run, then measure the requested ones."""
    logging.disable()
    module = importlib.import_module(sys.argv[1])
    given = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    subjects: dict[str, list[tuple[str, Callable[[], object], int]]] = {}
    ready: dict[str, str] = {}
    for task in given["tasks"]:
        try:
            call = with_dumps(module.make_call(task), task.get("dumps"))
            made = call()
        except Exception as error:  # noqa: BLE001  # whatever a peer does, the others go on
            ready[task["name"]] = f"{type(error).__name__}: {error}"[:200]
            continue
        ready[task["name"]] = "" if made else "it made nothing"
        body = task["body"]
        dumps = make_dumps(body)
        runs = {"peer": call, "yardstick": dumps, "control": dumps}
        subjects[task["name"]] = [(name, run, calls_for(run, given["sample_ns"])) for name, run in runs.items()]
    gc.collect()
    gc.freeze()  # as the other side does
    print(json.dumps(ready), flush=True)
    for turn, line in enumerate(sys.stdin):
        if not (name := line.strip()):
            break
        runs_of_task = subjects[name]
        start = turn % len(runs_of_task)
        order = runs_of_task[start:] + runs_of_task[:start]
        print(json.dumps({what: sample(run, calls) for what, run, calls in order}), flush=True)


def with_dumps(call: Callable[[], object], name: str | None) -> Callable[[], object]:
    """Include serializing in the timed function, if the task requires it."""
    if not name:
        return call
    dumps = DUMPS[name]
    return lambda: dumps(call())


def make_dumps(body: object) -> Callable[[], object]:
    """Return the reference function for one request."""
    return lambda: orjson.dumps(body)


def calls_for(run: Callable[[], object], sample_ns: int) -> int:
    """Return how many calls make a sample of the given length."""
    once = min(time_calls(run, 1) for _ in range(2))
    return max(1, round(sample_ns / max(once, 1.0)))


def sample(run: Callable[[], object], calls: int) -> float:
    """Measure after one call that is not counted, like the other side, because the caches hold other data."""
    run()
    return time_calls(run, calls)


def time_calls(run: Callable[[], object], calls: int) -> float:
    """Return the CPU nanoseconds of one call, averaged over `count` calls; freeing the results is included."""
    before = time.process_time_ns()
    for _ in range(calls):
        run()
    return (time.process_time_ns() - before) / calls


if __name__ == "__main__":
    main()
