"""Which spellings name the same model, so that its signatures stay valid from one door to another.

Facts this file rests on:
- A Claude signature made on Bedrock or Vertex is valid at Anthropic and the other way round.
                                            (Anthropic documentation, extended thinking; pydantic-ai #3757)
- The Gemini API and Vertex serve the same Gemini models.                        (Google documentation)
- A gateway that serves other people's models may re-sign or strip: it is nobody's equivalent.   (opencode #6418)
- Bedrock puts a region (`us.`, `global.`, `us-gov.`) or an ARN before a name and a version behind it; Vertex writes
  `@` and a date or `@default`, and may name a model by its resource path.
                                            (AWS and Google documentation; catalogue of 2026-11-15)

Two spellings are the same model when their rows name the same family, the name inside is equal, and the dates are
equal or one of them is missing (`claude-sonnet-4-5` is served as `claude-sonnet-4-5-20250929`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from segue.models.model_ids import CLAUDE_NAME, GEMINI_NAME

_VERTEX_PATH: Final = r"(?:(?:projects/[^/]+/locations/[^/]+/)?publishers/{publisher}/)?(?:models/)?"

_MODEL_ID_PATTERNS: Final[tuple[tuple[str, str, re.Pattern[str]], ...]] = (
    ("claude", "anthropic", re.compile(CLAUDE_NAME)),
    ("claude", "google-vertex", re.compile(_VERTEX_PATH.format(publisher="anthropic") + CLAUDE_NAME + "(?:@default)?")),
    (
        "claude",
        "amazon-bedrock",
        re.compile(rf"(?:arn:[^/]+/)?(?:[a-z-]+\.)?anthropic\.{CLAUDE_NAME}(?:-v\d+)?(?::\d+k?)*"),
    ),
    ("gemini", "google", re.compile(r"(?:models/)?" + GEMINI_NAME)),
    ("gemini", "google-vertex", re.compile(_VERTEX_PATH.format(publisher="google") + GEMINI_NAME)),
)
"""Family, provider, and how that provider spells the name inside the family."""


@lru_cache(maxsize=4096)
def find_model_family_id(provider: str, model_id: str) -> tuple[str, str, str] | None:
    """Read a provider's id as (family, name, date), the date empty when there is none; None: not of a family."""
    for family, name, pattern in _MODEL_ID_PATTERNS:
        if name == provider and (match := pattern.fullmatch(model_id)):
            return family, match["name"], match["date"] or ""
    return None


def is_equivalent(provider: str, model_id: str, other_provider: str, other_id: str) -> bool:
    """Say whether two provider's ids are declared to name the same model."""
    if provider == other_provider and model_id == other_id:
        return True
    one, other = find_model_family_id(provider, model_id), find_model_family_id(other_provider, other_id)
    if one is None or other is None or one[:2] != other[:2]:
        return False
    return one[2] == other[2] or not one[2] or not other[2]
