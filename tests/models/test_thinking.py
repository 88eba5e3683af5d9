"""Thinking levels: which a model has, and the nearest one to a level it lacks."""

from __future__ import annotations

import pytest

from segue.models.catalogue import packaged_catalogue
from segue.models.model import Model
from segue.models.thinking import DEFAULT_BUDGETS, THINKING_LEVELS, clamp_thinking_level, supported_thinking_levels


def model(levels: dict[str, str | None] | None = None, *, reasoning: bool = True) -> Model:
    return Model("m", "p", "openai-chat", reasoning=reasoning, thinking_levels=levels or {})


SUPPORTED = {
    "a model that does not reason is always off": (model(reasoning=False), ("off",)),
    "whatever its map contains": (model({"high": "high", "max": "max"}, reasoning=False), ("off",)),
    "without a map it has the five default levels": (model(), ("off", "minimal", "low", "medium", "high")),
    "a level mapped to nothing is lacking": (
        model({"off": None, "minimal": None}),
        ("low", "medium", "high"),
    ),
    "xhigh is there when it is mapped": (
        model({"xhigh": "xhigh"}),
        ("off", "minimal", "low", "medium", "high", "xhigh"),
    ),
    "max is there when it is mapped, without xhigh": (
        model({"max": "max"}),
        ("off", "minimal", "low", "medium", "high", "max"),
    ),
    "xhigh mapped to nothing is lacking": (model({"xhigh": None}), ("off", "minimal", "low", "medium", "high")),
    "the order is by strength and not by the map": (
        model({"max": "max", "xhigh": "x", "low": "l", "off": "none", "minimal": None, "medium": None}),
        ("off", "low", "high", "xhigh", "max"),
    ),
    "a model may have one level only": (
        model({"off": None, "minimal": None, "low": None, "medium": None, "high": "high"}),
        ("high",),
    ),
}


@pytest.mark.parametrize(("target", "levels"), SUPPORTED.values(), ids=SUPPORTED.keys())
def test_the_levels_a_model_has(target, levels):
    assert supported_thinking_levels(target) == levels


CLAMPED = {
    "a level it has stays": (model(), "medium", "medium"),
    "off stays off": (model(), "off", "off"),
    "a lacking level becomes the next stronger one": (model({"minimal": None, "low": None}), "minimal", "medium"),
    "and skips what is lacking too": (model({"medium": None, "high": None, "max": "max"}), "medium", "max"),
    "when nothing is stronger, the next weaker one": (model(), "max", "high"),
    "and skips what is lacking there": (model({"high": None, "medium": None}), "xhigh", "low"),
    "stronger goes before weaker": (model({"medium": None}), "medium", "high"),
    "a model that cannot be off thinks as little as it can": (model({"off": None, "minimal": None}), "off", "low"),
    "a model that does not reason is off": (model(reasoning=False), "high", "off"),
    "one level only, asked for less": (
        model({"off": None, "minimal": None, "low": None, "medium": None, "high": "high"}),
        "off",
        "high",
    ),
    "no level at all is off": (
        model(dict.fromkeys(THINKING_LEVELS)),
        "high",
        "off",
    ),
}


@pytest.mark.parametrize(("target", "asked", "given"), CLAMPED.values(), ids=CLAMPED.keys())
def test_a_level_is_clamped_to_what_the_model_has(target, asked, given):
    assert clamp_thinking_level(target, asked) == given


def test_every_level_of_every_model_in_the_catalogue_can_be_asked_for():
    for target in packaged_catalogue().models:
        supported = supported_thinking_levels(target)
        assert supported, target.full_name()
        assert {clamp_thinking_level(target, level) for level in THINKING_LEVELS} == set(supported)


def test_every_level_but_off_has_a_budget_and_budgets_never_shrink():
    assert tuple(DEFAULT_BUDGETS) == THINKING_LEVELS[1:]
    assert sorted(DEFAULT_BUDGETS.values()) == list(DEFAULT_BUDGETS.values())
