"""Thinking levels: which a model has, and the nearest one to a level it lacks.

Facts this file rests on:
- A model that does not reason has only `off`. A level mapped to None is lacking; `xhigh` and `max` have to be mapped to
  be had; the others are there unless said otherwise.            (pi-ai 1.5.0 and ktsoator/or, read 2026-11-15)
- A level that is lacking becomes the next one up, else the next one down.                              (the same)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from segue.conversation.context import ThinkingLevel
from segue.models.catalogue import get_model
from segue.models.dialect import Dialect
from segue.models.model import Model

THINKING_LEVELS: Final[tuple[ThinkingLevel, ...]] = ("off", "minimal", "low", "medium", "high", "xhigh", "max")

DEFAULT_LEVELS: Final = frozenset[str]({"off", "minimal", "low", "medium", "high"})
"""What a model has that does not say: the others have to be mapped."""

DEFAULT_BUDGETS: Final[Mapping[ThinkingLevel, int]] = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 16384,
    "xhigh": 16384,
    "max": 16384,
}
"""Tokens to think with where a target takes a budget and not a level."""

ANSWER_ROOM: Final = 1024
"""Tokens that thinking leaves for the answer, where both share one limit (pi-ai 1.5.0, read 2026-11-15)."""


def supported_thinking_levels(
    model: Model | str, default: Collection[str] = DEFAULT_LEVELS
) -> tuple[ThinkingLevel, ...]:
    """List the levels a model has, weakest first; `default` are those it has unless its entry says otherwise."""
    model = get_model(model)
    if not model.reasoning:
        return ("off",)
    levels = model.thinking_levels
    return tuple(
        level for level in THINKING_LEVELS if (levels[level] is not None if level in levels else level in default)
    )


def clamp_thinking_level(
    model: Model | str, level: ThinkingLevel, default: Collection[str] = DEFAULT_LEVELS
) -> ThinkingLevel:
    """Give the level itself, else the next stronger one the model has, else the next weaker one."""
    supported = supported_thinking_levels(model, default)
    if level in supported:
        return level
    wanted = THINKING_LEVELS.index(level)
    for candidate in (*THINKING_LEVELS[wanted + 1 :], *reversed(THINKING_LEVELS[:wanted])):
        if candidate in supported:
            return candidate
    return "off"


def budget_for_level(level: ThinkingLevel, dialect: Dialect) -> int:
    """Give the tokens that a level stands for where only budgets are taken; none for `off`."""
    return dialect.thinking_budgets.get(level, DEFAULT_BUDGETS.get(level, 0))


def level_for_budget(budget: int) -> ThinkingLevel:
    """Give the weakest level that usually thinks at least as long as a budget of tokens."""
    if budget <= 0:
        return "off"
    for level, tokens in DEFAULT_BUDGETS.items():
        if budget <= tokens:
            return level
    return "high"
