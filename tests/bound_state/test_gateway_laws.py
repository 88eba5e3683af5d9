"""The laws of bound state through the gateway: clients of three wires, with and without a store, one binding Claude.

A gateway cannot know the prefix of what a client sends for the first time, so one refused request in a conversation is
allowed where the client brings its own signatures; no client sees a refusal, and no refused body is sent again.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any, NamedTuple, cast, final

import httpx2
import pytest

from bound_state.inbound import Chat, Inbound, Messages, Responses, show
from gateway.running import running
from segue.testing.emulator import EmulatedCall, Emulator, Step

MODEL = "m-claude"
APPENDING = "m-appending"
COMPACTING = "m-compacting"
MORE = f"""
[models."{MODEL}"]
try = ["anthropic/claude-opus-5-5"]
[models."{APPENDING}"]
try = ["anthropic/claude-opus-5-5"]
instructions = "append"
[models."{COMPACTING}"]
try = ["anthropic/claude-opus-5-5"]
fit = "compact"
"""
THINK = Step(thinking="Hm.", text="Yes.")
CALL = Step(thinking="Look.", calls=(EmulatedCall(name="look", arguments={"n": 1}),))
WIRES: tuple[type[Inbound], ...] = (Chat, Messages, Responses)
REFUSED = {Chat: 0, Messages: 1, Responses: 0}
"""How many requests of a conversation may be refused upstream."""


@final
class Served(NamedTuple):
    """A client of a gateway, and the provider behind it."""

    http: httpx2.Client
    emulator: Emulator


@pytest.fixture(name="gateway", scope="module", params=["store", "no store"])
def _gateway(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    store = f"sqlite:{tmp_path_factory.mktemp('laws')}/g.db" if request.param == "store" else "none"
    with (
        running(store=store, more=MORE) as gateway,
        httpx2.Client(base_url=gateway.url, verify=False, timeout=60) as http,
    ):
        yield Served(http, gateway.upstream.emulator)


def send(gateway: Served, client: Inbound, text: str, step: Step) -> None:
    """Send one request; the client has to get a reply."""
    gateway.emulator.script.add(step)
    response = client.ask(text)
    assert response.status_code == 200, show(response)


def check(gateway: Served, client: Inbound) -> None:
    """Check what reached the provider."""
    emulator = gateway.emulator
    assert len(emulator.refused_for_state()) <= REFUSED[type(client)], "refused upstream"
    assert emulator.repeated() == [], "a refused body was sent again"


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.__name__)
def test_an_unchanged_conversation_keeps_its_thinking(gateway: Served, wire: type[Inbound]) -> None:
    gateway.emulator.requests.clear()
    client = wire(gateway.http, MODEL)
    for number, step in enumerate((THINK, CALL, THINK)):
        send(gateway, client, f"unchanged {number}", step)
    check(gateway, client)
    assert str(gateway.emulator.requests[-1].body).count("'signature'") == 2, "both come back"


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.__name__)
def test_a_date_in_the_system_prompt(gateway: Served, wire: type[Inbound]) -> None:
    gateway.emulator.requests.clear()
    client = wire(gateway.http, MODEL)
    for day in range(4):
        client.system = f"Be brief. Today is day {day} of {wire.__name__}."
        send(gateway, client, f"question {day}", THINK)
    check(gateway, client)


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.__name__)
def test_the_system_prompt_changes_inside_a_tool_loop(gateway: Served, wire: type[Inbound]) -> None:
    gateway.emulator.requests.clear()
    client = wire(gateway.http, MODEL)
    send(gateway, client, "look around", CALL)
    for number in range(3):
        client.system = f"Be brief. It is {number} o'clock."
        send(gateway, client, "", CALL)
    send(gateway, client, "", THINK)
    check(gateway, client)


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.__name__)
def test_a_changed_system_prompt_is_appended_where_the_route_says_so(gateway: Served, wire: type[Inbound]) -> None:
    gateway.emulator.requests.clear()
    client = wire(gateway.http, APPENDING)
    for day in range(4):
        client.system = f"Be brief. Today is day {day} of {wire.__name__}, appended."
        send(gateway, client, f"appended {day}", CALL if day == 1 else THINK)
    check(gateway, client)
    body = gateway.emulator.requests[-1].body
    assert str(body).count("'signature'") == 3, "all of it is sent"
    assert [message["role"] for message in cast("Any", body)["messages"]].count("system") == 3


@pytest.mark.parametrize("model", [MODEL, APPENDING])
@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.__name__)
def test_what_stands_before_the_messages_is_the_same_on_each_request(
    gateway: Served, wire: type[Inbound], model: str
) -> None:
    """The gateway adds nothing of its own that changes: earlier reasoning and the cache would be lost with it."""
    gateway.emulator.requests.clear()
    client = wire(gateway.http, model)
    for number, step in enumerate((THINK, CALL, CALL, THINK, THINK)):
        send(gateway, client, f"same {model} {number}", step)
    frames = {
        json.dumps([cast("Any", request.body).get(key) for key in ("system", "tools")])
        for request in gateway.emulator.requests
    }
    assert len(gateway.emulator.requests) == 5
    assert len(frames) == 1, frames


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.__name__)
def test_the_provider_is_asked_to_compact_where_the_route_says_so(gateway: Served, wire: type[Inbound]) -> None:
    gateway.emulator.requests.clear()
    client = wire(gateway.http, COMPACTING)
    for number, step in enumerate((THINK, CALL, THINK)):
        send(gateway, client, f"compacting {number}", step)
    check(gateway, client)
    sent = gateway.emulator.requests[-1]
    [edit] = cast("Any", sent.body)["context_management"]["edits"]
    assert edit["type"] == "compact_20260112"
    assert "compact-2026-01-12" in sent.headers["anthropic-beta"]
    assert str(sent.body).count("'signature'") == 2


def roam(gateway: Served, wire: type[Inbound], seed: int, steps: int) -> None:
    """Have a random conversation."""
    chance = random.Random(seed)
    gateway.emulator.requests.clear()
    client = wire(gateway.http, MODEL)
    for number in range(steps):
        match chance.choice(("nothing",) * 4 + ("system", "edit", "start again")):
            case "system":
                client.system = chance.choice(("Be brief.", "Be kind."))
            case "edit":
                client.edit_first(f"edited {seed} {chance.randrange(3)}")
            case "start again" if chance.random() < 0.3:
                client.start_again()
                gateway.emulator.requests.clear()
            case _:
                pass
        send(gateway, client, f"question {seed} {number}", chance.choice((THINK, CALL, Step(text="No."))))
        check(gateway, client)


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.__name__)
def test_random_conversations(gateway: Served, wire: type[Inbound]) -> None:
    roam(gateway, wire, 3, 8)


@pytest.mark.proof
@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.__name__)
def test_many_random_conversations(gateway: Served, wire: type[Inbound]) -> None:
    for seed in range(100, 300):
        roam(gateway, wire, seed, 12)
