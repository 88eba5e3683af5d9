"""Prompt caching through the gateway: clients that ask for none pay for a long conversation once, not at every step."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from gateway.bound_clients import WIRES, Question
from gateway.running import Running, running
from segue import AssistantMessage, CacheMark, Context, Model, Options, TextContent, UserMessage, get_model, prepare
from segue.conversation.messages import Usage
from segue.gateway.caching import find_saving, with_caching
from segue.testing.emulator import Bill, EmulatedCall, Step

STEPS = 12
SYSTEM = "You are a careful engineer. " + "Read every file before you change it. " * 400
RESULT = "def area(radius):\n    return 3.14159 * radius ** 2\n" * 12
UNCACHED = '\n[models."plain-anthropic"]\ntry = ["anthropic/claude-opus-4-8"]\ncaching = false\n'
"""A route without caching, as the gateway was before it asked for it."""


def run_agent(gateway: Running, wire: str, model: str) -> Bill:
    """Run a tool loop; gives the bill for it."""
    emulator = gateway.upstream.emulator
    emulator.script.add(*(Step(calls=(EmulatedCall(name="read", arguments={"n": at}),)) for at in range(STEPS - 1)))
    emulator.script.add(Step(text="Done."))
    before = len(emulator.requests)
    client = WIRES[wire](gateway.url)
    try:
        history = [*client.user(f"Fix the area function, {wire}, {model}.").items]
        for _ in range(STEPS):
            items, calls = client.ask(Question(model, SYSTEM, ("read",), stream=False), history)
            history += [*items, *(client.results(calls, RESULT).items if calls else ())]
    finally:
        client.close()
    sent = emulator.requests[before:]
    assert [request.refusal for request in sent] == [None] * STEPS
    total = Bill()
    for request in sent:
        assert request.bill is not None
        total += request.bill
    return total


@pytest.fixture(scope="module")
def gateway() -> Any:
    with running(store="none", more=UNCACHED) as made:
        yield made


@pytest.mark.parametrize("wire", ["chat", "responses", "gemini"])
def test_a_tool_loop_to_claude_pays_little_at_the_full_price(gateway: Running, wire: str) -> None:
    plain = run_agent(gateway, wire, "plain-anthropic")
    cached = run_agent(gateway, wire, "m-anthropic")
    assert plain.cache_read == 0
    assert cached.input <= 0.15 * plain.input
    assert cached.cost < 0.35 * plain.cost


@pytest.mark.parametrize("wire", ["messages", "chat", "gemini"])
def test_a_tool_loop_to_gpt_is_routed_to_one_cache(gateway: Running, wire: str) -> None:
    cached = run_agent(gateway, wire, "m-responses")
    assert cached.input <= 0.15 * (cached.input + cached.cache_read + cached.cache_write)
    keys = {request.body.get("prompt_cache_key") for request in gateway.upstream.emulator.requests[-STEPS:]}  # type: ignore[union-attr]
    assert len(keys) == 1
    assert None not in keys


def test_the_marks_of_the_client_are_the_only_ones(gateway: Running) -> None:
    marked = [{"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}]
    body = {"model": "m-anthropic", "max_tokens": 50, "system": SYSTEM, "messages": marked, "tools": []}
    assert httpx2.post(f"{gateway.url}/v1/messages", json=body, timeout=60).status_code == 200
    assert json.dumps(gateway.upstream.emulator.requests[-1].body).count("cache_control") == 1


def test_the_page_says_what_caching_saved(tmp_path: Any) -> None:
    with running(store=f"sqlite:{tmp_path}/gateway.db") as gateway:
        run_agent(gateway, "chat", "m-anthropic")
        for _ in range(1000):  # a row is written after its reply
            (sums,) = httpx2.get(f"{gateway.url}/segue/conversations").json()["caching"].values()
            if sums["requests"] == STEPS:
                break
    assert sums["requests"] == STEPS
    assert sums["cached"] > 0.5 * sums["input"]
    assert sums["saved"] > 0


CLAUDE = get_model("anthropic/claude-opus-4-8")
GPT = get_model("openai/gpt-5.4")
GEMINI = get_model("google/gemini-3.1-pro-preview")
ONE = Context(messages=(UserMessage.of("hi"),))
TWO = Context(
    messages=(UserMessage.of("hi"), AssistantMessage(content=(TextContent("hello"),)), UserMessage.of("go on"))
)
MARKED = Context(messages=(*TWO.messages, UserMessage(content=(TextContent(text="x", cache_mark=CacheMark()),))))


@pytest.mark.parametrize(
    ("context", "model", "given", "expected"),
    [
        (TWO, CLAUDE, Options(), Options(cache_retention="short")),
        (ONE, CLAUDE, Options(), Options()),
        (MARKED, CLAUDE, Options(), Options()),
        (TWO, CLAUDE, Options(cache_retention="none"), Options(cache_retention="none")),
        (ONE, GPT, Options(), Options(session_id="c1")),
        (ONE, GPT, Options(session_id="own"), Options(session_id="own")),
        (TWO, GEMINI, Options(), Options()),
    ],
    ids=["goes on", "one question", "client's marks", "switched off", "key", "client's key", "neither marks nor keys"],
)
def test_asks_for_caching_where_it_pays(context: Context, model: Model, given: Options, expected: Options) -> None:
    assert with_caching(given, context, model, "c1") == expected


def test_an_old_mark_of_the_client_is_the_only_one() -> None:
    marked = UserMessage(content=(TextContent(text="x", cache_mark=CacheMark()),))
    context = Context(messages=(marked, *TWO.messages[1:], *TWO.messages[1:] * 20))
    options = with_caching(Options(), context, CLAUDE, "c1")
    assert json.dumps(prepare(context, CLAUDE, options=options).body).count("cache_control") == 1


def test_a_saving_counts_reads_and_writes() -> None:
    read, written = Usage(input=10, cache_read=1_000_000), Usage(input=10, cache_write=1_000_000)
    assert find_saving(CLAUDE, read) == pytest.approx(CLAUDE.cost.input - CLAUDE.cost.cache_read, abs=1e-3)
    assert find_saving(CLAUDE, written) == pytest.approx(CLAUDE.cost.input - CLAUDE.cost.cache_write, abs=1e-3)
    assert find_saving(Model("m", "own", "openai-chat"), read) is None
