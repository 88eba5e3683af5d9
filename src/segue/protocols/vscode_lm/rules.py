"""Rules of the VS Code language model API.

It is an API in a process, not a wire; the JSON is segue's own. The editor does not document what a model that it serves
refuses, so the rules are those that the models it serves (Claude, GPT, Gemini) have in common.

Facts:
- Parts, roles and options.                                               (@types/vscode 1.140.0, read 2026-11-15)
- There is no system role; instructions are a user message.                                            (the same)
- The host does not replay thinking.                                   (vscode #326597, oai-compatible-copilot #217)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.models.dialect import Dialect
from segue.models.family import Family
from segue.models.rules import Rules

PROTOCOL: Final = "vscode-lm"
PROVIDER: Final = "vscode"
READ: Final = "2026-11-15"

RULES: Final = Rules(
    # -- tools: the names that the models that it serves accept
    tool_name_alphabet="a-zA-Z0-9_-",
    tool_name_max=64,
    schema_root_object=True,
    tool_choices=frozenset({"auto", "required"}),
    tool_error="text",
    # -- media: 1.140.0, LanguageModelDataPart in messages and results
    user_media=("image/*",),
    result_media=("image/*",),
    image_sources=frozenset({"data"}),
    file_sources=frozenset(),
    # -- turns
    last_assistant=False,
    system_prompt=False,
    system_messages="none",
    refused_text="blank",
    # -- reasoning
    reasoning_replay="none",
    # -- options: 1.140.0, tools and their mode; `modelOptions` depends on the model
    refused_options=frozenset(
        {
            "max_tokens",
            "temperature",
            "top_p",
            "stop",
            "seed",
            "thinking",
            "parallel_tool_calls",
            "output_schema",
            "cache_retention",
            "session_id",
            "user_id",
            "stream",
        }
    ),
)

SOURCES: Final[Mapping[str, str]] = {
    "tool_name_alphabet": "what GPT accepts through the Copilot API (openai 3.49.0)",
    "tool_name_max": "what GPT accepts through the Copilot API (openai 3.49.0)",
    "schema_root_object": "Claude and GPT refuse a schema without it (Copilot API)",
    "tool_choices": "VS Code API 1.140.0: LanguageModelChatToolMode",
    "tool_error": "VS Code API 1.140.0: a result part has no flag",
    "user_media": "VS Code API 1.140.0, LanguageModelDataPart in messages and results",
    "result_media": "VS Code API 1.140.0, LanguageModelDataPart in messages and results",
    "image_sources": "VS Code API 1.140.0, LanguageModelDataPart in messages and results",
    "file_sources": "VS Code API 1.140.0, LanguageModelDataPart in messages and results",
    "last_assistant": '"The conversation must end with a user message" (Claude through the Copilot API)',
    "system_prompt": "VS Code API 1.140.0: the roles are User and Assistant",
    "system_messages": "VS Code API 1.140.0: the roles are User and Assistant",
    "refused_text": "Claude behind it (opencode #31259, through Copilot)",
    "reasoning_replay": "VS Code API 1.140.0: LanguageModelThinkingPart is a proposal",
    "refused_options": "VS Code API 1.140.0, tools and their mode; `modelOptions` depends on the model",
}
"""Who says so, for each field of `RULES`; its rows have their own sources. All were read on `READ`."""

DIALECT: Final = Dialect(max_tokens_field="none", thinking_format="none", auth="none")

FAMILIES: Final[tuple[Family, ...]] = ()
