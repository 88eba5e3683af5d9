"""Decide which model ids of different providers name the same model, so that signatures are valid at both.

Facts:
- A Claude signature made on Bedrock or Vertex is valid at Anthropic and the other way round, for models before Sonnet
  5.5; later ones are bound to the account: see `models.readers`.
                                            (Anthropic documentation, extended thinking; pydantic-ai #3757)
- The Gemini API and Vertex refuse each other's signatures, for the same Gemini too: they are two families here.
                                            (litellm #32140, #24571; OpenRouterTeam/ai-sdk-provider #491; mastra #23433)
- A gateway that serves models of others may replace or remove signatures: its ids are equivalent to no other.
                                            (opencode #6418)
- Bedrock ids have a region (`us.`, `global.`, `us-gov.`) or an ARN before the name and a version after it. Vertex ids
  end in `@` and a date or `@default`, and may be a resource path.
                                            (AWS and Google documentation; catalogue of 2026-11-15)

Two ids name the same model if their family and name are equal, and their dates are equal or one has no date
(`claude-sonnet-4-5` is served as `claude-sonnet-4-5-20250929`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from segue.models.model_ids import CLAUDE_NAME, GEMINI_NAME

_VERTEX_PATH: Final = r"(?:(?:projects/[^/]+/locations/[^/]+/)?publishers/{publisher}/)?(?:models/)?"

_MODEL_ID_PATTERNS: Final[tuple[tuple[str, str, str], ...]] = (
    ("claude", "anthropic", CLAUDE_NAME),
    ("claude", "google-vertex", _VERTEX_PATH.format(publisher="anthropic") + CLAUDE_NAME + "(?:@default)?"),
    (
        "claude",
        "amazon-bedrock",
        rf"(?:arn:[^/]+/)?(?:[a-z-]+\.)?anthropic\.{CLAUDE_NAME}(?:-v\d+)?(?::\d+k?)*",
    ),
    ("gemini", "google", r"(?:models/)?" + GEMINI_NAME),
    ("gemini-vertex", "google-vertex", _VERTEX_PATH.format(publisher="google") + GEMINI_NAME),
)
"""Family, provider, and the pattern of that provider's ids; it is compiled when an id of that provider is read."""


@lru_cache(maxsize=4096)
def find_model_family_id(provider: str, model_id: str) -> tuple[str, str, str] | None:
    """Parse a provider's id into (family, name, date), the date empty if there is none; None if no family matches."""
    for family, name, pattern in _MODEL_ID_PATTERNS:
        if name == provider and (match := re.fullmatch(pattern, model_id)):
            return family, match["name"], match["date"] or ""
    return None


def is_equivalent(provider: str, model_id: str, other_provider: str, other_id: str) -> bool:
    """Whether the ids of two providers name the same model."""
    if provider == other_provider and model_id == other_id:
        return True
    one, other = find_model_family_id(provider, model_id), find_model_family_id(other_provider, other_id)
    if one is None or other is None or one[:2] != other[:2]:
        return False
    return one[2] == other[2] or not one[2] or not other[2]
