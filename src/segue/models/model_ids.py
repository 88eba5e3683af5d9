"""Facts about model ids: how the ids of each first-party provider begin.

The one table for them. The catalogue reads it to choose a provider for a bare id, detection to recognise a request, the
scripts that write the catalogue to find prices. Families of models inside these (generations, sizes) are in
`models.family`; ids of the same model at several providers in `models.equivalence`.

Facts this file rests on:
- The ids of each provider's own catalogue page.                       (catalogue of pi-ai 1.5.0; read 2026-11-15)
- Cohere's first model was called `command`, without a suffix.         (cohere 7.3.1; read 2026-11-15)
"""

from __future__ import annotations

from typing import Final

FIRST_PARTY_PREFIXES: Final[tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]] = (
    (("claude-",), ("anthropic",)),
    (("gpt-oss-",), ()),  # open weights: many providers serve them, none is preferred
    (("gpt-", "o1", "o3", "o4", "chat-latest"), ("openai", "openai-codex")),
    (("gemini-", "gemma-"), ("google", "google-vertex")),
    (("grok-",), ("xai",)),
    (("deepseek-",), ("deepseek",)),
    (
        (
            "mistral-",
            "magistral-",
            "ministral-",
            "codestral-",
            "devstral-",
            "pixtral-",
            "voxtral-",
            "open-mistral-",
            "open-mixtral-",
        ),
        ("mistral",),
    ),
    (("kimi-",), ("moonshotai", "moonshotai-cn", "kimi-coding")),
    (("glm-",), ("zai", "zai-coding-cn")),
    (("minimax-",), ("minimax", "minimax-cn")),
    (("mimo-",), ("xiaomi",)),
    (("muse-",), ("meta",)),
    (("ling-", "ring-"), ("ant-ling",)),
    (("command", "c4ai-aya-"), ("cohere",)),
)
"""Prefixes in lower case, and the providers that make these models, the preferred one first."""


def first_party_providers(model_id: str) -> tuple[str, ...]:
    """Name the providers that make the model of an id; nothing where no prefix matches."""
    wanted = model_id.lower()
    return next((providers for prefixes, providers in FIRST_PARTY_PREFIXES if wanted.startswith(prefixes)), ())


def first_party_prefixes(provider: str) -> tuple[str, ...]:
    """List how the ids of a provider's own models begin."""
    return tuple(prefix for prefixes, providers in FIRST_PARTY_PREFIXES if provider in providers for prefix in prefixes)
