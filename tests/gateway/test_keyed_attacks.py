"""What a client with a valid key can take from another one: generated shapes of requests, on many connections.

The shapes are drawn by a seed, which is in the report: kind of request, size and number of connections. The victim has
another key and opens a connection for each request. SEGUE_ATTACK_SEED and SEGUE_ATTACKS choose others.
"""

from __future__ import annotations

import asyncio
import base64
import json
import multiprocessing
import os
import random
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from itertools import count
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any, NamedTuple, final

import pytest

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="attacks with a key (no /proc)"),
]

ATTACKER, VICTIM = "sgw-key-of-the-attacker", "sgw-key-of-the-victim"
SEED = int(os.environ.get("SEGUE_ATTACK_SEED", "45"))
ATTACKS = int(os.environ.get("SEGUE_ATTACKS", "24"))
SECONDS = float(os.environ.get("SEGUE_ATTACK_SECONDS", "4"))
PATIENCE = 60.0
MUST_P50, MUST_P99 = 0.1, 0.5
"""What a victim on a new connection has to see; a busy machine is measured before each attack."""


@final
class Shape(NamedTuple):
    """One attack: requests of a kind with so many pieces, on so many connections."""

    kind: str
    size: int
    connections: int


def _messages(number: int, size: int) -> dict[str, Any]:
    turns = [{"role": ("user", "assistant")[at % 2], "content": f"{number} {at}"} for at in range(size | 1)]
    return {"model": "gemini", "max_tokens": 9, "messages": turns}


def _tools(number: int, size: int) -> dict[str, Any]:
    tools = [{"name": f"t{number}_{at}", "input_schema": {"type": "object"}} for at in range(size)]
    return {**_messages(number, 1), "tools": tools}


def _parts(number: int, size: int) -> dict[str, Any]:
    parts = [{"type": "text", "text": f"{number} {at}"} for at in range(size)]
    return {"model": "gemini", "max_tokens": 9, "messages": [{"role": "user", "content": parts}]}


def _metadata(number: int, size: int) -> dict[str, Any]:
    return {**_messages(number, 1), "metadata": {f"k{number}_{at}": "v" for at in range(size)}}


def _unknown(number: int, size: int) -> dict[str, Any]:
    return {**_messages(number, 1), "model": f"openai/gpt-{number}-" + "x-" * (size // 2)}


def _socket(number: int, size: int) -> dict[str, Any]:
    items = [{"role": "user", "content": f"{number} {at}"} for at in range(size)]
    return {"type": "response.create", "model": "gemini", "input": items}


def _continued(number: int, size: int) -> dict[str, Any]:
    return {"model": "gemini", "input": f"{number} " * size, "previous_response_id": "{reply}"}


def _new_key(number: int, size: int) -> dict[str, Any]:
    return {"name": f"key {number}", "models": [f"{number} {at}" for at in range(size)]}


BODIES: dict[str, Callable[[int, int], dict[str, Any]]] = {
    "messages": _messages,
    "tools": _tools,
    "parts": _parts,
    "metadata": _metadata,
    "unknown model": _unknown,
    "count": _messages,
    "continued": _continued,
    "socket": _socket,
    "new key": _new_key,
}
PATHS = {
    "conversations": "GET /segue/conversations",
    "search": "GET /segue/requests?limit=500&q=nothing+like+that",
    "series": "GET /segue/series",
    "models": "GET /v1/models",
    "count": "POST /v1/messages/count_tokens",
    "no endpoint": "GET /v1/nothing",
    "replay": "POST /segue/requests/{row}/replay",
    "continued": "POST /v1/responses",
    "items": "GET /v1/responses/{reply}/input_items?limit=100",
    "costs": "GET /segue/costs?hours=8000",
    "content": "GET /segue/requests/{row}/content",
    "view": "GET /segue/requests/{row}/view",
    "session": "GET /segue/conversations/{conversation}/session",
    "plan": "POST /segue/conversations/{conversation}/plan",
    "new key": "POST /segue/admin/keys",
}
EMPTY = ("replay", "plan")
"""Kinds with a small body: the model that is asked for."""
FILLED = (
    "conversations",
    "search",
    "series",
    "replay",
    "continued",
    "items",
    "costs",
    "content",
    "view",
    "session",
    "plan",
)
"""Kinds that need rows and a long history."""
SIZES = {
    "messages": (10, 1_000, 20_000),
    "tools": (10, 500, 5_000),
    "parts": (10, 5_000, 60_000),
    "metadata": (10, 10_000, 150_000),
    "unknown model": (10, 400, 240_000),
    "count": (10, 1_000, 10_000),
    "socket": (10, 500, 10_000),
    "continued": (1, 1_000),
    "new key": (1, 10_000),
}


def draw(seed: int, number: int) -> list[Shape]:
    """Draw shapes: every kind once, before one is drawn again."""
    source = random.Random(seed)
    kinds = [*BODIES, *(kind for kind in PATHS if kind not in BODIES)]
    drawn: list[str] = []
    while len(drawn) < number:
        drawn += source.sample(kinds, len(kinds))
    return [Shape(kind, source.choice(SIZES.get(kind, (0,))), source.choice((2, 8, 40))) for kind in drawn[:number]]


# -- the server --------------------------------------------------------------------------------------------------------


@contextmanager
def shared(folder: Path) -> Generator[int]:
    command = [sys.executable, str(Path(__file__).with_name("attacked_server.py")), "shared"]
    given = {"ATTACK_KEY": ATTACKER, "VICTIM_KEY": VICTIM, "ATTACK_STORE": str(folder / "g.db")}
    environment = {**os.environ, **given, "XDG_STATE_HOME": str(folder), "GEMINI_API_KEY": "k"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        try:
            yield port
        finally:
            process.kill()


def ask(port: int, key: str, head: str, body: bytes = b"") -> bytes:
    """Send a request on a new connection, and give the whole answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        connection.sendall(_request(head, key, body, "close"))
        found = b""
        while data := connection.recv(65536):
            found += data
    return found


def _request(head: str, key: str, body: bytes, connection: str) -> bytes:
    lines = (f"{head} HTTP/1.1", "Host: 127.0.0.1", f"x-api-key: {key}", f"Content-Length: {len(body)}")
    return "\r\n".join((*lines, f"Connection: {connection}", "", "")).encode() + body


ECHO = json.dumps({"model": "echo", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}).encode()


class Known(NamedTuple):
    """What the attacker has at the gateway: a request with a long history, its conversation, and a stored reply."""

    row: str = ""
    conversation: str = ""
    reply: str = ""


def fill(port: int, rows: int = 600) -> Known:
    """Make rows of the attacker, one of them with a long history, and a stored reply after another one."""
    given = _encoded({**_messages(0, 2_000), "model": "echo"})
    head = ask(port, ATTACKER, "POST /v1/messages", given).partition(b"\r\n\r\n")[0].decode()
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head.split("\r\n"))}
    row = headers["x-segue-request-id"]
    for _ in range(rows):
        ask(port, ATTACKER, "POST /v1/messages", ECHO)
    found = json.loads(ask(port, ATTACKER, f"GET /segue/requests/{row}").partition(b"\r\n\r\n")[2])
    given = _encoded({"model": "echo", "input": _socket(0, 4_000)["input"]})
    stored = json.loads(ask(port, ATTACKER, "POST /v1/responses", given).partition(b"\r\n\r\n")[2])
    return Known(row, found["conversation"], stored["id"])


def _encoded(body: object) -> bytes:
    return json.dumps(body).encode()


# -- the attacker ------------------------------------------------------------------------------------------------------


def attack(port: int, shape: Shape, known: Known, answers: Synchronized[int]) -> None:
    """Attack until the process is killed."""
    numbers = count()

    async def send_http(first: int) -> None:
        head = PATHS.get(shape.kind, "POST /v1/messages").format(**known._asdict())
        make = BODIES.get(shape.kind)
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                number = first * 1_000_000 + next(numbers)
                given: object = {"model": "gemini"} if shape.kind in EMPTY else make and make(number, shape.size)
                body = b"" if given is None else _encoded(given).replace(b"{reply}", known.reply.encode())
                writer.write(_request(head, ATTACKER, body, "close"))
                if await reader.read():
                    with answers.get_lock():
                        answers.value += 1
                writer.close()

    async def send_messages(first: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        name = base64.b64encode(os.urandom(16)).decode()
        lines = ("GET /v1/responses HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {ATTACKER}")
        upgrade = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13")
        writer.write("\r\n".join((*lines, *upgrade, f"Sec-WebSocket-Key: {name}", "", "")).encode())
        await reader.readuntil(b"\r\n\r\n")
        while True:
            data = json.dumps(_socket(first * 1_000_000 + next(numbers), shape.size)).encode()
            writer.write(
                b"\x81\xff" + len(data).to_bytes(8, "big") + bytes(4) + data
            )  # a mask of zeros changes nothing
            await reader.read(65536)
            with answers.get_lock():
                answers.value += 1

    async def run() -> None:
        send = send_messages if shape.kind == "socket" else send_http
        await asyncio.gather(*(send(first) for first in range(shape.connections)))

    asyncio.run(run())


@contextmanager
def attacked(port: int, shape: Shape, known: Known) -> Generator[Synchronized[int]]:
    context = multiprocessing.get_context("fork")
    answers: Any = context.Value("i", 0)
    process = context.Process(target=attack, args=(port, shape, known, answers), daemon=True)
    process.start()
    try:
        yield answers
    finally:
        process.kill()
        process.join()


def measure(port: int, seconds: float) -> list[float]:
    """Measure the victim's requests, each on a new connection."""
    times: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(times) < 10:
        began = time.perf_counter()
        assert ask(port, VICTIM, "POST /v1/messages", ECHO).startswith(b"HTTP/1.1 200")
        times.append(time.perf_counter() - began)
        time.sleep(0.01)
    return times


def p99(times: list[float]) -> float:
    return statistics.quantiles(times, n=100, method="inclusive")[98]


@pytest.mark.parametrize(
    "shape", draw(SEED, ATTACKS), ids=lambda shape: f"{shape.kind}, {shape.size}, {shape.connections}x"
)
def test_a_key_does_not_stop_another_one(shape: Shape, tmp_path: Path) -> None:
    with shared(tmp_path) as port:
        known = fill(port) if shape.kind in FILLED else Known()
        measure(port, 0.3)
        quiet = measure(port, 1.0)
        with attacked(port, shape, known) as answers:
            time.sleep(0.5)
            before = answers.value
            times = measure(port, SECONDS)
            answered = answers.value - before
    p50, worst, calm = statistics.median(times), p99(times), statistics.median(quiet)
    sys.stderr.write(
        f"seed {SEED}, {shape.kind} x {shape.size} x {shape.connections}: victim p50 {p50 * 1000:.0f} ms,"
        f" p99 {worst * 1000:.0f} ms (quiet {calm * 1000:.0f} / {p99(quiet) * 1000:.0f}),"
        f" {answered} answers to the attacker\n"
    )
    assert p50 < max(MUST_P50, 12 * calm)
    assert worst < max(MUST_P99, 12 * p99(quiet))
