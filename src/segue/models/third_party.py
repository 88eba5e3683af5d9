"""Providers that serve models of others: hosting companies, gateways and local servers.

Facts:
- Base URLs, names of key variables, and differences on their protocols.
                                              (pi-ai 1.5.0: providers, env-api-keys, auto-detection; read 2026-11-15)
- Groq and Cerebras refuse `reasoning_content` and accept `reasoning`.
                                        (freellmapi #1093, 2026-09-01; groq 1.7.0; qwen-code #11045, 2026-09-04)
- vLLM generates call ids of `chatcmpl-tool-` and up to 32 hexadecimal digits; providers that run it pass them on.
                                                                   (vLLM source, make_tool_call_id; read 2026-11-15)
- llama.cpp and vLLM refuse a last assistant turn if the chat template enables thinking, and most templates refuse a
  system message that is not the first.            (llama.cpp #21889, opencode #27920, 2026-05-16; Rapid-MLX #1543)
- LiteLLM requires `tools`, even if empty, if the history has calls.             (pi #149, opencode #8246, 2026-01-13)
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from segue.models.built_in import LOCAL_HOST
from segue.models.provider import PriceMode, Provider
from segue.models.rule import Rule

_READ: Final = "2026-11-15"
_HALF: Final = 0.5
"""Batches cost half of the list price (documentation of each of these providers, read 2026-11-15)."""
_PI: Final = "pi-ai 1.5.0"

_NO_PROPERTIES: Final = Rule('"object schema missing properties" (copilot-api #192, 2026-02-11)', _READ)
_ITEMS: Final = frozenset({"minItems", "maxItems"})
_SESSION_TAKEN: Final = ("-session_id",)
_ANY_IDS: Final[Mapping[str, object]] = {"call_id_max": 0}
_LOCAL_SERVER: Final[Mapping[str, object]] = {
    "call_id_max": 0,
    "reasoning_replay": "open",
    "last_assistant": False,
    "system_messages": "none",
    "instructions_alone": False,  # "No user query found in messages." (dify #33152: vLLM)
    "image_sources": frozenset({"data"}),
    "file_sources": frozenset[str](),
    # OpenAI's limits, which these servers do not have (source of llama.cpp and vLLM: a temperature is not negative)
    "temperature": None,
}
_OPENROUTER_AUDIO: Final = (
    *("audio/wav", "audio/mpeg", "audio/mp3", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac", "audio/m4a"),
)
_LOCAL_RESPONSES: Final[Mapping[str, object]] = {**_LOCAL_SERVER, "tool_namespaces": False}
_OPENCODE: Final[Mapping[str, object]] = {"max_tokens_field": "max_tokens", "strict_tools": True}

_OPENROUTER_TOOLS: Final = frozenset(
    f"openrouter:{name}" for name in ("web_search", "web_fetch", "bash", "tool_search", "other")
) | {"openrouter_flat_web_search"}
"""openrouter 1.3.84: for every model."""

_GROQ_FIELDS: Final = frozenset(
    {
        *("reasoning_format", "include_reasoning", "search_settings", "documents", "citation_options"),
        *("compound_custom", "disable_tool_validation", "exclude_domains", "include_domains", "functions"),
        *("reasoning_effort=default", "service_tier=on_demand"),
        "ChatCompletionToolMessageParam.name",  # answered with 200 (recorded traffic, 2026-11)
        *(f"ChatCompletionAssistantMessageParam.{key}" for key in ("reasoning", "executed_tools", "annotations")),
    }
)
"""groq 1.7.0: parameters in addition to OpenAI's, read 2026-11-15."""

_CEREBRAS_FIELDS: Final = frozenset(
    {
        *("clear_thinking", "disable_reasoning", "reasoning_format", "min_tokens", "queue_threshold"),
        "ChatCompletionAssistantMessageParam.reasoning",
        "ChatCompletionToolMessageParam.name",  # answered with 200 (recorded traffic, 2026-11)
    }
)
"""Cerebras documentation: chat completions, reasoning; read 2026-11-17."""

_FIREWORKS_FIELDS: Final = frozenset(
    {
        *("context_length_exceeded_behavior", "echo", "echo_last", "ignore_eos", "min_p", "mirostat_lr"),
        *("mirostat_target", "perf_metrics_in_response", "prompt_cache_isolation_key", "prompt_cache_max_len"),
        *("prompt_truncate_len", "raw_output", "repetition_penalty", "return_token_ids", "speculation", "top_k"),
        *("typical_p", "reasoning_history", "thinking", "safe_tokenization", "session_id"),
    }
)
"""fireworks-ai: parameters of chat completions in addition to OpenAI's, read 2026-11-17."""

_CLOUDS: Final = "anthropic 2.8.0: lib; AWS documentation"

_provider = partial(Provider, read=_READ)
_chat_host = partial(_provider, protocol="openai-chat")

THIRD_PARTY: Final[tuple[Provider, ...]] = (
    _provider(
        name="amazon-bedrock-mantle",
        title="Amazon Bedrock (Messages)",
        protocol="anthropic-messages",
        base_url="https://bedrock-mantle.{AWS_REGION}.api.aws/anthropic",
        key_variables=("AWS_BEARER_TOKEN_BEDROCK", "ANTHROPIC_AWS_API_KEY"),
        dialect={"anthropic-messages": {"auth": "aws", "aws_service": "bedrock-mantle"}},
        source=f"{_CLOUDS} (AnthropicBedrockMantle)",
        read="2026-11-17",
    ),
    _provider(
        name="amazon-bedrock-openai",
        title="Amazon Bedrock (OpenAI)",
        protocol="openai-responses",
        base_url="https://bedrock-runtime.{AWS_REGION}.amazonaws.com/openai/v1",
        key_variables=("AWS_BEARER_TOKEN_BEDROCK",),
        # No server tools; replies are synchronous.
        rules={
            "openai-responses": {"server_tools": frozenset[str]()},
            "openai-chat": {"server_tools": frozenset[str]()},
        },
        dialect={"openai-responses": {"auth": "aws"}, "openai-chat": {"auth": "aws"}},
        source="AWS documentation: OpenAI APIs of Bedrock",
        read="2026-11-17",
    ),
    _provider(
        name="anthropic-aws",
        title="Claude Platform on AWS",
        protocol="anthropic-messages",
        base_url="https://aws-external-anthropic.{AWS_REGION}.api.aws",
        key_variables=("ANTHROPIC_AWS_API_KEY",),
        dialect={"anthropic-messages": {"auth": "aws", "aws_service": "aws-external-anthropic"}},
        source=f"{_CLOUDS} (AnthropicAWS; a request also needs the header anthropic-workspace-id)",
        read="2026-11-17",
    ),
    _provider(
        name="anthropic-google-cloud",
        title="Claude on Google Cloud",
        protocol="anthropic-messages",
        base_url=(
            "https://claude.googleapis.com/v1/projects/{ANTHROPIC_GOOGLE_CLOUD_PROJECT}/locations/global"
            "/workspaces/{ANTHROPIC_GOOGLE_CLOUD_WORKSPACE_ID}/invoke"
        ),
        key_variables=(),
        dialect={"anthropic-messages": {"auth": "bearer"}},
        source=f"{_CLOUDS} (AnthropicGoogleCloud: access tokens only)",
        read="2026-11-17",
    ),
    _provider(
        name="azure-anthropic",
        title="Claude in Microsoft Foundry",
        protocol="anthropic-messages",
        base_url="https://{ANTHROPIC_FOUNDRY_RESOURCE}.services.ai.azure.com/anthropic",
        key_variables=("ANTHROPIC_FOUNDRY_API_KEY",),
        dialect={"anthropic-messages": {"auth": "x-api-key"}},
        source=f"{_CLOUDS} (AnthropicFoundry)",
        read="2026-11-17",
    ),
    # -- hosts of open models --------------------------------------------------------------------------------------
    _chat_host(
        name="groq",
        title="Groq",
        base_url="https://api.groq.com/openai/v1",
        key_variables=("GROQ_API_KEY",),
        rules={
            "openai-chat": {
                "reasoning_replay": "signed",
                "max_images": 5,
                "server_tools": frozenset[str](),
                "result_text_only": True,  # "content: value must be a string"
                "max_tools": 128,  # "'tools' : maximum number of items is 128" (gsd-2 #4376, ha-groq-cloud-api #25)
                "stop": Rule("Groq API reference: chat completions, up to four", _READ, most=4),
                "user_media": ("image/*",),
                # "property 'store' is unsupported" (chatbot #21); Groq documentation: OpenAI compatibility
                "body_fields": "closed",
                "added_fields": _GROQ_FIELDS,
                "refused_extra": frozenset({"logprobs", "top_logprobs", "logit_bias", "store", "prompt_cache_key"}),
                "tool_types": frozenset({"function", "browser_search", "code_interpreter", "mcp"}),
                "schema_with_tools": False,  # "json mode cannot be combined with tool/function calling" (agno #1065)
                "json_word": True,
                "max_tokens_refused": True,
                "strict_open": Rule("Groq documentation: structured outputs, requirements of strict mode", _READ),
            },
        },
        dialect={"openai-chat": {"reasoning_field": "reasoning", "strict_tools": True}},
        stated={
            "refused_input=image": '"messages[1].content must be a string" (gpt-oss-120b: jarvis-aio #17, 2026-09-05)',
        },
        # "Pricing matches the on-demand tier." (Groq documentation: flex processing, read 2026-11-18)
        price_modes=(PriceMode(field="service_tier", value="flex", share=1.0),),
        source="groq 1.7.0 (`reasoning` of a message); freellmapi #1093; pi #401 (five images)",
    ),
    _chat_host(
        name="cerebras",
        title="Cerebras",
        base_url="https://api.cerebras.ai/v1",
        key_variables=("CEREBRAS_API_KEY",),
        rules={
            "openai-chat": {
                "reasoning_replay": "open",
                # "property 'body.maxTokens' is unsupported" (opencode #6648, 2026-01-02), also inside messages
                # (free-claude-code #1136, 2026-07-16); Cerebras documentation: chat completions
                "body_fields": "closed",
                "added_fields": _CEREBRAS_FIELDS,
                "tool_types": frozenset({"function"}),  # cerebras-cloud-sdk 1.91.0: a tool has a `function`
                "user_media": ("image/*",),  # the same: texts and images
                # "body.store: property 'body.store' is unsupported" (openclaude #740, 2026-04-17)
                "refused_extra": frozenset({"store"}),
                "refused_options": _SESSION_TAKEN,  # `prompt_cache_key` (cerebras_cloud_sdk 1.91.0, read 2026-11-18)
                "strict_keywords": Rule(
                    '"Unsupported JSON schema fields" (claude-code-router #708, 2025-08-26)', _READ, values=_ITEMS
                ),
            }
        },
        # cerebras_cloud_sdk 1.91.0: a function has `strict`, read 2026-11-18
        dialect={"openai-chat": {"reasoning_field": "reasoning", "cache_format": "openai-key", "strict_tools": True}},
        source="qwen-code #11045, vercel/ai #15042; Cerebras documentation: reasoning",
    ),
    _chat_host(
        name="together",
        title="Together AI",
        base_url="https://api.together.ai/v1",
        key_variables=("TOGETHER_API_KEY",),
        rules={"openai-chat": _ANY_IDS},
        dialect={"openai-chat": {"max_tokens_field": "max_tokens", "thinking_format": "together", "effort": False}},
        source=_PI,
    ),
    _chat_host(
        name="fireworks",
        title="Fireworks AI",
        base_url="https://api.fireworks.ai/inference/v1",
        key_variables=("FIREWORKS_API_KEY",),
        rules={
            "openai-chat": {
                "call_id_max": 0,
                "refused_options": _SESSION_TAKEN,
                # "Extra inputs are not permitted, field: 'vl_high_resolution_images'" (midscene #1322, 2025-10-15)
                "body_fields": "keys",
                "added_fields": _FIREWORKS_FIELDS,
                "tool_types": frozenset({"function"}),  # fireworks-ai 1.2.30
                "user_media": ("image/*", "audio/*", "video/*"),  # no files (the same)
                "unstreamed_max_tokens": Rule(
                    '"Requests with max_tokens > 4096 must have stream=true" (nullclaw #231, goclaw #660)',
                    "2026-11-19",
                    most=4096,
                ),
            },
            "anthropic-messages": {
                "refused_options": _SESSION_TAKEN,
                # "Input should be 'function', 'web_search_preview' or 'code_interpreter'" (shelley #242, 2026-07-18)
                "tool_types": frozenset({"custom", "function", "web_search_preview", "code_interpreter"}),
                "server_tools": frozenset[str](),
                "thinking_levels": frozenset({"off", "low", "medium", "high"}),  # the efforts of this protocol
            },
        },
        dialect={
            # `prompt_cache_key`: fireworks_ai 1.2.28, read 2026-11-18
            "openai-chat": {"session_header": "openai", "strict_tools": True, "cache_format": "openai-key"},
            "anthropic-messages": {
                "cache_on_tools": False,
                "cache_long": "none",
                "session_header": "openai-nosession",
                "thinking_format": "adaptive",
            },
        },
        batch_price=_HALF,
        source=_PI,
    ),
    _chat_host(
        name="baseten",
        title="Baseten",
        base_url="https://inference.baseten.co/v1",
        key_variables=("BASETEN_API_KEY",),
        rules={"openai-chat": {"call_id_max": 0, "refused_options": _SESSION_TAKEN}},
        dialect={"openai-chat": {"max_tokens_field": "max_tokens", "session_header": "openai", "strict_tools": True}},
        source=_PI,
    ),
    _chat_host(
        name="huggingface",
        title="Hugging Face",
        base_url="https://router.huggingface.co/v1",
        key_variables=("HF_TOKEN",),
        rules={"openai-chat": _ANY_IDS},
        dialect={"openai-chat": {"strict_tools": True}},
        source="pi-ai 1.5.0; recorded traffic, 2026-11",
    ),
    _chat_host(
        name="nvidia",
        title="NVIDIA NIM",
        base_url="https://integrate.api.nvidia.com/v1",
        key_variables=("NVIDIA_API_KEY",),
        rules={"openai-chat": {"call_id_max": 0, "empty_result": False, "refused_options": ["session_id"]}},
        dialect={"openai-chat": {"max_tokens_field": "max_tokens", "effort": False}},
        source="pi-ai 1.5.0; strands (Nemotron refuses an empty result); kimi-cli #2534 (`prompt_cache_key`)",
    ),
    _chat_host(
        name="snowflake",
        title="Snowflake Cortex",
        base_url="https://{SNOWFLAKE_ACCOUNT}.snowflakecomputing.com/api/v2/cortex/v1",
        key_variables=("SNOWFLAKE_PAT", "SNOWFLAKE_TOKEN"),
        dialect={
            "openai-chat": {
                "thinking_format": "openrouter",
                "reasoning_field": "reasoning_details",
                "finish_reason": False,
            },
            "anthropic-messages": {"auth": "bearer"},
        },
        source="Snowflake documentation: Cortex REST API; recorded traffic, 2026-11 (effort, details, no reason)",
    ),
    # -- gateways --------------------------------------------------------------------------------------------------
    _chat_host(
        name="openrouter",
        title="OpenRouter",
        base_url="https://openrouter.ai/api/v1",
        key_variables=("OPENROUTER_API_KEY",),
        rules={
            "openai-chat": {
                "call_id_max": 0,
                "cache_marks": 4,
                "cache_mark_key": "cache_control",
                "refused_options": _SESSION_TAKEN,
                # OpenRouter documentation: video, audio and PDF inputs; recorded 200s of pydantic-ai with a video and a
                # PDF by URL. Sound is accepted as data only.
                "user_media": ("image/*", "application/pdf", *_OPENROUTER_AUDIO, "video/*"),
                "file_sources": frozenset({"data", "url"}),
                "url_media": ("image/*", "application/pdf", "video/*"),
                "server_tools": _OPENROUTER_TOOLS,
                "user_id": Rule("claude-code-provider-proxy #11, 2025-07", _READ, most=128),
            },
            "openai-responses": {"unique_items": True},  # ai-sdk-provider #254, 2025-11-26
        },
        dialect={
            "openai-chat": {
                "reasoning_field": "reasoning_details",
                "thinking_format": "openrouter",
                "session_header": "openrouter",
                "strict_tools": True,
            },
            "anthropic-messages": {"auth": "bearer"},
        },
        stated={
            "refused_input=image": '"No endpoints found that support image input" (hermes-agent #23411, 2026-05-10)',
        },
        source="pi-ai 1.5.0; recorded traffic, 2026-11 (cache marks for Claude and Gemini)",
    ),
    _provider(
        name="vercel-ai-gateway",
        title="Vercel AI Gateway",
        protocol="anthropic-messages",
        base_url="https://ai-gateway.vercel.sh",
        key_variables=("AI_GATEWAY_API_KEY",),
        source=_PI,
    ),
    _chat_host(
        name="cloudflare-ai-gateway",
        title="Cloudflare AI Gateway",
        base_url="https://gateway.ai.cloudflare.com/v1/{CLOUDFLARE_ACCOUNT_ID}/{CLOUDFLARE_GATEWAY_ID}/compat",
        key_variables=("CLOUDFLARE_API_KEY",),
        rules={
            "openai-chat": {"refused_options": _SESSION_TAKEN},
            "anthropic-messages": {"refused_options": _SESSION_TAKEN},
        },
        dialect={
            "openai-chat": {"max_tokens_field": "max_tokens", "effort": False, "session_header": "openai"},
            "anthropic-messages": {"session_header": "openai-nosession"},
            "openai-responses": {"strict_tools": True},
        },
        source=_PI,
    ),
    _chat_host(
        name="cloudflare-workers-ai",
        title="Cloudflare Workers AI",
        base_url="https://api.cloudflare.com/client/v4/accounts/{CLOUDFLARE_ACCOUNT_ID}/ai/v1",
        key_variables=("CLOUDFLARE_API_KEY",),
        rules={"openai-chat": {"call_id_max": 0, "refused_options": _SESSION_TAKEN}},
        dialect={"openai-chat": {"session_header": "openai", "strict_tools": True}},
        source=_PI,
    ),
    _provider(
        name="github-copilot",
        title="GitHub Copilot",
        protocol="openai-responses",
        base_url="https://api.individual.githubcopilot.com",
        key_variables=("COPILOT_GITHUB_TOKEN",),
        rules={
            "openai-chat": {"missing_properties": _NO_PROPERTIES},
            # "Duplicate item found with id msg_123." (vscode #321977, 2026-06-18)
            "openai-responses": {
                "missing_properties": _NO_PROPERTIES,
                "unique_items": True,
                # "The requested tool image_generation is not supported." (copilot-api #220, 2026-04-27)
                "refused_tool_types": frozenset({"image_generation"}),
            },
        },
        dialect={"openai-chat": {"effort": False, "strict_tools": True}, "anthropic-messages": {"auth": "bearer"}},
        source='pi-ai 1.5.0; "object schema missing properties" (copilot-api #192, 2026-02-11)',
    ),
    _chat_host(
        name="opencode",
        title="OpenCode Zen",
        base_url="https://opencode.ai/inference/openai/v1",
        key_variables=("OPENCODE_API_KEY",),
        dialect={"openai-chat": _OPENCODE, "openai-responses": {"session_header": "openai-nosession"}},
        source=_PI,
    ),
    _chat_host(
        name="opencode-go",
        title="OpenCode Go",
        base_url="https://opencode.ai/inference/go/openai/v1",
        key_variables=("OPENCODE_API_KEY",),
        dialect={"openai-chat": _OPENCODE, "openai-responses": {"session_header": "openai-nosession"}},
        source=_PI,
    ),
    _chat_host(
        name="litellm",
        title="LiteLLM proxy",
        base_url="http://localhost:4000",
        key_variables=("LITELLM_API_KEY",),
        dialect={"openai-chat": {"empty_tools": True, "max_tokens_field": "max_tokens"}},
        source="pi #149, opencode #8246 (`tools=` param)",
    ),
    # -- local servers ---------------------------------------------------------------------------------------------
    _provider(
        name="ollama",
        title="Ollama",
        protocol="ollama-chat",
        base_url="http://localhost:11434",
        key_variables=("OLLAMA_API_KEY",),
        # An unanswered call was answered with 200 (recorded by others, 2026-11): the server does not check pairs.
        rules={
            "openai-chat": {**_LOCAL_SERVER, "last_assistant": True, "paired_calls": False},
            "openai-responses": {"paired_calls": False},
            "anthropic-messages": {"paired_calls": False},
        },
        dialect={
            "openai-chat": {
                "reasoning_field": "reasoning",
                "max_tokens_field": "max_tokens",
                "path": "/v1/chat/completions",
            }
        },
        any_id=True,
        source="ollama server source @fb30760; hermes-agent #80265",
    ),
    _chat_host(
        name="vllm",
        title="vLLM",
        base_url="http://localhost:8000/v1",
        key_variables=("VLLM_API_KEY",),
        rules={
            "openai-chat": {
                **_LOCAL_SERVER,
                "image_sources": frozenset({"data", "url"}),
                "user_media": ("image/*", "audio/*", "video/*"),  # vLLM documentation: multimodal inputs
                "file_sources": frozenset({"data", "url"}),
            }
        },
        dialect={"openai-chat": {"max_tokens_field": "max_tokens", "thinking_budget_field": "thinking_token_budget"}},
        any_id=True,
        source="vLLM source; opencode #27920; pi-ai 1.5.0 (thinking_token_budget)",
    ),
    _chat_host(
        name="llama.cpp",
        title="llama.cpp server",
        base_url="http://localhost:8080/v1",
        key_variables=("LLAMA_API_KEY",),
        rules={"openai-chat": _LOCAL_SERVER, "openai-responses": _LOCAL_RESPONSES, "anthropic-messages": _LOCAL_SERVER},
        dialect={
            "openai-chat": {
                "max_tokens_field": "max_tokens",
                "thinking_budget_field": "thinking_budget_tokens",
                "count_tokens": True,
            },
            "openai-responses": {"count_tokens": True},
            "anthropic-messages": {"empty_signature": True, "count_tokens": True},
        },
        any_id=True,
        source="llama.cpp #21889; Crow #60 (reasoning_content keeps the prefix); pi-ai 1.5.0; its three wires tried",
    ),
    _provider(
        name="local",
        title="A model from a GGUF file, which segue runs",
        protocol="openai-chat",
        base_url=f"http://{LOCAL_HOST}/v1",
        key_variables=(),
        rules={"openai-chat": _LOCAL_SERVER},
        dialect={"openai-chat": {"auth": "none", "max_tokens_field": "max_tokens"}},
        any_id=True,
        source="llama.cpp's server in xllamacpp 2026.10.11549, tried",
        read="2026-11-17",
    ),
    _chat_host(
        name="lmstudio",
        title="LM Studio",
        base_url="http://localhost:1234/v1",
        key_variables=("LMSTUDIO_API_KEY",),
        rules={
            "openai-chat": _LOCAL_SERVER,
            "openai-responses": {"image_sources": frozenset({"data"})},  # lmstudio-bug-tracker #1120, 2025-10-17
        },
        dialect={"openai-chat": {"max_tokens_field": "max_tokens"}},
        any_id=True,
        source="LM Studio documentation: OpenAI compatibility; templates as for llama.cpp",
    ),
    _provider(
        name="vscode",
        title="VS Code language models",
        protocol="vscode-lm",
        base_url=None,
        key_variables=(),
        source="@types/vscode 1.140.0",
    ),
    _provider(
        name="plain-text",
        title="Plain text",
        protocol="plain-text",
        base_url=None,
        key_variables=(),
        source="our own form",
    ),
)
