"""A gateway in front of emulators, for tests."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, final

from segue.gateway.app import create_app
from segue.gateway.config import Config, load_config
from segue.gateway.service import Gateway
from segue.testing.emulator import EmulatorServer, Step, emulate, serve_in_thread

UPSTREAMS = {
    "m-anthropic": "anthropic/claude-opus-4-8",
    "m-responses": "openai/gpt-5.4",
    "m-gemini": "google/gemini-3.1-pro-preview",
    "m-chat": "openrouter/deepseek/deepseek-v4-pro",
}
KEYS: dict[str, str] = dict.fromkeys(
    ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY", "MISTRAL_API_KEY"),
    "sk-upstream-key",
)


@final
class Running(NamedTuple):
    """A gateway and the emulator behind it."""

    url: str
    gateway: Gateway
    upstream: EmulatorServer


def config_text(upstream: str, *, store: str, more: str = "") -> str:
    """Write a configuration whose providers are all one emulator."""
    lines = [
        f'[providers.anthropic]\nbase_url = "{upstream}"',
        f'[providers.openai]\nbase_url = "{upstream}/v1"',
        f'[providers.google]\nbase_url = "{upstream}/v1beta"',
        f'[providers.openrouter]\nbase_url = "{upstream}/v1"',
        *(f'[models."{name}"]\ntry = ["{target}"]' for name, target in UPSTREAMS.items()),
        f'[models."auto"]\ntry = {list(UPSTREAMS.values())}'.replace("'", '"'),
        f'[state]\nstore = "{store}"',
        more,
    ]
    return "\n".join(lines)


def make_gateway(config: Config, path: Path | None = None) -> Gateway:
    """Make a gateway with keys for every provider."""
    return Gateway(config, path=path, environment={**KEYS, "XDG_STATE_HOME": "/tmp"})


@contextmanager
def running(*steps: Step, store: str, more: str = "", key: str = "emulator") -> Generator[Running]:
    """Run an emulator and a gateway in front of it."""
    with emulate(*steps, key=key) as upstream:
        gateway = make_gateway(load_config(config_text(upstream.url, store=store, more=more)))
        with serve_in_thread(create_app(gateway=gateway)) as url:
            yield Running(url, gateway, upstream)
