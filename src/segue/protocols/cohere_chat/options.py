"""Options of a request to Cohere, both ways.

Facts:
- `max_tokens`, `temperature`, `p`, `stop_sequences`, `seed`, `tool_choice` (`REQUIRED` or `NONE`; without it, the
  model decides), `response_format` with a `json_schema`, `stream`.                   (cohere 7.3.1, read 2026-11-15)
- `thinking` is enabled or disabled, with a positive `token_budget`; models that reason do so unless it is disabled.
                                                                        (cohere 7.3.1; Cohere documentation: reasoning)
- `k`, penalties, `documents`, `citation_options`, `safety_mode`, `strict_tools`, `logprobs` and `priority` have no
  field in `Options`: they are data.                                                                 (cohere 7.3.1)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from segue.conversation.context import Options, ThinkingLevel
from segue.errors import EncodeError
from segue.models.thinking import budget_for_level
from segue.protocols.cohere_chat.rules import PROTOCOL
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.option_table import (
    OptionTable,
    Setting,
    decode_settings,
    encode_settings,
    flag,
    listed,
    number,
    plain,
    texts,
)

_CONVERSATION: Final = frozenset({"messages", "tools"})
_DEFAULT_LEVEL: Final[ThinkingLevel] = "high"
"""The level of thinking without a budget: the model has no limit."""
_CHOICES: Final[Mapping[object, str]] = {"required": "REQUIRED", "none": "NONE"}
_DECODED_CHOICES: Final[Mapping[object, str]] = {
    value: choice for choice, value in _CHOICES.items() if isinstance(choice, str)
}


def _read_thinking(body: Block, _: Endpoint) -> object:
    thinking = object_of(body.get("thinking"))
    if thinking.get("type") == "disabled":
        return "off"
    if thinking.get("type") != "enabled":
        return None
    budget = thinking.get("token_budget")
    is_budget = isinstance(budget, int) and not isinstance(budget, bool) and budget > 0
    return budget if is_budget else _DEFAULT_LEVEL


def _write_thinking(value: object, endpoint: Endpoint) -> Wire:
    if not endpoint.model.reasoning:
        return {}
    if value == "off" or (isinstance(value, int) and value <= 0):
        return {"thinking": {"type": "disabled"}}
    budget = value if isinstance(value, int) else budget_for_level(cast("ThinkingLevel", value), endpoint.dialect)
    return {"thinking": {"type": "enabled", "token_budget": budget}}


def _read_choice(body: Block, _: Endpoint) -> object:
    choice = body.get("tool_choice")
    return _DECODED_CHOICES.get(choice) if isinstance(choice, str) else None


def _write_choice(value: object, _: Endpoint) -> Wire:
    if value == "auto":
        return {}
    if value not in _CHOICES:
        reason = f"{PROTOCOL} does not support a tool by name; use 'required', 'none' or 'auto'"
        raise EncodeError(reason, path=("options", "tool_choice"))
    return {"tool_choice": _CHOICES[value]}


def _read_schema(body: Block, _: Endpoint) -> object:
    form = object_of(body.get("response_format"))
    schema = form.get("json_schema")
    is_schema = form.get("type") == "json_object" and isinstance(schema, Mapping)
    return cast("Block", schema) if is_schema else None


def _write_schema(value: object, _: Endpoint) -> Wire:
    return {"response_format": {"type": "json_object", "json_schema": value}}


_SETTINGS: Final = OptionTable(
    PROTOCOL,
    (
        Setting("max_tokens", ("max_tokens",), number("max_tokens", whole=True), plain("max_tokens")),
        Setting("temperature", ("temperature",), number("temperature"), plain("temperature")),
        Setting("top_p", ("p",), number("p"), plain("p")),
        Setting("stop", ("stop_sequences",), texts("stop_sequences"), listed("stop_sequences")),
        Setting("seed", ("seed",), number("seed", whole=True), plain("seed")),
        Setting("thinking", ("thinking",), _read_thinking, _write_thinking),
        Setting("tool_choice", ("tool_choice",), _read_choice, _write_choice),
        Setting("output_schema", ("response_format",), _read_schema, _write_schema),
        Setting("stream", ("stream",), flag("stream"), plain("stream")),
    ),
)


def decode_options(body: Block, endpoint: Endpoint) -> Options:
    """Read the options of a body."""
    return decode_settings(_SETTINGS, body, _CONVERSATION, endpoint)


def encode_options(body: Wire, options: Options, endpoint: Endpoint, model: str | None) -> None:
    """Write the options and the model into a body.

    Raises:
        EncodeError: an option is set that the protocol has no parameter for.
    """
    encode_settings(_SETTINGS, body, options, endpoint, model)
