"""What a builder remembers of earlier requests is used again only for the same key, URL, headers and options."""

from __future__ import annotations

from copy import deepcopy
from itertools import product

import pytest

from segue.client.flow.steps import Broken
from segue.client.http.outgoing_request import OutgoingRequest, RequestBuilder
from segue.client.http.settings import ClientSettings, Setup
from segue.conversation.context import Options
from segue.errors import SettingsError
from segue.models.model import Model
from segue.requests.prepare import Request, prepare

MODEL = Model("m", "acme", "openai-chat", base_url="https://acme.example/v1")


def builder(**settings: object) -> RequestBuilder:
    return RequestBuilder(Setup({"environment": {}, **settings}))  # pyright: ignore[reportArgumentType]  # settings


def write(made: RequestBuilder, request: Request, token: str | None = None) -> OutgoingRequest:
    outgoing = made.write(request, None, token, request.model.provider)
    assert isinstance(outgoing, OutgoingRequest)
    return outgoing


def shown(outgoing: OutgoingRequest) -> object:
    names = ("url", "headers", "content", "secrets", "is_signed", "service", "method")
    return deepcopy([getattr(outgoing, name) for name in names])


def test_requests_one_after_another_are_those_that_new_builders_write():
    """Also in turn, and again: nothing of one request gets into another one."""
    models = [
        MODEL,
        Model("m", "acme", "openai-chat", base_url="https://acme.example/v1?version=2"),
        Model("m", "acme", "openai-chat", base_url="https://name:word@acme.example/v1"),
        Model("m", "acme", "openai-chat", base_url="https://acme.example/v1", headers={"X-Team": "one"}),
        Model("m", "acme", "openai-chat", base_url="https://acme.example/v1", headers={"x-team": "two"}),
        Model("m", "openrouter", "openai-chat", base_url="https://acme.example/v1"),
        Model("m", "fireworks", "openai-chat", base_url="https://acme.example/v1"),
        Model("m", "acme", "openai-chat", base_url="https://acme.example/v1", dialect={"aws_service": "mantle"}),
        Model("m", "acme", "openai-chat", base_url="https://acme.example/v1", dialect={"auth": "api-key"}),
        Model("m", "acme", "anthropic-messages", base_url="https://acme.example"),
        Model("m", "acme", "anthropic-messages", base_url="https://acme.example", headers={"anthropic-beta": "a"}),
        Model("gemini", "google", "google-genai", base_url="https://acme.example"),
        Model("m", "amazon-bedrock", "bedrock-converse", base_url="https://acme.example"),
    ]
    options = [Options(), Options(stream=True), Options(session_id="s1"), Options(session_id="s2")]
    requests = [prepare("hi", model, options=given) for model, given in product(models, options)]
    for settings in (
        {"api_key": "key-of-one"},
        {"api_key": {"acme": "key-of-one"}, "headers": {"X-Own": "secret"}},
        {},
    ):
        kept = builder(**settings)
        for request, token in [*product(requests, (None, "a-token")), *product(reversed(requests), ("a-token", None))]:
            new = builder(**settings).write(request, None, token, request.model.provider)
            again = kept.write(request, None, token, request.model.provider)
            if isinstance(new, Broken) or isinstance(again, Broken):
                assert new == again
            else:
                assert shown(again) == shown(new)


def test_the_service_is_that_of_the_model():
    made = builder(api_key="the-key")
    for service in ("one", "other", "one"):
        dialect = {"aws_service": service}
        model = Model("m", "acme", "openai-chat", base_url="https://acme.example/v1", dialect=dialect)
        assert write(made, prepare("hi", model)).service == service


def test_what_is_changed_in_one_request_is_not_in_the_next():
    made, request = builder(api_key="the-key"), prepare("hi", MODEL)
    first = write(made, request)
    before = shown(write(made, request))
    first.headers["authorization"] = "Bearer another"
    first.secrets = ()
    assert shown(write(made, request)) == before


def test_a_key_that_changes_in_the_environment_is_sent():
    environment = {"OPENAI_API_KEY": "first-key"}
    made = RequestBuilder(Setup({"environment": environment}))
    request = prepare("hi", Model("m", "openai", "openai-chat", base_url="https://api.openai.com/v1"))
    assert write(made, request).headers["authorization"] == "Bearer first-key"
    environment["OPENAI_API_KEY"] = "second-key"
    assert write(made, request).headers["authorization"] == "Bearer second-key"
    assert write(made, request).secrets == ("Bearer second-key", "second-key")
    del environment["OPENAI_API_KEY"]
    assert isinstance(made.write(request, None, None, "openai"), Broken)


def test_a_variable_of_the_url_is_read_for_each_request():
    environment = {"REGION": "one"}
    made = RequestBuilder(Setup({"environment": environment, "api_key": "the-key"}))
    request = prepare("hi", Model("m", "acme", "openai-chat", base_url="https://{REGION}.acme.example/v1"))
    assert write(made, request).url == "https://one.acme.example/v1/chat/completions"
    environment["REGION"] = "two"
    assert write(made, request).url == "https://two.acme.example/v1/chat/completions"
    del environment["REGION"]
    with pytest.raises(SettingsError, match="needs the environment variable REGION"):
        write(made, request)


def test_only_some_requests_are_remembered():
    made = builder(api_key="the-key")
    for number in range(200):
        session = prepare("hi", Model("m", "acme", "openai-chat", base_url=f"https://acme.example/{number}"))
        assert write(made, session).url == f"https://acme.example/{number}/chat/completions"
        assert made.sends_plainly(session.model)
    assert "the-key" not in repr(made)


PLAIN: list[tuple[ClientSettings, Model, bool]] = [
    ({}, MODEL, True),
    ({"auth": lambda: "token"}, MODEL, False),
    ({"auth": {"other": lambda: "token"}}, MODEL, True),
    ({"base_url": "https://other.example"}, MODEL, False),
    ({"base_url": "https://acme.example/v1"}, MODEL, True),
    ({"base_url": {"other": "https://other.example"}}, MODEL, True),
    ({}, Model("m", "acme", "openai-chat", base_url="https://acme.example", dialect={"auth": "aws"}), False),
]


@pytest.mark.parametrize(("settings", "model", "is_plain"), PLAIN)
def test_a_model_that_the_settings_change_is_not_sent_to_plainly(
    settings: ClientSettings, model: Model, is_plain: bool
):
    made = RequestBuilder(Setup({"environment": {}, **settings}))
    assert [made.sends_plainly(model) for _ in range(3)] == [is_plain] * 3


def test_a_base_url_that_the_environment_gets_later_counts():
    environment: dict[str, str] = {}
    made = RequestBuilder(Setup({"environment": environment}))
    model = Model("m", "openai", "openai-chat")
    assert made.sends_plainly(model)
    environment["OPENAI_BASE_URL"] = "https://other.example/v1"
    assert not made.sends_plainly(model)
