"""Chinese providers that serve their own models; `first_party` has the others, and the order of all.

Facts:
- Base URLs, names of key variables, and differences on `openai-chat`: the role of the system prompt, the field of the
  output limit, the parameter for thinking.     (pi-ai 1.5.0: providers, env-api-keys, auto-detection; read 2026-11-15)
- DeepSeek, Kimi and Xiaomi require reasoning on every assistant turn of the history.
                                                    (pi #3636, kimi-cli #2141, openclaw #73417; ktsoator/or, 2026-11-15)
- DeepSeek and Qwen refuse a forced tool choice while thinking is on.  (litellm #37470, eino #994; 2026-04 and 2026-08)
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from msgspec.structs import replace

from segue.models.provider import Provider
from segue.models.rule import Rule

_READ: Final = "2026-11-15"
_ALIBABA: Final = "Alibaba documentation: Model Studio, error codes, 2026-06-23"
_PI: Final = "pi-ai 1.5.0"
_provider = partial(Provider, read=_READ)

_REQUIRED_REASONING: Final[Mapping[str, object]] = {
    "reasoning_replay": "required",
    "forced_choice_with_thinking": False,
}
_VIDEO_BY_URL: Final[Mapping[str, object]] = {
    "user_media": ("image/*", "audio/wav", "audio/mpeg", "audio/mp3", "video/*"),
    "file_sources": frozenset({"data", "url"}),
}
"""`video_url` and `input_audio`, each with a URL or with data."""
_MOONSHOT_RULES: Final[Mapping[str, object]] = {
    "refused_options": ("-session_id",),
    "assistant_prefix": True,  # `partial`, as clients of Moonshot send it; not verified
    **_REQUIRED_REASONING,
    "refused_text": "empty",  # "text content is empty" (kimi-cli #2621, 2026-08-27)
    "image_sources": frozenset({"data"}),  # "unsupported image url" (OpenHands/software-agent-sdk #3219, 2026-05-12)
    "user_media": ("image/*", "video/*"),  # `video_url` with a data URL (model card of Kimi K2.5, read 2026-11-15)
    "file_sources": frozenset({"data"}),
    "typed_unions": Rule('"type should be defined in anyOf items" (kimi-code #2661, 2026-08-05)', _READ),
    "untyped_properties": Rule('"type is not defined" (Moonshot API; reported 400s, 2025 and 2026)', _READ),
    "schema_references": Rule(
        '"references must start with #/$defs/" (command-code #594, 2026-07-27; kimi-cli #1903, 2026-04-15)', _READ
    ),
    "max_tools": 128,  # Moonshot documentation: tool use
    "tool_name_first": "a-zA-Z_",  # Moonshot documentation: tool use, names begin with a letter
    "temperature": Rule("Moonshot documentation: chat, from 0 to 1", _READ, most=1.0),
    "stop": Rule("Moonshot API reference: chat, up to 5 sequences of 32 bytes", _READ, most=5),
    "stop_bytes": Rule("Moonshot API reference: chat, up to 5 sequences of 32 bytes", _READ, most=32),
}
_MOONSHOT: Final[Mapping[str, object]] = {
    "max_tokens_field": "max_tokens",
    "thinking_format": "deepseek",
    "effort": False,
    "prefix_field": "partial",
    "cache_format": "openai-key",  # kimi-cli sends `prompt_cache_key`; Moonshot's OpenAPI of 2026-10 has it
    "user_field": "safety_identifier",  # the same
}
_ZAI: Final[Mapping[str, object]] = {
    "max_tokens_field": "max_tokens",
    "thinking_format": "zai",
    "tool_stream": True,
    "strict_tools": True,
    "user_field": "user_id",  # zai-sdk 0.2.3, read 2026-11-18
}
_QWEN: Final[Mapping[str, object]] = {
    "thinking_format": "qwen",
    "thinking_budget_field": "thinking_budget",
    "strict_tools": True,
}
_QWEN_RULES: Final[Mapping[str, object]] = {
    "reasoning_replay": "open",
    "forced_choice_with_thinking": False,
    **_VIDEO_BY_URL,  # DashScope documentation: visual and audio understanding
    # Alibaba documentation: Model Studio, error codes (2026-06-23): "Range of max_tokens should be [1, x]",
    # and the word JSON in the messages
    "json_word": True,
    "max_tokens_refused": True,
    "refused_text": "empty",  # "Content length must be greater than 0"
    # "The input messages do not contain elements with the role of user" (agentscope-java #613, 2026-01-21)
    "instructions_alone": False,
    "top_p": Rule(f'"Range of top_p should be (0.0, 1.0]" ({_ALIBABA})', _READ, least=0.01, most=1.0),
    "temperature": Rule(f'"Range of temperature should be [0.0, 2.0)" ({_ALIBABA})', _READ, most=1.99),
}
_DEEPSEEK_USER: Final[Mapping[str, object]] = {
    "user_id": Rule("DeepSeek documentation: rate limit and isolation", _READ, most=512)
}
_ZAI_CHAT: Final[Mapping[str, object]] = {
    "tool_choices": frozenset({"auto"}),
    "max_tools": 128,  # the same page
    "temperature": Rule("Z.ai documentation: chat completion, from 0 to 1", "2026-11-17", most=1.0),
    "stop": Rule("Z.ai documentation: chat completion, one stop", "2026-11-17", most=1),
}
"""Z.ai documentation: chat completion, `tool_choice` auto alone (2026-11-17)."""
_ZAI_USER: Final[Mapping[str, object]] = {
    "user_id": Rule('"... must be between 6 and 128 characters" (axonhub #1669, 2026-05)', _READ, least=6, most=128)
}


def _at(site: str, provider: Provider, title: str, base_url: str, key_variable: str) -> Provider:
    """Return a provider at its own site."""
    return replace(provider, name=site, title=title, base_url=base_url, key_variables=(key_variable,))


_MOONSHOTAI: Final = _provider(
    name="moonshotai",
    title="Moonshot AI",
    protocol="openai-chat",
    base_url="https://api.moonshot.ai/v1",
    key_variables=("MOONSHOT_API_KEY",),
    rules={"openai-chat": _MOONSHOT_RULES},
    dialect={"openai-chat": _MOONSHOT},
    source="pi-ai 1.5.0; kimi-cli #2141",
)

_Z_AI: Final = _provider(
    name="zai",
    title="Z.ai",
    protocol="openai-chat",
    base_url="https://api.z.ai/api/coding/paas/v4",
    key_variables=("ZAI_API_KEY",),
    rules={
        "openai-chat": {
            "reasoning_replay": "open",
            "instructions_alone": False,  # "The messages parameter is illegal." (opencode #2557, 2025-09-17)
            **_VIDEO_BY_URL,
            **_ZAI_CHAT,
            **_ZAI_USER,
        },
        "anthropic-messages": _ZAI_USER,
    },
    dialect={"openai-chat": _ZAI},
    source="pi-ai 1.5.0; Z.ai documentation: preserved thinking (reasoning_content), GLM-4.5V (video_url)",
)

_MINIMAX: Final = _provider(
    name="minimax",
    title="MiniMax",
    protocol="anthropic-messages",
    base_url="https://api.minimax.io/anthropic",
    key_variables=("MINIMAX_API_KEY",),
    rules={
        # "chat content has invalid message role: system" (CodexPlusPlus #267, note-gen #918; 2026-02 to 2026-05)
        "openai-chat": {"system_messages": "none"},
        "anthropic-messages": {
            "reasoning_replay": "open",
            "refused_extra": frozenset({"output_config.format"}),
            "refused_options": frozenset({"output_schema"}),
        },
    },
    dialect={"openai-chat": {"think_tags": True}},
    source='pi-ai 1.5.0; MiniMax-M2.7 #17 (2026-04-20: "invalid params" for `output_config.format`; reported); '
    "hermes-agent #75779 (live, 2026-07-31: thinking without a signature is accepted, and read)",
)

_QWEN_PLAN: Final = _provider(
    name="qwen-token-plan",
    title="Qwen Token Plan",
    protocol="openai-chat",
    base_url="https://token-plan.ap-southeast-1.maas.aliyuncs.com/compatible-mode/v1",
    key_variables=("QWEN_TOKEN_PLAN_API_KEY",),
    rules={"openai-chat": _QWEN_RULES},
    dialect={"openai-chat": _QWEN},
    source=f"{_PI}; eino #994 (forced tool choice)",
)

_XIAOMI_MIMO: Final = _provider(
    name="xiaomi",
    title="Xiaomi",
    protocol="openai-chat",
    base_url="https://api.xiaomimimo.com/v1",
    key_variables=("XIAOMI_API_KEY",),
    rules={"openai-chat": {"reasoning_replay": "required", **_VIDEO_BY_URL}},
    dialect={"openai-chat": {"thinking_format": "deepseek", "effort": False, "strict_tools": True}},
    stated={
        "refused_input=image": '"No endpoints found that support image input" (oai-compatible-copilot #229, 2026-05)',
    },
    source=f"{_PI}; ktsoator/or; mimo-multimodal-mcp (video and sound, by URL and as data)",
)

CHINESE_LABS: Final[tuple[Provider, ...]] = (
    _provider(
        name="deepseek",
        title="DeepSeek",
        protocol="openai-chat",
        base_url="https://api.deepseek.com",
        key_variables=("DEEPSEEK_API_KEY",),
        rules={
            "openai-chat": {
                **_REQUIRED_REASONING,
                "max_tools": 128,  # DeepSeek documentation: chat completion
                "stop": Rule("DeepSeek documentation: 16 stops", _READ, most=16),
                "top_p": Rule('"the valid range of top_p is (0, 1.0]" (DeepSeek API)', _READ, least=0.01, most=1.0),
                "tool_types": frozenset({"function"}),  # "unknown variant `web_search`, expected `function`"
                "refused_roles": frozenset({"developer", "function"}),  # "unknown variant `developer`, expected ..."
                "refused_extra": frozenset({"response_format.type=json_schema"}),  # "... type is unavailable now"
                "refused_options": frozenset({"output_schema"}),
                "body_fields": "typed",  # "missing field `content`", "expected a string" (deepseek4j #41)
                "content_parts": Rule(
                    '"expected a string" (forgecode #2008)', _READ, values=frozenset({"tool", "assistant"})
                ),
                "json_word": True,
                "max_tokens_refused": True,
                "user_media": ("image/*",),
                **_DEEPSEEK_USER,
                "result_text_only": True,  # "unknown variant `image_url`, expected `text`" (kimi-code #2669)
            },
            # reasoning as `reasoning_text`, unsigned: recorded 200s of V4 Flash, 2026-11
            "openai-responses": {"calls_last": True, "reasoning_replay": "open", **_DEEPSEEK_USER},
            "anthropic-messages": {
                "temperature": Rule("DeepSeek documentation: Anthropic API, from 0 to 2", "2026-11-19", most=2.0),
                # A function has no type: "unknown variant `custom`, expected" one of these (public probes, 2026-10-05)
                "tool_types": frozenset({"web_search_20250305", "web_search_20260209"}),
                **_DEEPSEEK_USER,
            },
        },
        dialect={
            "openai-chat": {
                "max_tokens_field": "max_tokens",
                "thinking_format": "deepseek",
                "strict_tools": True,
            },
            "openai-responses": {"strict_tools": True},  # recorded 200s of V4 Flash, 2026-11
        },
        stated={"refused_input=image": '"unknown variant `image_url`, expected `text`" (kimi-code #2669)'},
        source=(
            "pi-ai 1.5.0; litellm #37470, DeepSeek-V3 #1376 (forced tool choice); DeepSeek documentation (16 stops); "
            "recorded traffic, 2026-11 (text between the calls of a turn is refused)"
        ),
    ),
    _MOONSHOTAI,
    _at("moonshotai-cn", _MOONSHOTAI, "Moonshot AI (China)", "https://api.moonshot.cn/v1", "MOONSHOT_API_KEY"),
    _provider(
        name="kimi-coding",
        title="Kimi for Coding",
        protocol="openai-chat",
        base_url="https://api.kimi.com/coding/v1",
        key_variables=("KIMI_API_KEY",),
        rules={"openai-chat": _MOONSHOT_RULES},
        dialect={
            "openai-chat": {"max_tokens_field": "max_tokens", "prefix_field": "partial", "cache_format": "openai-key"}
        },
        source=_PI,
    ),
    _Z_AI,
    _at(
        "zai-coding-cn",
        _Z_AI,
        "Z.ai Coding (China)",
        "https://open.bigmodel.cn/api/coding/paas/v4",
        "ZAI_CODING_CN_API_KEY",
    ),
    _MINIMAX,
    _at("minimax-cn", _MINIMAX, "MiniMax (China)", "https://api.minimaxi.com/anthropic", "MINIMAX_CN_API_KEY"),
    _provider(
        name="alibaba",
        title="Alibaba Cloud (DashScope)",
        protocol="openai-chat",
        base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        key_variables=("DASHSCOPE_API_KEY", "ALIBABA_API_KEY"),
        rules={"openai-chat": _QWEN_RULES},
        dialect={"openai-chat": _QWEN},
        source="DashScope documentation: OpenAI compatibility; eino #994 (forced tool choice)",
    ),
    _QWEN_PLAN,
    _at(
        "qwen-token-plan-cn",
        _QWEN_PLAN,
        "Qwen Token Plan (China)",
        "https://token-plan.cn-beijing.maas.aliyuncs.com/compatible-mode/v1",
        "QWEN_TOKEN_PLAN_CN_API_KEY",
    ),
    replace(_QWEN_PLAN, name="qwen-token-plan-individual", title="Qwen Token Plan (individual)"),
)

XIAOMI_AND_LING: Final[tuple[Provider, ...]] = (
    _XIAOMI_MIMO,
    *(
        _at(
            f"xiaomi-token-plan-{site}",
            _XIAOMI_MIMO,
            f"Xiaomi Token Plan ({city})",
            f"https://token-plan-{site}.xiaomimimo.com/v1",
            f"XIAOMI_TOKEN_PLAN_{site.upper()}_API_KEY",
        )
        for site, city in (("ams", "Amsterdam"), ("cn", "China"), ("sgp", "Singapore"))
    ),
    _provider(
        name="ant-ling",
        title="Ant Ling",
        protocol="openai-chat",
        base_url="https://api.ant-ling.com/v1",
        key_variables=("ANT_LING_API_KEY",),
        dialect={
            "openai-chat": {
                "max_tokens_field": "max_tokens",
                "thinking_format": "ling",
                "effort": False,
                "strict_tools": True,
            }
        },
        source=_PI,
    ),
)
