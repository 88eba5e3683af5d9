"""Rules of the OpenAI Responses protocol.

Facts:
- Limits of fields.                                     (openai-openapi 2.3.0 @f85dbe2, openai 3.49.0; read 2026-11-15)
- Only the length of `call_id` is checked: dots, colons and others are accepted.  (ungate #41, live probe of 2026-08-16;
                                                    recorded traffic, 2026-11: 64 characters with a colon at Bedrock)
- Instructions are messages and may be anywhere.            (openai 3.49.0: EasyInputMessage; pi-ai 1.5.0 catalogue)
- A history with calls needs no tools.                                                    (recorded traffic, 2026-11)
- A reasoning item without the item it led to is refused, and so is the item without its reasoning.
                                                            (recorded traffic, 2026-11; vercel/ai #7099, mastra #8738)
- Results may have files; `file_data` is a data URL, audio is not among its types.        (recorded traffic, 2026-11)
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from segue.models.dialect import Dialect
from segue.models.family import Family
from segue.models.model_ids import (
    OPENAI_GPT_5_5_ON,
    OPENAI_WITHOUT_REASONING,
    OPENAI_WITHOUT_SCHEMAS,
)
from segue.models.rule import Rule
from segue.models.rules import Rules
from segue.protocols.families.openai_models import OPENAI_FAMILIES, ROOT_KEYWORDS

PROTOCOL: Final = "openai-responses"
PROVIDER: Final = "openai"

_SAMPLING: Final = frozenset({"temperature", "top_p"})
_FILES: Final = (
    *("image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp"),  # "... one the following formats" (gptpdf #6)
    "application/pdf",
    "application/json",
    "application/msword",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "application/vnd.ms-excel",
    "application/vnd.ms-powerpoint",
    "text/*",
)

READ: Final = "2026-11-15"

RULES: Final = Rules(
    # -- tools
    call_id_max=64,
    tool_name_alphabet="a-zA-Z0-9_-",
    tool_name_max=128,
    tool_namespaces=True,
    tool_error="text",
    schema_root_object=True,
    # -- media: OpenAI documentation, file inputs
    user_media=_FILES,
    result_media=_FILES,
    image_sources=frozenset({"data", "url", "file_id"}),
    file_id_pattern="file-[A-Za-z0-9]+",
    max_images=1500,
    # -- reasoning
    text_signatures=True,
    bound_account="refused",
    reasoning_replay="signed",
    final_thinking="drop",
    # -- settings
    refused_options=frozenset({"stop", "seed"}),
    user_id_keys=frozenset({"user", "safety_identifier"}),
    portable_extra=frozenset({"namespace", "detail"}),
    # -- what is refused
    rows={
        "root_keywords": Rule("as openai-chat (OpenAI API)", READ, values=ROOT_KEYWORDS),
        "text_phases": Rule("openai 3.49.0: `phase` of a message item", READ),
        "minimal_with_server_tools": Rule("\"cannot be used with ... 'minimal': web_search.\" (OpenAI API)", READ),
        "document_bytes": Rule("openai-openapi 2.3.0: file_data up to 70 MiB of base64", READ, most=52_428_800),
        "max_tokens": Rule("openai-openapi 2.3.0: max_output_tokens", READ, least=16),
        "session_id": Rule("openai-openapi 2.3.0: prompt_cache_key", READ, most=64),
        "temperature": Rule("openai-openapi 2.3.0", READ, most=2.0),
    },
)

SOURCES: Final[Mapping[str, str]] = {
    "call_id_max": '"Expected a string with maximum length 64" (fastllm #45)',
    "tool_name_alphabet": "openai-openapi 2.3.0",
    "tool_name_max": "openai-openapi 2.3.0",
    "tool_namespaces": "openai 3.49.0: NamespaceToolParam",
    "tool_error": "openai 3.49.0: function_call_output has no flag",
    "schema_root_object": '"schema must be a JSON Schema of \'type: "object"\'" (OpenAI API)',
    "user_media": "OpenAI documentation: file inputs",
    "result_media": "openai 3.49.0: input_text, input_image and input_file in an output",
    "image_sources": "openai 3.49.0: input_image",
    "file_id_pattern": "recorded traffic, 2026-11",
    "max_images": "pi-ai 1.5.0 catalogue",
    "text_signatures": "openai 3.49.0: the id of the item that held the text",
    "bound_account": 'encrypted reasoning of another organization "could not be verified" (codex #8119)',
    "reasoning_replay": "openai 3.49.0: encrypted_content; recorded traffic, 2026-11",
    "final_thinking": '"was provided without its required following item" (OpenAI API; continue #8933)',
    "refused_options": "openai 3.49.0: no such parameters",
    "user_id_keys": "openai 3.49.0; the lengths differ by provider",
    "portable_extra": "`namespace`: projection adds it to calls of other models; `detail` of an image: openai 3.51.0",
}
"""Who says so, for each field of `RULES`; its rows have their own sources. All were read on `READ`."""

DIALECT: Final = Dialect(
    account_header="openai-organization",  # OpenAI documentation: debugging requests, response headers
    developer_role=True,
    max_tokens_field="max_output_tokens",
    off_value="none",
    store=True,
    cache_format="openai-key",
)

_openai_family = partial(Family, providers=("openai", "azure"))

FAMILIES: Final[tuple[Family, ...]] = (
    Family(
        pattern=OPENAI_GPT_5_5_ON,
        rules={"server_edits": frozenset({"compact"})},
        providers=("openai",),
        source="OpenAI documentation: compaction; hermes-agent, native_compaction.py: gpt-5.6 on api.openai.com",
        read="2026-11-17",
    ),
    *OPENAI_FAMILIES,
    Family(
        pattern=r"grok-(?!3-mini|4\.[3-9]|4\.20-multi|[5-9])",
        rules={"refused_extra": ["reasoning.effort"], "refused_options": ["thinking"]},
        providers=("xai",),
        source="'does not support parameter reasoningEffort' (hermes-agent #23088, #23435, live, 2026-05-10)",
        read="2026-11-17",
    ),
    _openai_family(
        pattern=r"gpt-5\.[1-9]-chat",
        rules={"thinking_levels": frozenset({"medium"})},
        source="'Unsupported value: 'high' is not supported with the 'gpt-5.1-chat-latest' model. Supported values are:"
        " 'medium'.' (one-api #266, 2025-11-14; #285 of gpt-5.2-chat, 2025-12-26)",
        read="2026-11-18",
    ),
    _openai_family(
        pattern=OPENAI_WITHOUT_REASONING,
        rules={"refused_extra": ["text.verbosity=low", "text.verbosity=high"]},
        source="'low' is not supported with the 'gpt-5-chat-latest' model. Supported values are: 'medium'."
        " (opencode #1984, 2025-08-16)",
        read="2026-11-16",
    ),
    _openai_family(
        pattern=OPENAI_WITHOUT_SCHEMAS,
        rules={"refused_extra": ["text.format.type=json_schema"], "refused_options": ["output_schema"]},
        source="''response_format' of type 'json_schema' is not supported with this model.' (IDesign #7, 2025-04-25)",
        read="2026-11-16",
    ),
    Family(
        pattern=r"codex-spark",
        rules={"refused_tool_types": frozenset({"image_generation"})},
        source="'Tool 'image_generation' is not supported with gpt-5.3-codex-spark.' (codex #22637, 2026-05-14)",
        read="2026-11-18",
    ),
    Family(
        pattern=r"deepseek-v[4-9]",
        rules={"forced_choice_with_thinking": False},
        source="'Thinking mode does not support this tool_choice' (litellm #37470)",
        read="2026-11-15",
    ),
)
