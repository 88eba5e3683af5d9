"""SegueModel in agents of pydantic-ai, against segue's emulator of four protocols on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelMessagesTypeAdapter, NativeOutput, ToolOutput
from pydantic_ai.direct import model_request_sync
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, PartDeltaEvent, PartStartEvent
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import UsageLimits
from pydantic_ai_segue import SegueModel

from segue.testing.emulator import EmulatorServer, emulate

MODELS = (
    "anthropic/claude-opus-5-5",
    "openai/gpt-5.4",
    "google/gemini-3.1-pro-preview",
    "deepseek/deepseek-v4-pro",
)
CALL = {"name": "look", "arguments": {"at": "sky"}}
STEP = {"thinking": "I have to look.", "calls": [CALL]}


@pytest.fixture
def server() -> Iterator[EmulatorServer]:
    with emulate() as running:
        yield running


def make(server: EmulatorServer, model: str, **fields: Any) -> SegueModel:
    names = [model, *fields.get("fallbacks", ())]
    urls = {name.partition("/")[0]: server.url for name in names}
    settings = {"max_tokens": 2000, **fields.pop("settings", {})}
    return SegueModel(model, api_key=dict.fromkeys(urls, "any"), base_url=urls, retry=0, settings=settings, **fields)


def make_agent(model: Any, **fields: Any) -> Agent[None, Any]:
    agent = Agent(model, instructions="Be brief.", **fields)

    @agent.tool_plain
    def look(at: str) -> str:
        """Look at something."""
        return f"{at}: blue"

    return agent


def ask(agent: Agent[None, Any], prompt: str, way: str, history: list[ModelMessage] | None = None) -> Any:
    if way == "sync":
        return agent.run_sync(prompt, message_history=history)
    if way == "async":
        return asyncio.run(agent.run(prompt, message_history=history))

    async def read() -> Any:
        async with agent.run_stream(prompt, message_history=history) as result:
            async for _ in result.stream_output(debounce_by=None):
                pass
            return result

    return asyncio.run(read())


def signatures_of(messages: list[ModelMessage]) -> list[str]:
    found: list[str] = []
    for message in messages:
        for part in message.parts if isinstance(message, ModelResponse) else ():
            found += [getattr(part, "signature", None) or ""]
            found += [(getattr(part, "provider_details", None) or {}).get("thought_signature", "")]
    return [each for each in found if each]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("way", ["sync", "async", "stream"])
def test_reasoning_and_calls_come_back_with_the_next_requests_and_are_accepted(server, name, way):
    """The emulator signs reasoning, and refuses or drops what is not the one that it made."""
    server.emulator.script.add(STEP)
    agent = make_agent(make(server, name, settings={"thinking": "low"}))
    result = ask(agent, "What colour is the sky?", way)
    stored = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(result.all_messages()))
    ask(agent, "And the sea?", way, stored)
    assert [each.refusal for each in server.emulator.requests] == [None, None, None]
    assert server.emulator.refused_for_state() == []
    signatures = signatures_of(stored)
    assert signatures
    assert server.emulator.withheld(server.emulator.requests[-1], signatures) == ()
    if name.startswith(("anthropic", "google")):  # elsewhere, a signature is a field of an item
        assert all(each in str(server.emulator.requests[-1].body) for each in signatures)
    assert "Be brief." in str(server.emulator.requests[-1].body)
    assert "sky: blue" in str(server.emulator.requests[1].body)
    assert result.usage.input_tokens > 0


@pytest.mark.parametrize("name", MODELS[:3])
def test_a_streamed_reply_is_that_of_a_whole_one_and_its_events_add_up(server, name):
    step = {**STEP, "text": "Let me see."}
    server.emulator.script.add(step, step)
    model = make(server, name, settings={"thinking": "low"})
    messages: list[ModelMessage] = [ModelRequest.user_text_prompt("Hi")]
    given = ModelRequestParameters(function_tools=[ToolDefinition(name="look")])
    whole = model_request_sync(model, messages, model_request_parameters=given)
    seen: list[Any] = []

    async def read() -> ModelResponse:
        async with model.request_stream(messages, None, given) as streamed:
            async for event in streamed:
                seen.append(event)  # noqa: PERF401 - the loop is the point
            return streamed.get()

    summed = asyncio.run(read())
    shape = [(type(part), getattr(part, "content", None), part.provider_details is None) for part in whole.parts]
    assert [
        (type(part), getattr(part, "content", None), part.provider_details is None) for part in summed.parts
    ] == shape
    assert (summed.model_name, summed.provider_name) == (whole.model_name, whole.provider_name)
    assert summed.finish_reason == whole.finish_reason
    from_events: dict[int, Any] = {}
    for event in seen:
        if isinstance(event, PartStartEvent):
            from_events[event.index] = event.part
        elif isinstance(event, PartDeltaEvent):
            from_events[event.index] = event.delta.apply(from_events[event.index])
    for index, part in enumerate(summed.parts):
        assert getattr(from_events[index], "content", None) == getattr(part, "content", None)
        assert getattr(from_events[index], "signature", None) == getattr(part, "signature", None)
        assert (from_events[index].provider_details or None) == part.provider_details


@pytest.mark.parametrize("after", MODELS[1:])
def test_a_switch_of_model_and_back_keeps_the_signature_of_the_first(server, after):
    server.emulator.script.add(STEP)
    first, second = make_agent(make(server, MODELS[0], settings={"thinking": "low"})), make_agent(make(server, after))
    result = ask(first, "What colour is the sky?", "stream")
    signature = signatures_of(result.all_messages())[0]
    result = ask(second, "And the sea?", "stream", result.all_messages())
    assert signature not in str(server.emulator.requests[-1].body)
    ask(first, "And the grass?", "sync", result.all_messages())
    assert signature in str(server.emulator.requests[-1].body)
    assert [each.refusal for each in server.emulator.requests] == [None] * 4


@pytest.mark.parametrize("way", ["sync", "async", "stream"])
def test_a_fallback_gets_the_history_projected_for_it(server, way):
    server.emulator.script.add(STEP)
    history = ask(make_agent(make(server, MODELS[0], settings={"thinking": "low"})), "Hi", "sync").all_messages()
    server.emulator.script.add({"status": 529, "model": "claude-opus-5-5"})
    result = ask(make_agent(make(server, MODELS[0], fallbacks=[MODELS[1]])), "And the sea?", way, history)
    answer = result.all_messages()[-1]
    assert (answer.model_name, answer.provider_name, answer.text) == ("gpt-5.4", "openai", "You wrote: And the sea?")
    assert server.emulator.requests[-1].refusal is None


@pytest.mark.parametrize("way", ["sync", "stream"])
def test_a_failure_is_an_error_of_pydantic_ai(server, way):
    server.emulator.script.add({"status": 429, "message": "slow down"})
    with pytest.raises(ModelHTTPError) as caught:
        ask(make_agent(make(server, MODELS[1])), "Hi", way)
    assert caught.value.status_code == 429


@pytest.mark.parametrize("way", ["sync", "stream"])
def test_the_fallback_model_of_pydantic_ai_takes_over(server, way):
    server.emulator.script.add({"status": 529, "model": "claude-opus-5-5"})
    model = FallbackModel(make(server, MODELS[0]), make(server, MODELS[1]))
    assert ask(make_agent(model), "Hi", way).all_messages()[-1].model_name == "gpt-5.4"


class Colour(BaseModel):
    """A colour."""

    name: str


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("way", ["sync", "stream"])
def test_output_by_a_tool(server, name, way):
    server.emulator.script.add({"calls": [{"name": "final_result", "arguments": {"name": "blue"}}]})
    result = ask(make_agent(make(server, name), output_type=ToolOutput(Colour)), "Hi", way)
    output = result.output if way == "sync" else asyncio.run(result.get_output())
    assert output == Colour(name="blue")
    assert [each.refusal for each in server.emulator.requests] == [None]


@pytest.mark.parametrize("name", MODELS[:3])
def test_output_by_the_schema_of_the_provider(server, name):
    server.emulator.script.add({"text": '{"name": "blue"}'})
    assert ask(make_agent(make(server, name), output_type=NativeOutput(Colour)), "Hi", "sync").output.name == "blue"
    assert "'name'" in str(server.emulator.requests[0].body)


def test_tokens_are_counted_before_a_request(server):
    limits = UsageLimits(input_tokens_limit=1, count_tokens_before_request=True)
    with pytest.raises(Exception, match="input_tokens_limit"):
        make_agent(make(server, MODELS[0])).run_sync("Hi there", usage_limits=limits)


def test_a_direct_request(server):
    reply = model_request_sync(make(server, MODELS[1]), [ModelRequest.user_text_prompt("Hi")])
    assert reply.text == "You wrote: Hi"


def test_an_agent_can_be_tested_with_the_models_of_pydantic_ai(server):
    """`Agent.override` replaces the model, as the test helpers of pydantic-ai do."""
    agent = make_agent(make(server, MODELS[1]))
    with agent.override(model=TestModel(call_tools=["look"])):
        assert "sky" not in agent.run_sync("Hi").output
    assert server.emulator.requests == []


def test_no_secret_is_shown():
    assert "sk-secret" not in repr(SegueModel(MODELS[0], api_key="sk-secret"))
