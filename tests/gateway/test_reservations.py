"""Reservations: a request holds what it may cost, so that a budget holds whatever runs at once."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import msgspec
import pytest

from gateway.greedy_upstream import INPUT, LIMIT, Served, served
from gateway.test_keys import add, post, wait_for
from gateway.test_spending import spending_of
from segue import get_model
from segue.conversation.messages import Usage, UsageCost
from segue.gateway.keys import Budget, Rights
from segue.gateway.spending import clamp_usage, count_choices
from segue.gateway.store.accounts import Account, Lease
from segue.gateway.store.ledger import (
    LEASE,
    NANO,
    SLOT,
    Amount,
    Denied,
    Ledger,
    LedgerPart,
    Recent,
    Slot,
    Wanted,
    advance,
    decide,
    find_denial,
    is_recent,
    write_part,
    write_recent,
)

OPUS = get_model("anthropic/claude-opus-4-8")
TURN = [{"role": "user", "content": "Hello"}]
DOLLAR = Rights(budgets={"total": Budget(dollars=1)})


def ask(gateway: Served, key: str, *, model: str = "m-chat", path: str = "/v1/chat/completions", **more: Any) -> Any:
    """Ask, by default without a limit of output."""
    return post(gateway.url, {"model": model, "messages": TURN, **more}, key, path)


def row_of(gateway: Served, answer: httpx2.Response, key: str) -> dict[str, Any]:
    """Give the row of an answered request."""
    name = answer.headers["x-segue-request-id"]
    found = httpx2.get(f"{gateway.url}/segue/requests/{name}", headers={"x-api-key": key}, timeout=30)
    return found.json()


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Served]:
    with served(f"sqlite:{tmp_path / 'gateway.db'}") as found:
        yield found


# -- a burst -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [{}, {"max_tokens": 60_000}, {"n": 4}], ids=["no limit", "a limit", "four replies"])
@pytest.mark.parametrize("model", ["m-anthropic", "m-chat"])
def test_a_burst_spends_no_more_than_the_budget(gateway: Served, model: str, more: dict[str, Any]) -> None:
    key = add(gateway, rights=DOLLAR)
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: ask(gateway, key, model=model, **more), range(32)))
    statuses = {answer.status_code for answer in answers}
    assert 200 in statuses
    assert statuses <= {200, 402, 429}
    price = get_model({"m-anthropic": OPUS.full_name(), "m-chat": "openrouter/deepseek/deepseek-v4-pro"}[model]).cost
    dollars = gateway.upstream.written * price.output / 1e6 + len(gateway.upstream.bodies) * INPUT * price.input / 1e6
    assert dollars <= 1
    assert spending_of(gateway).ledger.spent["total"].nano <= NANO


def test_without_reservations_by_configuration_a_burst_overspends(tmp_path: Path) -> None:
    more = '[spending]\nreserve = "loose"'
    with served(f"sqlite:{tmp_path / 'gateway.db'}", more) as gateway:
        key = add(gateway, rights=DOLLAR)
        assert ask(gateway, key, model="m-anthropic", max_tokens=100_000).status_code == 200
        assert spending_of(gateway).ledger.spent["total"].nano > 2 * NANO


SEARCH = [{"type": "web_search_20250305", "name": "web_search"}]
FILE = [{"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}}]


@pytest.mark.parametrize(
    "more",
    [
        {"tools": SEARCH},
        {"mcp_servers": [{"type": "url", "name": "x", "url": "https://example.com"}]},
        {"messages": [{"role": "user", "content": FILE}]},
    ],
    ids=["a search", "a server", "a file"],
)
def test_what_a_provider_reads_for_its_own_tools_is_held_as_far_as_it_is_left(
    gateway: Served, more: dict[str, Any]
) -> None:
    """One request may read more than is left; those beside it wait for the figure."""
    gateway.upstream.usage = {"input_tokens": 900_000}
    gateway.upstream.holds = True
    key = add(gateway, rights=DOLLAR)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(ask, gateway, key, model="m-anthropic", path="/v1/messages", max_tokens=9, **more)
        wait_for(lambda: gateway.upstream.is_held)
        others = [ask(gateway, key, model="m-anthropic", path="/v1/messages", max_tokens=9) for _ in range(3)]
        gateway.upstream.holds = False
        assert first.result().status_code == 200
    assert {answer.status_code for answer in others} == {429}
    assert len(gateway.upstream.bodies) == 1
    assert spending_of(gateway).ledger.spent["total"].nano == pytest.approx(
        4.5 * NANO, rel=0.01
    )  # that of the provider


def test_what_a_provider_reads_for_its_own_tools_is_given_back(gateway: Served) -> None:
    key = add(gateway, rights=DOLLAR)
    for _ in range(3):
        answer = ask(gateway, key, model="m-anthropic", path="/v1/messages", max_tokens=9, tools=SEARCH)
        assert answer.status_code == 200
    assert spending_of(gateway).ledger.spent["total"].nano < NANO // 100


@pytest.mark.parametrize(
    ("body", "choices"),
    [
        ({"n": 4}, 4),
        ({"n": 4.0}, 4),
        ({"n": "4"}, 4),
        ({"best_of": 4}, 4),
        ({"generationConfig": {"candidateCount": 4}}, 4),
        ({"generationConfig": {"candidate_count": 4}}, 4),
        ({"generation_config": {"candidateCount": 4}}, 4),
        ({"n": 10**400}, 10_000),
        ({"n": -4}, 1),
        ({"n": "x"}, 1),
        ({"n": None}, 1),
    ],
    ids=str,
)
def test_replies_are_counted_whatever_the_form_of_their_number(body: dict[str, Any], choices: int) -> None:
    assert count_choices(body) == choices


def test_of_two_limits_the_larger_one_is_reserved(gateway: Served) -> None:
    """Both are passed on, and providers read different ones of them."""
    key = add(gateway, rights=Rights(budgets={"total": Budget(tokens=100_000)}))
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(
                lambda _: ask(gateway, key, model="gpt-9-new", max_tokens=60_000, max_completion_tokens=16), range(8)
            )
        )
    assert 200 in {answer.status_code for answer in answers}
    assert gateway.upstream.written <= 100_000


# -- lower, or refuse --------------------------------------------------------------------------------------------------


def test_a_request_gets_the_output_tokens_that_are_left_and_its_row_says_so(gateway: Served) -> None:
    key = add(gateway, rights=DOLLAR)
    answer = ask(gateway, key, model="m-anthropic", max_tokens=100_000)
    assert answer.status_code == 200
    sent = gateway.upstream.bodies[-1]["max_tokens"]
    assert 39_000 < sent < 40_000
    changes = [change for change in row_of(gateway, answer, key)["changes"] if change["code"] == "option_clamped"]
    assert [change["path"] for change in changes] == [["options", "max_tokens"]]
    assert f"{sent} of 100000" in changes[0]["cause"]


def test_a_thinking_budget_fits_into_the_output_tokens_that_are_left(gateway: Served) -> None:
    key = add(gateway, rights=Rights(budgets={"total": Budget(dollars=0.1)}))
    thinking = {"type": "enabled", "budget_tokens": 30_000}
    answer = ask(gateway, key, model="m-anthropic", path="/v1/messages", max_tokens=60_000, thinking=thinking)
    assert answer.status_code == 200
    body = gateway.upstream.bodies[-1]
    assert body["max_tokens"] < 4_000
    assert body.get("thinking", {}).get("budget_tokens", 0) < body["max_tokens"]


def test_a_request_that_may_cost_more_than_is_left_is_refused_with_the_figures(tmp_path: Path) -> None:
    with served(f"sqlite:{tmp_path / 'gateway.db'}", '[spending]\nreserve = "refuse"') as gateway:
        key = add(gateway, rights=DOLLAR)
        answer = ask(gateway, key, model="m-anthropic", path="/v1/messages", max_tokens=100_000)
        assert answer.status_code == 402
        assert "this request may cost $2.5" in answer.text
        assert "$1 of the budget of this key, $1, are left" in answer.text
        assert not gateway.upstream.bodies
        assert ask(gateway, key, model="m-anthropic", max_tokens=10_000).status_code == 200


def test_the_configured_output_tokens_are_sent_where_a_client_names_none(tmp_path: Path) -> None:
    with served(f"sqlite:{tmp_path / 'gateway.db'}", "[spending]\noutput_tokens = 5000") as gateway:
        key, free = add(gateway, rights=DOLLAR), add(gateway, "bob")
        cases: Any = ((key, {}, 5_000), (key, {"max_tokens": 7_000}, 7_000), (free, {}, LIMIT))
        for secret, more, expected in cases:
            assert ask(gateway, secret, **more).status_code == 200
            assert gateway.upstream.output_of(gateway.upstream.bodies[-1]) == expected


def test_what_was_not_used_is_given_back(gateway: Served) -> None:
    gateway.upstream.usage = {"completion_tokens": 10, "total_tokens": INPUT + 10}
    key = add(gateway, rights=DOLLAR)
    for _ in range(5):
        assert ask(gateway, key).status_code == 200
    ledger = spending_of(gateway).ledger
    assert ledger.spent["total"].tokens == 5 * (INPUT + 10)
    assert not sum(part.held.nano for part in ledger.parts.values())


def test_an_attempt_after_one_that_was_billed_gets_what_is_left() -> None:
    lease = Lease(
        Account("t", "one"),
        DOLLAR,
        Wanted(input=Amount(1_000, 10), output=1_000, rate=1_000.0, least=16),
        lambda _: None,
    )
    lease.grant(1_000, 1_500, Amount())
    assert lease.output_again() == 1_000
    for billed, left in ((300_000, 1_000), (400_000, 800), (900_000, 16)):
        lease.account.count(lease, Amount(billed, 1), NOON, is_priced=True)
        assert lease.output_again() == left


def test_a_price_that_turns_out_to_be_unknown_counts_as_the_list_price(gateway: Served) -> None:
    gateway.upstream.usage = {"service_tier": "priority"}
    key = add(gateway, rights=DOLLAR)
    answer = ask(gateway, key, model="m-anthropic", path="/v1/messages", max_tokens=1_000)
    assert row_of(gateway, answer, key)["price"] == "unknown"
    ledger = spending_of(gateway).ledger
    assert ledger.spent["total"].nano == ledger.estimated["total"].nano > NANO // 50


# -- figures of an upstream --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": -5_000, "completion_tokens": -5_000, "total_tokens": -10_000},
        {"completion_tokens": -1, "total_tokens": -1},
        {"completion_tokens": 10**15, "total_tokens": 10**15},
        {"prompt_tokens": 10**12, "completion_tokens": 1, "total_tokens": 10**12},
        {"cost": 1e9},
        {"cost": -3.0},
    ],
    ids=str,
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_an_impossible_usage_is_clamped_and_told(gateway: Served, usage: dict[str, Any], stream: bool) -> None:
    gateway.upstream.usage = usage
    key = add(gateway, rights=Rights(budgets={"total": Budget(dollars=1_000_000)}))
    answer = ask(gateway, key, max_tokens=100, stream=stream)
    assert answer.status_code == 200
    spent = spending_of(gateway).ledger.spent["total"]
    assert 0 <= spent.tokens < 10**9
    assert 0 <= spent.nano < 10_000 * NANO
    row = row_of(gateway, answer, key)
    assert row["usage"].get("output", 0) >= 0
    if usage != {"cost": -3.0}:  # a cost below 0 is not read at all
        assert any("impossible usage" in note for note in row["notes"])


def test_a_possible_usage_is_the_same_object() -> None:
    usage = Usage(input=900_000, output=64_000, cache_read=5_000_000, total_tokens=5_964_000, cost=UsageCost(total=7.1))
    assert clamp_usage(usage, OPUS) is usage


# -- a client that leaves ----------------------------------------------------------------------------------------------


def _leave(gateway: Served, key: str, *, stream: bool) -> None:
    """Send a request and leave while the provider answers."""
    gateway.upstream.holds = True
    parts = urlsplit(gateway.url)
    body = msgspec.json.encode({"model": "m-anthropic", "messages": TURN, "max_tokens": 9_000, "stream": stream})
    head = f"POST /v1/messages HTTP/1.1\r\nhost: {parts.netloc}\r\nx-api-key: {key}\r\n"
    with socket.create_connection((parts.hostname, parts.port)) as connection:
        connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        wait_for(lambda: gateway.upstream.is_held)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_request_that_is_left_holds_its_reservation_until_the_figure_is_known(gateway: Served, stream: bool) -> None:
    key = add(gateway, rights=DOLLAR)
    account = lambda: next(iter(gateway.gateway.spending._accounts.values()))  # noqa: E731
    _leave(gateway, key, stream=stream)
    held = sum(lease.expected.tokens for lease in account().leases)
    assert held >= 9_000
    gateway.upstream.holds = False
    ledger = spending_of(gateway).ledger
    assert ledger.spent["total"].tokens == INPUT + 9_000
    assert not ledger.estimated


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_request_whose_figure_never_comes_counts_its_reservation(
    gateway: Served, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("segue.gateway.answers._LEFT_SECONDS", 0.01)
    key = add(gateway, rights=DOLLAR)
    _leave(gateway, key, stream=stream)
    ledger = spending_of(gateway).ledger
    gateway.upstream.holds = False
    assert ledger.spent["total"].tokens >= 9_000
    assert ledger.estimated["total"].tokens == ledger.spent["total"].tokens


# -- the row of a key --------------------------------------------------------------------------------------------------

NOON = 1_794_916_800_000
MINUTE = 60_000


def _ledger(*slots: Slot, held: int = 0) -> Ledger:
    ledger = Ledger()
    advance(ledger, NOON)
    write_part(ledger, "one", LedgerPart(until=NOON + LEASE, held=Amount(held, 0)), LedgerPart())
    write_recent(ledger, "one", Recent(slots=slots), Recent())
    return ledger


def test_an_account_counts_its_last_minute_by_slots() -> None:
    chance, account, now = random.Random(7), Account("tenant", "one"), NOON
    counted: dict[int, tuple[int, int]] = {}

    def add(when: int, requests: int, tokens: int) -> None:
        slot = when - when % SLOT
        before = counted.get(slot, (0, 0))
        counted[slot] = (before[0] + requests, before[1] + tokens)

    for _ in range(2_000):
        now += chance.choice([0, 1, 300, SLOT, chance.randrange(5 * SLOT)])
        lease = Lease(account, Rights(), Wanted(), lambda _: None)
        account.take(lease, now)
        add(now, 1, 0)
        if chance.random() < 0.2:
            account.give_back(lease)
            add(lease.slot, -1, 0)
        else:
            account.count(lease, Amount(1, 5), now, is_priced=True)
            add(now, 0, 5)
            account.end(lease)
        slots = account.snapshot(now).recent.slots
        recent = [Slot(slot, *counted[slot]) for slot in sorted(counted) if slot + SLOT + MINUTE > now]
        assert [slot for slot in slots if is_recent(slot, now)] == recent
        assert len(slots) <= MINUTE // SLOT + 2
    account.take(Lease(account, Rights(), Wanted(), lambda _: None), now - 2 * MINUTE)  # the clock was set back
    slots = account.snapshot(now).recent.slots
    assert [*slots] == sorted(slots)


def test_the_limits_of_a_minute_slide() -> None:
    """A burst at the end of one minute counts at the beginning of the next one."""
    rights = Rights(requests_per_minute=10)
    late = NOON - SLOT
    ledger = _ledger(Slot(late, requests=10))
    for now, is_denied in ((NOON, True), (NOON + MINUTE - SLOT, True), (NOON + MINUTE, False)):
        denied = find_denial(ledger, rights, now)
        assert (denied is not None) == is_denied
        assert denied is None or denied.retry_after == (NOON + MINUTE - now) // 1000


def test_the_wait_ends_when_enough_of_the_minute_is_over() -> None:
    ledger = _ledger(Slot(NOON - 40_000, tokens=600), Slot(NOON - 10_000, tokens=300))
    rights = Rights(tokens_per_minute=1_000)
    decided = decide(ledger, rights, Wanted(input=Amount(0, 100), output=500, least=500), NOON, "lower")
    assert isinstance(decided, Denied)
    assert decided.is_rate
    assert decided.retry_after == 20 + SLOT // 1000
    assert decide(ledger, rights, Wanted(input=Amount(0, 10), output=500, least=16), NOON, "lower") == 90


def test_a_request_that_never_fits_into_a_minute_is_not_told_to_wait() -> None:
    wanted = Wanted(input=Amount(0, 2_000), output=500, least=16)
    decided = decide(_ledger(), Rights(tokens_per_minute=1_000), wanted, NOON, "lower")
    assert isinstance(decided, Denied)
    assert not decided.is_rate
    assert "this request may cost 2016 tokens" in decided.text


def test_what_others_hold_is_waited_for_and_what_is_spent_is_not() -> None:
    rights = Rights(budgets={"day": Budget(dollars=1)})
    wanted = Wanted(input=Amount(NANO // 10, 10), output=100, rate=NANO / 200, least=100)
    decided = decide(_ledger(held=NANO // 2), rights, wanted, NOON, "lower")
    assert isinstance(decided, Denied)
    assert (decided.is_rate, decided.retry_after) == (True, 1)
    spent = _ledger()
    write_part(spent, "two", LedgerPart(until=NOON + LEASE, nano=NANO // 2), LedgerPart())
    decided = decide(spent, rights, wanted, NOON, "lower")
    assert isinstance(decided, Denied)
    assert (decided.is_rate, decided.retry_after) == (False, 43_200)
