"""Families of OpenAI's models that differ in the same way over Chat Completions and over Responses."""

from __future__ import annotations

from typing import Final

from segue.models.family import Family
from segue.models.first_party import OPENAI_SCHEMAS
from segue.models.model_ids import (
    OPENAI_ALWAYS_THINKS,
    OPENAI_BEHIND,
    OPENAI_GPT_5_1_TO_4,
    OPENAI_GPT_5_5_UP,
    OPENAI_GPT_5_6_ON,
    OPENAI_GPT_5_ALONE,
    OPENAI_GPT_6_ON,
    OPENAI_O_SERIES,
    OPENAI_THINKING_LEVELS,
    OPENAI_WITHOUT_LONG_CACHE,
)
from segue.models.rule import Rule

INPUT_ONLY: Final = frozenset({"tool", "assistant"})
"""Where a cache breakpoint is refused: only parts of the input may have one."""

ROOT_KEYWORDS: Final = frozenset({"oneOf", "anyOf", "allOf", "enum", "not"})
"""Keywords that OpenAI refuses at the root of a tool's schema."""

_SAMPLING: Final = frozenset({"temperature", "top_p"})

OPENAI_FAMILIES: Final[tuple[Family, ...]] = (
    Family(
        pattern=f"{OPENAI_O_SERIES}|{OPENAI_GPT_5_ALONE}|{OPENAI_GPT_6_ON}",
        rules={"refused_options": _SAMPLING | {"stop"}},
        source="'Unsupported parameter' (OpenAI documentation: GPT-5); @ai-sdk/openai 4.0.73 sends GPT-6 none at all",
        read="2026-11-15",
    ),
    Family(
        pattern=OPENAI_GPT_5_5_UP,
        rules={"refused_unless_off": _SAMPLING, "refused_options": ["stop"]},
        source="litellm #34210 (live, 2026-07-22); accepted with effort none (experiential #738, 2026-09-03)",
        read="2026-11-15",
    ),
    Family(
        pattern=OPENAI_GPT_5_1_TO_4,
        rules={"refused_with_thinking": _SAMPLING, "refused_options": ["stop"]},
        source="OpenAI documentation: GPT-5.2, sampling only with effort none (dify-official-plugins #2821)",
        read="2026-11-15",
    ),
    Family(
        pattern=r"grok-(?:4\.[5-9]|build-latest)",
        rules={"thinking_levels": frozenset({"minimal", "low", "medium", "high", "xhigh"})},
        dialect={"effort": True},
        providers=("xai",),
        source="`none` and `max` are refused, `minimal` and `xhigh` taken (llmgateway #3669, live, 2026-08-18)",
        read="2026-11-18",
    ),
    *(
        Family(
            pattern=pattern,
            rules={"thinking_levels": frozenset(levels)},
            providers=("openai", "azure"),
            source="OpenAI documentation: reasoning effort by model; catalogue of pi-ai 1.5.0",
            read="2026-11-15",
        )
        for pattern, levels in OPENAI_THINKING_LEVELS
    ),
    Family(
        pattern=OPENAI_GPT_5_6_ON,
        rules={
            "cache_marks": 4,
            "cache_mark_key": "prompt_cache_breakpoint",
            "cache_mark_places": Rule(values=INPUT_ONLY),
        },
        providers=("openai", "azure"),
        source="openai 3.49.0: breakpoints on parts of input, for gpt-5.6 and later; up to four are written",
        read="2026-11-17",
    ),
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
        rules={"refused_options": _SAMPLING},
        providers=("openai", "azure"),
        source="'Unsupported parameter: 'temperature' is not supported with this model.' of gpt-5.2-codex"
        " (software-agent-sdk #1837, 2026-01-27); OpenAI documentation: these have no effort none",
        read="2026-11-18",
    ),
    Family(
        pattern=OPENAI_GPT_5_1_TO_4,
        rules={"refused_options": _SAMPLING},
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
