"""What the tests of the client share: servers, and an environment without anyone's keys."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from servers.llama import llama_server
from servers.scripted import ScriptedServer

__all__ = ["llama_server"]


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


@pytest.fixture(autouse=True)
def nobodys_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every key of this machine out of the environment, and what a cloud's client would find by itself."""
    from segue.models.providers import PROVIDERS

    for row in PROVIDERS.values():
        for name in row.key_variables:
            monkeypatch.delenv(name, raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
