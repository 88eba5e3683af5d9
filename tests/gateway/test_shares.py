"""Each key has its share of the store and of memory: whoever fills them loses its own entries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.running import running
from gateway.test_keys import add
from gateway.test_store import NOW, _state, address, server  # noqa: F401 - fixtures
from segue.gateway.shares import SharedCache, SharedDigests, find_share
from segue.gateway.store.opening import open_store
from segue.gateway.store.service import StoreService
from segue.gateway.store.store import (
    Stored,
    StoredContent,
    StoredConversation,
    StoredReply,
    StoredRow,
    StoredState,
    StoreLimits,
)

DATA = b"x" * 1_000


def _read(store: Any, query: str) -> dict[str, Any]:
    return dict(store.database.query(query))


def entry(table: str, tenant: str, number: int) -> Stored:
    """Make something to store in a table."""
    name = f"{tenant}-{number}"
    match table:
        case "states":
            return StoredState(tenant, (f"key:{name}",), _state(name, 1_000))
        case "requests":
            return StoredRow(name, tenant, DATA)
        case "responses":
            return StoredReply(name, tenant, DATA)
        case "conversations":
            return StoredConversation(name, tenant, DATA)
        case _:
            return StoredContent(name, tenant, DATA, "c")


@pytest.mark.parametrize("table", ["states", "requests", "responses", "conversations", "contents"])
def test_a_key_that_fills_a_table_pushes_out_nothing_of_others(address: str, table: str) -> None:  # noqa: F811
    store = open_store(address)
    assert store is not None
    for number in range(3):
        store.put_all([entry(table, "bob", number)], NOW)
    for number in range(40):
        store.put_all([entry(table, "mallory", number)], NOW + number + 1)
    store.sweep(StoreLimits(state_bytes=20_000), NOW + 50)
    totals = _read(store, f"select tenant, sum(size) from {table} group by tenant")
    counts = _read(store, f"select tenant, count(*) from {table} group by tenant")
    store.close()
    assert counts["bob"] == 3
    assert 10 < int(str(counts["mallory"])) < 20
    assert sum(int(str(size)) for size in totals.values()) <= 20_000


def test_a_store_that_grows_fast_is_swept_before_its_time(tmp_path: Path) -> None:
    store = open_store(f"sqlite:{tmp_path / 'gateway.db'}")
    assert store is not None
    service = StoreService(store, StoreLimits(state_bytes=20_000), print)
    assert not service.has_grown
    store.put_all([entry("conversations", "mallory", number) for number in range(40)], NOW)
    assert service.has_grown
    service.sweep(NOW)
    assert not service.has_grown
    assert store.database.query("select sum(size) <= 20000 from conversations")[0][0]
    store.close()


@given(st.lists(st.integers(0, 1_000), min_size=1), st.integers(0, 5_000))
def test_a_share_is_the_largest_that_fits(sizes: list[int], most: int) -> None:
    share = find_share(sizes, most)
    assert sum(min(size, share) for size in sizes) <= most
    if sum(sizes) > most:
        assert sum(min(size, share + 1) for size in sizes) > most


def test_a_tenant_that_fills_a_cache_loses_its_own_entries() -> None:
    cache = SharedCache[str, int](10)
    for number in range(3):
        cache.put("bob", f"bob {number}", number)
    for number in range(100):
        cache.put("mallory", f"mallory {number}", number)
    assert (cache.count_of("bob"), cache.count_of("mallory")) == (3, 7)
    assert cache.get("mallory 99") == 99
    cache.drop("bob 0")
    assert (len(cache), cache.count_of("bob")) == (9, 2)


def test_an_entry_that_is_put_again_is_the_newest_and_of_its_last_tenant() -> None:
    cache = SharedCache[str, int](3)
    for key in ("a", "b", "c", "a", "d"):
        cache.put("bob", key, 1)
    assert [key for key in "abcd" if key in cache] == ["a", "c", "d"]
    cache.put("bob", "a", 5)
    assert (cache.get("a"), len(cache), cache.count_of("bob")) == (5, 3, 3)
    cache.put("mallory", "c", 2)
    assert (cache.owner_of("c"), cache.count_of("bob"), cache.count_of("mallory")) == ("mallory", 2, 1)
    cache.put("mallory", "d", 2)
    assert (cache.owner_of("d"), cache.count_of("bob"), cache.count_of("mallory")) == ("mallory", 1, 2)


def test_digests_are_apart_for_each_tenant() -> None:
    digests = SharedDigests()
    assert digests.of("bob") is digests.of("bob")
    assert digests.of("bob") is not digests.of("mallory")


@pytest.mark.parametrize("with_key", [False, True])
def test_a_conversation_that_does_not_exist_is_not_made_by_a_choice(tmp_path: Path, with_key: bool) -> None:
    with running(store=f"sqlite:{tmp_path / 'gateway.db'}") as gateway:
        headers: dict[str, Any] = {"x-api-key": add(gateway)} if with_key else {}
        for number in range(20):
            place = f"{gateway.url}/segue/conversations/made-up-{number}"
            answer = httpx2.put(place, json={"model": "m-gemini"}, headers=headers, timeout=30)
            assert answer.status_code == 404
        store = gateway.gateway.store.store
        assert store is not None
        assert store.list_conversations(None, 100) == []
