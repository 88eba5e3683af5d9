"""Keys of clients in the store: made, listed, revoked, with scopes and an end; only their digests are on disk."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from cli.running import run
from gateway.running import KEYS, UPSTREAMS, Running, make_gateway, running
from segue.errors import SettingsError
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.keys import ClientKey, Rights, digest_of, make_key
from segue.gateway.service import FIRST_KEY
from segue.gateway.store.key_table import put_key, read_keys, read_spending, revoke_key
from segue.gateway.store.opening import open_store
from segue.gateway.store.store import Store
from segue.testing.emulator import emulate, serve_in_thread

NO_LIMITS = Rights()
BODY = {"model": "m-anthropic", "max_tokens": 50, "messages": [{"role": "user", "content": "Hello"}]}


def add(running_: Any, name: str = "alice", rights: Rights = NO_LIMITS) -> str:
    """Make a key in the store of a gateway, and let the gateway see it."""
    store = running_.gateway.store.store
    assert store is not None
    secret, key = make_key(name, rights, time.time_ns() // 1_000_000)
    put_key(store.database, key, digest_of(secret))
    reload_keys(running_)
    return secret


def reload_keys(running_: Running) -> None:
    """Read the keys at once, as the gateway does twice a second."""
    store = running_.gateway.store.store
    assert store is not None
    running_.gateway.keys.load(lambda: str(time.time_ns()), lambda: read_keys(store.database))


def post(url: str, body: Any, key: str | None, path: str = "/v1/messages") -> httpx2.Response:
    """Send a request with a key."""
    headers = {} if key is None else {"x-api-key": key}
    return httpx2.post(f"{url}{path}", json=body, headers=headers, timeout=30)


@contextmanager
def opened(path: Path) -> Iterator[Store]:
    """Open the store of a file."""
    store = open_store(f"sqlite:{path}")
    assert store is not None
    try:
        yield store
    finally:
        store.close()


def test_a_key_is_made_used_listed_and_revoked_while_the_gateway_runs(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'gateway.db'}"
    with running(store=store) as gateway:
        assert post(gateway.url, BODY, None).status_code == 200  # no key is needed yet
        made = run("gateway", "keys", "create", "alice", "--store", store, "--budget", "5$/month")
        secret = made.out.strip()
        assert secret.startswith("sgw-")
        wait_for(lambda: post(gateway.url, BODY, None).status_code == 401)
        assert post(gateway.url, BODY, secret).status_code == 200
        assert run("gateway", "keys", "create", "alice", "--store", store).status == 2
        wait_for(lambda: gateway.gateway.spending.is_written)
        listed = run("gateway", "keys", "list", "--store", store)
        assert "alice" in listed.out
        assert "of $5 this month" in listed.out
        rows = json.loads(run("gateway", "keys", "list", "--json", "--store", store).out)
        assert rows[0]["spent"]["month"]["dollars"] > 0
        assert secret not in listed.out
        assert run("gateway", "keys", "revoke", "alice", "--store", store).status == 0
        wait_for(lambda: post(gateway.url, BODY, secret).status_code == 401)
        refused = post(gateway.url, BODY, secret)
        assert "revoked" in refused.text
        assert post(gateway.url, BODY, None).status_code == 401  # revoking the last key opens nothing
    for file in tmp_path.iterdir():
        data = file.read_bytes()
        assert secret.encode() not in data
        assert secret.removeprefix("sgw-")[:20].encode() not in data


def wait_for(condition: Any) -> None:
    """Wait for a condition, as long as a slow machine may take."""
    for _ in range(1500):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("the condition does not hold")


CASES: tuple[tuple[str, Rights, Any, int, str], ...] = (
    ("a name that it may ask for", Rights(routes=("m-anthropic",)), BODY, 200, ""),
    ("a pattern of names", Rights(routes=("m-*",)), BODY, 200, ""),
    ("a name that it may not ask for", Rights(routes=("m-chat",)), BODY, 403, "may not ask for 'm-anthropic'"),
    ("a model that it may use", Rights(models=("anthropic/*",)), BODY, 200, ""),
    ("a model that it may not use", Rights(models=("openai/*",)), BODY, 403, "may not use anthropic/claude-opus-4-8"),
    ("only one of the models of a route", Rights(models=("openai/*",)), {**BODY, "model": "auto"}, 200, "gpt-5.4"),
    ("an end in the past", Rights(expires=1), BODY, 401, "expired"),
    ("an end in the future", Rights(expires=4_000_000_000_000), BODY, 200, ""),
)


def test_scopes_and_ends_of_keys(tmp_path: Path) -> None:
    with running(store=f"sqlite:{tmp_path / 'gateway.db'}") as gateway:
        for at, (name, rights, body, status, text) in enumerate(CASES):
            sent = len(gateway.upstream.emulator.requests)
            secret = add(gateway, f"key {at}", rights)
            answer = post(gateway.url, body, secret)
            assert answer.status_code == status, name
            assert text in answer.text + answer.headers.get("x-segue-model", ""), name
            assert secret not in answer.text
            if status != 200:
                assert answer.json()["type"] == "error", name
                assert len(gateway.upstream.emulator.requests) == sent, name


LISTS = {
    "anthropic-messages": ("/v1/models", {"anthropic-version": "2023-06-01"}),
    "openai": ("/v1/models", {}),
    "google-generative-ai": ("/v1beta/models", {}),
    "ollama": ("/api/tags", {}),
}
LISTED: tuple[tuple[Rights, set[str]], ...] = (
    (Rights(), {*UPSTREAMS, "auto"}),
    (Rights(routes=("m-chat",)), {"m-chat"}),
    (Rights(routes=("m-*",), models=("openai/*", "google/*")), {"m-responses", "m-gemini"}),
    (Rights(models=("google/*",)), {"m-gemini", "auto"}),
    (Rights(models=("nobody/*",)), set()),
)


@pytest.mark.parametrize(("path", "headers"), LISTS.values(), ids=LISTS)
def test_a_list_of_models_has_those_that_the_key_may_ask_for(path: str, headers: Any, tmp_path: Path) -> None:
    with running(store=f"sqlite:{tmp_path / 'gateway.db'}") as gateway:
        for at, (rights, expected) in enumerate(LISTED):
            secret = add(gateway, f"key {at}", rights)
            given = {**headers, "authorization": f"Bearer {secret}"}
            answer = httpx2.get(f"{gateway.url}{path}", headers=given, timeout=30)
            assert answer.status_code == 200, answer.text
            (rows,) = (value for value in answer.json().values() if isinstance(value, list))
            names = {str(row.get("id") or row["name"]).removeprefix("models/").removesuffix(":latest") for row in rows}
            assert names == expected, rights
            for name in UPSTREAMS:
                asked = httpx2.get(f"{gateway.url}{path}/{name}", headers=given, timeout=30)
                assert path == "/api/tags" or asked.status_code == (200 if name in expected else 403), (name, rights)


def test_a_list_of_the_catalogue_has_those_that_the_key_may_ask_for(tmp_path: Path) -> None:
    config = load_config(f'[state]\nstore = "sqlite:{tmp_path / "gateway.db"}"')
    gateway = make_gateway(config)
    with emulate() as upstream, serve_in_thread(create_app(gateway=gateway)) as url:
        names: list[set[str]] = []
        for rights in (Rights(), Rights(models=("anthropic/claude-opus-4-8",)), Rights(routes=("nothing",))):
            secret = add(Running(url, gateway, upstream), f"key {len(names)}", rights)
            answer = httpx2.get(f"{url}/v1/models", headers={"x-api-key": secret, "anthropic-version": "2023-06-01"})
            names.append({row["id"] for row in answer.json()["data"]})
    assert len(names[0]) > 1
    assert names[1:] == [{"claude-opus-4-8"}, set()]


def test_the_first_key_of_a_store_is_announced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = f"sqlite:{tmp_path / 'gateway.db'}"
    with running(store=store) as gateway:
        first = run("gateway", "keys", "create", "alice", "--store", store)
        assert "every client of its gateways needs a key" in first.err
        assert first.out.count("\n") == 1  # the key alone
        wait_for(lambda: FIRST_KEY in caplog.text)
        refused = post(gateway.url, BODY, None)
        assert refused.status_code == 401
        assert "segue gateway keys create NAME" in refused.text
        second = run("gateway", "keys", "create", "bob", "--store", store)
        assert "first key" not in second.err
    assert caplog.text.count(FIRST_KEY) == 1


def test_an_unknown_key_is_refused_whatever_it_is(tmp_path: Path) -> None:
    with running(store=f"sqlite:{tmp_path / 'gateway.db'}") as gateway:
        secret = add(gateway)
        for wrong in (None, "", secret[:-1], secret + "x", secret.upper(), "' or 1=1 --", digest_of(secret).hex()):
            assert post(gateway.url, BODY, wrong).status_code == 401, wrong


def test_a_key_of_the_file_has_rights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KEYS, "ALICE", "a-long-key-of-alice")
    more = '[keys.alice]\nkey = "env:ALICE"\nroutes = ["m-chat"]'
    with running(store=f"sqlite:{tmp_path / 'gateway.db'}", more=more) as gateway:
        assert post(gateway.url, BODY, "a-long-key-of-alice").status_code == 403
        assert post(gateway.url, {**BODY, "model": "m-chat"}, "a-long-key-of-alice").status_code == 200


def test_two_keys_of_one_name_cannot_be_valid_at_once(tmp_path: Path) -> None:
    with opened(tmp_path / "gateway.db") as store:
        for expected in ("made", "refused", "made"):
            secret, key = make_key("alice", Rights(), 1)
            if expected == "made":
                put_key(store.database, key, digest_of(secret))
            else:
                with pytest.raises(SettingsError, match="there is a key 'alice' already"):
                    put_key(store.database, key, digest_of(secret))
                revoke_key(store.database, "alice", 2)
        states = [row.key.revoked for row in read_spending(store.database, 3)]
        assert sorted(states, key=str) == [2, None]


def test_a_key_without_a_secret_is_all_that_a_record_shows() -> None:
    secret, key = make_key("alice", Rights(), 1)
    assert isinstance(key, ClientKey)
    assert secret not in repr(key)
