"""The record of one family of models that are counted alike; its rows are in `families`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import final

import msgspec

from segue.counting.media import ImageRule, by_area
from segue.counting.tokenizers import TOKENIZERS, Tokenizer
from segue.models.model import Model


@final
class TokenFamily(msgspec.Struct, frozen=True, kw_only=True):
    """The constants of one family. The first row wins whose pattern, protocols and providers match a model."""

    name: str
    pattern: str = ""
    """A regular expression, searched in the id, case ignored; empty matches every model."""
    protocols: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    tokenizer: str
    base: int
    message: int
    thinking: int = 0
    """Added while thinking is enabled."""
    tools: int = 20
    """Added once if the request has tools."""
    chosen: int = 0
    """Added if the request names a tool choice, whichever it is."""
    forced: int = 0
    """Added if a tool choice is forced."""
    tool: int = 8
    tool_factor: float = 0.8
    """How much of the words of tools counts: names, descriptions, and the keys and values of schemas."""
    tool_key: float = 2.0
    """Added for each key of the schemas: the punctuation around it."""
    prose: bool = True
    """Whether the weights are those of a vocabulary, which count the texts of conversations a little too high."""
    declared_tools: bool = False
    """Tools are written as declarations in TypeScript. Of a schema, only the names and descriptions of properties and
    their allowed values count, and `tool_key` is added for each property."""
    call: int = 10
    """Added for each call with its result."""
    bare_json: bool = False
    """Whether JSON in calls and results counts without its punctuation."""
    parallel: int = 0
    """Added if a turn has several calls."""
    unused_tools: bool = True
    """Whether tools count although the tool choice is `none`."""
    schema: int = 0
    """Added once if the request has an output schema."""
    schema_factor: float = 0.8
    """How much of the tokens of an output schema counts."""
    signature: float = 0.0
    """Tokens per character of a signature that is replayed."""
    signature_overhead: int = 0
    """Characters of a signature that count for nothing: keys and padding."""
    drops_thinking: bool = False
    """Thinking counts only until the next user message."""
    error: float = 0.17
    """How far the count of texts and tools can be off, as a part of it, for 95 of 100 requests."""
    spread: int = 60
    """How many tokens the constants can be off, either way."""
    hidden: int = 0
    """How many tokens a prompt of the provider's own may add to some requests."""
    hidden_in_all: bool = True
    """Whether a request that has such a prompt is followed by requests that have it, too."""
    image: ImageRule = by_area(750, 10)
    page: int = 700
    """The tokens of one page of a PDF."""

    def includes(self, model: Model) -> bool:
        """Whether a model belongs to the family."""
        if self.protocols and model.protocol not in self.protocols:
            return False
        if self.providers and model.provider not in self.providers:
            return False
        return (
            not self.pattern or _compiled(self.pattern).search(model.id, 0, 300) is not None
        )  # ids are shorter, and a client may send any

    @property
    def weights(self) -> Tokenizer:
        """The weights of the family's tokenizer."""
        return TOKENIZERS[self.tokenizer]


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
