"""The names that agents and frameworks use for providers, and the protocol of each provider.

One table for all formats: a program that calls a provider `gemini` means the same one as another that calls it
`google_genai`, and a signature is valid only where both are read as the same provider.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_NAMES: Final[Mapping[str, str]] = {
    "openai-native": "openai",
    "gemini": "google",
    "google-gla": "google",
    "google_genai": "google",
    "vertex": "google-vertex",
    "vertex_ai": "google-vertex",
    "google_vertexai": "google-vertex",
    "bedrock": "amazon-bedrock",
    "bedrock_converse": "amazon-bedrock",
    "aws_bedrock": "amazon-bedrock",
    "aws.bedrock": "amazon-bedrock",
    "mistralai": "mistral",
    "mistral_ai": "mistral",
    "together_ai": "together",
    "fireworks_ai": "fireworks-ai",
    "azure": "azure-openai-responses",
    "x-ai": "xai",
    "grok": "xai",
}
"""Names of programs -> names of the catalogue; any other name is the same in both."""
_PROTOCOLS: Final[Mapping[str, str]] = {
    "anthropic": "anthropic-messages",
    "openai": "openai-responses",
    "google": "google-genai",
    "google-vertex": "google-genai",
    "amazon-bedrock": "bedrock-converse",
    "mistral": "mistral-chat",
    "cohere": "cohere-chat",
    "ollama": "ollama-chat",
}
"""The protocol of each provider that has one of its own, by the name in the catalogue."""


def catalogue_name(provider: str) -> str:
    """Give the name that the catalogue has for a provider."""
    return _NAMES.get(provider, provider)


def own_protocol(provider: str) -> str | None:
    """Give the protocol of a provider of the catalogue that has one of its own; None if it has none."""
    return _PROTOCOLS.get(provider)
