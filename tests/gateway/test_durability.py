"""What was acknowledged is there afterwards: databases that stop under load, killed processes, full disks."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import pytest

from gateway.databases import REASON, find_programs, postgresql_server, states_of
from segue.conversation.content import ThinkingContent
from segue.envelope.state import Piece, State
from segue.gateway.store.opening import open_store
from segue.gateway.store.service import StoreService
from segue.gateway.store.store import Store, StoredState, StoreLimits

pytestmark = pytest.mark.proof

NOW = 1_800_000_000_000
ROUNDS = int(os.environ.get("SEGUE_DURABILITY_ROUNDS", "100"))
KILLS = int(os.environ.get("SEGUE_DURABILITY_KILLS", "100"))

WRITER = """
import asyncio, sys
sys.path[:0] = {path!r}
from gateway.test_durability import item
from segue.gateway.store.opening import open_store
from segue.gateway.store.service import StoreService
from segue.gateway.store.store import Limits

async def write(service, lane):
    number = 0
    while True:
        name = f"{{sys.argv[2]}}-{{lane}}-{{number}}"
        if await service.put(item(name), {now}):
            print(name, flush=True)
        number += 1

async def main():
    service = StoreService(open_store(sys.argv[1]), Limits(), print)
    service.start()
    await asyncio.gather(*(write(service, lane) for lane in range(8)))

asyncio.run(main())
"""


def item(name: str, size: int = 500) -> StoredState:
    thought = ThinkingContent(thinking=name, thinking_signature="s" * size)
    return StoredState(
        "t", (f"call:{name}",), State(protocol="p", provider="q", model="m", pieces=(Piece(0, thought),))
    )


def _open(address: str) -> Store:
    store = open_store(address)
    assert store is not None
    return store


def _missing(address: str, names: list[str]) -> list[str]:
    store = _open(address)
    found = states_of(store, [f"call:{name}" for name in names], NOW)
    store.close()
    return [name for name in names if f"call:{name}" not in found]


async def _until_available(service: StoreService) -> None:
    end = time.monotonic() + 60
    while not service.is_available:
        assert time.monotonic() < end
        await asyncio.sleep(0.02)


def test_a_database_that_stops_under_load_loses_nothing_that_was_acknowledged() -> None:
    if find_programs() is None:
        pytest.skip(REASON)
    with postgresql_server() as server:
        acknowledged: list[str] = []
        refused: list[str] = []
        slowest = 0.0

        async def write(service: StoreService, lane: int, is_over: asyncio.Event) -> None:
            nonlocal slowest
            number = 0
            while not is_over.is_set():
                name = f"{lane}-{number}"
                began = time.monotonic()
                is_durable = await service.put(item(name), NOW, is_kept=True)
                slowest = max(slowest, time.monotonic() - began)
                (acknowledged if is_durable else refused).append(name)
                await service.find([f"call:{name}"], "", NOW, "t")
                number += 1
                await asyncio.sleep(0.01)

        async def run() -> None:
            service = StoreService(_open(server.url), StoreLimits(), lambda _: None)
            service.start()
            is_over = asyncio.Event()
            writers = [asyncio.create_task(write(service, lane, is_over)) for lane in range(16)]
            for number in range(ROUNDS):
                await asyncio.sleep(0.7)
                await asyncio.to_thread(server.stop)
                await asyncio.sleep((0.0, 0.5, 2.0, 4.0)[number % 4])
                await asyncio.to_thread(server.start)
            await asyncio.sleep(1)
            is_over.set()
            await asyncio.gather(*writers)
            await _until_available(service)
            await service.close()

        asyncio.run(run())
        sys.stdout.write(f"{len(acknowledged)} acknowledged, {len(refused)} refused, slowest {slowest:.2f} s\n")
        assert acknowledged
        assert refused
        assert _missing(server.url, acknowledged) == []
        # What nobody was promised was kept in memory meanwhile; the backlog has room for it.
        assert _missing(server.url, refused) == []


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_killed_process_loses_nothing_that_was_acknowledged(kind: str, tmp_path: Path) -> None:
    if kind == "postgresql" and find_programs() is None:
        pytest.skip(REASON)
    if kind == "sqlite":
        _kill_often(f"sqlite:{tmp_path / 'gateway.db'}", tmp_path)
        return
    with postgresql_server() as server:
        _kill_often(server.url, tmp_path)


def _kill_often(address: str, tmp_path: Path) -> None:
    dice = Random(1)
    script = tmp_path / "writer.py"
    script.write_text(WRITER.format(path=[path for path in sys.path if path], now=NOW))
    acknowledged: list[str] = []
    for number in range(KILLS):
        output = tmp_path / f"{number}.txt"
        with output.open("w") as file:
            process = subprocess.Popen([sys.executable, str(script), address, str(number)], stdout=file)
            try:
                while not output.stat().st_size and process.poll() is None:
                    time.sleep(0.01)
                time.sleep(dice.random() * 0.1)
            finally:
                process.kill()
                process.wait()
        lines = output.read_text().split("\n")[:-1]  # the last one may be cut
        assert lines
        acknowledged += lines
    sys.stdout.write(f"{KILLS} kills, {len(acknowledged)} acknowledged\n")
    assert _missing(address, acknowledged) == []


@contextmanager
def _small_disk(folder: Path) -> Iterator[None]:
    mount = shutil.which("mount")
    if mount is None or os.getuid() != 0:
        pytest.skip("with a small disk (only root can mount one)")
    if subprocess.run([mount, "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)], check=False).returncode:
        pytest.skip("with a small disk (this machine mounts none)")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def _fill(path: Path) -> None:
    """Write a file until there is no room left."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)


def test_a_disk_that_is_full_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    with _small_disk(disk):
        address = f"sqlite:{disk / 'gateway.db'}"
        ballast = disk / "ballast"
        acknowledged: list[str] = []
        refused: list[str] = []

        async def run() -> None:
            service = StoreService(_open(address), StoreLimits(), lambda _: None)
            service.start()
            try:
                await fill_often(service)
            finally:
                await service.close()

        async def fill_often(service: StoreService) -> None:
            for number in range(ROUNDS):
                _fill(ballast)
                for each in range(20):
                    name = f"{number}-{each}"
                    is_durable = await service.put(item(name), NOW, is_kept=True)
                    (acknowledged if is_durable else refused).append(name)
                ballast.unlink()
                await _until_available(service)
                for each in range(20, 40):
                    name = f"{number}-{each}"
                    is_durable = await service.put(item(name), NOW, is_kept=True)
                    (acknowledged if is_durable else refused).append(name)

        asyncio.run(run())
        sys.stdout.write(f"{len(acknowledged)} acknowledged, {len(refused)} refused on a full disk\n")
        assert refused
        assert _missing(address, acknowledged + refused) == []
