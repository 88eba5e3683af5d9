"""Budgets of keys that several gateways share: real databases, concurrent requests, gateways that are killed."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

from gateway.databases import REASON, find_programs, postgresql
from gateway.real_clients import free_port, kill
from gateway.running import config_text, make_gateway
from gateway.test_keys import BODY, wait_for
from gateway.test_replicas import start_gateway
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.keys import Budget, Rights, digest_of, make_key
from segue.gateway.store.accounts import Account
from segue.gateway.store.key_table import put_key, read_spending
from segue.gateway.store.ledger import LEASE, NANO
from segue.gateway.store.opening import open_store
from segue.gateway.store.store import Store
from segue.testing.emulator import EmulatorServer, Step, emulate, serve_in_thread
from segue.testing.emulator import app as emulator_app

SMALL = {**BODY, "max_tokens": 5}
LARGEST = 0.0001
"""Dollars that one of these requests costs at most."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    if find_programs() is None:
        pytest.skip(REASON)
    with postgresql() as url:
        yield url


class Replicas(NamedTuple):
    """Gateways with one store, and a key."""

    urls: tuple[str, ...]
    upstream: EmulatorServer
    store: Store
    key: str


def make(store: Store, name: str, rights: Rights) -> str:
    """Make a key in a store."""
    secret, key = make_key(name, rights, time.time_ns() // 1_000_000)
    put_key(store.database, key, digest_of(secret))
    return secret


@contextmanager
def replicas(database: str, budget: float, folder: Path | None = None) -> Generator[Replicas]:
    """Run two gateways: in this process, or, with a folder for their files, in processes of their own."""
    store = open_store(database)
    assert store is not None
    key = make(store, f"key {time.time_ns()}", Rights(budgets={"total": Budget(dollars=budget)}))
    with ExitStack() as stack:
        stack.callback(store.close)
        upstream = stack.enter_context(emulate())
        urls: list[str] = []
        for _ in range(2):
            if folder is None:
                gateway = make_gateway(load_config(config_text(upstream.url, store=database)))
                urls.append(stack.enter_context(serve_in_thread(create_app(gateway=gateway))))
            else:
                port = free_port()
                more = f'[listen]\naddress = "127.0.0.1:{port}"'
                (folder / f"{port}.toml").write_text(config_text(upstream.url, store=database, more=more))
                stack.callback(kill, start_gateway(folder / f"{port}.toml", port))
                urls.append(f"http://127.0.0.1:{port}")
        yield Replicas(tuple(urls), upstream, store, key)


def spend(found: Replicas, requests: int, threads: int) -> list[str]:
    """Send requests to both gateways at once; give how each ended: `done` or `spent`."""
    found.upstream.emulator.script.add(*[Step(text="Yes.", first_byte=0.05)] * requests)
    with httpx2.Client(limits=httpx2.Limits(max_connections=threads)) as client:

        def ask(number: int) -> str:
            url = found.urls[number % len(found.urls)]
            while True:
                answer = client.post(f"{url}/v1/messages", json=SMALL, headers={"x-api-key": found.key}, timeout=60)
                if answer.status_code == 200:
                    return "done"
                if "is spent" in answer.text or "are left" in answer.text:
                    return "spent"
                # A busy machine may take longer than the gateway waits for its database: it says so, and sends nothing.
                is_held = "requests of this key that run may use up the rest" in answer.text
                assert is_held or answer.status_code == 503, answer.text
                assert answer.headers["retry-after"] in ("1", "2")
                time.sleep(0.05)  # a client waits for a second

        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(ask, range(requests)))


def counted(found: Replicas) -> float:
    """Give the dollars that the store has counted, when all gateways have written theirs."""

    def read() -> tuple[int, int]:
        ledger = read_spending(found.store.database, time.time_ns() // 1_000_000)[-1].ledger
        return ledger.spent["total"].nano, sum(part.held.nano for part in ledger.parts.values())

    wait_for(lambda: read()[1] == 0)
    return read()[0] / NANO


DATABASES = ["sqlite", "postgresql"]


@pytest.mark.parametrize("kind", DATABASES)
def test_two_gateways_overspend_a_budget_by_less_than_one_request(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    database = f"sqlite:{tmp_path / 'gateway.db'}" if kind == "sqlite" else str(request.getfixturevalue("server"))
    with replicas(database, 0.01) as found:
        ended = spend(found, 150, 16)
        bill = found.upstream.emulator.bill()
        assert bill.requests == ended.count("done")
        assert bill.cost <= 0.01 + LARGEST
        assert bill.cost > 0.01 - 40 * LARGEST
        assert "spent" in ended
        assert counted(found) == pytest.approx(bill.cost, abs=1e-7)


def test_without_what_running_requests_hold_the_budget_would_be_overspent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All forty run before one ends, and none of them holds anything: together they cost twice the budget."""
    send, arrived, all_arrived = emulator_app._send, 0, asyncio.Event()

    async def send_after_all(*parts: Any) -> None:
        nonlocal arrived
        arrived += 1
        if arrived == 40:
            all_arrived.set()
        await all_arrived.wait()
        await send(*parts)

    monkeypatch.setattr(emulator_app, "_send", send_after_all)
    monkeypatch.setattr(Account, "_hold", lambda *_: None)
    with replicas(f"sqlite:{tmp_path / 'gateway.db'}", 0.002) as found:
        assert spend(found, 40, 40) == ["done"] * 40
        assert found.upstream.emulator.bill().cost > 0.002 + 5 * LARGEST


@pytest.mark.proof
def test_two_processes_and_ten_thousand_requests(server: str, tmp_path: Path) -> None:
    with replicas(server, 0.5, tmp_path) as found:
        ended = spend(found, 10_000, 32)
        bill = found.upstream.emulator.bill()
        assert bill.requests == ended.count("done")
        assert 0.5 - 80 * LARGEST < bill.cost <= 0.5 + LARGEST
        assert counted(found) == pytest.approx(bill.cost, abs=1e-6)


def _kill_in_a_reply(url: str, key: str, process: subprocess.Popen[bytes]) -> None:
    body, headers = {**SMALL, "stream": True}, {"x-api-key": key}
    with (
        suppress(httpx2.HTTPError),
        httpx2.stream("POST", f"{url}/v1/messages", json=body, headers=headers, timeout=20) as reply,
    ):
        for number, _ in enumerate(reply.iter_lines()):
            if number == 5:
                kill(process)


def test_what_a_killed_gateway_was_sending_is_counted_and_holds_nothing_after_a_minute(tmp_path: Path) -> None:
    database, port = f"sqlite:{tmp_path / 'gateway.db'}", free_port()
    store = open_store(database)
    assert store is not None
    key = make(store, "alice", Rights(budgets={"total": Budget(dollars=1)}))
    with emulate(Step(text="word " * 300, pause=0.02)) as upstream:
        more = f'[listen]\naddress = "127.0.0.1:{port}"'
        (tmp_path / "gateway.toml").write_text(config_text(upstream.url, store=database, more=more))
        process = start_gateway(tmp_path / "gateway.toml", port)
        try:
            _kill_in_a_reply(f"http://127.0.0.1:{port}", key, process)
        finally:
            if process.poll() is None:
                kill(process)
        now = time.time_ns() // 1_000_000
        before, after = (read_spending(store.database, now + ahead)[0].ledger for ahead in (0, LEASE + 1000))
        store.close()
        assert [sum(part.held.nano for part in each.parts.values()) > 0 for each in (before, after)] == [True, False]
        assert before.spent["total"].nano == 0
        billed = upstream.emulator.bill()
        assert 0 < after.spent["total"].nano / NANO <= billed.cost
        assert billed.cost - after.spent["total"].nano / NANO < 0.01
