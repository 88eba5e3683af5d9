"""The laws of bound state over random conversations, against the strict emulator."""

from __future__ import annotations

import pytest

from bound_state.machine import (
    BEDROCK_OPUS,
    BEDROCK_SONNET,
    EVENTS,
    FABLE,
    GEMINI,
    GPT,
    MODELS,
    OPUS,
    OPUS_5,
    SONNET,
    SWITCHES,
    Walk,
    walk,
)
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


def test_models_that_read_each_other_are_switched_and_nothing_else_happens() -> None:
    for seed in range(GROUP):
        walk(seed, STEPS, models=(OPUS, OPUS, OPUS, SONNET, FABLE), events=SWITCHES)


@pytest.mark.proof
@pytest.mark.parametrize("group", range(100))
def test_a_hundred_thousand_steps(group: int) -> None:
    """Refused 0, given up 0: over the rules of Claude, GPT and Gemini."""
    kinds = ((MODELS, EVENTS), (MODELS, SWITCHES), ((GPT, GEMINI, OPUS, SONNET), EVENTS), (MODELS, EVENTS))
    for seed in range(1000 + group * 50, 1000 + (group + 1) * 50):
        models, events = kinds[seed % len(kinds)]
        walk(seed, STEPS, models=models, events=events)


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
