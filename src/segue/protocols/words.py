"""A lower bound of the tokens of a request body: its words.

Facts:
- Tokenizers split a text into words before they join characters; a token never spans two of them.
                                          (the patterns of o200k, llama3, qwen3, deepseek, kimi; read 2026-11-15)
- Providers drop thinking of earlier turns; ids, types and metadata are not part of the prompt. Their words are not
  counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

_REASONING: Final = ("encrypted_content", "reasoning", "reasoning_content", "reasoning_details", "thinking", "thought")
_IDS: Final = ("call_id", "id", "signature", "tool_call_id", "tool_use_id")
_NOT_COUNTED: Final = frozenset({*_REASONING, *_IDS, "data", "metadata", "model", "role", "summary", "type"})


def count_words(value: object) -> int:
    """Count the words of all texts in a body, at least one letter or digit each."""
    if isinstance(value, str):
        return sum(map(_is_word, value.split())) if value else 0
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        return sum(count_words(item) for key, item in items if key not in _NOT_COUNTED)
    if isinstance(value, list | tuple):
        return sum(map(count_words, cast("Sequence[object]", value)))
    return 0


def _is_word(word: str) -> bool:
    return word[0].isalnum() or any(map(str.isalnum, word))
