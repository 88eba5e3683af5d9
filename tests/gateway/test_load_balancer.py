"""Two gateways on a real PostgreSQL behind the load balancer of `deploy`, with faults, a restart, and kills."""

from __future__ import annotations

import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

import httpx2
import pytest

from gateway.databases import REASON, find_programs, postgresql_server
from gateway.real_clients import free_port, kill
from gateway.real_clients import wait_for as wait_for_port
from gateway.running import config_text
from gateway.test_keys import wait_for
from gateway.test_replicas import spawn_gateway
from gateway.test_shared_budgets import LARGEST, SMALL, make
from segue.gateway.keys import Budget, Rights
from segue.gateway.store.key_table import read_spending
from segue.gateway.store.ledger import LEASE, NANO
from segue.gateway.store.opening import open_store
from segue.testing.emulator import Step, emulate

pytestmark = pytest.mark.proof

BALANCER = (Path(__file__).parents[2] / "deploy" / "nginx.conf").read_text()
BUDGET = 0.032
REQUESTS, THREADS = 400, 8
STEPS = (
    *[Step(text="Yes.", first_byte=0.02)] * 20,
    Step(status=529),
    Step(text="Yes, of course.", cut_after=2),
    Step(status=500),
)
"""What the provider does, again and again."""


@contextmanager
def balanced(folder: Path, gateways: tuple[int, int]) -> Iterator[str]:
    """Run the load balancer of `deploy` in front of two ports."""
    program = shutil.which("nginx")
    if program is None:
        pytest.skip("with a load balancer (no nginx)")
    port = free_port()
    text = BALANCER.replace("listen 8787", f"listen 127.0.0.1:{port}")
    for number, each in enumerate(gateways, 1):
        text = text.replace(f"gateway-{number}:8787", f"127.0.0.1:{each}")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"    {kind}_temp_path {folder / kind};\n" for kind in kinds)
    text = text.replace("http {\n", f"http {{\n    access_log off;\n{places}", 1)
    (folder / "nginx.conf").write_text(f"pid {folder / 'nginx.pid'};\nerror_log {folder / 'nginx.log'};\n{text}")
    command = [program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-g", "daemon off;"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for_port(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


class Clients:
    """Clients that ask until they are answered or their budget is spent, and note what else they saw."""

    def __init__(self, url: str, key: str) -> None:
        self.done: int = 0
        self.ended: Counter[str] = Counter()
        self.seen: dict[str, Counter[int]] = {}
        self.phase: str = "start"
        self.is_over: bool = False
        self._url, self._key = f"{url}/v1/messages", key
        self._lock = threading.Lock()
        self._client = httpx2.Client(limits=httpx2.Limits(max_connections=THREADS), timeout=60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the work that is left, if the test failed."""
        self.is_over = True
        self._client.close()

    def ask(self, number: int) -> None:
        """Ask once, and again while the answer is an error that may pass."""
        while not self.is_over:
            try:
                answer = self._client.post(
                    self._url, json={**SMALL, "stream": number % 2 == 0}, headers={"x-api-key": self._key}
                )
                status, text = answer.status_code, answer.text
            except httpx2.HTTPError:
                status, text = 0, ""
            is_held = "requests of this key that run may use up the rest" in text
            with self._lock:
                if not is_held:
                    self.seen.setdefault(self.phase, Counter())[status] += 1
                if status == 200 or "is spent" in text:
                    self.ended["done" if status == 200 else "spent"] += 1
                    self.done += 1
                    return
            time.sleep(0.05)

    def wait_until(self, share: float, phase: str) -> None:
        """Wait until so much of the work is done, and begin a phase."""
        for _ in range(4):  # a busy machine needs more than one wait
            with suppress(AssertionError):
                wait_for(lambda: self.done >= REQUESTS * share)
                break
        assert self.done >= REQUESTS * share
        self.phase = phase


def test_replicas_behind_a_load_balancer_lose_and_overspend_nothing(tmp_path: Path) -> None:
    if find_programs() is None:
        pytest.skip(REASON)
    processes: dict[int, subprocess.Popen[bytes]] = {}
    ports = (free_port(), free_port())

    def start(port: int) -> None:
        processes[port] = spawn_gateway(tmp_path / f"{port}.toml")
        for _ in range(4):  # clients and gateways share a busy machine
            with suppress(AssertionError):
                return wait_for_port(port)
        raise AssertionError("the gateway does not start")

    with postgresql_server() as database, emulate() as upstream:
        store = open_store(database.url)
        assert store is not None
        key = make(store, "team", Rights(budgets={"total": Budget(dollars=BUDGET)}))
        store.close()
        upstream.emulator.script.add(*STEPS * (2 * REQUESTS // len(STEPS)))
        for port in ports:
            more = f'[listen]\naddress = "127.0.0.1:{port}"\n[limits]\nbreaker_failures = 1000\nbreaker_seconds = 0.1'
            (tmp_path / f"{port}.toml").write_text(config_text(upstream.url, store=database.url, more=more))
        try:
            for port in ports:
                start(port)
            with balanced(tmp_path, ports) as url, ThreadPoolExecutor(THREADS) as pool, Clients(url, key) as clients:
                work = [pool.submit(clients.ask, number) for number in range(REQUESTS)]
                clients.wait_until(0.1, "restart")
                processes[ports[0]].send_signal(signal.SIGTERM)
                assert processes[ports[0]].wait(60) in (0, -signal.SIGTERM)  # uvicorn ends by the signal itself
                start(ports[0])
                clients.wait_until(0.3, "kill")
                kill(processes[ports[1]])
                start(ports[1])
                clients.wait_until(0.5, "no database")
                database.stop()
                refused = httpx2.post(f"{url}/v1/messages", json=SMALL, headers={"x-api-key": key}, timeout=60)
                assert refused.status_code == 503, "what cannot be counted is not spent"
                database.start()
                clients.wait_until(0.6, "end")
                for each in work:
                    each.result()
        finally:
            for process in processes.values():
                if process.poll() is None:
                    kill(process)
        store = open_store(database.url)
        assert store is not None
        ledger = read_spending(store.database, time.time_ns() // 1_000_000 + LEASE + 1000)[-1].ledger
        store.close()
    bill = upstream.emulator.bill()
    assert clients.ended.total() == REQUESTS
    assert clients.ended["spent"] > 0
    lost = sum(clients.seen["restart"][status] for status in (0, 502, 504))
    assert lost <= 1, "a restart loses no request, but one that arrives while the port is being closed"
    assert 502 in clients.seen["kill"], "the kill was in the middle of the work"
    in_flight, counted = THREADS * LARGEST, ledger.spent["total"].nano / NANO
    assert counted <= BUDGET + LARGEST
    assert bill.cost <= BUDGET + LARGEST + in_flight, "what the killed gateway had sent"
    assert abs(counted - bill.cost) <= in_flight
