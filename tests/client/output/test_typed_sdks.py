"""Typed answers with the official clients: they send the request for a type, and the value is in their replies."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import anthropic
import openai
import pytest
from google import genai
from google.genai.types import HttpOptions
from mistralai.client import Mistral
from msgspec.structs import replace

from segue import Context, Model, Options, Policy, Request, UserMessage, get_model, prepare, read_output
from segue.client.output.ladder import WantedOutput, ask_for
from segue.client.output.output_types import OutputType
from segue.testing.emulator import Step, emulate


@dataclass
class Place:
    """A place on a map."""

    name: str
    population: int


def _send_anthropic(url: str, arguments: dict[str, Any]) -> Any:
    with anthropic.Anthropic(base_url=url, api_key="k", max_retries=0) as client:
        return client.messages.create(**arguments)


def _send_chat(url: str, arguments: dict[str, Any]) -> Any:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        return client.chat.completions.create(**arguments)


def _send_responses(url: str, arguments: dict[str, Any]) -> Any:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        return client.responses.create(**arguments)


def _send_google(url: str, arguments: dict[str, Any]) -> Any:
    client = genai.Client(api_key="k", http_options=HttpOptions(base_url=url))
    try:
        return client.models.generate_content(**arguments)
    finally:
        client.close()


def _send_mistral(url: str, arguments: dict[str, Any]) -> Any:
    with Mistral(server_url=url, api_key="k") as client:
        return client.chat.complete(**arguments)


CLIENTS: Final[Mapping[str, Callable[[str, dict[str, Any]], Any]]] = {
    "anthropic/claude-opus-4-5": _send_anthropic,
    "openai/gpt-4o": _send_chat,
    "openai/gpt-5.4": _send_responses,
    "google/gemini-2.5-pro": _send_google,
    "mistral/mistral-large-latest": _send_mistral,
}
PROTOCOLS: Final = {"openai/gpt-4o": "openai-chat"}
"""Models that are asked over another protocol than that of the catalogue."""


def _ask(model: Model) -> Request:
    def make(given: Context, asked: Options | None) -> Request:
        return prepare(given, model, options=asked)

    context = Context().add(UserMessage.of("Which place?"))
    return ask_for(WantedOutput(OutputType(Place)), context, model, None, Policy(), make_request=make).request


@pytest.mark.parametrize("name", CLIENTS)
def test_a_value_is_read_from_what_an_official_client_returns(name: str) -> None:
    model = get_model(name)
    model = replace(model, protocol=PROTOCOLS.get(name, model.protocol))
    with emulate(Step(text='{"name": "Bergen", "population": 290000}')) as server:
        request = _ask(replace(model, base_url=server.url))
        reply = CLIENTS[name](server.url, request.sdk_arguments())
        (sent,) = server.emulator.requests
    assert "population" in json.dumps(sent.body)  # the schema
    assert read_output(request.decode(reply), Place) == Place("Bergen", 290000)


def test_every_one_of_five_protocols_is_asked() -> None:
    protocols = {PROTOCOLS.get(name, get_model(name).protocol) for name in CLIENTS}
    assert protocols == {"anthropic-messages", "openai-chat", "openai-responses", "google-genai", "mistral-chat"}
