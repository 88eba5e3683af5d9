"""Limits of OpenAI's cache settings, which its two wires share; `limits` explains the rows (read 2026-11-17)."""

from __future__ import annotations

from typing import Final

from segue.models.model_ids import OPENAI_GPT_5_5_ON, OPENAI_GPT_5_6_ON, OPENAI_WITHOUT_FLEX, OPENAI_WITHOUT_LONG_CACHE
from segue.protocols.kit.limits import Limit, rows_of

_OPENAI: Final = ("openai", "azure")

CACHE_LIMITS: Final = (
    *rows_of(
        _OPENAI,
        Limit(
            "prompt_cache_retention",
            "openai 3.49.0: for gpt-5.5 and future models, only `24h` is supported",
            allowed=("24h",),
            models=OPENAI_GPT_5_5_ON,
        ),
        Limit(
            "prompt_cache_retention",
            '"prompt_cache_retention is not supported on this model" (OpenAI documentation: prompt caching, models)',
            refused="remove it",
            equals="24h",
            models=OPENAI_WITHOUT_LONG_CACHE,
        ),
    ),
    *rows_of(
        ("openai",),
        Limit(
            "prompt_cache_options",
            "openai 3.49.0: supported for gpt-5.6 and later models",
            refused="remove it",
            models=rf"^(?!.*(?:{OPENAI_GPT_5_6_ON}))",
        ),
        Limit(
            "service_tier",
            "OpenAI documentation: flex processing, models",
            refused="remove it",
            equals="flex",
            models=OPENAI_WITHOUT_FLEX,
        ),
    ),
)
