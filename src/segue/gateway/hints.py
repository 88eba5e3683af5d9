"""Which conversation a request belongs to, by what clients send, as data.

Facts this file relies on (clients of 2026-11; each was run):
- Claude Code sends its session in a header; sub-agents share it and have an id of their own.
- codex sends its thread in a header and in `prompt_cache_key`; opencode and pi send a session in headers.
- gemini-cli, qwen-code and cline send nothing: there the first message of the user stands for the conversation.
- The title request of opencode has the session of the conversation, so the hint alone is no key for states.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from segue.conversation.context import Prompt
from segue.envelope.keys import digest_message

_HEADERS: Final = (
    "x-claude-code-session-id",
    "thread-id",
    "session-id",
    "session_id",
    "x-session-id",
    "x-session-affinity",
    "x-client-request-id",
)
_AGENT_HEADER: Final = "x-claude-code-agent-id"
_AGENTS: Final[tuple[tuple[str, str], ...]] = (
    ("claude-cli", "claude-code"),
    ("claude-code", "claude-code"),
    ("codex", "codex"),
    ("geminicli", "gemini-cli"),
    ("opencode", "opencode"),
    ("pi/", "pi"),
    ("qwencode", "qwen-code"),
    ("cline", "cline"),
    ("anthropic/", "anthropic-sdk"),
    ("openai/", "openai-sdk"),
    ("google-genai", "google-genai"),
    ("ollama", "ollama"),
)
"""The beginning of a user agent, in lower case, and the name of the client."""


def find_conversation(headers: Mapping[str, str], prompt: Prompt, tenant: str) -> str:
    """Give the name of a conversation: a digest, so that it can be shown and stored."""
    given = next((value for name in _HEADERS if (value := headers.get(name))), None) or prompt.options.session_id
    if given is not None:
        parts = [given, headers.get(_AGENT_HEADER, "")]
        return sha256("\x00".join([tenant, *parts]).encode("utf-8", "replace")).hexdigest()[:16]
    first = next((message for message in prompt.context.messages if message.role == "user"), None)
    known = b"" if first is None else digest_message(first)
    return sha256(tenant.encode("utf-8", "replace") + known).hexdigest()[:16]


def find_client(headers: Mapping[str, str]) -> str:
    """Give the name of the client by its user agent."""
    agent = headers.get("user-agent", "").lower()
    return next((name for beginning, name in _AGENTS if beginning in agent), agent.partition("/")[0][:40] or "unknown")
