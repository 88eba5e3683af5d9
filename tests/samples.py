"""Conversations that several tests use."""

from __future__ import annotations

from typing import Final

from segue.conversation.content import (
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from segue.conversation.context import Context, NativeTool, Origin, Summary, ToolDefinition
from segue.conversation.messages import (
    AssistantMessage,
    Diagnostic,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    Usage,
    UsageCost,
    UserMessage,
)

EVERYTHING: Final = Context(
    system_prompt=(TextContent(text="Be brief."), NativeContent(protocol="anthropic-messages", block={"type": "x"})),
    messages=(
        UserMessage(
            content=(
                TextContent(text="hi", text_signature="sig"),
                ImageContent(data="AAAA", mime_type="image/png"),
                FileContent(url="https://example.org/a.pdf", name="a.pdf", mime_type="application/pdf"),
            ),
            timestamp=1,
        ),
        AssistantMessage(
            content=(
                ThinkingContent(thinking="let me think", thinking_signature="seal", redacted=True),
                TextContent(text="hello"),
                ToolCall(
                    id="call_1",
                    name="weather",
                    arguments={"city": "Tokyo", "days": [1, 2.0, None, {"deep": True}]},
                    arguments_text='{"city": "Tokyo"}',
                    thought_signature="thought",
                ),
                NativeContent(
                    protocol="openai-responses",
                    block={"type": "image_generation_call"},
                    fallback=(ImageContent(data="AAAA"), TextContent(text="a picture"), FileContent(file_id="f")),
                ),
            ),
            protocol="anthropic-messages",
            provider="anthropic",
            model="claude-opus-4-8",
            response_model="claude-opus-4-8-20260101",
            response_id="resp_123",
            usage=Usage(
                input=10,
                output=20,
                cache_read=1,
                cache_write=2,
                reasoning=3,
                total_tokens=33,
                cost=UsageCost(input=0.1, output=0.2, cache_read=0.3, cache_write=0.4, total=1.0),
                extra={"stored": {"cacheWrite1h": 5}},
            ),
            stop_reason=StopReason.TOOL_USE,
            raw_stop_reason="tool_use",
            error_message="none",
            diagnostics=(Diagnostic(type="repaired", message="m", details={"toolCallId": "call_1"}, timestamp=1),),
            timestamp=1700000000000,
            extra={"anthropic-messages": {"container": None}},
        ),
        ToolResultMessage(
            tool_call_id="call_1",
            tool_name="weather",
            content=(TextContent(text="sunny"), ImageContent(data="AAAA", mime_type="image/jpeg")),
            is_error=True,
            details={"exit": 1},
            timestamp=2,
        ),
        SystemMessage(content=(TextContent(text="From now on in French."),)),
    ),
    tools=(
        ToolDefinition(name="weather", description="Look it up", parameters={"type": "object"}, strict=True),
        NativeTool(protocol="anthropic-messages", definition={"type": "web_search_20250305"}),
    ),
    summaries=(
        Summary(
            covers=2,
            text="It is sunny.",
            origin=Origin(protocol="openai-chat", provider="openai", model="gpt-5"),
            timestamp=3,
            extra={"stored": {"cost": 1}},
        ),
    ),
    extra={"stored": {"title": "x"}},
)
"""One of each: every role, every kind of content, every field with a value of its own."""


def nested(levels: int) -> object:
    """Lists in one another."""
    value: object = 0
    for _ in range(levels):
        value = [value]
    return value


def with_details(details: object) -> Context:
    """A conversation whose free-form value begins on the fourth level: document, messages, message, value."""
    return Context(messages=(ToolResultMessage(tool_call_id="a", content=(), details=details),))
