"""Facts about model ids: the prefixes of each first-party provider, and the patterns of model generations.

This is the only table for facts that several modules need: the catalogue chooses the provider of a bare id, detection
recognises a request, rules of several protocols select families, `models.equivalence` compares ids of several
providers, and the scripts that write the catalogue find prices. A family that only the rules of one protocol need is in
its `rules.py`; every other pattern is here. A test assigns every id of the packaged catalogue to its generation.

Facts:
- The ids of each provider's own catalogue page.                       (catalogue of pi-ai 1.5.0; read 2026-11-15)
- Cohere's first model was called `command`, without a suffix.         (cohere 7.3.1; read 2026-11-15)
- Claude ids: a name and a generation (`-4-5`, elsewhere `-4.5`; once before the name: `claude-3-7-sonnet`), no date
  from 4.6 on. Bedrock adds a region and `anthropic.` before the id and `-v1:0` after it, Vertex adds `@date`.
                                                  (Anthropic models overview; catalogue of pi-ai 1.5.0; read 2026-11-15)
- OpenAI ids: `o1`, `o3`, `o4` and `gpt-5` onwards reason; gateways add `openai/` or `openai.` before the id, and a
  fine-tuned model is `ft:` and the id.                                (the same; OpenAI documentation: fine-tuning)
- Azure has no dot in `gpt-35-turbo`, and a deployment may have any name of letters, digits, `-`, `_` and `.`, mostly
  that of the model: `gpt-41`, `gpt4o`, `prod-gpt-5-mini`. Databricks writes `databricks-gpt-5-1`.
                                  (Azure documentation: models, deployments; Databricks documentation; read 2026-11-15)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

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
"""Prefixes in lower case, and the first-party providers of these models, the preferred one first.

(Catalogue of pi-ai 1.5.0, mistralai 3.7.0 and cohere 7.3.1 for ids that it lacks; read 2026-11-15.)
"""


def first_party_providers(model_id: str) -> tuple[str, ...]:
    """Return the first-party providers of a model id; empty if no prefix matches."""
    wanted = model_id.lower()
    return next((providers for prefixes, providers in FIRST_PARTY_PREFIXES if wanted.startswith(prefixes)), ())


def first_party_prefixes(provider: str) -> tuple[str, ...]:
    """List the prefixes of the ids of a provider's own models."""
    return tuple(prefix for prefixes, providers in FIRST_PARTY_PREFIXES if provider in providers for prefix in prefixes)


# -- other forms of an id ----------------------------------------------------------------------------------------------


class Variant(NamedTuple):
    """A form in which programs write the id of a model that is listed in another form.

    `pattern` has to match all of an id, and `listed` is the listed one. `provider` serves ids of this form; empty if
    they are the id's own provider's. With `is_sent` the provider expects the form as it is: it stays the model's id.
    With `is_free` it costs nothing.
    """

    pattern: str
    listed: str
    provider: str = ""
    is_sent: bool = True
    is_free: bool = False


VARIANTS: Final[tuple[Variant, ...]] = (
    # AWS documentation: Amazon Bedrock, ARNs and cross-region inference
    Variant(r"arn:aws[\w-]*:bedrock:.*/([^/]+)", r"\1", "amazon-bedrock"),
    Variant(r"(?:us|us-gov|eu|apac|au|jp|ca|global)\.(.+)", r"\1", "amazon-bedrock"),
    # Google Cloud documentation: Vertex AI, resource names of models; versions of Claude
    Variant(r"(?:projects/[^/]+/locations/[^/]+/)?publishers/[^/]+/models/(.+)", r"\1", "google-vertex", is_sent=False),
    Variant(r"(.+)@(?:\d{8}|default)", r"\1", "google-vertex"),
    Variant(r"models/(.+)", r"\1", "google", is_sent=False),  # google-genai 3.1.0: resource names
    # OpenRouter documentation: model variants
    Variant(r"(.+/.+):free", r"\1", "openrouter", is_free=True),
    Variant(r"(.+/.+):(?:nitro|floor|online|exacto|extended|thinking)", r"\1", "openrouter"),
    Variant(r"(.+)\[1m\]", r"\1", is_sent=False),  # Claude Code 2.1.325: its own word for the long window
    # Anthropic models overview: aliases; OpenRouter and Copilot write versions with a dot
    Variant(r"claude-(opus|sonnet)-4-0", r"claude-\1-4-20250514"),
    Variant(r"claude-([a-z]+)-(\d+)\.(\d+)(.*)", r"claude-\1-\2-\3\4", is_sent=False),
    Variant(r"claude-(\d+)\.(\d+)-([a-z]+)(.*)", r"claude-\3-\1-\2\4", is_sent=False),
    Variant(r"(.+?)-20\d\d(-?)(?:0[1-9]|1[0-2])\2(?:0[1-9]|[12]\d|3[01])", r"\1"),  # a snapshot of a listed model
)
"""All were read on 2026-11-17. The first one whose listed id exists counts."""


def listed_variants(name: str, model_id: str) -> Iterator[tuple[Variant, str, str]]:
    """Yield the ids under which a model may be listed, each after its variant and the part of the name that it matched.

    `model_id` is the name without its provider. A form that one provider serves may be the whole name.
    """
    for variant in VARIANTS:
        for asked in dict.fromkeys((name, model_id) if variant.provider else (model_id,)):
            if found := re.fullmatch(variant.pattern, asked, re.IGNORECASE):
                yield variant, asked, found.expand(variant.listed)


# -- families ----------------------------------------------------------------------------------------------------------
# Regular expressions, searched in an id, case ignored. All were read on 2026-11-15.

CLAUDE: Final = r"claude-"
CLAUDE_3_HAIKU: Final = r"claude-(?:3-(?:5-)?haiku|haiku-3)"
CLAUDE_3: Final = r"claude-3-(?:haiku|opus|sonnet)"
CLAUDE_3_AND_3_5: Final = r"claude-3-(?:5-)?(?:haiku|opus|sonnet)"
"""The models before thinking. (Anthropic documentation: extended thinking, supported models)"""
CLAUDE_WITHOUT_SCHEMAS: Final = r"claude-(?:3-|(?:opus|sonnet)-4(?:-0)?(?:[-@]\d{8}|$))"
"""The models before structured outputs, which Opus 4.1 and Sonnet 4.5 began. (Anthropic documentation)"""
CLAUDE_UP_TO_4_5: Final = (
    r"claude-(?:instant|v?[123](?:[-.:@]|$)"
    r"|(?:opus|sonnet|haiku)-4(?:[-.][0-5])?(?:[-.@:]\D|[-@]\d{8}|$)"
    r"|4(?:[-.][0-5])?-(?:opus|sonnet|haiku))"
)
"""The last models that accept a thinking budget, a prefilled answer and sampling parameters.

(Anthropic documentation: what's new in Claude 4.6, migration guide; strands #1694 for prefill at 4.5.)
"""
CLAUDE_4_5_AND_4_6: Final = r"claude-(?:(?:opus|sonnet|haiku)-4[-.][56]|4[-.][56]-(?:opus|sonnet|haiku))(?!\d)"
"""These count tools and calls alike."""
CLAUDE_4_6: Final = r"claude-(?:(?:opus|sonnet)-4[-.]6|4[-.]6-(?:opus|sonnet))(?!\d)"
"""Adaptive thinking, no prefill; sampling parameters are still accepted. (anthropic 2.8.0; pi-ai 1.5.0)"""
CLAUDE_READS_SYSTEM: Final = (
    r"claude-(?:opus-4[-.](?:[89]|\d\d)(?!\d)|opus-(?:[5-9]|\d\d)(?!\d)|(?:fable|mythos)-(?:\d|latest)"
    r"|(?:sonnet|haiku)-(?:5[-.][5-9]|[6-9]|\d\d)(?!\d))"
)
"""Opus 4.8 and later: system messages in the middle of a conversation are accepted.

(Anthropic documentation: what's new in Claude 4.8; sources disagree on Sonnet 5: see the rules of anthropic-messages.)
"""
CLAUDE_REFUSES_FORCED_CHOICE: Final = r"claude-(?:(?:fable|mythos)-5[-.][1-9]|(?:opus|sonnet)-5[-.]5)(?!\d)"
"""These refuse a forced tool choice, with and without thinking. (vercel/ai #21364, oh-my-pi #12939; 5.2 concluded)"""
CLAUDE_ALWAYS_THINKS: Final = r"claude-(?:(?:fable|mythos)-(?:\d|preview|latest)|(?:opus|sonnet)-5[-.]5(?!\d))"
"""Thinking cannot be disabled. (pydantic-ai 2.66.0, live; @ai-sdk/anthropic 3.0.138)"""
CLAUDE_BETWEEN_TOOLS: Final = r"claude-sonnet-(?:5[-.][5-9]|[6-9])(?!\d)"
"""These have a type of thinking with notes between calls alone. (anthropic 2.8.0; documentation of Sonnet 5.5)"""
CLAUDE_COMPUTER_TOOLSET: Final = (
    r"claude-(?:(?:opus|sonnet|haiku)-(?:5[-.][5-9]|[6-9])|(?:fable|mythos)-(?:5[-.][2-9]|[6-9]))(?!\d)"
)
"""These refuse the tools `computer_*` and accept a toolset instead. (Anthropic documentation: computer use, 2026-11)"""
CLAUDE_ONE_SAMPLING_PARAMETER: Final = r"claude-(?:opus-4[-.]1|\w+-4[-.]5|4[-.]1-opus|4[-.]5-)(?!\d)"
"""Opus 4.1 and the 4.5 generation; earlier models accept both sampling parameters at once.

(litellm #15097, opencode #28930)
"""

CLAUDE_BINDS_PREFIX: Final = (
    r"claude-(?:(?:fable|mythos)-(?:5[-.](?:[1-9]|\d\d)(?!\d)|[6-9](?!\d)|\d\d(?!\d)|latest)"
    r"|(?:opus|sonnet|haiku)-(?:5[-.](?:[5-9]|\d\d)(?!\d)|[6-9](?!\d)|\d\d(?!\d)))"
)
"""Fable and Mythos from 5.1 on, Opus, Sonnet and Haiku from 5.5 on: thinking is accepted only after what it was made
after. Ids that end in `latest` name the newest model.

(Anthropic documentation: preserved thinking, 2026-11-09; probes of Opus 5.5, Fable 5.1 and Sonnet 5, 2026-09-26)
"""
CLAUDE_BINDS_ACCOUNT: Final = (
    r"claude-(?:(?:fable|mythos)-(?:5[-.](?:[2-9]|\d\d)(?!\d)|[6-9](?!\d)|\d\d(?!\d)|latest)"
    r"|(?:sonnet|haiku)-(?:5[-.](?:[5-9]|\d\d)(?!\d)|[6-9](?!\d)|\d\d(?!\d)))"
)
"""Sonnet and Haiku from 5.5 on: thinking is read only in the account that it was made in.

(Anthropic documentation: Claude Sonnet 5.5, Claude Haiku 5.5, 2026-10; concluded for Fable and Mythos 5.2)
"""
CLAUDE_READS_BOUND: Final = r"claude-opus-5[-.]5(?!\d)"
"""Models that read thinking of `CLAUDE_BINDS_ACCOUNT`, and whose own is read in every account: see `readers`."""

GEMINI_1_AND_2: Final = r"gemini-[12]\."
"""These have thinking budgets and no levels, and no JSON schema with tools. (Roo-Code #10700, symfony/ai #1777)"""
GEMINI_UP_TO_2_0: Final = r"gemini-(?:1|2\.0)"
"""These count next to nothing for tools. (recorded usage, 2026-11-15)"""
GEMINI_2_0: Final = r"gemini-2\.0"
"""These refuse a content of empty texts."""
GEMINI_TAKES_EMPTY: Final = r"gemini-(?:1\.5|2\.5|3)"
"""These accept a content of empty texts (recorded by pydantic-ai and mirascope)."""
GEMINI_ALWAYS_THINKS: Final = r"gemini-(?:2\.5-pro|3(?:\.\d+)?-pro|3\.5-flash-lite)"
"""Thinking cannot be disabled: these refuse a budget of 0. (gemini-balance #206, docker-agent #2051)"""
GEMINI_3_ON: Final = r"gemini-(?:[3-9]|\d\d)|gemini-(?:pro|flash|flash-lite)-latest"
"""These sign their calls and refuse calls without a signature. (Google documentation: thought signatures)"""
GEMINI_WITHOUT_PREFILL: Final = (
    r"gemini-(?:3\.5-flash-lite|3\.[6-9]|3\.\d\d|[4-9]|\d\d)|gemini-(?:flash|flash-lite)-latest"
)
"""A request may not end with the model's turn; sampling options do nothing. (LibreChat agents #323, pipecat #5821)"""
GEMINI_MINIMAL: Final = r"gemini-3(?:\.[1-6])?-flash"
"""These have the level `minimal`; 3.7 and 3.8 Flash lack it. (Google documentation: thinking; pi-ai 1.5.0)"""

_START: Final = r"(?:^|[/.:~]|openai-)"
"""Where the name of a model of OpenAI's begins: after the prefix of a gateway, a region or a fine-tuned model."""
_GPT: Final = r"(?:^|[/.:~_-])gpt[-_]?"
"""The same for GPT, also in the middle of the name of a deployment."""
_NOT_A_SIZE: Final = r"(?!\d|(?:\.\d+)?b\b)"
"""Other makers' models have a number of parameters there: `Cerebras-GPT-6.7B`, `gpt-13b`."""

OPENAI_4_1_SMALL: Final = r"(?:^|[/.])gpt-4[.]?1-(?:mini|nano)"
OPENAI_UP_TO_4_1: Final = r"(?:^|[/.])(?:gpt-[34](?!\d)|gpt-35|gpt-41|chatgpt-4o|gpt-5-chat)"
OPENAI_5_ON: Final = r"(?:^|[/.])(?:o[134](?:[-:]|$)|gpt-|codex|chat-latest)"
"""Generations that count tokens alike; the first that matches counts. (recorded usage, 2026-11-15)"""
OPENAI_O_SERIES: Final = _START + r"(?:o[134](?:mini)?(?=[-_:@]|$)|codex-mini)"
"""o1, o3, o4-mini; codex-mini is made from o4-mini. (OpenAI and Azure documentation: models)"""
OPENAI_GPT_5_ALONE: Final = _GPT + r"5(?!\.\d|\d|[-_]\d(?!\d)|[-_]chat|b\b)"
"""GPT-5 with its mini, nano, pro and codex variants. Thinking cannot be disabled. (OpenAI documentation: GPT-5)"""
OPENAI_GPT_5_1_TO_4: Final = _GPT + r"5[-_.]?[1-4](?!\d|[-_]chat)"
"""Thinking can be disabled, and only then sampling parameters are accepted. (OpenAI documentation: GPT-5.2)"""
OPENAI_ALWAYS_THINKS: Final = _GPT + r"5[-_.]?[1-4]-(?:codex|pro)"
"""Those whose thinking cannot be disabled. (OpenAI documentation: GPT-5.1-Codex, GPT-5.2 pro, reasoning efforts)"""
_DAYBREAK: Final = r"(?:^|[/.:~_-])daybreak[-_](?:blue|red)"
"""Names of gpt-5.6-sol and gpt-5.6-cyber. (OpenAI documentation: Daybreak, quoted in ragflow #19856; oh-my-pi #8304)"""
OPENAI_GPT_5_5_UP: Final = rf"{_GPT}5(?:\.\d\d|[-_.]?[5-9])(?!\d)|{_DAYBREAK}"
"""Thinking is on unless it is disabled, and only then sampling parameters are accepted. (litellm #34210, live)"""
OPENAI_GPT_6_ON: Final = _GPT + r"(?:(?:[6-9](?:[-_.]?\d)?|1\d)" + _NOT_A_SIZE + r"|(?:astra|luna|sol|terra)-latest)"
"""No sampling parameters at all. (@ai-sdk/openai 4.0.73; the names ending in `latest`: catalogue of pi-ai 1.5.0)"""
OPENAI_FUNCTIONS_WITHOUT_LEVEL: Final = _GPT + r"5[-_.]?[45](?!\d|[-_]chat)"
"""Chat Completions refuses functions with an effort. (pipecat #4043, openai-openapi #541; crush #2913 for 5.5)"""
OPENAI_GPT_5_6_ON: Final = rf"{_GPT}5(?:\.\d\d|[-_.]?[6-9])(?!\d)|{_DAYBREAK}|{OPENAI_GPT_6_ON}"
"""Chat Completions refuses functions unless the effort is `none` (litellm #34569, livekit/agents #7169, live); cache
breakpoints are explicit, and writes are billed (openai 3.49.0)."""
OPENAI_GPT_5_5_ON: Final = f"{OPENAI_GPT_5_5_UP}|{OPENAI_GPT_6_ON}"

OPENAI_THINKING_LEVELS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (OPENAI_O_SERIES, ("low", "medium", "high")),
    (OPENAI_GPT_5_ALONE, ("minimal", "low", "medium", "high")),
    (OPENAI_GPT_5_1_TO_4, ("off", "low", "medium", "high", "xhigh")),
    (_GPT + r"5[-_.]?1(?!\d|[-_]chat|-codex-max)", ("off", "low", "medium", "high")),
    (OPENAI_GPT_5_5_ON, ("off", "low", "medium", "high", "xhigh", "max")),
    (_GPT + r"5[-_.]?5(?!\d)", ("off", "low", "medium", "high", "xhigh")),
    (_GPT + r"(?:6-astra|6\.1-sol|astra-latest)", ("low", "medium", "high", "xhigh", "max")),
)
"""The levels that a generation of OpenAI's models has; a later row wins.

"Unsupported value: 'minimal' is not supported with the 'o4-mini' model. Supported values are: 'low', 'medium', and
'high'." (OpenAI API; OpenAI documentation: reasoning effort by model; catalogue of pi-ai 1.5.0; litellm 1.108.4 for
the last row.)
"""

GROQ_WITHOUT_REASONING: Final = r"kimi-k2-instruct|^(?:llama|meta-llama|gemma|allam)"
"""Models that Groq serves and that do not reason. (vercel/ai #8056, 2025-08-14; Groq documentation: models)"""
OPENAI_WITHOUT_CHAT: Final = (
    r"^(?:text-|davinci|babbage|gpt-3\.5-turbo-instruct|whisper|tts-|dall-e|gpt-image|chatgpt-image|omni-moderation|sora)"
    r"|^gpt-\S*(?:transcribe|-tts|realtime)"
)
"""OpenAI models of other endpoints: embeddings, speech, images. (OpenAI documentation: models, endpoints)"""
OPENAI_WITHOUT_SCHEMAS: Final = (
    rf"{_GPT}(?:3[-_.]?5(?!\d)|4(?:-turbo|-32k|-vision|-\d{{4}}|-preview)?(?![\w.])|4-(?:turbo|0|1)|4o-2024-05-13)"
    r"|chatgpt-4o|(?:^|[/.:~])o1-(?:mini|preview)"
)
"""OpenAI models before structured outputs. (OpenAI documentation: structured outputs; IDesign #7)"""
OPENAI_WITHOUT_REASONING: Final = rf"{_GPT}(?:3[-_.]?5(?!\d)|4(?!\d\d)|5[-_]chat)|chatgpt-4o"
"""OpenAI models that were seen to refuse `reasoning.effort`, and their variants.

(baml #2708 for gpt-4.1, OpenAI-DotNet #500 for gpt-4o, one-api #120 for gpt-5-chat)
"""
OPENAI_WITHOUT_LONG_CACHE: Final = rf"gpt-4o|gpt-4(?!\.1|o)|gpt-3\.5|{OPENAI_O_SERIES}"
"""OpenAI models whose caches cannot be kept for a day. (OpenAI documentation: prompt caching, extended retention)"""
OPENAI_WITHOUT_FLEX: Final = r"gpt-4|gpt-3\.5|chatgpt"
"""OpenAI models that flex processing does not serve. (OpenAI documentation: flex processing)"""

MISTRAL: Final = r"(?:^|/)(?:open-)?(?:mistral|ministral|magistral|devstral|codestral|mixtral|pixtral)"
"""Models that apply the rules of Mistral's chat templates at every host. (mistral-common 1.13.0)"""

CLAUDE_VERSION: Final = (
    r"claude-(?:(?P<line>[a-z]+)-(?P<major>\d+)(?:-(?P<minor>\d{1,2}))?"
    r"|(?P<old_major>\d+)(?:-(?P<old_minor>\d{1,2}))?-(?P<old_line>[a-z]+))"
)
"""The line and the version in the name of a Claude. (See `models.readers`.)"""
CLAUDE_NAME: Final = r"(?P<name>claude-[a-z0-9-]+?)(?:[-@](?P<date>\d{8}))?"
GEMINI_NAME: Final = r"(?P<name>gemini-[a-z0-9.-]+)(?P<date>)"
"""The name and the date in an id, for comparing ids of several providers. (See `models.equivalence`.)"""

OPENAI_BEHIND: Final = ((r"^~?openai/(?!gpt-oss)", "openrouter"), (r"^gpt-", "github-copilot"))
"""The models of OpenAI that two providers pass requests on to."""
NATIVE_PROTOCOLS: Final[Mapping[str, frozenset[str]]] = {
    "claude": frozenset({"anthropic-messages", "bedrock-converse"}),
    "gemini": frozenset({"google-genai"}),
    "gemini-vertex": frozenset({"google-genai"}),
}
"""The protocols on which the signatures of a family are the provider's own; others change or replace them.

(opencode #6418, 9router #922; read 2026-11-15)
"""


def is_claude(model_id: str) -> bool:
    """Whether an id, of whichever provider, names a Claude model."""
    return CLAUDE in model_id.lower()


CLAUDE_FAST: Final = r"claude-opus-(?:4-8|5)(?:-\d{8})?$"
"""Models with a fast mode at twice the list price."""
CLAUDE_FIRST_FAST: Final = r"claude-opus-4-[67](?:-\d{8})?$"
"""Models with a fast mode at six times the list price."""
OPENAI_PRIORITY: Final[Mapping[str, float]] = {
    r"gpt-5\.5(?:-\d{4}-.*)?$": 2.5,
    r"gpt-5\.4(?:-mini)?(?:-\d{4}-.*)?$": 2.0,
    r"gpt-5\.2(?:-\d{4}-.*)?$": 2.0,
    r"gpt-5(?:\.1)?(?:-codex)?(?:-\d{4}-.*)?$": 2.0,
    r"gpt-5-mini(?:-\d{4}-.*)?$": 1.8,
    r"gpt-4\.1(?:-\d{4}-.*)?$": 1.75,
}
"""Parts of the list price that OpenAI takes for priority processing."""
