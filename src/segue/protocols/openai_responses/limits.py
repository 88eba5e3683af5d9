"""Limits of single values in the Responses API, by provider; `kit.limits` explains the rows (read 2026-11-17)."""

from __future__ import annotations

from typing import Final

from segue.models.model_ids import (
    OPENAI_ALWAYS_THINKS,
    OPENAI_GPT_5_1_TO_4,
    OPENAI_GPT_5_5_UP,
    OPENAI_GPT_5_ALONE,
    OPENAI_GPT_6_ON,
    OPENAI_O_SERIES,
    OPENAI_WITHOUT_CHAT,
    OPENAI_WITHOUT_REASONING,
)
from segue.protocols.families.openai_cache import CACHE_LIMITS
from segue.protocols.kit.limits import NULL, Limit, Limits, rows_of

_OPENAI: Final = ("openai", "azure")
_SPEC: Final = "openai-openapi 2.3.0: the parameter's bounds"
_NOT_FOUND: Final = "\"Tool choice 'web_search_preview' not found in 'tools' parameter.\" (OpenAI API)"
_MINIMAL: Final = "\"The following tools cannot be used with reasoning.effort 'minimal': web_search.\" (OpenAI API)"
_LOGPROBS: Final = '"logprobs are not supported with reasoning models."'
_EMPTY: Final = '"empty array. Expected an array with minimum length 1" (OpenAI API)'
_CODEX: Final = "the backend of Codex; reported 400s, 2025 and 2026"
_XAI_THINKS: Final = r"grok-(?:4\.[5-9]|build-latest)"
_XAI_EFFORTS: Final = (
    "`none` and `max` are refused, `minimal` and `xhigh` taken (llmgateway #3669, live, 2026-08-18); xAI documentation:"
    " reasoning, it cannot be disabled"
)
_XAI: Final = "xAI documentation: Responses API, unsupported parameters"

LIMITS: Final = Limits(
    (
        # -- input
        *rows_of(
            _OPENAI,
            Limit(
                "previous_response_id",
                "\"Invalid 'previous_response_id': 'x'. Expected an ID that begins with 'resp'.\"",
                pattern=r"resp.+",
            ),
            Limit(
                "input.*.content.*.type",
                "openai 3.49.0: an image has an address or a file id",
                equals="input_image",
                needs=(".image_url", ".file_id"),
            ),
            Limit(
                "input.*.content.*.image_url",
                '"Expected a valid URL, but got a value with an invalid format." (OpenAI API; documentation: images)',
                pattern=r"(?i:data:image/|(?!data:)).+",  # of addresses: `Rules.url_schemes`
                advice="use an https address or the data URL of an image",
            ),
            Limit(
                "input.*.content.*.type",
                "openai 3.49.0: a file has its data, its address or its id",
                equals="input_file",
                needs=(".file_data", ".file_url", ".file_id"),
            ),
            # -- settings
            Limit("max_tool_calls", "openai 3.49.0: a number of calls", least=1),
            Limit("metadata", _SPEC, most=16),
            Limit("metadata.~", _SPEC, most=64),
            Limit("metadata.*", _SPEC, most=512),
            Limit("prompt_cache_key", "openai-openapi 2.3.0: maxLength 64", most=64),
            Limit("top_logprobs", _SPEC, least=0, most=20),
            Limit("stream_options", "openai 3.49.0: only with `stream: true`", needs=("stream=true",)),
            Limit(
                "background",
                "OpenAI documentation: background mode requires store=true",
                equals=True,
                excludes=("store=false",),
            ),
            Limit(
                "include.*",
                '"Encrypted content is not supported with this model." (OpenAI API, of models that do not reason)',
                refused="remove it",
                equals="reasoning.encrypted_content",
                models=OPENAI_WITHOUT_REASONING,
            ),
            Limit(
                "include.*",
                f"{_LOGPROBS} (OpenAI API, of models that always reason)",
                refused="remove it",
                equals="message.output_text.logprobs",
                models=rf"{OPENAI_O_SERIES}|{OPENAI_GPT_5_ALONE}|{OPENAI_ALWAYS_THINKS}|{OPENAI_GPT_6_ON}",
            ),
            Limit(
                "include.*",
                f"{_LOGPROBS} (OpenAI API; accepted with effort none)",
                equals="message.output_text.logprobs",
                needs=('reasoning.effort="none"',),
                models=OPENAI_GPT_5_5_UP,
            ),
            Limit(
                "include.*",
                f"{_LOGPROBS} (OpenAI API; accepted with effort none)",
                equals="message.output_text.logprobs",
                excludes=tuple(f'reasoning.effort="{effort}"' for effort in ("low", "medium", "high", "xhigh")),
                models=OPENAI_GPT_5_1_TO_4,
            ),
            Limit(
                "tools.*.strict",
                "\"Invalid schema for function 'done': In context=(), 'additionalProperties' is required to be supplied"
                ' and to be false.", of a tool without parameters (agent-kit #66, 2025-02-13, of Chat Completions)',
                equals=True,
                when=('.type="function"',),
                needs=(".parameters",),
            ),
            Limit(
                "text.format.name",
                "openai 3.49.0: letters, digits, _ and -, at most 64",
                pattern=r"[a-zA-Z0-9_-]{1,64}",
            ),
            Limit(
                "input",
                "OpenAI documentation: models, endpoints (audio and search models of Chat Completions)",
                refused="use openai-chat",
                models=r"^gpt-4o(?:-mini)?-(?:audio|search)-preview|^gpt-audio",
                providers=("openai",),
            ),
            Limit(
                "input",
                "OpenAI documentation: models, endpoints",
                refused="choose another model",
                models=OPENAI_WITHOUT_CHAT,
                providers=("openai",),
            ),
            Limit(
                "reasoning.summary",
                "openai 3.49.0: `concise` for computer-use-preview and all reasoning models after gpt-5",
                refused="use auto or detailed",
                equals="concise",
                models=rf"{OPENAI_O_SERIES}|{OPENAI_GPT_5_ALONE}",
            ),
            *CACHE_LIMITS,
            # -- tools
            Limit("tool_choice.tools.*.name", _NOT_FOUND, among="tools.*.name"),
            Limit("tools.*.partial_images", "openai 3.49.0: from 0 to 3", least=0, most=3),
            Limit("tools.*.output_compression", "OpenAI documentation: images, a percentage", most=100),
            Limit(
                "tools.*.type",
                "OpenAI documentation: local shell, codex-mini-latest alone",
                refused="use shell",
                equals="local_shell",
                models=r"^(?!.*codex)",
            ),
            *(
                Limit(
                    "tools.*.type",
                    "OpenAI documentation: shell and apply_patch, from GPT-5.1 on",
                    refused="choose another model",
                    equals=kind,
                    models=rf"{OPENAI_WITHOUT_REASONING}|{OPENAI_O_SERIES}",
                )
                for kind in ("shell", "apply_patch")
            ),
            *(
                Limit(
                    "tools.*.type",
                    "\"Tool 'tool_search' is not supported with gpt-5.1\", nor with gpt-5.4-nano; GPT-5.2 took it"
                    " (public probes, 2026); OpenAI documentation: computer use, from GPT-5.4; inspect_ai #3844 (nano)",
                    refused="choose another model",
                    equals=kind,
                    models=rf"{OPENAI_WITHOUT_REASONING}|{OPENAI_O_SERIES}|{OPENAI_GPT_5_ALONE}|gpt-5\.(?:{some}|4-nano)",
                )
                for kind, some in (("computer", "[123]"), ("tool_search", "1"))
            ),
            Limit("tool_choice.name", _NOT_FOUND, among="tools.*.name", when=('tool_choice.type="function"',)),
            *(
                Limit("tool_choice.type", _NOT_FOUND, equals=kind, among="tools.*.type")
                for kind in ("web_search", "web_search_preview", "file_search", "code_interpreter", "image_generation")
            ),
            Limit(
                "tool_choice",
                "\"Tool choice 'required' must be specified with 'tools' parameter.\" (OpenAI API)",
                equals="required",
                needs=("tools", "prompt", "previous_response_id", "conversation"),
            ),
            *(
                Limit(
                    "tools.*.type",
                    '"Web Search cannot be used with JSON mode." (OpenAI API; reported 400s, 2025 and 2026)',
                    equals=kind,
                    excludes=('text.format.type="json_object"',),
                )
                for kind in ("web_search", "web_search_preview")
            ),
            Limit(
                "tools.*.type",
                "OpenAI documentation: computer use, the preview tool is that of the model computer-use-preview",
                refused="choose its model",
                equals="computer_use_preview",
                models=r"^(?!.*computer-use)",
            ),
            *(
                Limit("tools.*.type", _MINIMAL, equals=kind, excludes=('reasoning.effort="minimal"',))
                for kind in ("web_search", "web_search_preview", "file_search", "code_interpreter", "image_generation")
            ),
            *(
                Limit(
                    "tools.*.type",
                    "\"Hosted tool 'web_search_preview' is not supported with gpt-4.1-nano.\" (OpenAI documentation:"
                    " web search)",
                    refused="choose another model",
                    equals=kind,
                    models="gpt-4\\.1-nano",
                )
                for kind in ("web_search", "web_search_preview")
            ),
            Limit(
                "model",
                "\"Deep research models require at least one of 'web_search_preview', 'mcp', or 'file_search' tools.\"",
                needs=(
                    'tools.*.type="web_search_preview"',
                    'tools.*.type="web_search"',
                    'tools.*.type="mcp"',
                    'tools.*.type="file_search"',
                ),
                models="deep-research",
            ),
            Limit(
                "tools.*.type",
                "OpenAI documentation: computer use, truncation auto is required",
                equals="computer_use_preview",
                needs=('truncation="auto"',),
            ),
            Limit(
                "tools.*.type",
                "openai 3.49.0: one of the three must be provided",
                equals="mcp",
                needs=(".server_url", ".connector_id", ".tunnel_id"),
            ),
            Limit(
                "tools",
                '"Duplicate server_label found. Please provide a unique identifier for each tool." (OpenAI API)',
                unique="server_label",
                advice="rename it",
            ),
            Limit("tools.*.vector_store_ids", _EMPTY, least=1, advice="name a store"),
            Limit("tools.*.max_num_results", "openai 3.49.0: between 1 and 50", least=1, most=50),
            Limit("tools.*.ranking_options.score_threshold", "openai 3.49.0: between 0 and 1", least=0, most=1),
        ),
        Limit(
            "tools.*.name",
            "\"Function 'image_gen.imagegen' conflicts with a hosted tool in the same request.\" (codex #32208)",
            equals="image_gen",
            excludes=('tools.*.type="image_generation"',),
            providers=(*_OPENAI, "openai-codex"),
        ),
        # -- Codex with a ChatGPT plan
        *rows_of(
            ("openai-codex",),
            Limit(
                "input",
                f'"Instructions are required" ({_CODEX}; empty ones are accepted: codex-proxy #112)',
                needs=("instructions", 'instructions=""'),
            ),
            Limit("store", f'"Store must be set to false" ({_CODEX})', allowed=(False,)),
            Limit(
                "input.*.role",
                '"System messages are not allowed" (AIClient2API #632, 2026-06-04)',
                refused="use developer, or `instructions`",
                equals="system",
            ),
            Limit(
                "tools.*.type",
                '"Unsupported tool type: web_search_preview" (just-every/code #147, 2025-09-13)',
                refused="use web_search",
                equals="web_search_preview",
            ),
            *(
                Limit(key, f'"Unsupported parameter" ({_CODEX})', refused="change it")
                for key in ("temperature", "max_output_tokens", "prompt_cache_retention")
            ),
        ),
        # -- Copilot
        Limit(
            "reasoning.summary",
            "\"Invalid value: 'off'. Supported values are: 'concise', 'detailed', and 'auto'.\" (vscode #323748,"
            " 2026-06-30)",
            allowed=("auto", "concise", "detailed"),
            providers=("github-copilot",),
        ),
        # -- xAI
        *rows_of(
            ("xai",),
            Limit(
                "tools",
                "xAI documentation: function calling (CLIProxyAPI #5214, 2026-08-24: a 400 of 695)",
                most=200,
                advice="remove some",
            ),
            Limit(
                "input.*.content",
                '"data did not match any variant of untagged enum ModelInput" of Codex\'s `content: null`, found by'
                " halving a request (sub2api #4237, 2026-07-14)",
                equals=NULL,
                refused="remove it",
                when=('.type="reasoning"',),
            ),
            *(Limit(key, _XAI, refused="remove it") for key in ("metadata", "truncation", "service_tier")),
            *(
                Limit("reasoning.effort", _XAI_EFFORTS, equals=effort, refused=f"use {other}", models=_XAI_THINKS)
                for effort, other in (("none", "low"), ("max", "high"))
            ),
            Limit(
                "include.*",
                '"Argument not supported: include" (xAI: openclaw #12910, 2026-02-09)',
                refused="remove it",
                equals="inline_citations",
            ),
            Limit("background", _XAI, refused="remove it", equals=True),
            Limit(
                "tools.*.external_web_access",
                '"Argument not supported: external_web_access" (cindy #4336, 2026-09-12)',
                refused="remove it",
            ),
            Limit(
                "instructions",
                "xAI documentation: Responses API, not beside previous_response_id",
                excludes=("previous_response_id",),
            ),
        ),
    ),
    read="2026-11-17",
)
