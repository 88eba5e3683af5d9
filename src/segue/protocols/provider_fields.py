"""The keys of a request body that a provider of a shared protocol has.

One protocol serves many providers, and each has its own keys in addition to those that all have. Rows that name a
version are those of the provider's SDK. Rows marked "not verified" are gathered from clients and articles: a key may
be missing there, or be one that the provider does not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_CHAT: Final = frozenset(
    {
        *("model", "messages", "temperature", "top_p", "stop", "stream", "max_tokens", "max_completion_tokens", "seed"),
        *("tools", "tool_choice"),
    }
)
_OPENAI: Final = _CHAT | {
    *("audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs", "metadata", "modalities"),
    *("moderation", "n", "parallel_tool_calls", "prediction", "presence_penalty", "prompt_cache_key"),
    *("prompt_cache_options", "prompt_cache_retention", "reasoning_effort", "response_format", "safety_identifier"),
    *("service_tier", "store", "stream_options", "top_logprobs", "user", "verbosity", "web_search_options"),
}
"""OpenAI's own keys.                                  (openai 3.51.0 completion_create_params.py, read 2026-11-18)"""

_CHAT_FIELDS: Final[Mapping[str, str]] = {
    # DeepSeek's create-chat-completion, as its clients send it; not verified.
    "deepseek": "frequency_penalty presence_penalty response_format logprobs top_logprobs stream_options thinking"
    " reasoning_effort",
    # groq 1.7.0; penalties, logprobs and logit_bias are left out, because Groq refuses them (`limits` has the source).
    "groq": "citation_options compound_custom disable_tool_validation documents exclude_domains function_call functions"
    " include_domains include_reasoning metadata n parallel_tool_calls reasoning_effort reasoning_format"
    " response_format search_settings service_tier stream_options user",
    # xai-sdk 1.21.0 chat.py (gRPC; REST has the same names).
    "xai": "user logprobs top_logprobs parallel_tool_calls response_format frequency_penalty presence_penalty"
    " reasoning_effort search_parameters service_tier stream_options n deferred web_search_options",
    # OpenRouter's list of parameters; not verified.
    "openrouter": "top_k top_a min_p frequency_penalty presence_penalty repetition_penalty logit_bias logprobs"
    " top_logprobs response_format structured_outputs parallel_tool_calls verbosity reasoning reasoning_effort"
    " include_reasoning user prediction metadata modalities models provider route transforms plugins usage session_id"
    " trace stream_options web_search_options audio prompt_cache_key cache_control image_config",
    # kimi-cli sends prompt_cache_key; the others are not verified.
    "moonshotai": "frequency_penalty presence_penalty n response_format thinking safety_identifier prompt_cache_key"
    " stream_options reasoning_effort",
    # zai-sdk 0.2.3 api_resource/chat/completions.py.
    "zai": "request_id user_id do_sample sensitive_word_check meta response_format thinking watermark_enabled"
    " tool_stream reasoning_effort stream_options",
    # Model Studio, OpenAI compatible chat; not verified.
    "alibaba": "top_k presence_penalty repetition_penalty n response_format logprobs top_logprobs enable_thinking"
    " thinking_budget preserve_thinking enable_search search_options modalities audio stream_options"
    " parallel_tool_calls vl_high_resolution_images reasoning_effort",
    # fireworks_ai 1.2.28.
    "fireworks": "context_length_exceeded_behavior echo echo_last frequency_penalty function_call functions ignore_eos"
    " logit_bias logprobs metadata min_p mirostat_lr mirostat_target n parallel_tool_calls perf_metrics_in_response"
    " prediction presence_penalty prompt_cache_isolation_key prompt_cache_key prompt_truncate_len raw_output"
    " reasoning_effort reasoning_history repetition_penalty response_format return_token_ids safe_tokenization"
    " service_tier speculation stream_options thinking top_k top_logprobs typical_p user",
    # together 3.1.1.
    "together": "chat_template_kwargs compliance context_length_exceeded_behavior echo frequency_penalty function_call"
    " logit_bias logprobs min_p n presence_penalty reasoning reasoning_effort repetition_penalty response_format"
    " safety_model stream_options top_k",
    # cerebras_cloud_sdk 1.91.0.
    "cerebras": "clear_thinking disable_reasoning frequency_penalty logit_bias logprobs min_completion_tokens"
    " min_tokens model_parameters n parallel_tool_calls prediction presence_penalty prompt_cache_key reasoning_effort"
    " reasoning_format response_format service_tier stream_options top_logprobs user",
    # vLLM's OpenAI-compatible server; not verified.
    "vllm": "frequency_penalty presence_penalty repetition_penalty top_k min_p logit_bias logprobs top_logprobs n user"
    " response_format stream_options parallel_tool_calls reasoning_effort include_reasoning best_of use_beam_search"
    " length_penalty stop_token_ids include_stop_str_in_output ignore_eos min_tokens skip_special_tokens"
    " spaces_between_special_tokens truncate_prompt_tokens prompt_logprobs allowed_token_ids bad_words echo"
    " add_generation_prompt continue_final_message add_special_tokens documents chat_template chat_template_kwargs"
    " mm_processor_kwargs structured_outputs guided_json guided_regex guided_choice guided_grammar priority request_id"
    " return_token_ids cache_salt kv_transfer_params thinking_token_budget",
    # llama.cpp's server; not verified.
    "llama.cpp": "frequency_penalty presence_penalty repeat_penalty repeat_last_n top_k min_p typical_p top_n_sigma"
    " logit_bias logprobs top_logprobs n n_probs response_format stream_options parallel_tool_calls grammar json_schema"
    " ignore_eos mirostat mirostat_tau mirostat_eta dry_multiplier dry_base dry_allowed_length dry_penalty_last_n"
    " xtc_probability xtc_threshold dynatemp_range dynatemp_exponent n_keep samplers cache_prompt chat_template_kwargs"
    " reasoning_format timings_per_token",
    # SGLang's sampling parameters; not verified.
    "sglang": "frequency_penalty presence_penalty repetition_penalty top_k min_p min_tokens logit_bias logprobs"
    " top_logprobs n user response_format stream_options parallel_tool_calls regex ebnf stop_token_ids ignore_eos"
    " skip_special_tokens spaces_between_special_tokens no_stop_trim continue_final_message chat_template_kwargs"
    " separate_reasoning stream_reasoning lora_path reasoning_effort priority rid cache_salt",
}

_SAME: Final[Mapping[str, str]] = {
    "moonshotai-cn": "moonshotai",
    "kimi-coding": "moonshotai",
    "zai-coding-cn": "zai",
    "qwen-token-plan": "alibaba",
    "qwen-token-plan-cn": "alibaba",
    "qwen-token-plan-individual": "alibaba",
}
"""Providers with another address -> the one whose keys they have."""

_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "openai": _OPENAI,
    "azure": _OPENAI,
    **{name: _CHAT | frozenset(keys.split()) for name, keys in _CHAT_FIELDS.items()},
}


def provider_fields(protocol: str, provider: str) -> frozenset[str] | None:
    """Return the keys of a body that a provider has; None where they are not known."""
    return _FIELDS.get(_SAME.get(provider, provider)) if protocol == "openai-chat" else None


def common_fields(protocol: str) -> frozenset[str] | None:
    """Return the keys that a provider without a list is taken to have: those of the protocol's own provider."""
    return _OPENAI if protocol == "openai-chat" else None


def fields_of_providers() -> Mapping[str, frozenset[str]]:
    """Return the keys of every provider of Chat that has its own list."""
    return _FIELDS
