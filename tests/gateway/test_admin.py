"""The admin API: only with its key, only from this machine, and for no page of another origin."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path

import httpx2
import pytest

from gateway import running as settings
from gateway.running import running
from gateway.test_keys import BODY, post
from segue.errors import SettingsError
from segue.gateway.keys import Budget, Rights, digest_of, make_key

ADMIN = "the-long-key-of-the-operator"
MORE = '[listen]\nadmin_key = "env:ADMIN"'


@pytest.fixture(autouse=True)
def _admin_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(settings.KEYS, "ADMIN", ADMIN)


def test_keys_are_made_listed_and_revoked_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with ExitStack() as stack:
        gateway = stack.enter_context(running(store=f"sqlite:{tmp_path / 'gateway.db'}", more=MORE))
        admin = stack.enter_context(httpx2.Client(base_url=f"{gateway.url}/segue/admin", headers={"x-api-key": ADMIN}))
        made = admin.post("/keys", json={"name": "alice", "budgets": {"month": {"dollars": 5}}})
        assert made.status_code == 201
        assert made.headers["cache-control"] == "no-store"
        key = made.json()["key"]
        assert post(gateway.url, BODY, None).status_code == 401
        assert post(gateway.url, BODY, ADMIN).status_code == 401  # it is no key of a client
        answer = post(gateway.url, BODY, key)
        assert answer.status_code == 200
        listed = admin.get("/keys")
        assert [row["name"] for row in listed.json()["keys"]] == ["alice"]
        row = httpx2.get(
            f"{gateway.url}/segue/requests/{answer.headers['x-segue-request-id']}", headers={"x-api-key": key}
        )
        assert row.json()["key"] == "alice"
        assert admin.delete("/keys/alice").status_code == 200
        assert post(gateway.url, BODY, key).status_code == 401
        for shown in (listed.text, row.text, caplog.text):
            assert key not in shown
            assert ADMIN not in shown


REFUSED: Mapping[str, tuple[dict[str, str], int]] = {
    "no key": ({}, 401),
    "another key": ({"x-api-key": "another-long-key"}, 401),
    "the key in the wrong form": ({"x-api-key": ADMIN[:-1]}, 401),
    "a page of another site": ({"x-api-key": ADMIN, "origin": "https://evil.example"}, 403),
    "a page of another port": ({"x-api-key": ADMIN, "origin": "http://127.0.0.1:1"}, 403),
    "a page that hides its origin": ({"x-api-key": ADMIN, "origin": "null"}, 403),
    "a form of another site": ({"x-api-key": ADMIN, "sec-fetch-site": "cross-site"}, 403),
    "another host": ({"x-api-key": ADMIN, "host": "evil.example"}, 403),
}
BODIES = (
    {},
    {"name": ""},
    {"name": "a", "budget": 5},
    {"name": "a", "budgets": {"year": {}}},
    [],
    {"name": " a"},
    # What no ledger can count and no calendar has: the key could not be used, and the list of keys not be written.
    {"name": "a", "budgets": {"day": {"dollars": 1e300}}},
    {"name": "a", "budgets": {"day": {"tokens": 10**26}}},
    {"name": "a", "expires": 99_999_999_999_999_999},
    {"name": "a", "expires": -1},
    {"name": "a", "requests_per_minute": 10**20},
)


def test_what_is_not_the_operator_is_refused(tmp_path: Path) -> None:
    with running(store=f"sqlite:{tmp_path / 'gateway.db'}", more=MORE) as gateway:
        url = f"{gateway.url}/segue/admin/keys"
        for name, (headers, status) in REFUSED.items():
            for answer in (
                httpx2.get(url, headers=headers),
                httpx2.post(url, headers=headers, json={"name": "alice"}),
                httpx2.delete(f"{url}/alice", headers=headers),
            ):
                assert answer.status_code == status, name
        assert httpx2.get(f"{url}?key={ADMIN}").status_code == 401  # addresses end in logs
        for body in BODIES:
            assert httpx2.post(url, headers={"x-api-key": ADMIN}, json=body).status_code == 400, body
        assert httpx2.delete(f"{url}/alice", headers={"x-api-key": ADMIN}).status_code == 404
        assert post(gateway.url, BODY, None).status_code == 200  # none of them made a key


def test_there_is_no_admin_api_without_its_key(tmp_path: Path) -> None:
    with running(store=f"sqlite:{tmp_path / 'gateway.db'}") as gateway:
        for headers in ({}, {"x-api-key": ADMIN}, {"x-api-key": ""}):
            assert httpx2.get(f"{gateway.url}/segue/admin/keys", headers=headers).status_code == 404


def test_a_right_that_cannot_be_counted_is_refused_however_a_key_is_made() -> None:
    for rights in (Rights(budgets={"day": Budget(dollars=1e300)}), Rights(expires=10**17), Rights(tokens_per_minute=0)):
        with pytest.raises(SettingsError, match="rights"):
            make_key("a", rights, 0)


def test_a_key_that_cannot_be_read_is_refused_and_the_others_are_not(tmp_path: Path) -> None:
    with running(store=f"sqlite:{tmp_path / 'gateway.db'}", more=MORE) as gateway:
        admin = httpx2.Client(base_url=f"{gateway.url}/segue/admin", headers={"x-api-key": ADMIN})
        with admin:
            good, bad = (admin.post("/keys", json={"name": name}).json()["key"] for name in ("good", "bad"))
            with closing(sqlite3.connect(tmp_path / "gateway.db")) as database, database:
                changed = 'update keys set data = cast(replace(data, \'"made":\', \'"made":1e99,"x":\') as blob)'
                assert database.execute(f"{changed} where digest = ?", (digest_of(bad).hex(),)).rowcount == 1
            assert admin.post("/keys", json={"name": "third"}).status_code == 201  # keys are read again
            assert [row["name"] for row in admin.get("/keys").json()["keys"]] == ["good", "third"]
            assert post(gateway.url, BODY, good).status_code == 200
            assert post(gateway.url, BODY, bad).status_code == 401
