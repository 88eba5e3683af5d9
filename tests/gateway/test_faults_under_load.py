"""Clients that store replies over HTTP while the gateway is killed, its database is away, or its disk is full.

A reply that was said to be stored is there afterwards, with its own text and its own history.
"""

from __future__ import annotations

import multiprocessing
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Self

import httpx2
import pytest
import uvicorn

from gateway.databases import REASON, find_programs, postgresql_server
from gateway.faults import FaultyDatabase
from gateway.test_durability import _fill, _small_disk
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.service import Gateway
from segue.gateway.store.database import StoreAway, StoreNotWritable
from segue.testing.emulator import serve_in_thread

ECHO = '[models."*"]\ntry = ["segue/echo"]\n[state]\nstore = "{store}"\n[listen]\naddress = "127.0.0.1:1"\n'
LANES = 6
PAUSE = 0.15


class Load:
    """Clients that ask to store replies, each one continuing its own conversation. `urls` may change meanwhile."""

    def __init__(self, urls: list[str]) -> None:
        self.urls = urls
        self.stored: dict[str, tuple[str, str | None]] = {}
        """The id of each reply that was said to be stored: its text, and the id of the one before it."""
        self.unstored = 0
        self.failed = 0
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._ask_often, args=(lane,)) for lane in range(LANES)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(60)

    def _ask_often(self, lane: int) -> None:
        previous: str | None = None
        with httpx2.Client(timeout=20) as client:
            for number in range(10**9):
                if self._is_over.is_set():
                    return
                text = f"{lane}-{number}"
                body = {"model": "any", "input": text, "previous_response_id": previous}
                try:
                    reply = client.post(f"{self.urls[(lane + number) % len(self.urls)]}/v1/responses", json=body)
                except httpx2.HTTPError:  # killed
                    self.failed += 1
                    previous = None
                    time.sleep(0.02)
                    continue
                if reply.status_code != 200:
                    assert reply.status_code in (400, 503), reply.text  # what it continues cannot be read now
                    self.failed += 1
                    previous = None
                    continue
                found = reply.json()
                if found["store"] is not True:
                    self.unstored += 1
                    previous = None
                    continue
                self.stored[found["id"]] = (text, previous)
                previous = found["id"] if number % 5 else None

    def wait_for(self, more: int) -> None:
        """Wait until so many more replies are stored."""
        wanted, end = len(self.stored) + more, time.monotonic() + 300
        while len(self.stored) < wanted:
            assert time.monotonic() < end, "the gateway does not answer"
            time.sleep(0.01)

    def check(self, url: str) -> None:
        """Check every reply that was said to be stored."""
        with httpx2.Client(timeout=20) as client:
            for name, (text, previous) in self.stored.items():
                reply, end = client.get(f"{url}/v1/responses/{name}"), time.monotonic() + 300
                while reply.status_code == 503 and time.monotonic() < end:  # the store was away a moment ago
                    time.sleep(0.05)
                    reply = client.get(f"{url}/v1/responses/{name}")
                assert reply.status_code == 200, f"{name} ({text}) was acknowledged and is lost: {reply.text}"
                found = reply.json()
                assert found["output"][0]["content"][0]["text"] == text
                assert found["previous_response_id"] == previous
        sys.stderr.write(
            f"{len(self.stored)} acknowledged, {self.unstored} said not to be stored, {self.failed} failed\n"
        )


@contextmanager
def disk(folder: Path, *, is_real: bool) -> Iterator[Path]:
    folder.mkdir()
    with ExitStack() as stack:
        if is_real:
            stack.enter_context(_small_disk(folder))
        yield folder


@pytest.mark.parametrize("rounds", [3, pytest.param(100, marks=pytest.mark.proof)])
def test_a_database_that_fails_under_load_loses_nothing_that_was_acknowledged(
    rounds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("segue.gateway.store.circuit._GRACE", 0.2)
    monkeypatch.setattr("segue.gateway.store.writer._PROBE_SECONDS", 0.1)
    with disk(tmp_path / "disk", is_real=rounds > 3) as folder:
        gateway = Gateway(
            load_config(ECHO.format(store=f"sqlite:{folder}/g.db")), environment={"XDG_STATE_HOME": str(tmp_path)}
        )
        store = gateway.store.store
        assert store is not None
        store.database = database = FaultyDatabase(store.database)
        ballast = folder / "ballast"
        with serve_in_thread(create_app(gateway=gateway)) as url:
            with Load([url]) as load:
                for _, fault in zip(range(rounds), cycle(("away", "full", "busy", "disk")), strict=False):
                    load.wait_for(LANES)
                    match fault:
                        case "away":
                            database.failure = StoreAway("the server closed the connection")
                        case "full":
                            database.write_failure = StoreNotWritable("database or disk is full")
                        case "busy":
                            database.busy = 3
                        case _:
                            _fill(ballast)
                    time.sleep(PAUSE)
                    database.failure = database.write_failure = None
                    ballast.unlink(missing_ok=True)
                    end = time.monotonic() + 30
                    while not gateway.store.is_available:
                        assert time.monotonic() < end
                        time.sleep(0.02)
            assert load.stored
            assert load.unstored
            load.check(url)


def serve(config: str, listener: socket.socket, folder: str) -> None:
    """Run a gateway, in a process of its own."""
    gateway = Gateway(load_config(config), environment={"XDG_STATE_HOME": folder})
    settings = uvicorn.Config(create_app(gateway=gateway), lifespan="on", log_level="critical", access_log=False)
    uvicorn.Server(settings).run(sockets=[listener])


@pytest.mark.parametrize(
    ("kind", "rounds"),
    [("sqlite", 1), *(pytest.param(kind, 100, marks=pytest.mark.proof) for kind in ("sqlite", "postgresql"))],
)
def test_a_killed_replica_loses_nothing_that_was_acknowledged(kind: str, rounds: int, tmp_path: Path) -> None:
    """Two replicas with one database are killed in turns; a server of databases stops too, as in a crash."""
    if kind == "postgresql" and find_programs() is None:
        pytest.skip(REASON)
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([__name__])
    with ExitStack() as stack:
        database = stack.enter_context(postgresql_server()) if kind == "postgresql" else None
        listeners = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        urls = [f"http://127.0.0.1:{listener.getsockname()[1]}" for listener in listeners]
        config = ECHO.format(store=f"sqlite:{tmp_path}/g.db" if database is None else database.url)

        def start(listener: socket.socket) -> BaseProcess:
            process = processes.Process(target=serve, args=(config, listener, str(tmp_path)), daemon=True)
            process.start()
            stack.callback(process.join, 10)
            stack.callback(process.kill)
            return process

        running = [start(listener) for listener in listeners]
        for url in urls:
            assert httpx2.get(f"{url}/health", timeout=60).status_code == 200
        with Load(urls) as load:
            for number in range(rounds):
                load.wait_for(2 * LANES)
                if database is not None:
                    database.stop()
                    time.sleep(PAUSE)
                    database.start()
                    load.wait_for(2 * LANES)
                running[number % 2].kill()
                running[number % 2].join(10)
                running[number % 2] = start(listeners[number % 2])
                assert httpx2.get(f"{urls[number % 2]}/health", timeout=120).status_code == 200
        assert load.stored
        for url in urls:
            load.check(url)
