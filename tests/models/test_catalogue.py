"""The catalogue: what is in it, and how a model is found."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import date

import msgspec
import pytest

from protocols import traffic
from segue.errors import ModelError, UnknownModel
from segue.models.built_in import BUILT_IN, ECHO
from segue.models.catalogue import Catalogue, CatalogueSource, find_models, find_provider, get_model, packaged_catalogue
from segue.models.dialect import Dialect
from segue.models.model import Model, Price
from segue.models.provider import Provider
from segue.models.rules import Rules
from segue.models.thinking import THINKING_LEVELS
from segue.models.third_party import THIRD_PARTY

PACKAGED = packaged_catalogue()

PROTOCOLS = {
    "cohere-chat",
    "anthropic-messages",
    "bedrock-converse",
    "google-genai",
    "mistral-chat",
    "openai-chat",
    "openai-responses",
}


# -- the data ---------------------------------------------------------------------------------------------------------


def test_it_knows_many_models_of_many_providers():
    assert len(PACKAGED.models) > 1500
    assert len({model.provider for model in PACKAGED.models}) >= 40
    assert {model.protocol for model in PACKAGED.models} == PROTOCOLS


def test_it_names_its_sources():
    assert [source.name for source in PACKAGED.sources] == ["@earendil-works/pi-ai", "litellm"]
    for source in PACKAGED.sources:
        assert re.fullmatch(r"\d+\.\d+\.\d+", source.version)
        assert date.fromisoformat(source.read)


def test_full_names_are_unique_whatever_their_case():
    names = [model.full_name().lower() for model in PACKAGED.models]
    assert len(names) == len(set(names))


def test_models_stand_in_the_order_of_provider_and_id():
    assert list(PACKAGED.models) == sorted(PACKAGED.models, key=lambda model: (model.provider, model.id))


def test_every_override_is_a_field_with_a_value_it_can_have():
    for model in PACKAGED.models:
        msgspec.convert(model.rules, Rules)
        msgspec.convert(model.dialect, Dialect)


def test_a_misspelt_override_would_have_been_seen():
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"alternat": True}, Rules)


def test_no_price_is_negative_and_tiers_have_thresholds():
    for model in PACKAGED.models:
        cost = model.cost
        rates = [cost.input, cost.output, cost.cache_read, cost.cache_write, cost.cache_write_long or 0]
        rates += [rate for tier in cost.tiers for rate in (tier.input, tier.output, tier.cache_read, tier.cache_write)]
        assert min(rates) >= 0, model.full_name()
        assert all(tier.input_above > 0 for tier in cost.tiers), model.full_name()


def test_limits_are_counts_and_the_input_is_no_longer_than_the_window():
    for model in PACKAGED.models:
        assert model.context_window > 0, model.full_name()
        assert model.max_tokens > 0, model.full_name()
        assert 0 <= model.max_input <= model.context_window, model.full_name()


def test_every_model_reads_text_and_nothing_twice():
    for model in PACKAGED.models:
        assert model.input[0] == "text", model.full_name()
        assert len(set(model.input)) == len(model.input), model.full_name()


def test_thinking_levels_are_levels_and_retirements_are_days():
    for model in PACKAGED.models:
        assert set(model.thinking_levels) <= set(THINKING_LEVELS), model.full_name()
        assert model.deprecated is None or date.fromisoformat(model.deprecated), model.full_name()


def test_routers_are_few_and_none_is_an_alias_of_one_model():
    routers = {model.full_name() for model in PACKAGED.find(router=True)}
    assert {"openrouter/auto", "openrouter/openrouter/auto"} <= routers
    assert not any("latest" in name for name in routers)
    assert len(routers) < 20


FACTS = {
    "adaptive thinking needs no thinking before calls": (
        "anthropic/claude-opus-4-8",
        lambda model: model.dialect["thinking_format"] == "adaptive" and model.rules["thinking_before_calls"] is False,
    ),
    "Claude from 4.6 on takes no prefilled answer": (
        "anthropic/claude-sonnet-4-6",
        lambda model: model.rules["last_assistant"] is False,
    ),
    "an older one does": ("anthropic/claude-sonnet-4-5", lambda model: "last_assistant" not in model.rules),
    "newer Claudes refuse sampling settings": (
        "amazon-bedrock/us.anthropic.claude-opus-4-8",
        lambda model: {"temperature", "top_p"} <= set(model.rules["refused_options"]),
    ),
    "behind a relay as well": (
        "cloudflare-ai-gateway/claude-sonnet-5",
        lambda model: {"temperature", "top_p"} <= set(model.rules["refused_options"]),
    ),
    "a write kept for an hour costs Claude twice the input": (
        "anthropic/claude-opus-4-8",
        lambda model: model.cost.cache_write_long == 2 * model.cost.input,
    ),
    "Claude reads documents": ("anthropic/claude-opus-4-8", lambda model: "document" in model.input),
    "Gemini accepts documents, audio and video": (
        "google/gemini-3.5-flash",
        lambda model: {"document", "audio", "video"} <= set(model.input),
    ),
    "a divided window limits the input": ("openai/gpt-5", lambda model: model.max_input == 272_000),
    "DeepSeek requires its reasoning": (
        "deepseek/deepseek-v4-pro",
        lambda model: model.rules["reasoning_replay"] == "required",
    ),
    "a gateway that takes unsigned thinking": (
        "vercel-ai-gateway/moonshotai/kimi-k3",
        lambda model: model.rules["reasoning_replay"] == "open" and model.dialect["empty_signature"] is True,
    ),
    "but not for Claude": (
        "vercel-ai-gateway/anthropic/claude-opus-4.8",
        lambda model: "reasoning_replay" not in model.rules,
    ),
    "Azure has no address of its own": ("azure/gpt-5.4", lambda model: model.base_url is None),
}


@pytest.mark.parametrize(("name", "holds"), FACTS.values(), ids=FACTS.keys())
def test_a_known_fact_is_in_it(name, holds):
    assert holds(get_model(name))


# -- look-up ----------------------------------------------------------------------------------------------------------

NAMES = {
    "a full name": ("anthropic/claude-opus-4-8", "anthropic/claude-opus-4-8"),
    "a full name whose id has slashes": (
        "openrouter/anthropic/claude-opus-4.8",
        "openrouter/anthropic/claude-opus-4.8",
    ),
    "in any case": ("Anthropic/CLAUDE-Opus-4-8", "anthropic/claude-opus-4-8"),
    "an id written in capitals": ("minimax/minimax-m3", "minimax/MiniMax-M3"),
    "an id that only one provider has": ("us.anthropic.claude-opus-4-8", "amazon-bedrock/us.anthropic.claude-opus-4-8"),
    "Claude is Anthropic's": ("claude-opus-4-8", "anthropic/claude-opus-4-8"),
    "GPT is OpenAI's": ("gpt-5.4", "openai/gpt-5.4"),
    "Gemini is Google's": ("gemini-3.5-flash", "google/gemini-3.5-flash"),
    "DeepSeek is its own": ("deepseek-v4-pro", "deepseek/deepseek-v4-pro"),
    "Mistral is its own": ("mistral-large-4", "mistral/mistral-large-4"),
    "Kimi is Moonshot's": ("kimi-k3", "moonshotai/kimi-k3"),
    "GLM is Z.ai's": ("glm-5.3", "zai/glm-5.3"),
    "Grok is xAI's": ("grok-4.7", "xai/grok-4.7"),
    "MiniMax is its own": ("MiniMax-M3", "minimax/MiniMax-M3"),
    "an id that only a second first-party provider has": ("kimi-for-coding", "kimi-coding/kimi-for-coding"),
}


@pytest.mark.parametrize(("name", "full_name"), NAMES.values(), ids=NAMES.keys())
def test_a_name_finds_its_model(name, full_name):
    assert get_model(name).full_name() == full_name


def test_every_model_is_found_by_its_full_name():
    for model in PACKAGED.models:
        assert get_model(model.full_name()) is model


def test_a_model_is_given_back():
    model = Model("my-model", "my-provider", "openai-chat")
    assert get_model(model) is model


MEANT = {
    "a letter is missing and a dot is a dash": ("claud-opus-4.8", "anthropic/claude-opus-4-8"),
    "the right provider, a dot for a dash": ("anthropic/claude-opus-4.9", "anthropic/claude-opus-4-8"),
    "a third party's id of a first-party model": ("claude-opus-4.8", "anthropic/claude-opus-4-8"),
    "the same with the provider in front": ("anthropic/claude-opus-4.8", "anthropic/claude-opus-4-8"),
    "a dash is missing": ("gpt5.4", "openai/gpt-5.4"),
    "spaces and capitals": ("Gemini 3.5 Flash", "google/gemini-3.5-flash"),
    "a colon after the provider": ("openai:gpt-5.4", "openai/gpt-5.4"),
    "two letters changed places": ("depseek-v4-pro", "deepseek/deepseek-v4-pro"),
    "part of a name": ("sonnet-5", "anthropic/claude-sonnet-5"),
}


@pytest.mark.parametrize(("name", "meant"), MEANT.values(), ids=MEANT.keys())
def test_an_unknown_name_gets_suggestions(name, meant):
    with pytest.raises(UnknownModel) as raised:
        get_model(name)
    assert raised.value.name == name
    assert raised.value.suggestions[0] == meant
    assert meant in str(raised.value)
    assert name in str(raised.value)


def test_suggestions_are_few_full_names_and_each_model_once():
    with pytest.raises(UnknownModel) as raised:
        get_model("claud-opus-4.8")
    suggestions = raised.value.suggestions
    assert len(suggestions) == 5
    assert [get_model(name).full_name() for name in suggestions] == list(suggestions)
    assert sum("opus-4-8" in name or "opus-4.8" in name for name in suggestions) == 1


def test_an_id_without_a_first_party_provider_needs_its_full_name():
    with pytest.raises(UnknownModel) as raised:
        get_model("openai/gpt-oss-120b")
    assert len(raised.value.suggestions) > 3
    assert all(name.endswith("/openai/gpt-oss-120b") for name in raised.value.suggestions)
    assert all(name in str(raised.value) for name in raised.value.suggestions)


def test_a_name_with_a_provider_is_never_a_model_of_another_provider():
    """A gateway has ids that begin with a provider's name: `cohere/...` there is not Cohere's own API."""
    with pytest.raises(UnknownModel, match="is not a model of the provider 'cohere'; use a full name") as raised:
        get_model("Cohere/command-a-plus")
    assert raised.value.suggestions == ("openrouter/cohere/command-a-plus",)


def test_an_id_that_begins_with_the_name_of_no_provider_is_found():
    assert get_model("qwen/qwen3-14b").full_name() == "openrouter/qwen/qwen3-14b"


@pytest.mark.parametrize("name", ["zzzzqqqq", "", "/"])
def test_a_name_like_no_other_gets_no_suggestions(name):
    with pytest.raises(UnknownModel) as raised:
        get_model(name)
    assert raised.value.suggestions == ()


SMALL = Catalogue(
    models=(
        Model("a-1", "x", "openai-chat", name="Alpha One", context_window=1000, cost=Price(input=1, output=9)),
        Model("a-2", "x", "openai-responses", reasoning=True, input=("text",), context_window=9000),
        Model("b.1", "y", "openai-chat", input=("text", "document", "audio"), cost=Price(input=3, output=2)),
        Model("any", "y", "openai-chat", router=True, cost=Price(input=5, output=5)),
    )
)

SEARCHES = {
    "nothing asked gives all": ({}, ["x/a-1", "x/a-2", "y/b.1", "y/any"]),
    "a part of the full name": ({"query": "x/a"}, ["x/a-1", "x/a-2"]),
    "a word of the display name": ({"query": "ALPHA"}, ["x/a-1"]),
    "all words, in any order": ({"query": "one x/a"}, ["x/a-1"]),
    "a dash for a dot": ({"query": "b-1"}, ["y/b.1"]),
    "a word that is nowhere": ({"query": "gamma"}, []),
    "by provider, in any case": ({"provider": "X"}, ["x/a-1", "x/a-2"]),
    "by protocol": ({"protocol": "openai-responses"}, ["x/a-2"]),
    "those that reason": ({"reasoning": True}, ["x/a-2"]),
    "those that do not": ({"reasoning": False}, ["x/a-1", "y/b.1", "y/any"]),
    "by one modality": ({"input": "image"}, ["x/a-1", "y/any"]),
    "by several": ({"input": ("document", "audio")}, ["y/b.1"]),
    "by the window": ({"min_context": 1000}, ["x/a-1", "x/a-2"]),
    "by the price of input": ({"max_input_price": 3}, ["x/a-1", "x/a-2", "y/b.1"]),
    "by the price of output": ({"max_output_price": 4}, ["x/a-2", "y/b.1"]),
    "routers": ({"router": True}, ["y/any"]),
    "no routers": ({"router": False}, ["x/a-1", "x/a-2", "y/b.1"]),
    "everything at once": ({"query": "a", "provider": "x", "reasoning": False, "min_context": 10}, ["x/a-1"]),
}


@pytest.mark.parametrize(("asked", "names"), SEARCHES.values(), ids=SEARCHES.keys())
def test_a_search_lists_what_fits_in_the_order_of_the_catalogue(asked, names):
    assert [model.full_name() for model in find_models(**asked, catalogue=SMALL)] == names
    assert SMALL.find(**asked) == find_models(**asked, catalogue=SMALL)


def test_without_a_catalogue_the_packaged_one_is_searched():
    assert get_model("anthropic/claude-opus-4-8") in find_models("opus 4.8")


PROVIDERS = {
    "one provider serves it": ("bedrock-converse", "us.anthropic.claude-opus-4-8", "amazon-bedrock"),
    "in any case": ("openai-chat", "ring-2.6-1t", "ant-ling"),
    "several do": ("anthropic-messages", "claude-opus-4-8", None),
    "over another protocol": ("openai-chat", "us.anthropic.claude-opus-4-8", None),
    "nobody does": ("openai-chat", "no-such-model", None),
}


@pytest.mark.parametrize(("protocol", "model_id", "provider"), PROVIDERS.values(), ids=PROVIDERS.keys())
def test_a_transcript_names_its_provider_where_there_is_only_one(protocol, model_id, provider):
    assert find_provider(protocol, model_id) == provider


# -- one's own models -------------------------------------------------------------------------------------------------


def test_an_added_model_replaces_the_packaged_one():
    mine = Model("claude-opus-4-8", "anthropic", "anthropic-messages", context_window=7)
    catalogue = PACKAGED.with_models(mine)
    assert get_model("anthropic/claude-opus-4-8", catalogue=catalogue) is mine
    assert get_model("claude-opus-4-8", catalogue=catalogue) is mine
    assert len(catalogue.models) == len(PACKAGED.models)
    assert catalogue.models.index(mine) == PACKAGED.models.index(get_model("anthropic/claude-opus-4-8"))
    assert get_model("claude-opus-4-8").context_window > 7


def test_a_new_model_comes_last_and_is_found():
    mine = Model("my-model", "my-provider", "openai-chat")
    catalogue = PACKAGED.with_models(mine)
    assert catalogue.models == (*PACKAGED.models, mine)
    assert get_model("my-model", catalogue=catalogue) is mine
    assert find_provider("openai-chat", "my-model", catalogue=catalogue) == "my-provider"
    with pytest.raises(UnknownModel) as raised:
        get_model("my-provider/my-modell", catalogue=catalogue)
    assert raised.value.suggestions[0] == "my-provider/my-model"


def test_a_catalogue_file_needs_only_models(tmp_path):
    path = tmp_path / "models.json"
    entry = {"id": "llama", "provider": "mine", "protocol": "openai-chat", "rules": {"max_images": 1}}
    path.write_text(json.dumps({"models": [entry]}), encoding="utf-8")
    own = Catalogue.read(path)
    assert own.models == (Model("llama", "mine", "openai-chat", rules={"max_images": 1}),)
    assert PACKAGED.with_models(*own.models).get("mine/llama").rules == {"max_images": 1}


def entry(**fields: object) -> dict[str, list[object]]:
    return {"models": [{"id": "m", "provider": "p", "protocol": "openai-chat"} | fields]}


BROKEN = {
    "no JSON": ("{", ""),
    "no object": ("[]", ""),
    "no models": ("{}", "models"),
    "an unknown field beside them": (json.dumps({"models": [], "model": []}), "model"),
    "a model without an id": (json.dumps({"models": [{"provider": "p", "protocol": "x"}]}), "models[0]"),
    "a misspelt field": (json.dumps(entry(contextwindow=1)), "contextwindow"),
    "a wrong type": (json.dumps(entry(contextWindow="big")), "contextWindow"),
    "a rule that does not exist": (json.dumps(entry(rules={"alternat": True})), "alternat"),
    "a rule with an invalid value": (json.dumps(entry(rules={"refused_text": "some"})), "refused_text"),
    "a dialect that does not exist": (json.dumps(entry(dialect={"stor": True})), "stor"),
    "the same model twice": (json.dumps({"models": [*entry()["models"], *entry()["models"]]}), "p/m"),
    "text that is no text": (b'{"models": [{"id": "\xff", "provider": "p", "protocol": "x"}]}', ""),
    "far too deep": ('{"models": ' + "[" * 100_000, ""),
}


@pytest.mark.parametrize(("text", "place"), BROKEN.values(), ids=BROKEN.keys())
def test_an_invalid_file_is_reported_with_the_path(tmp_path, text, place):
    path = tmp_path / "models.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ModelError) as raised:
        Catalogue.read(path)
    assert str(path) in str(raised.value)
    assert place in str(raised.value)


def test_half_a_character_in_a_text_is_no_catalogue():
    with pytest.raises(ModelError, match="not a catalogue"):
        Catalogue.load('{"models": [{"id": "\ud800", "provider": "p", "protocol": "x"}]}')


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"nowhere\.json"):
        Catalogue.read(tmp_path / "nowhere.json")


def test_nothing_is_read_before_it_is_asked_for():
    script = "import segue.models.catalogue as c; assert c.packaged_catalogue.cache_info().currsize == 0"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_date_of_a_catalogue_is_that_of_its_oldest_source():
    sources = tuple(
        CatalogueSource(name=name, version="1", read=read) for name, read in (("a", "2026-03-02"), ("b", "2026-01-31"))
    )
    catalogue = Catalogue(models=(), sources=sources)
    assert catalogue.date == "2026-01-31"
    assert catalogue.compute_age(date(2026, 3, 2)) == 30
    assert catalogue.with_models(Model("m", "p", "openai-chat")).date == "2026-01-31"


@pytest.mark.parametrize(
    "sources", [(), (CatalogueSource(name="a", version="1", read="yesterday"),)], ids=["none", "invalid"]
)
def test_a_catalogue_without_a_valid_date_has_no_age(sources):
    assert Catalogue(models=(), sources=sources).compute_age(date(2026, 3, 2)) is None


def test_the_packaged_catalogue_has_a_date():
    assert packaged_catalogue().date is not None


# -- models that no catalogue lists ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["echo", "Echo", "segue/echo"])
def test_the_echo_model_is_part_of_segue(name: str):
    assert get_model(name) is ECHO
    assert Catalogue(models=()).get(name) is ECHO
    assert packaged_catalogue().has_name("segue/echo")


def test_a_catalogue_may_have_an_echo_of_its_own():
    own = Model("echo", "mine", "openai-chat")
    assert Catalogue(models=(own,)).get("echo") is own


SERVERS = [row for row in THIRD_PARTY if row.any_id]


@pytest.mark.parametrize("row", SERVERS, ids=lambda row: row.name)
def test_a_server_that_serves_what_is_loaded_has_every_model(row: Provider):
    model = get_model(f"{row.name}/Some-Model:7b/Q4")
    assert (model.id, model.provider, model.protocol) == ("Some-Model:7b/Q4", row.name, row.protocol)
    assert get_model(f"{row.name.upper()}/m").provider == row.name
    with pytest.raises(UnknownModel):
        get_model(f"{row.name}/")
    if row.name in BUILT_IN:
        assert get_model(row.name).provider == row.name
        return
    with pytest.raises(UnknownModel):
        get_model(row.name)


def test_a_server_of_the_users_own_may_serve_every_model():
    row = Provider(
        name="shelf",
        title="",
        protocol="openai-chat",
        base_url="http://shelf:1/v1",
        key_variables=(),
        any_id=True,
        source="",
        read="",
    )
    model = Catalogue(models=(), providers=(row,)).get("shelf/tiny")
    assert model == Model("tiny", "shelf", "openai-chat", base_url="http://shelf:1/v1")


# -- ids and names of this autumn --------------------------------------------------------------------------------------

NAMES = {
    "a codex model belongs to OpenAI": ("gpt-5-codex", "openai/gpt-5-codex"),
    "a model of DeepSeek": ("deepseek/deepseek-v4-flash", "deepseek/deepseek-v4-flash"),
    "the short name of a generation": ("gpt-5.6", "openai/gpt-5.6"),
    "a model that no source lists yet": ("claude-fable-5-2", "anthropic/claude-fable-5-2"),
    "a model of Cohere": ("command-a-03-2025", "cohere/command-a-03-2025"),
    "a model of Perplexity": ("perplexity/sonar-pro", "perplexity/sonar-pro"),
    "another name of Alibaba": ("qwen/qwen3-max", "alibaba/qwen3-max"),
    "another name of Vercel": ("vercel/openai/gpt-5.4", "vercel-ai-gateway/openai/gpt-5.4"),
    "another name of Bedrock": ("bedrock/amazon.nova-pro-v1:0", "amazon-bedrock/amazon.nova-pro-v1:0"),
    "in any case": ("TogetherAI/openai/gpt-oss-120b", "together/openai/gpt-oss-120b"),
}


@pytest.mark.parametrize(("name", "full_name"), NAMES.values(), ids=NAMES.keys())
def test_a_name_of_today_is_found(name, full_name):
    assert get_model(name).full_name() == full_name


def test_a_retired_model_has_its_date():
    assert get_model("openai/gpt-5-codex").deprecated == "2026-07-23"


def test_models_are_listed_by_another_name_of_their_provider():
    assert find_models(provider="qwen") == find_models(provider="alibaba") != ()


def test_an_unknown_name_is_searched_once():
    catalogue = Catalogue(models=PACKAGED.models)
    found: list[tuple[str, ...]] = []
    for _ in range(2):
        with pytest.raises(UnknownModel) as error:
            catalogue.get("gpt-55-nano")
        found.append(error.value.suggestions)
    assert found[0] is found[1] != ()


@pytest.mark.parametrize(
    ("name", "day"),
    [("o1-preview", "2025-07-28"), ("gpt-5", "2026-12-11"), ("gpt-4o", "2027-01-14"), ("gpt-5.4", None)],
)
def test_a_model_has_the_day_on_which_it_is_shut_down(name: str, day: str | None) -> None:
    assert get_model(f"openai/{name}").deprecated == day


@pytest.mark.traffic
def test_nearly_all_models_of_recorded_traffic_are_listed() -> None:
    rows = [row for row in traffic.exchanges() if row["model"]]
    known = [row for row in rows if _is_listed(row["provider"], row["model"])]
    assert len(rows) > 100
    assert len(known) >= 0.95 * len(rows)


def _is_listed(provider: str, model: str) -> bool:
    catalogue = packaged_catalogue()
    found = (catalogue.lookup(f"{provider}/{model}"), catalogue.lookup(model))
    return any(each is not None and each.context_window > 0 for each in found)
