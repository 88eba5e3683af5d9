"""Providers that serve their own models, and the cloud platforms of the largest of them.

The rows of Chinese ones are in `chinese_labs`.

Facts:
- Base URLs, names of key variables, and differences on `openai-chat`: the role of the system prompt, the field of the
  output limit, the parameter for thinking.     (pi-ai 1.5.0: providers, env-api-keys, auto-detection; read 2026-11-15)
- Anthropic takes $10 for 1,000 searches, nothing for fetching pages; errors are not counted. Code runs without a fee
  with a search, else by the hour of a container, which no reply tells.
                 (prices as public code and notes quote Anthropic's pages, 2026-11-17; anthropic 2.8.0: ServerToolUsage)
- OpenAI takes $10 for 1,000 calls of the web search, for searches alone, not for pages that are opened, and $2.50 for
  1,000 calls of the file search. Containers of code are paid by their lifetime, which no reply tells.
  (the web search as public notes quote OpenAI's page, 2026-11-17; files and opened pages are not verified; the form
  of items: openai 3.49.0)
- Google takes $14 for 1,000 queries of the search from Gemini 3 on, and $35 for 1,000 replies that searched before
  that. What is free in a day or month is not known here.     (as public notes quote Google's page, 2026-09)
- A provider accepts ids of the length that it generates: those of xAI have 43 characters.  (recorded traffic, 2026-11)
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from segue.models.chinese_labs import CHINESE_LABS, XIAOMI_AND_LING
from segue.models.model_ids import CLAUDE_FAST, CLAUDE_FIRST_FAST, GEMINI_1_AND_2, GEMINI_3_ON, OPENAI_PRIORITY
from segue.models.provider import PriceMode, Provider, ToolFee
from segue.models.rule import Rule

_READ: Final = "2026-11-15"
_HALF: Final = 0.5
"""Batches cost half of the list price (documentation of each of these providers, read 2026-11-15)."""
_PI: Final = "pi-ai 1.5.0"
_provider = partial(Provider, read=_READ)

_CACHING_TAKEN: Final = ("-cache_retention", "-session_id")
_OPENAI_KEYS: Final[Mapping[str, object]] = {
    "developer_role": True,
    "store": True,
    "strict_tools": True,
    "strict_schema": True,
    "cache_format": "openai-key",
    "cache_long": "24h",
    "session_header": "openai",
}
_TAKEN_FIELDS: Final = frozenset(
    f"ChatCompletionAssistantMessageParam.{key}"
    for key in ("annotations", "reasoning_content", "reasoning", "reasoning_details")
) | {
    "ChatCompletionMessageFunctionToolCallParam.index",
    "ChatCompletionMessageCustomToolCallParam.index",
    "ChatCompletionToolMessageParam.name",
    "FunctionDefinition.type",
}
"""What clients return of a reply or keep from older forms, and OpenAI and Azure take (recorded 200s of gpt-3.5-turbo to
gpt-5-nano, read 2026-11-17). No refusal of reasoning is known; that of other models is not sent to them."""
_STRUCTURED: Final = "OpenAI documentation: structured outputs, supported schemas"
_FORMATS: Final = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_REFUSED: Final = frozenset(
    {
        *("allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas"),
        *("uniqueItems", "propertyNames", "patternProperties", "minProperties", "maxProperties", "contains"),
        *("unevaluatedProperties", "unevaluatedItems", "minContains", "maxContains"),
    }
)
OPENAI_SCHEMAS: Final[Mapping[str, object]] = {
    "strict_open": Rule(
        '"... an array including every key in properties" (recorded; all of about 840 strict functions were closed)',
        _READ,
    ),
    "strict_keywords": Rule(
        f"\"'oneOf' is not permitted\", \"'uniqueItems' ...\" ({_STRUCTURED})", _READ, values=_REFUSED
    ),
    "strict_formats": Rule(_STRUCTURED, _READ, values=_FORMATS),
    "strict_references": Rule("\"$ref cannot have keywords {'description'}\" (hindsight #3944, 2026-08-31)", _READ),
    "strict_untyped": Rule(f"\"schema must have a 'type' key\" ({_STRUCTURED})", _READ),
    "strict_depth": Rule(_STRUCTURED, _READ, most=10),
    "strict_properties": Rule(_STRUCTURED, _READ, most=5000),
    "strict_values": Rule(_STRUCTURED, _READ, most=1000),
    "missing_properties": Rule('"object schema missing properties" (Copilot: copilot-api #192, 2026-02-11)', _READ),
    "schema_faults": Rule(
        '"array schema missing items", "is not valid under any ..." (OpenAI API)',
        _READ,
        values=frozenset({"invalid", "items"}),
    ),
    "json_word": True,  # "'messages' must contain the word 'json' in some form"
    # "logprobs are not supported with reasoning models" (reported 400s, 2025 and 2026)
    "extra_like": tuple(
        (key, "temperature")
        for key in ("logprobs", "top_logprobs", "logit_bias", "presence_penalty", "frequency_penalty")
    ),
}
_OPENAI_IMAGES: Final = ("image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp")
"""Others are refused: "is of one the following formats: ['png', 'jpeg', 'gif', 'webp']" (gptpdf #6, 2024-06-30)."""
_OPENAI_FILES: Final = ("openai-chat", "openai-responses")
_AZURE_FILES: Final[Mapping[str, object]] = {"file_id_pattern": "assistant-[A-Za-z0-9]+"}
_OPENAI_USER: Final[Mapping[str, object]] = {
    "user_id": Rule("OpenAI's reference of `safety_identifier`; `user`: bifrost #1000 of 2025-12", _READ, most=64)
}
"""openai 3.49.0 says 128."""
_CLAUDE_USER: Final = "Anthropic's reference of `metadata.user_id` (quoted in vercel/ai #12419, 2026-02)"


_NONE: Final = frozenset[str]()
_OPENAI_CHAT: Final[Mapping[str, object]] = {
    "refused_options": _CACHING_TAKEN,
    "server_tools": _NONE,
    "body_fields": "closed",
    # "Invalid 'tools': array too long. Expected an array with maximum length 128" (claude-code-router #686)
    "max_tools": 128,
    "stop": Rule("openai-openapi 2.3.0; OpenAI help: up to four stop sequences", _READ, most=4),
    "result_text_only": True,  # "Image URLs are only allowed for messages with role 'user'" (OpenHands #7700)
    "user_media": (*_OPENAI_IMAGES, "application/pdf"),  # sound: the models whose names have it
    **OPENAI_SCHEMAS,
    **_OPENAI_USER,
}
"""What OpenAI and Azure have over Chat Completions; other hosts have other sizes, or none."""
_CLAUDE_CLOUD: Final[Mapping[str, object]] = {
    # "output_config.effort: Extra inputs are not permitted" (Bedrock: claude-code-action #1005, 2026-03-04)
    "body_fields": "closed",
    "added_fields": frozenset({"anthropic_version", "anthropic_beta"}),  # in the body there, not in headers
}
_ANTHROPIC_TOOLS: Final = frozenset(
    {
        "web_search",
        "web_search_dynamic",
        "web_fetch",
        "web_fetch_dynamic",
        "code_execution",
        "tool_search",
        "mcp_toolset",
    }
)
_OPENAI_TOOLS: Final = frozenset(
    {"web_search", "web_search_preview", "code_interpreter", "file_search", "tool_search", "mcp"}
)
_GEMINI_TOOLS: Final = frozenset(
    {"googleSearch", "googleSearchRetrieval", "urlContext", "codeExecution", "fileSearch", "googleMaps"}
)
_GOOGLE_TOOLS: Final = ("google_search", "url_context", "code_execution", "file_search", "google_maps", "retrieval")
_INTERACTIONS_TOOLS: Final = frozenset({*_GOOGLE_TOOLS, "mcp_server", "computer_use"})
_VERTEX_TOOLS: Final = frozenset(
    {"vertex_googleSearch", "googleSearchRetrieval", "enterpriseWebSearch", "urlContext", "codeExecution", "googleMaps"}
)
_XAI_TOOLS: Final = frozenset({"xai_web_search", "xai_code_interpreter", "xai_file_search", "x_search", "mcp"})
"""The tools that each provider runs, by the names of the protocol's `server_tools`, which has sources and dates."""


FIRST_PARTY: Final[tuple[Provider, ...]] = (
    _provider(
        name="anthropic",
        title="Anthropic",
        protocol="anthropic-messages",
        base_url="https://api.anthropic.com",
        key_variables=("ANTHROPIC_API_KEY",),
        rules={
            "anthropic-messages": {
                "server_tools": _ANTHROPIC_TOOLS,
                "body_fields": "closed",
                "added_fields": frozenset({"billing_policy"}),  # anthropic 2.10.0, read 2026-11-18
                "user_id": Rule(
                    f'{_CLAUDE_USER}; "user_id appears to contain an email address" (Anthropic API)',
                    _READ,
                    most=256,
                    pattern=r"\S+@\S+\.\w+",
                ),
            },
            "openai-chat": {
                # "response_format.type: Input should be 'json_schema'" (hiring-agent #421, 2026-09-05)
                "refused_extra": frozenset({"response_format.type=json_object"}),
                "strict_open_objects": Rule(
                    "\"'additionalProperties' must be explicitly set to false\" (veryfront-code #3918, 2026-08-21)",
                    _READ,
                ),
            },
        },
        dialect={"anthropic-messages": {"strict_tools": True, "count_tokens": True}},
        file_ids=("anthropic-messages",),
        batch_price=_HALF,
        # Fast mode: $10/$50 for Opus 4.8 and 5, $30/$150 for Opus 4.6 and 4.7 (prices of resellers that pass it on and
        # name Anthropic's documentation, read 2026-11-18). "A 1.1x pricing multiplier applies" to US inference (Claude
        # Platform on AWS: data residency, read 2026-11-18). The priority tier is sold by contract: not known.
        price_modes=(
            PriceMode(field="speed", value="fast", share=2.0, models=CLAUDE_FAST),
            PriceMode(field="speed", value="fast", share=6.0, models=CLAUDE_FIRST_FAST),
            PriceMode(field="inference_geo", value="us", share=1.1),
        ),
        tool_fees=(
            ToolFee(
                dollars=0.01,
                count="server_tool_use.web_search_requests",
                block={"type": "server_tool_use", "name": "web_search"},
            ),
        ),
        source="anthropic 2.8.0 (count_tokens); pi-ai 1.5.0 catalogue (strict tools)",
    ),
    _provider(
        name="openai",
        title="OpenAI",
        protocol="openai-responses",
        base_url="https://api.openai.com/v1",
        key_variables=("OPENAI_API_KEY",),
        rules={
            "openai-chat": {**_OPENAI_CHAT, "added_fields": _TAKEN_FIELDS, "max_tokens_refused": True},
            "openai-responses": {
                "server_tools": _OPENAI_TOOLS,
                "body_fields": "closed",
                # the first: vercel/ai #18035, 2026-07-28; no refusal of the second is known
                "added_fields": frozenset({"Filters.blocked_domains", "ResponseOutputTextParam.id"}),
                "unique_items": True,  # "Duplicate item found with id rs_..." (continue #10723, 2026-02-22)
                **OPENAI_SCHEMAS,
                **_OPENAI_USER,
            },
        },
        dialect={
            "openai-chat": _OPENAI_KEYS,
            "openai-responses": {**_OPENAI_KEYS, "count_tokens": True},
        },
        file_ids=_OPENAI_FILES,
        batch_price=_HALF,
        # "Tokens are priced at Batch API rates" (OpenAI documentation: flex processing). Priority by the table of
        # openai.com/api-priority-processing against the list price; later models are not in it. Both read 2026-11-18.
        price_modes=(
            PriceMode(field="service_tier", value="flex", share=_HALF),
            *(
                PriceMode(field="service_tier", value=value, share=share, models=models)
                for value in ("priority", "fast")
                for models, share in OPENAI_PRIORITY.items()
            ),
        ),
        tool_fees=(
            ToolFee(dollars=0.01, block={"type": "web_search_call", "action.type": "search"}),
            ToolFee(dollars=0.0025, block={"type": "file_search_call"}),
        ),
        stated={
            "refused_input=image": '"image_url is only supported by certain models." (integration_openai #282)',
        },
        source="openai 3.49.0 (input_tokens); pi-ai 1.5.0",
    ),
    _provider(
        name="azure",
        title="Azure OpenAI",
        protocol="openai-responses",
        base_url="https://{AZURE_OPENAI_RESOURCE_NAME}.openai.azure.com/openai/v1",
        key_variables=("AZURE_OPENAI_API_KEY",),
        rules={
            "openai-chat": {
                **_OPENAI_CHAT,
                **_AZURE_FILES,
                "added_fields": _TAKEN_FIELDS | {"data_sources", "enhancements", "user_security_context"},
            },
            "openai-responses": {
                **_AZURE_FILES,
                "server_tools": _OPENAI_TOOLS,
                "body_fields": "closed",  # the same service (cline #5419, azure-sdk-for-python #46146)
                "refused_fields": frozenset({"Reasoning2.generate_summary"}),  # openai-dotnet #457, 2025-06-14
                "unique_items": True,  # the same service
                **OPENAI_SCHEMAS,
                **_OPENAI_USER,
            },
        },
        dialect={
            "openai-chat": {**_OPENAI_KEYS, "auth": "api-key"},
            "openai-responses": {**_OPENAI_KEYS, "auth": "api-key"},
        },
        file_ids=_OPENAI_FILES,
        batch_price=_HALF,
        stated={
            "refused_input=image": '"image_url is only supported by certain models." (gpt-4; web-ui #274, 2025-02-11)',
        },
        source="pi-ai 1.5.0; Azure documentation: v1 API, files",
    ),
    _provider(
        name="openai-codex",
        title="OpenAI Codex (ChatGPT plan)",
        protocol="openai-responses",
        base_url="https://chatgpt.com/backend-api",
        key_variables=(),
        rules={
            "openai-responses": {
                # "Unsupported parameter: user" (letta #3144, 2026-01-14)
                "refused_options": ("max_tokens", "temperature", "top_p", "user_id"),
                "refused_extra": frozenset({"user"}),
                # "Unsupported parameter: extra_headers" (hermes-agent #26599, 2026-05-15)
                "body_fields": "keys",
                "unstreamed": False,  # "Stream must be set to true" (reported 400s, 2025 and 2026)
                "unique_items": True,  # as OpenAI's own
                **_OPENAI_USER,
            }
        },
        dialect={
            "openai-responses": {
                "max_tokens_field": "none",
                # "Instructions are required" (pwnkit #330, OmniRoute #1709; empty ones are accepted: codex-proxy #112)
                "instructions": True,
                "session_header": "openai",
                "path": "/codex/responses",
            }
        },
        source=_PI,
    ),
    _provider(
        name="google",
        title="Google Gemini API",
        protocol="google-genai",
        base_url="https://generativelanguage.googleapis.com/v1beta",
        key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        rules={
            "google-genai": {
                "server_tools": _GEMINI_TOOLS,
                "body_fields": "closed",
                # Unknown name "additionalProperties" in `parameters` (openswarm #24 of 2026-05-06, Gemini 3.1 Pro),
                # "ref" (llm-gateway #1858, 2026-05-07); Vertex alone has references (google-genai 3.1.0)
                "refused_fields": frozenset({"Schema.additionalProperties", "Schema.ref", "Schema.defs"}),
                "max_tokens_refused": True,
            },
            # 'Unknown name "thinking_config": Cannot find field.' (hermes-agent #17426, 2026-04-29)
            "openai-chat": {"body_fields": "keys", "added_fields": frozenset({"extra_body"})},
            # error code `parameter_unknown` (live calls of a public adapter, read 2026-11-16)
            "google-interactions": {"server_tools": _INTERACTIONS_TOOLS, "body_fields": "closed"},
        },
        file_ids=("google-genai", "google-interactions"),
        dialect={"google-genai": {"count_tokens": True}},
        batch_price=_HALF,
        # Flex is "50% discount"; priority is "75% to 100% more than standard", by model: not known.
        # (Google documentation: Gemini API optimization, read 2026-11-18)
        price_modes=(PriceMode(field="service_tier", value="flex", share=_HALF),),
        tool_fees=(
            ToolFee(dollars=0.014, count="webSearchQueries", models=GEMINI_3_ON),
            ToolFee(dollars=0.035, count="webSearchQueries", models=GEMINI_1_AND_2, once=True),
        ),
        source="pi-ai 1.5.0; google-genai 3.1.0 (both variables); recorded traffic, 2026-11 (v1beta)",
    ),
    _provider(
        name="google-vertex",
        title="Google Vertex AI",
        protocol="google-genai",
        base_url="https://{GOOGLE_CLOUD_LOCATION}-aiplatform.googleapis.com",
        key_variables=("GOOGLE_CLOUD_API_KEY",),
        rules={
            "google-genai": {
                "file_id_pattern": r"gs://\S+",
                "server_tools": _VERTEX_TOOLS,
                "body_fields": "closed",
            },
            "anthropic-messages": {
                "image_sources": frozenset({"data"}),
                **_CLAUDE_CLOUD,
                "user_id": Rule(_CLAUDE_USER, _READ, most=256),
                "server_tools": frozenset({"web_search", "tool_search"}),  # coder/xum #2922, 2026-03-12
            },
        },
        dialect={
            "google-genai": {
                "auth": "google",
                "count_tokens": True,
                "path": (
                    "/v1/projects/{GOOGLE_CLOUD_PROJECT}/locations/{GOOGLE_CLOUD_LOCATION}/publishers/google/models/{model}"
                ),
            },
            "anthropic-messages": {"auth": "google", "transport": "vertex-raw-predict"},
        },
        file_ids=("google-genai",),
        batch_price=_HALF,
        source="pi-ai 1.5.0; recorded traffic, 2026-11; litellm (Claude at Vertex takes images as base64 only)",
    ),
    _provider(
        name="amazon-bedrock",
        title="Amazon Bedrock",
        protocol="bedrock-converse",
        base_url="https://bedrock-runtime.{AWS_REGION}.amazonaws.com",
        key_variables=("AWS_BEARER_TOKEN_BEDROCK",),
        rules={
            "anthropic-messages": {
                "image_sources": frozenset({"data"}),
                "file_sources": frozenset({"data"}),
                **_CLAUDE_CLOUD,
                # "cache_control: Extra inputs are not permitted" of the body itself (vercel/ai #13992, 2026-03-31)
                "refused_fields": frozenset({"MessageCreateParamsStreaming.cache_control"}),
                "server_tools": frozenset({"tool_search"}),  # subrouter #237, litellm #36502 (2026-08)
                "pending_calls": Rule("unfinished calls are refused (pydantic-ai, a comment in its tests)", _READ),
                # "Requests which include `tool_use` or `tool_result` blocks must define tools." (browser-use #1243)
                "tools_with_history": True,
            }
        },
        dialect={
            "bedrock-converse": {"count_tokens": True},
            "anthropic-messages": {"auth": "aws", "transport": "bedrock-invoke"},
        },
        file_ids=("bedrock-converse",),
        stated={"refused_input=image": "recorded refusals of media that a model lacks, and no reply (2026-11)"},
        source="pi-ai 1.5.0; botocore 1.44.0 (CountTokens); Claude's own wire: 'URL content sources are not yet"
        " supported' (chatlas #410, 2026-09-01) "
        "and unfinished server tool calls are refused (pydantic-ai, a comment in its tests)",
    ),
    _provider(
        name="mistral",
        title="Mistral AI",
        protocol="mistral-chat",
        base_url="https://api.mistral.ai",
        key_variables=("MISTRAL_API_KEY",),
        rules={
            "openai-chat": {
                "reasoning_replay": "none",
                "server_tools": _NONE,
                # mistralai 3.7.0: a part of the type `file` has an id, and no data
                "user_media": ("image/*", "audio/wav", "audio/mpeg", "audio/mp3"),
                "refused_roles": frozenset({"developer", "function"}),  # chatgpt-md #189
                # "Extra inputs are not permitted" (eca #231, 2025-12-12), in this format too: one endpoint
                "body_fields": "closed",
                "body_protocol": Rule(
                    '"Extra inputs are not permitted" (eca #231, 2025-12-12)', _READ, values=frozenset({"mistral-chat"})
                ),
                "added_fields": frozenset({"stream_options"}),  # every OpenAI client sends it, and no refusal is known
                "refused_extra": frozenset({"max_completion_tokens", "store", "logit_bias", "user", "seed"}),
                "refused_options": frozenset({"user_id", "seed"}),
                "greedy_top_p": Rule('"top_p must be 1 when using greedy sampling." (Mistral API, code 3054)', _READ),
            },
            "mistral-chat": {
                "server_tools": frozenset({"document_library"}),
                "body_fields": "closed",
            },  # mistralai 3.7.0
        },
        dialect={"openai-chat": {"max_tokens_field": "max_tokens"}},
        file_ids=("mistral-chat",),
        batch_price=_HALF,
        stated={
            "refused_input=image": '"Image input is not enabled for this model": 44 recorded refusals (2026-11)',
        },
        source="pi-ai 1.5.0; qwen-code #3304 (reasoning_content answers 422 in the OpenAI format)",
    ),
    _provider(
        name="cohere",
        title="Cohere",
        protocol="cohere-chat",
        base_url="https://api.cohere.com",
        rules={"cohere-chat": {"body_fields": "closed"}},
        key_variables=("CO_API_KEY", "COHERE_API_KEY"),
        stated={"refused_input=image": "recorded refusals of images by text models, and no reply (2026-11)"},
        source="cohere 7.3.1",
    ),
    *CHINESE_LABS,
    _provider(
        name="xai",
        title="xAI",
        protocol="openai-responses",
        base_url="https://api.x.ai/v1",
        key_variables=("XAI_API_KEY",),
        rules={
            # "Live search is deprecated." (vercel/ai #15713)
            "openai-chat": {
                "call_id_max": 0,
                "server_tools": _NONE,
                "tool_types": frozenset({"function"}),
                "refused_text": "empty",  # "Each message must have at least one content element." (crush #964)
                "max_tools": 200,  # xAI documentation: function calling (CLIProxyAPI #5214: a 400 of 695)
            },
            # xai-sdk 1.21.0; as above
            "openai-responses": {"server_tools": _XAI_TOOLS, "tool_namespaces": False, "max_tools": 200},
        },
        dialect={"openai-chat": {"effort": False}, "openai-responses": {"developer_role": False}},
        stated={
            "refused_input=image": '"The model does not support image input" (lobehub #7360, 2025-04-10)',
        },
        source="pi-ai 1.5.0; recorded traffic, 2026-11 (ids of 43 characters)",
    ),
    _provider(
        name="meta",
        title="Meta",
        protocol="openai-responses",
        base_url="https://api.meta.ai/v1",
        key_variables=("META_API_KEY",),
        source=_PI,
    ),
    *XIAOMI_AND_LING,
    _provider(
        name="perplexity",
        title="Perplexity",
        protocol="openai-chat",
        base_url="https://api.perplexity.ai",
        key_variables=("PERPLEXITY_API_KEY", "PPLX_API_KEY"),
        rules={
            "openai-chat": {
                "tools": False,
                "alternate": True,
                "first_user": True,
                "last_assistant": False,
                "system_messages": "none",
            }
        },
        dialect={"openai-chat": {"max_tokens_field": "max_tokens", "think_tags": True}},
        source="api-discussion #265, OpenManus #580 (alternation); karakeep #262 ('Last message must have role user')",
    ),
)
