"""Rules of the VS Code language model API.

It is an API in a process, not a wire; the JSON is segue's own. The editor does not document what a model behind it
refuses, so the rules are those that the models it serves (Claude, GPT, Gemini) have in common.

Facts this file relies on:
- Parts, roles and options.                                               (@types/vscode 1.140.0, read 2026-11-15)
- There is no system role; instructions are a user message.                                            (the same)
- The host does not replay thinking.                                   (vscode #326597, oai-compatible-copilot #217)
"""

from __future__ import annotations

from typing import Final

from segue.models.dialect import Dialect
from segue.models.family import Family
from segue.models.rules import Rules

PROTOCOL: Final = "vscode-lm"
PROVIDER: Final = "vscode"

RULES: Final = Rules(
    # -- tools: the names that the models behind it accept
    tool_name_alphabet="a-zA-Z0-9_-",
    tool_name_max=64,
    schema_root_object=True,  # Claude and GPT behind it refuse a schema without `"type": "object"`
    tool_choices=frozenset({"auto", "required"}),  # 1.140.0: LanguageModelChatToolMode
    tool_error="text",  # 1.140.0: a result part has no flag
    # -- media: 1.140.0, LanguageModelDataPart in messages and results
    user_media=("image/*",),
    result_media=("image/*",),
    image_sources=frozenset({"data"}),
    file_sources=frozenset(),
    # -- turns
    last_assistant=False,  # newest Claude behind it: "The conversation must end with a user message"
    system_prompt=False,  # 1.140.0: the roles are User and Assistant
    system_messages="none",
    refused_text="blank",  # Claude behind it (opencode #31259, through Copilot)
    # -- reasoning
    reasoning_replay="none",  # 1.140.0: LanguageModelThinkingPart is a proposal
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

DIALECT: Final = Dialect(max_tokens_field="none", thinking_format="none", auth="none")

FAMILIES: Final[tuple[Family, ...]] = ()
