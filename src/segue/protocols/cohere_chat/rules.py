"""Rules and dialect of Cohere's v2 chat protocol.

Facts:
- Fields, values and limits.                                                         (cohere 7.3.1, read 2026-11-15)
- Messages of one role may follow each other; the last one may be a system or an assistant message.
                                                        (Risuai #633, 2024-10-12; SillyTavern #3692, live, 2025-03-15)
- Results are text or documents of text.                                                               (cohere 7.3.1)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.models.dialect import Dialect
from segue.models.family import Family
from segue.models.rule import Rule
from segue.models.rules import Rules

PROTOCOL: Final = "cohere-chat"
PROVIDER: Final = "cohere"

READ: Final = "2026-11-15"

RULES: Final = Rules(
    # -- tools
    tool_name_first="a-zA-Z_",
    tool_name_alphabet="a-zA-Z0-9_",
    tool_choices=frozenset({"required", "none"}),
    tool_error="text",
    schema_root_object=True,
    # -- media
    user_media=("image/*",),
    result_media=(),
    file_sources=frozenset(),
    # -- turns
    refused_text="empty",
    blank_beside=frozenset({"toolCall"}),
    # -- reasoning
    reasoning_replay="open",
    # -- settings: cohere 7.3.1, no such parameters
    refused_options=frozenset({"parallel_tool_calls", "cache_retention", "session_id", "user_id"}),
    schema_with_tools=False,
    extra_like=(("response_format", "output_schema"),),
    # -- what is refused
    rows={
        "top_p": Rule('cohere 7.3.1: p, "min value of 0.01, max value of 0.99"', READ, least=0.01, most=0.99),
        "stop": Rule("cohere 7.3.1", READ, most=5),
        "temperature": Rule('"temperature must be between 0 and 1.0 inclusive" (Cohere API)', "2026-11-17", most=1.0),
        "seed": Rule("Cohere API reference v2", "2026-11-17", least=0),
        "max_tokens": Rule("Cohere API reference v2", "2026-11-17", least=0),
    },
)

SOURCES: Final[Mapping[str, str]] = {
    "tool_name_first": "cohere 7.3.1, for the tools of v1; nothing is documented for v2",
    "tool_name_alphabet": "cohere 7.3.1, for the tools of v1; nothing is documented for v2",
    "tool_choices": "cohere 7.3.1: REQUIRED, NONE",
    "tool_error": "cohere 7.3.1: a tool message has no flag",
    "schema_root_object": "cohere 7.3.1: the parameters of a function are an object",
    "user_media": "cohere 7.3.1: image_url",
    "result_media": "cohere 7.3.1: a tool message has texts and documents",
    "file_sources": "cohere 7.3.1: a message has no files",
    "refused_text": '"message must be at least 1 token long" (Risuai #504, uni-api #6; v1)',
    "blank_beside": "recorded 200s: the text of a reply that only calls is empty, 2026-11",
    "reasoning_replay": "cohere 7.3.1: thinking blocks of an assistant message have no signature",
    "refused_options": "cohere 7.3.1: no such parameters",
    "schema_with_tools": 'cohere 7.3.1: "not supported when used in combinations with ... `tools`"',
    "extra_like": "cohere 7.3.1: JSON without a schema is refused alike",
}
"""Who says so, for each field of `RULES`; its rows have their own sources. All were read on `READ`."""

DIALECT: Final = Dialect(max_tokens_field="max_tokens", thinking_format="budget")

FAMILIES: Final[tuple[Family, ...]] = ()
