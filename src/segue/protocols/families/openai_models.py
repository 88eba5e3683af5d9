"""Families of OpenAI's models that differ in the same way over Chat Completions and over Responses."""

from __future__ import annotations

from typing import Final

from segue.models.family import Family
from segue.models.first_party import OPENAI_SCHEMAS
from segue.models.model_ids import OPENAI_ALWAYS_THINKS, OPENAI_BEHIND, OPENAI_GPT_5_1_TO_4, OPENAI_WITHOUT_LONG_CACHE
from segue.models.rule import Rule

INPUT_ONLY: Final = frozenset({"tool", "assistant"})
"""Where a cache breakpoint is refused: only parts of the input may have one."""

ROOT_KEYWORDS: Final = frozenset({"oneOf", "anyOf", "allOf", "enum", "not"})
"""Keywords that OpenAI refuses at the root of a tool's schema."""

OPENAI_FAMILIES: Final[tuple[Family, ...]] = (
    Family(
        pattern="^",
        rules={"url_schemes": frozenset({"data", "http", "https"})},
        providers=("openai", "azure"),
        source="'Expected a valid URL, but got a value with an invalid format.'; OpenAI documentation: images",
        read="2026-11-17",
    ),
    Family(
        pattern=OPENAI_WITHOUT_LONG_CACHE,
        dialect={"cache_long": "none"},
        providers=("openai", "azure"),
        source="'prompt_cache_retention is not supported on this model'; OpenAI documentation: prompt caching, models",
        read="2026-11-17",
    ),
    Family(
        pattern=r"^gpt-5-chat",
        rules={"tools": False},
        providers=("openai",),
        source="'tools is not supported in this model.' (flexeval #242, 2025-09-08; litellm 1.108.4)",
        read="2026-11-18",
    ),
    Family(
        pattern=OPENAI_ALWAYS_THINKS,
        rules={"refused_options": frozenset({"temperature", "top_p"})},
        providers=("openai", "azure"),
        source="'Unsupported parameter: 'temperature' is not supported with this model.' of gpt-5.2-codex"
        " (software-agent-sdk #1837, 2026-01-27); OpenAI documentation: these have no effort none",
        read="2026-11-18",
    ),
    Family(
        pattern=OPENAI_GPT_5_1_TO_4,
        rules={"refused_options": frozenset({"temperature", "top_p"})},
        providers=("github-copilot",),
        source="'Unsupported parameter: 'temperature' is not supported with this model.' (9router #536, 2026-04-09)",
        read="2026-11-17",
    ),
    *(
        Family(
            pattern=pattern,
            rules={place: row for place, row in OPENAI_SCHEMAS.items() if isinstance(row, Rule)},
            providers=(provider,),
            source="'Invalid schema for function ...' by OpenAI and Azure behind them (OpenRouter: Alpaca #1027,"
            " 2025-10-26; codex #7758, 2025-12-09; Copilot: oh-my-pi #206, 2026-02-28; codecompanion.nvim #2314)",
            read="2026-11-19",
        )
        for pattern, provider in OPENAI_BEHIND
    ),
)
