"""Dialects: how one provider's wire format differs from the protocol's default.

A dialect does not change the meaning of a request: only the codec of its protocol reads it. The defaults are the wire
format of the provider that defined the protocol. The facts come from providers' documentation and from the catalogues
of pi-ai and ktsoator/or; the rows with source and date are in `first_party` and `third_party`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, final

import msgspec

ThinkingFormat: TypeAlias = Literal[
    "effort",
    "nested",
    "openrouter",
    "deepseek",
    "together",
    "baseten",
    "zai",
    "qwen",
    "qwen-template",
    "chat-template",
    "word",
    "ling",
    "switch",
    "adaptive",
    "budget",
    "level",
    "none",
]


@final
class Dialect(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to encode and decode one provider's variant of a protocol. Every field has a value."""

    # -- messages ------------------------------------------------------------------------------------------------------
    developer_role: bool = False
    """The system prompt of a reasoning model has the role `developer`."""
    instructions: bool = False
    """The system prompt is the key `instructions`, which has to be there, also empty."""
    result_name: bool = False
    """A tool result repeats the name of its tool."""
    reasoning_field: Literal["reasoning_content", "reasoning", "reasoning_text", "reasoning_details"] = (
        "reasoning_content"
    )
    """The field of an assistant message for readable reasoning, if the rules allow it to be sent."""
    null_content: bool = True
    """The content of an assistant message without text is null; otherwise it is an empty string."""
    think_tags: bool = False
    """Reasoning arrives inside `<think>` tags in the text."""
    think_tag: Literal["<think>", "<mm:think>"] = "<think>"
    """The tag for reasoning that did not arrive in one, where `think_tags` is set."""
    empty_signature: bool = False
    """Thinking without a signature is accepted when the signature is an empty string."""
    prefix_field: Literal["prefix", "partial"] = "prefix"
    """The field of an assistant message that the model is to continue."""
    call_ids: bool = True
    """Tool calls have ids on the wire."""
    google_signatures: bool = False
    """Thought signatures are sent in `extra_content.google` of OpenAI tool calls."""

    # -- parameters ----------------------------------------------------------------------------------------------------
    max_tokens_field: Literal["max_completion_tokens", "max_tokens", "max_output_tokens", "none"] = (
        "max_completion_tokens"
    )
    """The field of the most tokens of a reply; `none`: there is none."""
    thinking_format: ThinkingFormat = "effort"
    """How thinking is asked for: as an effort, a budget, a level, a switch, or in the way of one provider."""
    thinking_budget_field: Literal["thinking_token_budget", "thinking_budget", "thinking_budget_tokens"] | None = None
    """The field of a thinking budget that is next to a switch; None: there is none."""
    thinking_budgets: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])
    """Budgets of thinking levels, if they differ from the defaults. Used where only budgets are accepted."""
    off_value: str | None = None
    """The value that disables thinking, where thinking is set by name and the model's entry has no such value."""
    default_effort: Literal["low", "medium", "high"] = "high"
    """The effort of a request that asks for thinking without one, where the model decides how long it thinks."""
    effort: bool = True
    """The provider accepts an effort in addition to its switch for thinking."""
    user_field: Literal["user", "user_id", "safety_identifier"] = "user"
    """The field of Chat that names the end user."""
    store: bool = False
    """The provider stores requests unless `store` is false."""
    usage_in_stream: bool = True
    """A stream can be asked for its usage."""
    finish_reason: bool = True
    """A reply always has a finish reason."""
    strict_tools: bool = False
    """The provider takes `strict` of a tool."""
    tool_stream: bool = False
    """The arguments of calls are streamed only if `tool_stream` is sent."""
    empty_tools: bool = False
    """An empty list of tools is sent when only the history has calls."""
    parallel_tool_calls: bool = True
    """The provider takes `parallel_tool_calls`."""
    json_schema: bool = True
    """The provider takes an output schema; otherwise JSON mode is sent."""
    strict_schema: bool = False
    """An output schema that meets the conditions of strict mode is sent with strict mode enabled."""

    # -- caching -------------------------------------------------------------------------------------------------------
    cache_format: Literal["none", "anthropic", "openai-key", "bedrock"] = "none"
    """How caching is asked for: not at all, with the marks of Anthropic or Bedrock, or with the key of OpenAI."""
    cache_on_tools: bool = True
    """Cache marks may be on tools."""
    cache_long: Literal["none", "1h", "24h", "30m"] = "none"
    """The longer lifetime of a cache that can be asked for."""
    session_header: Literal["none", "openai", "openai-nosession", "openrouter"] = "none"
    """Whose headers name the session: those of OpenAI, with or without `session_id`, or of OpenRouter."""

    # -- address -------------------------------------------------------------------------------------------------------
    auth: Literal["bearer", "x-api-key", "api-key", "x-goog-api-key", "aws", "google", "none"] = "bearer"
    """How a key is sent: as a bearer token, in the header of that name, as a signature of AWS, as a token of Google, or
    not at all."""
    account_header: str | None = None
    """The header of a reply that names the account of the request, in lower case."""
    aws_service: str = "bedrock"
    """The name of the service that a signature of AWS is for."""
    transport: Literal["bedrock-invoke", "vertex-raw-predict"] | None = None
    """How requests are sent, if not in the protocol's own way (`Protocol.transports`)."""
    path: str | None = None
    """The path below the base URL, if it is not the protocol's default path."""
    count_tokens: bool = False
    """The provider has the protocol's endpoint that counts the tokens of a request."""

    def takes_budget(self) -> bool:
        """Whether the request has a parameter for a thinking budget in tokens."""
        return self.thinking_format in _WITH_BUDGET or self.thinking_budget_field is not None

    def takes_effort(self) -> bool:
        """Whether the level is sent as an effort, alone or with a switch."""
        return self.effort and self.thinking_format in _WITH_EFFORT

    def takes_level(self) -> bool:
        """Whether the request has a parameter for the thinking level, not only a switch."""
        return self.thinking_format in _WITH_LEVELS or self.takes_effort()

    def takes_thinking(self) -> bool:
        """Whether the request has any parameter for thinking."""
        return self.takes_level() or self.takes_budget() or self.thinking_format not in _WITHOUT_VALUE

    def needs_off_value(self) -> bool:
        """Whether thinking is disabled by a named value, not by a switch or a budget of 0."""
        return self.thinking_format in _OFF_BY_VALUE


_WITH_BUDGET: Final = frozenset({"budget", "openrouter"})
_WITH_LEVELS: Final = frozenset({"budget", "level", "ling", "nested", "openrouter", "word"})
_WITH_EFFORT: Final = frozenset({"adaptive", "baseten", "deepseek", "effort", "qwen", "together", "zai"})
_WITHOUT_VALUE: Final = frozenset({"effort", "none"})
"""Formats without a switch: without an effort they send nothing."""
_OFF_BY_VALUE: Final = frozenset({"effort", "ling", "nested"})
