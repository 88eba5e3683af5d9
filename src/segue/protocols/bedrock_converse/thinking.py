"""How models behind Bedrock are asked to think, both ways.

Facts this file rests on stand in `options`. Each family has its own words among the additional fields; which one a
model speaks is its dialect's `thinking_format`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from segue.conversation.context import Options, ThinkingLevel
from segue.models.dialect import ThinkingFormat
from segue.models.thinking import budget_for_level, level_for_budget
from segue.protocols.bedrock_converse.verbatim import Wire, object_of
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import text_of

Thinking: TypeAlias = ThinkingLevel | int | None

LEAST_BUDGET: Final = 1_024
NOT_EVERYWHERE: Final = frozenset({"xhigh", "max"})
"""Efforts that only models which list them take."""

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
"""What Claude does when thinking is asked for and no effort, and what an effort unknown to us is taken for."""

_THINKING_KEYS: Final[Mapping[str, frozenset[ThinkingFormat]]] = {
    "thinking": frozenset({"budget", "adaptive"}),
    "output_config": frozenset({"budget", "adaptive"}),  # a form for the answer may stand there, too
    "reasoning_effort": frozenset({"effort"}),
    "reasoning": frozenset({"nested"}),
    "reasoningConfig": frozenset({"level"}),
}
"""Additional fields that speak of thinking -> the formats of the models that know them."""
_KINDS: Final[Mapping[str, ThinkingFormat]] = {"adaptive": "adaptive", "enabled": "budget"}
"""Kinds of `thinking` -> the format of the models that take them; `disabled` is for both."""


def fits(body: Mapping[str, object], endpoint: Endpoint) -> bool:
    """Whether a body asks for thinking, if at all, in the way that this model is known to take."""
    fields, content = object_of(body.get("additionalModelRequestFields")), endpoint.dialect.thinking_format
    for value, formats in _THINKING_KEYS.items():
        if value in fields and content not in formats:
            return False
    kind = _KINDS.get(text_of(object_of(fields.get("thinking")).get("type")) or "")
    effort = _effort(body)
    if effort in NOT_EVERYWHERE and effort not in endpoint.model.thinking_levels.values():
        return False
    return (kind is None or kind == content) and (effort is None or content == "adaptive")


def _effort(body: Mapping[str, object]) -> str | None:
    """Give the effort that is asked of a model that thinks adaptively."""
    fields = object_of(body.get("additionalModelRequestFields"))
    effort = object_of(fields.get("output_config")).get("effort")
    return text_of(effort) or text_of(object_of(body.get("outputConfig")).get("effort"))


def decode_thinking(body: Mapping[str, object], endpoint: Endpoint) -> Thinking:
    """Say how much thinking a body asks for; None when it says nothing of it."""
    fields = object_of(body.get("additionalModelRequestFields"))
    effort = _effort(body)
    if "thinking" in fields:
        return _claude(object_of(fields["thinking"]), effort)
    if effort is not None and endpoint.dialect.thinking_format == "adaptive":
        return _LEVELS.get(effort)
    if "reasoning_effort" in fields:
        return _LEVELS.get(text_of(fields["reasoning_effort"]) or "")
    if "reasoning" in fields:
        return _LEVELS.get(text_of(object_of(fields["reasoning"]).get("effort")) or "")
    if "reasoningConfig" in fields:
        return _nova(object_of(fields["reasoningConfig"]))
    return None


def _claude(thinking: Mapping[str, object], effort: str | None) -> Thinking:
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


def _nova(config: Mapping[str, object]) -> Thinking:
    match config.get("type"):
        case "disabled":
            return "off"
        case "enabled":
            return _LEVELS.get(text_of(config.get("maxReasoningEffort")) or "") or _DEFAULT_LEVEL
        case _:
            return None


def encode_thinking(options: Options, endpoint: Endpoint) -> Wire:
    """Write how much thinking is asked for, as additional fields; nothing where the model has no word for it."""
    asked, model = options.thinking, endpoint.model
    content = endpoint.dialect.thinking_format
    if asked is None:
        return {}
    if isinstance(asked, int) and asked > 0 and content == "budget":
        return {"thinking": {"type": "enabled", "budget_tokens": asked}}
    level = level_for_budget(asked) if isinstance(asked, int) else asked
    match content:
        case "budget":
            if level == "off":
                return {"thinking": {"type": "disabled"}}
            return {"thinking": {"type": "enabled", "budget_tokens": budget_for_level(level, endpoint.dialect)}}
        case "adaptive":
            if level == "off":
                return {"thinking": {"type": "disabled"}}
            return {"thinking": {"type": "adaptive"}, "output_config": {"effort": _effort_value(level, endpoint)}}
        case "effort" | "nested":
            value = model.thinking_levels.get(level) if level == "off" else _effort_value(level, endpoint)
            if value is None:
                return {}  # it cannot be told to stop, and thinks as little as it does by itself
            return {"reasoning_effort": value} if content == "effort" else {"reasoning": {"effort": value}}
        case "level":
            if level == "off":
                return {"reasoningConfig": {"type": "disabled"}}
            return {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": _NOVA_EFFORTS[level]}}
        case _:
            return {}


def _effort_value(level: ThinkingLevel, endpoint: Endpoint) -> str:
    return endpoint.model.thinking_levels.get(level) or _EFFORTS[level]
