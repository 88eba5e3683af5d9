"""The gateway corrects its estimates of input tokens by what providers count, for each model, and keeps that."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.greedy_upstream import served
from gateway.test_keys import add, post, wait_for
from segue.gateway.keys import Budget, Rights
from segue.gateway.learned_counts import LearnedCounts

RIGHTS = Rights(budgets={"total": Budget(dollars=1_000_000)})


def learnt(*pairs: tuple[int, int]) -> LearnedCounts:
    counts = LearnedCounts()
    for estimated, counted in pairs:
        counts.note("m", estimated, counted)
    return counts


LINES = {
    "a hidden prompt": ([(100, 300), (200, 400), (400, 600), (800, 1000), (50, 250)], 500, 700),
    "a vocabulary that is counted too low": (
        [(1000, 1200), (2000, 2400), (4000, 4800), (500, 600), (900, 1080)],
        3000,
        3600,
    ),
    "requests of one size show an offset": ([(100, 130)] * 6, 1000, 1030),
    "too few requests": ([(100, 300)] * 3, 500, 500),
    "counts that cannot be of these requests": ([(100, 9000)] * 9, 500, 500),
    "a correction has bounds": ([(10_000, 24_000), (20_000, 48_000)] * 5, 10_000, 16_000),
}


@pytest.mark.parametrize(("pairs", "estimated", "expected"), LINES.values(), ids=LINES.keys())
def test_an_estimate_is_corrected_by_an_offset_and_a_slope(pairs, estimated, expected):
    counts = learnt(*pairs)
    assert counts.correct("m", estimated) == pytest.approx(expected, rel=0.01)
    assert counts.correct("other", estimated) == estimated
    assert LearnedCounts(counts.dump()).correct("m", estimated) == counts.correct("m", estimated)


def test_only_sums_of_numbers_are_kept():
    kept = json.loads(learnt((100, 130)).dump())
    assert list(kept) == ["m"]
    assert all(isinstance(value, (int, float)) for value in kept["m"].values())


@pytest.mark.parametrize("data", [None, "", "no JSON", "[]"])
def test_what_cannot_be_read_is_as_nothing(data):
    assert LearnedCounts(data).correct("m", 10) == 10


def test_it_is_learnt_from_requests_and_survives_a_restart(tmp_path: Path) -> None:
    """Twenty requests are enough to be written; a gateway on the same store begins with what was learnt."""
    store = f"sqlite:{tmp_path / 'gateway.db'}"
    with served(store) as gateway:
        gateway.upstream.usage = {"prompt_tokens": 210, "completion_tokens": 3, "total_tokens": 213}
        key = add(gateway, rights=RIGHTS)
        spending = gateway.gateway.spending
        before = spending.counts.dump()
        for _ in range(20):
            answer = post(
                gateway.url,
                {"model": "m-chat", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 9},
                key,
            )
            assert answer.status_code == 200
        assert before == "{}"
        (name,) = json.loads(spending.counts.dump())
        corrected = spending.counts.correct(name, 9)
        assert corrected > 150
        kept = gateway.gateway.store.store
        assert kept is not None
        wait_for(lambda: kept.get_value("learned_counts"))
    with served(store) as again:
        assert again.gateway.spending.counts.correct(name, 9) == corrected
