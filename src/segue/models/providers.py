"""The table of providers, and how to find a row.

There is one row for each provider; to add an OpenAI-compatible provider, add a row. `first_party` has the providers
that serve their own models (the Chinese ones are in `chinese_labs`), `third_party` those that serve models of others:
hosting companies, gateways, local servers.

Two providers of the catalogue have no row, because segue does not support their protocols: `radius` and `typesafe`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from segue.models.first_party import FIRST_PARTY
from segue.models.provider import Provider
from segue.models.third_party import THIRD_PARTY

__all__ = ["DEFAULT_MODELS", "FAMILIES", "OTHER_NAMES", "PROVIDERS", "Provider", "find_row", "provider_name"]

PROVIDERS: Final[Mapping[str, Provider]] = {row.name: row for row in (*FIRST_PARTY, *THIRD_PARTY)}

DEFAULT_MODELS: Final[Mapping[str, str]] = {
    "amazon-bedrock": "global.anthropic.claude-sonnet-5-5",
    "ant-ling": "Ling-2.6-1T",
    "cerebras": "gpt-oss-120b",
    "cloudflare-workers-ai": "@cf/zai-org/glm-5.3",
    "cohere": "command-a-03-2025",
    "deepseek": "deepseek-v4-pro",
    "fireworks": "accounts/fireworks/models/glm-5p3",
    "groq": "qwen/qwen3.8-27b",
    "kimi-coding": "k3",
    "meta": "muse-spark-1.3",
    "mistral": "mistral-medium-3.5",
    "nvidia": "nvidia/nemotron-3-ultra-550b-a55b",
    "perplexity": "sonar-pro",
    "xai": "grok-4.7",
    **dict.fromkeys(("alibaba", "qwen-token-plan", "qwen-token-plan-cn", "qwen-token-plan-individual"), "qwen3.7-plus"),
    **dict.fromkeys(("anthropic", "cloudflare-ai-gateway", "opencode"), "claude-sonnet-5-5"),
    **dict.fromkeys(("azure", "github-copilot", "openai"), "gpt-6.1-terra"),
    **dict.fromkeys(("baseten", "huggingface", "together"), "zai-org/GLM-5.3"),
    **dict.fromkeys(("google", "google-vertex"), "gemini-3.8-flash"),
    **dict.fromkeys(("minimax", "minimax-cn"), "MiniMax-M3"),
    **dict.fromkeys(("moonshotai", "moonshotai-cn"), "kimi-k3.1-pro"),
    **dict.fromkeys(("opencode-go", "zai", "zai-coding-cn"), "glm-5.3"),
    **dict.fromkeys(("openrouter", "vercel-ai-gateway"), "anthropic/claude-sonnet-5.5"),
    **dict.fromkeys(
        ("xiaomi", "xiaomi-token-plan-ams", "xiaomi-token-plan-cn", "xiaomi-token-plan-sgp"), "mimo-v2.6-pro"
    ),
}
"""The model of each provider that is used if only its key is known: a current one that calls tools, neither the
cheapest nor the most expensive. Chosen from the catalogue, 2026-11-17."""

FAMILIES: Final[Mapping[str, str]] = {
    "claude": "anthropic",
    "command": "cohere",
    "deepseek": "deepseek",
    "gemini": "google",
    "glm": "zai",
    "gpt": "openai",
    "grok": "xai",
    "kimi": "moonshotai",
    "mistral": "mistral",
    "qwen": "alibaba",
}
"""The name of a family alone -> the provider whose default model it means: neither the cheapest nor the most expensive
of the newest, as a question without further wishes needs (`DEFAULT_MODELS`, chosen 2026-11-17)."""

_OTHER_NAMES: Final[Mapping[str, str]] = {
    "alibaba": "dashscope qwen",
    "amazon-bedrock": "aws bedrock bedrock_converse",
    "azure": "azure-openai azure_openai",
    "cloudflare-workers-ai": "cloudflare",
    "fireworks": "fireworks-ai fireworks_ai fireworksai",
    "github-copilot": "github_copilot githubcopilot",
    "google": "gemini google-genai google_genai",
    "google-vertex": "google-cloud google_vertexai vertex vertex-ai vertex_ai vertexai",
    "huggingface": "hf",
    "mistral": "mistralai",
    "moonshotai": "moonshot",
    "openai": "openai-chat openai-responses",
    "openai-codex": "chatgpt",
    "together": "together-ai together_ai togetherai",
    "vercel-ai-gateway": "vercel vercel_ai_gateway vercelaigateway",
    "xai": "x-ai",
    "xiaomi": "xiaomimimo",
    "zai": "zhipu zhipuai",
}
OTHER_NAMES: Final[Mapping[str, str]] = {
    other: name for name, others in _OTHER_NAMES.items() for other in others.split()
}
"""Other names of providers, in lower case.

(models.dev, LiteLLM, LangChain, pydantic-ai, genai-prices and LobeHub: registries of these packages, read 2026-11-16.)
"""


def provider_name(name: str) -> str:
    """Return segue's name of a provider, in lower case; a name that is not in the tables is given back."""
    wanted = name.lower()
    return wanted if wanted in PROVIDERS else OTHER_NAMES.get(wanted, wanted)


@lru_cache(maxsize=256)  # asked for each request
def _host(url: str | None) -> str | None:
    try:
        return urlsplit(url).hostname if url else None
    except ValueError:
        # The client reports an invalid address when it connects.
        return None


_LOCAL: Final = frozenset({"localhost", "127.0.0.1", None})
_BY_HOST: Final[Mapping[str | None, Provider]] = {
    host: row
    for row in reversed(tuple(PROVIDERS.values()))  # if rows share a host, the first one is kept
    for host in [_host(row.base_url)]
    if host not in _LOCAL and "{" not in str(host)
}


def find_row(name: str, base_url: str | None = None) -> Provider | None:
    """Find a row by its name, else by the host of a base URL, for a provider under another name."""
    return PROVIDERS.get(name) or _BY_HOST.get(_host(base_url)) or PROVIDERS.get(OTHER_NAMES.get(name.lower(), ""))
