"""The rules of OpenAI chat completions.

The rules are OpenAI's own. Vendors of this protocol differ by their rows in `providers`, models by the families below.

Facts:
- Limits of fields.                                     (openai-openapi 2.3.0 @f85dbe2, openai 3.49.0; read 2026-11-15)
- Tool results are text; media go into a user message after them.        (OpenHands #7700; recorded traffic, 2026-11)
- A history with calls needs no tools, a user turn may follow results, and user turns may follow each other.
                                                                                          (recorded traffic, 2026-11)
- `tool_calls[].id` of more than 40 characters is refused; its characters are free.      (autogen #6377, openclaw #875)
- OpenAI has no field for reasoning. Vendors return it in their own fields and accept it there, so a request sends it
  back to the model that wrote it, in the same field.                                    (pi-ai 1.5.0, read 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from segue.models.dialect import Dialect
from segue.models.family import Family
from segue.models.model_ids import (
    CLAUDE,
    CLAUDE_4_6,
    CLAUDE_UP_TO_4_5,
    GEMINI_3_ON,
    GROQ_WITHOUT_REASONING,
    MISTRAL,
    OPENAI_BEHIND,
    OPENAI_FUNCTIONS_WITHOUT_LEVEL,
    OPENAI_GPT_5_1_TO_4,
    OPENAI_GPT_5_5_ON,
    OPENAI_GPT_5_6_ON,
    OPENAI_GPT_5_ALONE,
    OPENAI_O_SERIES,
    OPENAI_WITHOUT_REASONING,
    OPENAI_WITHOUT_SCHEMAS,
)
from segue.models.rule import Rule
from segue.models.rules import Rules
from segue.protocols.families.openai_models import OPENAI_FAMILIES, ROOT_KEYWORDS

PROTOCOL: Final = "openai-chat"
PROVIDER: Final = "openai"

_SAMPLING: Final = frozenset({"temperature", "top_p"})
_CACHING: Final = frozenset({"cache_retention", "session_id"})

_OPENAI_IMAGES: Final = ("image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp")
"""The images that OpenAI reads, also behind a gateway: "is of one the following formats" (gptpdf #6, 2024-06-30)."""

READ: Final = "2026-11-15"

RULES: Final = Rules(
    # -- tools
    call_id_max=40,
    tool_name_alphabet="a-zA-Z0-9_-",
    tool_name_max=64,
    tool_error="text",
    schema_root_object=True,
    # -- media
    user_media=("image/*", "application/pdf", "audio/wav", "audio/mpeg", "audio/mp3"),
    result_media=(),
    file_sources=frozenset({"data", "file_id"}),
    file_id_pattern="file-[A-Za-z0-9]+",
    # -- turns: no order is enforced beyond calls and their results (recorded traffic, 2026-11)
    # -- reasoning
    reasoning_replay="signed",
    final_thinking="drop",
    # -- options: only OpenAI has a cache key and a retention; its row in `providers` allows them
    refused_options=_CACHING,
    user_id_keys=frozenset({"user", "safety_identifier", "user_id"}),
    portable_extra=frozenset({"image_url.detail"}),
    # -- what is refused
    rows={
        "root_keywords": Rule('"schema must be ... type object" (OpenAI API)', READ, values=ROOT_KEYWORDS),
        "session_id": Rule("openai-openapi 2.3.0: prompt_cache_key", READ, most=64),
        "temperature": Rule("openai-openapi 2.3.0", READ, most=2.0),
    },
)

SOURCES: Final[Mapping[str, str]] = {
    "call_id_max": '"string too long. Expected a string with maximum length 40" (autogen #6377, vercel/ai #8132)',
    "tool_name_alphabet": "openai 3.49.0",
    "tool_name_max": "openai 3.49.0",
    "tool_error": "openai 3.49.0: a tool message has no flag",
    "schema_root_object": '"schema must be a JSON Schema of \'type: "object"\'" (OpenAI API)',
    "user_media": "openai 3.49.0: image_url, file, input_audio",
    "result_media": "\"Image URLs are only allowed for messages with role 'user'\" (openai-openapi #523)",
    "file_sources": "openai 3.49.0: a file part has no URL",
    "file_id_pattern": "recorded traffic, 2026-11",
    "reasoning_replay": "pi-ai 1.5.0: vendors return reasoning in fields of their own, and accept it there",
    "final_thinking": "pi-ai 1.5.0: reasoning alone is not a message",
    "refused_options": "openai 3.49.0: a cache key and a retention are OpenAI's own; its row allows them",
    "user_id_keys": "openai 3.49.0; `user_id`: DeepSeek and Z.ai",
    "portable_extra": "openai 3.51.0, groq 1.7.0, cerebras_cloud_sdk 1.91.0; OpenRouter's and xAI's references; read"
    " 2026-11-18",
}
"""Who says so, for each field of `RULES`; its rows have their own sources. All were read on `READ`."""

DIALECT: Final = Dialect(
    strict_schema=True  # a field of the protocol, which servers that have no strict mode ignore (vLLM, llama.cpp)
)

_openai_family = partial(Family, providers=("openai", "azure"))

FAMILIES: Final[tuple[Family, ...]] = (
    _openai_family(
        pattern=OPENAI_O_SERIES,
        rules={"refused_extra": ["parallel_tool_calls"], "refused_options": ["parallel_tool_calls"]},
        source="'Unsupported parameter: 'parallel_tool_calls' is not supported with this model.' (OpenAI API)",
        read="2026-11-17",
    ),
    _openai_family(
        pattern=OPENAI_FUNCTIONS_WITHOUT_LEVEL,
        rules={"functions_with_thinking": "unset"},
        dialect={"off_value": "none"},
        source="'Function tools with reasoning_effort are not supported' (pipecat #4043, crush #2913)",
        read="2026-11-16",
    ),
    _openai_family(
        pattern=OPENAI_GPT_5_6_ON,
        rules={"functions_with_thinking": "off"},
        dialect={"off_value": "none"},
        source="'set reasoning_effort to 'none'': also refused without an effort (litellm #34569, live, 2026-07-24)",
        read="2026-11-16",
    ),
    Family(
        pattern=OPENAI_GPT_5_6_ON,
        rules={"functions_with_thinking": "unset"},
        providers=("github-copilot",),
        source="'Function tools with reasoning_effort are not supported for gpt-5.6-terra' (github/app #2133, #3268)",
        read="2026-11-17",
    ),
    *OPENAI_FAMILIES,
    _openai_family(
        pattern=r"(?:^|[/.:~])gpt-5\.6",
        rules={
            "thinking_level": Rule(values=frozenset({"max"})),
            "thinking_levels": frozenset({"off", "low", "medium", "high", "xhigh"}),
        },
        source="''reasoning_effort' does not support 'max' with this model.' (litellm #38084; Responses has it)",
        read="2026-11-17",
    ),
    Family(
        pattern=r"(?:^|[/.:~]|openai-)o3-?mini(?=[-_:@]|$)",
        rules={"refused_options": ["-stop"]},
        source="recorded traffic, 2025: o3-mini accepts it, o1-mini and gpt-5-mini refuse it",
        read="2026-11-15",
    ),
    Family(
        pattern=f"{OPENAI_O_SERIES}|{OPENAI_GPT_5_ALONE}|{OPENAI_GPT_5_1_TO_4}|{OPENAI_GPT_5_5_ON}",
        rules={"user_media": (*_OPENAI_IMAGES, "application/pdf")},
        source="'Content blocks are expected to be either text or image_url type' for sound; recorded traffic, 2026-11;"
        " images as for OpenAI",
        read="2026-11-15",
    ),
    _openai_family(
        pattern=r"^(?!.*search)",
        rules={"refused_extra": ["web_search_options"]},
        source="'Web search options not supported with this model.' (recorded traffic, 2026-11)",
        read="2026-11-15",
    ),
    _openai_family(
        pattern=r"search",
        rules={"server_tools": frozenset({"web_search_options"})},
        source="openai 3.49.0; OpenAI documentation: web search, search models of Chat Completions",
        read="2026-11-15",
    ),
    _openai_family(
        pattern=r"search-(?:preview|api)",
        rules={"refused_options": _SAMPLING | {"seed"}},
        source="'Model incompatible request argument supplied: temperature' (ruby_llm #155, 2025-05-07; BoltAI #302)",
        read="2026-11-17",
    ),
    Family(
        pattern=r"compound|guard|allam",
        rules={"tools": False},
        providers=("groq",),
        source="'tool calling is not supported with this model' (langflow #11120); Groq documentation: local tools,"
        " compound systems do not take them",
        read="2026-11-17",
    ),
    Family(
        pattern=r"mixtral",
        rules={"tools": False},
        providers=("nvidia",),
        source="'\"auto\" tool choice requires --enable-auto-tool-choice' (nvidia-nim-provider #2, 2026-05-05)",
        read="2026-11-17",
    ),
    Family(
        pattern=r"llama-guard|gemini-(?:2\.5-flash|3\.1-flash-lite)-image|gpt-5\.4-image",
        rules={"tools": False},
        providers=("openrouter",),
        source="'No endpoints found that support tool use.' (kilocode #9006, 2026-04-15; Open-WebUI-OpenRouter-pipe"
        " #58, 2026-07-28; routstr-core #554)",
        read="2026-11-18",
    ),
    Family(
        pattern=r"grok-code",
        rules={"user_media": ()},
        providers=("xai",),
        source="xAI documentation: models, text alone",
        read="2026-11-17",
    ),
    Family(
        pattern=r"gpt-oss",
        rules={"server_tools": frozenset({"browser_search", "code_interpreter"})},
        providers=("groq",),
        source="Groq documentation: built-in tools of gpt-oss",
        read="2026-11-15",
    ),
    Family(
        pattern=f"{OPENAI_O_SERIES}|{OPENAI_GPT_5_ALONE}|{OPENAI_GPT_5_1_TO_4}|{OPENAI_GPT_5_5_ON}",
        rules={"refused_extra": ["max_tokens"]},  # the limit has a new name
        providers=("openai", "azure", "github-copilot"),
        source="'Use max_completion_tokens instead' (gollm #33, continue #7052, ESPHomeDesigner #379 of 2026-04-10;"
        " Azure: langchain #29947, webbrain #2806 of 2026-08-16; Copilot: copilot-api #172 of 2026-04-11)",
        read="2026-11-17",
    ),
    Family(
        pattern=OPENAI_GPT_5_6_ON,
        rules={"refused_extra": ["max_tokens"]},
        providers=("amazon-bedrock",),
        source="the same on Bedrock from gpt-5.6 on; gpt-5.5 and gpt-5.4 accept it there (sample-apj-sup-sa #231, live,"
        " 2026-08-18)",
        read="2026-11-17",
    ),
    _openai_family(
        pattern=r"gpt-5\.[1-9]-chat",
        # "'reasoning_effort' does not support 'high' with this model. Supported values are: 'medium'." (chatwise #1257)
        rules={"refused_extra": ["max_tokens"], "thinking_levels": frozenset({"medium"})},
        source="the same: gpt-5-chat accepts it, gpt-5.1-chat and gpt-5.2-chat do not (meetily #364, 2026-02-23)",
        read="2026-11-17",
    ),
    Family(
        pattern=r"kimi",
        rules={"untyped_properties": Rule(), "typed_unions": Rule()},
        providers=("opencode", "opencode-go"),
        source="'not a valid moonshot flavored json schema' behind these hosts too (pi #4138, pi-subagents #126)",
        read="2026-11-17",
    ),
    _openai_family(
        pattern=r"audio",
        rules={"user_media": (*_OPENAI_IMAGES, "application/pdf", "audio/wav", "audio/mpeg", "audio/mp3")},
        source="'Content blocks are expected to be either text or image_url type' for sound (recorded traffic,"
        " 2026-11); OpenAI documentation: audio, the models whose names have it",
        read="2026-11-16",
    ),
    _openai_family(
        pattern=OPENAI_WITHOUT_SCHEMAS,
        rules={"refused_extra": ["response_format.type=json_schema"], "refused_options": ["output_schema"]},
        source="''response_format' of type 'json_schema' is not supported with this model.' (IDesign #7, 2025-04-25);"
        " OpenAI documentation: structured outputs, from gpt-4o-mini and gpt-4o-2024-08-06 on",
        read="2026-11-16",
    ),
    Family(
        pattern=r"^(?!.*(?:gpt-oss|llama-4|kimi|compound|qwen))",
        rules={"refused_extra": ["response_format.type=json_schema"], "refused_options": ["output_schema"]},
        providers=("groq",),
        source="'This model does not support response format `json_schema`'; Groq documentation: structured outputs,"
        " supported models",
        read="2026-11-16",
    ),
    _openai_family(
        pattern=OPENAI_WITHOUT_REASONING,
        # "'low' is not supported with the 'gpt-5-chat-latest' model. Supported values are: 'medium'." (opencode #1984)
        rules={"refused_extra": ["reasoning_effort", "verbosity=low", "verbosity=high"]},
        source="'Unrecognized request argument supplied: reasoning_effort' (as `reasoning.effort` of Responses)",
        read="2026-11-16",
    ),
    Family(
        pattern=GROQ_WITHOUT_REASONING,
        rules={"reasoning_replay": "none"},
        providers=("groq",),
        source="'`messages[3].reasoning`: reasoning is not supported with this model' (vercel/ai #8056, 2025-08-14)",
        read="2026-11-18",
    ),
    Family(
        pattern=r"^(?!.*(?:gpt-oss|qwen|deepseek|kimi))",
        rules={"refused_extra": ["reasoning_effort", "reasoning_format"]},
        providers=("groq",),
        source="'`reasoning_effort` is not supported with this model' for Llama (pluely #242, 2026-04-16); Groq"
        " documentation: reasoning",
        read="2026-11-16",
    ),
    Family(
        pattern=r"grok-(?!3-mini|4\.[3-9]|4\.20-multi|[5-9])",
        rules={"refused_extra": ["reasoning_effort", "reasoning.effort"]},
        providers=("xai",),
        source="'Model ... does not support parameter reasoningEffort.' (hermes-agent #23435, live, 2026-05-10)",
        read="2026-11-16",
    ),
    Family(
        pattern=r"glm-4\.7",
        rules={"thinking_levels": frozenset({"off", "low", "medium", "high"})},
        dialect={"off_value": "none"},
        providers=("cerebras",),
        source="\"Input should be 'none', 'low', 'medium' or 'high'\" (modelparams.dev #115, live, 2026-07-14)",
        read="2026-11-18",
    ),
    Family(
        pattern=r"grok-(?:[4-9]|3-mini)",
        rules={"refused_extra": ["presence_penalty", "frequency_penalty", "stop"], "refused_options": ["stop"]},
        providers=("xai",),
        source="'Model ... does not support parameter presencePenalty', of 0 too (NativeTavern #83, 2026-09-15); xAI"
        " documentation: reasoning, `stop`",
        read="2026-11-16",
    ),
    Family(
        pattern=r"(?:^|[/.:~]|openai-)o1-?(?:mini|preview)",
        rules={"tools": False, "system_prompt": False, "system_messages": "none"},
        source="\"'messages[0].role' does not support 'system' with this model\"; recorded traffic, 2026-11",
        read="2026-11-15",
    ),
    Family(
        pattern=CLAUDE,
        rules={"last_assistant": False, "refused_options": _SAMPLING, "instructions_alone": False},
        source="the refusals of Claude hold on this protocol too (llxprt-code #1977, pr-agent #2488)",
        read="2026-11-15",
    ),
    Family(
        pattern=CLAUDE_UP_TO_4_5,
        rules={"last_assistant": True, "refused_options": ["-temperature", "-top_p"]},
        source="the same; Sonnet 4.5 and older accept both (strands #1694)",
        read="2026-11-15",
    ),
    Family(
        pattern=CLAUDE_4_6,
        rules={"refused_options": ["-temperature", "-top_p"]},
        source="recorded traffic, 2026-11: claude-sonnet-4-6 with a temperature",
        read="2026-11-15",
    ),
    *(
        Family(
            pattern=pattern,
            rules={"max_tools": 128},
            providers=(provider,),
            source="'Invalid 'tools': array too long. Expected an array with maximum length 128' of GPT behind them too"
            " (Copilot: copilot-api #188, 2026-04-16)",
            read="2026-11-19",
        )
        for pattern, provider in OPENAI_BEHIND
    ),
    Family(
        pattern=r"^~?openai/(?!gpt-oss|gpt-4o|gpt-4-|gpt-4$|gpt-3)",
        rules={"max_tokens": Rule(least=16)},  # OpenRouter sends `max_output_tokens` of Responses
        providers=("openrouter",),
        source="'Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16' of gpt-5,"
        " gpt-4.1-mini and o3 (claude-code-router #994, 2025-11-13; guidellm #370; dify-official-plugins #1694);"
        " gpt-4o-mini answers 10 (recorded traffic, 2026-11)",
        read="2026-11-18",
    ),
    Family(
        pattern=r"(?:^|/)openai/",
        rules={"call_id_max": 40},
        providers=("openrouter", "huggingface", "vercel-ai-gateway", "litellm"),
        source="the limit is OpenAI's, also behind a gateway (vercel/ai #8132)",
        read="2026-11-15",
    ),
    Family(
        pattern=MISTRAL,
        rules={
            "call_id_alphabet": "a-zA-Z0-9",
            "call_id_min": 9,
            "call_id_max": 9,
            "alternate": True,
            "user_after_result": False,
            "system_messages": "none",
            "last_assistant": False,
        },
        source="mistral-common 1.13.0; hermes-agent #20154 (NIM, 2026-05-05), crush #279, vllm #6862",
        read="2026-11-15",
    ),
    Family(
        pattern=MISTRAL,
        rules={"user_after_result": True},
        providers=("mistral",),
        source="mistral-common 1.13.0; answered with 200 by Mistral's own service (recorded traffic, 2026-11)",
        read="2026-11-15",
    ),
    Family(
        pattern="devstral",
        rules={"user_after_result": False},
        providers=("mistral",),
        source="'Unexpected role 'user' after role 'tool'' of Mistral's own service too (avante.nvim #2562, 2025-08)",
        read="2026-11-18",
    ),
    Family(
        pattern=r"deepseek-(?:r1|reasoner)",
        rules={"alternate": True, "system_messages": "none"},
        # DeepSeek advises against a system prompt, but the models accept one: recorded replies of DeepSeek and of Groq.
        source="'does not support successive user or assistant messages' (DeepSeek-R1 #21); tgpt #357 (system first)",
        read="2026-11-15",
    ),
    Family(
        pattern=r"deepseek-reasoner",
        # "The last message of deepseek-reasoner must be a user message, or an assistant message with prefix"
        # (R2R #1990, 2025-02-20)
        rules={"first_user": True, "last_assistant": False},
        source="'The first message (except the system message) ... must be a user message' (lobehub #5620, live)",
        read="2026-11-15",
    ),
    Family(
        pattern=r"deepseek-v[4-9]|kimi-k[3-9]",
        rules={"reasoning_replay": "required", "forced_choice_with_thinking": False},
        source="pi #3636, kimi-cli #2141; litellm #37470 (tool_choice); pi-ai 1.5.0 catalogue, every host of the two",
        read="2026-11-15",
    ),
    Family(
        pattern=r"deepseek-reasoner",
        rules={
            "refused_extra": ["logprobs", "top_logprobs"],
            "reasoning_replay": "required",
            "thinks_unasked": True,
        },
        providers=("deepseek",),
        source="DeepSeek documentation: reasoning model, unsupported parameters (these two answer an error); 'Missing"
        " `reasoning_content` field in the assistant message at message index 2' of a call (continue #9831, 2026-01-23;"
        " GitNexus #43, 2026-02-22)",
        read="2026-11-18",
    ),
    Family(
        pattern=r"deepseek-v[4-9]",
        rules={"thinks_unasked": True},
        providers=("deepseek",),
        source="DeepSeek documentation: thinking mode, enabled by default; DeepSeek-V3 #1376 (2026-05-30: forced choice"
        " refused without any setting), Newelle #404 (2026-07-04: so are calls without their reasoning)",
        read="2026-11-17",
    ),
    Family(
        pattern=r"^qwq|^qvq|-omni",
        rules={"unstreamed": False},
        providers=("alibaba",),
        source="'This model only support stream mode, please enable the stream parameter to access the model.' (Alibaba"
        " documentation: Model Studio, error codes)",
        read="2026-11-17",
    ),
    Family(
        pattern=r"^qwen3-(?:\d|next|vl-\d)",
        rules={"thinking_unstreamed": Rule()},
        providers=("alibaba",),
        source="'parameter.enable_thinking must be set to false for non-streaming calls' (Alibaba documentation: Model"
        " Studio, error codes)",
        read="2026-11-17",
    ),
    Family(
        pattern=r"^qwen3-\d+b(?!.*(?:instruct|thinking))",
        rules={"thinks_unasked": True},
        providers=("alibaba",),
        source="the same, where nothing is set (eino-ext #375, vanna #918); DashScope documentation: deep thinking, the"
        " open Qwen3 models think by default",
        read="2026-11-17",
    ),
    Family(
        pattern=r"kimi-k(?:2\.[5-9]|[3-9])",
        rules={"refused_options": _SAMPLING},
        providers=("moonshotai", "moonshotai-cn", "kimi-coding"),
        source="'invalid temperature: only 1 is allowed for this model', of top_p alike (opencode #33957, 2026-06-25)",
        read="2026-11-16",
    ),
    Family(
        pattern=r"kimi-k2\.[5-9]",
        rules={"thinks_unasked": True, "forced_choice_with_thinking": False},
        providers=("moonshotai", "moonshotai-cn", "kimi-coding", "opencode", "opencode-go"),
        source="'tool_choice 'specified' is incompatible with thinking enabled', the default (oh-my-pi #1077 of"
        " 2026-05-14, inspect_ai #5152 of 2026-08-31)",
        read="2026-11-17",
    ),
    Family(
        pattern=r"kimi-k2\.7-code",
        rules={"refused_extra": ["thinking.type=disabled"]},
        providers=("moonshotai", "moonshotai-cn"),
        source="thinking cannot be disabled (modelparams.dev #168, 2026-07-30, of the API reference)",
        read="2026-11-17",
    ),
    Family(
        pattern=r"kimi-k[3-9]",
        dialect={"thinking_format": "effort", "effort": True},
        providers=("moonshotai", "moonshotai-cn"),
        source="pi-ai 1.5.0 catalogue",
        read="2026-11-15",
    ),
    Family(
        pattern=r"(?:^|/)@(?:cf|hf)/",
        dialect={"null_content": False},
        source="Workers AI requires a string beside calls (sure #467 of 2025-12, zeroclaw #9493 of 2026-07-28)",
        read="2026-11-15",
    ),
    Family(
        pattern=r"^(?:anthropic|google)/",
        rules={"refused_options": ["-cache_retention"]},
        dialect={"cache_format": "anthropic"},
        providers=("openrouter",),
        source="recorded traffic, 2026-11: cache_control on both; pi-ai 1.5.0",
        read="2026-11-15",
    ),
    Family(
        pattern=r"^(?:anthropic|openai)/",
        dialect={"developer_role": True},
        providers=("openrouter",),
        source="pi-ai 1.5.0, auto-detection",
        read="2026-11-15",
    ),
    Family(
        pattern=r"^cohere/",
        dialect={"strict_tools": False},
        providers=("openrouter",),
        source="'parameter 'strict' is not a valid field', passed on to Cohere (openrouter-examples #71, 2026-03-23)",
        read="2026-11-17",
    ),
    Family(
        pattern=r"minimax-m3",
        dialect={"think_tag": "<mm:think>"},
        source="vLLM's parser of MiniMax M3, articles",
        read="2026-11-16",
    ),
    Family(
        pattern=r"gemini-",
        rules={"last_assistant": False},
        providers=("github-copilot",),
        source="'The last message in a Gemini request must not be from the assistant' (copilot-api #273, 2026-09-03)",
        read="2026-11-17",
    ),
    Family(
        pattern=r"gemini-",
        rules={"instructions_alone": False},  # "contents is not specified" (chatgpt-plugin #733)
        dialect={"google_signatures": True},
        source="extra_content.google.thought_signature (langchain #34056, ruby_llm #591)",
        read="2026-11-15",
    ),
    Family(
        pattern=GEMINI_3_ON,
        providers=("google", "google-vertex"),
        rules={"call_signature": "required"},
        source="'missing a thought_signature' at Google's OpenAI-compatible API (securo #884, ruby_llm #591)",
        read="2026-11-15",
    ),
)
