"""What a reply costs: each category by its own rate, the whole request by one tier."""

from __future__ import annotations

import pytest

from segue.conversation.messages import Usage, UsageCost
from segue.models.catalogue import get_model
from segue.models.model import Price, PriceTier
from segue.models.price import compute_cost, find_fees

OPUS = Price(input=5, output=25, cache_read=0.5, cache_write=6.25, cache_write_long=10)
TIERED = Price(
    input=1,
    output=10,
    cache_read=0.1,
    cache_write=1.25,
    tiers=(
        # The order in the data does not matter.
        PriceTier(input_above=500_000, input=4, output=40, cache_read=0.4, cache_write=5),
        PriceTier(input_above=200_000, input=2, output=20, cache_read=0.2, cache_write=2.5),
    ),
)

MILLION = 1_000_000

CASES = {
    "nothing used, nothing paid": (OPUS, Usage(), UsageCost()),
    "a million of input is the input rate": (OPUS, Usage(input=MILLION), UsageCost(input=5, total=5)),
    "a million of output is the output rate": (OPUS, Usage(output=MILLION), UsageCost(output=25, total=25)),
    "a million read from the cache": (OPUS, Usage(cache_read=MILLION), UsageCost(cache_read=0.5, total=0.5)),
    "a million written to the cache": (OPUS, Usage(cache_write=MILLION), UsageCost(cache_write=6.25, total=6.25)),
    "every category by its own rate, the total their sum": (
        OPUS,
        Usage(input=1000, output=2000, cache_read=4000, cache_write=8000),
        UsageCost(input=0.005, output=0.05, cache_read=0.002, cache_write=0.05, total=0.107),
    ),
    "reasoning is part of the output and not paid twice": (
        OPUS,
        Usage(output=MILLION, reasoning=MILLION),
        UsageCost(output=25, total=25),
    ),
    "a model without a price costs nothing": (Price(), Usage(input=MILLION, output=MILLION), UsageCost()),
    "below the first tier the base rates hold": (
        TIERED,
        Usage(input=100_000, output=MILLION),
        UsageCost(input=0.1, output=10, total=10.1),
    ),
    "exactly at a threshold the tier does not begin yet": (
        TIERED,
        Usage(input=200_000),
        UsageCost(input=0.2, total=0.2),
    ),
    "one token above it holds for the whole request": (
        TIERED,
        Usage(input=200_001, output=MILLION),
        UsageCost(input=0.400002, output=20, total=20.400002),
    ),
    "cached tokens count towards the threshold": (
        TIERED,
        Usage(input=1, cache_read=150_000, cache_write=50_000),
        UsageCost(input=0.000002, cache_read=0.03, cache_write=0.125, total=0.155002),
    ),
    "of two tiers that fit the higher one wins": (
        TIERED,
        Usage(input=MILLION, output=1000),
        UsageCost(input=4, output=0.04, total=4.04),
    ),
    "output does not count towards the threshold": (
        TIERED,
        Usage(input=1000, output=MILLION),
        UsageCost(input=0.001, output=10, total=10.001),
    ),
}


def as_numbers(cost: UsageCost) -> list[float]:
    return [cost.input, cost.output, cost.cache_read, cost.cache_write, cost.total]


@pytest.mark.parametrize(("price", "usage", "cost"), CASES.values(), ids=CASES.keys())
def test_a_reply_costs_its_tokens_times_their_rates(price, usage, cost):
    assert as_numbers(compute_cost(price, usage)) == pytest.approx(as_numbers(cost))


LONG_WRITES = {
    "some writes are kept for longer, at their own rate": (OPUS, 400_000, 0.6 * 6.25 + 0.4 * 10),
    "all of them": (OPUS, MILLION, 10),
    "none of them": (OPUS, 0, 6.25),
    "without a rate of their own they cost what others cost": (Price(cache_write=3), 400_000, 3),
}


@pytest.mark.parametrize(("price", "long", "cost"), LONG_WRITES.values(), ids=LONG_WRITES.keys())
def test_writes_that_are_kept_for_longer(price, long, cost):
    found = compute_cost(price, Usage(cache_write=MILLION), cache_write_long=long)
    assert found.cache_write == pytest.approx(cost)
    assert found.total == pytest.approx(cost)


def test_runs_of_a_providers_tools_are_counted_or_found_among_the_blocks():
    claude, gpt, gemini = (get_model(name) for name in ("claude-sonnet-4-5", "openai/gpt-5.4", "gemini-2.5-pro"))
    counts = {"server_tool_use": {"web_search_requests": 3}}
    searched = [{"type": "server_tool_use", "name": "web_search"}, {"type": "server_tool_use", "name": "other"}]
    assert find_fees(claude, counts=counts) == pytest.approx(0.03)
    assert find_fees(claude, blocks=searched) == pytest.approx(0.01)
    assert find_fees(claude, counts=counts, blocks=searched) == pytest.approx(0.03), (
        "the number counts, if there is one"
    )
    assert find_fees(claude, blocks=[{"type": "text"}]) == 0
    assert find_fees(gemini, counts={"webSearchQueries": ["a", "b"]}) == pytest.approx(0.035), "once for a reply"
    calls = [{"type": "web_search_call", "action": {"type": each}} for each in ("search", "open_page", "search")]
    assert find_fees(gpt, blocks=calls) == pytest.approx(0.02)
