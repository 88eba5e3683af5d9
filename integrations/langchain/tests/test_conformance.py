"""The conformance tests of LangChain (langchain-tests), against segue's emulator of four protocols on this machine."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_segue import ChatSegue
from langchain_tests.integration_tests import ChatModelIntegrationTests
from langchain_tests.integration_tests import chat_models as published
from langchain_tests.unit_tests import ChatModelUnitTests

from segue.testing.emulator import EmulatorServer, emulate

JOKE = {"setup": "Why was the cat on the computer?", "punchline": "To keep an eye on the mouse."}
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "test_tool_calling": ("magic_function", {"input": 3}),
    "test_tool_calling_async": ("magic_function", {"input": 3}),
    "test_tool_calling_with_no_arguments": ("magic_function_no_args", {}),
    "test_tool_choice": ("magic_function", {"input": 3}),
    "test_bind_runnables_as_tools": ("greeting_generator", {"answer_style": "like a pirate"}),
    "test_agent_loop": ("get_weather", {"location": "San Francisco"}),
    "test_unicode_tool_call_integration": ("unicode_customer", {"customer_name": "你好 こんにちは"}),
    "test_structured_output": ("Joke", JOKE),
    "test_structured_output_async": ("Joke", JOKE),
    "test_structured_output_pydantic_2_v1": ("Joke", JOKE),
    "test_structured_output_optional_param": ("Joke", JOKE),
    "test_json_mode": ("Joke", JOKE),
}
"""By the name of a test: the call that the model makes. In any other test it repeats what the user wrote."""
FILES = {
    "png": base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="
    ),
    "pdf": b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\n"
    b"trailer<</Root 1 0 R>>\n%%EOF\n",
    "wav": b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\0\0\0\0",
}
"""By the ending of a URL: what the published tests fetch from the network."""


def fetch(url: str, **_: object) -> SimpleNamespace:
    return SimpleNamespace(content=FILES[url.rpartition(".")[2]], raise_for_status=lambda: None)


@pytest.fixture(scope="session")
def server() -> Iterator[EmulatorServer]:
    with emulate() as running:
        yield running


class TestUnits(ChatModelUnitTests):
    @property
    def chat_model_class(self) -> type[ChatSegue]:
        return ChatSegue

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": "anthropic/claude-opus-4-8"}


class Conformance(ChatModelIntegrationTests):
    model_name = "anthropic/claude-opus-4-8"
    other_model = "claude-opus-5-5"
    supports_image_inputs = supports_image_urls = supports_image_tool_message = True
    supports_pdf_inputs = supports_pdf_tool_message = supports_audio_inputs = True
    supports_anthropic_inputs = supports_json_mode = supports_model_override = True
    answers_in_text = False
    """Whether structured output is asked for by the provider's own schema, in place of a tool."""

    @pytest.fixture(autouse=True)
    def script(self, server: EmulatorServer, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
        """Let the emulator answer as the test expects it of a model."""
        monkeypatch.setattr(published, "httpx", SimpleNamespace(get=fetch))
        monkeypatch.setattr(
            published, "_get_base64_from_url", lambda url: base64.b64encode(fetch(url).content).decode()
        )
        name, script = request.node.originalname, server.emulator.script
        self.server, script._steps = server, []
        type(self).base_url = server.url
        already = len(server.emulator.requests)
        if name in CALLS:
            tool, arguments = CALLS[name]
            tool = "JokeDict" if "typeddict" in request.node.name else tool
            step: dict[str, Any] = {"calls": [{"name": tool, "arguments": arguments}]}
            if name == "test_structured_output_optional_param":  # the last of its models has another name
                script.add(step, step, step)
                step = {"calls": [{"name": "JokeDict", "arguments": arguments}]}
            if arguments is JOKE and (self.answers_in_text or name == "test_json_mode"):
                step = {"text": json.dumps(JOKE)}
                script._steps = []
            script.add(*([step] if name == "test_agent_loop" else [step] * 8))
        yield
        refusals = [each.refusal for each in server.emulator.requests[already:] if each.refusal]
        assert refusals == [], "the provider refused a request"

    @property
    def chat_model_class(self) -> type[ChatSegue]:
        return ChatSegue

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": self.model_name, "api_key": "any", "base_url": self.base_url, "max_tokens": 2000}

    @property
    def structured_output_kwargs(self) -> dict[str, Any]:
        return {"method": "json_schema"} if self.answers_in_text else {}

    @property
    def model_override_value(self) -> str:
        return self.other_model


class TestClaude(Conformance):
    pass


class TestGpt(Conformance):
    model_name, other_model = "openai/gpt-5.4", "gpt-5.4-mini"
    answers_in_text = True


class TestGemini(Conformance):
    model_name, other_model = "google/gemini-3.1-pro-preview", "gemini-3.5-flash"


class TestDeepSeek(Conformance):
    """A model that reads no media: segue replaces them and reports it."""

    model_name, other_model = "deepseek/deepseek-v4-pro", "deepseek-v4-flash"
