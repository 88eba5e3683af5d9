"""The laws of bound state over random conversations, against the strict emulator."""

from __future__ import annotations

import pytest

from bound_state.machine import BEDROCK_OPUS, BEDROCK_SONNET, GPT, OPUS, OPUS_5, SONNET, Walk, walk
from property_testing import tiers

STEPS = 20
GROUP = 10


@pytest.mark.parametrize("group", tiers([0], [1, 2]))
def test_requests_are_never_refused_and_nothing_valid_is_given_up_unsaid(group: int) -> None:
    for seed in range(group * GROUP, (group + 1) * GROUP):
        walk(seed, STEPS)


def test_few_models_are_switched_often() -> None:
    for seed in range(GROUP):
        walk(seed, STEPS, models=(OPUS, SONNET, OPUS_5, BEDROCK_OPUS, BEDROCK_SONNET))


@pytest.mark.proof
@pytest.mark.parametrize("group", range(100))
def test_a_hundred_thousand_steps(group: int) -> None:
    for seed in range(1000 + group * 50, 1000 + (group + 1) * 50):
        walk(seed, STEPS)


def test_walks_are_the_same_each_time() -> None:
    """A seed that fails can be run again: two walks take the same steps."""
    logs: list[list[str]] = []
    for _ in range(2):
        walking = Walk(7, models=(GPT,))
        for _ in range(5):
            walking.step()
        logs.append(walking.log)
        walking.close()
    assert logs[0] == logs[1]
