"""Exact counts of texts by public tokenizers, with the extra `tokenizers`.

The vocabularies are part of the package splintr-rs: nothing is downloaded. Providers do not publish the tokenizers of
Claude, Command, Grok and Nova.   (splintr-rs 0.22.0, read 2026-11-17)
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Protocol, cast

from segue.counting.counter import TextCounter
from segue.counting.families import find_family
from segue.errors import MissingExtra, SettingsError
from segue.models.catalogue import get_model
from segue.models.model import Model

VOCABULARIES: Final[dict[str, str]] = {
    "o200k": "o200k_base",
    "gemma3": "gemma3",
    "tekken": "mistral_v3",
    "llama3": "llama3",
    "qwen3": "qwen3",
    "deepseek": "deepseek_v3",
    "glm4": "glm4",
    "kimi": "kimi_k2",
}
"""The tokenizers of families -> the names of splintr-rs."""


class _Vocabulary(Protocol):
    def encode_ordinary(self, text: str, /) -> list[int]: ...


def exact_counter(model: Model | str) -> TextCounter:
    """Return a counter of texts with the public tokenizer of a model, for `Policy(counter=...)`.

    Loading a vocabulary takes a second, counting ten times as long as the estimate.

    Raises:
        MissingExtra: the extra `tokenizers` is not installed.
        SettingsError: the tokenizer of the model is not public.
        UnknownModel: the catalogue has no model of that name.
    """
    target = get_model(model)
    family = find_family(target)
    name = VOCABULARIES.get(family.tokenizer)
    if name is None:
        message = f"{target.full_name()}: no public tokenizer is known; leave `counter` out to estimate its tokens"
        raise SettingsError(message, key="counter")
    return _counter(name)


@lru_cache(maxsize=len(VOCABULARIES))
def _counter(name: str) -> TextCounter:
    try:
        import splintr  # pyright: ignore[reportMissingImports, reportMissingTypeStubs] - loaded where it is used
    except ImportError:
        raise MissingExtra("exact token counts need the package splintr-rs", extra="tokenizers") from None
    vocabulary = cast("_Vocabulary", splintr.Tokenizer.from_pretrained(name))  # pyright: ignore[reportUnknownMemberType]

    def count(text: str) -> int:
        # The names of special tokens in a text are text; half a surrogate pair counts as its replacement.
        return len(vocabulary.encode_ordinary(text.encode("utf-8", "replace").decode()))

    return count
