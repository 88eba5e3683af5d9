"""Dialects: how one provider spells a protocol.

A dialect never changes what a request means: only the codec of its protocol reads it. The defaults are the protocol
as its inventor speaks it. Facts come from the vendors' documentation and from the flags that agents had to learn
(the ancestors' catalogues); the rows with source and date are in `providers`.
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
    """How to write and read one provider's variant of a protocol; frozen and total."""

    # -- messages ------------------------------------------------------------------------------------------------------
    developer_role: bool = False
    """The system prompt of a reasoning model goes under the role `developer`."""
    result_name: bool = False
    """A tool result repeats the name of its tool."""
    reasoning_field: Literal["reasoning_content", "reasoning", "reasoning_text", "reasoning_details"] = (
        "reasoning_content"
    )
    """The field of an assistant message that carries readable reasoning, where the rules allow any."""
    null_content: bool = True
    """An assistant without words has null for content; where that is refused, an empty string."""
    think_tags: bool = False
    """Reasoning arrives inside `<think>` tags in the text."""
    empty_signature: bool = False
    """Thinking without a signature is accepted when the signature is an empty string."""
    call_ids: bool = True
    """Tool calls carry ids on the wire."""
    result_media_parts: bool = False
    """Media of a tool result go inside the result (Gemini 3 and later)."""
    google_signatures: bool = False
    """Thought signatures travel in `extra_content.google` of OpenAI-shaped calls."""

    # -- parameters ----------------------------------------------------------------------------------------------------
    max_tokens_field: Literal["max_completion_tokens", "max_tokens", "max_output_tokens", "none"] = (
        "max_completion_tokens"
    )
    thinking_format: ThinkingFormat = "effort"
    thinking_budget_field: Literal["thinking_token_budget", "thinking_budget", "thinking_budget_tokens"] | None = None
    thinking_budgets: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])
    """What levels stand for where only budgets are taken, for those that differ from everybody's."""
    off_value: str | None = None
    """The word for no thinking, where it is told by words and the model's entry has none of its own."""
    effort: bool = True
    """The provider takes an effort beside its switch for thinking."""
    store: bool = False
    """The provider keeps requests unless told `store: false`."""
    usage_in_stream: bool = True
    finish_reason: bool = True
    """A reply always says why it stopped."""
    strict_tools: bool = False
    tool_stream: bool = False
    empty_tools: bool = False
    """An empty list of tools is sent when only the history has calls."""
    parallel_tool_calls: bool = True
    json_schema: bool = True
    strict_schema: bool = False
    """A schema that can be followed to the letter is asked to be, where that is not what happens anyway."""
    grammar_tools: bool = False
    tool_search: bool = False

    # -- caching -------------------------------------------------------------------------------------------------------
    cache_format: Literal["none", "anthropic", "openai-key", "bedrock"] = "none"
    cache_on_tools: bool = True
    cache_long: Literal["none", "1h", "24h", "30m"] = "none"
    session_header: Literal["none", "openai", "openai-nosession", "openrouter"] = "none"

    # -- where ---------------------------------------------------------------------------------------------------------
    auth: Literal["bearer", "x-api-key", "api-key", "x-goog-api-key", "aws", "google", "none"] = "bearer"
    path: str | None = None
    """Where requests go below the base URL, when it is not the protocol's usual path."""

    def takes_budget(self) -> bool:
        """Whether thinking can be bounded by a number of tokens here; elsewhere only levels can be asked for."""
        return self.thinking_format in _WITH_BUDGET or self.thinking_budget_field is not None

    def takes_effort(self) -> bool:
        """Whether the level goes into a field beside the switch, or is all there is."""
        return self.effort and self.thinking_format in _WITH_EFFORT

    def takes_level(self) -> bool:
        """Whether it can be told how much to think; elsewhere only whether to."""
        return self.thinking_format in _WITH_LEVELS or self.takes_effort()

    def takes_thinking(self) -> bool:
        """Whether anything about thinking can be told at all."""
        return self.takes_level() or self.takes_budget() or self.thinking_format not in _WITHOUT_VALUE

    def needs_off_value(self) -> bool:
        """Whether not to think is told by a word, and not by a switch or by a budget of nothing."""
        return self.thinking_format in _OFF_BY_VALUE


_WITH_BUDGET: Final = frozenset({"budget", "openrouter"})
_WITH_LEVELS: Final = frozenset({"budget", "level", "ling", "nested", "openrouter", "word"})
_WITH_EFFORT: Final = frozenset({"adaptive", "baseten", "deepseek", "effort", "qwen", "together", "zai"})
_WITHOUT_VALUE: Final = frozenset({"effort", "none"})
"""Formats that have no switch: without an effort they say nothing."""
_OFF_BY_VALUE: Final = frozenset({"effort", "ling", "nested"})
