"""Rules of plain text: roles and strings.

The format is segue's own, for targets that support nothing else: a role and a string. Calls and results become text,
media become placeholders, options are not supported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.models.dialect import Dialect
from segue.models.family import Family
from segue.models.rules import Rules

PROTOCOL: Final = "plain-text"
PROVIDER: Final = "plain-text"
READ: Final = "2026-11-15"

RULES: Final = Rules(
    tools=False,
    tool_choices=frozenset(),
    tool_error="text",
    user_media=(),
    result_media=(),
    image_sources=frozenset(),
    file_sources=frozenset(),
    refused_text="blank",
    reasoning_replay="none",
    refused_options=frozenset(
        {
            "max_tokens",
            "temperature",
            "top_p",
            "stop",
            "seed",
            "thinking",
            "tool_choice",
            "parallel_tool_calls",
            "output_schema",
            "cache_retention",
            "session_id",
            "user_id",
            "stream",
        }
    ),
)

SOURCES: Final[Mapping[str, str]] = dict.fromkeys(
    (
        *("tools", "tool_choices", "tool_error", "user_media", "result_media", "image_sources", "file_sources"),
        *("refused_text", "reasoning_replay", "refused_options"),
    ),
    "segue's own format, a role and a string (documentation: plain text)",
)
"""Who says so, for each field of `RULES`; its rows have their own sources. All were read on `READ`."""

DIALECT: Final = Dialect(max_tokens_field="none", thinking_format="none", auth="none", call_ids=False)

FAMILIES: Final[tuple[Family, ...]] = ()
