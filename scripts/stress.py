"""Stress test with 10,000 concurrent streams: `python scripts/stress.py [--streams N] [--clients N]`.

All streams are open at the same time: the server, a separate process, sends the first half of each reply and waits
until every stream has received it. Then a quarter of the streams is cancelled, an eighth is reset by the server, and
the rest is read to the end. Afterwards every stream must have had exactly one terminal event and have a message that
can be stored, no task and no connection may be left, and no objects may have leaked. Exits with 1 otherwise.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import resource
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import IO, Final

import httpx2

from segue import Context, Model, UserMessage, dump_message, load_message
from segue.client.http.async_streams import AsyncStream
from segue.client.http.clients import AsyncClient

TESTS: Final = Path(__file__).resolve().parent.parent / "tests"
HELLO: Final = Context(messages=(UserMessage.of("hello"),))
WIRES: Final = {
    "anthropic-messages": "anthropic",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "google-genai": "google",
    "mistral-chat": "mistral",
    "ollama-chat": "ollama",
}
FATES: Final = ("reset", "cancel", "cancel", "end", "end", "end", "end", "end")
RUNS: Final = 5
"""Caches with a limit may fill in one run, never in each of them; what leaks is left by every run."""


class Server:
    """The process of the server; commands and answers are lines of text."""

    def __init__(self) -> None:
        command = [sys.executable, __file__, "--serve"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self._read()

    def report(self, command: str) -> str:
        """Send a command and wait for the answer."""
        self._pipe(self._process.stdin).write(command + "\n")
        self._pipe(self._process.stdin).flush()
        return self._read()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()

    def _read(self) -> str:
        return self._pipe(self._process.stdout).readline().strip()

    def _pipe(self, pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe


def serve() -> None:
    """Serve the replies that the paths of requests name, until standard input ends."""
    sys.path.insert(0, str(TESTS))
    from client.wires import WIRES as SAMPLES
    from servers.script import Phase, Reply
    from servers.scripted import Received, ScriptedServer

    def answer(received: Received) -> Reply:
        _, protocol, fate, *_ = received.path.split("/")
        return SAMPLES[protocol].stream().broken(Phase.BODY, "reset" if fate == "reset" else "stall")

    raise_file_limit()
    with ScriptedServer(answer) as server:
        print(server.url, flush=True)
        for line in sys.stdin:
            command, _, number = line.partition(" ")
            if command == "stalled":
                server.wait_until(lambda it, count=int(number): it.stalled == count, seconds=600.0)
            elif command == "open":
                server.wait_until(lambda it, count=int(number): it.open == count, seconds=60.0)
            else:
                server.go_on()
            print(f"{server.served} {server.aborted} {server.open}", flush=True)


def raise_file_limit() -> int:
    """Raise the limit of open files to the maximum, and return it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


async def read_stream(stream: AsyncStream, ends: Counter[str]) -> None:
    """Read a stream to its end, also after a cancellation; check that it ended once and can be stored."""
    terminal = 0
    try:
        async for event in stream:
            terminal += event.type in ("done", "error")
    except asyncio.CancelledError:
        async for event in stream:
            terminal += event.type in ("done", "error")
    message = stream.message
    is_sound = terminal == 1 and load_message(dump_message(message)) == message
    ends[str(message.stop_reason) if is_sound else "unsound"] += 1


async def run(server: Server, streams: int, clients: int) -> Counter[str]:
    """Open all streams, wait until each has half of its reply, cancel some, and read the others to the end."""
    ends = Counter[str]()
    # All streams share one event loop, so each takes as long to connect as all of them.
    timeout = httpx2.Timeout(600.0)
    keys = dict.fromkeys(WIRES.values(), "nobody")
    opened = [AsyncClient(api_key=keys, timeout=timeout, retry=0) for _ in range(clients)]
    tasks: list[asyncio.Task[None]] = []
    for number in range(streams):
        protocol, provider = list(WIRES.items())[number % len(WIRES)]
        fate = FATES[(number // len(WIRES)) % len(FATES)]
        model = Model("a-model", provider, protocol, base_url=f"{server.url}/{protocol}/{fate}")
        stream = opened[number % clients].stream(HELLO, model)
        tasks.append(asyncio.create_task(read_stream(stream, ends), name=fate))
    fates = Counter(task.get_name() for task in tasks)
    await asyncio.to_thread(server.report, f"stalled {streams - fates['reset']}")
    for task in tasks:
        if task.get_name() == "cancel":
            task.cancel()
    await asyncio.to_thread(server.report, f"stalled {fates['end']}")
    await asyncio.to_thread(server.report, "go")
    await asyncio.gather(*tasks)
    for client in opened:
        await client.close()
    left = len(asyncio.all_tasks()) - 1
    expected = {"stop": fates["end"], "aborted": fates["cancel"], "error": fates["reset"]}
    if dict(ends) != {name: count for name, count in expected.items() if count} or left:
        raise SystemExit(f"expected {expected} and no task left, got {dict(ends)} and {left} tasks")
    return ends


def main() -> None:
    """Run the test once to warm up, then until a run leaves no objects behind."""
    parser = argparse.ArgumentParser(description="Stress test with many concurrent streams.")
    parser.add_argument("--streams", type=int, default=10_000, help="number of concurrent streams (default 10000)")
    parser.add_argument("--clients", type=int, default=10, help="number of clients (default 10)")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    files = raise_file_limit()
    if files < options.streams + 100:
        raise SystemExit(
            f"{options.streams} streams need as many open files, and the system allows {files}; use a smaller"
            " --streams, or raise the limit with `ulimit -n`"
        )
    server = Server()
    try:
        asyncio.run(run(server, len(WIRES) * len(FATES), options.clients))
        runs = 0
        while True:
            runs += 1
            gc.collect()
            before, began = len(gc.get_objects()), time.monotonic()
            ends = asyncio.run(run(server, options.streams, options.clients))
            took = time.monotonic() - began
            counts = server.report("open 0")
            gc.collect()
            grown = len(gc.get_objects()) - before
            if grown <= options.streams // 10 or runs == RUNS:
                break
    finally:
        server.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{options.streams:,} streams over {options.clients} clients in {took:.0f} s: {dict(ends)}")
    print(f"server in all (served, aborted by the client, open): {counts}")
    print(f"new objects: {grown}; peak memory {peak:.0f} MB")
    if grown > options.streams // 10:
        raise SystemExit(f"memory leak: each of {RUNS} runs left objects behind, the last one {grown}")


if __name__ == "__main__":
    main()
