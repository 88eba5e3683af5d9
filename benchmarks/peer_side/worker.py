"""The other side of a comparison: runs in a peer's environment, and measures one round whenever it is told to.

    python worker.py MODULE TASKS.json

Both sides take turns, so a busy moment hits them alike; and each measures `orjson.dumps` of one and the same request
beside its own work, so that what is compared are multiples of that and never the times of two processes.

A task is a history, a target and the request that segue made of it. `MODULE` has a function `make_call(task)` that
builds the history in the peer's own types and gives what is to be timed; where the task says so, serialising what it
gave is part of it. One line in (the name of a task, or nothing for the end), one line of JSON out. What peers would
write into a log is switched off.

- The openai and anthropic clients serialise with `json.dumps`, not escaping and without blanks.
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
"""What may follow the peer's work: what its clients do, and the fastest there is."""


def main() -> None:
    """Build every task, say which can be run, then measure what is asked for."""
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
    """Add serialising to what is timed, if asked for."""
    if not name:
        return call
    dumps = DUMPS[name]
    return lambda: dumps(call())


def make_dumps(body: object) -> Callable[[], object]:
    """Give the yardstick for one request."""
    return lambda: orjson.dumps(body)


def calls_for(run: Callable[[], object], sample_ns: int) -> int:
    """Say how many calls make a sample of the wanted length."""
    once = min(time_calls(run, 1) for _ in range(2))
    return max(1, round(sample_ns / max(once, 1.0)))


def sample(run: Callable[[], object], calls: int) -> float:
    """Measure after one call that is not counted, as the other side does: the caches hold what ran before."""
    run()
    return time_calls(run, calls)


def time_calls(run: Callable[[], object], calls: int) -> float:
    """Give the CPU nanoseconds of one call, over so many in a row; freeing the results is part of it."""
    before = time.process_time_ns()
    for _ in range(calls):
        run()
    return (time.process_time_ns() - before) / calls


if __name__ == "__main__":
    main()
