"""The registry of formats.

To add a format to segue, add one folder and one line of `_FOLDERS`. A package adds a format with an entry point of the
group `segue.formats`, a program with `register_format`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from segue.errors import UnknownFormat
from segue.foundation.registry import Registry
from segue.histories.kit.format import Format

_FOLDERS: Final[Mapping[str, str]] = {
    "claude-code": "segue.histories.claude_code",
    "codex": "segue.histories.codex",
    "gemini-cli": "segue.histories.gemini_cli",
    "opencode": "segue.histories.opencode",
    "pi": "segue.histories.pi",
    "copilot-cli": "segue.histories.copilot_cli",
    "qwen-code": "segue.histories.qwen_code",
    "droid": "segue.histories.droid",
    "cline": "segue.histories.cline",
    "roo-code": "segue.histories.roo_code",
    "continue": "segue.histories.continue_",
    "aider": "segue.histories.aider",
    "goose": "segue.histories.goose",
    "crush": "segue.histories.crush",
    "vscode-copilot-chat": "segue.histories.vscode_chat",
    "cursor": "segue.histories.cursor",
    "specstory": "segue.histories.specstory",
    "openhands": "segue.histories.openhands",
    "kimi-code": "segue.histories.kimi_code",
    "kimi-cli": "segue.histories.kimi_cli",
    "amp": "segue.histories.amp",
    "zed": "segue.histories.zed",
    "kiro": "segue.histories.kiro",
    "mistral-vibe": "segue.histories.mistral_vibe",
    "grok-build": "segue.histories.grok_build",
    "iflow": "segue.histories.iflow",
    "hermes": "segue.histories.hermes",
    "cursor-cli": "segue.histories.cursor_cli",
    "antigravity": "segue.histories.antigravity",
    "llm": "segue.histories.llm",
    "chatgpt": "segue.histories.chatgpt",
    "claude-ai": "segue.histories.claude_ai",
    "open-webui": "segue.histories.open_webui",
    "swe-agent": "segue.histories.swe_agent",
    "cline-ui": "segue.histories.cline_ui",
    "agent-output": "segue.histories.agent_output",
    "acp-log": "segue.histories.acp_log",
    "managed-agents": "segue.histories.managed_agents",
    "copilot-interchange": "segue.histories.copilot_interchange",
    "agent-trail": "segue.histories.agent_trail",
    "entire": "segue.histories.entire",
    "langfuse": "segue.histories.langfuse",
    "langsmith": "segue.histories.langsmith",
    "phoenix": "segue.histories.phoenix",
    "adk-evalset": "segue.histories.adk_evalset",
    "smolagents": "segue.histories.smolagents",
    "dspy": "segue.histories.dspy",
    "langchain": "segue.histories.langchain",
    "pydantic-ai": "segue.histories.pydantic_ai",
    "openai-agents": "segue.histories.openai_agents",
    "litellm": "segue.histories.litellm",
    "hf-messages": "segue.histories.hf_messages",
    "sharegpt": "segue.histories.sharegpt",
    "google-adk": "segue.histories.google_adk",
    "strands": "segue.histories.strands",
    "inspect-ai": "segue.histories.inspect_ai",
    "vercel-ui": "segue.histories.vercel_ui",
    "vercel-messages": "segue.histories.vercel_messages",
    "langchain-openai": "segue.histories.langchain_openai",
    "chat-replies": "segue.histories.chat_replies",
    "llama-index": "segue.histories.llama_index",
    "ag-ui": "segue.histories.ag_ui",
    "haystack": "segue.histories.haystack",
    "agent-framework": "segue.histories.agent_framework",
    "semantic-kernel": "segue.histories.semantic_kernel",
    "autogen": "segue.histories.autogen",
    "ag2": "segue.histories.ag2",
    "mcp-sampling": "segue.histories.mcp_sampling",
    "opentelemetry": "segue.histories.opentelemetry",
    "atif": "segue.histories.atif",
}
"""Segue's own formats, in the order of tables and tests; each folder is imported when its record is first needed."""

_WITHOUT_SESSIONS: Final = frozenset(
    {"swe-agent", "cline-ui", "agent-output", "acp-log", "managed-agents", "copilot-interchange",
     "adk-evalset", "smolagents", "dspy", "agent-trail", "entire", "langfuse", "langsmith", "phoenix",
      "vercel-messages", "langchain-openai", "chat-replies",
     "chatgpt", "claude-ai", "open-webui", "langchain", "pydantic-ai", "openai-agents",
     "litellm",
     "hf-messages", "sharegpt", "google-adk", "inspect-ai", "vercel-ui", "llama-index", "ag-ui", "haystack",
     "agent-framework", "semantic-kernel", "autogen", "ag2", "mcp-sampling", "opentelemetry", "atif"}
)  # fmt: skip
"""Formats that have no place on a machine where sessions are: a list of sessions does not load them."""

FORMATS: Final = Registry("format", Format, _FOLDERS, error=UnknownFormat, title=lambda record: record.title)
"""All formats by name, in the order of tables and tests."""


def register_format(record: Format) -> None:
    """Register a format under its name. Registering an equal record again changes nothing.

    Raises:
        SettingsError: another format has this name already, or the value is not a record of a format.
    """
    FORMATS.register(record)


def format_names() -> tuple[str, ...]:
    """List all formats by name: segue's own, registered ones, those of installed packages. Loads none of them."""
    return FORMATS.names()


def find_format(name: str) -> Format | None:
    """Find a format by name; None if there is none.

    Raises:
        UnknownFormat: an installed package declares the name and cannot be loaded; names the package.
    """
    return FORMATS.find(name)


def get_format(name: str) -> Format:
    """Get a format by name. Its folder, or the package that declares it, is imported on first use.

    Raises:
        UnknownFormat: no format has this name (the error suggests similar names), or it cannot be loaded.
    """
    return FORMATS.get_record(name)


def each_format(leave_out: Collection[str] = ()) -> Iterator[Format]:
    """Return an iterator over every format in the order of `format_names`; each is loaded when it is asked for.

    A format of a package that cannot be loaded causes a warning and is left out.
    """
    return FORMATS.each(leave_out)


def formats_with_sessions() -> list[Format]:
    """Load the formats that have a place on a machine where sessions are, in the order of `format_names`."""
    return [record for record in each_format(leave_out=_WITHOUT_SESSIONS) if record.place is not None]


def all_formats() -> list[Format]:
    """Load every format, in the order of `format_names`."""
    return list(each_format())
