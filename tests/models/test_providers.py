"""The rows of providers: complete, dated, and with valid overrides."""

from __future__ import annotations

import re
from datetime import date

import pytest

from segue.client.local.servers import find_keyed_models
from segue.models.catalogue import installed_catalogue, packaged_catalogue
from segue.models.model import Model
from segue.models.providers import DEFAULT_MODELS, PROVIDERS, Provider, find_row
from segue.models.rule import PLACES
from segue.protocols.registry import PROTOCOLS, resolve_dialect, resolve_rules

ROWS = list(PROVIDERS.values())
BY_NAME = pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])

NAMED_BY_USERS = [
    "openai",
    "azure",
    "deepseek",
    "moonshotai",
    "kimi-coding",
    "zai",
    "minimax",
    "alibaba",
    "xai",
    "groq",
    "cerebras",
    "together",
    "fireworks",
    "openrouter",
    "huggingface",
    "nvidia",
    "perplexity",
    "snowflake",
    "vllm",
    "llama.cpp",
    "lmstudio",
    "litellm",
    "ollama",
    "cohere",
    "vscode",
    "google-vertex",
]


def test_every_provider_of_the_catalogue_has_a_row():
    assert {model.provider for model in packaged_catalogue().models} - PROVIDERS.keys() == set()


@pytest.mark.parametrize("name", NAMED_BY_USERS)
def test_providers_that_users_mention_have_a_row(name: str):
    assert name in PROVIDERS


def test_every_protocol_has_a_provider_that_uses_it():
    for protocol in PROTOCOLS.values():
        row = PROVIDERS.get(protocol.provider)
        if row is None:
            continue  # whoever uses the protocol names the address
        assert protocol.name == row.protocol or protocol.name in {*row.rules, *row.dialect} or row.name == "openai"


@BY_NAME
def test_a_row_names_its_source_and_the_day_it_was_read(row: Provider):
    assert row.source.strip()
    assert date.fromisoformat(row.read) >= date(2026, 11, 1)


@BY_NAME
def test_a_row_names_and_overrides_registered_protocols(row: Provider):
    assert {row.protocol, *row.rules, *row.dialect} <= PROTOCOLS.keys()


@BY_NAME
def test_a_rows_overrides_are_fields_with_values_they_can_have(row: Provider):
    for protocol in {row.protocol, *row.rules, *row.dialect}:
        model = Model("some-model", row.name, protocol)
        rules, dialect = resolve_rules(model), resolve_dialect(model)
        for field, value in row.dialect.get(protocol, {}).items():
            assert getattr(dialect, field) == value
        for field, value in row.rules.get(protocol, {}).items():
            if field == "refused_extra":  # families add to it
                assert getattr(rules, field) >= value
            elif field in PLACES:
                assert rules.rows.get(field) == value
            elif field != "refused_options":
                assert getattr(rules, field) == value


@BY_NAME
def test_a_row_has_an_address_and_the_variables_of_its_key(row: Provider):
    assert row.base_url is None or re.fullmatch(r"https?://[\w.{}:-]+(/[\w.{}-]+)*", row.base_url), row.base_url
    assert all(re.fullmatch(r"[A-Z][A-Z0-9_]+", name) for name in row.key_variables)
    assert all(re.fullmatch(r"[A-Z][A-Z0-9_]+", name) for name in re.findall(r"\{(.*?)\}", row.base_url or ""))


@BY_NAME
def test_an_option_that_is_not_refused_has_a_way_onto_the_wire(row: Provider):
    for protocol in {row.protocol, *row.rules, *row.dialect}:
        model = Model("some-model", row.name, protocol)
        rules, dialect = resolve_rules(model), resolve_dialect(model)
        tells_session = dialect.cache_format == "openai-key" or dialect.session_header != "none"
        assert tells_session or "session_id" in rules.refused_options
        assert dialect.cache_format != "none" or "cache_retention" in rules.refused_options
        assert dialect.max_tokens_field != "none" or protocol == "ollama-chat" or "max_tokens" in rules.refused_options


FOUND = {
    "a known name": ("deepseek", None, "deepseek"),
    "a known name, whatever its address": ("deepseek", "http://localhost:8080", "deepseek"),
    "a name of one's own at a known address": ("work", "https://api.deepseek.com/beta", "deepseek"),
    "another name on a local server": ("mine", "http://localhost:8000/v1", None),
    "a name of one's own at an address of one's own": ("mine", "https://llm.example.org/v1", None),
    "an address that is none": ("mine", "http://[oops", None),
    "nothing known": ("mine", None, None),
}


@pytest.mark.parametrize(("name", "base_url", "expected"), FOUND.values(), ids=FOUND.keys())
def test_a_row_is_found_by_name_and_else_by_address(name: str, base_url: str | None, expected: str | None):
    row = find_row(name, base_url)
    assert (row.name if row else None) == expected


def test_a_provider_under_another_name_keeps_its_rules():
    model = Model("deepseek-v4-flash", "work", "openai-chat", base_url="https://api.deepseek.com")
    assert resolve_rules(model).reasoning_replay == "required"
    assert resolve_dialect(model).thinking_format == "deepseek"


CATALOGUED: dict[str, list[Model]] = {}
for each in installed_catalogue().models:
    CATALOGUED.setdefault(each.provider, []).append(each)
KEYED = [row.name for row in PROVIDERS.values() if row.key_variables and CATALOGUED.get(row.name)]


@pytest.mark.parametrize("name", KEYED)
def test_a_provider_with_a_key_has_a_current_default_model_that_calls_tools(name):
    model = next(model for model in CATALOGUED[name] if model.id == DEFAULT_MODELS[name])
    assert not model.deprecated
    assert resolve_rules(model).tools or name == "perplexity"  # none of its models calls tools
    dearest = max(each.cost.output for each in CATALOGUED[name])
    assert model.cost.output <= 15
    assert model.cost.output < dearest or dearest <= 15


def test_a_key_alone_chooses_the_default_model(monkeypatch):
    for row in PROVIDERS.values():
        for variable in row.key_variables:
            monkeypatch.delenv(variable, raising=False)
    for variable in ("OPENAI_API_KEY", "GEMINI_API_KEY", "MISTRAL_API_KEY", "COHERE_API_KEY"):
        monkeypatch.setenv(variable, "x")
    names = [model.full_name() for model in find_keyed_models(installed_catalogue())]
    assert names == [f"{name}/{DEFAULT_MODELS[name]}" for name in ("openai", "google", "mistral", "cohere")]
