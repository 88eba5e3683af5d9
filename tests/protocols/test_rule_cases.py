"""Every rule of the grade *refused* has a case: a body that it names, and one next to it that it does not.

The rules are those of the protocols, providers and families of models, row by row; `kit.test_limits` has the cases of
limits. A row without a case fails here: add a pair to `rule_cases`, or say in `test_capabilities` why no body shows it.
`WITHOUT` lists what has no case of its own yet. `make test` draws every fiftieth rule, `make proof` takes all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple, cast

import pytest
from msgspec.structs import replace

from property_testing import tiers
from protocols.rule_cases import MAKERS, named_by, pairs_of
from protocols.test_capabilities import NOT_IN_A_BODY
from segue.models.catalogue import find_models, packaged_catalogue
from segue.models.model import Model
from segue.models.overrides import override
from segue.models.providers import PROVIDERS
from segue.models.rule import PLACES, Rule
from segue.models.rules import Rules
from segue.models.weights import WEIGHTS
from segue.protocols.api import check_for, resolve_endpoint
from segue.protocols.kit.codec import Endpoint
from segue.protocols.registry import PROTOCOLS

DEFAULTS = Rules()
IDS = tuple(dict.fromkeys(model.id for model in packaged_catalogue().models))
OLDER = (
    *("o1-mini", "gpt-4-vision-preview", "gpt-4o-search-preview", "gpt-4o-audio-preview", "computer-use-preview"),
    *("claude-2.1", "claude-3-haiku-20240307", "claude-mythos-preview", "gpt-5.1-chat-latest", "gemma-3-27b-it"),
    *("qwq-32b", "mixtral-8x7b-instruct", "llama-guard-4-12b", "grok-code-fast-1", "o3-mini", "qwen3-8b", "m"),
)
SETS = ("refused_options", "refused_extra", "refused_fields", "refused_tool_types", "refused_roles")


class Found(NamedTuple):
    """A rule, and an endpoint for which it holds."""

    where: str
    name: str
    item: str
    protocol: str
    provider: str
    pattern: str
    value: Any

    def __str__(self) -> str:
        return f"{self.where}: {self.name}{'=' if self.item else ''}{self.item}"


def refusing(where: str, rules: Any, protocol: str, provider: str, pattern: str = "") -> Iterator[Found]:
    """Yield the rules of a row that refuse something; a value that accepts everything is none."""
    for name, value in rules.items():
        if name in NOT_IN_A_BODY or (isinstance(value, Rule) and value.grade != "refused") or value is None:
            continue
        if name not in PLACES:
            held = getattr(override(DEFAULTS, {name: value}, where="a test"), name)
            if held == getattr(DEFAULTS, name):
                continue
        else:
            held: Any = value
        for item in sorted(held) if name in SETS else [""]:
            yield Found(where, name, item, protocol, provider, pattern, held)


def all_rules() -> Iterator[Found]:
    for name, record in PROTOCOLS.items():
        fields = {field: getattr(record.rules, field) for field in Rules.__struct_fields__ if field != "rows"}
        yield from refusing(f"protocol {name}", {**fields, **record.rules.rows}, name, record.provider)
        for family in record.families:
            if family.grade == "refused":
                provider = family.providers[0] if family.providers else record.provider
                yield from refusing(f"family {name} {family.pattern}", family.rules, name, provider, family.pattern)
    for family in WEIGHTS:
        provider, protocol = (
            (family.providers or ("vllm",))[0],
            "openai-chat" if not family.providers else "ollama-chat",
        )
        yield from refusing(f"weights {family.pattern}", family.rules, protocol, provider, family.pattern)
    for provider in PROVIDERS.values():
        for protocol, rules in provider.rules.items():
            yield from refusing(f"provider {provider.name} {protocol}", rules, protocol, provider.name)


@lru_cache
def _candidates(provider: str, protocol: str, pattern: str) -> tuple[Model, ...]:
    """Return models that a row may be about: of the provider, then any of the right name."""
    listed = [replace(model, protocol=protocol, rules={}, dialect={}) for model in find_models(provider=provider)]
    own = [model for model in listed if re.search(pattern, model.id, re.IGNORECASE)]
    named = [one for one in (*OLDER, *IDS) if re.search(pattern, one, re.IGNORECASE)]
    plain = [Model(one, provider, protocol, reasoning=True, max_tokens=64_000, context_window=200_000) for one in named]
    chosen = [*own[:: max(1, len(own) // 12)], *plain[:: max(1, len(plain) // 12)]]
    return tuple(chosen)


def _without(endpoint: Endpoint, rule: Found) -> Endpoint | None:
    """Return an endpoint without a rule; None if it does not hold there."""
    rules = endpoint.rules
    if rule.name in PLACES:
        if rules.rows.get(rule.name) != rule.value:
            return None
        rows = {place: row for place, row in rules.rows.items() if place != rule.name}
        return replace(endpoint, rules=replace(rules, rows=rows))
    held = getattr(rules, rule.name)
    if rule.item:
        kept = cast("frozenset[str]", held)
        return replace(endpoint, rules=replace(rules, **{rule.name: kept - {rule.item}})) if rule.item in kept else None
    if held != rule.value:
        return None
    return replace(endpoint, rules=replace(rules, **{rule.name: getattr(DEFAULTS, rule.name)}))


@lru_cache(maxsize=512)
def _refused_pairs(place: tuple[str, str, str], model_id: str, kind: str) -> list[Any]:
    """Return the pairs in whose first body an endpoint finds something: only these can show a rule."""
    endpoint = _endpoint(place, model_id)
    return [pair for pair in pairs_of(endpoint, kind) if check_for(pair[0], endpoint)]


@lru_cache(maxsize=512)
def _endpoint(place: tuple[str, str, str], model_id: str) -> Endpoint:
    return resolve_endpoint(next(model for model in _candidates(*place) if model.id == model_id))


KINDS: dict[str, tuple[str, ...]] = {
    "tools": ("tool_", "max_tools", "strict_", "schema_", "server_tools", "root_", "other_enums", "typed_", "mistyped"),
    "media": ("image_", "file", "user_media", "result_media", "max_images", "refused_input", "cache_mark", "media_"),
    "options": ("temperature", "top_p", "seed", "stop", "refused_options", "thinking_", "user_id", "refused_with"),
    "turns": (
        "system",
        "alternat",
        "first_user",
        "last_",
        "call_",
        "reasoning_",
        "final_",
        "refused_text",
        "user_after",
    ),
    "raw": ("refused_extra", "body_fields", "json_word", "refused_roles", "refused_fields", "unique_items"),
}
"""Kinds of pairs -> beginnings of the names of rules that they show; they are tried first."""


def find_case(rule: Found) -> str | None:
    """Find a kind of pair whose one body the rule names, and whose other one it does not."""
    place = (rule.provider, rule.protocol, rule.pattern)
    effective = [model.id for model in _candidates(*place) if _without(_endpoint(place, model.id), rule) is not None]
    kinds = sorted(MAKERS, key=lambda kind: not rule.name.startswith(KINDS[kind]))
    for kind in kinds:
        for model_id in effective[:MOST]:
            endpoint = _endpoint(place, model_id)
            without = _without(endpoint, rule)
            assert without is not None
            for refused, taken in _refused_pairs(place, model_id, kind):
                if named_by(endpoint, without, refused) and not named_by(endpoint, without, taken):
                    return kind
    return None


MOST = 3
"""How many models are tried for a rule."""

WITHOUT: dict[str, frozenset[str]] = {
    "anthropic-messages": frozenset(
        [
            "added_fields",
            "cache_mark_key",
            "call_id_max",
            "document_bytes",
            "extra_like",
            "image_bytes",
            "image_edge",
            "image_sources",
            "large_images",
            "max_images",
            "max_tokens",
            "paired_calls",
            "reasoning_replay",
            "refused_extra=output_config.effort",
            "refused_extra=thinking.type",
            "refused_options=output_schema",
            "refused_options=seed",
            "refused_options=session_id",
            "result_media",
            "server_tools",
            "system_fields",
            "system_messages",
            "thinking_levels",
            "thinking_types",
            "user_media",
        ]
    ),
    "openai-chat": frozenset(
        [
            "added_fields",
            "cache_mark_key",
            "cache_mark_places",
            "cache_marks",
            "call_id_max",
            "call_id_min",
            "empty_result",
            "extra_like",
            "file_sources",
            "final_thinking",
            "functions_with_thinking",
            "max_images",
            "paired_calls",
            "reasoning_replay",
            "refused_extra=logit_bias",
            "refused_extra=logprobs",
            "refused_extra=max_tokens",
            "refused_extra=response_format.type=json_schema",
            "refused_extra=stop",
            "refused_extra=thinking.type=disabled",
            "refused_extra=top_logprobs",
            "refused_options=cache_retention",
            "refused_options=output_schema",
            "refused_options=parallel_tool_calls",
            "refused_options=seed",
            "refused_options=session_id",
            "refused_options=stop",
            "refused_options=temperature",
            "refused_options=top_p",
            "refused_options=user_id",
            "result_media",
            "root_keywords",
            "server_tools",
            "strict_keywords",
            "strict_open_objects",
            "system_messages",
            "thinking_level",
            "thinking_levels",
            "thinks_unasked",
            "tool_choices",
            "unstreamed",
            "url_schemes",
            "user_media",
        ]
    ),
    "openai-responses": frozenset(
        [
            "added_fields",
            "cache_mark_key",
            "cache_mark_places",
            "cache_marks",
            "document_bytes",
            "extra_like",
            "file_sources",
            "final_thinking",
            "image_sources",
            "last_assistant",
            "max_images",
            "paired_calls",
            "reasoning_replay",
            "refused_extra=text.format.type=json_schema",
            "refused_options=max_tokens",
            "refused_options=output_schema",
            "refused_options=seed",
            "refused_options=stop",
            "refused_options=temperature",
            "refused_options=thinking",
            "refused_options=top_p",
            "result_media",
            "root_keywords",
            "schema_root_object",
            "server_tools",
            "system_messages",
            "thinking_levels",
            "tool_namespaces",
            "unstreamed",
            "url_schemes",
            "user_media",
        ]
    ),
    "google-genai": frozenset(
        [
            "alternate",
            "extra_like",
            "first_user",
            "image_sources",
            "max_images",
            "min_thinking_budget",
            "mistyped_keywords",
            "mixed_results",
            "other_enums",
            "reasoning_replay",
            "refused_options=cache_retention",
            "refused_options=output_schema",
            "refused_options=parallel_tool_calls",
            "refused_options=session_id",
            "refused_options=user_id",
            "refused_text",
            "result_media",
            "schema_faults",
            "schema_formats",
            "schema_root_object",
            "server_tools",
            "system_messages",
            "thinking_levels",
            "unknown_required",
            "user_media",
        ]
    ),
    "bedrock-converse": frozenset(
        [
            "added_fields",
            "cache_mark_key",
            "cache_mark_places",
            "document_bytes",
            "empty_result",
            "file_sources",
            "image_bytes",
            "image_edge",
            "image_sources",
            "media_bytes",
            "reasoning_replay",
            "refused_options=cache_retention",
            "refused_options=output_schema",
            "refused_options=parallel_tool_calls",
            "refused_options=seed",
            "refused_options=session_id",
            "refused_options=thinking",
            "refused_options=user_id",
            "refused_text",
            "refused_with_thinking",
            "result_media",
            "server_tools",
            "stop",
            "system_messages",
            "system_prompt",
            "temperature",
            "thinking_levels",
            "thinking_types",
            "tool_choices",
            "user_media",
        ]
    ),
    "mistral-chat": frozenset(
        [
            "call_id_alphabet",
            "call_id_max",
            "call_id_min",
            "final_thinking",
            "first_user",
            "last_assistant",
            "max_images",
            "reasoning_replay",
            "refused_options=cache_retention",
            "refused_options=user_id",
            "refused_text",
            "result_media",
            "server_tools",
            "system_messages",
            "thinking_levels",
            "user_media",
        ]
    ),
    "ollama-chat": frozenset(
        [
            "file_sources",
            "image_sources",
            "paired_calls",
            "reasoning_replay",
            "refused_input",
            "refused_options=cache_retention",
            "refused_options=parallel_tool_calls",
            "refused_options=session_id",
            "refused_options=user_id",
            "result_media",
            "thinking_levels",
            "tool_choices",
            "user_media",
            "window_field",
        ]
    ),
    "vscode-lm": frozenset(
        [
            "file_sources",
            "image_sources",
            "last_assistant",
            "refused_options=cache_retention",
            "refused_options=max_tokens",
            "refused_options=output_schema",
            "refused_options=parallel_tool_calls",
            "refused_options=seed",
            "refused_options=session_id",
            "refused_options=stop",
            "refused_options=stream",
            "refused_options=temperature",
            "refused_options=thinking",
            "refused_options=top_p",
            "refused_options=user_id",
            "result_media",
            "system_messages",
            "system_prompt",
            "tool_choices",
            "user_media",
        ]
    ),
    "plain-text": frozenset(
        [
            "file_sources",
            "image_sources",
            "refused_options=cache_retention",
            "refused_options=max_tokens",
            "refused_options=output_schema",
            "refused_options=parallel_tool_calls",
            "refused_options=seed",
            "refused_options=session_id",
            "refused_options=stop",
            "refused_options=stream",
            "refused_options=temperature",
            "refused_options=thinking",
            "refused_options=tool_choice",
            "refused_options=top_p",
            "refused_options=user_id",
            "result_media",
            "tool_choices",
            "tools",
            "user_media",
        ]
    ),
    "cohere-chat": frozenset(
        [
            "extra_like",
            "file_sources",
            "max_tokens",
            "reasoning_replay",
            "refused_options=cache_retention",
            "refused_options=parallel_tool_calls",
            "refused_options=session_id",
            "refused_options=user_id",
            "refused_text",
            "result_media",
            "schema_root_object",
            "tool_choices",
            "user_media",
        ]
    ),
    "google-interactions": frozenset(
        [
            "extra_like",
            "file_sources",
            "first_user",
            "image_sources",
            "max_images",
            "reasoning_replay",
            "refused_options=cache_retention",
            "refused_options=parallel_tool_calls",
            "refused_options=session_id",
            "refused_options=user_id",
            "refused_text",
            "result_media",
            "schema_root_object",
            "server_tools",
            "system_messages",
            "thinking_levels",
            "user_media",
        ]
    ),
}
"""Protocols -> rules without a case of their own: another rule names the same bodies, the codec writes no such field,
the check of the protocol does not read the rule, or a body would have megabytes. A case takes a rule off the list;
nothing is added to it."""

RULES = list(all_rules())
STEP = 50
SHOWN = [
    rule for rule in RULES if (f"{rule.name}={rule.item}" if rule.item else rule.name) not in WITHOUT[rule.protocol]
]


@pytest.mark.parametrize("start", tiers([0], range(1, STEP)))
def test_a_rule_names_a_body_and_not_the_one_next_to_it(start: int) -> None:
    assert len(SHOWN) >= 420
    assert [str(rule) for rule in SHOWN[start::STEP] if find_case(rule) is None] == []


def test_a_rule_without_a_case_is_found() -> None:
    """A planted row: no pair has a tool name of this length."""
    rule = Found("a test", "tool_name_max", "", "openai-chat", "openai", "", 63)
    assert find_case(rule) is None
    assert find_case(rule._replace(value=64)) == "tools"


def test_the_list_of_rules_without_a_case_has_no_others() -> None:
    names = {(rule.protocol, f"{rule.name}={rule.item}" if rule.item else rule.name) for rule in RULES}
    assert {(protocol, name) for protocol, listed in WITHOUT.items() for name in listed} <= names
