"""By what each format is recognised: one table, so that no form is taken for another.

Facts this file rests on:
- Forms of formats that segue reads: their samples, and the sources that each format names.     (seen, 2026-11-15)
- Forms of programs that segue does not read: their makers' sources, or files of other people.   (read, 2026-11-16)
- LiteLLM's messages are those of Chat, the messages of Strands those of Converse. Such data is recognised as that
  request, unless it has a field that only the framework writes. The items of OpenAI's Agents SDK are those of
  Responses; a list of them, without a request around it, is one of the SDK.

The table is apart from the records of formats so that recognising data loads no reader. A format of a package has its
forms in its record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.histories.kit.evidence import ALL, Form

_MESSAGES: Final = ("messages",)
_AUTOGEN: Final = (
    "type=SystemMessage|UserMessage|AssistantMessage|FunctionExecutionResultMessage|TextMessage|MultiModalMessage"
    "|StopMessage|HandoffMessage|ThoughtEvent|ToolCallRequestEvent|ToolCallExecutionEvent|ToolCallSummaryMessage"
    "|StructuredMessage|MemoryQueryEvent|UserInputRequestedEvent|ModelClientStreamingChunkEvent|SelectSpeakerEvent"
    "|SelectorEvent|CodeGenerationEvent|CodeExecutionEvent"
)
_LANGCHAIN: Final = (
    "type=human|ai|system|tool|function|chat|remove|HumanMessageChunk|AIMessageChunk|SystemMessageChunk"
    "|ToolMessageChunk|FunctionMessageChunk|ChatMessageChunk"
)
_TASK: Final = "*api_conversation_history.json"

FORMS: Final[Mapping[str, tuple[Form, ...]]] = {
    "claude-code": (
        Form(where="lines", needs=("parentUuid", "uuid", "message.content")),
        Form(
            where="lines",
            needs=("sessionId", "type", "!projectHash", "!message.parts", "!payload", "!messages"),
            certain=False,
        ),
    ),
    "codex": (
        Form(where="lines", needs=("payload", "type=session_meta|response_item|turn_context|event_msg|compacted")),
        Form(where="lines", first=("instructions", "id", "timestamp", "!type")),
        Form(where="text", name="*rollout-*.jsonl.zst"),
    ),
    "gemini-cli": (
        Form(where="lines", first=("projectHash", "sessionId")),
        Form(where="lines", needs=("$set",)),
        Form(where="lines", needs=("$rewindTo",)),
        Form(where="object", needs=("projectHash", "sessionId", "messages:list")),
    ),
    "opencode": (
        Form(where="object", needs=("info.id^ses", "messages:list")),
        Form(where="object", needs=("info", "messages[].info.sessionID")),
        Form(where="database", needs=("part", "message", "session")),
    ),
    "pi": (
        Form(where="lines", first=("type=session", "cwd", "id")),
        Form(where="lines", first=("!type=session_start",), needs=("parentId", "type=message", "message.role")),
        Form(where="lines", needs=("parentId", "type=compaction|model_change|context_edit|branch_summary")),
    ),
    "crush": (Form(where="database", needs=("messages.parts", "sessions", "files")),),
    "qwen-code": (Form(where="lines", needs=("parentUuid", "uuid", "message.parts"), over=("claude-code",)),),
    "swe-agent": (Form(where="object", needs=("trajectory:list", "history:list")),),
    "copilot-cli": (
        Form(where="lines", first=("type=session.start", "data")),
        Form(
            where="lines", needs=("data", "type=user.message|assistant.message|tool.execution_complete"), over=("pi",)
        ),
    ),
    "cline": (
        Form(where="object", needs=("sessionId", "agent", "messages:list")),
        Form(
            where="items",
            needs=("role",),
            name="*saoudrizwan.claude-dev*api_conversation_history.json",
            over=("roo-code",),
        ),
    ),
    "roo-code": (
        Form(where="items", needs=("role",), name=_TASK),
        Form(where="items", needs=("ts", "!say"), own=("condenseParent", "condenseId", "truncationParent", "role")),
    ),
    "continue": (
        Form(where="object", needs=("history[].message.role", "sessionId")),
        Form(where="object", needs=("workspaceDirectory", "history:list", "sessionId")),
    ),
    "aider": (
        Form(where="text", needs=("# aider chat started at",)),
        Form(where="text", name="*aider.chat.history.md"),
    ),
    "goose": (
        Form(where="object", needs=("working_dir", "conversation:list")),
        Form(where="lines", first=("working_dir", "!role", "!conversation")),
        Form(where="database", needs=("messages.content_json", "sessions")),
    ),
    "llm": (
        Form(where="database", needs=("turns", "threads", "messages", "parts")),
        Form(where="database", needs=("responses", "conversations")),
    ),
    "chatgpt": (
        Form(where="items", needs=("mapping:object",)),
        Form(where="object", needs=("mapping:object",), own=("current_node", "conversation_id", "title")),
    ),
    "claude-ai": (
        Form(where="items", needs=("chat_messages:list",)),
        Form(where="object", needs=("chat_messages:list",)),
    ),
    "open-webui": (
        Form(where="items", needs=("chat.history.messages:object",)),
        Form(where="object", needs=("chat.history.messages:object",)),
        Form(where="items", needs=("history.messages:object",)),
        Form(where="object", needs=("history.messages:object",)),
    ),
    "langchain": (
        Form(where="items", needs=("lc:number", "kwargs"), under=_MESSAGES),
        Form(where="items", needs=("data:object", _LANGCHAIN), under=_MESSAGES),
        Form(where="object", needs=("values.messages[].lc",)),
        Form(where="object", needs=("values.messages[].data",)),
        Form(where="database", needs=("checkpoints", "writes")),
        Form(where="objects", needs=("langchain_core",)),
    ),
    "pydantic-ai": (
        Form(where="items", needs=("kind=request|response", "parts:list")),
        Form(where="objects", needs=("pydantic_ai",)),
    ),
    "openai-agents": (
        Form(
            where="items",
            needs=("!tool_calls", "!parts", "!ts"),
            own=(
                "call_id",
                "encrypted_content",
                "summary:list",
                "content[].type=input_text|input_image|output_text",
            ),
        ),
        Form(where="database", needs=("agent_messages", "agent_sessions")),
        Form(where="objects", needs=("agents",)),
    ),
    "litellm": (
        Form(where="items", needs=("role",), own=("thinking_blocks", "provider_specific_fields")),
        Form(where="objects", needs=("litellm",)),
    ),
    "hf-messages": (
        Form(
            where="object",
            needs=("messages[].role", "!model", "!options", "!stream", "!keep_alive"),
            own=(
                "messages[].thinking:text",
                "messages[].tool_calls[].function.arguments:object",
                "messages[].role=ipython",
            ),
        ),
    ),
    "sharegpt": (
        Form(where="object", needs=("conversations[].from", "conversations[].value")),
        Form(where="items", needs=("conversations[].from", "conversations[].value")),
    ),
    "google-adk": (
        Form(where="object", needs=("appName", "userId")),
        Form(where="object", needs=("app_name", "user_id")),
        Form(where="items", needs=("author",), own=("invocationId", "invocation_id", "content.parts")),
        Form(where="database", needs=("app_states", "sessions", "events")),
        Form(where="objects", needs=("google.adk",)),
    ),
    "strands": (
        Form(where="items", needs=("message_id", "message.role"), under=_MESSAGES),
        Form(
            where="items",
            needs=("role", "content:list"),
            own=("tracking_id", "content[].image.source.bytes.__bytes_encoded__"),
        ),
        Form(where="object", needs=("message_id", "message.role")),
        Form(where="object", needs=("session_type", "session_id")),
        Form(where="object", needs=("conversation_manager_state", "agent_id")),
        Form(where="object", needs=("agent.conversation_manager_state", "session_id")),
        Form(where="objects", needs=("strands",)),
    ),
    "inspect-ai": (
        Form(where="object", needs=("eval:object", "status")),
        Form(where="object", needs=("attachments", "messages", "epoch")),
        Form(
            where="items",
            needs=("role=system|user|assistant|tool",),
            own=("source=generate|input", "function:text", "tool_calls[].function:text"),
        ),
        Form(where="items", needs=("role=system|user|assistant|tool", "id"), own=("content[].type=reasoning",)),
        Form(where="objects", needs=("inspect_ai",)),
    ),
    "vercel-ui": (
        Form(
            where="items",
            needs=("role=system|user|assistant", "parts:list", "!parts[].content"),
            own=("parts[].type",),
            under=_MESSAGES,
        ),
    ),
    "llama-index": (
        Form(where="items", needs=("blocks:list", "role")),
        Form(where="object", needs=("store.*[].blocks",)),
        Form(where="objects", needs=("llama_index",)),
    ),
    "ag-ui": (
        Form(
            where="items",
            needs=("id", "role=system|developer|user|assistant|tool|reasoning|activity", "!parts"),
            own=("toolCalls", "toolCallId", "encryptedValue", "role=reasoning|activity"),
            under=_MESSAGES,
        ),
        Form(where="objects", needs=("ag_ui",)),
    ),
    "haystack": (
        Form(where="items", needs=("meta", "role", "content:list", "!content[].type"), under=_MESSAGES),
        Form(where="objects", needs=("haystack",)),
    ),
    "agent-framework": (
        Form(where="items", needs=("contents:list", "role"), under=_MESSAGES),
        Form(where="objects", needs=("agent_framework",)),
    ),
    "autogen": (
        Form(where="items", needs=(_AUTOGEN,), under=_MESSAGES),
        Form(where="object", needs=("llm_context.messages",)),
        Form(where="object", needs=("agent_states:object",)),
        Form(where="objects", needs=("autogen_core", "autogen_agentchat")),
    ),
    "ag2": (
        Form(where="items", needs=("__event__^ag2.",), under=_MESSAGES),
        Form(where="objects", needs=("ag2",)),
    ),
    "mcp-sampling": (
        Form(where="object", needs=("method=sampling/createMessage",)),
        Form(where="object", needs=("maxTokens", "messages:list")),
        Form(where="object", needs=("stopReason", "role=user|assistant", "content")),
        Form(
            where="items",
            needs=("role=user|assistant", "content", "!content[].$", "!stopReason", "!timestamp", "!api"),
            own=("content.mimeType", "content.toolUseId", "content[].mimeType", "content[].toolUseId"),
            under=_MESSAGES,
        ),
        Form(where="objects", needs=("mcp", "mcp_types")),
    ),
    "opentelemetry": (
        Form(
            where="items",
            needs=("role", "parts:list", "!parts[].text"),
            own=("parts[].content", "parts[].type=tool_call|tool_call_response|blob|uri|file"),
            under=_MESSAGES,
        ),
    ),
    "atif": (
        Form(where="object", needs=("schema_version^ATIF",)),
        Form(where="objects", needs=("atif",)),
    ),
}
"""The forms of segue's own formats, by name. Without forms, a format is read only if it is named."""

UNREADABLE: Final[Mapping[str, tuple[Form, ...]]] = {
    "a database of Hermes": (Form(where="database", needs=("messages.tool_calls", "messages.active", "sessions")),),
    "a database of Cursor": (
        Form(where="database", needs=("cursorDiskKV",)),
        Form(where="database", needs=("blobs", "meta")),
    ),
    "a database of VS Code or Cursor": (Form(where="database", needs=("ItemTable", "!cursorDiskKV")),),
    "a database of Zed": (Form(where="database", needs=("threads.data_type", "threads.data")),),
    "a database of Kiro": (
        Form(where="database", needs=("conversations_v2",)),
        Form(where="database", needs=("conversations.key", "conversations.value", "!conversations_v2")),
    ),
    "a chat of VS Code": (
        Form(where="lines", first=("v.requests", "kind:number")),
        Form(where="object", needs=("requests:list", "sessionId", "version")),
    ),
    "a session of Droid": (Form(where="lines", first=("type=session_start", "id")),),
    "a session of OpenClaw": (
        Form(
            where="lines",
            first=("type=session", "cwd"),
            own=("customType^openclaw", "customType=model-snapshot"),
            over=("pi",),
        ),
    ),
    "a transcript of Cursor": (
        Form(where="lines", needs=("message.content", "role", "!uuid", "!type"), first=("message", "role")),
    ),
    "a session of Kiro": (Form(where="lines", needs=("kind=Prompt|AssistantMessage|ToolResults", "data")),),
    "a session of Hermes": (
        Form(where="lines", first=("role=session_meta",)),
        Form(where="object", needs=("session_start", "platform", "messages")),
    ),
    "a session of Kimi Code": (Form(where="lines", first=("protocol_version", "type=metadata")),),
    "messages of Mastra": (Form(where="lines", needs=("resourceId", "thread_id", "role"), over=("segue session",)),),
    "a thread of Amp": (Form(where="object", needs=("v", "id^T-", "messages")),),
    "a trajectory of mini-SWE-agent": (Form(where="object", needs=("trajectory_format^mini-swe-agent",)),),
    "results of tau-bench": (Form(where="items", needs=("traj:list", "reward")),),
    "a trajectory of OpenHands": (
        Form(where="items", needs=("source",), own=("action", "observation")),
        Form(where="object", needs=("kind", "source", "timestamp", "id", "!messages")),
        Form(where="object", needs=("execution_status", "agent", "workspace")),
    ),
    "an agent of Letta": (Form(where="object", needs=("blocks:list", "agents:list", "tools")),),
    "a session of Agno": (Form(where="object", needs=("runs[].messages", "session_id")),),
    "a chat history of Semantic Kernel": (Form(where="items", needs=("items:list", "content_type"), under=_MESSAGES),),
    "model messages of the Vercel AI SDK": (
        Form(where="items", needs=("role", "content"), own=("content[].type=tool-call|tool-result",), under=_MESSAGES),
    ),
    "messages of LangChain that were converted to those of OpenAI": (
        Form(
            where="items",
            needs=("role", "content", "!thinking_blocks", "!id"),
            own=(
                "tool_calls&content[].signature",
                "tool_calls&content[].type=redacted_thinking|reasoning|function_call|tool_call",
            ),
            under=_MESSAGES,
        ),
    ),
    "steps of smolagents": (Form(where="items", needs=(), own=("model_input_messages",)),),
    "output of CrewAI": (Form(where="object", needs=("tasks_output:list", "raw")),),
    "a history of DSPy": (Form(where="items", needs=("outputs", "messages", "kwargs")),),
    "an export of SpecStory": (Form(where="text", needs=("<!-- Generated by SpecStory",)),),
    "an export of Cursor": (Form(where="text", needs=("_Exported on", "from Cursor")),),
}
"""Programs whose data segue does not read yet, so that it is not taken for that of another one."""

_ONE_MESSAGE: Final = ("stopReason", "api", "role=toolResult", "content[].type=toolCall", "timestamp:number")
"""Fields of segue's messages, and of the libraries that its format comes from, that no protocol has."""

STORED: Final = (
    Form(where="object", needs=("format^segue/",), over=(ALL,)),
    Form(where="object", needs=("systemPrompt", "!maxTokens", "!method", "!params", "!model")),
    Form(where="object", needs=("messages:list",), own=tuple(f"messages[].{sign}" for sign in _ONE_MESSAGE)),
)
"""A stored conversation of segue, in one value."""
SESSION: Final = (
    Form(where="lines", first=("format^segue/", "!messages"), over=(ALL,)),
    Form(where="lines", first=("role=user|assistant|system|toolResult", "!messages", "!message")),
)
"""A session file of segue: a message on each line."""
CHAT_LINES: Final = (
    Form(
        where="lines",
        first=("role", "content", "!messages"),
        own=("tool_calls", "tool_call_id", "timestamp:text", "role=tool|developer|function"),
        over=("segue session",),
    ),
)
"""Messages of a protocol, one on each line."""
ROWS: Final = (
    *(
        Form(where="object", needs=(answer, question, "!messages", "!contents", "!input:list"))
        for question, answer in (
            ("prompt", "completion"),
            ("prompt", "response"),
            ("instruction", "output"),
            ("instruction", "response"),
            ("question", "answer"),
            ("chosen", "rejected"),
        )
    ),
    *(
        Form(where="object", needs=(f"{column}:list", "!messages", "!working_dir", "!conversations[].from"))
        for column in ("conversations", "conversation", "dialogue", "dialog", "chat")
    ),
    Form(where="object", needs=("prompt", "!messages", "!input", "!contents", "!model"), certain=False),
)
"""Rows of data sets in which a question and its answer stand in columns, or turns in a column of another name."""
EXCHANGE: Final = (Form(where="object", needs=("response", "request:object")),)
"""A request and its reply."""
