"""The models of conversations: sticky, chosen, the same after a restart and for every gateway of a store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from segue.gateway.config import load_config
from segue.gateway.conversations import ConversationRow, Conversations
from segue.gateway.routing import Routed, Router
from segue.gateway.store.opening import open_store
from segue.gateway.store.service import StoreService
from segue.gateway.store.store import StoredConversation, StoreLimits
from segue.models.catalogue import installed_catalogue

TEXT = """
[models."auto"]
try = ["anthropic/claude-opus-4-8", "openai/gpt-5.4"]
"""


def _routed() -> Routed:
    return Router(load_config(TEXT), installed_catalogue()).find("auto", "openai-chat")


def _ids(conversations: Conversations, name: str) -> list[str]:
    return [model.id for model in conversations.order(name, _routed())]


def _run(store: str, work: Callable[[Conversations], Awaitable[None]]) -> None:
    async def run() -> None:
        service = StoreService(open_store(store), StoreLimits(), print)
        service.start()
        await work(Conversations(service))
        await service.close()

    asyncio.run(run())


def test_a_conversation_stays_with_the_model_that_answered() -> None:
    async def work(conversations: Conversations) -> None:
        assert _ids(conversations, "c") == ["claude-opus-4-8", "gpt-5.4"]
        conversations.note("c", _routed().models[1], client="codex", tenant="", now=1)
        assert _ids(conversations, "c") == ["gpt-5.4", "claude-opus-4-8"]
        assert _ids(conversations, "d") == ["claude-opus-4-8", "gpt-5.4"]
        assert await conversations.choose("c", "openai/gpt-5.4", "", 2)
        assert conversations.chosen("c") == "openai/gpt-5.4"
        conversations.note("c", _routed().models[0], client="codex", tenant="", now=3)
        assert conversations.chosen("c") == "openai/gpt-5.4"
        assert await conversations.choose("c", None, "", 3)
        assert conversations.chosen("c") is None

    _run("none", work)


def test_models_and_choices_outlive_a_restart(tmp_path: Path) -> None:
    async def first(conversations: Conversations) -> None:
        conversations.note("c", _routed().models[1], client="codex", tenant="", now=1)
        await conversations.choose("c", "openai/gpt-5.4", "", 2)

    async def second(conversations: Conversations) -> None:
        assert conversations.chosen("c") is None
        await conversations.load("c")
        assert conversations.chosen("c") == "openai/gpt-5.4"
        assert _ids(conversations, "c") == ["gpt-5.4", "claude-opus-4-8"]
        row = ConversationRow(id="c", time=1, client="codex", model="openai/gpt-5.4", chosen="openai/gpt-5.4")
        assert await conversations.list_rows("") == [row]

    _run(f"sqlite:{tmp_path}/g.db", first)
    _run(f"sqlite:{tmp_path}/g.db", second)


def test_what_the_store_has_of_a_conversation_replaces_what_is_in_memory() -> None:
    def stored(tenant: str = "t", *, time: int = 5, refused: tuple[str, ...] = (), **given: str) -> StoredConversation:
        row = {"id": "c", "time": time, **given, **({"refused": refused} if refused else {})}
        return StoredConversation("c", tenant, msgspec.json.encode(row))

    conversations = Conversations(StoreService(None, StoreLimits(), print))
    first, second = stored(chosen="a/b"), stored(chosen="a/c", refused=("mark",))
    for found, chosen in ((first, "a/b"), (first, "a/b"), (second, "a/c"), (second, "a/c"), (first, "a/b")):
        conversations.keep(found)
        assert conversations.chosen("c") == chosen
    conversations.keep(stored("another", chosen="a/b"))
    assert conversations.is_alike("c", "t") is False
    conversations.forget("c", "t")
    assert conversations.chosen("c") == "a/b", "it is of another tenant now"
    conversations.keep(first)
    conversations.note("c", _routed().models[1], client="codex", tenant="t", now=90_000)
    conversations.keep(first)
    assert _ids(conversations, "c") == ["gpt-5.4", "claude-opus-4-8"], "what the store has is older"
    conversations.keep(stored(time=95_000, model="anthropic/claude-opus-4-8"))
    assert _ids(conversations, "c") == ["claude-opus-4-8", "gpt-5.4"]
    conversations.keep(StoredConversation("c", "t", b"no JSON"))
    assert _ids(conversations, "c") == ["claude-opus-4-8", "gpt-5.4"]


def test_a_tenant_neither_sees_nor_changes_conversations_of_another(tmp_path: Path) -> None:
    async def work(conversations: Conversations) -> None:
        conversations.note("c", _routed().models[0], client="codex", tenant="alice", now=1)
        assert await conversations.list_rows("bob") == []
        assert not await conversations.choose("c", "openai/gpt-5.4", "bob", 2)
        assert conversations.chosen("c") is None

    _run(f"sqlite:{tmp_path}/g.db", work)


def test_gateways_that_share_a_store_see_what_the_others_choose(tmp_path: Path) -> None:
    name = f"sqlite:{tmp_path}/g.db"
    first_model, second_model = _routed().models

    async def run() -> None:
        services = [StoreService(open_store(name), StoreLimits(), print) for _ in range(2)]
        for service in services:
            service.start()
        one, other = map(Conversations, services)
        one.note("c", first_model, client="codex", tenant="", now=1)
        one.note_refused("c", ["a"], tenant="", now=1)
        assert await one.choose("c", None, "", 1)  # everything before it is written
        await other.load("c")
        assert await other.choose("c", "openai/gpt-5.4", "", 2)
        # A request that began before the switch ends: it writes its model, and does not undo the switch.
        one.note("c", second_model, client="codex", tenant="", now=100_000)
        one.note_refused("c", ["b"], tenant="", now=100_000)
        await one.load("c")
        assert one.chosen("c") == "openai/gpt-5.4"
        assert _ids(one, "c")[0] == second_model.id
        await services[0].close()
        await other.load("c")
        assert other.chosen("c") == "openai/gpt-5.4"
        assert _ids(other, "c")[0] == second_model.id
        await services[1].close()

    asyncio.run(run())
    stored = open_store(name)
    assert stored is not None
    row = stored.find((), "c", 1).conversation
    stored.close()
    assert row is not None
    assert b'"refused":["a","b"]' in row.data
