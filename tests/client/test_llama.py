"""A real server: complete, stream, call a tool and go on, over three wires and from one to the next."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import permutations
from typing import Literal

import pytest
from msgspec.structs import replace

from client.both_clients import Received, idle_connections
from segue.client.http.clients import AsyncClient, Client
from segue.client.http.settings import ClientSettings
from segue.client.session.conversation import AsyncConversation, Conversation
from segue.conversation.content import TextContent
from segue.conversation.context import Context, Options
from segue.conversation.messages import AssistantMessage, Message, StopReason, UserMessage
from segue.errors import RequestFailed
from segue.failures.failure import FailureKind
from segue.histories.sessions import read_session
from segue.models.model import Model
from segue.projection.policy import Policy
from servers.llama import WEATHER, WIRES, LlamaServer

ASKED = Context(messages=(UserMessage.of("How is the weather?"),))
WARM = Options(max_tokens=600, temperature=0.8)
PATIENT: ClientSettings = {"timeout": 60.0, "retry": 0}
ENDS = (StopReason.STOP, StopReason.LENGTH, StopReason.TOOL_USE)

each_wire = pytest.mark.parametrize("protocol", WIRES)


@each_wire
def test_a_whole_reply(llama_server: LlamaServer, protocol: str):
    with Client(**PATIENT) as client:
        message = client.complete(ASKED, llama_server.model(protocol), options=WARM)
    assert message.stop_reason in ENDS
    assert message.content
    assert message.usage is not None
    assert message.usage.output > 0
    assert (message.protocol, message.provider, message.model) == (protocol, "llama.cpp", "tiny")


@each_wire
def test_the_server_counts_what_it_reads(llama_server: LlamaServer, protocol: str):
    with Client(**PATIENT) as client:
        counted = client.count_tokens(ASKED, llama_server.model(protocol), options=WARM)
        message = client.complete(ASKED, llama_server.model(protocol), options=WARM)
    assert message.usage is not None
    assert counted == message.usage.input + message.usage.cache_read


@each_wire
def test_a_stream(llama_server: LlamaServer, protocol: str):
    with Client(**PATIENT) as client:
        for _ in range(2):
            stream = client.stream(ASKED, llama_server.model(protocol), options=WARM)
            events = list(stream)
            received = Received(events, stream.message, stream.attempts, idle_connections(client)).check()
            assert received.events[-1].type == "done", (received.message.error_message, received.attempts)
            assert received.message.stop_reason in ENDS


@each_wire
def test_many_concurrent_async_streams(llama_server: LlamaServer, protocol: str):
    async def run() -> list[AssistantMessage]:
        async with AsyncClient(**PATIENT) as client:
            model = llama_server.model(protocol)
            streams = [client.stream(ASKED, model, options=WARM) for _ in range(12)]
            messages = await asyncio.gather(*(stream.result() for stream in streams))
            assert all(idle_connections(client))
            return messages

    assert all(message.stop_reason in ENDS for message in asyncio.run(run()))


@each_wire
def test_a_stream_is_closed_early(llama_server: LlamaServer, protocol: str):
    with Client(**PATIENT) as client:
        with client.stream(ASKED, llama_server.model(protocol), options=WARM) as stream:
            for event in stream:
                if event.type.endswith("_delta"):
                    break
        assert stream.message.stop_reason == StopReason.ABORTED
        assert idle_connections(client) == []
        assert client.complete(ASKED, llama_server.model(protocol), options=WARM).stop_reason in ENDS


def converse_over(conversation: Conversation, models: list[Model], *, streams: bool) -> None:
    """Let each model answer in turn, and answer what it calls."""
    for model in models:
        conversation.switch(model)
        answer = conversation.stream("Once more.").result() if streams else conversation.ask("Once more.")
        assert (answer.protocol, answer.model) == (model.protocol, "tiny")
        calls = conversation.pending_calls()
        for call in calls:
            assert isinstance(call.arguments.get("city"), str) or answer.stop_reason == StopReason.LENGTH
            conversation.add_result(call, "Sunny, 20 degrees.")
        if calls:
            assert conversation.ask().stop_reason in ENDS


@pytest.mark.parametrize("order", list(permutations(WIRES)), ids=" > ".join)
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_a_tool_is_called_over_each_protocol_in_one_conversation(
    llama_server: LlamaServer, order: tuple[str, ...], streams: bool, tmp_path
):
    models = [llama_server.model(protocol) for protocol in order]
    path = tmp_path / "session.jsonl"
    with Client(**PATIENT) as client:
        with Conversation(models[0], client=client, tools=[WEATHER], path=path, options=WARM) as conversation:
            converse_over(conversation, models, streams=streams)
            kept = conversation.context
        called = [
            call.name for message in kept.messages if message.role == "assistant" for call in message.tool_calls()
        ]
        assert set(called) == {"get_weather"}
        with Conversation(models[0], client=client, path=path, options=WARM) as conversation:
            assert conversation.context == kept
            assert conversation.ask("And now?").stop_reason in ENDS
    assert read_session(path) == conversation.context


def test_an_async_conversation_calls_a_tool(llama_server: LlamaServer):
    async def run() -> Context:
        async with AsyncClient(**PATIENT) as client:
            models = [llama_server.model(protocol) for protocol in WIRES]
            async with AsyncConversation(models[0], client=client, tools=[WEATHER], options=WARM) as conversation:
                for model in models:
                    await conversation.ask("Once more.", model=model)
                    for call in conversation.pending_calls():
                        conversation.add_result(call, "Sunny.")
                return conversation.context

    written = [message.protocol for message in asyncio.run(run()).messages if message.role == "assistant"]
    assert written == list(WIRES)


@each_wire
def test_an_overflow_of_an_unknown_window_leads_to_one_shorter_request(llama_server: LlamaServer, protocol: str):
    unknown = replace(llama_server.model(protocol), context_window=0)
    history: list[Message] = []
    for number in range(30):
        history += (UserMessage.of(f"question {number}"), AssistantMessage(content=(TextContent(text="word " * 200),)))
    long = Context(messages=(*history, UserMessage.of("the last question")))
    with Client(**PATIENT) as client:
        stream = client.stream(long, unknown, options=WARM)
        stream.result()
    assert [attempt.reason for attempt in stream.attempts] == ["first", "shortened"]
    assert stream.attempts[1].window is not None
    assert stream.attempts[1].window < llama_server.window


@each_wire
def test_an_overflow_leads_to_a_model_with_a_larger_window(llama_server: LlamaServer, protocol: str):
    crowded = llama_server.model(protocol)
    long = Context(messages=(UserMessage.of("word " * llama_server.window),))
    with Client(**PATIENT) as client, pytest.raises(RequestFailed) as raised:
        client.complete(long, crowded, options=WARM, policy=Policy(fit=None))
    failure = raised.value.failure
    assert failure.kind == FailureKind.OVERFLOW
    assert failure.limit == llama_server.window
    assert (failure.used or 0) > llama_server.window


@dataclass
class Verdict:
    """What even a model of random weights can answer, because a grammar leaves it nothing else."""

    mood: Literal["good", "bad"]
    is_sure: bool


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_an_answer_of_a_type(llama_server: LlamaServer, streams: bool):
    model = llama_server.model("openai-chat")  # the server has no schema on its other endpoints, and ignores one
    with Client(**PATIENT) as client:
        if streams:
            answer = client.stream(ASKED, model, options=WARM, output=Verdict).answer()
        else:
            answer = client.complete(ASKED, model, options=WARM, output=Verdict)
    assert answer.asked == "native schema"
    assert len(answer.attempts) == 1
    assert isinstance(answer.value, Verdict)
