"""Several accounts and deployments of one provider: shares by weight, addresses of their own, and cool-down."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

from gateway.running import config_text
from gateway.test_keys import BODY
from segue.errors import SettingsError
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.routing import Breaker
from segue.gateway.runtime import catalogue_of
from segue.gateway.service import Gateway
from segue.testing.emulator import EmulatorServer, Step, emulate, serve_in_thread

KEYS = {"KEY_A": "sk-a-secret", "KEY_B": "sk-b-secret", "XDG_STATE_HOME": "/tmp"}


def _accounts(weights: tuple[float, float], urls: tuple[str, str] | None = None) -> str:
    lines = [f'[providers.anthropic.accounts]\na.key = "env:KEY_A"\nb.key = "env:KEY_B"\na.weight = {weights[0]}']
    lines.append(f"b.weight = {weights[1]}")
    if urls is not None:
        lines.append(f'a.base_url = "{urls[0]}"\nb.base_url = "{urls[1]}"')
    return "\n".join(lines)


def _config(first: str, accounts: str, store: str = "none") -> str:
    """Write a configuration whose provider has accounts."""
    return config_text(first, store=store).replace("[providers.openai]", f"{accounts}\n[providers.openai]", 1)


@pytest.mark.parametrize(("weights", "share"), [((1, 1), 0.5), ((1, 3), 0.25), ((9, 1), 0.9)])
def test_new_conversations_are_shared_by_weight(weights: tuple[float, float], share: float) -> None:
    gateway = Gateway(load_config(_config("http://127.0.0.1:1", _accounts(weights))), environment=KEYS)
    model = catalogue_of(gateway.config).get("anthropic/claude-opus-4-8")
    first = Counter(
        gateway.conversations.order_accounts(f"c{n}", (model,), (), gateway.router, lambda _: None)[0].account
        for n in range(4000)
    )
    assert first["a"] / 4000 == pytest.approx(share, abs=0.03)


def test_a_weight_of_nothing_is_refused() -> None:
    with pytest.raises(SettingsError, match="weight"):
        load_config(_config("http://127.0.0.1:1", _accounts((0, 1))))


def test_an_account_that_rests_is_tried_last_until_then() -> None:
    gateway = Gateway(load_config(_config("http://127.0.0.1:1", _accounts((1, 1)))), environment=KEYS)
    model = catalogue_of(gateway.config).get("anthropic/claude-opus-4-8")
    a, b = (gateway.router.at_account(model, name) for name in "ab")
    breaker = Breaker(failures=5, seconds=30)
    breaker.rest(a, 10.0)
    assert breaker.order((a, b), 9.0) == (b, a)
    assert breaker.order((a,), 9.0) == (a,)
    assert breaker.order((a, b), 10.0) == (a, b)
    breaker.rest(a, 20.0)
    breaker.note(a, 11.0, failed=False)
    assert breaker.order((a, b), 12.0) == (a, b)


@pytest.mark.parametrize("status", [401, 429, 500])
def test_an_account_that_fails_gets_no_more_requests_for_some_time(status: int, tmp_path: Path) -> None:
    with ExitStack() as stack:
        ups = tuple(stack.enter_context(emulate()) for _ in range(2))
        accounts = _accounts((1, 1), (ups[0].url, ups[1].url))
        text = _config(ups[0].url, accounts, f"sqlite:{tmp_path / 'gateway.db'}") + "\n[limits]\nretries = 0"
        gateway = Gateway(load_config(text), environment=KEYS)
        url = stack.enter_context(serve_in_thread(create_app(gateway=gateway)))

        def ask(number: int) -> EmulatorServer:
            before = [len(up.emulator.requests) for up in ups]
            headers = {"x-session-id": f"session {number}"}
            assert httpx2.post(f"{url}/v1/messages", json=BODY, headers=headers, timeout=30).status_code == 200
            return next(up for up, count in zip(ups, before, strict=True) if len(up.emulator.requests) > count)

        used = {ask(number).url for number in range(12)}
        assert used == {up.url for up in ups}  # both addresses, each with its own key
        assert {key for up in ups for key in up.emulator.bills} == {"sk-a-secret", "sk-b-secret"}
        assert all(len(up.emulator.bills) == 1 for up in ups)
        failing, other = ups
        failing.emulator.script.add(*[Step(status=status)] * 50)
        number = 100
        while len(failing.emulator.script._steps) == 50:  # until a new conversation begins there, and fails over
            httpx2.post(f"{url}/v1/messages", json=BODY, headers={"x-session-id": f"session {number}"}, timeout=30)
            number += 1
        assert all(ask(number + more) is other for more in range(12))
