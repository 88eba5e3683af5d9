"""Limits that OpenAI's two wires share, at OpenAI and at xAI; `kit.limits` explains the rows (read 2026-11-17)."""

from __future__ import annotations

from typing import Final

from segue.models.model_ids import OPENAI_GPT_5_5_ON, OPENAI_GPT_5_6_ON, OPENAI_WITHOUT_FLEX, OPENAI_WITHOUT_LONG_CACHE
from segue.protocols.kit.limits import Condition, Limit, rows_of

OPENAI: Final = ("openai", "azure")
SPEC: Final = "openai-openapi 2.3.0: the parameter's bounds"
_XAI_EFFORTS: Final = (
    "`none` and `max` are refused, `minimal` and `xhigh` taken (llmgateway #3669, live, 2026-08-18); xAI documentation:"
    " reasoning, it cannot be disabled"
)

_SAME: Final = (
    *rows_of(
        OPENAI,
        Limit("metadata", SPEC, most=16),
        Limit("metadata.~", SPEC, most=64),
        Limit("metadata.*", SPEC, most=512),
        Limit("prompt_cache_key", "openai-openapi 2.3.0: maxLength 64", most=64),
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
"""Rows of fields that have the same place on both wires."""


def openai_limits(
    *, image: str, schema_name: str, strict: str, effort: str, of_functions: tuple[Condition, ...] = ()
) -> tuple[Limit, ...]:
    """Return the rows that both wires have, for the places of one: an address, a name, a flag and an effort.

    `of_functions` is the condition that the flag is that of a function.
    """
    return (
        *_SAME,
        *rows_of(
            OPENAI,
            Limit(
                image,
                '"Expected a valid URL, but got a value with an invalid format." (OpenAI API; documentation: images)',
                pattern=r"(?i:data:image/|(?!data:)).+",  # of addresses: `Rules.url_schemes`
                advice="use an https address or the data URL of an image",
            ),
            Limit(schema_name, "openai 3.49.0: letters, digits, _ and -, at most 64", pattern=r"[a-zA-Z0-9_-]{1,64}"),
            Limit(
                strict,
                "\"Invalid schema for function 'done': In context=(), 'additionalProperties' is required to be supplied"
                ' and to be false.", of a tool without parameters (agent-kit #66, 2025-02-13, of Chat Completions)',
                equals=True,
                when=of_functions,
                needs=(".parameters",),
            ),
        ),
        *rows_of(
            ("xai",),
            *(
                Limit(
                    effort, _XAI_EFFORTS, equals=given, refused=f"use {other}", models=r"grok-(?:4\.[5-9]|build-latest)"
                )
                for given, other in (("none", "low"), ("max", "high"))
            ),
        ),
    )
