"""The meaning of the flags of the catalogue's sources: tables for `update_catalogue.py`.

Overrides are applied in this order; the later wins:
1. pi's `compat` flags: `PASSED_ON`, `MEANINGS`, `DEPENDING`. Flags in `LEFT_OUT` do not affect requests. If a flag is
   in none of them, pi is not used until it is added.
2. litellm's flags: `ROW_FLAGS`.

What applies to all models of a provider is maintained by hand in `segue.models.providers`, and what follows from the id
of a model in the families of each protocol. The catalogue has what applies to one model.

Sources: npm `@earendil-works/pi-ai` 1.5.0 and PyPI `litellm` 1.108.4, read 2026-11-15; others beside their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

import msgspec

from segue.models.model_ids import is_claude

Fields: TypeAlias = Mapping[str, object]
"""Fields of `Rules` or of `Dialect`, by name."""


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    """The rules and dialect fields that a model overrides."""

    rules: Fields = msgspec.field(default_factory=dict[str, object])
    dialect: Fields = msgspec.field(default_factory=dict[str, object])


PROTOCOLS: Final[Mapping[str, str]] = {
    "anthropic-messages": "anthropic-messages",
    "azure-openai-responses": "openai-responses",
    "bedrock-converse-stream": "bedrock-converse",
    "google-generative-ai": "google-genai",
    "google-vertex": "google-genai",
    "mistral-conversations": "mistral-chat",
    "openai-codex-responses": "openai-responses",
    "openai-completions": "openai-chat",
    "openai-responses": "openai-responses",
}
"""pi's name of an API -> segue's. Models of any other API are left out and counted."""

ADDED_UP: Final = frozenset({"refused_options"})
"""Fields whose values from several sources are combined."""

# -- 1. pi's flags ----------------------------------------------------------------------------------------------------

PASSED_ON: Final[Mapping[str, str]] = {
    "cacheControlFormat": "cache_format",
    "maxTokensField": "max_tokens_field",
    "requiresToolResultName": "result_name",
    "supportsCacheControlOnTools": "cache_on_tools",
    "supportsDeveloperRole": "developer_role",
    "supportsFinishReason": "finish_reason",
    "supportsReasoningEffort": "effort",
    "supportsStore": "store",
    "supportsStrictMode": "strict_tools",
    "supportsStrictTools": "strict_tools",
    "supportsUsageInStreaming": "usage_in_stream",
    "thinkingTokenBudgetField": "thinking_budget_field",
    "zaiToolStream": "tool_stream",
}
"""Flag -> the field of the dialect with the same meaning and the same values."""

MEANINGS: Final[Mapping[str, tuple[object, Overrides]]] = {
    "cacheControlFormat": ("anthropic", Overrides(rules={"cache_marks": 4})),
    # With adaptive thinking earlier turns need not begin with a thinking block; with a budget they have to.
    # (Anthropic documentation: adaptive thinking, validation changes, 2026-11-15)
    "forceAdaptiveThinking": (
        True,
        Overrides(rules={"thinking_before_calls": False}, dialect={"thinking_format": "adaptive"}),
    ),
    "requiresAssistantAfterToolResult": (True, Overrides(rules={"user_after_result": False})),
    "requiresReasoningContentOnAssistantMessages": (True, Overrides(rules={"reasoning_replay": "required"})),
    "requiresThinkingAsText": (True, Overrides(rules={"reasoning_replay": "none"})),
    "supportsMaxOutputTokens": (False, Overrides(dialect={"max_tokens_field": "none"})),
    # pi leaves the temperature out; the models that carry the flag refuse all sampling parameters.
    # (Anthropic documentation: migration guide, 2026-11-15)
    "supportsTemperature": (False, Overrides(rules={"refused_options": ["temperature", "top_p"]})),
    "supportsThinkingTokenBudget": (True, Overrides(dialect={"thinking_budget_field": "thinking_token_budget"})),
}
"""Flag -> the value that has a meaning, and the meaning."""

THINKING_FORMATS: Final[Mapping[object, str]] = {
    "ant-ling": "ling",
    "baseten": "baseten",
    "chat-template": "chat-template",
    "deepseek": "deepseek",
    "openai": "effort",
    "openrouter": "openrouter",
    "qwen": "qwen",
    "qwen-chat-template": "qwen-template",
    "string-thinking": "word",
    "together": "together",
    "zai": "zai",
}


class Flagged(NamedTuple):
    """The fields of a model that the meaning of a flag depends on."""

    id: str
    provider: str
    protocol: str
    compat: Fields


def _empty_signature(model: Flagged) -> Overrides:
    # Unsigned thinking is accepted, so thinking of any model can be sent. But Claude checks signatures behind every
    # gateway and refuses an empty one. (Anthropic documentation: extended thinking, 2026-11-15)
    if not model.compat["allowEmptySignature"] or is_claude(model.id):
        return Overrides()
    return Overrides(rules={"reasoning_replay": "open"}, dialect={"empty_signature": True})


def _system_messages(model: Flagged) -> Overrides:
    # Claude accepts them only right before an assistant turn, or last. (Anthropic documentation, 2026-11-15)
    where = "before_assistant" if model.protocol == "anthropic-messages" else "anywhere"
    return Overrides(rules={"system_messages": where if model.compat["supportsMidConvoSystemMessages"] else "none"})


def _session_header(model: Flagged) -> Overrides:
    # With anthropic-messages pi sends only `x-session-affinity`; the format without `session_id` is the nearest.
    default = {"openrouter": "openrouter"}.get(model.provider)
    default = default or ("openai-nosession" if model.protocol == "anthropic-messages" else "openai")
    # With the Responses API pi always sends the header, so a format without a switch is enough.
    on = model.compat.get("sendSessionAffinityHeaders", model.protocol == "openai-responses")
    return Overrides(dialect={"session_header": model.compat.get("sessionAffinityFormat", default) if on else "none"})


def _cache_long(model: Flagged) -> Overrides:
    if model.compat.get("supportsLongCacheRetention") is False:
        return Overrides(dialect={"cache_long": "none"})
    if model.compat.get("supportsExplicitPromptCacheMode"):
        return Overrides(dialect={"cache_long": "30m"})
    return Overrides(dialect={"cache_long": "1h" if model.protocol == "anthropic-messages" else "24h"})


def _thinking_format(model: Flagged) -> Overrides:
    return Overrides(dialect={"thinking_format": THINKING_FORMATS[model.compat["thinkingFormat"]]})


DEPENDING: Final[Mapping[str, Callable[[Flagged], Overrides]]] = {
    "allowEmptySignature": _empty_signature,
    "sendSessionAffinityHeaders": _session_header,
    "sessionAffinityFormat": _session_header,
    "supportsExplicitPromptCacheMode": _cache_long,
    "supportsLongCacheRetention": _cache_long,
    "supportsMidConvoSystemMessages": _system_messages,
    "thinkingFormat": _thinking_format,
}
"""Flag -> the function that converts it, with the model that has it."""

LEFT_OUT: Final[Mapping[str, str]] = {
    "allowedFallbackModels": "models that may answer instead, on request; segue does not request it",
    "chatTemplateArgs": "the switch of the `baseten` format, the same for every model that has it",
    "chatTemplateKwargs": "template arguments of self-hosted models, which the caller chooses",
    "openRouterRouting": "a preference of the caller, not a fact about a model",
    "supportsAdditionalTools": "tools that are added during a conversation; segue's tools apply to the whole request",
    "supportsEagerToolInputStreaming": "earlier streaming of arguments, which segue does not request",
    "supportsMidConvoEffort": "a change of effort during a conversation; segue's options apply to the whole request",
    "supportsMidConvoToolAdditions": "as supportsAdditionalTools",
    "supportsMidConvoToolChanges": "as supportsAdditionalTools",
    "supportsOpenAIGrammarTools": "custom tools; segue sends those of the caller, whatever the model",
    "supportsToolSearch": "a server tool; the rule `server_tools` says who has it",
    "vercelGatewayRouting": "a preference of the caller, not a fact about a model",
    "vllmPriority": "a preference of the caller, not a fact about a model",
}
"""Flags that do not affect requests, each with the reason."""

# -- 2. litellm's flags -----------------------------------------------------------------------------------------------

BEDROCK: Final = frozenset({"bedrock-converse"})
CLAUDE: Final = frozenset({"anthropic-messages", "bedrock-converse"})
OPENAI: Final = frozenset({"openai-chat", "openai-responses"})
ALL: Final = frozenset(PROTOCOLS.values())


class RowFlag(NamedTuple):
    """A flag of litellm: if it has the `expected` value, with these protocols, the overrides apply.

    `relayed` marks a fact about the model itself, which also applies behind a relay.
    """

    key: str
    expected: bool
    protocols: frozenset[str]
    relayed: bool
    overrides: Overrides


def _refusal(key: str, protocols: frozenset[str], *, relayed: bool = False, **rules: object) -> RowFlag:
    return RowFlag(key, expected=False, protocols=protocols, relayed=relayed, overrides=Overrides(rules=rules))


ROW_FLAGS: Final[tuple[RowFlag, ...]] = (
    _refusal("supports_sampling_params", ALL, relayed=True, refused_options=["temperature", "top_p"]),
    _refusal("supports_assistant_prefill", ALL, relayed=True, last_assistant=False),
    _refusal("supports_forced_tool_use", ALL - BEDROCK, relayed=True, tool_choices=["auto", "none"]),
    # Bedrock does not support `none`, and some of its models have no tool choice at all.
    _refusal("supports_forced_tool_use", BEDROCK, tool_choices=["auto"]),
    _refusal("supports_tool_choice", BEDROCK, tool_choices=[]),
    _refusal("supports_function_calling", ALL, tools=False),
    _refusal("supports_parallel_function_calling", OPENAI, relayed=True, refused_options=["parallel_tool_calls"]),
    _refusal("supports_response_schema", ALL, relayed=True, refused_options=["output_schema"]),
    _refusal("supports_native_structured_output", BEDROCK, refused_options=["output_schema"]),
    _refusal("supports_bedrock_converse_tool_result_images", BEDROCK, result_media=[]),
    RowFlag(
        "bedrock_converse_supports_strict_tools",
        expected=False,
        protocols=BEDROCK,
        relayed=False,
        overrides=Overrides(dialect={"strict_tools": False}),
    ),
    RowFlag(
        "supports_mid_conversation_system",
        expected=True,
        protocols=frozenset({"anthropic-messages"}),
        relayed=False,
        overrides=Overrides(rules={"system_messages": "before_assistant"}),
    ),
    RowFlag(
        "supports_adaptive_thinking",
        expected=True,
        protocols=CLAUDE,
        relayed=False,
        overrides=Overrides(rules={"thinking_before_calls": False}, dialect={"thinking_format": "adaptive"}),
    ),
)

# -- which row of litellm is which model ------------------------------------------------------------------------------

ROW_PREFIXES: Final[Mapping[str, tuple[str, ...]]] = {
    "amazon-bedrock": ("",),
    "anthropic": ("",),
    "azure": ("azure/", "azure_ai/"),
    "baseten": ("baseten/",),
    "cerebras": ("cerebras/",),
    "cloudflare-workers-ai": ("cloudflare/",),
    "deepseek": ("deepseek/",),
    "fireworks": ("fireworks_ai/",),
    "github-copilot": ("github_copilot/",),
    "google": ("gemini/",),
    "google-vertex": ("", "vertex_ai/"),
    "groq": ("groq/",),
    "meta": ("meta/",),
    "minimax": ("minimax/",),
    "minimax-cn": ("minimax/",),
    "mistral": ("mistral/",),
    "moonshotai": ("moonshot/",),
    "moonshotai-cn": ("moonshot/",),
    "openai": ("",),
    "openai-codex": ("chatgpt/",),
    "openrouter": ("openrouter/",),
    "qwen-token-plan": ("dashscope/",),
    "qwen-token-plan-cn": ("dashscope/",),
    "qwen-token-plan-individual": ("dashscope/",),
    "together": ("together_ai/",),
    "vercel-ai-gateway": ("vercel_ai_gateway/",),
    "xai": ("xai/",),
    "xiaomi": ("xiaomi_mimo/",),
    "xiaomi-token-plan-ams": ("xiaomi_mimo/",),
    "xiaomi-token-plan-cn": ("xiaomi_mimo/",),
    "xiaomi-token-plan-sgp": ("xiaomi_mimo/",),
    "zai": ("zai/",),
    "zai-coding-cn": ("zai/",),
}
"""Provider -> the prefix of the id in litellm's keys."""

RELAYS: Final = frozenset({"cloudflare-ai-gateway", "opencode", "opencode-go", "openrouter", "vercel-ai-gateway"})
"""Providers that forward requests to the first-party providers below, so that the model is the same."""

FIRST_PARTY: Final[Mapping[str, str]] = {"anthropic": "", "openai": "", "google": "gemini/", "xai": "xai/"}
"""First-party provider -> the prefix of the id in litellm's keys."""


class RowProvider(NamedTuple):
    """A provider whose models of litellm's table are listed too, with the protocol of those that pi does not list."""

    provider: str
    protocol: str
    prefix: str = ""


ROW_PROVIDERS: Final[Mapping[str, RowProvider]] = {
    "anthropic": RowProvider("anthropic", "anthropic-messages"),
    "azure": RowProvider("azure", "openai-responses", "azure/"),
    "bedrock": RowProvider("amazon-bedrock", "bedrock-converse"),
    "bedrock_converse": RowProvider("amazon-bedrock", "bedrock-converse"),
    "cerebras": RowProvider("cerebras", "openai-chat", "cerebras/"),
    "cohere_chat": RowProvider("cohere", "cohere-chat"),
    "dashscope": RowProvider("alibaba", "openai-chat", "dashscope/"),
    "deepseek": RowProvider("deepseek", "openai-chat", "deepseek/"),
    "gemini": RowProvider("google", "google-genai", "gemini/"),
    "groq": RowProvider("groq", "openai-chat", "groq/"),
    "minimax": RowProvider("minimax", "anthropic-messages", "minimax/"),
    "mistral": RowProvider("mistral", "mistral-chat", "mistral/"),
    "moonshot": RowProvider("moonshotai", "openai-chat", "moonshot/"),
    "openai": RowProvider("openai", "openai-responses"),
    "perplexity": RowProvider("perplexity", "openai-chat", "perplexity/"),
    "together_ai": RowProvider("together", "openai-chat", "together_ai/"),
    "vertex_ai-anthropic_models": RowProvider("google-vertex", "anthropic-messages", "vertex_ai/"),
    "vertex_ai-language-models": RowProvider("google-vertex", "google-genai"),
    "xai": RowProvider("xai", "openai-responses", "xai/"),
    "zai": RowProvider("zai", "openai-chat", "zai/"),
}
"""litellm's name of a provider -> how its models are listed."""

CHAT_ONLY: Final = r"(?<!re)search|audio"
"""Models of OpenAI that only Chat Completions serves; deep research is not a search. (OpenAI documentation: models)"""

NOT_LISTED: Final = r"^ft:|embed|moderation|/|^claude-(?:2\.1|instant|.*:0$|3-(?:5-)?[a-z]+$)"
"""Keys of litellm's table that are not listed: fine-tuned models as a pattern, regions of a cloud, ids of two forms.

Claude 3 without a date is retired, and without a provider it would be the model of a cloud.
"""


class AddedModel(NamedTuple):
    """A model that neither source lists yet: like another one of the provider, with other prices.

    Without prices, none were found, and its limits are taken to be those of the other one.
    """

    name: str
    title: str
    like: str
    price: tuple[float, float, float, float, float] | None
    source: str


ADDED: Final[tuple[AddedModel, ...]] = (
    AddedModel(
        "anthropic/claude-fable-5-2",
        "Claude Fable 5.2",
        "anthropic/claude-fable-5-1",
        (8.0, 40.0, 0.2, 10.0, 16.0),
        "Anthropic documentation: models overview, pricing; released 2026-11-09, read 2026-11-16",
    ),
    AddedModel(
        "anthropic/claude-mythos-5-2",
        "Claude Mythos 5.2",
        "anthropic/claude-fable-5-1",
        (8.0, 40.0, 0.2, 10.0, 16.0),
        "the same",
    ),
    AddedModel(
        "google/gemini-4-carbon",
        "Gemini 4 Carbon",
        "google/gemini-4-argon",
        None,
        "google-genai 3.1.0: Model of Interactions, read 2026-11-17",
    ),
)
"""Prices of input, output, cache reads, cache writes and those for an hour, in US dollars for a million tokens."""

LEVELS: Final[Mapping[str, Mapping[str, str | None]]] = {
    r"^deepseek/deepseek-v4": {
        "minimal": None,
        "low": "low",
        "medium": None,
        "high": "high",
        "xhigh": "high",
        "max": "max",
    },
    r"^(?:anthropic|google-vertex)/claude-sonnet-5-5": {"off": "between_tools"},
}
"""Patterns of full names -> values of thinking levels that pi has otherwise.

Sonnet 5.5 always thinks; between the calls of tools alone is the least that it has.
(anthropic 2.8.0; Anthropic documentation: Claude Sonnet 5.5, 2026-09-28)

DeepSeek has the efforts low, high and max: it reads minimal as low, medium and xhigh as high.
(DeepSeek documentation: thinking mode, 2026-11-16)
"""

RETIRED: Final[Mapping[str, str]] = {
    "2024-09-13": "gpt-3.5-turbo-16k gpt-3.5-turbo-0301 gpt-3.5-turbo-0613 gpt-3.5-turbo-16k-0613",
    "2025-06-06": "gpt-4-32k gpt-4-32k-0314 gpt-4-32k-0613",
    "2025-07-28": "o1-preview o1-preview-2024-09-12",
    "2025-10-10": "gpt-4o-audio-preview-2024-10-01",
    "2025-10-27": "o1-mini",
    "2026-02-12": "codex-mini-latest",
    "2026-02-17": "chatgpt-4o-latest",
    "2026-03-26": "gpt-4-turbo-preview",
    "2026-05-07": "gpt-4o-audio-preview gpt-4o-audio-preview-2024-12-17 gpt-4o-audio-preview-2025-06-03"
    " gpt-4o-mini-audio-preview gpt-4o-mini-audio-preview-2024-12-17",
    "2026-07-23": "gpt-4o-search-preview gpt-4o-mini-search-preview",
    "2026-12-11": "gpt-5 gpt-5-mini gpt-5-nano o3 o3-pro gpt-5-pro",
    "2027-01-14": "gpt-4.1 gpt-4.1-mini gpt-4o gpt-4o-mini",
    "2027-04-01": "gpt-5.4-nano-2026-03-17 gpt-5.1-2025-11-13",
}
"""The day on which OpenAI shuts down models, or did, where litellm has none or another; ids of `openai`.

(openai 3.49.0: "Deprecated values" of the parameter `model`, read 2026-11-17)
"""
