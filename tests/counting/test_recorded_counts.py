"""Estimates against what providers counted, on recorded exchanges.

Files are split in two halves by a hash of their names. Constants are adjusted on one half; the other half judges them.
"""

from __future__ import annotations

from statistics import median, quantiles

import pytest

from counting.recorded_counts import SECOND, Row, describe, describe_rows, later_rows, rows, second_rows, within
from segue.counting.counter import TokenCounter

pytestmark = pytest.mark.traffic

HALVES = {"both halves": (False, True), "the judging half": (True,)}
VENDORS = ("OpenAI", "Gemini", "Claude", "Mistral", "Nova")


def ratios(halves: tuple[bool, ...], vendor: str | None = None) -> list[float]:
    def holds(row: Row) -> bool:
        return not row.has_media and row.is_judge in halves and vendor in (None, row.vendor)

    return [row.ratio for row in rows() if holds(row)]


@pytest.mark.parametrize("halves", HALVES.values(), ids=HALVES.keys())
@pytest.mark.parametrize("vendor", VENDORS)
def test_the_median_of_each_vendor_is_within_5_per_cent(vendor, halves):
    found = ratios(halves, vendor)
    assert 0.95 <= median(found) <= 1.05, describe(found)


@pytest.mark.parametrize("halves", HALVES.values(), ids=HALVES.keys())
def test_the_count_is_inside_the_bar_for_95_of_100_requests(halves):
    found = [row for row in rows() if not row.has_media and row.is_judge in halves]
    bars = [TokenCounter(row.model).bar(row.estimated) for row in found]
    inside = sum(bar.low <= row.counted <= bar.high for row, bar in zip(found, bars, strict=True))
    assert inside >= 0.95 * len(found)


@pytest.mark.parametrize("halves", HALVES.values(), ids=HALVES.keys())
def test_two_of_three_requests_are_within_10_per_cent(halves):
    found = ratios(halves)
    assert len(found) >= 50 * len(halves)
    assert within(found) >= 0.7, describe(found)


@pytest.mark.parametrize("vendor", ["OpenAI", "Gemini", "Claude"])
def test_four_of_five_requests_are_within_25_per_cent(vendor):
    """Of the vendors with enough rows; p10 and p90 of all of them lie between 0.80 and 1.25."""
    found = ratios((False, True), vendor)
    assert within(found, 0.25) >= 0.8, describe(found)


def test_the_middle_of_all_estimates_is_narrow():
    deciles = quantiles(ratios((False, True)), n=10)
    assert 0.8 <= deciles[0] <= deciles[-1] <= 1.3, deciles


needs_second = pytest.mark.skipif(not SECOND.exists(), reason="without the second set of recordings")
TUNED = {"the half for tuning": False, "the half held back": True}


@needs_second
@pytest.mark.parametrize("is_held_back", TUNED.values(), ids=TUNED.keys())
@pytest.mark.parametrize("is_later", [False, True], ids=["first requests", "later requests"])
def test_four_of_five_requests_of_the_second_set_are_within_10_per_cent_or_10_tokens(is_later, is_held_back):
    found = [row for row in second_rows() if row.is_later is is_later and row.is_held_back is is_held_back]
    assert len(found) > 600
    assert within([row.ratio for row in found]) >= 0.7, describe_rows(found)
    assert sum(row.is_close for row in found) >= 0.8 * len(found), describe_rows(found)


@needs_second
@pytest.mark.parametrize("is_held_back", TUNED.values(), ids=TUNED.keys())
def test_the_usage_of_earlier_replies_corrects_later_requests(is_held_back):
    found = [row for row in later_rows() if row.is_held_back is is_held_back]
    assert len(found) > 250
    assert sum(row.is_close for row in found) >= 0.9 * len(found), describe_rows(found)
