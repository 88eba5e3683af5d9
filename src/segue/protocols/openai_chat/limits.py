"""Limits of single values in Chat Completions, by provider; `kit.limits` explains the rows.

Read 2026-11-17 where no other date is named. Rules that projection follows are in `rules`.
"""

from __future__ import annotations

from typing import Final

from segue.models.model_ids import GROQ_WITHOUT_REASONING, OPENAI_WITHOUT_CHAT
from segue.protocols.families.openai_limits import OPENAI, SPEC, openai_limits
from segue.protocols.kit.limits import Limit, Limits, rows_of

_RESPONSES_ONLY: Final = (
    r"^(?:openai/)?(?:o1-pro|o3-pro|gpt-5(?:\.\d+)?-pro|codex-mini|gpt-5(?:\.\d+)?-codex|o[34]-\S*deep-research|"
    r"computer-use)"
)
_SEARCH: Final = r"search-(?:preview|api)"
_PREDICTION: Final = "OpenAI documentation: predicted outputs, limitations"
_QWEN: Final = "Alibaba documentation: Model Studio, error codes (2026-06-23)"
_GROQ: Final = "Groq documentation: OpenAI compatibility, fields that result in a 400"
_FIREWORKS: Final = "fireworks-ai: the required range of the parameter"
_ZAI_LIVE: Final = "error 1210 of values beyond the documented ones (modelparams.dev #327, live, 2026-08-22)"
_Z_AI: Final = ("zai", "zai-coding-cn")
_MOONSHOT: Final = ("moonshotai", "moonshotai-cn", "kimi-coding")

LIMITS: Final = Limits(
    (
        *openai_limits(
            image="messages.*.content.*.image_url.url",
            schema_name="response_format.json_schema.name",
            strict="tools.*.function.strict",
            effort="reasoning_effort",
        ),
        # -- OpenAI: messages
        *rows_of(
            OPENAI,
            Limit(
                "messages.*.name",
                "\"Invalid 'messages[1].name': string does not match pattern.\" (OpenAI; reported 400s, 2024 and 2025)",
                most=64,
                pattern=r"[^\s<|\\/>]+",
            ),
            Limit("messages", '"Expected an array with maximum length 2048"', most=2048),
            Limit("messages.*.content", "string_above_max_length of a text", most=10_485_760),
            Limit(
                "messages.*.content",
                "\"Invalid 'messages[0].content': empty array.\"",
                least=1,
                equals=[],
                when=('.role="user"',),
                advice="add a part",
            ),
            Limit(
                "response_format.type",
                "\"'response_format' of type 'json_object' is not supported with this model.\" (mi-gpt #142, 2024;"
                " OpenAI documentation: JSON mode, from gpt-4-turbo)",
                equals="json_object",
                refused="remove it, or use another model",
                models=r"^gpt-4(?:-32k)?(?:-0314|-0613)?$",
            ),
            Limit(
                "messages.*.content.*.file",
                "openai 3.49.0: a file has its data or its id; OpenAI documentation: file inputs",
                needs=(".file.file_data", ".file.file_id"),
            ),
            Limit(
                "messages.*.content.*.file.file_data",
                '"Expected a base64-encoded data URL" (OpenAI documentation: file inputs)',
                pattern=r"(?i:data:).+",
                needs=(".filename",),
                advice="send a data URL",
            ),
            Limit(
                "messages.*.tool_calls",
                "\"Invalid 'messages[2].tool_calls': array too long. Expected an array with maximum length 128\""
                " (openai-dotnet #317, 2024-12-31; pydantic-ai #1105, 2025-03; Copilot: copilot-cli #669, 2025-11-27)",
                most=128,
                providers=(*OPENAI, "github-copilot"),
                advice="split the turn",
            ),
        ),
        # -- OpenAI: settings
        Limit("frequency_penalty", SPEC, least=-2, most=2),
        Limit("presence_penalty", SPEC, least=-2, most=2),
        *rows_of(
            OPENAI,
            Limit("logit_bias.*", SPEC, least=-100, most=100),
            Limit("logit_bias.~", '"You should only be using non-negative integers"', pattern=r"\d+"),
            Limit(
                "metadata",
                "\"The 'metadata' parameter is only allowed when 'store' is enabled.\" (langchaingo #1484, 2026-03-16)",
                needs=("store=true",),
            ),
            Limit(
                "stream_options",
                "\"The 'stream_options' parameter is only allowed when 'stream' is enabled.\" (openai 3.49.0)",
                needs=("stream=true",),
                providers=("openai", "azure", "deepseek", "alibaba"),
            ),
            Limit(
                "tool_choice",
                "\"'tool_choice' is only allowed when 'tools' are specified\" (neurolink #1564, live, 2026-08-26)",
                needs=("tools",),
                providers=("cerebras",),
            ),
            Limit(
                "parallel_tool_calls",
                "\"'parallel_tool_calls' is only allowed when 'tools' are specified.\" (reported 400s, 2024 to 2026)",
                needs=("tools",),
            ),
            Limit(
                "function_call",
                "\"'function_call' is only allowed when 'functions' are specified.\"",
                needs=("functions",),
            ),
        ),
        Limit(
            "tool_choice.function.name",
            "\"Tool choice ... not found in 'tools' parameter.\" (OpenAI API; Qwen: web-ui #586, 2025-05-12)",
            among="tools.*.function.name",
        ),
        *rows_of(
            OPENAI,
            Limit(
                "response_format.type",
                "\"Missing required parameter: 'response_format.json_schema.schema'.\"",
                equals="json_schema",
                needs=("response_format.json_schema.schema",),
            ),
            Limit(
                "modalities.*",
                "openai 3.49.0: `audio` is required for the output modality audio",
                equals="audio",
                needs=("audio",),
            ),
            Limit(
                "modalities.*",
                "OpenAI documentation: audio, the models whose names have it",
                refused="choose an audio model",
                equals="audio",
                models=r"^(?!.*audio)",
            ),
            Limit(
                "model",
                '"This model requires that either input content or output modality contain audio." (truefoundry #822)',
                needs=('modalities.*="audio"', "messages.*.content.*.input_audio"),
                models=r"^(?:openai/)?gpt-(?:4o-)?(?:mini-)?audio",
                providers=(*OPENAI, "openrouter"),
            ),
            Limit(
                "audio.format",
                "\"'audio.format' does not support 'wav' when stream=true. Supported values are: 'pcm16'.\"",
                allowed=("pcm16",),
                when=("stream=true",),
            ),
            Limit("prediction", _PREDICTION, excludes=("tools", "audio", "max_completion_tokens", "logprobs=true")),
            Limit(
                "max_tokens",
                "\"Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.\" (OpenAI API);"
                " fireworks-ai: an alias that cannot stand beside it",
                excludes=("max_completion_tokens",),
                providers=(*OPENAI, "fireworks"),
            ),
            Limit("prediction", _PREDICTION, refused="remove it", models=r"^(?!.*gpt-4)"),
            Limit(
                "messages",
                '"This model is only supported in v1/responses and not in v1/chat/completions." (OpenAI: endpoints)',
                refused="use openai-responses",
                models=_RESPONSES_ONLY,
            ),
            Limit(
                "messages",
                '"This is not a chat model and thus not supported in the v1/chat/completions endpoint." (LangBot #400)',
                refused="choose a chat model",
                models=OPENAI_WITHOUT_CHAT,
                providers=("openai",),
            ),
            *(
                Limit(
                    key,
                    '"Model incompatible request argument supplied: temperature" (ruby_llm #155, 2025-05-07; BoltAI'
                    " #302)",
                    refused="remove it",
                    models=_SEARCH,
                )
                for key in ("temperature", "top_p", "n", "presence_penalty", "frequency_penalty", "seed", "logit_bias")
            ),
        ),
        # -- messages of several vendors
        Limit(
            "messages.*.content",
            '"Each message must have at least one content element." (xAI: crush #964, 2025-09-05); "Content length must'
            f' be greater than 0" ({_QWEN})',
            least=1,
            when=('.role="user"',),
            providers=("xai", "alibaba"),
            advice="add a text",
        ),
        Limit(
            "messages.*.content",
            "\"message at position 1 with role 'assistant' must not be empty\" (Moonshot; reported 400s, 2026); xAI: as"
            " for a message of the user",
            equals="",
            when=('.role="assistant"',),
            needs=(".tool_calls", ".reasoning_content"),
            providers=(*_MOONSHOT, "xai"),
        ),
        Limit(
            "messages",
            '"The messages parameter is illegal." where none is of the user (Z.ai: opencode #2557, 2025-09-17); "The'
            ' input messages do not contain elements with the role of user" (Qwen: agentscope-java #613, 2026-01-21)',
            needs=tuple(f'messages.*.role="{role}"' for role in ("user", "assistant", "tool")),
            providers=(*_Z_AI, "alibaba"),
        ),
        # -- Google
        Limit(
            "reasoning_effort",
            "400 of these models, by a matrix of live calls (SmartSub #439, 2026-08-13)",
            refused="use low",
            equals="none",
            models=r"gemini-3\.(?:5-flash-lite|6-flash)",
            providers=("google",),
        ),
        *(
            Limit(
                key,
                '"Penalty is not enabled for this model", but 0 is taken (openai-gemini #63, 2025-07-13;'
                " google-gemini/cookbook #1290; of OpenRouter: MisakaNet #1473, 2026-09-04)",
                allowed=(0,),
                models=models,
                providers=(provider,),
                advice="remove it",
            )
            for key in ("presence_penalty", "frequency_penalty")
            for provider, models in (("google", r"gemini-(?:2\.5|3)"), ("openrouter", r"gemini-3\.[78]"))
        ),
        Limit(
            "tools.*.~",
            '"Unknown name "google_search" at \'tools[0]\': Cannot find field." (nvda-OpenAI #123, 2026-06-14)',
            equals=("google_search", "googleSearch"),
            needs=(".type",),
            providers=("google",),
        ),
        # -- xAI
        *(
            Limit(
                key,
                "a 400 of 500,000 and a 200 of 496,000 (minebench #82, live, 2026-08-12)",
                most=496_000,
                models=r"grok-4\.6",
                providers=("xai",),
            )
            for key in ("max_completion_tokens", "max_tokens")
        ),
        # -- Anthropic
        Limit(
            "response_format.json_schema",
            '"strict: Field required", "strict: Input should be True" (hiring-agent #421, 2026-09-05)',
            needs=(".json_schema.strict=true",),
            providers=("anthropic",),
        ),
        # -- Copilot
        Limit(
            "messages",
            '"unsupported_api_for_model" (opencode #36305, 2026-07-10)',
            refused="use openai-responses",
            models=r"^gpt-5(?:\.\d+)?-codex|^gpt-5\.6-sol",
            providers=("github-copilot",),
        ),
        # -- NVIDIA
        *rows_of(
            ("nvidia",),
            *(
                Limit(key, f'"Validation: Unsupported parameter(s)" ({thread})', refused="remove it", models=models)
                for key, thread, models in (
                    ("tool_stream", "openclaude #1950, 2026-07-12", ""),
                    ("prompt_cache_key", "kimi-cli #2534, 2026-07-23; OmniRoute #848", ""),
                    ("enable_thinking", "of qwen3.5-397b: oh-my-pi #2299, 2026-06-11", "qwen"),
                    ("reasoning_budget", "free-claude-code #127, 2026-04-21", "glm|qwen"),
                    ("thinking", "9router #2268, 2026-07-01", "minimax"),
                )
            ),
            Limit(
                "top_p",
                '"Validation: top_p is immutable for this model and must be 0.95" (free-claude-code #1609, 2026-08-29)',
                allowed=(0.95,),
                models=r"kimi-k3",
                advice="remove it",
            ),
        ),
        # -- Cerebras
        Limit(
            "reasoning_effort",
            "\"Input should be 'none', 'low', 'medium' or 'high'\" (modelparams.dev #115, live, 2026-07-14)",
            allowed=("none", "low", "medium", "high"),
            models=r"glm-4\.7",
            providers=("cerebras",),
        ),
        # -- Groq
        *rows_of(
            ("groq",),
            Limit(
                "messages",
                '"The model canopylabs/orpheus-arabic-saudi does not support chat completions" (langflow #11120)',
                refused="choose a chat model",
                models=r"whisper|orpheus|playai|-tts",
            ),
            # Of the messages of a tool it is accepted (recorded traffic, 2026-11).
            *(
                Limit("messages.*.name", _GROQ, refused="remove it", when=(f'.role="{role}"',))
                for role in ("user", "assistant", "system", "developer")
            ),
            Limit("n", _GROQ, most=1),
            Limit(
                "messages.*.reasoning",
                '"`messages[3].reasoning`: reasoning is not supported with this model" (vercel/ai #8056, 2025-08-14)',
                refused="remove it",
                models=GROQ_WITHOUT_REASONING,
            ),
            Limit("include_reasoning", "Groq documentation: reasoning, one of the two", excludes=("reasoning_format",)),
            Limit(
                "reasoning_format",
                "Groq documentation: reasoning, `raw` is refused beside tools and JSON mode",
                equals="raw",
                excludes=("tools", 'response_format.type="json_object"', 'response_format.type="json_schema"'),
            ),
            Limit(
                "reasoning_format",
                "Groq documentation: reasoning, gpt-oss has `include_reasoning` instead; answered with 200 (recorded"
                " traffic, 2026-11)",
                refused="use include_reasoning",
                models="gpt-oss",
                grade="ignored",
            ),
            Limit(
                "reasoning_effort",
                '"`reasoning_effort` must be one of `none` or `default`" (Groq documentation: reasoning)',
                allowed=("none", "default"),
                models=r"qwen3(?:-32b|\.6-27b)",
            ),
            Limit(
                "reasoning_effort",
                "Groq documentation: reasoning, efforts of gpt-oss",
                allowed=("low", "medium", "high"),
                models="gpt-oss",
            ),
        ),
        # -- DeepSeek
        Limit(
            "tools", '"Tool names must be unique."', unique="function.name", providers=("deepseek",), advice="rename it"
        ),
        # -- Moonshot
        *rows_of(
            _MOONSHOT,
            Limit(
                "thinking.type",
                '"invalid thinking: only type=enabled is allowed for this model" (Kimi-K2 #141, 2026-06-22); "This'
                f' model always engages in thinking" ({_ZAI_LIVE})',
                refused="use enabled",
                equals="disabled",
                models=r"kimi-k2\.7-code|glm-5\.3",
                providers=(*_MOONSHOT, *_Z_AI),
            ),
            Limit(
                "thinking",
                "this model always thinks and takes no such object, but an effort (modelparams.dev #168, 2026-07-30)",
                refused="use reasoning_effort",
                models=r"kimi-k3",
                providers=("moonshotai", "moonshotai-cn"),
            ),
            Limit(
                "reasoning_effort",
                "Moonshot documentation: thinking models; 400 of `medium` (cherry-studio #20036, 2026-09-05), of `none`"
                f" (models.dev #4722, 2026-08-14); Z.ai: {_ZAI_LIVE}",
                allowed=("low", "high", "max"),
                models=r"(?:^|[-/])k3|glm-5\.3",
                providers=(*_MOONSHOT, *_Z_AI),
            ),
            Limit(
                "top_p",
                '"invalid top_p: only 0.95 is allowed for this model" (gemini-cli-pro #30, 2026-02-13; Moonshot'
                " documentation: Kimi K2.5)",
                allowed=(0.95,),
                models=r"kimi-k(?:2\.[5-9]|[3-9])",
                advice="remove it",
            ),
            Limit(
                "temperature",
                '"invalid temperature: only 0.6 is allowed for this model" (inspect_ai #5156, live, 2026-08-31)',
                allowed=(0.6,),
                when=('thinking.type="disabled"',),
                models=r"kimi-k2\.[5-9]",
                advice="remove it",
            ),
            Limit(
                "reasoning_effort",
                "\"cannot specify both 'thinking' and 'reasoning_effort'\" (nanobot #3939, 2026-05-20)",
                excludes=("thinking",),
            ),
            Limit(
                "n",
                '"n must be 1 when temperature is very small" (Moonshot documentation: chat)',
                most=1,
                when=("temperature=0",),
            ),
            *(
                Limit(
                    key,
                    "these models pin sampling, penalties and n, and refuse others (promptfoo #9672, live, 2026-06-09)",
                    allowed=(value,),
                    models=r"kimi-k(?:2\.[5-9]|[3-9])",
                    advice="remove it",
                )
                for key, value in (("presence_penalty", 0), ("frequency_penalty", 0), ("n", 1))
            ),
        ),
        # -- MiniMax
        *rows_of(
            ("minimax", "minimax-cn"),
            Limit(
                "messages.1.role",
                '"invalid params, invalid chat setting", of a second one (MiniMax-M2 #51, 2025-11-24, answered by'
                " MiniMax; Clawith #589, 2026-05-20)",
                refused="join it with the first",
                equals="system",
                when=('messages.0.role="system"',),
            ),
            Limit(
                "tools.*.function",
                '"invalid params, function parameters is empty" (qwen-code #11834, live, 2026-09-14)',
                needs=(".function.parameters",),
            ),
            Limit(
                "tools.*.function",
                '"invalid params, invalid tool type: (2013)", of a tool without a type (9router #2509, 2026-07-10)',
                needs=(".type",),
            ),
            Limit(
                "thinking.type",
                '"invalid thinking.type: "enabled" (allowed: adaptive, disabled)" (cherry-studio #16431, #16624; Minnow'
                " #364, 2026-06-24); its Messages API takes `enabled` with a budget (cherry-studio #15787)",
                allowed=("adaptive", "disabled"),
                models=r"minimax-m[3-9]",
            ),
        ),
        # -- Z.ai
        *rows_of(
            _Z_AI,
            Limit("max_tokens", _ZAI_LIVE, most=131_072, models=r"glm-(?:5|4\.[67](?!v))", advice="lower it"),
            Limit("max_tokens", _ZAI_LIVE, most=98_304, models=r"glm-4\.5-(?:air|flash)", advice="lower it"),
        ),
        # -- Qwen
        *rows_of(
            ("alibaba",),
            Limit(
                "tools.*.function.name",
                '"Tool names are not allowed to be [search]" (Alibaba); answered with 200 (16 recorded replies,'
                " 2026-11)",
                equals="search",
                refused="rename it",
                grade="unsure",
            ),
            Limit("n", "Alibaba documentation: OpenAI compatible chat, from 1 to 4", least=1, most=4),
            Limit(
                "enable_thinking",
                '"The value of the enable_thinking parameter is restricted to True." (lobehub #8613, 2025-07-30)',
                equals=False,
                refused="remove it",
                models=r"-thinking-\d{4}",
            ),
            Limit(
                "reasoning_effort",
                "\"'reasoning_effort' must be one of: 'none', 'minimal', 'low', 'medium', 'high', 'xhigh'\" (GCMP #384,"
                " 2026-08-27)",
                allowed=("none", "minimal", "low", "medium", "high", "xhigh"),
            ),
            Limit(
                "enable_thinking",
                f'"Json mode response is not supported when enable_thinking is true" ({_QWEN})',
                equals=True,
                excludes=('response_format.type="json_object"',),
            ),
        ),
        # -- xAI
        *rows_of(
            ("xai",),
            Limit(
                "messages.*.tool_calls.*.function.arguments",
                '"The arguments to a tool_call with ID ... are not a valid JSON string. ... EOF while parsing a value"'
                " (spiceai #4734, 2025-02-10)",
                least=1,
                advice="send {}",
            ),
            Limit(
                "search_parameters",
                "xAI documentation: live search is deprecated, answers 410",
                refused="use the server tools of openai-responses",
                models=r"grok-(?:4|[5-9])",
            ),
        ),
        # -- OpenRouter
        *rows_of(
            ("openrouter",),
            Limit(
                "reasoning_effort",
                '"Only one of "reasoning" and "reasoning_effort" may be provided" (LibreChat #6076, 2025-02-26)',
                excludes=("reasoning", "include_reasoning=true"),
            ),
            Limit(
                "reasoning.effort",
                '"Only one of "reasoning.effort" and "reasoning.max_tokens" can be specified" (OpenRouter'
                " documentation)",
                excludes=(".max_tokens",),
            ),
            Limit("models", "\"'models' array must have 3 items or fewer.\" (OpenRouter)", most=3),
        ),
        # -- Fireworks
        *(
            Limit(key, _FIREWORKS, least=0, most=most, providers=("fireworks",))
            for key, most in (("top_logprobs", 5), ("top_k", 100), ("min_p", 1), ("repetition_penalty", 2))
        ),
        # -- Perplexity
        Limit(
            "response_format.type",
            "Perplexity documentation: structured outputs, json_schema and regex",
            allowed=("text", "json_schema", "regex"),
            providers=("perplexity",),
        ),
    ),
    read="2026-11-17",
)
