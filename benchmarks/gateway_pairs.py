"""The CPU time of a gateway for a request, in pairs with pass-through servers: slices of 0.1 s take turns.

- CPU time is the scheduler's own count for all threads of a process and of those that it started (`/proc`), so that
  nothing is asked of the process; the time of the client and of the upstream is not counted. What a server does after
  a slice, such as writing to its store, counts with the next one.
- Each slice sends some requests over connections that stay open. In each round every server has one slice, in random
  order, so that what other programs take falls on all alike. A figure is the median of the ratios of a round.
- Every server runs twice. The ratio of the copies (A/A) is next to each figure: a difference that is smaller than that
  is not known.
- "bare" is uvicorn, Starlette and httpx2, "aiohttp" a server and a client of aiohttp: both pass bytes on unread. All
  have httptools and uvloop, where they are installed.

The translated request is a step of an agent, 38 KB with 11 tools and 5 messages, of which the last one is new each
time. "straight" is a chat of 1 KB with a new first message, for a model whose own protocol the client speaks.

`python benchmarks/gateway_pairs.py [FOLDER...] [--rounds N] [--rows NAME...]` compares the `src` folders of commits;
`--workers` compares two workers of `segue serve` with one. Where other programs use the cores, their CPU time for a
request says more than the requests in a second: two cores serve at most twice the inverse of its ratio.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import orjson
from figures import Figure
from gateway_costs import Process
from gateway_servers import BURST, KEY

from segue.foundation.plurals import counted

NEW: Final = b"00000000"
"""In a body: replaced by another number for each request."""
_NUMBERS: Final = count(1)
_WORDS: Final = ("read", "the", "file", "first", "then", "change", "one", "function", "and", "run", "its", "tests")
_BARE: Final = "bare"
_AGAIN: Final = " again"
_SEED: Final = 50


class Row(NamedTuple):
    """What is sent: where, the body, how many requests are in a slice, and how many run at once."""

    what: str
    path: str
    body: bytes
    requests: int
    at_once: int


def make_rows() -> dict[str, Row]:
    """Make the rows of the table."""
    rows: dict[str, Row] = {}
    for at_once in (32, 1):
        many = 32 if at_once == 32 else 6
        translated, straight = make_agent_step(stream=False), make_chat(stream=False)
        rows |= {
            f"translated.{at_once}": Row("38 KB translated", "/v1/messages", translated, many, at_once),
            f"straight.{at_once}": Row("1 KB straight", "/v1/chat/completions", straight, many * 2, at_once),
            f"translated.events.{at_once}": Row(
                f"{BURST} events translated", "/v1/messages", make_agent_step(stream=True), many, at_once
            ),
            f"straight.events.{at_once}": Row(
                f"{BURST} events straight", "/v1/chat/completions", make_chat(stream=True), many, at_once
            ),
        }
    return rows


def _text(source: random.Random, length: int) -> str:
    return " ".join(source.choice(_WORDS) for _ in range(length // 5)).capitalize() + "."


def make_agent_step(*, stream: bool) -> bytes:
    """Write the request of an agent: instructions, tools, a call with its result, and a new last message."""
    source = random.Random(_SEED)  # noqa: S311 - a fixed order
    system = [
        {"type": "text", "text": _text(source, 60)},
        {"type": "text", "text": _text(source, 9_000), "cache_control": {"type": "ephemeral"}},
    ]
    tools: list[dict[str, Any]] = []
    for at in range(11):
        properties = {f"p{each}": {"type": "string", "description": _text(source, 80)} for each in range(5)}
        schema = {"type": "object", "properties": properties, "required": ["p0"]}
        tools.append({"name": f"tool_{at}", "description": _text(source, 1_750), "input_schema": schema})
    call = {"type": "tool_use", "id": "toolu_1", "name": "tool_0", "input": {"p0": "src/app.py"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": _text(source, 30)}
    turns = [
        {"role": "user", "content": [{"type": "text", "text": _text(source, 550)}]},
        {"role": "assistant", "content": [{"type": "text", "text": _text(source, 60)}, call]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": [{"type": "text", "text": _text(source, 60)}]},
        {"role": "user", "content": [{"type": "text", "text": f"Go on with {NEW.decode()}."}]},
    ]
    body = {"model": "m", "max_tokens": 4096, "system": system, "tools": tools, "messages": turns, "stream": stream}
    return orjson.dumps(body)


def make_chat(*, stream: bool) -> bytes:
    """Write a short chat whose first message is new."""
    source = random.Random(_SEED)  # noqa: S311 - a fixed order
    turns = [
        {"role": "system", "content": _text(source, 300)},
        {"role": "user", "content": f"{NEW.decode()} {_text(source, 200)}"},
        {"role": "assistant", "content": _text(source, 250)},
        {"role": "user", "content": _text(source, 100)},
    ]
    body: dict[str, Any] = {"model": "plain", "messages": turns, "stream": stream}
    return orjson.dumps(body | ({"stream_options": {"include_usage": True}} if stream else {}))


# -- CPU time ----------------------------------------------------------------------------------------------------------


def find_family(process: int) -> list[int]:
    """List a process and those that it started."""
    found = [process]
    for each in found:
        for task in _tasks(each):
            try:
                found += map(int, Path(f"/proc/{each}/task/{task}/children").read_text().split())
            except OSError:
                continue
    return found


def _tasks(process: int) -> list[str]:
    try:
        return [task.name for task in Path(f"/proc/{process}/task").iterdir()]
    except FileNotFoundError:
        return []


def spent_by(process: int) -> int:
    """Return the CPU nanoseconds of a process and those that it started, in the scheduler's count."""
    spent = 0
    for each in find_family(process):
        for task in _tasks(each):
            try:
                spent += int(Path(f"/proc/{each}/task/{task}/schedstat").read_text().split()[0])
            except OSError:
                continue
    return spent


# -- load --------------------------------------------------------------------------------------------------------------


class _Workers:
    """`segue serve` with a number of workers, and a store in a new folder. It ends with the `with` block."""

    def __init__(self, count: int, url: str) -> None:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        config = Path(self._folder.name) / "gateway.toml"
        config.write_text(
            f'[providers.plain]\nprotocol = "openai-chat"\nbase_url = "{url}"\nkey = "env:PLAIN_KEY"\n'
            f'[models."m"]\ntry = ["plain/plain"]\n[models."plain"]\ntry = ["plain/plain"]\n'
            f'[state]\nstore = "sqlite:{self._folder.name}/gateway.db"\n'
        )
        command = (sys.executable, "-m", "segue", "serve", "--config", str(config), "--port", str(self.port))
        environment = {**os.environ, "PLAIN_KEY": "sk-upstream", "XDG_STATE_HOME": self._folder.name}
        self._process = subprocess.Popen(
            (*command, "--workers", str(count)), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.id: int = self._process.pid
        self._count = count

    def __enter__(self) -> Self:
        while len(find_family(self.id)) < (1 if self._count == 1 else 1 + self._count) or not self._is_listening():
            if self._process.poll() is not None:
                raise AssertionError("the gateway did not start")
            time.sleep(0.1)
        time.sleep(2)  # all of them have started
        return self

    def _is_listening(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
        except OSError:
            return False
        return True

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        self._folder.cleanup()


class _Server:
    """A server with the connections to it."""

    def __init__(self, process: Process | _Workers) -> None:
        self._process = process
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._counted = 0

    async def slice(self, row: Row) -> float:
        """Send the requests of a slice; return the CPU nanoseconds of one since the end of the slice before."""
        if isinstance(self._process, _Workers):  # they close idle connections soon
            for _, writer in self._free:
                writer.close()
            self._free = []
        self._free = [each for each in self._free if not each[0].at_eof()]  # servers close idle connections
        while len(self._free) < row.at_once:
            self._free.append(await asyncio.open_connection("127.0.0.1", self._process.port, limit=2**22))
        left = [row] * row.requests
        await asyncio.gather(*(self._work(left, *each) for each in self._free[: row.at_once]))
        before, self._counted = self._counted, spent_by(self._process.id)
        return (self._counted - before) / row.requests

    async def _work(self, left: list[Row], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while left:
            row = left.pop()
            writer.write(_request(row))
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            if not head.startswith(b"http/1.1 200"):
                raise AssertionError(f"the server answered {head!r}")
            if b"content-length:" in head:
                await reader.readexactly(int(head.partition(b"content-length:")[2].split()[0]))
                continue
            while size := int((await reader.readline()).split(b";")[0], 16):
                await reader.readexactly(size + 2)
            await reader.readline()


def _request(row: Row) -> bytes:
    body = row.body.replace(NEW, b"%08d" % next(_NUMBERS))
    head = (
        f"POST {row.path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nx-api-key: {KEY}\r\n"
        f"anthropic-version: 2023-06-01\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


@contextmanager
def _servers(sources: Sequence[str]) -> Generator[dict[str, _Server]]:
    with ExitStack() as stack:
        upstream = stack.enter_context(Process("upstream"))
        url = f"http://127.0.0.1:{upstream.port}/burst"
        roles: dict[str, tuple[str, str | None]] = {_BARE: ("starlette", None), "aiohttp": ("aiohttp", None)}
        roles |= {name: ("served", name) for name in sources} or {"gateway": ("served", None)}
        yield {
            name + again: _Server(stack.enter_context(Process(role, url, source=source)))
            for name, (role, source) in roles.items()
            for again in ("", _AGAIN)
        }


async def _measure(servers: Mapping[str, _Server], row: Row, rounds: int) -> dict[str, list[float]]:
    spent: dict[str, list[float]] = {name: [] for name in servers}
    source = random.Random(_SEED)  # noqa: S311 - a fixed order
    for at in range(-2, rounds):  # two to be warm
        for name in source.sample(list(servers), len(servers)):
            taken = await servers[name].slice(row)
            if at >= 0:
                spent[name].append(taken)
    return spent


def _ratio(spent: Mapping[str, list[float]], name: str, other: str) -> tuple[float, str]:
    ratios = [one / two for one, two in zip(spent[name], spent[other], strict=True)]
    low, _, high = statistics.quantiles(ratios, n=4)
    return statistics.median(ratios), f"{low:.2f} to {high:.2f}"


def compare_pairs(
    *, quick: bool = False, sources: Sequence[str] = (), rounds: int = 24, rows: Sequence[str] = ()
) -> list[Figure]:
    """Measure every row; each figure has its A/A next to it."""
    figures: list[Figure] = []

    async def run() -> None:
        with _servers(sources) as servers:
            for key, row in make_rows().items():
                if rows and not any(key.startswith(each) for each in rows):
                    continue
                spent = await _measure(servers, row, 3 if quick else rounds)
                figures.extend(_describe(key, row, spent))

    asyncio.run(run())
    return figures


def compare_workers(rounds: int, rows: Sequence[str]) -> list[Figure]:
    """Measure the CPU time of a request with two workers and with one, each with its A/A next to it."""
    figures: list[Figure] = []

    async def run() -> None:
        with ExitStack() as stack:
            url = f"http://127.0.0.1:{stack.enter_context(Process('upstream')).port}/burst"
            counts = {"one worker": 1, "two workers": 2}
            servers = {
                name + again: _Server(stack.enter_context(_Workers(count, url)))
                for name, count in counts.items()
                for again in ("", _AGAIN)
            }
            for key, row in make_rows().items():
                if rows and not any(key.startswith(each) for each in rows):
                    continue
                spent = await _measure(servers, row, rounds)
                what = f"{row.what}, {row.at_once} at a time"
                for name in counts:
                    own, _ = _ratio(spent, name + _AGAIN, name)
                    median = statistics.median(spent[name]) / 1e3
                    figures.append(Figure("", f"{what}: {name}", "us", median, "", f"A/A {own:.2f}"))
                one, two = counts
                figures.append(Figure("", f"{what}: {two} / {one}", "times", *_ratio(spent, two, one)))

    asyncio.run(run())
    return figures


def _describe(key: str, row: Row, spent: Mapping[str, list[float]]) -> list[Figure]:
    what = f"{row.what}, {row.at_once} at a time"
    figures: list[Figure] = []
    names = [name for name in spent if not name.endswith(_AGAIN)]
    for name in names:
        own, _ = _ratio(spent, name + _AGAIN, name)
        note = f"A/A {own:.2f}; {counted(len(spent[name]), 'slice')}"
        if name != _BARE:
            value, spread = _ratio(spent, name, _BARE)
            goal = f"pairs.{key}" if name == "gateway" else ""
            figures.append(Figure(goal, f"{what}: {name} / {_BARE}", "times", value, spread, note))
            note = ""
        figures.append(Figure("", f"{what}: {name}", "us", statistics.median(spent[name]) / 1e3, "", note))
    first = names[2]
    for other in names[3:]:
        value, spread = _ratio(spent, other, first)
        figures.append(Figure("", f"{what}: {other} / {first}", "times", value, spread))
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Compare the CPU time of gateways in pairs")
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--rows", nargs="*", default=())
    parser.add_argument("--workers", action="store_true")
    parser.add_argument("sources", nargs="*")
    given = parser.parse_args()
    if not Path("/proc/self/schedstat").exists():
        sys.exit("the scheduler's counts are not there: this needs Linux")
    if given.workers:
        figures = compare_workers(given.rounds, given.rows)
    else:
        figures = compare_pairs(rounds=given.rounds, sources=given.sources, rows=given.rows)
    for figure in figures:
        print("  ".join(figure.row()), flush=True)


if __name__ == "__main__":
    main()
