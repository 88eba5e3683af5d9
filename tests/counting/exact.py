"""Exact tokenizers, as judges of the estimates; tests that need them are skipped where splintr-rs is not installed."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import pytest

NAMES = {
    "o200k": "o200k_base",
    "gemma3": "gemma3",
    "tekken": "mistral_v3",
    "llama3": "llama3",
    "qwen3": "qwen3",
    "deepseek": "deepseek_v3",
    "glm4": "glm4",
    "kimi": "kimi_k2",
}
"""The tokenizers of `segue.counting.tokenizers` -> the names of splintr-rs."""

needed = pytest.mark.skipif(find_spec("splintr") is None, reason="with exact tokenizers (no splintr-rs)")


@lru_cache
def _tokenizer(name: str) -> Any:
    import splintr  # pyright: ignore[reportMissingImports] - an optional judge

    return splintr.Tokenizer.from_pretrained(NAMES[name])


def count(text: str, name: str) -> int:
    """Count the tokens of a text."""
    return len(_tokenizer(name).encode(text))
