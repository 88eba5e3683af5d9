"""What attacks cost: CPU of requests without a key, and the time of others' requests. Ratios within one run."""

from __future__ import annotations

import multiprocessing
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, final

import pytest

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="cost of attacks (no /proc)"),
]

KEY = "sgw-key-of-the-attack-costs"
SIZE = 29_000_000
ATTACKERS = 20
SECONDS = 1.5
ROUNDS = 3
LEAST = 30
"""Answers of /health in each round, however long they take."""
_ITEM = b'{"role":"user","content":"x"},'
_FAKE = b"segueEnvAAAA "


def _filled(before: bytes, item: bytes, after: bytes) -> bytes:
    return before + item * ((SIZE - len(before) - len(after)) // len(item)) + after


BODIES: dict[str, Callable[[], bytes]] = {
    "a million messages": lambda: _filled(b'{"model":"m","messages":[', _ITEM, _ITEM[:-1] + b"]}"),
    "fourteen million numbers": lambda: _filled(b'{"model":"m","messages":[', b"1,", b"1]}"),
    "depth": lambda: b'{"model":"m","messages":' + b"[" * (SIZE // 2) + b"]" * (SIZE // 2) + b"}",
    "no JSON": lambda: _filled(b'{"model":"m","messages":[', _ITEM, b"!"),
    "fake envelopes": lambda: _filled(
        b'{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking",'
        b'"thinking":"t","signature":"',
        _FAKE,
        b'"}]},{"role":"user","content":"b"}]}',
    ),
    "a million fields": lambda: (
        b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"}],"metadata":{'
        + b",".join(b'"%d":1' % number for number in range(999_000))
        + b"}}"
    ),
}
"""Made when they are sent: every test run would hold 174 MB otherwise."""


@final
class Server(NamedTuple):
    """A server process."""

    port: int
    pid: int

    def cpu(self) -> float:
        """Give the CPU time so far, in seconds."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def server(kind: str, folder: Path) -> Generator[Server]:
    command = [sys.executable, str(Path(__file__).with_name("attacked_server.py")), kind]
    environment = {**os.environ, "ATTACK_KEY": KEY, "XDG_STATE_HOME": str(folder)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        found = Server(int(process.stdout.readline()), process.pid)
        try:
            while not health(found.port):
                time.sleep(0.05)
            yield found
        finally:
            process.kill()


def health(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            return connection.recv(65536).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def post(port: int, body: bytes, key: str) -> None:
    head = f"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: {key}\r\nContent-Length: {len(body)}\r\n\r\n"
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(head.encode())
            connection.sendall(body)
            connection.recv(65536)
    except OSError:
        time.sleep(0.01)  # refused while it was sent


def attack(port: int, body: bytes, key: str) -> None:
    """Send a body again and again."""
    while True:
        post(port, body, key)


def health_times(found: Server, body: bytes, key: str) -> list[float]:
    """Measure answers of /health while attackers send a body."""
    spawning = multiprocessing.get_context("fork")
    attackers = [spawning.Process(target=attack, args=(found.port, body, key), daemon=True) for _ in range(ATTACKERS)]
    for attacker in attackers:
        attacker.start()
    times: list[float] = []
    end = time.monotonic() + SECONDS
    while time.monotonic() < end or len(times) < LEAST:
        began = time.perf_counter()
        assert health(found.port)
        times.append(time.perf_counter() - began)
        time.sleep(0.01)
    for attacker in attackers:
        attacker.kill()
        attacker.join()
    return times


def p99(times: list[float]) -> float:
    return statistics.quantiles(times, n=100)[98]


def cost_of(found: Server, body: bytes) -> float:
    """Measure the CPU time of the server for one request without a key, in seconds."""
    post(found.port, body, "wrong")
    before, count = found.cpu(), 400
    for _ in range(count):
        post(found.port, body, "wrong")
    return (found.cpu() - before) / count


def test_a_body_without_a_key_adds_less_than_a_millisecond(tmp_path: Path) -> None:
    with server("gateway", tmp_path) as found:
        empty, large = cost_of(found, b""), cost_of(found, BODIES["a million messages"]())
    sys.stderr.write(f"CPU without a key: {large * 1000:.2f} ms with 29 MB, {empty * 1000:.2f} ms without a body\n")
    assert large - empty < 0.001


@pytest.mark.parametrize("key", ["wrong", KEY], ids=["without a key", "with a key"])
@pytest.mark.parametrize("name", BODIES)
def test_others_are_served_while_attackers_send_the_worst_bodies(name: str, key: str, tmp_path: Path) -> None:
    body = BODIES[name]()
    with (
        server("bare", tmp_path) as bare,
        server("bare", tmp_path) as control,
        server("gateway", tmp_path) as gateway,
    ):
        times: dict[Server, list[float]] = {bare: [], gateway: [], control: []}
        for _ in range(ROUNDS):  # in turns: the machine is not equally busy all the time
            for found, measured in times.items():
                measured.extend(health_times(found, body, key))
    plain, guarded, same = (p99(measured) for measured in times.values())
    sys.stderr.write(
        f"{name}: p99 of /health {guarded * 1000:.1f} ms, bare {plain * 1000:.1f} ms and {same * 1000:.1f} ms,"
        f" {guarded / plain:.2f}x, control {same / plain:.2f}x\n"
    )
    assert guarded < 3 * max(plain, same)
