"""Limits of single values in the Responses API, by provider; `kit.limits` explains the rows (read 2026-11-17)."""

from __future__ import annotations

from typing import Final

from segue.models.model_ids import OPENAI_GPT_5_ALONE, OPENAI_O_SERIES, OPENAI_WITHOUT_REASONING
from segue.protocols.kit.limits import Limit, Limits
from segue.protocols.kit.openai_cache import CACHE_LIMITS

_OPENAI: Final = ("openai", "azure")
_SPEC: Final = "openai-openapi 2.3.0: the parameter's bounds"
_NOT_FOUND: Final = "\"Tool choice 'web_search_preview' not found in 'tools' parameter.\" (OpenAI API)"
_MINIMAL: Final = "\"The following tools cannot be used with reasoning.effort 'minimal': web_search.\" (OpenAI API)"
_EMPTY: Final = '"empty array. Expected an array with minimum length 1" (OpenAI API)'
_CODEX: Final = "the backend of Codex; reported 400s, 2025 and 2026"
_XAI: Final = "xAI documentation: Responses API, unsupported parameters"

LIMITS: Final = Limits(
    (
        # -- input
        Limit(
            "previous_response_id",
            "\"Invalid 'previous_response_id': 'x'. Expected an ID that begins with 'resp'.\"",
            pattern=r"resp.+",
            providers=_OPENAI,
        ),
        Limit(
            "input.*.content.*.type",
            "openai 3.49.0: an image has an address or a file id",
            equals="input_image",
            needs=(".image_url", ".file_id"),
            providers=_OPENAI,
        ),
        Limit(
            "input.*.content.*.image_url",
            '"Expected a valid URL, but got a value with an invalid format." (OpenAI API; documentation: images)',
            pattern=r"(?i:https?://|data:image/).+",
            providers=_OPENAI,
            advice="use an https address or a data URL",
        ),
        Limit(
            "input.*.content.*.type",
            "openai 3.49.0: a file has its data, its address or its id",
            equals="input_file",
            needs=(".file_data", ".file_url", ".file_id"),
            providers=_OPENAI,
        ),
        # -- settings
        Limit("max_tool_calls", "openai 3.49.0: a number of calls", least=1, providers=_OPENAI),
        Limit("metadata", _SPEC, most=16, providers=_OPENAI),
        Limit("metadata.~", _SPEC, most=64, providers=_OPENAI),
        Limit("metadata.*", _SPEC, most=512, providers=_OPENAI),
        Limit("prompt_cache_key", "openai-openapi 2.3.0: maxLength 64", most=64, providers=_OPENAI),
        Limit("top_logprobs", _SPEC, least=0, most=20, providers=_OPENAI),
        Limit(
            "stream_options",
            "openai 3.49.0: only with `stream: true`",
            needs=("stream=true",),
            providers=_OPENAI,
        ),
        Limit(
            "background",
            "OpenAI documentation: background mode requires store=true",
            equals=True,
            excludes=("store=false",),
            providers=_OPENAI,
        ),
        Limit(
            "include.*",
            '"Encrypted content is not supported with this model." (OpenAI API, of models that do not reason)',
            refused=True,
            equals="reasoning.encrypted_content",
            models=OPENAI_WITHOUT_REASONING,
            providers=_OPENAI,
            advice="remove it",
        ),
        Limit(
            "text.format.name",
            "openai 3.49.0: letters, digits, _ and -, at most 64",
            pattern=r"[a-zA-Z0-9_-]{1,64}",
            providers=_OPENAI,
        ),
        Limit(
            "input",
            "OpenAI documentation: models, endpoints (audio and search models of Chat Completions)",
            refused=True,
            models=r"^gpt-4o(?:-mini)?-(?:audio|search)-preview|^gpt-audio",
            providers=("openai",),
            advice="use openai-chat",
        ),
        Limit(
            "reasoning.summary",
            "openai 3.49.0: `concise` for computer-use-preview and all reasoning models after gpt-5",
            refused=True,
            equals="concise",
            models=rf"{OPENAI_O_SERIES}|{OPENAI_GPT_5_ALONE}",
            providers=_OPENAI,
            advice="use auto or detailed",
        ),
        *CACHE_LIMITS,
        # -- tools
        Limit("tool_choice.tools.*.name", _NOT_FOUND, among="tools.*.name", providers=_OPENAI),
        Limit("tools.*.partial_images", "openai 3.49.0: from 0 to 3", least=0, most=3, providers=_OPENAI),
        Limit("tools.*.output_compression", "OpenAI documentation: images, a percentage", most=100, providers=_OPENAI),
        Limit(
            "tools.*.type",
            "OpenAI documentation: local shell, codex-mini-latest alone",
            refused=True,
            equals="local_shell",
            models=r"^(?!.*codex)",
            providers=_OPENAI,
            advice="use shell",
        ),
        *(
            Limit(
                "tools.*.type",
                "OpenAI documentation: shell and apply_patch, from GPT-5.1 on",
                refused=True,
                equals=kind,
                models=rf"{OPENAI_WITHOUT_REASONING}|{OPENAI_O_SERIES}",
                providers=_OPENAI,
                advice="choose another model",
            )
            for kind in ("shell", "apply_patch")
        ),
        Limit(
            "tool_choice.name",
            _NOT_FOUND,
            among="tools.*.name",
            when=('tool_choice.type="function"',),
            providers=_OPENAI,
        ),
        *(
            Limit("tool_choice.type", _NOT_FOUND, equals=kind, among="tools.*.type", providers=_OPENAI)
            for kind in ("web_search", "web_search_preview", "file_search", "code_interpreter", "image_generation")
        ),
        Limit(
            "tool_choice",
            "\"Tool choice 'required' must be specified with 'tools' parameter.\" (OpenAI API)",
            equals="required",
            needs=("tools", "prompt", "previous_response_id", "conversation"),
            providers=_OPENAI,
        ),
        *(
            Limit(
                "tools.*.type",
                '"Web Search cannot be used with JSON mode." (OpenAI API; reported 400s, 2025 and 2026)',
                equals=kind,
                excludes=('text.format.type="json_object"',),
                providers=_OPENAI,
            )
            for kind in ("web_search", "web_search_preview")
        ),
        Limit(
            "tools.*.type",
            "OpenAI documentation: computer use, the preview tool is that of the model computer-use-preview",
            refused=True,
            equals="computer_use_preview",
            models=r"^(?!.*computer-use)",
            providers=_OPENAI,
            advice="choose its model",
        ),
        *(
            Limit("tools.*.type", _MINIMAL, equals=kind, excludes=('reasoning.effort="minimal"',), providers=_OPENAI)
            for kind in ("web_search", "web_search_preview", "file_search", "code_interpreter", "image_generation")
        ),
        *(
            Limit(
                "tools.*.type",
                "\"Hosted tool 'web_search_preview' is not supported with gpt-4.1-nano.\" (OpenAI documentation: web"
                " search)",
                refused=True,
                equals=kind,
                models="gpt-4\\.1-nano",
                providers=_OPENAI,
                advice="choose another model",
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
            providers=_OPENAI,
        ),
        Limit(
            "tools.*.type",
            "OpenAI documentation: computer use, truncation auto is required",
            equals="computer_use_preview",
            needs=('truncation="auto"',),
            providers=_OPENAI,
        ),
        Limit(
            "tools.*.type",
            "openai 3.49.0: one of the three must be provided",
            equals="mcp",
            needs=(".server_url", ".connector_id", ".tunnel_id"),
            providers=_OPENAI,
        ),
        Limit(
            "tools",
            '"Duplicate server_label found. Please provide a unique identifier for each tool." (OpenAI API)',
            unique="server_label",
            providers=_OPENAI,
            advice="rename it",
        ),
        Limit("tools.*.vector_store_ids", _EMPTY, least=1, providers=_OPENAI, advice="name a store"),
        Limit("tools.*.max_num_results", "openai 3.49.0: between 1 and 50", least=1, most=50, providers=_OPENAI),
        Limit(
            "tools.*.ranking_options.score_threshold",
            "openai 3.49.0: between 0 and 1",
            least=0,
            most=1,
            providers=_OPENAI,
        ),
        Limit(
            "tools.*.name",
            "\"Function 'image_gen.imagegen' conflicts with a hosted tool in the same request.\" (codex #32208)",
            equals="image_gen",
            excludes=('tools.*.type="image_generation"',),
            providers=(*_OPENAI, "openai-codex"),
        ),
        # -- Codex with a ChatGPT plan
        Limit(
            "input",
            f'"Instructions are required" ({_CODEX}; empty ones are accepted: codex-proxy #112)',
            needs=("instructions", 'instructions=""'),
            providers=("openai-codex",),
        ),
        Limit("store", f'"Store must be set to false" ({_CODEX})', allowed=(False,), providers=("openai-codex",)),
        Limit("stream", f'"Stream must be set to true" ({_CODEX})', allowed=(True,), providers=("openai-codex",)),
        Limit(
            "input.*.role",
            '"System messages are not allowed" (AIClient2API #632, 2026-06-04)',
            refused=True,
            equals="system",
            providers=("openai-codex",),
            advice="use developer, or `instructions`",
        ),
        Limit(
            "tools.*.type",
            '"Unsupported tool type: web_search_preview" (just-every/code #147, 2025-09-13)',
            refused=True,
            equals="web_search_preview",
            providers=("openai-codex",),
            advice="use web_search",
        ),
        *(
            Limit(key, f'"Unsupported parameter" ({_CODEX})', refused=True, providers=("openai-codex",))
            for key in ("temperature", "max_output_tokens", "prompt_cache_retention")
        ),
        # -- xAI
        *(
            Limit(key, _XAI, refused=True, providers=("xai",), advice="remove it")
            for key in ("metadata", "truncation", "service_tier")
        ),
        Limit(
            "include.*",
            '"Argument not supported: include" (xAI: openclaw #12910, 2026-02-09)',
            refused=True,
            equals="inline_citations",
            providers=("xai",),
            advice="remove it",
        ),
        Limit("background", _XAI, refused=True, equals=True, providers=("xai",), advice="remove it"),
        Limit(
            "instructions",
            "xAI documentation: Responses API, not beside previous_response_id",
            excludes=("previous_response_id",),
            providers=("xai",),
        ),
    )
)
