# ruff: noqa: ASYNC110, ASYNC240 - small files of the test itself; conditions of the watcher have no event
"""A changed configuration file: checked like a new one, applied whole or not at all, by a watcher that never ends."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from gateway.asgi_client import Client
from gateway.running import KEYS
from segue.errors import SegueError, SettingsError
from segue.gateway import service
from segue.gateway.app import create_app
from segue.gateway.config import Config, load_config, read_config
from segue.gateway.defaults import Address, with_model
from segue.gateway.reloading import accept
from segue.gateway.service import Gateway

FIRST, SECOND = "sgw-first-key-of-the-tests", "sgw-second-key-of-the-tests"
ENVIRONMENT = {**KEYS, "XDG_STATE_HOME": "/tmp", "FIRST": FIRST, "SECOND": SECOND, "SHORT": "short"}
EVERYWHERE = Address("0.0.0.0", 8787)
GOOD = """\
[listen]
address = "0.0.0.0:8787"
keys = ["env:FIRST", "env:SECOND"]
host_names = ["gateway.example"]

[models."quick"]
try = ["openai/gpt-5.4"]

[models."*"]
try = ["same"]

[providers.openai]
base_url = "http://127.0.0.1:9/v1"
key = "env:OPENAI_API_KEY"

[state]
store = "none"
"""

REFUSED: dict[str, tuple[str, str]] = {
    "no keys beyond this machine": (GOOD.replace('keys = ["env:FIRST", "env:SECOND"]\n', ""), "listen.keys"),
    "an empty list of keys": (GOOD.replace('["env:FIRST", "env:SECOND"]', "[]"), "listen.keys"),
    "no table of the address": (GOOD.partition("\n\n")[2], "listen.keys"),
    "a short key": (GOOD.replace("env:SECOND", "env:SHORT"), "fewer than 16"),
    "a key whose variable is not set": (GOOD.replace("env:SECOND", "env:NOTHING"), "NOTHING"),
    "a provider whose variable is not set": (GOOD.replace("env:OPENAI_API_KEY", "env:NOTHING"), "NOTHING"),
    "a secret in the file": (GOOD.replace("env:SECOND", SECOND), "env:NAME"),
    "a model that does not exist": (GOOD.replace("openai/gpt-5.4", "nobody/nothing"), "nobody"),
    "an address that is none": (GOOD.replace("0.0.0.0:8787", "everywhere"), "HOST:PORT"),
    "a limit of zero": (GOOD + "[limits]\nbody_seconds = 0\n", "body_seconds"),
    "a misspelt key": (GOOD.replace("host_names", "host_nams"), "host_names"),
    "a catalogue that does not exist": ('catalogue = "/nowhere/models.toml"\n' + GOOD, "models.toml"),
    "text that is not TOML": (GOOD + "[models", "TOML"),
    "an empty file": ("", ""),
    "only blank lines": ("\n \n", ""),
}


def make(path: Path, text: str = GOOD, place: Address | None = None) -> Gateway:
    path.write_text(text)
    return Gateway(read_config(path), path=path, environment=ENVIRONMENT, place=place)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "gateway.toml"


@pytest.mark.parametrize("name", [name for name in REFUSED if REFUSED[name][1]])
def test_a_start_refuses(name: str) -> None:
    text, reason = REFUSED[name]
    with pytest.raises(SegueError, match=reason):
        Gateway(load_config(text), environment=ENVIRONMENT, place=EVERYWHERE)


@pytest.mark.parametrize("place", [None, EVERYWHERE], ids=["address of the file", "address of an option"])
@pytest.mark.parametrize("name", REFUSED)
def test_a_reload_refuses_and_changes_nothing(name: str, place: Address | None, path: Path) -> None:
    gateway = make(path, GOOD if place is None else GOOD.replace("0.0.0.0", "127.0.0.1"), place)
    before = gateway.runtime
    text, reason = REFUSED[name]
    path.write_text(text)
    error = gateway.reload()
    assert error is not None
    assert reason in error
    assert gateway.runtime is before
    path.write_text(GOOD)
    assert gateway.reload() is None  # a later change counts


def test_an_application_refuses_to_be_open_to_other_machines() -> None:
    with pytest.raises(SettingsError, match="without a key"):
        create_app(load_config('[listen]\naddress = "0.0.0.0:8787"\n[state]\nstore = "none"'))


def test_keys_do_not_vanish_on_this_machine_either(path: Path) -> None:
    gateway = make(path, GOOD.replace("0.0.0.0", "127.0.0.1"))
    path.write_text(REFUSED["no keys beyond this machine"][0].replace("0.0.0.0", "127.0.0.1"))
    assert "listen.keys is gone" in (gateway.reload() or "")
    assert len(gateway.runtime.key_digests) == 2


def test_a_revoked_key_is_unknown_after_the_reload(path: Path) -> None:
    gateway = make(path)
    path.write_text(GOOD.replace(', "env:SECOND"', ""))
    before = gateway.runtime
    assert gateway.reload() is None
    assert gateway.runtime.key_digests == {sha256(FIRST.encode()).digest()}
    assert len(before.key_digests) == 2  # a request that began before keeps what it began with


def test_what_a_reload_cannot_change_is_logged(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    gateway = make(path)
    path.write_text(GOOD.replace(":8787", ":9999").replace('store = "none"', 'store = "sqlite:/nowhere/g.db"'))
    with caplog.at_level(logging.WARNING, logger="segue.gateway"):
        assert gateway.reload() is None
    assert "listen.address is changed by a new start only" in caplog.text
    assert "the table state is changed by a new start only" in caplog.text
    assert (gateway.config.listen.address, gateway.config.state.store) == ("0.0.0.0:8787", "none")


def test_options_of_the_command_line_are_applied_to_each_file(path: Path) -> None:
    def adapt(config: Config) -> Config:
        return with_model(config, "openai/gpt-5.4")

    path.write_text(GOOD)
    gateway = Gateway(adapt(read_config(path)), path=path, environment=ENVIRONMENT, place=EVERYWHERE, adapt=adapt)
    path.write_text(GOOD.replace('"quick"', '"slow"'))
    assert gateway.reload() is None
    assert set(gateway.config.models) == {"*"}


def test_failures_so_far_are_kept(path: Path) -> None:
    gateway = make(path)
    breaker = gateway.runtime.breaker
    path.write_text(GOOD + "\n[models.more]\ntry = ['same']\n")
    assert gateway.reload() is None
    assert gateway.runtime.breaker is breaker
    path.write_text(GOOD + "\n[limits]\nbreaker_failures = 9\n")
    assert gateway.reload() is None
    assert gateway.runtime.breaker is not breaker


# -- what a file no longer has -----------------------------------------------------------------------------------------

PROXIED = """\
[listen]
keys = ["env:FIRST", "env:SECOND"]

[models."*"]
try = ["openai/gpt-5.4"]

[providers.openai]
base_url = "http://user:secret@proxy.internal/v1"
key = "env:OPENAI_API_KEY"

[providers.anthropic]
base_url = "http://other.internal"
[providers.anthropic.accounts]
a.key = "env:FIRST"
a.base_url = "http://third.internal"

[providers.mistral]
key = "env:SECOND"

[state]
store = "none"
"""
HELD: dict[str, tuple[str, str]] = {
    "a base_url": ('base_url = "http://user:secret@proxy.internal/v1"\n', "providers.openai.base_url is gone"),
    "a base_url before accounts": ('base_url = "http://other.internal"\n', "providers.anthropic.base_url is gone"),
    "the base_url of an account": ('a.base_url = "http://third.internal"\n', "accounts.a.base_url is gone"),
    "the key for an address": ('key = "env:OPENAI_API_KEY"\n', "providers.openai has no key"),
    "a provider with a key": ('[providers.mistral]\nkey = "env:SECOND"\n', "providers.mistral is gone"),
    "the end of the file": (PROXIED[PROXIED.index("[providers.anthropic]") :], "providers.anthropic is gone"),
    "all providers": (PROXIED[PROXIED.index("[providers.openai]") :], "providers.openai is gone"),
    "the route of all names": ('[models."*"]\ntry = ["openai/gpt-5.4"]\n', 'models."*" is gone'),
}


async def fetch(gateway: Gateway, path: str, address: str = "127.0.0.1") -> dict[str, Any]:
    client = Client(gateway, client=address)
    await client.ask(path, {"x-api-key": FIRST}, "GET")
    return json.loads(client.body)


@pytest.mark.parametrize("name", HELD)
def test_a_file_that_would_send_keys_elsewhere_waits_until_it_is_accepted(name: str, path: Path) -> None:
    gateway = make(path, PROXIED)
    part, reason = HELD[name]
    assert part in PROXIED
    before = gateway.runtime
    path.write_text(PROXIED.replace(part, ""))
    error = gateway.reload()
    assert error is not None
    assert reason in error
    assert "secret" not in error
    assert "segue gateway reload --accept" in error
    assert gateway.runtime is before
    assert gateway.held is not None
    other = path.read_text()
    path.write_text(PROXIED)
    accept(path)  # another file than the one that is held
    path.write_text(other)
    assert gateway.reload() is not None
    accept(path)
    assert gateway.reload() is None
    assert gateway.held is None
    assert gateway.runtime is not before


def test_what_a_file_states_is_applied_by_itself(path: Path) -> None:
    gateway = make(path, PROXIED)
    for text in (
        PROXIED.replace("proxy.internal", "proxy-2.internal"),
        PROXIED.replace("env:OPENAI_API_KEY", "env:FIRST"),
        PROXIED + '[providers.groq]\nkey = "env:FIRST"\n',
        PROXIED.replace('[models."*"]', '[models."quick"]\ntry = ["same"]\n[models."*"]'),
    ):
        path.write_text(PROXIED)
        gateway.reload(accept=True)
        path.write_text(text)
        assert gateway.reload() is None, text


def test_a_catalogue_without_its_addresses_waits_too(path: Path, tmp_path: Path) -> None:
    catalogue = tmp_path / "models.toml"
    catalogue.write_text(
        '[[models]]\nid = "own"\nprovider = "openai"\nprotocol = "openai-chat"\nbase_url = "http://own.internal/v1"\n'
        '[[providers]]\nname = "acme"\nprotocol = "openai-chat"\nbase_url = "http://acme.internal/v1"\n'
        'source = "the test"\nread = "2026-11-18"\n'
    )
    gateway = make(path, f'catalogue = "{catalogue}"\n{GOOD}'.replace('base_url = "http://127.0.0.1:9/v1"\n', ""))
    path.write_text(GOOD)
    error = gateway.reload() or ""
    assert "acme.internal" in error
    assert "openai/own" not in error  # the file states the address of its provider now
    path.write_text(GOOD.replace('base_url = "http://127.0.0.1:9/v1"\n', ""))
    assert "own.internal" in (gateway.reload() or "")
    assert gateway.reload(accept=True) is None


def test_the_watcher_takes_what_is_accepted_and_health_says_what_is_held(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_WATCH_SECONDS", 0.005)

    async def run() -> None:
        gateway = make(path, PROXIED)
        await gateway.start()
        assert "configuration" not in await fetch(gateway, "/health")
        path.write_text(PROXIED.replace('base_url = "http://other.internal"\n', ""))
        await until(lambda: gateway.held is not None)
        assert gateway.held is not None
        told = {"state": "held", "removed": list(gateway.held.removed)}
        assert told.items() <= (await fetch(gateway, "/health"))["configuration"].items()
        assert (await fetch(gateway, "/health", "192.0.2.7"))["configuration"] == {"state": "held"}
        shown = await fetch(gateway, "/segue/requests")
        assert "configuration" not in shown  # a client's key
        accept(path)
        await until(lambda: gateway.held is None)
        assert gateway.config.providers["anthropic"].base_url is None
        await gateway.close()

    asyncio.run(run())


def test_the_console_shows_what_is_held_to_who_runs_the_gateway(path: Path) -> None:
    gateway = make(path, PROXIED.replace('keys = ["env:FIRST", "env:SECOND"]', 'admin_key = "env:FIRST"'))
    path.write_text(path.read_text().replace('base_url = "http://other.internal"\n', ""))
    assert gateway.reload() is not None
    shown = asyncio.run(fetch(gateway, "/segue/requests"))
    assert shown["configuration"]["state"] == "held"


def closed_clients(monkeypatch: pytest.MonkeyPatch, gateway: Gateway) -> list[str]:
    closed: list[str] = []

    async def close() -> None:
        closed.append("closed")

    monkeypatch.setattr(gateway.runtime.client, "close", close)
    return closed


def test_an_old_client_is_closed_when_its_last_request_has_ended(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        gateway = make(path)
        await gateway.start()
        closed = closed_clients(monkeypatch, gateway)
        with gateway.runtime.used():
            path.write_text(GOOD.replace("quick", "slow"))
            assert gateway.reload() is None
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert closed == []
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert closed == ["closed"]
        await gateway.close()

    asyncio.run(run())


# -- the watcher -------------------------------------------------------------------------------------------------------


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.005)


def test_the_watcher_survives_everything_and_sees_later_changes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_WATCH_SECONDS", 0.005)

    async def run() -> None:
        gateway = make(path)
        await gateway.start()
        tries: list[str] = []
        apply, read = gateway._apply, gateway._fingerprint  # pyright: ignore[reportPrivateUsage]

        def noted(made: object) -> str | None:
            tries.append(str(made))
            return apply(made)  # pyright: ignore[reportArgumentType]

        def broken() -> bytes | None:
            tries.append("broken")
            raise RuntimeError("planted")

        monkeypatch.setattr(gateway, "_apply", noted)
        monkeypatch.setattr(gateway, "_fingerprint", broken)
        await until(lambda: "broken" in tries)
        monkeypatch.setattr(gateway, "_fingerprint", read)
        tries.clear()
        for text, _ in REFUSED.values():  # each one is tried once, and changes nothing
            before = len(tries)
            path.write_text(text)
            await until(lambda before=before: len(tries) > before)
            assert len(gateway.runtime.key_digests) == 2
        path.unlink()
        path.mkdir()  # not even a file
        await asyncio.sleep(0.02)
        path.rmdir()
        other = path.with_suffix(".new")
        other.write_text(GOOD.replace(', "env:SECOND"', ""))
        other.rename(path)  # as editors do
        await until(lambda: len(gateway.runtime.key_digests) == 1)
        await gateway.close()

    asyncio.run(run())


def test_a_change_in_the_same_tick_and_of_the_same_size_is_seen(path: Path) -> None:
    gateway = make(path)
    read = gateway._fingerprint  # pyright: ignore[reportPrivateUsage]
    before = read()
    status = path.stat()
    path.write_text(GOOD.replace("quick", "brisk"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size
    assert read() != before


@pytest.mark.parametrize("rounds", [40, pytest.param(3000, marks=pytest.mark.proof)])
def test_no_damaged_file_opens_the_gateway(rounds: int, path: Path) -> None:
    gateway = make(path)
    lines = GOOD.splitlines(keepends=True)
    drawn = random.Random(19)
    step = 1 if rounds > 100 else 7
    damaged = [GOOD[:at] for at in range(0, len(GOOD), step)]
    for _ in range(rounds):
        gone = set(drawn.sample(range(len(lines)), drawn.randrange(1, 6)))
        damaged.append("".join(line for at, line in enumerate(lines) if at not in gone))
    known = {sha256(key.encode()).digest() for key in (FIRST, SECOND)}
    outcomes: set[bool] = set()
    for text in damaged:
        path.write_text(text)
        outcomes.add(gateway.reload() is None)
        assert gateway.runtime.key_digests == known, text
        assert len(gateway.runtime.config.listen.keys) == 2
    assert outcomes == {True, False}
    path.write_text(GOOD)
    assert gateway.reload() is None
