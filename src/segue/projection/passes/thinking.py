"""Pass 8, a part of it: fit the thinking option to the target.

Facts:
- A level that a model does not have is refused or ignored; the nearest one is used.       (pi-ai 1.5.0 clamps levels)
- Many providers have only a switch, some have no parameter, and some cannot disable thinking.
                                                            (pi-ai 1.5.0, thinkingFormat; read 2026-11-15)
- Budgets have limits; some providers count thinking as output tokens.  (Google and Anthropic documentation: thinking)

Levels that the protocol encodes alike are changed to one level here, where it is reported, and not by the encoder: if
nothing is reported, the model gets the level that was set.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec.structs import replace

from segue.conversation.context import Options, ThinkingLevel
from segue.models.providers import PROVIDERS
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
"""The level for targets that have only a switch: the default of most providers."""


class FittedThinking(NamedTuple):
    """A new value of the option (None removes it), and what to report."""

    thinking: ThinkingLevel | int | None
    code: ChangeCode
    loss: Loss
    detail: str


def fit_thinking(asked: ThinkingLevel | int, target: Target, max_tokens: int | None) -> list[FittedThinking]:
    """Fit the option to the target; return the changes in order, an empty list if there are none.

    `max_tokens` is the option of that name.
    """
    model, dialect = target.model, target.dialect
    if not model.reasoning:
        if asked == "off":
            if "off" not in target.rules.thinking_levels:
                return [_removed("the target cannot disable thinking")]
            server = PROVIDERS.get(model.provider)
            # A server of one's own may think although its entry does not say so.
            is_listed = server is not None and not server.any_id
            return [] if is_listed else [_removed("the model does not support thinking", Loss.NONE)]
        return [_removed("the model does not support thinking", Loss.NONE if asked == 0 else Loss.CONTENT)]
    if isinstance(asked, int) and asked < 0:
        return [_removed("a negative budget means the model's default", Loss.NONE)]
    if not dialect.takes_thinking():
        return [_removed("the target has no parameter for thinking")]
    steps: list[FittedThinking] = []
    wanted = asked
    if isinstance(asked, str) or asked == 0 or not dialect.takes_budget():
        level: ThinkingLevel = asked if isinstance(asked, str) else level_for_budget(asked)
        nearest = _nearest(level, target)
        if (
            nearest == "off"
            and dialect.needs_off_value()
            and not (model.thinking_levels.get("off") or dialect.off_value)
        ):
            return [_removed("the target cannot disable thinking")]
        types = target.rules.thinking_types
        if nearest == "off" and types is not None and "disabled" not in types:
            how = f"{asked} -> {model.thinking_levels.get('off')}: the target cannot disable thinking"
            return [FittedThinking("off", ChangeCode.THINKING_LEVEL, Loss.NONE, how)]
        if nearest != level or (asked != 0 and nearest != asked):
            how = "" if dialect.takes_level() else ": the target has only a switch"
            steps.append(FittedThinking(nearest, ChangeCode.THINKING_LEVEL, Loss.NONE, f"{asked} -> {nearest}{how}"))
            wanted = nearest
    if wanted not in ("off", 0) and dialect.takes_budget():
        steps += _fit_budget(wanted, target, max_tokens)
    return [] if steps and steps[-1].thinking == asked else steps


def is_thinking_off(options: Options, target: Target) -> bool:
    """Whether the request will turn thinking off, by its option or because there is no room for it."""
    if options.thinking is None or "thinking" in target.rules.refused_options:
        return False
    steps = fit_thinking(options.thinking, target, options.max_tokens)
    return (steps[-1].thinking if steps else options.thinking) in ("off", 0)


def _removed(why: str, loss: Loss = Loss.CONTENT) -> FittedThinking:
    return FittedThinking(None, ChangeCode.OPTION_REMOVED, loss, why)


def _nearest(level: ThinkingLevel, target: Target) -> ThinkingLevel:
    """Return the nearest level that the model supports and the protocol encodes differently from the others."""
    model, default_levels = target.model, target.rules.thinking_levels
    if refused := target.rules.values("thinking_level"):
        model = replace(model, thinking_levels={**model.thinking_levels, **dict.fromkeys(refused)})
    nearest = clamp_thinking_level(model, level, default_levels)
    if nearest == "off":
        return nearest
    if not target.dialect.takes_level():
        return clamp_thinking_level(model, _SWITCHED_ON, default_levels)
    value = _level_value(nearest, target)
    alike: list[ThinkingLevel] = [
        other for other in supported_thinking_levels(model, default_levels) if _level_value(other, target) == value
    ]
    return min(alike, key=lambda other: other != value)  # the level with the name of the value, else the lowest


def _level_value(level: ThinkingLevel, target: Target) -> str | int:
    """Return the wire value of a level: a name, or a number if the target accepts only budgets."""
    if target.dialect.thinking_format == "budget":
        return budget_for_level(level, target.dialect)
    return target.model.thinking_levels.get(level) or level


def _fit_budget(wanted: ThinkingLevel | int, target: Target, max_tokens: int | None) -> list[FittedThinking]:
    """Clamp a budget to its limits; disable thinking if the output limit has no room for it and the answer."""
    rules, most = target.rules, target.rules.max_thinking_budget
    if isinstance(wanted, str) and target.dialect.thinking_format != "budget":
        return []  # the level is sent by its name
    budget = wanted if isinstance(wanted, int) else budget_for_level(wanted, target.dialect)
    given = (max_tokens, target.model.max_tokens or None)  # a limit of 0 is one; a model without one has 0
    limits = [limit for limit in given if limit is not None and limit >= 0]
    if rules.budget_in_max_tokens and limits:
        room = min(limits) - ANSWER_ROOM
        most = min(most, room) if most else room
        if room < max(rules.min_thinking_budget, 1):
            why = f"max_tokens of {min(limits)} leaves no room for thinking"
            return [FittedThinking("off", ChangeCode.OPTION_CLAMPED, Loss.CONTENT, why)]
    fitted = max(rules.min_thinking_budget, min(budget, most) if most else budget)
    if fitted == budget:
        return []
    return [FittedThinking(fitted, ChangeCode.OPTION_CLAMPED, Loss.NONE, f"a budget of {fitted} tokens")]
