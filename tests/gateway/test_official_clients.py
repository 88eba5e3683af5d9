"""The official SDKs on every upstream: the loop ends, nothing is refused, and the state of each model returns to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.running import UPSTREAMS, Running, running
from gateway.sdk_clients import CLIENTS, close_clients
from segue.envelope.envelopes import MARK
from segue.testing.emulator import EmulatedCall, RecordedRequest, Step

CALL = Step(
    thinking="I have to look at the file first.",
    text="Reading it.",
    calls=(EmulatedCall(name="read", arguments={"path": "a", "depth": 1.0}),),
)
END = Step(thinking="Now I know what is in it.", text="It says so.")


def _signatures(request: RecordedRequest) -> int:
    """Count the signatures in a request; the emulator has verified them."""
    text = json.dumps(request.body)
    assert MARK not in text
    return sum(
        text.count(f'"{name}": "ZW11') for name in ("signature", "encrypted_content", "thoughtSignature", "data")
    )


def _expect_state(gateway: Running, wanted: int) -> None:
    requests = gateway.upstream.emulator.requests
    assert {request.refusal for request in requests} == {None}, [request.refusal for request in requests]
    assert _signatures(requests[-1]) >= wanted


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(store=f"sqlite:{tmp_path_factory.mktemp('g')}/g.db") as gateway:
        yield gateway


@pytest.fixture(scope="module")
def stateless() -> Iterator[Running]:
    with running(store="none") as gateway:
        yield gateway


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    close_clients()


def _with_steps(gateway: Running, *steps: Step) -> Running:
    gateway.upstream.emulator.requests.clear()
    gateway.upstream.emulator.script.add(*steps)
    return gateway


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("client", CLIENTS)
def test_state_returns_in_a_loop_and_after_it(stored: Running, client: str, upstream: str, stream: bool) -> None:
    gateway = _with_steps(stored, CALL, END, CALL, END)
    ask = CLIENTS[client](stream=stream)
    history = ask(gateway.url, upstream, [], f"What is in {client} {upstream} {stream}?")
    _expect_state(gateway, 1)
    ask(gateway.url, upstream, history, "And now?")
    _expect_state(gateway, 3)
    assert len(gateway.upstream.emulator.requests) == 4


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("client", ["anthropic", "chat", "responses", "google", "interactions"])
def test_state_returns_without_a_store(stateless: Running, client: str, upstream: str) -> None:
    gateway = _with_steps(stateless, CALL, END, CALL, END)
    ask = CLIENTS[client](stream=True)
    history = ask(gateway.url, upstream, [], "What is in a?")
    ask(gateway.url, upstream, history, "And now?")
    _expect_state(gateway, 3)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("client", CLIENTS)
def test_the_client_switches_models_and_back(client: str, stream: bool, tmp_path: Path) -> None:
    with running(store=f"sqlite:{tmp_path}/g.db") as gateway:
        ask = CLIENTS[client](stream=stream)
        history: list[object] = []
        for upstream in (*UPSTREAMS, *UPSTREAMS):
            gateway.upstream.emulator.script.add(CALL, END)
            history = ask(gateway.url, upstream, history, f"What does {upstream} know?")
            _expect_state(gateway, 1)
        ends = gateway.upstream.emulator.requests[1::2]
        assert [_signatures(request) for request in ends] == [1, 1, 1, 1, 3, 3, 3, 3]
