"""The environment variables by which the providers' own SDKs are sent to another address: a proxy, a gateway, a test.

Facts:
- Each SDK reads the variable of its row if no base URL is passed, and an empty one does not count.
- The SDKs of the rows with a `path` add it themselves: the variable has the address without it. google-genai adds the
  version of the API that it uses, `v1`; segue's requests are those of `v1beta`.
- `OLLAMA_HOST` may be a host alone, or a host and a port.
  (anthropic 2.8.0, openai 3.49.0, google-genai 3.1.0, cohere 7.3.1, ollama 0.6.3, botocore 1.44.0, groq 1.7.0,
  together 3.1.1, cerebras-cloud-sdk 1.91.0, fireworks-ai 1.2.30, perplexityai 0.46.1; sources read 2026-11-18)
- mistralai 3.7.0 and xai-sdk 1.21.0 read none.                                                  (the same, 2026-11-18)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, final

from segue.errors import SettingsError


@final
class UrlVariable(NamedTuple):
    """A variable with the address of a provider.

    `path` is what the SDK adds to it, so that it is a base URL of segue; `port` is that of a host without a scheme.
    """

    name: str
    path: str = ""
    port: int | None = None


URL_VARIABLES: Final[Mapping[str, tuple[UrlVariable, ...]]] = {
    "amazon-bedrock": (UrlVariable("AWS_ENDPOINT_URL_BEDROCK_RUNTIME"), UrlVariable("AWS_ENDPOINT_URL")),
    "amazon-bedrock-mantle": (UrlVariable("ANTHROPIC_BEDROCK_MANTLE_BASE_URL"),),
    "amazon-bedrock-openai": (UrlVariable("AWS_BEDROCK_BASE_URL"),),
    "anthropic": (UrlVariable("ANTHROPIC_BASE_URL"),),
    "anthropic-aws": (UrlVariable("ANTHROPIC_AWS_BASE_URL"),),
    "anthropic-google-cloud": (UrlVariable("ANTHROPIC_GOOGLE_CLOUD_BASE_URL"),),
    "azure": (UrlVariable("AZURE_OPENAI_ENDPOINT", "/openai/v1"),),
    "azure-anthropic": (UrlVariable("ANTHROPIC_FOUNDRY_BASE_URL"),),
    "cerebras": (UrlVariable("CEREBRAS_BASE_URL", "/v1"),),
    "cohere": (UrlVariable("CO_API_URL"),),
    "fireworks": (UrlVariable("FIREWORKS_BASE_URL", "/v1"),),
    "google": (UrlVariable("GOOGLE_GEMINI_BASE_URL", "/v1beta"),),
    "google-vertex": (UrlVariable("GOOGLE_VERTEX_BASE_URL"),),
    "groq": (UrlVariable("GROQ_BASE_URL", "/openai/v1"),),
    "ollama": (UrlVariable("OLLAMA_HOST", port=11434),),
    "openai": (UrlVariable("OPENAI_BASE_URL"),),
    "perplexity": (UrlVariable("PERPLEXITY_BASE_URL"),),
    "together": (UrlVariable("TOGETHER_BASE_URL", "/v1"),),
}
"""By provider, the first one that is set counts."""


def find_url(provider: str, environment: Mapping[str, str]) -> str | None:
    """Return the base URL of a provider that the environment has.

    Raises:
        SettingsError: the value of the variable is not an HTTP URL.
    """
    for variable in URL_VARIABLES.get(provider, ()):
        if value := environment.get(variable.name, "").strip():
            return _read(variable, value)
    return None


def list_urls(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each provider whose address is set, with the name of the variable."""
    for provider, variables in URL_VARIABLES.items():
        found = [each.name for each in variables if environment.get(each.name, "").strip()]
        if found:
            yield provider, found[0]


def _read(variable: UrlVariable, value: str) -> str:
    if "://" not in value and variable.port is not None:
        host, slash, path = value.rstrip("/").partition("/")
        host = f"127.0.0.1{host}" if host.startswith(":") else host
        has_port = ":" in host.rpartition("]")[2]
        value = f"http://{host}{'' if has_port else f':{variable.port}'}{slash}{path}"
    if not value.lower().startswith(("http://", "https://")):
        # The value is not shown: what is pasted into a wrong variable is often a key.
        raise SettingsError(
            f"the environment variable {variable.name} is not an HTTP URL; correct or unset it, or pass base_url=...",
            key="base_url",
        )
    return value if value.rstrip("/").endswith(variable.path) else value.rstrip("/") + variable.path
