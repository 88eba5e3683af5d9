"""Thinking levels: which levels a model has, and the nearest one to a level that it does not have.

Facts:
- A model without reasoning has only `off`. A level that is mapped to None does not exist. `xhigh` and `max` exist only
  if they are mapped; the others exist unless mapped to None.    (pi-ai 1.5.0 and ktsoator/or, read 2026-11-15)
- A level that does not exist is replaced by the next higher one, else by the next lower one.           (the same)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from segue.conversation.context import ThinkingLevel
from segue.models.catalogue import get_model
from segue.models.dialect import Dialect
from segue.models.model import Model

THINKING_LEVELS: Final[tuple[ThinkingLevel, ...]] = ("off", "minimal", "low", "medium", "high", "xhigh", "max")

LEVELS_BY_EFFORT: Final[Mapping[str, ThinkingLevel]] = {
    "none" if level == "off" else level: level for level in THINKING_LEVELS
}
"""The levels by the efforts of the wire that OpenAI introduced."""

DEFAULT_LEVELS: Final = frozenset[str]({"off", "minimal", "low", "medium", "high"})
"""The levels of a model whose entry does not list them."""

DEFAULT_BUDGETS: Final[Mapping[ThinkingLevel, int]] = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 16384,
    "xhigh": 16384,
    "max": 16384,
}
"""Thinking budgets in tokens, for targets that accept a budget and no level."""

ANSWER_ROOM: Final = 1024
"""Tokens reserved for the answer, where thinking counts against the same limit (pi-ai 1.5.0, read 2026-11-15)."""


def supported_thinking_levels(
    model: Model | str, default: Collection[str] = DEFAULT_LEVELS
) -> tuple[ThinkingLevel, ...]:
    """List the levels of a model, lowest first; `default` are the levels that exist if its entry does not list them."""
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
    """Return the level if the model has it, else the next higher one, else the next lower one."""
    supported = supported_thinking_levels(model, default)
    if level in supported:
        return level
    wanted = THINKING_LEVELS.index(level)
    for candidate in (*THINKING_LEVELS[wanted + 1 :], *reversed(THINKING_LEVELS[:wanted])):
        if candidate in supported:
            return candidate
    return "off"


def budget_for_level(level: ThinkingLevel, dialect: Dialect) -> int:
    """Return the budget of a level in tokens; 0 for `off`."""
    return dialect.thinking_budgets.get(level, DEFAULT_BUDGETS.get(level, 0))


def level_for_budget(budget: int) -> ThinkingLevel:
    """Return the lowest level whose default budget is at least the given one; `high` beyond all of them."""
    if budget <= 0:
        return "off"
    for level, tokens in DEFAULT_BUDGETS.items():
        if budget <= tokens:
            return level
    return "high"
