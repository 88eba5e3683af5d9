"""Limits of single values in Mistral's chat completions; `kit.limits` explains the rows (read 2026-11-17)."""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.limits import Limit, Limits

_SPEC: Final = "Mistral API reference: the bounds of the parameter"

LIMITS: Final = Limits(
    (
        Limit(
            "messages",
            "Mistral documentation: models, endpoints (ruby_llm #451, 2025-10-07, of OCR)",
            refused="choose a chat model",
            models=r"^(?:mistral-ocr|mistral-embed|codestral-embed|mistral-moderation|voxtral-\S*(?:transcribe|tts))",
            providers=("mistral",),
        ),
        Limit(
            "n", '"Number of completions must be 1 for greedy sampling" (Mistral API)', most=1, when=("temperature=0",)
        ),
        Limit("n", _SPEC, least=1),
        Limit("presence_penalty", _SPEC, least=-2, most=2),
        Limit("frequency_penalty", _SPEC, least=-2, most=2),
        Limit(
            "response_format.type",
            '"json_schema" needs a schema (Mistral documentation: custom structured outputs)',
            equals="json_schema",
            needs=("response_format.json_schema",),
        ),
    ),
    read="2026-11-17",
)
