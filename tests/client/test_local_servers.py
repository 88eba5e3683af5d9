"""The models of servers on this machine: found where a server answers, unless the user does not want them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from segue.client.local import servers
from segue.models.providers import PROVIDERS
from servers.script import Reply
from servers.scripted import ScriptedServer

pytest.importorskip("httpx2")

LISTS = {
    "llama.cpp": {"object": "list", "data": [{"id": "tiny", "object": "model"}]},
    "ollama": {"models": [{"name": "gemma4:latest"}]},
    "lmstudio": {"data": [{"id": "qwen"}]},
    "vllm": {"object": "list", "data": [{"id": "llama"}]},
}
"""How each server lists its models."""


@pytest.fixture
def listing(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    """Put one server in the place of all of them; it lists a model of each, and asking is allowed."""
    monkeypatch.setenv(servers.SWITCH, "on")
    with ScriptedServer() as server:
        rows = {name: replace(PROVIDERS[name], base_url=server.url) for name in LISTS}
        monkeypatch.setattr(servers, "PROVIDERS", {**PROVIDERS, **rows})
        for models in LISTS.values():
            server.reply(Reply.json(models))
        yield server


def test_the_models_of_every_server_are_found(listing):
    found = [f"{model.provider}/{model.id}" for model in servers.find_local_models()]
    assert found == ["llama.cpp/tiny", "ollama/gemma4:latest", "lmstudio/qwen", "vllm/llama"]
    assert len(listing.requests) == len(LISTS)


@pytest.mark.parametrize("value", ["off", "OFF"])
def test_a_user_can_switch_the_search_off(listing, monkeypatch, value):
    monkeypatch.setenv(servers.SWITCH, value)
    assert servers.find_local_models() == []
    assert listing.requests == []
