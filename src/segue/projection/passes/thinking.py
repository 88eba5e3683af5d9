"""Pass 8, a part of it: as much thinking as the target can be asked for.

Facts this file rests on:
- A level that a model lacks is refused, or ignored; the nearest one stands in for it.     (pi-ai 1.5.0 clamps levels)
- Many vendors only take a switch, some nothing at all, and some have no word for "do not think".
                                                            (pi-ai 1.5.0, thinkingFormat; read 2026-11-15)
- Budgets have bounds; at some they share one limit with the answer.    (Google and Anthropic documentation: thinking)

What the wire cannot tell apart is made the same here, where it is reported, and not by an encoder: whoever asks for
`minimal` and is told nothing gets `minimal`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from segue.conversation.context import ThinkingLevel
from segue.models.thinking import (
    ANSWER_ROOM,
    budget_for_level,
    clamp_thinking_level,
    level_for_budget,
    supported_thinking_levels,
)
from segue.projection.report import ChangeCode, Loss
from segue.projection.workspace.workspace import Target

_SWITCHED_ON: Final[ThinkingLevel] = "medium"
"""What stands for "think" where no level can be told: this is where vendors start."""


class Fitted(NamedTuple):
    """What is asked for instead, and what the report says of it. Nothing is asked where `thinking` is None."""

    thinking: ThinkingLevel | int | None
    code: ChangeCode
    loss: Loss
    detail: str


def fit_thinking(asked: ThinkingLevel | int, target: Target, max_tokens: int | None) -> list[Fitted]:
    """Bring a wish for thinking into what the target can be told, in steps; none where it can be told as it is.

    `max_tokens` is the limit to the answer that is asked for.
    """
    model, dialect = target.model, target.dialect
    if not model.reasoning:
        if asked == "off":
            return []
        return [_removed("the model does not reason", Loss.NONE if asked == 0 else Loss.CONTENT)]
    if isinstance(asked, int) and asked < 0:
        return [_removed("less than nothing is as the model likes", Loss.NONE)]
    if not dialect.takes_thinking():
        return [_removed("the target cannot be told")]
    steps: list[Fitted] = []
    wanted = asked
    if isinstance(asked, str) or asked == 0 or not dialect.takes_budget():
        level: ThinkingLevel = asked if isinstance(asked, str) else level_for_budget(asked)
        nearest = _nearest(level, target)
        if (
            nearest == "off"
            and dialect.needs_off_value()
            and not (model.thinking_levels.get("off") or dialect.off_value)
        ):
            return [_removed("the target cannot be told not to think")]
        if nearest != level or (asked != 0 and nearest != asked):
            how = "" if dialect.takes_level() else ": there is only a switch"
            steps.append(Fitted(nearest, ChangeCode.THINKING_LEVEL, Loss.NONE, f"{asked} -> {nearest}{how}"))
            wanted = nearest
    if wanted not in ("off", 0) and dialect.takes_budget():
        steps += _fit_budget(wanted, target, max_tokens)
    return [] if steps and steps[-1].thinking == asked else steps


def _removed(why: str, loss: Loss = Loss.CONTENT) -> Fitted:
    return Fitted(None, ChangeCode.OPTION_REMOVED, loss, why)


def _nearest(level: ThinkingLevel, target: Target) -> ThinkingLevel:
    """Give the nearest level that the model has and the wire tells from the others."""
    model, default_levels = target.model, target.rules.thinking_levels
    nearest = clamp_thinking_level(model, level, default_levels)
    if nearest == "off":
        return nearest
    if not target.dialect.takes_level():
        return clamp_thinking_level(model, _SWITCHED_ON, default_levels)
    value = _level_value(nearest, target)
    alike: list[ThinkingLevel] = [
        other for other in supported_thinking_levels(model, default_levels) if _level_value(other, target) == value
    ]
    return min(alike, key=lambda other: other != value)  # the one that is called so, else the weakest


def _level_value(level: ThinkingLevel, target: Target) -> str | int:
    """Give what the wire says for a level: a word, or where it takes budgets alone a number."""
    if target.dialect.thinking_format == "budget":
        return budget_for_level(level, target.dialect)
    return target.model.thinking_levels.get(level) or level


def _fit_budget(wanted: ThinkingLevel | int, target: Target, max_tokens: int | None) -> list[Fitted]:
    """Bring a budget between its bounds; with no room for both the answer and the least of it thinking is off."""
    rules, most = target.rules, target.rules.max_thinking_budget
    if isinstance(wanted, str) and target.dialect.thinking_format != "budget":
        return []  # the level is told by its word
    budget = wanted if isinstance(wanted, int) else budget_for_level(wanted, target.dialect)
    limits = [limit for limit in (max_tokens, target.model.max_tokens) if limit and limit > 0]
    if rules.budget_in_max_tokens and limits:
        room = min(limits) - ANSWER_ROOM
        most = min(most, room) if most else room
        if room < max(rules.min_thinking_budget, 1):
            why = f"{min(limits)} tokens leave no room to think"
            return [Fitted("off", ChangeCode.OPTION_CLAMPED, Loss.CONTENT, why)]
    fitted = max(rules.min_thinking_budget, min(budget, most) if most else budget)
    if fitted == budget:
        return []
    return [Fitted(fitted, ChangeCode.OPTION_CLAMPED, Loss.NONE, f"a budget of {fitted} tokens")]
