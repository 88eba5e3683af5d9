"""A cache is kept alive by requests without an answer, within a budget; the emulator bills, and its caches expire."""

from __future__ import annotations

import asyncio

import httpx2
import pytest
from msgspec.structs import replace

from segue import (
    AssistantMessage,
    AsyncClient,
    Client,
    Context,
    KeepWarm,
    Model,
    Options,
    Usage,
    UsageCost,
    UserMessage,
    get_model,
)
from segue.client.flow.backoff import Retry
from segue.errors import SettingsError
from segue.models.origin import new_assistant_message
from segue.testing.emulator import Emulator

CLAUDE, OLDER, GPT = (get_model(name) for name in (
    "anthropic/claude-opus-5-5", "anthropic/claude-sonnet-4-5", "openai/gpt-5.4"
))  # fmt: skip
OPTIONS = Options(cache_retention="short", max_tokens=1000)
ASKED = Context(
    system_prompt="The handbook: " + "every item is described in detail. " * 3000,
    messages=(UserMessage.of("Is there a return policy?"),),
)


class Provider:
    """The emulator behind a client, with a clock that a test turns."""

    def __init__(self) -> None:
        self.now = 0.0
        self.emulator = Emulator(clock=lambda: self.now)
        self.statuses: list[int] = []
        self.bodies: list[dict[str, object]] = []

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        path, headers, body = request.url.raw_path.decode(), dict(request.headers), request.read()
        if self.statuses:
            return httpx2.Response(
                self.statuses.pop(0), json={"type": "error", "error": {"type": "x", "message": "no"}}
            )
        reply = self.emulator.respond(request.method, path, headers, body)
        self.bodies.append(dict(self.emulator.requests[-1].body))
        return httpx2.Response(reply.status, headers=reply.headers, content=reply.body)

    def client(self) -> Client:
        return Client(api_key="key", transport=httpx2.MockTransport(self.answer), retry=Retry(max_retries=0))

    def keep(self, context: Context, *, model: Model = CLAUDE, budget: float = 1.0, options: Options = OPTIONS):
        return KeepWarm(context, model, budget=budget, options=options, clock=lambda: self.now)


@pytest.fixture
def provider() -> Provider:
    return Provider()


def ask(client: Client, context: Context, model: Model = CLAUDE, options: Options = OPTIONS) -> Context:
    return context.add(client.complete(context, model, options=options))


def usage_of(context: Context) -> Usage:
    reply = context.messages[-1]
    assert isinstance(reply, AssistantMessage)
    assert reply.usage is not None
    return reply.usage


def price_of(context: Context) -> UsageCost:
    cost = usage_of(context).cost
    assert cost is not None
    return cost


@pytest.mark.parametrize("retention", ["short", "long"])
def test_a_cache_that_is_kept_is_read_after_its_lifetime_and_what_was_saved_is_what_it_would_have_cost(
    provider, retention
):
    options = replace(OPTIONS, cache_retention=retention)
    lifetime = 300 if retention == "short" else 3600
    with provider.client() as client:
        first = ask(client, ASKED, options=options)
        warm = provider.keep(first, options=options)
        started, spent = provider.now, 0.0
        while provider.now < started + 2 * lifetime:
            seconds = warm.wait()
            assert seconds is not None
            assert 0 < seconds < lifetime
            provider.now += seconds
            assert warm.refresh(client), warm.stopped
        again = first.add(UserMessage.of("And for sale items?"))
        kept = ask(client, again, options=options)
        saved = warm.note(kept)
        assert usage_of(kept).cache_read >= usage_of(first).cache_write
        spent = warm.cost
        # The same without it: the cache has expired.
        provider.now += 2 * lifetime
        cold = ask(client, again, options=options)
    assert usage_of(cold).cache_read == 0
    assert saved == pytest.approx(price_of(cold).total - price_of(kept).total, rel=0.02)
    assert 0 < spent < saved == warm.saved
    assert all(body["max_tokens"] == 0 for body in provider.bodies[1:4])
    assert provider.bodies[1]["messages"] == provider.bodies[0]["messages"]


def test_nothing_is_saved_where_the_next_request_comes_in_time(provider):
    with provider.client() as client:
        warm = provider.keep(ask(client, ASKED))
        provider.now += 240
        assert warm.refresh(client)
        provider.now += 30
        assert warm.note(ask(client, ASKED)) == 0.0
    assert warm.cost > 0


def test_it_stops_at_the_budget_and_never_spends_more(provider):
    with provider.client() as client:
        first = ask(client, ASKED)
        once = provider.keep(first)
        assert once.refresh(client)
        warm = provider.keep(first, budget=2.5 * once.cost)
        while (seconds := warm.wait()) is not None:
            provider.now += seconds
            warm.refresh(client)
    assert (warm.refreshes, warm.stopped) == (2, "the budget is spent")
    assert warm.cost <= warm.budget
    assert not warm.refresh(client)


def test_a_budget_of_nothing_sends_nothing(provider):
    with provider.client() as client:
        warm = provider.keep(ask(client, ASKED), budget=0)
        count = len(provider.emulator.requests)
        assert not warm.refresh(client)
    assert len(provider.emulator.requests) == count
    assert warm.wait() is None


def test_it_stops_when_keeping_costs_more_than_filling_the_cache_again(provider):
    with provider.client() as client:
        first = ask(client, ASKED)
        warm = provider.keep(first, budget=1000.0)
        while (seconds := warm.wait()) is not None:
            provider.now += seconds
            warm.refresh(client)
    assert warm.stopped == "to keep the cache longer costs more than to fill it again"
    cold, one = price_of(first).cache_write, warm.cost / warm.refreshes
    assert cold - 1.1 * one < warm.cost <= cold


def test_a_cache_that_has_expired_is_not_filled_again(provider):
    with provider.client() as client:
        warm = provider.keep(ask(client, ASKED))
        provider.now += 301
        count = len(provider.emulator.requests)
        assert not warm.refresh(client)
    assert warm.stopped == "the cache has expired"
    assert len(provider.emulator.requests) == count


def test_a_request_that_reads_no_cache_ends_it(provider):
    with provider.client() as client:
        warm = provider.keep(ask(client, ASKED))
        provider.emulator = Emulator(clock=lambda: provider.now)  # another server, without the cache
        assert not warm.refresh(client)
    assert warm.stopped == "a request did not read the cache"
    assert warm.wait() is None


@pytest.mark.parametrize(
    ("model", "options", "reason"),
    [
        ("google/gemini-3.5-flash", OPTIONS, "does not say what keeps a cache"),
        ("deepseek/deepseek-chat", OPTIONS, "does not say what keeps a cache"),
        ("ollama/qwen3", OPTIONS, "does not say what keeps a cache"),
        (CLAUDE, Options(max_tokens=1000), "neither read a cache nor wrote one"),
        (OLDER, replace(OPTIONS, thinking="high", max_tokens=9000), "differs in more than its limit"),
    ],
)
def test_a_cache_that_cannot_be_kept_is_named_and_nothing_is_sent(provider, model, options, reason):
    model = get_model(model)
    usage = Usage(input=10, cache_write=0 if options.cache_retention is None else 9000, output=5)
    first = ASKED.add(replace(new_assistant_message(model), usage=usage))
    warm = provider.keep(first, model=model, options=options)
    assert reason in warm.stopped
    with provider.client() as client:
        assert not warm.refresh(client)
    assert not provider.emulator.requests


def test_another_model_and_a_history_without_a_reply_are_named(provider):
    reply = replace(new_assistant_message(GPT), usage=Usage(input=10, cache_read=9000))
    assert provider.keep(ASKED.add(reply)).stopped == "the newest reply is of gpt-5.4"
    assert provider.keep(ASKED).stopped == "the conversation does not end with a reply"


def test_openai_gets_the_shortest_answer_that_it_writes(provider):
    options = Options(max_tokens=1000)
    with provider.client() as client:
        warm = provider.keep(ask(client, ASKED, GPT, options), model=GPT, options=options)
        provider.now += 200
        assert warm.refresh(client), warm.stopped
    assert provider.bodies[-1]["max_output_tokens"] == 16
    assert warm.cost > 0


@pytest.mark.parametrize("statuses", [[400], [500]])
def test_zero_tokens_that_are_refused_become_one_and_other_failures_end_it(provider, statuses):
    with provider.client() as client:
        warm = provider.keep(ask(client, ASKED))
        provider.statuses = list(statuses)
        assert warm.refresh(client) is (statuses == [400])
    if statuses == [400]:
        assert provider.bodies[-1]["max_tokens"] == 1
    else:
        assert warm.stopped.startswith("a request failed")


@pytest.mark.parametrize("budget", [-1, float("nan"), float("inf"), "1", None, True])
def test_a_budget_that_is_none_is_refused(budget):
    with pytest.raises(SettingsError, match="budget"):
        KeepWarm(ASKED, CLAUDE, budget=budget)


def test_a_task_keeps_the_cache_until_the_budget_is_spent(provider, monkeypatch):
    async def turn(seconds: float) -> None:
        provider.now += seconds

    async def keep() -> KeepWarm:
        async with AsyncClient(
            api_key="key", transport=httpx2.MockTransport(provider.answer), retry=Retry(max_retries=0)
        ) as client:
            first = ASKED.add(await client.complete(ASKED, CLAUDE, options=OPTIONS))
            warm = provider.keep(first, budget=0.05)
            monkeypatch.setattr("segue.client.session.keep_warm.asyncio.sleep", turn)
            await warm.run(client)
            return warm

    warm = asyncio.run(keep())
    assert warm.stopped == "the budget is spent"
    assert warm.refreshes >= 2
    assert warm.cost <= 0.05
