"""Rules and dialect of Mistral's chat protocol.

Facts:
- The order of roles: after a tool result the assistant, another result or the user; a system message only after a user
  message; last a user message, a tool result, or an assistant message with a prefix.
                                                      (mistral-common 1.13.0 request validator, read 2026-11-15)
- A user message after a result is accepted: it was answered with 200. Older versions of the library, which other hosts
  run, refuse it ("Unexpected role 'user' after role 'tool'", code 3230).
                                           (recorded traffic, 2026-11; hermes-agent #20154 at NIM, zed #37021 of 2025)
- The service is stricter than its library: it refused ids that are not nine letters and digits in 2026-03, for a model
  whose tokenizer (v13) accepts any.                                        (ironclaw #1241, 2026-03-16; opencode #1680)
- Replies have ids of nine characters; `prefix: false` and an empty list of calls are accepted.
                                                                                          (recorded traffic, 2026-11)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.models.dialect import Dialect
from segue.models.family import Family
from segue.models.rule import Rule
from segue.models.rules import Rules

PROTOCOL: Final = "mistral-chat"
PROVIDER: Final = "mistral"

READ: Final = "2026-11-15"

RULES: Final = Rules(
    # -- tools
    call_id_alphabet="a-zA-Z0-9",
    call_id_min=9,
    call_id_max=9,
    tool_name_alphabet="a-zA-Z0-9_-",
    tool_name_max=64,
    tool_error="text",
    # -- media
    user_media=("image/*", "application/pdf", "audio/*"),
    result_media=(),
    file_id_pattern="[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    max_images=8,
    # -- turns
    first_user=True,
    last_assistant=False,
    assistant_prefix=True,
    refused_text="empty",
    system_messages="none",
    # -- reasoning
    reasoning_replay="open",
    final_thinking="drop",
    thinking_levels=frozenset({"off", "high"}),
    # -- settings
    refused_options=frozenset({"cache_retention", "user_id"}),
    refused_extra=frozenset({"prompt_mode"}),
    # -- what is refused
    rows={
        "temperature": Rule("mistral-common 1.13.0", READ, most=1.0),
        "greedy_top_p": Rule(
            '"top_p must be 1 when using greedy sampling." (Mistral API, code 3054; reported 400s)', READ
        ),
        "seed": Rule("Mistral API reference: random_seed", "2026-11-17", least=0),
        "top_p": Rule(
            '0 is refused: "greater_than" (modelparams.dev #231, live, 2026-08-17)', READ, least=0.01, most=1.0
        ),
    },
)

SOURCES: Final[Mapping[str, str]] = {
    "call_id_alphabet": '"must be a-z, A-Z, 0-9, with a length of 9" (Mistral API, code 3280)',
    "call_id_min": '"must be a-z, A-Z, 0-9, with a length of 9" (Mistral API, code 3280)',
    "call_id_max": '"must be a-z, A-Z, 0-9, with a length of 9" (Mistral API, code 3280)',
    "tool_name_alphabet": "mistral-common 1.13.0",
    "tool_name_max": "mistral-common 1.13.0",
    "tool_error": "mistralai 3.7.0: a tool message has no flag",
    "user_media": "mistralai 3.7.0: image_url, document_url, input_audio",
    "result_media": "images in results only from tokenizer v15 on (mistral-common 1.13.0)",
    "file_id_pattern": "Mistral documentation: files",
    "max_images": "Mistral documentation: vision",
    "first_user": "mistral-common 1.13.0 does not see the calls of a first message",
    "last_assistant": '"Expected last role User or Tool (or Assistant with prefix True)" (rig #1130)',
    "assistant_prefix": "Mistral documentation: prefix",
    "refused_text": '"Assistant message must have either content or tool_calls, but not none." (OpenHands #8685)',
    "system_messages": "\"Unexpected role 'system' after role 'assistant'\" (spring-ai #2380); never last",
    "reasoning_replay": "mistralai 3.7.0: a thinking chunk's signature is optional",
    "final_thinking": "mistral-common 1.13.0: thinking comes first, then text",
    "thinking_levels": "a model with two levels has these; those of others are in their catalogue entries (inspect_ai"
    " #4711, 2026-07-31)",
    "refused_options": "mistralai 3.7.0: no such parameters",
    "refused_extra": '"Reasoning prompt mode is not enabled for this model", by every model (pi-go #245, live,'
    " 2026-08-28)",
}
"""Who says so, for each field of `RULES`; its rows have their own sources. All were read on `READ`."""

DIALECT: Final = Dialect(
    result_name=True,
    max_tokens_field="max_tokens",
    off_value="none",
    cache_format="openai-key",
    strict_tools=True,
)

FAMILIES: Final[tuple[Family, ...]] = (
    Family(
        pattern="devstral",
        rules={"user_after_result": False},
        source="'Unexpected role 'user' after role 'tool'' of devstral-small-latest and devstral-medium-latest"
        " (avante.nvim #2562, 2025-08-01; zed #37021, 2025-08-27); other models answer (recorded traffic, 2026-11)",
        read="2026-11-18",
    ),
)
"""The library checks ids and tool results by the version of a model's tokenizer, the service only what is here."""
