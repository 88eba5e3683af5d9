"""What a provider counts besides the texts of a request, for each family of models, as rows.

A count is the tokens of all texts plus constants: for the request, for each message, once if there are tools, for each
tool, for each call with its result. On short requests these constants are most of the count.

Facts this file rests on: the usage of 2,086 recorded requests, compared with exact tokenizers (measured 2026-11-15).
- OpenAI: 3 and 4 a message, exactly; tools are written as TypeScript, so that `$schema`, `title` and
  `additionalProperties` count for nothing, and with 90 more on Chat from GPT-5 on. Gemini and Claude count the
  punctuation of schemas too.
                                                      (182 recorded requests with tools, 2026-11-17)
- Claude: tools add a hidden prompt, a forced choice another one; a call with its result adds 55 to 65 tokens.
- Gemini: 1 a content from 2.5 on; on Vertex nothing, and tools next to nothing. Output schemas are not counted.
- Signatures count on the Gemini API from Gemini 3 on, one token for 4.8 characters beyond the first 120, in
  every turn; not on Vertex.
- OpenAI counts encrypted reasoning only while its tool cycle runs; Claude up to 4.5 Sonnet its thinking likewise. Opus
  4.5 counted the thinking of earlier turns too.
- Hosts add system prompts of their own to open models (DeepSeek, GLM, Command, Llama), so that rows of these vary.
- Grok 4 Fast adds 155 to 185 tokens to every request, Command R7B 490; Grok 3 none. Compound searches by itself: 4,300
  tokens were counted for one sentence.                                       (recorded usage, 2026-11-17)
- Images: recorded counts minus the estimate of the rest; see `media`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, final

import msgspec

from segue.counting.media import ImageRule, by_area, by_patches, by_tiles, constant
from segue.counting.tokenizers import TOKENIZERS, Tokenizer
from segue.models.model import Model
from segue.models.model_ids import (
    CLAUDE,
    CLAUDE_3,
    CLAUDE_4_5_AND_4_6,
    CLAUDE_UP_TO_4_5,
    GEMINI_3_ON,
    GEMINI_UP_TO_2_0,
    OPENAI_4_1_SMALL,
    OPENAI_5_ON,
    OPENAI_UP_TO_4_1,
)

_PATCHES_OF_OPENAI: Final = by_patches(side=32, factor=1.2, most=2100)


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
    declared_tools: bool = False
    """Tools are written as declarations in TypeScript. Of a schema, only the names and descriptions of properties and
    their allowed values count, and `tool_key` is added for each property."""
    call: int = 10
    """Added for each call with its result."""
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
    image: ImageRule = by_area(750, 10)
    page: int = 700
    """The tokens of one page of a PDF."""

    def includes(self, model: Model) -> bool:
        """Whether a model belongs to the family."""
        if self.protocols and model.protocol not in self.protocols:
            return False
        if self.providers and model.provider not in self.providers:
            return False
        return not self.pattern or _compiled(self.pattern).search(model.id) is not None

    @property
    def weights(self) -> Tokenizer:
        """The weights of the family's tokenizer."""
        return TOKENIZERS[self.tokenizer]


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


FAMILIES: Final[tuple[TokenFamily, ...]] = (
    # -- Claude
    TokenFamily(
        name="Claude 4.5 and 4.6",
        pattern=CLAUDE_4_5_AND_4_6,
        tokenizer="claude",
        base=7,
        message=1,
        thinking=28,
        tools=505,
        forced=95,
        tool=5,
        tool_factor=1.0,
        tool_key=3.0,
        call=55,
        schema_factor=1.8,
        page=2600,
        schema=80,
        spread=90,
    ),
    TokenFamily(
        name="Claude 3",
        pattern=CLAUDE_3,
        tokenizer="claude",
        base=5,
        message=2,
        tools=310,
        forced=75,
        tool=0,
        tool_factor=1.0,
        tool_key=1.0,
        call=60,
        schema_factor=1.5,
        page=2600,
        spread=90,
    ),
    TokenFamily(
        name="Claude up to 4.1",
        pattern=CLAUDE_UP_TO_4_5,
        tokenizer="claude",
        base=5,
        message=2,
        thinking=28,
        tools=335,
        tool=0,
        tool_factor=1.0,
        tool_key=1.0,
        call=60,
        schema_factor=1.5,
        drops_thinking=True,
        page=2600,
        spread=90,
    ),
    TokenFamily(
        name="Claude 4.7 and later",
        pattern=CLAUDE,
        tokenizer="claude-4.7",
        base=6,
        message=1,
        tools=380,
        forced=85,
        tool=10,
        tool_factor=1.0,
        tool_key=3.0,
        call=60,
        schema_factor=2.0,
        page=2600,
        error=0.25,
        spread=90,
    ),
    # -- OpenAI
    TokenFamily(
        name="gpt-oss",
        pattern=r"gpt-oss",
        tokenizer="o200k",
        base=67,
        message=3,
        tools=70,
        tool=7,
        tool_factor=1.0,
        tool_key=3.3,
        declared_tools=True,
        schema=70,
        spread=30,
        hidden=120,
    ),
    TokenFamily(
        name="GPT up to 4.1, in patches",
        pattern=OPENAI_4_1_SMALL,
        tokenizer="o200k",
        base=3,
        message=4,
        tools=13,
        tool=5,
        tool_factor=1.0,
        tool_key=5.0,
        call=12,
        schema_factor=0.55,
        image=by_patches(side=32, factor=2.46, most=1536),
        forced=7,
        declared_tools=True,
        schema=12,
        spread=20,
        hidden=220,
    ),
    TokenFamily(
        name="GPT up to 4.1",
        pattern=OPENAI_UP_TO_4_1,
        tokenizer="o200k",
        base=3,
        message=4,
        tools=13,
        tool=5,
        tool_factor=1.0,
        tool_key=5.0,
        call=12,
        schema_factor=0.55,
        image=by_tiles(85, 170),
        forced=7,
        declared_tools=True,
        schema=12,
        spread=20,
        hidden=220,
    ),
    TokenFamily(
        name="GPT-5 and later, o-series, over Responses",
        pattern=OPENAI_5_ON,
        protocols=("openai-responses",),
        tokenizer="o200k",
        base=2,
        message=4,
        tools=15,
        tool=7,
        tool_factor=1.0,
        tool_key=3.3,
        call=18,
        signature=0.18,
        signature_overhead=1000,
        drops_thinking=True,
        image=_PATCHES_OF_OPENAI,
        declared_tools=True,
        schema=12,
        schema_factor=0.55,
        spread=20,
    ),
    TokenFamily(
        name="GPT-5 and later, o-series, at a router",  # which calls Responses behind the chat protocol
        pattern=OPENAI_5_ON,
        providers=("openrouter", "vercel-ai-gateway"),
        tokenizer="o200k",
        base=2,
        message=4,
        tools=15,
        tool=7,
        tool_factor=1.0,
        tool_key=3.3,
        call=18,
        image=_PATCHES_OF_OPENAI,
        declared_tools=True,
        spread=20,
    ),
    TokenFamily(
        name="GPT-5 and later, o-series",
        pattern=OPENAI_5_ON,
        tokenizer="o200k",
        base=2,
        message=4,
        tools=96,
        tool=7,
        tool_factor=1.0,
        tool_key=3.3,
        call=18,
        schema_factor=0.55,
        image=_PATCHES_OF_OPENAI,
        declared_tools=True,
        schema=12,
        spread=20,
    ),
    # -- Google
    TokenFamily(
        name="Gemini 1.5 and 2.0",
        pattern=GEMINI_UP_TO_2_0,
        tokenizer="gemma3",
        base=0,
        message=0,
        tools=0,
        tool=3,
        tool_factor=0.3,
        tool_key=0.2,
        call=5,
        schema_factor=0.2,
        image=constant(258),
        page=258,
        spread=35,
    ),
    TokenFamily(
        name="Gemini 3 and later on Vertex",
        pattern=GEMINI_3_ON,
        providers=("google-vertex", "openrouter"),
        tokenizer="gemma3",
        base=0,
        message=0,
        tools=0,
        tool=0,
        tool_factor=0.3,
        tool_key=0.0,
        call=5,
        schema_factor=0.0,
        image=constant(1120),
        page=560,
        spread=35,
    ),
    TokenFamily(
        name="Gemini 2.5 on Vertex",
        pattern=r"gemini",
        providers=("google-vertex", "openrouter"),
        tokenizer="gemma3",
        base=0,
        message=0,
        tools=0,
        tool=0,
        tool_factor=0.3,
        tool_key=0.0,
        call=5,
        schema_factor=0.0,
        image=by_tiles(0, 258, side=768, long_edge=0, short_edge=0),
        page=258,
        spread=35,
    ),
    TokenFamily(
        name="Gemini 3 and later",
        pattern=GEMINI_3_ON,
        tokenizer="gemma3",
        base=1,
        message=1,
        tools=0,
        chosen=10,
        tool=0,
        tool_factor=1.0,
        tool_key=1.15,
        call=15,
        schema_factor=0.0,
        signature=1 / 4.8,
        signature_overhead=120,
        image=constant(1120),
        page=560,
        spread=35,
    ),
    TokenFamily(
        name="Gemini 2.5",
        pattern=r"gemini",
        tokenizer="gemma3",
        base=1,
        message=1,
        tools=0,
        chosen=10,
        tool=2,
        tool_factor=1.0,
        tool_key=1.15,
        call=15,
        schema_factor=0.0,
        image=by_tiles(0, 258, side=768, long_edge=0, short_edge=0),
        page=258,
        spread=35,
        hidden=100,
    ),
    TokenFamily(
        name="Gemma", pattern=r"gemma", tokenizer="gemma3", base=3, message=4, image=constant(258), page=258, spread=35
    ),
    # -- others
    TokenFamily(
        name="Mistral Small and Magistral Small",
        pattern=r"(?:mistral|magistral)-small",
        tokenizer="tekken",
        base=15,
        message=1,
        tools=17,
        tool_factor=1.1,
        tool_key=1.5,
        forced=7,
        schema_factor=0.0,
        image=by_patches(side=28, factor=1.03, most=1600),
        spread=30,
    ),
    TokenFamily(
        name="Pixtral",
        pattern=r"pixtral",
        tokenizer="tekken",
        base=3,
        message=1,
        tools=17,
        tool_factor=1.1,
        tool_key=1.5,
        forced=7,
        schema_factor=0.0,
        image=by_patches(side=16, factor=1.05, most=4096),
        spread=30,
    ),
    TokenFamily(
        name="Mistral",
        pattern=r"[sx]tral",  # Mistral, Ministral, Devstral, Voxtral; hosts add prefixes of their own
        tokenizer="tekken",
        base=3,
        message=1,
        thinking=12,
        tools=17,
        tool_factor=1.1,
        tool_key=1.5,
        forced=7,
        schema_factor=0.0,
        image=by_patches(side=28, factor=1.03, most=1600),
        spread=30,
    ),
    TokenFamily(
        name="Nova 2",
        pattern=r"nova-2",
        tokenizer="o200k",
        base=3,
        message=4,
        tools=850,
        page=2580,
        error=0.25,
        spread=30,
    ),
    TokenFamily(
        name="Nova Pro and Premier",
        pattern=r"nova-(?:pro|premier)",
        tokenizer="o200k",
        base=0,
        message=0,
        tools=365,
        image=constant(1826),
        page=2580,
        error=0.25,
        spread=30,
    ),
    TokenFamily(
        name="Nova",
        pattern=r"nova-(?:lite|micro)",
        tokenizer="o200k",
        base=0,
        message=0,
        tools=365,
        image=constant(1826),
        page=2580,
        error=0.25,
        spread=30,
    ),
    TokenFamily(
        name="Llama 4",
        pattern=r"llama-?4",
        tokenizer="llama3",
        base=10,
        message=4,
        tools=615,
        tool=57,
        call=0,
        unused_tools=False,
        image=constant(770),
        spread=150,
    ),
    TokenFamily(
        name="Llama 3",  # later ones have a system prompt with dates in their template
        pattern=r"llama-?3-\d+b|distill-llama",
        tokenizer="llama3",
        base=9,
        message=3,
        unused_tools=False,
        hidden=300,
    ),
    TokenFamily(name="Llama", pattern=r"llama", tokenizer="llama3", base=34, message=3, unused_tools=False, hidden=300),
    TokenFamily(
        name="Qwen",
        pattern=r"qwen|qwq|qvq",
        tokenizer="qwen3",
        base=5,
        message=4,
        tools=130,
        schema_factor=0.1,
        image=by_patches(side=28, factor=1.0, most=16384),
        hidden=200,
    ),
    TokenFamily(
        name="DeepSeek",
        pattern=r"deepseek",
        tokenizer="deepseek",
        base=4,
        message=1,
        tools=150,
        call=20,
        drops_thinking=True,
        hidden=200,
    ),
    TokenFamily(
        name="GLM", pattern=r"glm", tokenizer="glm4", base=5, message=2, tools=100, schema_factor=0.2, hidden=200
    ),
    TokenFamily(
        name="Kimi",
        pattern=r"kimi|moonshot|(?:^|/)k\d",
        tokenizer="kimi",
        base=3,
        message=4,
        tools=20,
        call=12,
        hidden=200,
    ),
    TokenFamily(
        name="Command R7B",
        pattern=r"command-r7b",
        tokenizer="command-r",
        base=490,
        message=4,
        tools=1370,
        tool=14,
        error=0.25,
        hidden=700,
    ),
    TokenFamily(
        name="Command",
        pattern=r"command|c4ai",
        tokenizer="command-r",
        base=66,
        message=4,
        tools=1370,
        tool=14,
        error=0.25,
        hidden=700,
    ),
    # -- models with prompts of the provider's own; their tokenizers are not public, but for MiMo's
    TokenFamily(
        name="Grok 4.1",
        pattern=r"grok-4[-.]1",
        tokenizer="unknown",
        base=180,
        message=4,
        tools=150,
        error=0.35,
        spread=90,
        hidden=700,
    ),
    TokenFamily(
        name="Grok 4 and later",
        pattern=r"grok-(?:[4-9]|code|build)",
        tokenizer="unknown",
        base=155,
        message=4,
        error=0.35,
        spread=90,
        hidden=700,
    ),
    TokenFamily(name="Grok", pattern=r"grok", tokenizer="unknown", base=3, message=4, tools=85, error=0.35, hidden=200),
    TokenFamily(
        name="MiMo",
        pattern=r"mimo",
        tokenizer="qwen3",
        base=5,
        message=4,
        tools=130,
        schema_factor=0.1,
        error=0.25,
        hidden=700,
    ),
    TokenFamily(
        name="Compound",
        pattern=r"(?:^|/)compound",
        tokenizer="llama3",
        base=300,
        message=4,
        error=0.35,
        spread=300,
        hidden=8000,
    ),
    TokenFamily(name="unknown", tokenizer="unknown", base=3, message=4, schema_factor=0.2, error=0.4, hidden=700),
)


@lru_cache(maxsize=256)
def family_of(model_id: str, provider: str, protocol: str) -> TokenFamily:
    """Find the row of a model by its names; the last row matches every model."""
    model = Model(model_id, provider, protocol)
    return next(family for family in FAMILIES if family.includes(model))


def find_family(model: Model) -> TokenFamily:
    """Find the row of a model."""
    return family_of(model.id, model.provider, model.protocol)
