"""What the Anthropic Messages protocol supports and refuses.

Facts (each line below repeats its own):
- The types and docstrings of the SDK.                                    (anthropic 2.8.0, read 2026-11-15)
- Answered with 200, although widely believed to be refused: a first turn of the assistant, the same call id in a later
  turn, consecutive turns of one role, a forced tool with adaptive thinking.           (recorded traffic, 2026-11)
- A turn whose only text is blank is refused, also next to other blocks; a blank text with other text is not.
                                                                          (LibreChat-AI/agents #124, 2026-04-30)
- History with calls does not require tool definitions any more.          (opencode #8246, 2026-01-13; vercel/ai #16987)
- Adaptive thinking does not require thinking before older calls and accepts a forced tool; thinking with a budget
  requires the one and refuses the other.        (Anthropic documentation: thinking in tool workflows, read 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.models.dialect import Dialect
from segue.models.family import Family
from segue.models.model_ids import (
    CLAUDE,
    CLAUDE_3_AND_3_5,
    CLAUDE_4_6,
    CLAUDE_ALWAYS_THINKS,
    CLAUDE_BETWEEN_TOOLS,
    CLAUDE_BINDS_PREFIX,
    CLAUDE_COMPUTER_TOOLSET,
    CLAUDE_ONE_SAMPLING_PARAMETER,
    CLAUDE_READS_BOUND,
    CLAUDE_READS_SYSTEM,
    CLAUDE_REFUSES_FORCED_CHOICE,
    CLAUDE_UP_TO_4_5,
    CLAUDE_WITHOUT_SCHEMAS,
)
from segue.models.rule import Rule
from segue.models.rules import Rules
from segue.protocols.families.claude_prefix import CLAUDE_BINDING

PROTOCOL: Final = "anthropic-messages"
PROVIDER: Final = "anthropic"
CLAUDE_PROVIDERS: Final = ("anthropic", "amazon-bedrock", "google-vertex", "anthropic-aws", "azure-anthropic")
"""Providers whose limits are those of Anthropic's own API."""

_IMAGES: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")
_MEDIA: Final = (*_IMAGES, "application/pdf", "text/plain")
_SAMPLING: Final = frozenset({"temperature", "top_p"})
_OPUS_4_5: Final = r"claude-(?:opus-4[-.]5|4[-.]5-opus)(?!\d)"

_STRICT: Final = frozenset(
    {
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"),
        *("minItems>1", "maxItems", "uniqueItems", "minProperties", "maxProperties", "patternProperties"),
        *("not", "if", "then", "else", "dependentRequired", "dependentSchemas", "propertyNames", "contains"),
        "oneOf",
    }
)
"""Keywords that structured outputs do not have. "Schema type 'oneOf' is not supported" (vercel/ai #12876 of 2026-02-26,
reproduced live on 2026-07-02)."""
_LIMITATIONS: Final = "Anthropic documentation: structured outputs, JSON schema limitations"

READ: Final = "2026-11-15"

RULES: Final = Rules(
    # -- tools: ids and names outside these answer 400, "String should match pattern ..."
    call_id_alphabet="a-zA-Z0-9_-",
    call_id_max=64,
    tool_name_alphabet="a-zA-Z0-9_-",
    tool_name_max=128,
    schema_root_object=True,
    calls_last=True,
    # -- media
    user_media=_MEDIA,
    result_media=_MEDIA,
    image_sources=frozenset({"data", "url", "file_id"}),
    url_media=("image/*", "application/pdf"),
    file_context=True,
    file_id_pattern="file_[A-Za-z0-9]+",
    max_images=100,
    # -- turns
    refused_text="blank",
    blank_beside=frozenset({"text"}),
    instructions_alone=False,
    system_messages="none",
    # -- reasoning
    reasoning_replay="signed",
    final_thinking="text",
    min_thinking_budget=1024,
    budget_in_max_tokens=True,
    # -- options
    refused_options=frozenset({"seed", "session_id"}),
    refused_with_thinking=_SAMPLING,
    extra_like=(("top_k", "temperature"),),
    user_id_keys=frozenset({"metadata.user_id"}),
    cache_marks=4,
    cache_mark_key="cache_control",
    # -- what is refused
    rows={
        "root_keywords": Rule(
            '"... at the top level" (Codewhale #4329, 2026-07)', READ, values=frozenset({"oneOf", "allOf", "anyOf"})
        ),
        "resumable_stops": Rule("anthropic 2.8.0: sent back unchanged", READ, values=frozenset({"pause_turn"})),
        "final_space": Rule('"final assistant content cannot end with trailing whitespace" (Anthropic API)', READ),
        "unset_max_tokens": Rule('"max_tokens: Field required" (anthropic 2.8.0)', READ),
        "pages": Rule("AWS documentation: inference API restrictions", READ, most=100),
        "request_media": Rule("Anthropic documentation: errors, 413 above 32 MB", READ, most=32_000_000),
        "image_edge": Rule('"max allowed size: 8000 pixels" (Anthropic documentation: vision)', READ, most=8000),
        "large_images": Rule(
            '"... for many-image requests: 2000 pixels" (Anthropic documentation: vision)', READ, most=20, least=2000
        ),
        "image_bytes": Rule('"image exceeds 5 MB maximum", of base64 (claude-code #13381)', READ, most=3_932_160),
        "document_bytes": Rule(
            "413 above 32 MB of base64 for the whole request (Anthropic documentation: errors)", READ, most=25_165_824
        ),
        "other_image_type": Rule('"the image appears to be a image/png image" (llxprt-code #2130)', READ),
        "error_media": Rule(
            "\"all content must be type 'text' if 'is_error' is true\" (vellum-assistant #18387, 2026-03-17)", READ
        ),
        "max_tokens": Rule("anthropic 2.8.0: 0 only warms the cache", READ, least=0),
        "temperature": Rule("Anthropic documentation: messages", READ, most=1.0),
        "blank_stop": Rule('"each stop sequence must contain non-whitespace" (litellm #3286)', READ),
        "cache_mark_order": Rule("a 400 for 1h after 5m, in the order tools, system, messages (headroom #2939)", READ),
        "cache_mark_beside": Rule(
            "Anthropic documentation: tool use with prompt caching", READ, values=frozenset({"defer_loading"})
        ),
    },
)

SOURCES: Final[Mapping[str, str]] = {
    "call_id_alphabet": '"String should match pattern" (Anthropic API; forgecode #1142)',
    "call_id_max": "pi-ai 1.5.0 and its ports cut here; no refusal of longer ones is on record",
    "tool_name_alphabet": '"String should match pattern" (Anthropic API; home-assistant #147760, 2025-06-29)',
    "tool_name_max": "claude-code #96152, 2026-09-22",
    "schema_root_object": 'anthropic 2.8.0: `input_schema.type` is the literal "object"',
    "calls_last": '"`tool_use` ids were found without `tool_result` blocks" (vercel/ai #8318, #13013)',
    "user_media": "anthropic 2.8.0: image and document sources",
    "result_media": "anthropic 2.8.0: tool_result content",
    "image_sources": "anthropic 2.8.0: sources of an image",
    "url_media": "anthropic 2.8.0: the URL of a document is that of a PDF",
    "file_context": "anthropic 2.8.0: DocumentBlockParam",
    "file_id_pattern": "Anthropic documentation: Files API",
    "max_images": "pi-ai 1.5.0 catalogue; 600 from the 4.6 generation on, by a family",
    "refused_text": '"text content blocks must be non-empty", "must contain non-whitespace text" (Anthropic API)',
    "blank_beside": "white space, and not an empty text (LibreChat-AI/agents #124, live, 2026-04-30)",
    "instructions_alone": '"messages: at least one message is required" (langchain #31657)',
    "system_messages": "\"role 'system' is not supported on this model\" before Opus 4.8",
    "reasoning_replay": '"thinking.signature: Field required" (opencode #42735)',
    "final_thinking": '"The final block in an assistant message cannot be `thinking`"',
    "min_thinking_budget": "anthropic 2.8.0: budget_tokens",
    "budget_in_max_tokens": '"`max_tokens` must be greater than `thinking.budget_tokens`"',
    "refused_options": "anthropic 2.8.0: no such parameters",
    "refused_with_thinking": "Anthropic documentation: extended thinking, feature compatibility",
    "extra_like": "Anthropic documentation: extended thinking; pi #7961",
    "user_id_keys": "anthropic 2.8.0; the lengths differ by provider",
    "cache_marks": '"A maximum of 4 blocks with cache_control may be provided" (sub2api #176)',
    "cache_mark_key": "anthropic 2.8.0: cache_control of blocks and tools",
}
"""Who says so, for each field of `RULES`; its rows have their own sources. All were read on `READ`."""

DIALECT: Final = Dialect(
    max_tokens_field="max_tokens",
    thinking_format="budget",
    cache_format="anthropic",
    cache_long="1h",
    auth="x-api-key",
    account_header="anthropic-organization-id",  # Anthropic documentation: API overview, response headers
)

FAMILIES: Final[tuple[Family, ...]] = (
    Family(
        pattern=r"^(?!.*claude)",
        rules={"reasoning_replay": "open"},
        dialect={"empty_signature": True},
        providers=("fireworks", "vercel-ai-gateway"),
        source="pi-ai 1.5.0 catalogue: all models of both; Claude checks its signatures behind every gateway",
        read="2026-11-15",
    ),
    Family(
        pattern=r"^(?!.*claude)",
        rules={"reasoning_replay": "open", "refused_with_thinking": frozenset[str]()},
        dialect={"empty_signature": True},
        providers=("deepseek", "kimi-coding", "ollama", "opencode", "opencode-go", "openrouter", "vllm", "zai"),
        source="signatures, and what sampling is refused with thinking, are Claude's; DeepSeek requires its thinking"
        " (9router #2397), Ollama answered thinking without a signature with 200 (recorded by others, 2026-11)",
        read="2026-11-19",
    ),
    Family(
        pattern=r"deepseek-v[4-9]",
        rules={"thinking_before_calls": True, "forced_choice_with_thinking": False, "thinks_unasked": True},
        providers=("deepseek",),
        source="'The `content[].thinking` in the thinking mode must be passed back to the API.' (9router #2397,"
        " 2026-07-05; Reasonix #8902, 2026-08-14); a forced tool, with nothing set (awesome-deepseek-integration #598)",
        read="2026-11-19",
    ),
    Family(
        pattern=CLAUDE,
        rules={
            "last_assistant": False,
            "max_images": 600,
            "schema_faults": Rule(
                '"It must match JSON Schema draft 2020-12" (claude-code #8210)', READ, values=frozenset({"invalid"})
            ),
            "strict_open_objects": Rule(f"{_LIMITATIONS}; veryfront-code #3918", READ),
            "strict_recursion": Rule(f"{_LIMITATIONS}; litellm #35808", READ),
            "strict_keywords": Rule(
                f"{_LIMITATIONS}; the schema transformation of anthropic 2.8.0", READ, values=_STRICT
            ),
            "strict_tools": Rule(_LIMITATIONS, READ, most=20),
            "strict_optional": Rule(_LIMITATIONS, READ, most=24),
            "strict_unions": Rule(_LIMITATIONS, READ, most=16),
            "lenient_output": Rule(f"{_LIMITATIONS}; litellm #21045", READ),
            "refused_options": _SAMPLING,
            "thinking_levels": frozenset({"off", "low", "medium", "high", "xhigh", "max"}),  # efforts: anthropic 2.8.0
            # "thinking.type.enabled is not supported for this model" from Opus 4.7 on (migration guide of 4.7)
            "thinking_types": frozenset({"adaptive", "disabled"}),
        },
        dialect={"thinking_format": "adaptive"},
        source="what's new in Claude 4.6 (prefill); `temperature` is deprecated from Opus 4.7 on (pi #7961)",
        read="2026-11-15",
    ),
    Family(
        pattern=CLAUDE_UP_TO_4_5,
        rules={
            "last_assistant": True,
            "max_images": 100,
            "thinking_before_calls": True,
            "thinking_levels": frozenset({"off", "minimal", "low", "medium", "high"}),  # sent as budgets
            "thinking_types": frozenset({"enabled", "disabled"}),
            "forced_choice_with_thinking": False,
            "refused_options": ["-temperature", "-top_p"],
            "refused_extra": frozenset({"output_config.effort", "thinking.type"}),  # documentation: effort, thinking
        },
        dialect={"thinking_format": "budget"},
        source="Anthropic documentation: thinking in tool workflows; opencode #3077; strands #1694 (prefill at 4.5)",
        read="2026-11-15",
    ),
    Family(
        pattern=_OPUS_4_5,
        rules={"refused_extra": ["-output_config.effort"]},
        source="Vercel AI Gateway, Claude Opus 4.5: effort low, medium or high, independent of the thinking budget",
        read="2026-11-15",
    ),
    Family(
        pattern=CLAUDE_ONE_SAMPLING_PARAMETER,
        rules={"exclusive_options": _SAMPLING},
        source="'`temperature` and `top_p` cannot both be specified for this model' (litellm #15097, opencode #28930)",
        read="2026-11-15",
    ),
    Family(
        pattern=CLAUDE_3_AND_3_5,
        rules={"thinking_types": frozenset({"disabled"})},
        source="Anthropic documentation: extended thinking, supported models (from 3.7 on)",
        read="2026-11-17",
    ),
    Family(
        pattern=CLAUDE_WITHOUT_SCHEMAS,
        rules={"refused_extra": ["output_config.format", "output_format"], "refused_options": ["output_schema"]},
        source="Anthropic documentation: structured outputs, supported models (from Opus 4.1 and Sonnet 4.5 on)",
        read="2026-11-17",
    ),
    Family(
        pattern=CLAUDE_4_6,
        rules={
            "exclusive_options": _SAMPLING,
            "refused_options": ["-temperature", "-top_p"],
            "thinking_types": frozenset({"adaptive", "enabled", "disabled"}),  # anthropic 2.8.0: deprecated only
            # the API refuses xhigh and lists these (recorded 400)
            "thinking_levels": frozenset({"off", "low", "medium", "high", "max"}),
        },
        source="anthropic 2.8.0 and pi-ai 1.5.0: 4.6 still accepts sampling parameters; recorded traffic, 2026-11",
        read="2026-11-15",
    ),
    Family(
        pattern=CLAUDE_REFUSES_FORCED_CHOICE,
        rules={"tool_choices": frozenset({"auto", "none"})},
        source='\'type "tool" and "any" are not supported for this model\' (vercel/ai #21364, oh-my-pi #12939)',
        read="2026-11-15",
    ),
    Family(
        pattern=CLAUDE,
        rules={"server_edits": frozenset({"clear", "compact"}), "compaction": Rule(least=50_000)},
        providers=("anthropic",),
        source="Anthropic documentation: context editing, compaction (from 4.6 on; trigger of at least 50,000 tokens)",
        read="2026-11-17",
    ),
    Family(
        pattern="claude",
        rules={"property_names": Rule(pattern="[a-zA-Z0-9_.-]{1,64}")},
        providers=CLAUDE_PROVIDERS,
        source="'Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'' (n8n #30590, 2026-05-17); of the first"
        " level only (decocms/studio #6874, 2026-09-02)",
        read="2026-11-17",
    ),
    Family(
        pattern="^",
        rules={"url_schemes": frozenset({"https"})},
        providers=CLAUDE_PROVIDERS,
        source="'Only HTTPS URLs are supported.' (Anthropic API)",
        read="2026-11-17",
    ),
    Family(
        pattern=CLAUDE_UP_TO_4_5,
        rules={"server_edits": frozenset[str]()},
        source="the same; context editing of the 4 models is left to segue",
        read="2026-11-17",
    ),
    *CLAUDE_BINDING,
    Family(
        pattern=CLAUDE_READS_BOUND,
        rules={"bound_account": "read"},
        providers=("anthropic", "google-vertex"),
        source="Anthropic documentation: preserved thinking (2026-11-09): Opus 5.5 reads Sonnet 5.5 there",
        read="2026-11-16",
    ),
    Family(
        pattern=CLAUDE_ALWAYS_THINKS,
        rules={
            "thinking_levels": frozenset({"low", "medium", "high", "xhigh", "max"}),
            "thinking_types": frozenset({"adaptive"}),
        },
        source="thinking of type `disabled` answers 400 (pydantic-ai 2.66.0, live; @ai-sdk/anthropic 3.0.138)",
        read="2026-11-15",
    ),
    Family(
        pattern=r"claude-mythos-preview",
        rules={"thinking_types": frozenset({"adaptive", "enabled"})},
        source="anthropic 2.8.0: `enabled` is deprecated for this model",
        read="2026-11-16",
    ),
    Family(
        pattern=CLAUDE_BETWEEN_TOOLS,
        rules={"thinking_types": frozenset({"adaptive", "between_tools"})},
        source="anthropic 2.8.0; Anthropic documentation: Claude Sonnet 5.5 (2026-09-28)",
        read="2026-11-16",
    ),
    Family(
        pattern=r"claude-(?:opus|sonnet)-5(?![-.\d])",
        rules={"efforts_without_thinking": frozenset({"low", "medium", "high"})},
        source="claude-code #76997 (2026-07-12: \"effort 'max' is not supported when thinking is disabled\"; reported)",
        read="2026-11-17",
    ),
    Family(
        pattern=CLAUDE_BINDS_PREFIX,
        rules={"efforts_without_thinking": frozenset({"low", "medium", "high"})},
        source="Anthropic documentation: Claude Sonnet 5.5, Claude Haiku 5.5 (2026-10)",
        read="2026-11-16",
    ),
    Family(
        pattern=r"claude-opus-5[-.]5(?!\d)",
        dialect={"default_effort": "medium"},
        source="Anthropic documentation: Claude Opus 5.5 (2026-09-22)",
        read="2026-11-16",
    ),
    Family(
        pattern=CLAUDE_COMPUTER_TOOLSET,
        rules={"refused_tool_types": frozenset({"computer_20250124", "computer_20251124"})},
        providers=("anthropic", "google-vertex"),
        source="Anthropic documentation: computer use, only computer_toolset_20260801; Bedrock accepts the older ones",
        read="2026-11-16",
    ),
    Family(
        pattern=CLAUDE_READS_SYSTEM,
        rules={"system_messages": "before_assistant", "system_fields": Rule(values=frozenset({"output_config"}))},
        providers=("anthropic", "github-copilot", "opencode"),
        source="what's new in Claude 4.8; pi-ai 1.5.0 catalogue: which providers pass the role on",
        read="2026-11-15",
    ),
    Family(
        pattern=CLAUDE_READS_SYSTEM,
        rules={"tool_changes": Rule()},
        providers=("anthropic",),
        source="anthropic 2.8.0: tool_addition, tool_removal; betas mid-conversation-tool-changes-2026-07-01 and"
        " inline-tools-2026-09-15, the latter at the Claude API alone (Anthropic documentation, 2026-09)",
        read="2026-11-16",
    ),
    Family(
        pattern=r"claude-sonnet-5(?![-.]\d)",
        rules={"system_messages": "before_assistant"},
        providers=("anthropic",),
        source="langchain-anthropic 1.5.13 (2026-10-20) and litellm 1.108.4; pi-ai 1.5.0 does not list it",
        read="2026-11-15",
    ),
    Family(
        pattern=f"{CLAUDE_UP_TO_4_5}|haiku",
        rules={"server_tools": frozenset({"web_search", "web_fetch", "code_execution", "tool_search", "mcp_toolset"})},
        providers=("anthropic",),
        source="the versions from 2026 on need Claude 4.6 (Anthropic documentation: web search); geode #460 (Haiku)",
        read="2026-11-15",
    ),
)
