"""A spent budget: clients are told the true time, in a form after which they do not send the request again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from google import genai
from google.genai import types

from gateway.greedy_upstream import Served, served
from gateway.test_keys import add
from gateway.test_spending import _wires, spending_of
from segue.conversation.messages import Usage, UsageCost
from segue.gateway.keys import Budget, Period, Rights
from segue.gateway.store.accounts import Account, Lease
from segue.gateway.store.ledger import Wanted, end_of

TURN: Any = [{"role": "user", "content": "Hello"}]
AGENTS = {
    "codex": "codex_exec/0.169.0 (Debian 13.0.0; x86_64) dumb (codex_exec; 0.169.0)",
    "opencode": "opencode/1.18.33 ai-sdk/openai-compatible/3.0.0",
    "gemini-cli": "GeminiCLI/0.61.0/gemini-3.1-pro-preview (linux; x64)",
    "pi": "pi (linux 6.18; x64)",
    "claude-code": "claude-cli/2.1.325 (external, cli)",
    "openai-sdk": "OpenAI/Python 3.49.0",
    "another": "something/1.0",
}


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Served]:
    with served(f"sqlite:{tmp_path / 'gateway.db'}") as found:
        yield found


def spend(gateway: Served, period: Period = "month") -> str:
    """Make a key whose budget is spent."""
    secret = add(gateway, rights=Rights(budgets={period: Budget(dollars=1)}))
    key = next(iter(gateway.gateway.keys._keys.values()))
    spending = gateway.gateway.spending
    account = spending._accounts[key.tenant] = Account(key.tenant, "test")
    spending.count(Lease(account, key.rights, Wanted(), lambda _: None), Usage(cost=UsageCost(total=2.0)))
    spending_of(gateway)
    return secret


@pytest.mark.parametrize("period", ["day", "week", "month", "total"])
def test_every_wire_tells_the_true_time_and_not_to_try_again(gateway: Served, period: Period) -> None:
    key = spend(gateway, period)
    for wire in _wires("m-anthropic"):
        headers = {"authorization": f"Bearer {key}"}
        answer = httpx2.post(gateway.url + wire.path, json=wire.body, headers=headers, timeout=30)
        now = gateway.gateway.spending._clock()
        assert answer.headers["x-should-retry"] == "false", wire.name
        end = end_of(period, now)
        if end is None:
            assert "retry-after" not in answer.headers
        else:
            assert 0 <= int(answer.headers["retry-after"]) - (end - now) // 1000 <= 30, wire.name
    assert not gateway.upstream.bodies


@pytest.mark.parametrize("agent", AGENTS)
def test_each_program_gets_the_status_after_which_it_stops(gateway: Served, agent: str) -> None:
    key = spend(gateway)
    for wire in _wires("m-anthropic")[1:4]:
        headers = {"authorization": f"Bearer {key}", "user-agent": AGENTS[agent]}
        answer = httpx2.post(gateway.url + wire.path, json=wire.body, headers=headers, timeout=30)
        assert answer.status_code == (429 if agent in ("codex", "openai-sdk") else 402), wire.name
        error = answer.json()["error"]
        assert error.get("code") in ("insufficient_quota", 402, 429)


def _chat(url: str, key: str) -> None:
    with openai.OpenAI(base_url=f"{url}/v1", api_key=key) as client:
        client.chat.completions.create(model="m-chat", messages=TURN)


def _responses(url: str, key: str) -> None:
    with openai.OpenAI(base_url=f"{url}/v1", api_key=key) as client:
        client.responses.create(model="m-chat", input="Hello")


def _messages(url: str, key: str) -> None:
    with anthropic.Anthropic(base_url=url, api_key=key) as client:
        client.messages.create(model="m-anthropic", max_tokens=90, messages=TURN)


def _gemini(url: str, key: str) -> None:
    retries = types.HttpRetryOptions(attempts=4, initial_delay=0.01, max_delay=0.02)
    client = genai.Client(api_key=key, http_options=types.HttpOptions(base_url=url, retry_options=retries))
    try:
        client.models.generate_content(model="m-gemini", contents="Hello")
    finally:
        client.close()


@pytest.mark.parametrize("ask", [_chat, _responses, _messages, _gemini], ids=lambda ask: ask.__name__)
def test_an_official_client_asks_once(gateway: Served, ask: Callable[[str, str], None]) -> None:
    key = spend(gateway)
    with pytest.raises(Exception, match="the budget of this key for the month"):
        ask(gateway.url, key)
    assert len(gateway.asked) == 1
