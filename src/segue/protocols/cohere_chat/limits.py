"""Limits of single values in Cohere's chat, version 2; `kit.limits` explains the rows (read 2026-11-17)."""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.limits import Limit, Limits

LIMITS: Final = Limits(
    (
        Limit(
            "messages",
            "Cohere documentation: models, endpoints",
            refused="choose a Command model",
            models=r"^(?:embed|rerank)-",
        ),
        Limit("k", "cohere 7.3.1: from 0 to 500", least=0, most=500),
        Limit("frequency_penalty", "cohere 7.3.1: from 0.0 to 1.0", least=0, most=1),
        Limit("presence_penalty", "cohere 7.3.1: from 0.0 to 1.0", least=0, most=1),
        Limit(
            "safety_mode",
            "Cohere documentation: safety modes, not configurable beside tools and documents (cohere-python #601)",
            excludes=("tools", "documents"),
        ),
        Limit(
            "thinking.type",
            "Cohere documentation: reasoning, command-a-reasoning and newer",
            refused="choose a reasoning model",
            equals="enabled",
            models=r"command-(?:r|a-03|a-vision|a-translate|light|nightly)",
        ),
        Limit(
            "messages.*.content",
            '"invalid request: message must be at least 1 token long" (Risuai #504)',
            least=1,
            when=('.role="user"',),
            advice="add a text",
        ),
    ),
    read="2026-11-17",
)
