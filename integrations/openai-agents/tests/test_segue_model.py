"""Agents of the SDK over segue's emulator: tools, streams, handoffs, sessions, switches of model and fallbacks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from agents import Agent, ModelSettings, RunConfig, Runner, SQLiteSession, function_tool, handoff, set_tracing_disabled
from openai import APIStatusError
from openai_agents_segue import SegueProvider, segue_model
from pydantic import BaseModel

from segue import UnknownModel
from segue.testing.emulator import EmulatorServer, emulate

MODELS = (
    "anthropic/claude-opus-5-5",
    "openai/gpt-5.4",
    "google/gemini-3.1-pro-preview",
    "deepseek/deepseek-v4-pro",
)
STEP = {"thinking": "I have to look.", "text": "Let me see.", "calls": [{"name": "look", "arguments": {"at": "sky"}}]}
set_tracing_disabled(True)


@function_tool
def look(at: str) -> str:
    """Look at something."""
    return f"{at}: blue"


@pytest.fixture
def server() -> Iterator[EmulatorServer]:
    with emulate() as running:
        yield running


def settings_for(server: EmulatorServer, *models: str) -> dict[str, Any]:
    by_provider = {name.partition("/")[0]: server.url for name in models}
    return {"api_key": dict.fromkeys(by_provider, "any"), "base_url": by_provider, "retry": 0}


def make(server: EmulatorServer, model: str, fallbacks: tuple[str, ...] = (), **fields: Any) -> Agent:
    found = segue_model(model, fallbacks=fallbacks, **settings_for(server, model, *fallbacks))
    chosen = ModelSettings(max_tokens=3000, reasoning={"effort": "low"})
    return Agent(name="Helper", model=found, instructions="Be short.", tools=[look], model_settings=chosen, **fields)


def ask(agent: Agent, given: Any, way: str, **more: Any) -> Any:
    if way == "run":
        return asyncio.run(Runner.run(agent, given, **more))

    async def read() -> Any:
        result = Runner.run_streamed(agent, given, **more)
        result.deltas = [
            event.data.delta
            async for event in result.stream_events()
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
        ]
        return result

    return asyncio.run(read())


def opaque_part(signature: str) -> str:
    """Give what a request has of a signature: of OpenAI it is an item, with the encrypted content."""
    return json.loads(signature)["encrypted_content"] if signature.startswith("{") else signature


def refusals(server: EmulatorServer) -> list[object]:
    return [each.refusal for each in server.emulator.requests]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("way", ["run", "stream"])
def test_a_tool_is_called_and_reasoning_comes_back_with_the_next_request(server, name, way):
    """The emulator signs reasoning, and refuses or drops what is not the one that it made."""
    server.emulator.script.add(STEP)
    result = ask(make(server, name), "What colour is the sky?", way)
    assert result.final_output.endswith("sky: blue")
    assert len(server.emulator.requests) == 2
    assert refusals(server) == [None, None]
    signatures = [
        value
        for item in result.raw_responses[0].output
        for piece in json.loads(item.segue["message"])["content"]
        for field, value in piece.items()
        if field.endswith("Signature")
    ]
    assert signatures
    assert server.emulator.withheld(server.emulator.requests[1], signatures) == ()
    if not name.startswith("deepseek"):  # it has no opaque state
        assert opaque_part(signatures[0]) in str(server.emulator.requests[1].body)
    assert result.context_wrapper.usage.input_tokens > 0
    if way == "stream":
        assert "".join(result.deltas).endswith("sky: blue")


@pytest.mark.parametrize("after", [name for name in MODELS if not name.startswith("anthropic")])
@pytest.mark.parametrize("way", ["run", "stream"])
def test_a_switch_of_model_and_back_keeps_the_signature_of_the_first(server, after, way, tmp_path):
    server.emulator.script.add(STEP)
    first, second = make(server, MODELS[0]), make(server, after)

    async def talk() -> None:
        session = SQLiteSession("one", tmp_path / "sessions.db")  # all of it goes through a file
        for agent, text in ((first, "The sky?"), (second, "The sea?"), (first, "The grass?")):
            if way == "run":
                await Runner.run(agent, text, session=session)
            else:
                async for _ in Runner.run_streamed(agent, text, session=session).stream_events():
                    pass

    asyncio.run(talk())
    assert refusals(server) == [None] * 4
    called, elsewhere, back = server.emulator.requests[1:]
    blocks = next(turn["content"] for turn in called.body["messages"] if turn["role"] == "assistant")
    signature = next(block["signature"] for block in blocks if block["type"] == "thinking")
    assert signature not in str(elsewhere.body)
    assert signature in str(back.body)


@pytest.mark.parametrize("way", ["run", "stream"])
def test_a_fallback_gets_the_history_projected_for_it(server, way):
    server.emulator.script.add(STEP)
    result = ask(make(server, MODELS[0]), "What colour is the sky?", "run")
    server.emulator.script.add({"status": 529, "model": "claude-opus-5-5"})
    items = [*result.to_input_list(), {"role": "user", "content": "And the sea?"}]
    answer = ask(make(server, MODELS[0], fallbacks=(MODELS[1],)), items, way)
    assert answer.final_output == "You wrote: And the sea?"
    assert server.emulator.requests[-1].body["model"] == "gpt-5.4"
    assert server.emulator.requests[-1].refusal is None


@pytest.mark.parametrize("way", ["run", "stream"])
def test_a_failure_is_raised(server, way):
    server.emulator.script.add({"status": 400, "message": "no"})
    with pytest.raises(Exception, match="no") as raised:
        ask(make(server, MODELS[1]), "Hi", way)
    if way == "run":
        assert isinstance(raised.value, APIStatusError)


@pytest.mark.parametrize("name", MODELS[:3])
def test_a_handoff_and_a_final_value(server, name):
    class Colour(BaseModel):
        name: str

    other = make(server, name, output_type=Colour)
    other.name = "Painter"
    agent = make(server, name, handoffs=[handoff(other)])
    server.emulator.script.add(
        {"calls": [{"name": "transfer_to_painter", "arguments": {}}]}, {"text": '{"name": "blue"}'}
    )
    result = ask(agent, "Paint.", "run")
    assert result.final_output == Colour(name="blue")
    assert result.last_agent.name == "Painter"
    assert refusals(server) == [None, None]


def test_items_that_were_filtered_out_do_not_come_back(server):
    server.emulator.script.add(STEP)
    result = ask(make(server, MODELS[0]), "What colour is the sky?", "run")
    kept = [
        item for item in result.to_input_list() if item.get("type") not in ("function_call", "function_call_output")
    ]
    ask(make(server, MODELS[0]), [*kept, {"role": "user", "content": "And?"}], "run")
    last = server.emulator.requests[-1]
    assert last.refusal is None
    assert "tool_use" not in str(last.body)
    assert "Let me see." in str(last.body)


def test_a_provider_finds_models_by_name(server):
    provider = SegueProvider(**settings_for(server, *MODELS))
    config = RunConfig(model_provider=provider)
    assert ask(Agent(name="Helper", model=MODELS[1]), "Hi", "run", run_config=config).final_output == "You wrote: Hi"
    assert provider.get_model(MODELS[1]) is provider.get_model(MODELS[1])
    with pytest.raises(UnknownModel):
        provider.get_model("no/such-model")
