"""How the catalogue is generated: the entries of two sources, merged into one.

The samples are written for these tests; no network is asked.
"""

from __future__ import annotations

import importlib
import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from segue.models.catalogue import Catalogue
from segue.models.dialect import Dialect
from segue.models.model import Model, Price, PriceTier
from segue.models.rules import Rules

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    sys.path.insert(0, str(SCRIPTS))
    try:
        yield importlib.import_module("update_catalogue")
    finally:
        sys.path.remove(str(SCRIPTS))


def pi(**fields: object) -> dict[str, object]:
    """One model as pi stores it."""
    default: dict[str, object] = {
        "id": "m-1",
        "name": "M 1",
        "api": "openai-completions",
        "provider": "acme",
        "baseUrl": "https://acme.example/v1",
        "reasoning": False,
        "input": ["text"],
        "cost": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0},
        "contextWindow": 1000,
        "maxTokens": 100,
        "type": "chat",
    }
    return default | fields


def claude(**fields: object) -> dict[str, object]:
    default: dict[str, object] = {
        "id": "claude-x-1",
        "api": "anthropic-messages",
        "provider": "anthropic",
        "cost": {"input": 5, "output": 25, "cacheRead": 0.5, "cacheWrite": 6.25},
    }
    return pi(**(default | fields))


def build(script: ModuleType, model: dict[str, object], rows: dict[str, object] | None = None) -> Model:
    return script.build_model(msgspec.convert(model, script.PiModel), rows or {})


def test_fields_of_pi_are_copied(script):
    given = pi(
        reasoning=True,
        input=["text", "image"],
        cost={
            "input": 1,
            "output": 2,
            "cacheRead": 0.1,
            "cacheWrite": 1.25,
            "tiers": [{"inputTokensAbove": 500, "input": 2, "output": 3, "cacheRead": 0.2, "cacheWrite": 2.5}],
        },
        thinkingLevelMap={"off": None, "max": "ultra"},
        inputLimits={"images": {"maxPerRequest": 7, "resize": {}}, "maxRequestBytes": 9},
    )
    assert build(script, given) == Model(
        "m-1",
        "acme",
        "openai-chat",
        name="M 1",
        base_url="https://acme.example/v1",
        reasoning=True,
        input=("text", "image"),
        context_window=1000,
        max_tokens=100,
        cost=Price(
            input=1,
            output=2,
            cache_read=0.1,
            cache_write=1.25,
            tiers=(PriceTier(input_above=500, input=2, output=3, cache_read=0.2, cache_write=2.5),),
        ),
        thinking_levels={"off": None, "max": "ultra"},
        rules={"max_images": 7},
    )


FLAGS = {
    "supportsStore": (False, {}, {"store": False}),
    "supportsDeveloperRole": (False, {}, {"developer_role": False}),
    "supportsReasoningEffort": (True, {}, {"effort": True}),
    "supportsFinishReason": (False, {}, {"finish_reason": False}),
    "supportsUsageInStreaming": (True, {}, {"usage_in_stream": True}),
    "supportsStrictMode": (True, {}, {"strict_tools": True}),
    "maxTokensField": ("max_tokens", {}, {"max_tokens_field": "max_tokens"}),
    "requiresToolResultName": (True, {}, {"result_name": True}),
    "requiresAssistantAfterToolResult": (True, {"user_after_result": False}, {}),
    "requiresThinkingAsText": (True, {"reasoning_replay": "none"}, {}),
    "requiresReasoningContentOnAssistantMessages": (True, {"reasoning_replay": "required"}, {}),
    "supportsMidConvoSystemMessages": (True, {"system_messages": "anywhere"}, {}),
    "supportsTemperature": (False, {"refused_options": ["temperature", "top_p"]}, {}),
    "supportsLongCacheRetention": (False, {}, {"cache_long": "none"}),
    "supportsExplicitPromptCacheMode": (True, {}, {"cache_long": "30m"}),
    "cacheControlFormat": ("anthropic", {"cache_marks": 4}, {"cache_format": "anthropic"}),
    "sendSessionAffinityHeaders": (True, {}, {"session_header": "openai"}),
    "thinkingFormat": ("string-thinking", {}, {"thinking_format": "word"}),
    "thinkingTokenBudgetField": ("thinking_budget", {}, {"thinking_budget_field": "thinking_budget"}),
    "zaiToolStream": (True, {}, {"tool_stream": True}),
    "supportsMaxOutputTokens": (False, {}, {"max_tokens_field": "none"}),
    "supportsMidConvoEffort": (True, {}, {}),
    "vllmPriority": (3, {}, {}),
}


@pytest.mark.parametrize(("flag", "meaning"), FLAGS.items(), ids=FLAGS.keys())
def test_a_flag_of_pi_becomes_a_rule_or_a_dialect(script, flag, meaning):
    value, rules, dialect = meaning
    model = build(script, pi(compat={flag: value}))
    assert (model.rules, model.dialect) == (rules, dialect)


ON_CLAUDES_WIRE = {
    "adaptive thinking": (
        {"forceAdaptiveThinking": True},
        {"thinking_before_calls": False},
        {"thinking_format": "adaptive"},
    ),
    "system text has one place": (
        {"supportsMidConvoSystemMessages": True},
        {"system_messages": "before_assistant"},
        {},
    ),
    "or none": ({"supportsMidConvoSystemMessages": False}, {"system_messages": "none"}, {}),
    "a session without its id": ({"sendSessionAffinityHeaders": True}, {}, {"session_header": "openai-nosession"}),
    "an empty signature allows no thinking of others for Claude": ({"allowEmptySignature": True}, {}, {}),
}


@pytest.mark.parametrize(("compat", "rules", "dialect"), ON_CLAUDES_WIRE.values(), ids=ON_CLAUDES_WIRE.keys())
def test_a_flag_may_mean_something_else_on_another_wire(script, compat, rules, dialect):
    model = build(script, claude(compat=compat))
    assert (model.rules, model.dialect) == (rules, dialect)


def test_an_empty_signature_allows_thinking_of_others(script):
    model = build(script, claude(id="kimi", provider="acme", compat={"allowEmptySignature": True}))
    assert (model.rules, model.dialect) == ({"reasoning_replay": "open"}, {"empty_signature": True})


def test_an_unknown_flag_stops_the_script(script):
    with pytest.raises(script.UnknownData, match=r"acme/m-1.*supportsMagic"):
        build(script, pi(compat={"supportsMagic": True}))


def test_an_unknown_value_stops_the_script(script):
    with pytest.raises(script.UnknownData, match="telepathy"):
        build(script, pi(compat={"thinkingFormat": "telepathy"}))


def test_an_unknown_field_stops_the_script(script):
    with pytest.raises(msgspec.ValidationError, match="magic"):
        build(script, pi(magic=1))


def test_every_flag_in_the_tables_names_fields_that_exist(script):
    tables = importlib.import_module("catalogue_tables")
    overrides = [meaning for _, meaning in tables.MEANINGS.values()] + [flag.overrides for flag in tables.ROW_FLAGS]
    for override in overrides:
        msgspec.convert(override.rules, Rules)
        msgspec.convert(override.dialect, Dialect)
    assert set(tables.PASSED_ON.values()) <= set(Dialect.__struct_fields__)
    assert not set(tables.LEFT_OUT) & {*tables.PASSED_ON, *tables.MEANINGS, *tables.DEPENDING}


ROWS = {
    "documents, sound and film": (
        {"supports_pdf_input": True, "supports_audio_input": True, "supported_modalities": ["text", "video"]},
        {"input": ("text", "document", "audio", "video")},
    ),
    "what it does not claim is not there": ({"supports_pdf_input": False}, {"input": ("text",)}),
    "its retirement": ({"deprecation_date": "2027-01-31"}, {"deprecated": "2027-01-31"}),
    "a window that is divided": ({"max_input_tokens": 900, "max_output_tokens": 100}, {"max_input": 900}),
    "an old limit is no limit": ({"max_input_tokens": 800, "max_output_tokens": 100}, {"max_input": 0}),
    "sampling settings refused": (
        {"supports_sampling_params": False},
        {"rules": {"refused_options": ["temperature", "top_p"]}},
    ),
    "two refusals add up": (
        {"supports_sampling_params": False, "supports_response_schema": False},
        {"rules": {"refused_options": ["output_schema", "temperature", "top_p"]}},
    ),
    "no prefilled answer": ({"supports_assistant_prefill": False}, {"rules": {"last_assistant": False}}),
    "no source allows it": ({"supports_assistant_prefill": True}, {"rules": {}}),
    "no forced tools": ({"supports_forced_tool_use": False}, {"rules": {"tool_choices": ["auto", "none"]}}),
    "system text in between": (
        {"supports_mid_conversation_system": True},
        {"rules": {"system_messages": "before_assistant"}},
    ),
    "thinking that cannot be off": ({"thinking_always_on": True}, {"thinking_levels": {"off": None}}),
    "a long write at its own rate": (
        {"input_cost_per_token": 5e-06, "cache_creation_input_token_cost_above_1hr": 9e-06},
        {"long": 9},
    ),
    "a rate that belongs to another price is not taken": (
        {"input_cost_per_token": 4e-06, "cache_creation_input_token_cost_above_1hr": 9e-06},
        {"long": 10},
    ),
}


@pytest.mark.parametrize(("row", "fields"), ROWS.values(), ids=ROWS.keys())
def test_fields_of_litellm_are_added(script, row, fields):
    model = build(script, claude(), {"claude-x-1": row})
    for field, value in fields.items():
        assert (model.cost.cache_write_long if field == "long" else getattr(model, field)) == value


def test_if_the_sources_disagree_the_refusal_wins(script):
    model = build(
        script,
        pi(id="us.a.b", api="bedrock-converse-stream", provider="amazon-bedrock", compat={"supportsStrictMode": True}),
        {"us.a.b": {"bedrock_converse_supports_strict_tools": False}},
    )
    assert model.dialect == {"strict_tools": False}


FOUND = {
    "the provider's own prefix": (pi(provider="groq", id="x/y"), "groq/x/y"),
    "no prefix": (claude(), "claude-x-1"),
    "Bedrock in another region": (
        pi(provider="amazon-bedrock", api="bedrock-converse-stream", id="in.acme.m-1"),
        "us.acme.m-1",
    ),
    "Bedrock without a region": (
        pi(provider="amazon-bedrock", api="bedrock-converse-stream", id="us-gov.acme.m-1"),
        "acme.m-1",
    ),
}


@pytest.mark.parametrize(("model", "key"), FOUND.values(), ids=FOUND.keys())
def test_the_row_of_a_model_is_found(script, model, key):
    assert build(script, model, {key: {"deprecation_date": "2030-01-01"}}).deprecated == "2030-01-01"


RELAYED = {
    "OpenRouter's dots and prefix": (pi(provider="openrouter", id="anthropic/claude-x-1.2"), "claude-x-1-2"),
    "a variant": (pi(provider="openrouter", id="openai/gpt-9:batch"), "gpt-9"),
    "another relay's variant": (pi(provider="vercel-ai-gateway", id="google/gemini-9-batch"), "gemini/gemini-9"),
    "the same id": (pi(provider="opencode", id="grok-9"), "xai/grok-9"),
}


@pytest.mark.parametrize(("model", "key"), RELAYED.values(), ids=RELAYED.keys())
def test_for_a_third_party_the_first_party_row_describes_the_model_but_not_the_service(script, model, key):
    row = {"supports_pdf_input": True, "supports_sampling_params": False, "deprecation_date": "2030-01-01"}
    built = build(script, model, {key: row})
    assert "document" in built.input
    assert built.rules["refused_options"] == ["temperature", "top_p"]
    assert built.deprecated is None


def test_a_provider_of_open_weights_is_not_a_third_party(script):
    assert build(script, pi(provider="acme", id="openai/gpt-9"), {"gpt-9": {"supports_pdf_input": True}}).input == (
        "text",
    )


ROUTERS = {
    "OpenRouter's own": (pi(provider="openrouter", id="openrouter/anything"), True),
    "its short name": (pi(provider="openrouter", id="auto"), True),
    "called so": (pi(provider="acme", name="Acme: Best Router (Beta)"), True),
    "an alias of the newest version": (pi(provider="openrouter", id="~acme/m-latest", name="M Latest"), False),
    "deployments of one model": (
        pi(provider="fireworks", id="accounts/fireworks/routers/m-fast", name="M Fast"),
        False,
    ),
    "the provider's name is no sign": (pi(provider="openrouter", name="OpenRouter: M"), False),
}


@pytest.mark.parametrize(("model", "router"), ROUTERS.values(), ids=ROUTERS.keys())
def test_a_router_has_many_writers_at_one_time(script, model, router):
    assert build(script, model).router is router


def test_the_sources_are_read_and_what_is_written_loads_again(script, tmp_path):
    data = tmp_path / "dist" / "providers" / "data"
    data.mkdir(parents=True)
    (tmp_path / "package.json").write_text('{"version": "9.8.7"}', encoding="utf-8")
    (data / ".manifest.json").write_text('{"schemaVersion": 1}', encoding="utf-8")
    entries = {
        "openai-completions": {"chat:m-2": pi(id="m-2"), "chat:m-1": pi(), "image:i": {"id": "i"}},
        "pi-messages": {"chat:m-3": {"any": "shape"}, "classifier:c": {}},
    }
    (data / "acme.json").write_text(json.dumps(entries), encoding="utf-8")
    wheel = tmp_path / "litellm-1.2.3-py3-none-any.whl"
    table = {"groq/a": {"mode": "chat"}, "b": {"mode": "embedding"}, "c": {"mode": "responses"}, "sample_spec": {}}
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(script.LITELLM_TABLE, json.dumps(table))

    version, models, unspoken = script.read_pi(tmp_path)
    litellm_version, rows = script.read_litellm(wheel)
    assert (version, unspoken, litellm_version, set(rows)) == ("9.8.7", {"pi-messages": 1}, "1.2.3", {"groq/a", "c"})

    built = script.build_models(models, rows)
    text = script.render([{"name": "acme", "version": version, "read": "2026-11-15"}], built)
    loaded = Catalogue.load(text)
    assert loaded.models == tuple(built)
    assert [model.id for model in loaded.models] == ["m-1", "m-2"]
    assert text.count("\n{") == 2


def test_what_a_provider_reads_for_all_models_that_see_is_added(script):
    assert build(script, pi(provider="mistral", input=("text", "image")), {}).input == ("text", "image", "document")
    assert build(script, pi(provider="mistral", input=("text",)), {}).input == ("text",)
    assert build(script, pi(provider="acme", input=("text", "image")), {}).input == ("text", "image")


# -- one source is missing or has changed ------------------------------------------------------------------------------


@pytest.fixture
def sources(script, tmp_path: Path) -> dict[str, Path]:
    """A local copy of both sources, and the catalogue that was made from them on 2026-01-01."""
    package = tmp_path / "package"
    data = package / "dist" / "providers" / "data"
    data.mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"version": "1.0.0"}))
    (data / "acme.json").write_text(json.dumps({"openai-completions": {"chat:m-1": pi(provider="mistral")}}))
    wheel = tmp_path / "litellm-2.0.0-py3-none-any.whl"
    write_wheel(script, wheel, {"mistral/m-1": ROW})
    existing = tmp_path / "catalogue.json"
    paths = {"pi": package, "litellm": wheel, "existing": existing, "output": existing}
    assert update(script, paths, date="2026-01-01") == 0
    return paths


ROW = {"mode": "chat", "deprecation_date": "2027-01-01", "supports_pdf_input": True, "supports_response_schema": False}


def write_wheel(script: ModuleType, wheel: Path, rows: dict[str, object]) -> None:
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(script.LITELLM_TABLE, json.dumps(rows))


def update(script: ModuleType, paths: dict[str, Path], *, date: str) -> int:
    arguments = [text for name, path in paths.items() for text in (f"--{name}", str(path))]
    return script.main([*arguments, "--date", date])


def dates(catalogue: Catalogue) -> dict[str, str]:
    return {source.name: source.read for source in catalogue.sources}


BROKEN_PI = {
    "absent": lambda package: (package / "package.json").unlink(),
    "without models": lambda package: (package / "dist/providers/data/acme.json").unlink(),
    "with another format": lambda package: (package / "dist/providers/data/acme.json").write_text('{"models": []}'),
    "with an unknown field": lambda package: (package / "dist/providers/data/acme.json").write_text(
        json.dumps({"openai-completions": {"chat:m-1": pi(novel=1)}})
    ),
    "with an unknown flag": lambda package: (package / "dist/providers/data/acme.json").write_text(
        json.dumps({"openai-completions": {"chat:m-1": pi(compat={"novel": True})}})
    ),
}


@pytest.mark.parametrize("damage", BROKEN_PI.values(), ids=BROKEN_PI.keys())
def test_without_pi_the_existing_models_are_updated_from_litellm(script, sources, damage, capsys):
    damage(sources["pi"])
    write_wheel(script, sources["litellm"], {"mistral/m-1": {**ROW, "deprecation_date": "2026-09-09"}})
    assert update(script, sources, date="2026-06-01") == 0
    printed = capsys.readouterr().out
    assert script.PI_PACKAGE in printed
    assert "the missing data comes from" in printed
    catalogue = Catalogue.read(sources["output"])
    [model] = catalogue.models
    assert (model.full_name(), model.deprecated) == ("mistral/m-1", "2026-09-09")
    assert dates(catalogue) == {script.PI_PACKAGE: "2026-01-01", "litellm": "2026-06-01"}
    assert catalogue.date == "2026-01-01"


BROKEN_LITELLM = {
    "absent": lambda wheel: wheel.unlink(),
    "not a wheel": lambda wheel: wheel.write_bytes(b"<html>"),
    "without its table": lambda wheel: zipfile.ZipFile(wheel, "w").close(),
}


@pytest.mark.parametrize("damage", BROKEN_LITELLM.values(), ids=BROKEN_LITELLM.keys())
def test_without_litellm_its_data_is_kept_from_the_existing_catalogue(script, sources, damage, capsys):
    [before] = Catalogue.read(sources["output"]).models
    damage(sources["litellm"])
    entries = {"chat:m-1": pi(provider="mistral", contextWindow=9), "chat:m-2": pi(provider="mistral", id="m-2")}
    (sources["pi"] / "dist/providers/data/acme.json").write_text(json.dumps({"openai-completions": entries}))
    assert update(script, sources, date="2026-06-01") == 0
    assert "litellm: " in capsys.readouterr().out
    catalogue = Catalogue.read(sources["output"])
    first, second = catalogue.models
    assert first.context_window == 9
    assert (first.deprecated, first.input, first.rules) == (before.deprecated, before.input, before.rules)
    assert (before.deprecated, before.input) == ("2027-01-01", ("text", "document"))
    assert before.rules == {"refused_options": ["output_schema"]}
    assert (second.id, second.deprecated) == ("m-2", None)
    assert dates(catalogue) == {script.PI_PACKAGE: "2026-06-01", "litellm": "2026-01-01"}


def test_without_both_sources_the_catalogue_is_unchanged(script, sources, capsys):
    before = sources["output"].read_bytes()
    (sources["pi"] / "package.json").unlink()
    sources["litellm"].unlink()
    assert update(script, sources, date="2026-06-01") == 1
    assert "is unchanged" in capsys.readouterr().out
    assert sources["output"].read_bytes() == before


def test_an_update_from_unchanged_sources_changes_only_the_date(script, sources):
    before = Catalogue.read(sources["output"])
    assert update(script, sources, date="2026-06-01") == 0
    after = Catalogue.read(sources["output"])
    assert after.models == before.models
    assert after.date == "2026-06-01"


def test_a_listed_shutdown_replaces_that_of_a_source(script: ModuleType) -> None:
    model = Model("gpt-5", "openai", "openai-responses", deprecated="2030-01-01")
    assert script.correct_date(model).deprecated == "2026-12-11"
    assert script.correct_date(msgspec.structs.replace(model, provider="azure")).deprecated == "2030-01-01"
