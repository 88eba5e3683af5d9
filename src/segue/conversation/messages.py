"""The messages of a conversation, and what a provider reports about its replies.

An assistant message names its origin (protocol, provider, model). Projection compares it with the target to decide
whether signatures in the message are valid there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar, Literal, TypeAlias, final

from segue.conversation.content import (
    AnyContent,
    AssistantContent,
    CacheMark,
    Extra,
    SystemContent,
    TextContent,
    ToolCall,
    ToolResultContent,
    UserContent,
    Value,
)


class StopReason(StrEnum):
    """Why the model stopped. Compare with `==`: a value built by hand may be a plain `str`."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_USE = "toolUse"
    ERROR = "error"
    ABORTED = "aborted"


@final
class UsageCost(Value, frozen=True, kw_only=True):
    """What a reply cost, in the currency of the model's price (US dollars in the catalogue)."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    total: float = 0.0
    extra: Extra | None = None


@final
class Usage(Value, frozen=True, kw_only=True):
    """Tokens by category. `input` never includes cached tokens; `output` includes `reasoning`."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    total_tokens: int = 0
    cost: UsageCost | None = None
    extra: Extra | None = None


@final
class Diagnostic(Value, frozen=True, kw_only=True):
    """A problem that did not stop the turn, such as tool arguments that had to be repaired."""

    type: str
    message: str | None = None
    details: Mapping[str, Any] | None = None
    timestamp: int | None = None
    extra: Extra | None = None


@final
class Sent(Value, frozen=True, kw_only=True):
    """What a reply was made after: where the provider checks it, reasoning is valid only after exactly that.

    `system`, `tools` and `messages` are digests of the request as it was on the wire, without cache marks and without
    reasoning; they are empty where the target does not check them. `before` is the mark of the last block of reasoning
    in the request, `blocks` are the marks of the reply's own blocks, in order. A mark is a short digest of a signature.

    `accepted` are marks of blocks whose own prefix is not known and that the server accepted in this request, in order,
    after the mark of the block before them, if any. `dropped` are marks of blocks that it dropped or refused: they are
    never sent again with this account; "MARK@MODEL" is one that only this model does not read. `account` names the
    account that the request was sent with: the organization where the provider names it. `key` is then a digest of the
    key, by which the account is recognised before the provider has named it again.

    `instructions` are the system prompt and the tools that came into force with the request, as `dump` writes them:
    those before its messages, or, if `is_appended`, those after them. With `Policy(instructions="append")`, they are
    remembered by the first reply to them.

    `inserted` is the text of the user turn that ended the request and that is not a message of the conversation: one
    was needed. Later requests have it before the reply, too.
    """

    system: str = ""
    tools: str = ""
    messages: str = ""
    before: str | None = None
    blocks: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    account: str | None = None
    key: str | None = None
    instructions: Mapping[str, Any] | None = None
    is_appended: bool = False
    inserted: str | None = None
    extra: Extra | None = None


class _Message(Value, frozen=True, kw_only=True, tag_field="role"):
    """The base class of all messages; the tag is `role` in JSON and in Python, and `kind` as for content and events."""


def _join_texts(content: tuple[AnyContent, ...]) -> str:
    return "".join([piece.text for piece in content if piece.kind == "text"])


@final
class UserMessage(_Message, frozen=True, kw_only=True, tag="user"):
    """A message of the user. `timestamp` is Unix milliseconds."""

    role: ClassVar[Literal["user"]] = "user"
    kind: ClassVar[Literal["user"]] = "user"
    content: tuple[UserContent, ...]
    timestamp: int | None = None
    extra: Extra | None = None

    @classmethod
    def of(cls, *content: str | UserContent, timestamp: int | None = None) -> UserMessage:
        """Build a message from plain strings and content, in order."""
        return cls(
            content=tuple(TextContent(text=piece) if isinstance(piece, str) else piece for piece in content),
            timestamp=timestamp,
        )

    def text(self) -> str:
        """Join the text of all text content; images and files are skipped."""
        return _join_texts(self.content)


@final
class AssistantMessage(_Message, frozen=True, kw_only=True, tag="assistant"):
    """A message of a model, with its origin and what its provider reported.

    `model` is the id that was requested, `response_model` the one that answered (often a dated version of it).
    `prefix` asks the model to continue this message instead of answering it, where the provider has such a field.
    `sent` says what the reply was made after; None if that is not known, as in imported histories.
    """

    role: ClassVar[Literal["assistant"]] = "assistant"
    kind: ClassVar[Literal["assistant"]] = "assistant"
    content: tuple[AssistantContent, ...]
    protocol: str = ""
    provider: str = ""
    model: str = ""
    response_model: str | None = None
    response_id: str | None = None
    usage: Usage | None = None
    stop_reason: StopReason = StopReason.STOP
    raw_stop_reason: str | None = None
    error_message: str | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    prefix: bool = False
    sent: Sent | None = None
    timestamp: int | None = None
    extra: Extra | None = None

    def text(self) -> str:
        """Join the text of all text content; thinking and calls are skipped."""
        return _join_texts(self.content)

    def tool_calls(self) -> tuple[ToolCall, ...]:
        """Return the tool calls, in order."""
        return tuple([content for content in self.content if content.kind == "toolCall"])


@final
class ToolResultMessage(_Message, frozen=True, kw_only=True, tag="toolResult"):
    """The result of one tool call. `details` are for the application and never sent to a model."""

    role: ClassVar[Literal["toolResult"]] = "toolResult"
    kind: ClassVar[Literal["toolResult"]] = "toolResult"
    tool_call_id: str
    tool_name: str = ""
    content: tuple[ToolResultContent, ...]
    is_error: bool = False
    details: object = None
    cache_mark: CacheMark | None = None
    timestamp: int | None = None
    extra: Extra | None = None

    def text(self) -> str:
        """Join the text of all text content; images and files are skipped."""
        return _join_texts(self.content)


@final
class SystemMessage(_Message, frozen=True, kw_only=True, tag="system"):
    """Instructions in the middle of a conversation. Those before the first message are `Context.system_prompt`."""

    role: ClassVar[Literal["system"]] = "system"
    kind: ClassVar[Literal["system"]] = "system"
    content: tuple[SystemContent, ...]
    extra: Extra | None = None

    @classmethod
    def of(cls, *content: str | SystemContent) -> SystemMessage:
        """Build a message from plain strings and content, in order."""
        return cls(content=tuple(TextContent(text=piece) if isinstance(piece, str) else piece for piece in content))

    def text(self) -> str:
        """Join the text of all text content; native blocks are skipped."""
        return _join_texts(self.content)


Message: TypeAlias = UserMessage | AssistantMessage | ToolResultMessage | SystemMessage


def has_calls(messages: Sequence[Message]) -> bool:
    """Whether a history has calls of tools, or results of calls."""
    return any(
        message.role == "toolResult" or (message.role == "assistant" and bool(message.tool_calls()))
        for message in messages
    )
