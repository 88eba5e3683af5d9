"""The addresses in the environment: those that the providers' own SDKs read."""

from __future__ import annotations

from collections.abc import Callable

import anthropic
import ollama
import openai
import pytest
from google import genai

from client.both_clients import HELLO
from client.wires import TEXT, WIRES
from segue.client.http.base_urls import URL_VARIABLES, find_url
from segue.client.http.clients import Client
from segue.errors import SettingsError
from segue.models.catalogue import Catalogue, installed_catalogue
from segue.models.model import Model
from segue.models.providers import PROVIDERS
from servers.scripted import ScriptedServer

PROXY = "http://proxy.example:8443"


def _google() -> str:
    # The SDK adds a version of the API; segue adds the one that it writes requests for.
    return f"{str(genai.Client(api_key='x')._api_client._http_options.base_url).rstrip('/')}/v1beta"


SDKS: dict[str, tuple[str, str, Callable[[], str]]] = {
    "openai": ("OPENAI_BASE_URL", f"{PROXY}/v1", lambda: str(openai.OpenAI(api_key="x").base_url)),
    "anthropic": ("ANTHROPIC_BASE_URL", f"{PROXY}/a", lambda: str(anthropic.Anthropic(api_key="x").base_url)),
    "google": ("GOOGLE_GEMINI_BASE_URL", f"{PROXY}/g", _google),
    "ollama": ("OLLAMA_HOST", "proxy.example", lambda: str(ollama.Client()._client.base_url)),
    "ollama with a port": ("OLLAMA_HOST", ":8443", lambda: str(ollama.Client()._client.base_url)),
    "ollama with a URL": ("OLLAMA_HOST", f"{PROXY}/o", lambda: str(ollama.Client()._client.base_url)),
    "azure-anthropic": (
        "ANTHROPIC_FOUNDRY_BASE_URL",
        f"{PROXY}/anthropic",
        lambda: str(anthropic.AnthropicFoundry(api_key="x").base_url),
    ),
}


@pytest.mark.parametrize("name", SDKS)
def test_the_address_is_the_one_that_the_official_sdk_uses(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variable, value, of_sdk = SDKS[name]
    monkeypatch.setenv(variable, value)
    ours = find_url(name.partition(" ")[0], {variable: f" {value} "})
    assert ours is not None
    assert ours.rstrip("/") == of_sdk().rstrip("/")


def test_every_row_is_of_a_provider_and_needs_its_path() -> None:
    for provider, variables in URL_VARIABLES.items():
        base = PROVIDERS[provider].base_url or ""
        for variable in variables:
            found = find_url(provider, {variable.name: PROXY})
            assert found == PROXY + variable.path
            assert find_url(provider, {variable.name: PROXY + variable.path}) == found
            if provider != "fireworks":  # the SDK adds another path to an address that is not the provider's own
                assert base.endswith(variable.path)


def test_a_request_goes_to_the_address_of_the_environment(server: ScriptedServer) -> None:
    reply = WIRES["openai-chat"].answer()
    server.reply(*[reply] * 2)
    model = Model("a-model", "openai", "openai-chat")
    environment = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.url}
    with Client(environment=environment) as client:
        assert client.complete(HELLO, model).text() == TEXT
        assert client.find_missing(model) is None
    other = {**environment, "OPENAI_BASE_URL": "http://127.0.0.1:1"}
    own = Model("a-model", "openai", "openai-chat", base_url=server.url)
    for url, given in ((server.url, model), (None, own)):  # an address of the settings, or of the model, goes before it
        server.reply(reply)
        with Client(environment=other, base_url=url) as client:
            assert client.complete(HELLO, given).text() == TEXT


LISTED = {model.provider: model for model in installed_catalogue().models if model.provider in URL_VARIABLES}


@pytest.mark.parametrize("provider", LISTED)
def test_a_model_of_the_catalogue_goes_to_the_address_of_the_environment(provider: str) -> None:
    model = LISTED[provider]
    (variable, *_) = URL_VARIABLES[provider]
    with Client(environment={variable.name: PROXY}) as client:
        assert client._builder.find_candidates(model.full_name(), ())[0].base_url == PROXY + variable.path


def test_the_variables_can_be_refused(server: ScriptedServer) -> None:
    model = Model("a-model", "openai", "openai-chat")
    with Client(environment={"OPENAI_BASE_URL": server.url}, url_variables=False) as client:
        assert "there is no API key for openai" in str(client.find_missing(model))
    with Client(environment={"OPENAI_BASE_URL": server.url}) as client:
        assert client.find_missing(model) is None  # another server may need none


def test_a_model_that_is_not_listed_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a name is compared with all listed ones: that took longer than everything else of a small request."""
    looked_up: list[str] = []
    lookup = Catalogue.lookup

    def counted(self: Catalogue, name: str) -> Model | None:
        looked_up.append(name)
        return lookup(self, name)

    monkeypatch.setattr(Catalogue, "lookup", counted)
    model = Model("not-listed", "somewhere", "openai-chat", base_url="http://localhost:1/v1")
    for variables in (True, False):
        with Client(environment={}, url_variables=variables) as client:
            for _ in range(3):
                assert client._builder.setup.find_url(model, "somewhere") is None
        assert looked_up == ["somewhere/not-listed"]


def test_a_value_that_is_not_a_url_is_named_and_not_shown() -> None:
    with pytest.raises(SettingsError, match="OPENAI_BASE_URL is not an HTTP URL") as raised:
        find_url("openai", {"OPENAI_BASE_URL": "sk-pasted"})
    assert "sk-pasted" not in str(raised.value)
    assert find_url("openai", {"OPENAI_BASE_URL": "  "}) is None
