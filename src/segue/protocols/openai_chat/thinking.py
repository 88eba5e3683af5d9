"""How vendors of this wire are asked to think, both ways.

Facts this file rests on:
- The ways to say it, on and off, by the name of the dialect's `thinking_format`. A level is told by the model's own
  word for it; whoever takes no effort is only told to think or not.  (pi-ai 1.5.0, thinkingFormat; read 2026-11-15)
- `off` is said where there is a switch, unless the model cannot be switched off; where there is only an effort, it is
  said with the word the model has for it, else not at all.                                             (the same)
- A budget goes into a field of its own where the server has one; elsewhere the nearest level is asked for.
                       (vLLM thinking_token_budget, Qwen and SGLang thinking_budget, llama.cpp thinking_budget_tokens)
- Reading believes any of these forms, whoever it is that speaks.                       (recorded traffic, 2026-11)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from segue.conversation.context import ThinkingLevel
from segue.models.model import Model
from segue.models.thinking import DEFAULT_BUDGETS, THINKING_LEVELS, level_for_budget
from segue.protocols.kit.codec import Endpoint
from segue.protocols.openai_chat.verbatim import object_of

Fragment: TypeAlias = dict[str, object]

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
_BUDGET_KEYS: Final = ("thinking_budget", "thinking_token_budget", "thinking_budget_tokens")
_SWITCHED_ON: Final[ThinkingLevel] = "medium"
"""What a bare switch is read as: it names no level, and this is where vendors start."""


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_thinking(asked: ThinkingLevel | int, endpoint: Endpoint) -> Fragment:
    """Say in the provider's way how much to think."""
    model, dialect = endpoint.model, endpoint.dialect
    if isinstance(asked, int) and asked > 0:
        budget = _write_budget(asked, endpoint)
        if budget is not None:
            return budget
    level = level_for_budget(asked) if isinstance(asked, int) else asked
    if level == "off":
        return _OFF[dialect.thinking_format](model) if model.reasoning else {}
    literal = model.thinking_levels.get(level) or level
    given = _ON[dialect.thinking_format](literal, model, level)
    if dialect.takes_effort():
        given["reasoning_effort"] = literal
    return given


def _write_budget(tokens: int, endpoint: Endpoint) -> Fragment | None:
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


def _nothing(*_: object) -> Fragment:
    return {}


def _switch_on(fragment: Fragment) -> Callable[[str, Model, ThinkingLevel], Fragment]:
    return lambda _word, _model, _level: dict(fragment)


_ON: Final[Mapping[str, Callable[[str, Model, ThinkingLevel], Fragment]]] = {
    "effort": _nothing,
    "nested": lambda literal, _model, _level: {"reasoning": {"effort": literal}},
    "openrouter": lambda literal, _model, _level: {"reasoning": {"effort": literal}},
    "deepseek": _switch_on({"thinking": {"type": "enabled"}}),
    "switch": _switch_on({"thinking": {"type": "enabled"}}),
    "zai": _switch_on({"thinking": {"type": "enabled", "clear_thinking": False}}),
    "together": _switch_on({"reasoning": {"enabled": True}}),
    "baseten": _switch_on({"chat_template_args": {"enable_thinking": True}}),
    "qwen": _switch_on({"enable_thinking": True}),
    "qwen-template": _switch_on({"chat_template_kwargs": {"enable_thinking": True, "preserve_thinking": True}}),
    "chat-template": _switch_on({"chat_template_kwargs": {"enable_thinking": True}}),
    "word": lambda literal, _model, _level: {"thinking": literal},
    # It takes an effort only from models whose words for it are known.                            (pi-ai 1.5.0)
    "ling": lambda literal, model, level: (
        {"reasoning": {"effort": literal}} if model.thinking_levels.get(level) else {}
    ),
    "adaptive": _switch_on({"thinking": {"type": "adaptive"}}),
    "budget": lambda _word, _model, level: {
        "thinking": {"type": "enabled", "budget_tokens": DEFAULT_BUDGETS.get(level, 8192)}
    },
    "level": _nothing,
    "none": _nothing,
}


def _off_value(model: Model) -> str | None:
    return model.thinking_levels.get("off", "none")


def _switch_off(fragment: Fragment) -> Callable[[Model], Fragment]:
    return lambda model: dict(fragment) if _off_value(model) is not None else {}


_OFF: Final[Mapping[str, Callable[[Model], Fragment]]] = {
    # Without a word of the model's own nothing is said: an effort it does not know is refused.
    "effort": lambda model: {"reasoning_effort": literal} if (literal := model.thinking_levels.get("off")) else {},
    "nested": lambda model: {"reasoning": {"effort": literal}} if (literal := model.thinking_levels.get("off")) else {},
    "openrouter": lambda model: (
        {"reasoning": {"effort": literal}} if (literal := _off_value(model)) is not None else {}
    ),
    "deepseek": _switch_off({"thinking": {"type": "disabled"}}),
    "switch": _switch_off({"thinking": {"type": "disabled"}}),
    "zai": _switch_off({"thinking": {"type": "disabled"}}),
    "together": _switch_off({"reasoning": {"enabled": False}}),
    "baseten": _switch_off({"chat_template_args": {"enable_thinking": False}}),
    "qwen": _switch_off({"enable_thinking": False}),
    "qwen-template": _switch_off({"chat_template_kwargs": {"enable_thinking": False, "preserve_thinking": True}}),
    "chat-template": _switch_off({"chat_template_kwargs": {"enable_thinking": False}}),
    "word": lambda model: {"thinking": literal} if (literal := _off_value(model)) is not None else {},
    "ling": _nothing,
    "adaptive": _switch_off({"thinking": {"type": "disabled"}}),
    "budget": _switch_off({"thinking": {"type": "disabled"}}),
    "level": _nothing,
    "none": _nothing,
}


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_thinking(body: Mapping[str, object], endpoint: Endpoint) -> ThinkingLevel | int | None:
    """Read how much a body asks to think; None when it does not say, or in a way nobody knows."""
    for key in _BUDGET_KEYS:
        if (tokens := _tokens(body.get(key))) is not None:
            return tokens
    for inner in (object_of(body.get("reasoning")), object_of(body.get("thinking"))):
        for key in ("max_tokens", "budget_tokens"):
            if (tokens := _tokens(inner.get(key))) is not None:
                return tokens
    reasoning, thinking = object_of(body.get("reasoning")), body.get("thinking")
    for literal in (body.get("reasoning_effort"), reasoning.get("effort"), thinking):
        if (level := _level(literal, endpoint.model)) is not None:
            return level
    return _read_switch(body, reasoning, object_of(thinking))


def _read_switch(
    body: Mapping[str, object], reasoning: Mapping[str, object], thinking: Mapping[str, object]
) -> ThinkingLevel | None:
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


def _level(literal: object, model: Model) -> ThinkingLevel | None:
    if not isinstance(literal, str):
        return None
    for level, own in model.thinking_levels.items():
        if own == literal and level in THINKING_LEVELS:
            return level
    if literal in THINKING_LEVELS:
        return literal
    return "off" if literal in ("none", "disabled") else None


def _tokens(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
