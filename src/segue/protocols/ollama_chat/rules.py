"""Rules of Ollama's own chat wire.

Facts:
- Roles are lower-cased and not checked; any order of roles is accepted; unknown keys are ignored, wrong types refused;
  there is no field for a tool choice.                       (ollama server source @fb30760 of 2026-08-21)
- `content` is a string, `images` a list of bare base64, arguments an object.   (the same; ollama #12794, litellm)
- A model's template may drop an image of a tool message, so it moves to a user message.         (roo, ollama templates)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.models.dialect import Dialect
from segue.models.family import Family
from segue.models.rule import Rule
from segue.models.rules import Rules

PROTOCOL: Final = "ollama-chat"
PROVIDER: Final = "ollama"

READ: Final = "2026-11-15"

RULES: Final = Rules(
    # -- tools
    tool_choices=frozenset(),
    paired_calls=False,
    tool_error="text",
    schema_root_object=True,
    # -- media
    user_media=("image/*",),
    result_media=(),
    image_sources=frozenset({"data"}),
    file_sources=frozenset(),
    # -- reasoning
    reasoning_replay="open",
    # -- options: server source, no such fields
    refused_options=frozenset({"parallel_tool_calls", "cache_retention", "session_id", "user_id"}),
    # -- what is refused
    rows={
        "window_field": Rule("ollama documentation: context length", READ, values=frozenset({"options.num_ctx"})),
    },
)

SOURCES: Final[Mapping[str, str]] = {
    "tool_choices": "ollama 0.6.3 (server source): no such field",
    "paired_calls": "ollama 0.6.3 (server source): any order of roles; an unanswered call was answered with 200"
    " (recorded)",
    "tool_error": "ollama 0.6.3 (server source): a tool message has no flag",
    "schema_root_object": "ollama 0.6.3 refuses another type there, read 2026-11-15",
    "user_media": "ollama 0.6.3 (server source): `images`",
    "result_media": "ollama 0.6.3 (server source): `images` is a field of user messages",
    "image_sources": "a URL or a data URL answers 400 (litellm convert_to_ollama_image)",
    "file_sources": "ollama 0.6.3 (server source): images are the only files",
    "reasoning_replay": "ollama 0.6.3 (server source): `thinking` of a message is plain text",
    "refused_options": "ollama 0.6.3 (server source): no such fields",
}
"""Who says so, for each field of `RULES`; its rows have their own sources. All were read on `READ`."""

DIALECT: Final = Dialect(result_name=True, max_tokens_field="none", thinking_format="switch", auth="none")

WITHOUT_TOOLS: Final = (
    r"(?:^|/)(?:(?:code)?gemma[23]?|llama[23]|codellama|(?:bak)?llava(?:-\w+)?|llama3\.2-vision|moondream|tinyllama"
    r"|phi(?:3|3\.5|4)?|deepseek-coder(?:-v2)?|starcoder2?|stablelm2?|vicuna|orca-mini|wizardlm\d?|dolphin-\w+"
    r"|deepseek-r1)(?=:|$)|:(?:\S*-)?(?:base|text)(?:-|$)"
)
"""Models of the library whose templates have no tools. (ollama.com/library, read 2026-11-17)"""

FAMILIES: Final[tuple[Family, ...]] = (
    Family(
        pattern=WITHOUT_TOOLS,
        rules={"tools": False},
        source="'registry.ollama.ai/library/gemma3:latest does not support tools' (server source: capabilities); ollama"
        " #6027 (stablelm2), monize #405 (deepseek-r1, 2026-04-15), continue #10539 (tags of base models)",
        read="2026-11-17",
    ),
    Family(
        pattern=r"gpt-oss",
        rules={"thinking_levels": frozenset({"low", "medium", "high"})},
        dialect={"thinking_format": "word"},
        source="ollama documentation: gpt-oss accepts low, medium, high and ignores true and false",
        read="2026-11-15",
    ),
)
