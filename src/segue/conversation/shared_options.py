"""Options that several wires have: one name and one type for each.

`protocols.shared_rows` has a row for each of them, with the places of every wire; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict


class SharedOptions(TypedDict, total=False):
    """Options that several wires have, under one name and in one form; `docs/fields.md` says which wires have which.

    Projection writes each where the target has it, and reports those that it has no place for.
    """

    json_mode: bool
    regex: str
    grammar: str
    output_choices: list[str]
    prediction: str
    verbosity: Literal["low", "medium", "high"]
    truncation: Literal["auto", "disabled"]
    frequency_penalty: float
    presence_penalty: float
    repetition_penalty: float
    repeat_last_n: int
    top_k: int
    min_p: float
    typical_p: float
    mirostat: int
    mirostat_tau: float
    mirostat_eta: float
    n: int
    n_keep: int
    min_tokens: int
    ignore_eos: bool
    include_stop: bool
    skip_special_tokens: bool
    logprobs: bool
    top_logprobs: int
    prompt_logprobs: bool
    top_prompt_logprobs: int
    echo: bool
    prompt_limit: int
    return_token_ids: bool
    thinking_shown: Literal["shown", "hidden"]
    thinking_kept: Literal["all", "current", "none"]
    allowed_tools: Mapping[str, Any]
    strict_tools: bool
    documents: list[Mapping[str, Any]]
    citations: Literal["enabled", "disabled"]
    modalities: list[str]
    speech: Mapping[str, Any]
    aspect_ratio: str
    image_size: str
    service_tier: Literal["auto", "default", "flex", "priority", "scale", "fast", "ultrafast", "reserved"]
    priority: int
    safety_settings: list[Mapping[str, str]]
    moderation: Mapping[str, Any]
    metadata: Mapping[str, str]
    labels: Mapping[str, str]
    request_id: str
    cache_salt: str
    prompt_cache_options: Mapping[str, Any]
    include_obfuscation: bool
