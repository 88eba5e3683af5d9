"""Files as segue's ancestors write them, with every field of their types, and what they are read as (2026-11-15)."""

from __future__ import annotations

from typing import Final

from segue.conversation.content import ImageContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Context, ToolDefinition
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

NO_COST: Final = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}
NO_USAGE: Final = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0, "cost": NO_COST}

GO: Final = {
    "systemPrompt": "you are a helpful assistant",
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "hi", "textSignature": "sig"},
                {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "let me think", "thinkingSignature": "ts", "redacted": True},
                {"type": "text", "text": "hello"},
                {
                    "type": "toolCall",
                    "id": "call_1",
                    "name": "weather",
                    "arguments": {"city": "Tokyo"},
                    "thoughtSignature": "thought",
                },
            ],
            "providerRequestId": "request_123",
            "protocol": "openai-completions",
            "provider": "openai",
            "model": "gpt-5",
            "responseModel": "gpt-5-2026-01-01",
            "responseId": "resp_123",
            "usage": {**NO_USAGE, "input": 10, "inputUnknown": True, "cost": {**NO_COST, "total": 0.3}},
            "stopReason": "toolUse",
            "diagnostics": [
                {
                    "type": "tool_arguments_recovered",
                    "timestamp": 1,
                    "message": "repaired",
                    "details": {"toolCallId": "call_1"},
                }
            ],
            "timestamp": 1700000000000,
        },
        {
            "role": "toolResult",
            "toolCallId": "call_1",
            "toolName": "weather",
            "content": [{"type": "text", "text": "sunny"}],
            "isError": False,
        },
    ],
    "tools": [{"name": "weather", "description": "Look up weather", "parameters": {"type": "object"}}],
}
"""Every field that the Go library writes."""

GO_READ: Final = Context(
    system_prompt="you are a helpful assistant",
    messages=(
        UserMessage(
            content=(TextContent(text="hi", text_signature="sig"), ImageContent(data="AAAA", mime_type="image/png"))
        ),
        AssistantMessage(
            content=(
                ThinkingContent(thinking="let me think", thinking_signature="ts", redacted=True),
                TextContent(text="hello"),
                ToolCall(id="call_1", name="weather", arguments={"city": "Tokyo"}, thought_signature="thought"),
            ),
            protocol="openai-chat",
            provider="openai",
            model="gpt-5",
            response_model="gpt-5-2026-01-01",
            response_id="resp_123",
            usage=Usage(input=10, cost=UsageCost(total=0.3), extra={"stored": {"inputUnknown": True}}),
            stop_reason=StopReason.TOOL_USE,
            diagnostics=(
                Diagnostic(
                    type="tool_arguments_recovered",
                    timestamp=1,
                    message="repaired",
                    details={"toolCallId": "call_1"},
                ),
            ),
            timestamp=1700000000000,
            extra={"stored": {"providerRequestId": "request_123"}},
        ),
        ToolResultMessage(tool_call_id="call_1", tool_name="weather", content=(TextContent(text="sunny"),)),
    ),
    tools=(ToolDefinition(name="weather", description="Look up weather", parameters={"type": "object"}),),
)

PI_ERROR: Final = {"name": "Error", "message": "socket hang up", "code": "ECONNRESET"}
PI_NESTED: Final = {"calls": [{"id": "n", "name": "read", "status": "ok"}], "complete": True}
PI: Final = {
    "messages": [
        {
            "role": "system",
            "content": "Be brief.",
            "sections": {"skills": "<skills/>"},
            "toolsAdded": [{"name": "bash", "description": "", "parameters": {}}],
            "timestamp": 0,
        },
        {"role": "user", "content": "hi", "timestamp": 1},
        {
            "role": "assistant",
            "content": [
                {
                    "type": "toolCall",
                    "id": "call_1|fc_1",
                    "name": "bash",
                    "arguments": {},
                    "namespace": "ns",
                    "argumentsError": "not JSON: {",
                }
            ],
            "api": "azure-openai-responses",
            "provider": "azure",
            "model": "gpt-5.2",
            "providerThinkingLevel": "high",
            "thinkingLevel": "xhigh",
            "usage": {**NO_USAGE, "cacheWrite1h": 5, "reasoning": 7, "cost": {**NO_COST, "totalFromProvider": True}},
            "stopReason": "deferred",
            "deferred": {"provider": "azure", "modelId": "gpt-5.2", "api": "azure-openai-responses", "id": "r1"},
            "diagnostics": [{"type": "retry", "timestamp": 2, "error": PI_ERROR, "details": {"attempt": 1}}],
            "endTurn": True,
            "timestamp": 2,
            "durationMs": 300,
        },
        {
            "role": "toolResult",
            "toolCallId": "call_1|fc_1",
            "toolName": "bash",
            "content": [{"type": "text", "text": "ok"}],
            "details": {"exitCode": 0},
            "usage": NO_USAGE,
            "nestedCalls": PI_NESTED,
            "isError": True,
            "timestamp": 3,
            "durationMs": 12,
        },
        {"role": "system", "content": [{"type": "text", "text": "Now in French."}], "timestamp": 4},
    ],
    "tools": [{"name": "bash", "description": "Run", "parameters": {"type": "object"}, "constrainedSampling": False}],
}
"""Every field that pi 1.5.0 declares, and none of ours."""

PI_READ: Final = Context(
    system_prompt="Be brief.",
    messages=(
        UserMessage.of("hi", timestamp=1),
        AssistantMessage(
            content=(
                ToolCall(
                    id="call_1|fc_1",
                    name="bash",
                    extra={"stored": {"namespace": "ns", "argumentsError": "not JSON: {"}},
                ),
            ),
            protocol="openai-responses",
            provider="azure",
            model="gpt-5.2",
            usage=Usage(
                reasoning=7,
                cost=UsageCost(extra={"stored": {"totalFromProvider": True}}),
                extra={"stored": {"cacheWrite1h": 5}},
            ),
            stop_reason=StopReason.ERROR,
            raw_stop_reason="deferred",
            diagnostics=(
                Diagnostic(type="retry", timestamp=2, details={"attempt": 1}, extra={"stored": {"error": PI_ERROR}}),
            ),
            timestamp=2,
            extra={
                "stored": {
                    "providerThinkingLevel": "high",
                    "thinkingLevel": "xhigh",
                    "deferred": {
                        "provider": "azure",
                        "modelId": "gpt-5.2",
                        "api": "azure-openai-responses",
                        "id": "r1",
                    },
                    "endTurn": True,
                    "durationMs": 300,
                }
            },
        ),
        ToolResultMessage(
            tool_call_id="call_1|fc_1",
            tool_name="bash",
            content=(TextContent(text="ok"),),
            is_error=True,
            details={"exitCode": 0},
            timestamp=3,
            extra={"stored": {"usage": NO_USAGE, "nestedCalls": PI_NESTED, "durationMs": 12}},
        ),
        SystemMessage(content=(TextContent(text="Now in French."),), extra={"stored": {"timestamp": 4}}),
    ),
    tools=(
        ToolDefinition(
            name="bash",
            description="Run",
            parameters={"type": "object"},
            extra={"stored": {"constrainedSampling": False}},
        ),
    ),
    extra={
        "stored": {
            "sections": {"skills": "<skills/>"},
            "toolsAdded": [{"name": "bash", "description": "", "parameters": {}}],
            "timestamp": 0,
        }
    },
)
