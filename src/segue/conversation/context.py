"""A whole conversation, and what one request asks besides it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeAlias, final

import msgspec

from segue.conversation.content import CacheMark, Extra, SystemContent, Value
from segue.conversation.messages import Message

ThinkingLevel: TypeAlias = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]
CacheRetention: TypeAlias = Literal["none", "short", "long"]


class _Tool(Value, frozen=True, kw_only=True, tag_field="type"):
    """The parent of both kinds of tool."""


@final
class ToolDefinition(_Tool, frozen=True, kw_only=True, tag="function"):
    """A tool that the application runs. `parameters` is a raw JSON schema, passed through untouched."""

    kind: ClassVar[Literal["function"]] = "function"
    name: str
    description: str = ""
    parameters: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])
    strict: bool | None = None
    cache_mark: CacheMark | None = None
    extra: Extra | None = None


@final
class NativeTool(_Tool, frozen=True, kw_only=True, tag="native"):
    """A tool that the provider runs itself: kept for its own protocol, left out and reported elsewhere."""

    kind: ClassVar[Literal["native"]] = "native"
    protocol: str
    definition: Mapping[str, Any]
    cache_mark: CacheMark | None = None
    extra: Extra | None = None


Tool: TypeAlias = ToolDefinition | NativeTool


@final
class Context(Value, frozen=True, kw_only=True):
    """A conversation as it is kept: the system prompt, the messages, the tools.

    It is stored once and never changed; every request is a projection of it.
    """

    system_prompt: str | tuple[SystemContent, ...] | None = None
    messages: tuple[Message, ...] = ()
    tools: tuple[Tool, ...] = ()
    extra: Extra | None = None

    def add(self, *messages: Message) -> Context:
        """Give a new conversation with the messages appended; this one stays as it was."""
        return msgspec.structs.replace(self, messages=(*self.messages, *messages))


@final
class Options(Value, frozen=True, kw_only=True):
    """What a request asks besides the conversation. None means: say nothing, let the provider decide.

    `thinking` is a level or a budget in tokens; `off` asks for none, which differs from not asking.
    `tool_choice` is `auto`, `none`, `required` or the name of a tool.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] | None = None
    seed: int | None = None
    thinking: ThinkingLevel | int | None = None
    tool_choice: str | None = None
    parallel_tool_calls: bool | None = None
    output_schema: Mapping[str, Any] | None = None
    cache_retention: CacheRetention | None = None
    session_id: str | None = None
    user_id: str | None = None
    stream: bool | None = None
    extra: Extra | None = None


@final
class Prompt(Value, frozen=True, kw_only=True):
    """A whole request body, read: the conversation, what was asked besides, and the model id it named."""

    context: Context
    options: Options = Options()
    model: str | None = None
