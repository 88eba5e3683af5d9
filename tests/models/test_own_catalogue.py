"""Models and providers of a user's own: from a file, as values, from an installed package."""

from __future__ import annotations

import json

import pytest

from segue import (
    AssistantMessage,
    Catalogue,
    Client,
    Context,
    Conversation,
    Model,
    ModelError,
    Outbox,
    Policy,
    Prompt,
    Provider,
    TextContent,
    ThinkingContent,
    UnknownModel,
    UserMessage,
    check,
    convert,
    decode_request,
    find_models,
    get_model,
    load_catalogue,
    packaged_catalogue,
    prepare,
    project,
    resolve_dialect,
    resolve_rules,
)
from segue.models.catalogue import installed_catalogue
from segue.requests.prepare import with_routers

TOML = """
[[providers]]
name = "acme"
protocol = "openai-chat"
base_url = "https://llm.acme.example/v1"
key_variables = ["ACME_API_KEY"]

[providers.rules.openai-chat]
max_images = 4
[providers.dialect.openai-chat]
max_tokens_field = "max_tokens"

[[models]]
id = "acme-large"
provider = "acme"
protocol = "openai-chat"
context_window = 1000
rules = { max_images = 2 }

[[models]]
id = "acme-small"
provider = "acme"
protocol = "openai-chat"

[[models]]
id = "acme-auto"
provider = "acme"
protocol = "openai-chat"
router = true
"""
HELLO = Context().add(UserMessage.of("hello"))


@pytest.fixture
def catalogue(tmp_path):
    path = tmp_path / "models.toml"
    path.write_text(TOML)
    return load_catalogue(path)


def test_a_model_of_ones_own_has_what_its_providers_row_says(catalogue):
    small, large = get_model("acme/acme-small", catalogue=catalogue), catalogue.get("acme-large")
    assert (small.base_url, large.context_window) == ("https://llm.acme.example/v1", 1000)
    assert resolve_rules(small).max_images == 4
    assert resolve_rules(large).max_images == 2
    assert resolve_dialect(large).max_tokens_field == "max_tokens"


def test_packaged_models_are_there_as_well(catalogue):
    assert catalogue.get("anthropic/claude-opus-4-8") == get_model("anthropic/claude-opus-4-8")
    assert [model.id for model in find_models("acme", catalogue=catalogue)] == ["acme-large", "acme-small", "acme-auto"]


def test_a_model_that_is_not_listed_gets_the_row_too(catalogue):
    model = get_model(Model("new", "acme", "openai-chat"), catalogue=catalogue)
    assert model.base_url == "https://llm.acme.example/v1"


def test_a_file_in_json_says_the_same(tmp_path, catalogue):
    import tomllib

    path = tmp_path / "models.json"
    path.write_text(json.dumps(tomllib.loads(TOML)))
    assert load_catalogue(path) == catalogue


def test_rows_may_be_values():
    row = Provider(
        name="acme",
        title="Acme",
        protocol="openai-chat",
        base_url="https://a.example",
        key_variables=(),
        source="",
        read="",
    )
    known = packaged_catalogue().with_providers(row).with_models(Model("m", "acme", "openai-chat"))
    assert prepare(HELLO, "acme/m", catalogue=known).url == "https://a.example/chat/completions"


def test_prepare_and_convert_take_a_catalogue(catalogue):
    request = prepare(HELLO, "acme/acme-large", catalogue=catalogue)
    assert request.url == "https://llm.acme.example/v1/chat/completions"
    body = {"model": "x", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
    converted = convert(body, source="anthropic-messages", target="acme/acme-large", catalogue=catalogue)
    assert converted.body["max_tokens"] == 5
    with pytest.raises(UnknownModel):
        prepare(HELLO, "acme/acme-large")


def test_a_client_finds_the_model_its_address_and_its_key(catalogue):
    import httpx2

    seen: list[httpx2.Request] = []

    def reply(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        message = {"role": "assistant", "content": "hi"}
        return httpx2.Response(200, json={"choices": [{"message": message, "finish_reason": "stop"}]})

    environment = {"ACME_API_KEY": "k-1"}
    transport = httpx2.MockTransport(reply)
    with Client(catalogue=catalogue, environment=environment, transport=transport) as client:
        assert client.complete(HELLO, "acme/acme-large").text() == "hi"
        with Conversation("acme/acme-small", client=client) as talk:
            assert talk.ask("hello").text() == "hi"
            talk.switch("acme/acme-large")
    assert {str(request.url) for request in seen} == {"https://llm.acme.example/v1/chat/completions"}
    assert {request.headers["authorization"] for request in seen} == {"Bearer k-1"}


ROUTED = HELLO.add(
    AssistantMessage(
        content=(
            ThinkingContent(thinking="hm", thinking_signature="reasoning_content"),
            TextContent(text="hi"),
        ),
        protocol="openai-chat",
        provider="acme",
        model="acme-auto",
        response_model="acme-large",
    ),
    UserMessage.of("go on"),
)
LARGE = Model("acme-large", "acme", "openai-chat", reasoning=True, rules={"reasoning_replay": "signed"})


def test_a_reply_of_ones_own_router_belongs_to_the_model_that_it_names(catalogue):
    assert prepare(ROUTED, LARGE, catalogue=catalogue).report.changes == ()
    assert prepare(ROUTED, LARGE).report.changes != ()
    assert project(ROUTED, LARGE, policy=Policy(routers=catalogue.routers)).report.changes == ()
    assert Outbox(LARGE, Policy(routers=catalogue.routers)).prepare(ROUTED).report.changes == ()


def test_a_policy_stays_the_same_object_without_routers_of_ones_own(catalogue):
    policy = Policy()
    assert with_routers(policy, None) is policy
    assert with_routers(policy, packaged_catalogue()) is policy
    routed = with_routers(policy, catalogue)
    assert routed == Policy(routers=frozenset({"acme/acme-auto"}))
    assert with_routers(routed, catalogue) is routed


REQUEST = {
    "model": "acme-large",
    "messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello", "reasoning_content": "hm"},
        {"role": "user", "content": [{"type": "document", "document": {"text": "x"}}]},
    ],
}


def writers(prompt: Prompt) -> set[str]:
    return {message.provider for message in prompt.context.messages if message.role == "assistant"}


def test_the_turns_of_a_request_belong_to_the_provider_of_its_model(catalogue):
    assert writers(decode_request(REQUEST, protocol="openai-chat", catalogue=catalogue)) == {"acme"}
    assert writers(decode_request(REQUEST, protocol="openai-chat")) == {"openai"}
    converted = convert(REQUEST, target="acme/acme-large", catalogue=catalogue)
    assert converted.body["messages"][1]["reasoning_content"] == "hm"


def test_a_request_is_checked_for_the_provider_of_its_model(catalogue):
    assert check(REQUEST, protocol="openai-chat", catalogue=catalogue) == []
    assert [found.code for found in check(REQUEST, protocol="openai-chat")] == ["block_type_unknown"]


MISSPELT = {
    "a field of a provider": ("base_url =", "base_ulr =", r"providers\[0\]: there is no field 'base_ulr'.*base_url"),
    "a field of a model": (
        "context_window",
        "contxt_window",
        r"models\[0\]: there is no field 'contxt_window'.*context_window",
    ),
    "a table": ("[[models]]", "[[model]]", r"there is no field 'model'; did you mean models\?"),
    "a rule of a provider": ("max_images = 4", "max_image = 4", r"\(acme\), openai-chat: there is no rule 'max_image'"),
    "a rule of a model": (
        "{ max_images",
        "{ max_imges",
        r"\(acme/acme-large\): there is no rule 'max_imges'.*max_images",
    ),
    "a dialect field": ("max_tokens_field", "max_token_field", r"there is no dialect field 'max_token_field'"),
    "an option in a rule of a model": (
        "{ max_images = 2 }",
        '{ refused_options = ["temprature"] }',
        r"\(acme/acme-large\): rule 'refused_options' names an option 'temprature' .*temperature",
    ),
    "an option in a rule of a provider": (
        "max_images = 4",
        'refused_with_thinking = ["-top_q"]',
        r"\(acme\), openai-chat: rule 'refused_with_thinking' names an option '-top_q' that does not exist",
    ),
    "a value of a rule": ("{ max_images = 2 }", '{ max_images = "2" }', r"rule 'max_images' cannot be '2'"),
    "no TOML": ("[[providers]]", "[[providers", "not a catalogue"),
}


@pytest.mark.parametrize(("given", "written", "message"), MISSPELT.values(), ids=MISSPELT.keys())
def test_a_misspelt_name_is_refused_with_the_nearest_one(tmp_path, given, written, message):
    path = tmp_path / "models.toml"
    path.write_text(TOML.replace(given, written))
    with pytest.raises(ModelError, match=message) as raised:
        load_catalogue(path)
    assert "models.toml" in str(raised.value)


# -- installed packages ------------------------------------------------------------------------------------------------


@pytest.fixture
def site(tmp_path, monkeypatch):
    def install(value: str) -> None:
        info = tmp_path / "acme_models-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-models\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[segue.providers]\nacme = {value}\n")
        (tmp_path / "acme_models_for_test.py").write_text(
            f"from segue import Catalogue\nCATALOGUE = Catalogue.load('''{as_json()}''')\nOTHER = 1\n"
        )
        monkeypatch.syspath_prepend(tmp_path)

    installed_catalogue.cache_clear()
    yield install
    installed_catalogue.cache_clear()


def as_json() -> str:
    import tomllib

    return json.dumps(tomllib.loads(TOML))


def test_models_of_an_installed_package_are_found(site):
    site("acme_models_for_test:CATALOGUE")
    assert get_model("acme/acme-large").base_url == "https://llm.acme.example/v1"
    assert len(find_models(provider="acme")) == 3


def test_routers_and_providers_of_an_installed_package_are_known(site):
    site("acme_models_for_test:CATALOGUE")
    assert prepare(ROUTED, LARGE).report.changes == ()
    assert writers(decode_request(REQUEST, protocol="openai-chat")) == {"acme"}
    assert check(REQUEST, protocol="openai-chat") == []


@pytest.mark.parametrize("value", ["acme_models_for_test:OTHER", "no_such_module:CATALOGUE"])
def test_a_broken_package_is_named_and_other_models_are_found(site, value):
    site(value)
    with pytest.warns(RuntimeWarning, match="acme-models"), pytest.raises(UnknownModel):
        get_model("acme/acme-large")
    assert get_model("anthropic/claude-opus-4-8").provider == "anthropic"


def test_a_catalogue_can_be_made_of_values_alone():
    assert Catalogue(models=(Model("m", "p", "openai-chat"),)).get("p/m").id == "m"
