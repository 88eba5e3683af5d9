"""Facts about model ids: the prefixes of each first-party provider, and the patterns of model generations.

This is the only table for facts that several modules need: the catalogue chooses the provider of a bare id, detection
recognises a request, rules of several protocols select families, `models.equivalence` compares ids of several
providers, and the scripts that write the catalogue find prices. A family that only the rules of one protocol need is in
its `rules.py`; every other pattern is here.

Facts this file rests on:
- The ids of each provider's own catalogue page.                       (catalogue of pi-ai 1.5.0; read 2026-11-15)
- Cohere's first model was called `command`, without a suffix.         (cohere 7.3.1; read 2026-11-15)
- Claude ids: a name and a generation (`-4-5`, elsewhere `-4.5`; once before the name: `claude-3-7-sonnet`), no date
  from 4.6 on. Bedrock adds a region and `anthropic.` before the id and `-v1:0` behind it, Vertex adds `@date`.
                                                  (Anthropic models overview; catalogue of pi-ai 1.5.0; read 2026-11-15)
- OpenAI ids: `o1`, `o3`, `o4` and `gpt-5` onwards reason; gateways add `openai/` or `openai.` before the id. (the same)
"""

from __future__ import annotations

from collections.abc import Mapping
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
"""Prefixes in lower case, and the first-party providers of these models, the preferred one first."""


def first_party_providers(model_id: str) -> tuple[str, ...]:
    """Give the first-party providers of a model id; empty if no prefix matches."""
    wanted = model_id.lower()
    return next((providers for prefixes, providers in FIRST_PARTY_PREFIXES if wanted.startswith(prefixes)), ())


def first_party_prefixes(provider: str) -> tuple[str, ...]:
    """List the prefixes of the ids of a provider's own models."""
    return tuple(prefix for prefixes, providers in FIRST_PARTY_PREFIXES if provider in providers for prefix in prefixes)


# -- families ----------------------------------------------------------------------------------------------------------
# Regular expressions, searched in an id, case ignored.

CLAUDE: Final = r"claude-"
CLAUDE_UP_TO_4_5: Final = (
    r"claude-(?:instant|v?[123](?:[-.:@]|$)"
    r"|(?:opus|sonnet|haiku)-4(?:[-.][0-5])?(?:[-.@:]\D|[-@]\d{8}|$)"
    r"|4(?:[-.][0-5])?-(?:opus|sonnet|haiku))"
)
"""The last models that accept a thinking budget, a prefilled answer and sampling parameters."""
CLAUDE_4_5_AND_4_6: Final = r"claude-(?:(?:opus|sonnet|haiku)-4[-.][56]|4[-.][56]-(?:opus|sonnet|haiku))(?!\d)"
"""These count tools and calls alike."""
CLAUDE_4_6: Final = r"claude-(?:(?:opus|sonnet)-4[-.]6|4[-.]6-(?:opus|sonnet))(?!\d)"
"""Adaptive thinking, no prefill; sampling parameters are still accepted."""
CLAUDE_READS_SYSTEM: Final = (
    r"claude-(?:opus-4[-.](?:[89]|\d\d)(?!\d)|opus-(?:[5-9]|\d\d)(?!\d)|(?:fable|mythos)-\d"
    r"|(?:sonnet|haiku)-(?:5[-.][5-9]|[6-9]|\d\d)(?!\d))"
)
"""Opus 4.8 and later: system messages in the middle of a conversation are accepted. Sources disagree on Sonnet 5."""
CLAUDE_REFUSES_FORCED_CHOICE: Final = r"claude-(?:(?:fable|mythos)-5[-.]1|(?:opus|sonnet)-5[-.]5)(?!\d)"
"""These refuse a forced tool choice, with and without thinking."""
CLAUDE_ALWAYS_THINKS: Final = r"claude-(?:(?:fable|mythos)-(?:\d|preview)|(?:opus|sonnet)-5[-.]5(?!\d))"
"""Thinking cannot be disabled."""
CLAUDE_ONE_SAMPLING_PARAMETER: Final = r"claude-(?:opus-4[-.]1|\w+-4[-.]5|4[-.]1-opus|4[-.]5-)(?!\d)"
"""Opus 4.1 and the 4.5 generation; earlier models accept both sampling parameters at once."""

GEMINI_1_AND_2: Final = r"gemini-[12]\."
"""These have thinking budgets and no levels, and no JSON schema beside tools."""
GEMINI_2_0: Final = r"gemini-2\.0"
"""These refuse a content of empty texts; 1.5, 2.5 and 3 Flash accept it (recorded by pydantic-ai and mirascope)."""
GEMINI_ALWAYS_THINKS: Final = r"gemini-(?:2\.5-pro|3(?:\.\d+)?-pro|3\.5-flash-lite)"
"""Thinking cannot be disabled: these refuse a budget of 0."""
GEMINI_3_ON: Final = r"gemini-(?:[3-9]|\d\d)|gemini-(?:pro|flash|flash-lite)-latest"
"""These sign their calls and refuse calls without a signature."""

OPENAI_O_SERIES: Final = r"(?:^|[/.])o[134](?:-|$)"
OPENAI_GPT_5_ALONE: Final = r"(?:^|[/.])gpt-5(?!\.\d|\d|-chat)"
"""GPT-5 with its mini, nano, pro and codex variants. Thinking cannot be disabled."""
OPENAI_GPT_5_1_TO_4: Final = r"(?:^|[/.])gpt-5\.[1-4](?!\d|-chat)"
"""Thinking can be disabled, and only then sampling parameters are accepted."""
OPENAI_GPT_5_5_UP: Final = r"(?:^|[/.])gpt-5\.(?:[5-9]|\d\d)(?!\d)"
"""Thinking is on unless it is disabled, and only then sampling parameters are accepted."""
OPENAI_GPT_6_ON: Final = r"(?:^|[/.])gpt-(?:[6-9]|\d\d)(?!\d)"
OPENAI_GPT_5_5_ON: Final = f"{OPENAI_GPT_5_5_UP}|{OPENAI_GPT_6_ON}"

OPENAI_WITHOUT_REASONING: Final = r"^(?:chatgpt-4o|gpt-3\.5|gpt-4(?!\d)|gpt-5-chat)"
"""OpenAI models that were seen to refuse `reasoning.effort`, and their variants."""

MISTRAL: Final = r"(?:^|/)(?:open-)?(?:mistral|ministral|magistral|devstral|codestral|mixtral|pixtral)"

CLAUDE_NAME: Final = r"(?P<name>claude-[a-z0-9-]+?)(?:[-@](?P<date>\d{8}))?"
GEMINI_NAME: Final = r"(?P<name>gemini-[a-z0-9.-]+)(?P<date>)"
"""The name and the date in an id, for comparing ids of several providers."""

NATIVE_PROTOCOLS: Final[Mapping[str, frozenset[str]]] = {
    "claude": frozenset({"anthropic-messages", "bedrock-converse"}),
    "gemini": frozenset({"google-genai"}),
}
"""The protocols on which the signatures of a family are the provider's own; others change or replace them."""


def is_claude(model_id: str) -> bool:
    """Whether an id, of whichever provider, names a Claude model."""
    return CLAUDE in model_id.lower()
