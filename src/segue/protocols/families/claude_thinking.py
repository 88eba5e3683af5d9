"""The thinking settings of Claude, which Anthropic's own API and Bedrock have in common.

The facts are in `anthropic_messages.thinking`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from segue.conversation.context import ThinkingLevel
from segue.models.thinking import budget_for_level, level_for_budget
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Block, Wire
from segue.protocols.kit.reading import integer_of

Thinking: TypeAlias = ThinkingLevel | int | None

EFFORTS: Final[Mapping[ThinkingLevel, str]] = {
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}


def effort_of(level: ThinkingLevel, endpoint: Endpoint) -> str:
    """Return the effort of a level other than `off`."""
    return endpoint.model.thinking_levels.get(level) or EFFORTS[level]


def decode_thinking_object(thinking: Block, level: ThinkingLevel | None, endpoint: Endpoint) -> Thinking:
    """Read `thinking`; `level` is that of the effort with it, which counts where the model decides itself.

    Without an effort, and for an unknown one, it is the default of the model.
    """
    match thinking.get("type"):
        case "disabled":
            return "off"
        case str(kind) if kind == endpoint.model.thinking_levels.get("off"):
            return "off"
        case "adaptive":
            return level or endpoint.dialect.default_effort
        case "enabled":
            budget = integer_of(thinking.get("budget_tokens"))
            return endpoint.dialect.default_effort if budget is None else budget
        case _:
            return None


def encode_thinking_object(asked: ThinkingLevel | int, endpoint: Endpoint) -> tuple[Wire, str | None]:
    """Write `thinking`, and the effort with it for a model that decides itself how long it thinks."""
    is_adaptive = endpoint.dialect.thinking_format == "adaptive"
    if isinstance(asked, int) and asked > 0 and not is_adaptive:
        return {"type": "enabled", "budget_tokens": asked}, None
    level = level_for_budget(asked) if isinstance(asked, int) else asked
    if level == "off":
        return {"type": endpoint.model.thinking_levels.get("off") or "disabled"}, None
    if not is_adaptive:
        return {"type": "enabled", "budget_tokens": budget_for_level(level, endpoint.dialect)}, None
    return {"type": "adaptive"}, effort_of(level, endpoint)
