"""Every rule of the grade *refused* has a case: a body that it names, and one next to it that it does not.

The rules are those of the protocols, providers and families of models, row by row; `kit.test_limits` has the cases of
limits. A row without a case fails here: add a pair to `rule_cases`, or say in `test_capabilities` why no body shows it.
A case is a body that `check` judges differently because of the rule, or a conversation that projection changes because
of it; where other rows hide a rule, it is compared with a model without them. `make test` draws every fiftieth rule,
`make proof` takes all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple, cast, get_args

import pytest
from msgspec.structs import replace

from property_testing import tiers
from protocols.rule_cases import MAKERS, Body, is_decided_by, named_by, pairs_for, pairs_of, projected
from protocols.test_capabilities import NOT_IN_A_BODY
from segue.models.catalogue import find_models, packaged_catalogue
from segue.models.model import Modality, Model
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


NEEDED: dict[str, dict[str, Any]] = {
    "cache_mark_key": {"cache_marks": 4},
    "extra_like": {"refused_options": ["temperature", "output_schema"]},
    "added_fields": {"body_fields": "closed"},
}
"""Rules that say something about another one, which is set next to them."""


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
    sizes: dict[str, Any] = {"max_tokens": 64_000, "context_window": 200_000}
    plain = [Model(one, provider, protocol, reasoning=True, input=get_args(Modality), **sizes) for one in named]
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


@lru_cache(maxsize=64)
def _pairs(place: tuple[str, str, str], model_id: str, kind: str) -> list[Any]:
    return list(pairs_of(_endpoint(place, model_id), kind))


@lru_cache(maxsize=512)
def _refused_pairs(place: tuple[str, str, str], model_id: str, kind: str) -> list[Any]:
    """Return the pairs in whose first body an endpoint finds something: only these can show a rule."""
    endpoint = _endpoint(place, model_id)
    return [pair for pair in _pairs(place, model_id, kind) if all(pair) and check_for(pair[0], endpoint)]


@lru_cache(maxsize=64)
def _projected_pairs(place: tuple[str, str, str], model_id: str, kind: str) -> list[Any]:
    """Return the pairs of conversations, with what projection makes of them."""
    endpoint = _endpoint(place, model_id)
    pairs = [pair for pair in _pairs(place, model_id, kind) if isinstance(pair[0], Body) and isinstance(pair[1], Body)]
    return [(*pair, *(projected(endpoint, one) for one in pair)) for pair in pairs if pair[0].prompt != pair[1].prompt]


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


def _alone(endpoint: Endpoint, rule: Found) -> tuple[Endpoint, Endpoint]:
    """Return an endpoint that has no other rule, and one that has none."""
    bare = override(DEFAULTS, NEEDED.get(rule.name, {}), where="a test")
    empty = replace(endpoint, rules=bare)
    if rule.name in PLACES:
        return replace(endpoint, rules=replace(bare, rows={**bare.rows, rule.name: rule.value})), empty
    value = frozenset([rule.item]) if rule.item else rule.value
    return replace(endpoint, rules=replace(bare, **{rule.name: value})), empty


def find_case(rule: Found) -> str | None:
    """Find a kind of pair of which a rule names, or changes, the one and not the other.

    A body is named by `check`; a conversation is changed by projection. Where another rule names the same bodies, the
    rule is taken alone.
    """
    place = (rule.provider, rule.protocol, rule.pattern)
    effective = [model.id for model in _candidates(*place) if _without(_endpoint(place, model.id), rule) is not None]
    tried = effective or [model.id for model in _candidates(*place)]
    if any(_is_shown(rule, place, model_id) for model_id in tried[:: max(1, len(tried) // MOST)]):
        return "aimed"
    kinds = sorted(MAKERS, key=lambda kind: not rule.name.startswith(KINDS[kind]))
    own = [kind for kind in kinds if rule.name.startswith(KINDS[kind])]
    for shows, among, most in ((_names, kinds, 3), (_changes, own or kinds, 2), (_names_alone, own or kinds, 1)):
        for kind in among:
            if any(shows(rule, place, model_id, kind) for model_id in effective[:most]):
                return kind
    return None


def _is_shown(rule: Found, place: tuple[str, str, str], model_id: str) -> bool:
    """Whether a pair that is made from the place of a rule shows it, at an endpoint or where no other rule holds."""
    endpoint = _endpoint(place, model_id)
    without = _without(endpoint, rule)
    compared = [_alone(endpoint, rule), *([] if without is None else [(endpoint, without)])]
    compared += [(endpoint, _with_value(endpoint, rule.name, other)) for other in _other_values(rule)]
    for refused, taken in pairs_for(endpoint, rule.name, rule.item, rule.value):
        for one, other in compared:
            if refused and taken and is_decided_by(one, other, refused) and not is_decided_by(one, other, taken):
                return True
            if projected(one, refused) != projected(other, refused) and projected(one, taken) == projected(
                other, taken
            ):
                return True
    return False


def _other_values(rule: Found) -> list[Any]:
    """Return the values that other rows of the protocol have for the same rule: a row may take back another one."""
    rows = [row.value for row in RULES if (row.protocol, row.name) == (rule.protocol, rule.name) and not rule.item]
    return [value for at, value in enumerate(rows) if value != rule.value and value not in rows[:at]][:OTHERS]


def _with_value(endpoint: Endpoint, name: str, value: Any) -> Endpoint:
    if name in PLACES:
        return replace(endpoint, rules=replace(endpoint.rules, rows={**endpoint.rules.rows, name: value}))
    return replace(endpoint, rules=replace(endpoint.rules, **{name: value}))


def _names(rule: Found, place: tuple[str, str, str], model_id: str, kind: str) -> bool:
    endpoint = _endpoint(place, model_id)
    without = cast("Endpoint", _without(endpoint, rule))
    return any(
        named_by(endpoint, without, refused) and not named_by(endpoint, without, taken)
        for refused, taken in _refused_pairs(place, model_id, kind)
    )


def _changes(rule: Found, place: tuple[str, str, str], model_id: str, kind: str) -> bool:
    without = cast("Endpoint", _without(_endpoint(place, model_id), rule))
    return any(
        projected(without, refused) != made and projected(without, taken) == kept
        for refused, taken, made, kept in _projected_pairs(place, model_id, kind)
    )


def _names_alone(rule: Found, place: tuple[str, str, str], model_id: str, kind: str) -> bool:
    alone, empty = _alone(_endpoint(place, model_id), rule)
    return any(
        is_decided_by(alone, empty, refused) and not is_decided_by(alone, empty, taken)
        for refused, taken in _pairs(place, model_id, kind)
        if refused and taken
    )


MOST = 5
"""How many models are tried with the pairs of one rule."""
OTHERS = 4
"""How many values of other rows a rule is compared with."""

WITHOUT: dict[str, str] = {
    "protocol anthropic-messages: cache_mark_key": "a name: `cache_marks` counts them",
    "protocol bedrock-converse: cache_mark_key": "a name: `cache_marks` counts them",
    "protocol openai-responses: tool_namespaces": "allows a group of functions, which other protocols cannot write",
    "protocol ollama-chat: window_field": "a name: what is written there depends on the length of the prompt",
    "protocol ollama-chat: paired_calls": "its check pairs nothing: the rule says so to readers",
    "provider ollama openai-chat: paired_calls": "recorded replies speak against the findings that it takes back",
    "provider anthropic openai-chat: strict_open_objects": "the schemas of strict functions are refused by other rows",
}
"""Rules without a case of their own, each with the reason. A case takes a rule off the list; nothing is added to it."""

RULES = list(all_rules())
STEP = 50
SHOWN = [rule for rule in RULES if str(rule) not in WITHOUT]


@pytest.mark.parametrize("start", tiers([0], range(1, STEP)))
def test_a_rule_names_a_body_and_not_the_one_next_to_it(start: int) -> None:
    assert len(SHOWN) >= len(RULES) - 7
    assert [str(rule) for rule in SHOWN[start::STEP] if find_case(rule) is None] == []


def test_a_rule_without_a_case_is_found() -> None:
    """A planted row: no pair has a tool name of this length."""
    rule = Found("a test", "tool_name_max", "", "openai-chat", "openai", "", 63)
    assert find_case(rule) is None
    assert find_case(rule._replace(value=64)) == "tools"


def test_the_list_of_rules_without_a_case_has_no_others() -> None:
    assert WITHOUT.keys() <= {str(rule) for rule in RULES}
