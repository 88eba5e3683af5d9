"""The thinking settings of models behind Bedrock, both ways.

The facts stand in `options`. Each family of models has its own fields among the additional ones; the dialect's
`thinking_format` names those of a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from segue.conversation.context import Options, ThinkingLevel
from segue.models.thinking import budget_for_level, level_for_budget
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Wire, object_of
from segue.protocols.kit.reading import text_of

Thinking: TypeAlias = ThinkingLevel | int | None

LEAST_BUDGET: Final = 1_024

_EFFORTS: Final[Mapping[ThinkingLevel, str]] = {
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}
_NOVA_EFFORTS: Final[Mapping[ThinkingLevel, str]] = {**_EFFORTS, "xhigh": "high", "max": "high"}
_LEVELS: Final[Mapping[str, ThinkingLevel]] = {
    "none": "off",
    "minimal": "minimal",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}
_DEFAULT_LEVEL: Final[ThinkingLevel] = "high"
"""The level of Claude where thinking is requested without an effort, and of an unknown effort."""


def decode_thinking(body: Mapping[str, object], endpoint: Endpoint) -> Thinking:
    """Read how much thinking a body requests; None when it does not mention thinking."""
    fields = object_of(body.get("additionalModelRequestFields"))
    effort = object_of(fields.get("output_config")).get("effort")
    effort = text_of(effort) or text_of(object_of(body.get("outputConfig")).get("effort"))
    if "thinking" in fields:
        return _decode_claude(object_of(fields["thinking"]), effort)
    if effort is not None and endpoint.dialect.thinking_format == "adaptive":
        return _LEVELS.get(effort)
    if "reasoning_effort" in fields:
        return _LEVELS.get(text_of(fields["reasoning_effort"]) or "")
    if "reasoning" in fields:
        return _LEVELS.get(text_of(object_of(fields["reasoning"]).get("effort")) or "")
    if "reasoningConfig" in fields:
        return _decode_nova(object_of(fields["reasoningConfig"]))
    return None


def _decode_claude(thinking: Mapping[str, object], effort: str | None) -> Thinking:
    match thinking.get("type"):
        case "disabled":
            return "off"
        case "adaptive":
            return _LEVELS.get(effort or "") or _DEFAULT_LEVEL
        case "enabled":
            budget = thinking.get("budget_tokens")
            return budget if isinstance(budget, int) and not isinstance(budget, bool) else _DEFAULT_LEVEL
        case _:
            return None


def _decode_nova(config: Mapping[str, object]) -> Thinking:
    match config.get("type"):
        case "disabled":
            return "off"
        case "enabled":
            return _LEVELS.get(text_of(config.get("maxReasoningEffort")) or "") or _DEFAULT_LEVEL
        case _:
            return None


def encode_thinking(options: Options, endpoint: Endpoint) -> Wire:
    """Write how much thinking is requested, as additional fields; empty where the model has no field for it."""
    requested, model = options.thinking, endpoint.model
    wire_format = endpoint.dialect.thinking_format
    if requested is None:
        return {}
    if isinstance(requested, int) and requested > 0 and wire_format == "budget":
        return {"thinking": {"type": "enabled", "budget_tokens": requested}}
    level = level_for_budget(requested) if isinstance(requested, int) else requested
    match wire_format:
        case "budget":
            if level == "off":
                return {"thinking": {"type": "disabled"}}
            return {"thinking": {"type": "enabled", "budget_tokens": budget_for_level(level, endpoint.dialect)}}
        case "adaptive":
            if level == "off":
                return {"thinking": {"type": "disabled"}}
            return {"thinking": {"type": "adaptive"}, "output_config": {"effort": _effort_of(level, endpoint)}}
        case "effort" | "nested":
            effort = model.thinking_levels.get(level) if level == "off" else _effort_of(level, endpoint)
            if effort is None:
                return {}  # thinking cannot be disabled
            return {"reasoning_effort": effort} if wire_format == "effort" else {"reasoning": {"effort": effort}}
        case "level":
            if level == "off":
                return {"reasoningConfig": {"type": "disabled"}}
            return {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": _NOVA_EFFORTS[level]}}
        case _:
            return {}


def _effort_of(level: ThinkingLevel, endpoint: Endpoint) -> str:
    return endpoint.model.thinking_levels.get(level) or _EFFORTS[level]
