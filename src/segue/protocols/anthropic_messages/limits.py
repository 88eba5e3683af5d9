"""Limits of single values in the Messages API; `kit.limits` explains the rows (read 2026-11-17)."""

from __future__ import annotations

from typing import Final

from segue.models.model_ids import CLAUDE_3, CLAUDE_3_AND_3_5
from segue.protocols.anthropic_messages.rules import CLAUDE_PROVIDERS
from segue.protocols.kit.limits import Limit, Limits, rows_of

_SEARCH: Final = "Anthropic documentation: web search tool, domain filtering"

_NOT_OF_MODEL: Final = "\"'claude-opus-4-7' does not support tool types: computer_20241022.\" (Anthropic documentation)"
_FROM_3_7: Final = r"claude-(?:3-7|(?:opus|sonnet|haiku|fable|mythos)-[4-9])"
_FROM_4: Final = r"claude-(?:opus|sonnet|haiku|fable|mythos)-[4-9]"
_TOOL_MODELS: Final = (
    ("computer_20241022", _FROM_3_7),
    ("bash_20241022", _FROM_3_7),
    ("text_editor_20241022", _FROM_3_7),
    ("text_editor_20250124", _FROM_4),
    ("computer_20250124", CLAUDE_3_AND_3_5),
    ("bash_20250124", CLAUDE_3_AND_3_5),
    ("text_editor_20250429", "claude-3-"),
    ("text_editor_20250728", "claude-3-"),
    ("computer_20251124", r"claude-(?:3-|(?:sonnet|haiku)-4-5|(?:opus|sonnet)-4(?:-[01])?(?:-\d{8}|$))"),
    ("web_search_20250305", CLAUDE_3),
    ("web_fetch_20250910", CLAUDE_3),
    ("code_execution_20250522", CLAUDE_3),
    ("code_execution_20250825", CLAUDE_3),
)
"""Types of tools -> the models that refuse them. (Anthropic documentation: the supported models of each tool)"""

LIMITS: Final = Limits(
    (
        # -- messages
        *rows_of(
            CLAUDE_PROVIDERS,
            Limit("messages", "anthropic 2.8.0: a limit of 100,000 messages", most=100_000),
            Limit(
                "messages.*.content.*.source.data",
                '"image cannot be empty" (Anthropic API)',
                least=1,
                when=('.type="base64"',),
                advice="send the data",
            ),
            Limit(
                "messages.*.content.*.content.*.tool_name",
                "\"Tool reference 'x' not found in available tools\" (Anthropic documentation: tool search)",
                among="tools.*.name",
                when=('.type="tool_reference"',),
                providers=("anthropic",),
            ),
            # -- settings
            Limit("top_k", "anthropic 2.8.0; Anthropic documentation: messages, from 0 on", least=0),
            Limit(
                "context_management.edits.*.type",
                '"`clear_thinking_20251015` strategy requires `thinking` to be enabled or adaptive" (Anthropic API)',
                equals="clear_thinking_20251015",
                needs=('thinking.type="enabled"', 'thinking.type="adaptive"', 'thinking.type="between_tools"'),
                models=r"claude-(?:3|opus-4(?:-[0-8])?|sonnet-4|haiku-4)",
            ),
            Limit(
                "container.skills",
                "Anthropic documentation: skills in the API, at most 8, with the code execution tool",
                most=8,
                needs=('tools.*.name="code_execution"',),
                providers=("anthropic",),
            ),
            Limit(
                "output_config.format",
                "Anthropic documentation: structured outputs, incompatible with citations",
                excludes=("messages.*.content.*.citations.enabled=true",),
            ),
        ),
        Limit(
            "speed",
            "Anthropic documentation: fast mode, Opus from 4.6 on",
            refused="remove it",
            equals="fast",
            models=r"claude-(?:3-|sonnet|haiku|opus-4(?:-[0-5])?(?:-\d{8}|$))",
            providers=("anthropic",),
        ),
        Limit(
            "diagnostics",
            '"diagnostics: Extra inputs are not permitted" (Vertex: claude-code #82539, 2026-07-30)',
            refused="remove it",
            providers=("google-vertex",),
        ),
        # -- tools
        Limit(
            "tools.*.eager_input_streaming",
            '"tools.0.custom.eager_input_streaming: Extra inputs are not permitted" (Copilot:'
            " yuegongzi/copilot-api #11, 2026-03-24)",
            refused="remove it",
            equals=True,
            providers=("github-copilot",),
        ),
        *(
            Limit(
                "tools.*.type",
                _NOT_OF_MODEL,
                refused="use another version",
                equals=kind,
                models=models,
                providers=CLAUDE_PROVIDERS,
            )
            for kind, models in _TOOL_MODELS
        ),
        *rows_of(
            ("anthropic",),
            *(
                Limit(f"tools.*.{key}", _SEARCH, excludes=(f".{other}",))
                for key, other in (("allowed_domains", "blocked_domains"),)
            ),
            *(
                Limit(f"tools.*.{key}.*", _SEARCH, pattern=r"(?!https?://)\S+", advice="remove the scheme")
                for key in ("allowed_domains", "blocked_domains")
            ),
            Limit("tools.*.max_uses", "anthropic 2.8.0: a positive number of uses", least=1),
            Limit(
                "mcp_servers.*.url",
                "Anthropic documentation: MCP connector, the address must begin with https://",
                pattern=r"(?i:https://).+",
                advice="use an https address",
            ),
            Limit("tools.*.mcp_server_name", "anthropic 2.8.0: has to match a server", among="mcp_servers.*.name"),
        ),
    )
)
