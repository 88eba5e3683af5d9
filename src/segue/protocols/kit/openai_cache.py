"""Limits of OpenAI's cache settings, which its two wires share; `limits` explains the rows (read 2026-11-17)."""

from __future__ import annotations

from typing import Final

from segue.models.model_ids import (
    OPENAI_GPT_5_5_ON,
    OPENAI_GPT_5_6_ON,
    OPENAI_WITHOUT_FLEX,
    OPENAI_WITHOUT_LONG_CACHE,
)
from segue.protocols.kit.limits import Limit

_OPENAI: Final = ("openai", "azure")

CACHE_LIMITS: Final = (
    Limit(
        "prompt_cache_retention",
        "openai 3.49.0: for gpt-5.5 and future models, only `24h` is supported",
        allowed=("24h",),
        models=OPENAI_GPT_5_5_ON,
        providers=_OPENAI,
    ),
    Limit(
        "prompt_cache_retention",
        '"prompt_cache_retention is not supported on this model" (OpenAI documentation: prompt caching, models)',
        refused=True,
        equals="24h",
        models=OPENAI_WITHOUT_LONG_CACHE,
        providers=_OPENAI,
        advice="remove it",
    ),
    Limit(
        "prompt_cache_options",
        "openai 3.49.0: supported for gpt-5.6 and later models",
        refused=True,
        models=rf"^(?!.*(?:{OPENAI_GPT_5_6_ON}))",
        providers=("openai",),
        advice="remove it",
    ),
    Limit(
        "service_tier",
        "OpenAI documentation: flex processing, models",
        refused=True,
        equals="flex",
        models=OPENAI_WITHOUT_FLEX,
        providers=("openai",),
        advice="remove it",
    ),
)
