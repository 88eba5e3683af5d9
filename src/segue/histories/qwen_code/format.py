"""The record of Qwen Code."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_parts
from segue.models.model import Model

FORMAT: Final = Format(
    **read_parts(__package__),
    title="Qwen Code",
    wire="google-genai",
    place=Place(
        folder=".qwen",
        variables=("QWEN_RUNTIME_DIR", "QWEN_HOME"),
        patterns=("projects/*/chats/*.jsonl", "tmp/*/chats/*.jsonl"),
    ),
    example=Model("gemini-2.5-pro", "google", "google-genai", reasoning=True, max_tokens=8000),
    source="Qwen Code 0.15.10, run against a scripted model; its source",
    read_on="2026-11-16",
)
