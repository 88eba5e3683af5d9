"""The official SDKs on every upstream: the loop ends, nothing is refused, and the state of each model returns to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from google import genai
from google.genai import types

from gateway.running import UPSTREAMS, Running, config_text, make_gateway, running
from gateway.sdk_clients import CLIENTS, close_clients
from property_testing import tiers
from segue.envelope.envelopes import MARK
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.testing.emulator import EmulatedCall, RecordedRequest, Step, emulate, serve_in_thread

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


def is_streamed(client: str, other: bool) -> bool:
    """Take turns: each way is tried with half of the clients, and with `other` ones by `make proof`."""
    return (list(CLIENTS).index(client) % 2 == 0) != other


@pytest.mark.parametrize("other", tiers([False], [True]))
@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("client", CLIENTS)
def test_state_returns_in_a_loop_and_after_it(stored: Running, client: str, upstream: str, other: bool) -> None:
    stream = is_streamed(client, other) != (list(UPSTREAMS).index(upstream) % 2 == 1)
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


@pytest.mark.parametrize("other", tiers([False], [True]))
@pytest.mark.parametrize("client", CLIENTS)
def test_the_client_switches_models_and_back(client: str, other: bool, tmp_path: Path) -> None:
    with running(store=f"sqlite:{tmp_path}/g.db") as gateway:
        ask = CLIENTS[client](stream=is_streamed(client, other))
        history: list[object] = []
        for upstream in (*UPSTREAMS, *UPSTREAMS):
            gateway.upstream.emulator.script.add(CALL, END)
            history = ask(gateway.url, upstream, history, f"What does {upstream} know?")
            _expect_state(gateway, 1)
        ends = gateway.upstream.emulator.requests[1::2]
        assert [_signatures(request) for request in ends] == [1, 1, 1, 1, 3, 3, 3, 3]


# -- Google's Interactions API -----------------------------------------------------------------------------------------

INTERACTIONS_UPSTREAM = '[providers.google]\nprotocol = "google-interactions"\nbase_url = '


@pytest.fixture(scope="module")
def interactions_upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A gateway that asks Google over the Interactions API."""
    store = f"sqlite:{tmp_path_factory.mktemp('g')}/g.db"
    with emulate() as upstream:
        text = config_text(upstream.url, store=store).replace("[providers.google]\nbase_url = ", INTERACTIONS_UPSTREAM)
        gateway = make_gateway(load_config(text))
        with serve_in_thread(create_app(gateway=gateway)) as url:
            yield Running(url, gateway, upstream)


STRAIGHT = "gemini-3.1-pro-preview"


@pytest.mark.parametrize(
    ("client", "model", "stream"),
    [
        *((client, "m-gemini", True) for client in CLIENTS),
        *((client, STRAIGHT, stream) for client in ("interactions", "google") for stream in (True, False)),
    ],
)
def test_every_client_is_answered_by_google_over_interactions(
    interactions_upstream: Running, client: str, model: str, stream: bool
) -> None:
    gateway = _with_steps(interactions_upstream, CALL, END, CALL, END)
    ask = CLIENTS[client](stream=stream)
    history = ask(gateway.url, model, [], f"What is in {client} {stream}?")
    ask(gateway.url, model, history, "And now?")
    requests = gateway.upstream.emulator.requests
    assert {request.path for request in requests} <= {"/v1beta/interactions", "/v1/interactions"}
    _expect_state(gateway, 3)


@pytest.mark.parametrize(("upstream", "stream"), [("m-anthropic", True), ("m-gemini", False)])
def test_an_interaction_is_continued_by_its_id(stored: Running, upstream: str, stream: bool) -> None:
    gateway = _with_steps(stored, CALL, END, END)
    client: Any = genai.Client(api_key="client-key", http_options=types.HttpOptions(base_url=gateway.url))
    tools = [{"type": "function", "name": "read", "parameters": {"type": "object"}}]
    previous: dict[str, str] = {}
    given: Any = "question one"
    with closing(client):
        for _ in range(3):
            arguments: Any = {"model": upstream, "input": given, "tools": tools, **previous}
            if stream:
                events = list(client.interactions.create(**arguments, stream=True))
                (ended,) = [event for event in events if event.event_type == "interaction.completed"]
                starts = [event.step for event in events if event.event_type == "step.start"]
                previous = {"previous_interaction_id": ended.interaction.id}
            else:
                reply = client.interactions.create(**arguments)
                starts, previous = reply.steps or [], {"previous_interaction_id": reply.id or ""}
            calls = [step for step in starts if step.type == "function_call"]
            given = [
                {"type": "function_result", "call_id": call.id, "name": call.name, "result": "the file"}
                for call in calls
            ] or "question two"
    _expect_state(gateway, 1)
    text = json.dumps(gateway.upstream.emulator.requests[-1].body)
    for piece in ("question one", "Reading it.", "the file", "It says so.", "question two"):
        assert piece in text
    assert "previous_interaction_id" not in text


def test_an_interaction_that_is_not_stored_cannot_be_continued(stored: Running) -> None:
    _with_steps(stored)
    client = genai.Client(api_key="client-key", http_options=types.HttpOptions(base_url=stored.url))
    with closing(client), pytest.raises(Exception, match="not found") as caught:
        client.interactions.create(model="m-anthropic", input="on", previous_interaction_id="v1_nothing")
    assert getattr(caught.value, "status_code", None) == 400
