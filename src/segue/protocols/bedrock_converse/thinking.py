"""The thinking settings of models behind Bedrock, both ways.

The facts stand in `options`. Each family of models has its own fields among the additional ones; the dialect's
`thinking_format` names those of a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.conversation.context import Options, ThinkingLevel
from segue.models.thinking import LEVELS_BY_EFFORT, level_for_budget
from segue.protocols.kit.claude_thinking import (
    EFFORTS,
    Thinking,
    decode_thinking_object,
    effort_of,
    encode_thinking_object,
)
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Wire, object_of
from segue.protocols.kit.reading import text_of

_NOVA_DEFAULT: Final[ThinkingLevel] = "high"
_NOVA_EFFORTS: Final[Mapping[ThinkingLevel, str]] = {**EFFORTS, "xhigh": "high", "max": "high"}


def decode_thinking(body: Mapping[str, object], endpoint: Endpoint) -> Thinking:
    """Read how much thinking a body requests; None when it does not mention thinking."""
    fields = object_of(body.get("additionalModelRequestFields"))
    effort = object_of(fields.get("output_config")).get("effort")
    effort = text_of(effort) or text_of(object_of(body.get("outputConfig")).get("effort"))
    if "thinking" in fields:
        return decode_thinking_object(object_of(fields["thinking"]), LEVELS_BY_EFFORT.get(effort or ""), endpoint)
    if effort is not None and (endpoint.dialect.thinking_format == "adaptive" or not endpoint.model.id):
        # A body does not name its model: the URL does.
        return LEVELS_BY_EFFORT.get(effort)
    if "reasoning_effort" in fields:
        return LEVELS_BY_EFFORT.get(text_of(fields["reasoning_effort"]) or "")
    if "reasoning" in fields:
        return LEVELS_BY_EFFORT.get(text_of(object_of(fields["reasoning"]).get("effort")) or "")
    if "reasoningConfig" in fields:
        return _decode_nova(object_of(fields["reasoningConfig"]))
    return None


def _decode_nova(config: Mapping[str, object]) -> Thinking:
    match config.get("type"):
        case "disabled":
            return "off"
        case "enabled":
            return LEVELS_BY_EFFORT.get(text_of(config.get("maxReasoningEffort")) or "") or _NOVA_DEFAULT
        case _:
            return None


def encode_thinking(options: Options, endpoint: Endpoint) -> Wire:
    """Write how much thinking is requested, as additional fields; empty where the model has no field for it."""
    requested, model = options.thinking, endpoint.model
    wire_format = endpoint.dialect.thinking_format
    if requested is None:
        return {}
    if wire_format in ("budget", "adaptive"):
        thinking, effort = encode_thinking_object(requested, endpoint)
        return {"thinking": thinking} if effort is None else {"thinking": thinking, "output_config": {"effort": effort}}
    level = level_for_budget(requested) if isinstance(requested, int) else requested
    match wire_format:
        case "effort" | "nested":
            effort = model.thinking_levels.get(level) if level == "off" else effort_of(level, endpoint)
            if effort is None:
                return {}  # thinking cannot be disabled
            return {"reasoning_effort": effort} if wire_format == "effort" else {"reasoning": {"effort": effort}}
        case "level":
            if level == "off":
                return {"reasoningConfig": {"type": "disabled"}}
            return {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": _NOVA_EFFORTS[level]}}
        case _:
            return {}
