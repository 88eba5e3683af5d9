"""What a provider counts in addition to the texts of a request, for each family of models, as rows.

A count is the tokens of all texts plus constants: for the request, for each message, once if there are tools, for each
tool, for each call with its result. On short requests these constants are most of the count.

Facts: the usage of 2,086 recorded requests, compared with exact tokenizers (measured 2026-11-15).
- OpenAI: 3 and 4 a message, exactly; tools are written as TypeScript, so that `$schema`, `title` and
  `additionalProperties` count for nothing, and with 90 more on Chat from GPT-5 on. Gemini and Claude count the
  punctuation of schemas too.
                                                      (182 recorded requests with tools, 2026-11-17)
- Claude: tools add a hidden prompt, a forced choice adds another; a call with its result adds 55 to 65 tokens. The
  prompt of Haiku 3 and 3.5 is smaller: 264, 340 forced. (Anthropic documentation: tool use, token counts, 2026-11-17)
- Gemini: 1 a content from 2.5 on; on Vertex nothing, and tools next to nothing. Output schemas are not counted.
- Signatures count on the Gemini API from Gemini 3 on, one token for 4.8 characters beyond the first 120, in
  every turn; not on Vertex.
- OpenAI counts encrypted reasoning only while its tool cycle runs; Claude up to 4.5 Sonnet its thinking likewise. Opus
  4.5 counted the thinking of earlier turns too.
- Hosts add their own system prompts to open models (DeepSeek, GLM, Command, Llama), so that rows of these vary.
- Grok 4 Fast adds 155 to 185 tokens to every request, Command R7B 490; Grok 3 none. Compound searches by itself: 4,300
  tokens were counted for one sentence.                                       (recorded usage, 2026-11-17)
- Sonnet 4.5 and Haiku 4.5 do not count the thinking of earlier turns, nor do gpt-oss and Qwen. DeepSeek's own endpoint
  adds 240 for tools, Command A 490 to every request, Grok 4.3 190; Gemini 2.0 does not count output schemas. Llama 3
  has 130 for tools at Groq and Together, Llama 4 at Bedrock 560 less than at Groq.
                                                            (2,378 recorded requests, 2026-11-18)
- Images: recorded counts minus the estimate of the rest; see `media`.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Final

from segue.counting.media import by_patches, by_tiles, constant
from segue.counting.token_family import TokenFamily
from segue.models.model import Model
from segue.models.model_ids import (
    CLAUDE,
    CLAUDE_3,
    CLAUDE_3_HAIKU,
    CLAUDE_4_5_AND_4_6,
    CLAUDE_UP_TO_4_5,
    GEMINI_3_ON,
    GEMINI_UP_TO_2_0,
    OPENAI_4_1_SMALL,
    OPENAI_5_ON,
    OPENAI_UP_TO_4_1,
)

# What the rows of one maker share; a row names the rest, and what differs.
_CLAUDE: Final = partial(
    TokenFamily,
    tokenizer="claude",
    prose=False,
    base=5,
    message=2,
    tool=0,
    tool_factor=1.0,
    tool_key=1.0,
    call=60,
    schema_factor=1.5,
    page=2600,
    spread=90,
)
_CLAUDE_4_5: Final = partial(
    _CLAUDE,
    base=7,
    message=1,
    thinking=28,
    tools=505,
    forced=95,
    tool=5,
    tool_key=3.0,
    call=50,
    schema_factor=1.8,
    schema=50,
)
_CLAUDE_4_7: Final = partial(
    _CLAUDE,
    tokenizer="claude-4.7",
    base=6,
    message=1,
    forced=125,
    tool=10,
    tool_key=3.0,
    call=45,
    schema_factor=2.0,
    error=0.25,
)
_OPENAI: Final = partial(
    TokenFamily, tokenizer="o200k", tool=7, tool_factor=1.0, tool_key=3.3, declared_tools=True, spread=20
)
_GPT_4: Final = partial(
    _OPENAI,
    base=3,
    message=4,
    tools=13,
    forced=7,
    tool=5,
    tool_key=5.0,
    call=12,
    schema=12,
    schema_factor=0.55,
    hidden=220,
    hidden_in_all=False,
)
_GPT_5: Final = partial(
    _OPENAI, pattern=OPENAI_5_ON, base=2, message=4, tools=15, call=18, image=by_patches(side=32, factor=1.2, most=2100)
)
_GOOGLE: Final = partial(TokenFamily, tokenizer="gemma3", page=258, spread=35)
# almost nothing in addition to the texts: Gemini up to 2.0, and on Vertex
_GEMINI_BARE: Final = partial(
    _GOOGLE, base=0, message=0, tools=0, tool=0, tool_factor=0.3, tool_key=0.0, call=5, schema_factor=0.0
)
_GEMINI_2_0: Final = partial(_GEMINI_BARE, pattern=GEMINI_UP_TO_2_0, tool=3, tool_key=0.2, image=constant(258))
_GEMINI: Final = partial(
    _GOOGLE, base=1, message=1, tools=0, chosen=10, tool_factor=1.0, tool_key=1.15, call=15, schema_factor=0.0
)
_VERTEX: Final = ("google-vertex", "openrouter")
_TILES_OF_GEMINI: Final = by_tiles(0, 258, side=768, long_edge=0, short_edge=0)
_MISTRAL: Final = partial(
    TokenFamily,
    tokenizer="tekken",
    base=3,
    message=1,
    tools=17,
    tool_factor=1.1,
    tool_key=1.5,
    forced=7,
    schema_factor=0.0,
    image=by_patches(side=28, factor=1.03, most=1600),
    spread=30,
)
_NOVA: Final = partial(TokenFamily, tokenizer="o200k", call=32, page=2580, error=0.25, spread=30)
_LLAMA: Final = partial(TokenFamily, tokenizer="llama3", message=3, tools=130, unused_tools=False, hidden=300)
_LLAMA_4: Final = partial(
    _LLAMA, pattern=r"llama-?4", base=10, message=4, tool=57, call=0, image=constant(770), spread=150, hidden=0
)
_QWEN: Final = partial(
    TokenFamily,
    pattern=r"qwen|qwq|qvq",
    tokenizer="qwen3",
    base=5,
    message=4,
    schema_factor=0.1,
    drops_thinking=True,
    image=by_patches(side=28, factor=1.0, most=16384),
    hidden=200,
)
_DEEPSEEK: Final = partial(
    TokenFamily, pattern=r"deepseek", tokenizer="deepseek", base=4, message=1, call=20, drops_thinking=True, hidden=200
)
_COMMAND: Final = partial(
    TokenFamily, tokenizer="command-r", message=4, tools=1370, tool=14, call=65, error=0.25, hidden=700
)
_GROK: Final = partial(TokenFamily, tokenizer="unknown", prose=False, message=4, error=0.35)

FAMILIES: Final[tuple[TokenFamily, ...]] = (
    # -- Claude
    _CLAUDE_4_5(name="Claude Sonnet 4.5 and Haiku 4.5", pattern=r"(?:sonnet|haiku)-4[-.]5", drops_thinking=True),
    _CLAUDE_4_5(name="Claude 4.5 and 4.6", pattern=CLAUDE_4_5_AND_4_6),
    _CLAUDE(name="Claude 3 Haiku", pattern=CLAUDE_3_HAIKU, tools=302, forced=100),
    _CLAUDE(name="Claude 3 Sonnet", pattern=r"claude-3-sonnet", tools=197, forced=76),
    _CLAUDE(name="Claude 3 Opus", pattern=r"claude-3-opus", tools=568),
    _CLAUDE(name="Claude 3", pattern=CLAUDE_3, tools=310, forced=75),
    _CLAUDE(name="Claude up to 4.1", pattern=CLAUDE_UP_TO_4_5, thinking=28, tools=335, call=45, drops_thinking=True),
    _CLAUDE_4_7(name="Claude Opus 4.7", pattern=r"opus-4[-.]7", tools=690),
    _CLAUDE_4_7(name="Claude Opus 4.8", pattern=r"opus-4[-.]8", tools=290),
    _CLAUDE_4_7(name="Claude Sonnet 5 and later", pattern=CLAUDE, tools=370),
    # -- OpenAI
    _OPENAI(
        name="gpt-oss",
        pattern=r"gpt-oss",
        base=67,
        message=3,
        tools=33,
        schema=70,
        call=20,
        drops_thinking=True,
        spread=30,
        hidden=120,
    ),
    _GPT_4(
        name="GPT up to 4.1, in patches", pattern=OPENAI_4_1_SMALL, image=by_patches(side=32, factor=2.46, most=1536)
    ),
    _GPT_4(name="GPT up to 4.1", pattern=OPENAI_UP_TO_4_1, parallel=20, image=by_tiles(85, 170)),
    _GPT_5(
        name="GPT-5 and later, o-series, over Responses",
        protocols=("openai-responses",),
        signature=0.18,
        signature_overhead=1000,
        drops_thinking=True,
        schema=12,
        schema_factor=0.55,
    ),
    # a router that calls Responses for a chat request
    _GPT_5(name="GPT-5 and later, o-series, at a router", providers=("openrouter", "vercel-ai-gateway")),
    _GPT_5(name="GPT-5 and later, o-series", tools=96, schema=12, schema_factor=0.55),
    # -- Google
    _GEMINI_2_0(name="Gemini 1.5 and 2.0 at Google", providers=("google", "google-vertex"), bare_json=True),
    _GEMINI_2_0(name="Gemini 1.5 and 2.0"),
    _GEMINI_BARE(
        name="Gemini 3 and later on Vertex",
        pattern=GEMINI_3_ON,
        providers=_VERTEX,
        call=13,
        image=constant(1120),
        page=560,
    ),
    _GEMINI_BARE(name="Gemini 2.5 on Vertex", pattern=r"gemini", providers=_VERTEX, image=_TILES_OF_GEMINI),
    _GEMINI(
        name="Gemini 3 and later",
        pattern=GEMINI_3_ON,
        tool=0,
        signature=1 / 4.8,
        signature_overhead=120,
        image=constant(1120),
        page=560,
    ),
    _GEMINI(name="Gemini 2.5", pattern=r"gemini", tool=2, image=_TILES_OF_GEMINI, hidden=100),
    _GOOGLE(name="Gemma", pattern=r"gemma", base=3, message=4, image=constant(258)),
    # -- others
    _MISTRAL(name="Mistral Small and Magistral Small", pattern=r"(?:mistral|magistral)-small", base=15),
    _MISTRAL(name="Pixtral", pattern=r"pixtral", image=by_patches(side=16, factor=1.05, most=4096)),
    _MISTRAL(
        name="Mistral",
        pattern=r"[sx]tral",  # Mistral, Ministral, Devstral, Voxtral; hosts add their own prefixes
        thinking=12,
    ),
    _NOVA(name="Nova 2", pattern=r"nova-2", base=3, message=4, tools=850),
    *(
        _NOVA(name=name, pattern=pattern, base=0, message=0, tools=365, image=constant(1826))
        for name, pattern in (("Nova Pro and Premier", r"nova-(?:pro|premier)"), ("Nova", r"nova-(?:lite|micro)"))
    ),
    _LLAMA_4(name="Llama 4 at Bedrock", providers=("amazon-bedrock",), tools=50),
    _LLAMA_4(name="Llama 4", tools=615),
    # later ones of Llama 3 have a system prompt with dates in their template
    _LLAMA(name="Llama 3", pattern=r"llama-?3-\d+b|distill-llama", base=9),
    # the template of Llama Guard repeats the task and every category around the conversation
    _LLAMA(name="Llama Guard", pattern=r"llama-?guard", base=156),
    # the template of Ollama has one date of the two, and says how to call tools
    _LLAMA(name="Llama at Ollama", pattern=r"llama-?3", providers=("ollama",), base=22, tools=93),
    _LLAMA(name="Llama", pattern=r"llama", base=34),
    _QWEN(name="Qwen at Ollama", providers=("ollama",), tools=95),
    _QWEN(name="Qwen", tools=130),
    _DEEPSEEK(name="DeepSeek at DeepSeek", providers=("deepseek",), tools=240, call=42),
    _DEEPSEEK(name="DeepSeek", tools=150),
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
    _COMMAND(name="Command R7B", pattern=r"command-r7b", base=490),
    _COMMAND(name="Command A", pattern=r"command-a(?!-vision|-translate)", base=492, tools=944),
    _COMMAND(name="Command", pattern=r"command|c4ai", base=66),
    # -- models with the provider's own prompts; their tokenizers are not public, except MiMo's
    _GROK(
        name="Grok 4.1 at Azure",
        pattern=r"grok-4[-.]1",
        providers=("azure",),
        base=152,
        tools=100,
        spread=90,
        hidden=700,
    ),
    # it counts its encrypted reasoning in every later request
    _GROK(name="Grok 4.3", pattern=r"grok-4[-.]3", base=197, tools=35, call=20, signature=0.145, spread=90, hidden=700),
    _GROK(name="Grok 4.1", pattern=r"grok-4[-.]1", base=180, tools=150, spread=90, hidden=700),
    _GROK(name="Grok 4 and later", pattern=r"grok-(?:[4-9]|code|build)", base=155, spread=90, hidden=700),
    _GROK(name="Grok", pattern=r"grok", base=3, tools=85, hidden=200),
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
