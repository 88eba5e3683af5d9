"""The parameters that turn thinking on and off at the vendors of this protocol, both ways.

Facts this file rests on:
- The parameters for on and off, by the dialect's `thinking_format`. A level is sent as the model's own value for it; a
  vendor without an effort gets only on or off.                       (pi-ai 1.5.0, thinkingFormat; read 2026-11-15)
- `off` is sent where there is a switch, unless the model cannot be switched off. Where there is only an effort, it is
  the model's value for `off`, or nothing.                                                                (the same)
- A budget has a field of its own on some servers; elsewhere the nearest level is sent.
                       (vLLM thinking_token_budget, Qwen and SGLang thinking_budget, llama.cpp thinking_budget_tokens)
- Bodies for one vendor use the parameters of another, so every format is read at every vendor.
                                                                                        (recorded traffic, 2026-11)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from segue.conversation.context import ThinkingLevel
from segue.models.model import Model
from segue.models.thinking import DEFAULT_BUDGETS, THINKING_LEVELS, level_for_budget
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Block, Wire, object_of

THINKING_KEYS: Final = (
    "reasoning_effort",
    "reasoning",
    "thinking",
    "enable_thinking",
    "thinking_budget",
    "thinking_token_budget",
    "thinking_budget_tokens",
    "chat_template_kwargs",
    "chat_template_args",
)
THINKING_FIELDS: Final = frozenset(
    {"effort", "enabled", "max_tokens", "type", "budget_tokens", "enable_thinking", "thinking", "preserve_thinking"}
    | {"clear_thinking"}
)
"""The keys of objects among them that are read, or written with what is."""
_BUDGET_KEYS: Final = ("thinking_budget", "thinking_token_budget", "thinking_budget_tokens")
_SWITCHED_ON: Final[ThinkingLevel] = "medium"
"""The level of a bare switch, which names none: the default of most vendors."""


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_thinking(thinking: ThinkingLevel | int, endpoint: Endpoint) -> Wire:
    """Write a level or a budget in the provider's format."""
    model, dialect = endpoint.model, endpoint.dialect
    if isinstance(thinking, int) and thinking > 0:
        budget = _write_budget(thinking, endpoint)
        if budget is not None:
            return budget
    level = level_for_budget(thinking) if isinstance(thinking, int) else thinking
    if level == "off":
        if dialect.off_value and "off" not in model.thinking_levels and dialect.thinking_format == "effort":
            return {"reasoning_effort": dialect.off_value}
        return _OFF[dialect.thinking_format](model) if model.reasoning else {}
    effort = model.thinking_levels.get(level) or level
    wire = _ON[dialect.thinking_format](effort, model, level)
    if dialect.takes_effort():
        wire["reasoning_effort"] = effort
    return wire


def _write_budget(tokens: int, endpoint: Endpoint) -> Wire | None:
    dialect = endpoint.dialect
    if dialect.thinking_format == "openrouter":
        return {"reasoning": {"max_tokens": tokens}}
    if dialect.thinking_format == "budget":
        return {"thinking": {"type": "enabled", "budget_tokens": tokens}}
    if dialect.thinking_budget_field is None:
        return None
    switch = (
        _ON[dialect.thinking_format]("", endpoint.model, _SWITCHED_ON) if dialect.thinking_format != "effort" else {}
    )
    return {**switch, dialect.thinking_budget_field: tokens}


def _nothing(*_: object) -> Wire:
    return {}


def _switch_on(switch: Wire) -> Callable[[str, Model, ThinkingLevel], Wire]:
    return lambda _effort, _model, _level: dict(switch)


_ON: Final[Mapping[str, Callable[[str, Model, ThinkingLevel], Wire]]] = {
    "effort": _nothing,
    "nested": lambda effort, _model, _level: {"reasoning": {"effort": effort}},
    "openrouter": lambda effort, _model, _level: {"reasoning": {"effort": effort}},
    "deepseek": _switch_on({"thinking": {"type": "enabled"}}),
    "switch": _switch_on({"thinking": {"type": "enabled"}}),
    "zai": _switch_on({"thinking": {"type": "enabled", "clear_thinking": False}}),
    "together": _switch_on({"reasoning": {"enabled": True}}),
    "baseten": _switch_on({"chat_template_args": {"enable_thinking": True}}),
    "qwen": _switch_on({"enable_thinking": True}),
    "qwen-template": _switch_on({"chat_template_kwargs": {"enable_thinking": True, "preserve_thinking": True}}),
    "chat-template": _switch_on({"chat_template_kwargs": {"enable_thinking": True}}),
    "word": lambda effort, _model, _level: {"thinking": effort},
    # An effort is supported only for models whose values for it are known.                        (pi-ai 1.5.0)
    "ling": lambda effort, model, level: {"reasoning": {"effort": effort}} if model.thinking_levels.get(level) else {},
    "adaptive": _switch_on({"thinking": {"type": "adaptive"}}),
    "budget": lambda _effort, _model, level: {
        "thinking": {"type": "enabled", "budget_tokens": DEFAULT_BUDGETS.get(level, 8192)}
    },
    "level": _nothing,
    "none": _nothing,
}


def _off_effort(model: Model) -> str | None:
    return model.thinking_levels.get("off", "none")


def _switch_off(switch: Wire) -> Callable[[Model], Wire]:
    return lambda model: dict(switch) if _off_effort(model) is not None else {}


_OFF: Final[Mapping[str, Callable[[Model], Wire]]] = {
    # A model without a value of its own gets nothing: an unknown effort is refused.
    "effort": lambda model: {"reasoning_effort": off} if (off := model.thinking_levels.get("off")) else {},
    "nested": lambda model: {"reasoning": {"effort": off}} if (off := model.thinking_levels.get("off")) else {},
    "openrouter": lambda model: {"reasoning": {"effort": off}} if (off := _off_effort(model)) is not None else {},
    "deepseek": _switch_off({"thinking": {"type": "disabled"}}),
    "switch": _switch_off({"thinking": {"type": "disabled"}}),
    "zai": _switch_off({"thinking": {"type": "disabled"}}),
    "together": _switch_off({"reasoning": {"enabled": False}}),
    "baseten": _switch_off({"chat_template_args": {"enable_thinking": False}}),
    "qwen": _switch_off({"enable_thinking": False}),
    "qwen-template": _switch_off({"chat_template_kwargs": {"enable_thinking": False, "preserve_thinking": True}}),
    "chat-template": _switch_off({"chat_template_kwargs": {"enable_thinking": False}}),
    "word": lambda model: {"thinking": off} if (off := _off_effort(model)) is not None else {},
    "ling": _nothing,
    "adaptive": _switch_off({"thinking": {"type": "disabled"}}),
    "budget": _switch_off({"thinking": {"type": "disabled"}}),
    "level": _nothing,
    "none": _nothing,
}


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_thinking(body: Block, endpoint: Endpoint) -> ThinkingLevel | int | None:
    """Read the level or budget of a body; None when it has none, or in a format that segue does not know."""
    for key in _BUDGET_KEYS:
        if (tokens := _tokens(body.get(key))) is not None:
            return tokens
    for inner in (object_of(body.get("reasoning")), object_of(body.get("thinking"))):
        for key in ("max_tokens", "budget_tokens"):
            if (tokens := _tokens(inner.get(key))) is not None:
                return tokens
    reasoning, thinking = object_of(body.get("reasoning")), body.get("thinking")
    for effort in (body.get("reasoning_effort"), reasoning.get("effort"), thinking):
        if (level := _level(effort, endpoint.model)) is not None:
            return level
    return _read_switch(body, reasoning, object_of(thinking))


def _read_switch(body: Block, reasoning: Block, thinking: Block) -> ThinkingLevel | None:
    switches = (
        reasoning.get("enabled"),
        {"enabled": True, "adaptive": True, "auto": True, "disabled": False}.get(str(thinking.get("type"))),
        body.get("enable_thinking"),
        object_of(body.get("chat_template_kwargs")).get("enable_thinking"),
        object_of(body.get("chat_template_kwargs")).get("thinking"),
        object_of(body.get("chat_template_args")).get("enable_thinking"),
    )
    for switch in switches:
        if isinstance(switch, bool):
            return _SWITCHED_ON if switch else "off"
    return None


def _level(effort: object, model: Model) -> ThinkingLevel | None:
    if not isinstance(effort, str):
        return None
    for level, own in model.thinking_levels.items():
        if own == effort and level in THINKING_LEVELS:
            return level
    if effort in THINKING_LEVELS:
        return effort
    return "off" if effort in ("none", "disabled") else None


def _tokens(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
