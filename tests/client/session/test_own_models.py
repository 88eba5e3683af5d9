"""Models that no catalogue has: a conversation can leave them, return to them and be continued with them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from client.both_clients import AT_ONCE
from client.wires import TEXT, WIRES
from segue.client.http.clients import AsyncClient, Client
from segue.client.session.conversation import AsyncConversation, Conversation
from segue.conversation.messages import UserMessage
from segue.errors import SettingsError, UnknownModel
from segue.histories.sessions import append_message, append_model, read_session
from segue.models.catalogue import Catalogue
from segue.models.model import Model
from segue.models.origin import new_assistant_message
from segue.protocols.registry import resolve_rules
from servers.scripted import ScriptedServer

CHAT = WIRES["openai-chat"]


def own_model(url: str) -> Model:
    return replace(
        CHAT.model(url),
        id="tiny",
        provider="my-server",
        rules={"max_images": 3, "image_sources": ["data", "url"]},
        dialect={"max_tokens_field": "max_tokens"},
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def without_keys(**settings: object) -> Client:
    return Client(environment={}, retry=AT_ONCE, timeout=10.0, **settings)  # pyright: ignore[reportArgumentType]


def records(path: Path) -> list[dict[str, object]]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in lines if line.get("type") == "model"]


def test_a_file_continues_with_a_model_of_the_users_own(server: ScriptedServer, path: Path):
    server.reply(CHAT.answer(), CHAT.answer(), CHAT.answer())
    given = replace(own_model(server.url), rules={"max_images": 3, "image_sources": frozenset({"url", "data"})})
    assert resolve_rules(given) == resolve_rules(own_model(server.url))
    with without_keys() as client, Conversation(given, client=client, path=path) as conversation:
        conversation.ask("one")
        conversation.ask("two")
        assert read_session(path) == conversation.context
    assert len(records(path)) == 1
    with without_keys() as client, Conversation(path=path, client=client) as conversation:
        assert conversation.model == own_model(server.url)
        assert conversation.ask("three").text() == TEXT
    assert len(records(path)) == 1
    assert len(server.requests) == 3


def test_a_model_that_was_left_is_found_by_its_name(server: ScriptedServer, path: Path):
    server.reply(CHAT.answer(), CHAT.answer())
    for place in (None, path):
        with without_keys() as client, Conversation(own_model(server.url), client=client, path=place) as conversation:
            conversation.switch("echo")
            assert conversation.ask("hello").text() == "hello"
            conversation.switch("my-server/tiny")
            assert conversation.ask("hello").text() == TEXT
    with without_keys() as client, Conversation("echo", client=client, path=path) as conversation:
        conversation.switch("My-Server/Tiny")
        assert conversation.model == own_model(server.url)
        with pytest.raises(UnknownModel):
            conversation.switch("my-server/huge")
    assert [record["id"] for record in records(path)] == ["tiny"]


def test_asyncio_continues_as_well(server: ScriptedServer, path: Path):
    server.reply(CHAT.answer(), CHAT.answer(), CHAT.answer())

    async def run() -> None:
        async with (
            AsyncClient(environment={}, retry=AT_ONCE) as client,
            AsyncConversation(own_model(server.url), client=client, path=path) as conversation,
        ):
            await conversation.ask("one")
        async with (
            AsyncClient(environment={}, retry=AT_ONCE) as client,
            AsyncConversation(path=path, client=client) as conversation,
        ):
            assert conversation.model == own_model(server.url)
            await conversation.ask("two")
            conversation.switch("echo")
            assert (await conversation.ask("three")).text() == "three"
        async with (
            AsyncClient(environment={}) as client,
            AsyncConversation("my-server/tiny", client=client, path=path) as conversation,
        ):
            await conversation.ask("four")
        with pytest.raises(UnknownModel):
            AsyncConversation("my-server/tiny")

    asyncio.run(run())
    assert len(records(path)) == 1


def test_a_fallback_model_is_recorded_when_it_answered(server: ScriptedServer, path: Path):
    server.reply(CHAT.answer())
    broken = Model("gone", "nobody", "openai-chat", base_url="http://127.0.0.1:9/v1")
    with Client(environment={}, retry=0) as client:
        settings = {"client": client, "path": path, "fallback_models": [own_model(server.url)]}
        with Conversation(broken, **settings) as conversation:  # pyright: ignore[reportArgumentType]
            conversation.ask("one")
    assert [record["id"] for record in records(path)] == ["tiny"]


def test_an_address_of_the_settings_is_recorded(server: ScriptedServer, path: Path):
    server.reply(CHAT.answer(), CHAT.answer())
    model = Model("tiny", "llama.cpp", "openai-chat")
    client = without_keys(base_url={"llama.cpp": server.url})
    with client, Conversation(model, client=client, path=path) as conversation:
        conversation.ask("one")
    with without_keys() as client, Conversation(path=path, client=client) as conversation:
        assert conversation.ask("two").text() == TEXT


def test_a_model_of_the_catalogue_is_not_recorded(path: Path):
    with without_keys() as client, Conversation("echo", client=client, path=path) as conversation:
        conversation.ask("hello")
    with without_keys() as client, Conversation(path=path, client=client) as conversation:
        assert conversation.ask("again").text() == "again"
    assert records(path) == []


def test_a_model_of_a_users_catalogue_is_recorded(server: ScriptedServer, path: Path):
    server.reply(CHAT.answer())
    own = Catalogue(models=(own_model(server.url),))
    with (
        without_keys(catalogue=own) as client,
        Conversation("my-server/tiny", client=client, path=path) as conversation,
    ):
        conversation.ask("one")
    assert [record["id"] for record in records(path)] == ["tiny"]


def test_a_file_never_holds_a_key(server: ScriptedServer, path: Path):
    server.reply(CHAT.answer())
    address = server.url.replace("://", "://user:pass-word@") + "?api-key=query-key&api-version=1"
    model = replace(own_model(address), headers={"x-api-key": "header-key"})
    client = without_keys(api_key="setting-key", headers={"x-other": "setting-header"})
    with client, Conversation(model, client=client, path=path) as conversation:
        conversation.ask("one")
    text = path.read_text()
    for secret in ("pass-word", "query-key", "header-key", "setting-key", "setting-header", "user:"):
        assert secret not in text
    assert records(path)[0]["baseUrl"] == server.url + "?api-version=1"


def written(path: Path, model: Model) -> Path:
    append_message(path, UserMessage.of("hi"))
    append_model(path, model)
    append_message(path, new_assistant_message(model))
    return path


FOREIGN = Model("m", "openai", "openai-chat", base_url="https://elsewhere.example/v1")
UNSAFE = {
    "another address of a known provider": FOREIGN,
    "an address with a variable": replace(FOREIGN, provider="x", base_url="https://{OPENAI_API_KEY}.elsewhere.example"),
    "a path that changes the host": replace(FOREIGN, base_url=None, dialect={"path": "@elsewhere.example/v1"}),
    "a local address with such a path": replace(FOREIGN, base_url="http://localhost", dialect={"path": ".example/"}),
    "a provider's own server without TLS": replace(FOREIGN, base_url="http://api.openai.com/v1"),
    "an address that cannot be parsed": replace(FOREIGN, base_url="http://[::1/v1"),
}


@pytest.mark.parametrize("model", UNSAFE.values(), ids=UNSAFE)
def test_a_key_is_never_sent_to_an_address_of_the_file(path: Path, model: Model):
    written(path, model)
    with Client(environment={"OPENAI_API_KEY": "a-key-of-nobody"}) as client:
        with pytest.raises(SettingsError, match=r"if you trust it, pass the model: Conversation\(Model\('m'"):
            Conversation(path=path, client=client)
        with Conversation("echo", path=path, client=client) as conversation, pytest.raises(SettingsError):
            conversation.switch(model.full_name())
        with Conversation(model, path=path, client=client) as conversation:  # the caller's own word
            assert conversation.model == model


def test_any_kind_of_key_counts(path: Path):
    written(path, FOREIGN)
    for settings in (
        {"api_key": "k"},
        {"auth": lambda: "t"},
        {"headers": {"authorization": "k"}},
        {"api_key": {"openai": "k"}},
    ):
        with without_keys(**settings) as client, pytest.raises(SettingsError):
            Conversation(path=path, client=client)
    with without_keys() as client, Conversation(path=path, client=client) as conversation:
        assert conversation.model == FOREIGN


def test_the_own_address_of_a_provider_may_be_recorded(path: Path):
    model = Model("gpt-of-tomorrow", "openai", "openai-chat", base_url="https://api.openai.com/v1")
    written(path, model)
    client = Client(environment={"OPENAI_API_KEY": "a-key-of-nobody"})
    with client, Conversation(path=path, client=client) as conversation:
        assert conversation.model == model


def test_a_server_that_serves_what_is_loaded_has_every_model(path: Path):
    append_message(path, UserMessage.of("hi"))
    append_message(path, new_assistant_message(Model("tiny", "llama.cpp", "openai-chat")))
    with without_keys() as client, Conversation(path=path, client=client) as conversation:
        assert conversation.model == Model("tiny", "llama.cpp", "openai-chat")
        conversation.switch("ollama/gemma4:31b")
        assert conversation.model.protocol == "ollama-chat"
