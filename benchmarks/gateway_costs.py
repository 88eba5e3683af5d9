"""The CPU time of a gateway process for a request and for a streamed event, compared with uvicorn and httpx2 alone.

Every server is a process of its own (`gateway_servers`), so that the time of clients and of the upstream is not
counted. Rounds take turns, and a second bare server is the control: its ratio to the first is the error of the run.

A request is the next step of a conversation: its last turn and the results of its calls are new, as a program sends
them. "the first" requests are of conversations that the gateway has not seen.

`python benchmarks/gateway_costs.py FOLDER...` compares the `src` folders of several commits instead.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any, Final, Self

import orjson
from cases import CLAUDE
from figures import Figure
from gateway_servers import EVENTS, KEY
from measure import CONTROL
from replies import make_history

from segue import prepare

_LENGTH: Final = 20
"""Messages of the request: about 38 KB, as agents send them."""
_BARE: Final = "bare"
_PLAIN: Final = "plain"
_NEW: Final = b"00000000"
"""In a body: replaced by another number for each request."""
_NUMBERS: Final = count(1)
_SCRIPT: Final = Path(__file__).with_name("gateway_servers.py")


class Process:
    """A server in a process of its own; it ends with the `with` block."""

    def __init__(self, role: str, *given: str, source: str | None = None) -> None:
        environment = {**os.environ, **({"PYTHONPATH": source} if source else {})}
        self._process = subprocess.Popen(
            [sys.executable, str(_SCRIPT), role, *given],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.id: int = self._process.pid
        self.port: int = int(self._ask(""))

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None, "it is a pipe"
        assert self._process.stdout is not None, "it is a pipe"
        self._process.stdin.write(line)
        self._process.stdin.flush()
        return self._process.stdout.readline()

    def cpu(self) -> int:
        """Give the CPU time so far, in nanoseconds."""
        return int(self._ask("\n"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def measure_gateway(*, quick: bool = False, sources: Sequence[str] = ()) -> list[Figure]:
    """Measure whole requests, one and 32 at a time, streams, and the time to the first byte."""
    whole, streamed = (make_body(stream=stream) for stream in (False, True))
    rounds, requests, streams = (2, 32, 8) if quick else (8, 128, 200)
    with ExitStack() as stack:
        upstream = stack.enter_context(Process("upstream"))
        url = f"http://127.0.0.1:{upstream.port}"
        servers = {name: stack.enter_context(Process("bare", url)) for name in (_BARE, CONTROL)}
        for name in sources or ("gateway",):
            servers[name] = stack.enter_context(Process("gateway", url, source=name if sources else None))
        for server in servers.values():
            for stream in (False, True):
                _load(server, make_body(stream=stream, is_before=True), 1, 1)
            _load(server, streamed, streams, streams)  # compiled, connected, and caches filled
            _load(server, whole, 64, 32)
        figures: list[Figure] = []
        spent: dict[str, list[float]] = {}
        for at_once in (1, 32):
            spent = _spend(servers, whole, rounds, requests, at_once)
            what = f"{len(whole) // 1000} KB, Messages to Chat, {at_once} at a time"
            figures += _compare(f"gateway.request.{at_once}", what, "a request", spent, requests)
        alone = {name: min(times) / requests * streams for name, times in spent.items()}
        spent = _spend(servers, make_body(is_first=True), max(2, rounds // 2), requests, 1)
        figures += _compare("", "the first of a conversation, 1 at a time", "a request", spent, requests)
        spent = _spend(servers, streamed, max(2, rounds // 2), streams, streams)
        what, events = f"{streams} live streams", streams * (EVENTS + 3)
        figures += _compare("gateway.event", what, "an event with its share of the request", spent, events)
        rest = {name: [max(1.0, each - alone[name]) for each in times] for name, times in spent.items()}
        figures += _compare("", f"{what} without their requests", "an event", rest, events)
        firsts: dict[str, list[float]] = {name: [] for name in servers}
        for _ in range(rounds * 5):
            for name, server in servers.items():
                firsts[name] += _load(server, streamed, 1, 1, is_cut=True)
        figures += _compare("gateway.first", "a stream alone", "to the first byte, wall clock", firsts, 1)
        if not sources:
            figures += _measure_store(url, whole, rounds, requests)
    return figures


def _measure_store(upstream: str, body: bytes, rounds: int, count: int) -> list[Figure]:
    """Measure what the store, the counting of a key and telemetry add to a translated request."""
    figures: list[Figure] = []
    roles = {_PLAIN: _PLAIN, CONTROL: _PLAIN, "kept": "kept"}
    with ExitStack() as stack:
        servers = {name: stack.enter_context(Process(role, upstream)) for name, role in roles.items()}
        for server in servers.values():
            _load(server, body, 128, 32)
        for at_once in (1, 32):
            spent = _spend(servers, body, rounds * 2, count, at_once)
            what = f"store, keys and telemetry, {at_once} at a time"
            figures += _compare(f"gateway.kept.{at_once}", what, "a request", spent, count, base=_PLAIN)
    return figures


def make_body(*, stream: bool = False, is_first: bool = False, is_before: bool = False) -> bytes:
    """Write the body of a request: the next step of a conversation.

    `is_before`: the step before it. `is_first`: of another conversation each time.
    """
    body: dict[str, Any] = prepare(make_history(_LENGTH, CLAUDE), CLAUDE).body | {"model": "m", "stream": stream}
    turns = body["messages"]
    at = 1 if is_first else max(at for at, turn in enumerate(turns) if turn["role"] == "assistant")
    if is_before:
        del turns[at:]
        return orjson.dumps(body)
    for block in (*turns[at]["content"], *turns[at + 1]["content"]):
        for key in {"id", "tool_use_id"} & block.keys():
            block[key] += _NEW.decode()
    return orjson.dumps(body)


def _spend(
    servers: Mapping[str, Process], body: bytes, rounds: int, count: int, at_once: int
) -> dict[str, list[float]]:
    spent: dict[str, list[float]] = {name: [] for name in servers}
    for at in range(rounds):
        names = list(servers)
        for name in names[at % len(names) :] + names[: at % len(names)]:
            before = servers[name].cpu()
            _load(servers[name], body, count, at_once)
            spent[name].append(servers[name].cpu() - before)
    return spent


def _compare(
    key: str, what: str, unit: str, spent: Mapping[str, Sequence[float]], count: int, *, base: str = _BARE
) -> list[Figure]:
    figures: list[Figure] = []
    for name, times in spent.items():
        ratios = [time / bare for time, bare in zip(times, spent[base], strict=True)]
        if name != base:
            low, _, high = statistics.quantiles(ratios, n=4)
            goal = "" if name == CONTROL else key
            value = min(times) / min(spent[base])
            figures.append(Figure(goal, f"{what}: {name} / {base}", "times", value, f"{low:.2f} to {high:.2f}"))
        if name != CONTROL:
            figures.append(Figure("", f"{what}: {name}, {unit}", "us", min(times) / count / 1e3))
    return figures


def _load(server: Process, body: bytes, count: int, at_once: int, *, is_cut: bool = False) -> list[float]:
    """Send requests over connections that stay open; give the nanoseconds to the first byte of each reply.

    `is_cut`: the rest of the reply is not read.
    """
    head = (
        f"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nx-api-key: {KEY}\r\n"
        f"anthropic-version: 2023-06-01\r\ncontent-length: {len(body)}\r\n\r\n"
    ).encode()

    async def call(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> float:
        begun = time.perf_counter_ns()
        writer.write(head + body.replace(_NEW, b"%08d" % next(_NUMBERS)))
        given = (await reader.readuntil(b"\r\n\r\n")).lower()
        if not given.startswith(b"http/1.1 200"):
            raise AssertionError(f"the server answered {given!r}")
        if b"content-length:" in given:
            await reader.readexactly(int(given.partition(b"content-length:")[2].split()[0]))
            return time.perf_counter_ns() - begun
        await reader.readuntil(b"\n\n")
        first = time.perf_counter_ns() - begun
        if not is_cut:
            await reader.readuntil(b"\r\n0\r\n\r\n")
        return first

    async def work(number: int) -> list[float]:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        found = [await call(reader, writer) for _ in range(number)]
        writer.close()
        return found

    async def work_all() -> list[float]:
        found = await asyncio.gather(*(work(count // at_once) for _ in range(at_once)))
        return [each for times in found for each in times]

    return asyncio.run(work_all())


if __name__ == "__main__":
    for figure in measure_gateway(sources=sys.argv[1:]):
        print("  ".join(figure.row()), flush=True)
