"""segue's codecs against a real server: requests it accepts, whole and streamed replies, tools, changes of the wire.

Nothing here depends on what the model says, only on what it does (see `tiny_model.py`): with tools it calls one, with
their results it answers.
"""

from __future__ import annotations

from itertools import permutations

import httpx2
import pytest
from msgspec.structs import replace

from segue import (
    AssistantMessage,
    Context,
    Event,
    Model,
    Options,
    Policy,
    Request,
    SseDecoder,
    StopReason,
    TextContent,
    ToolResultMessage,
    UserMessage,
    check,
    decode_error,
    dump,
    load,
    prepare,
)
from servers.llama import WEATHER, WIRES, LlamaServer

ASKED = Context(messages=(UserMessage.of("How is the weather?"),))
WITH_TOOL = Context(system_prompt="Be brief.", messages=ASKED.messages, tools=(WEATHER,))
WARM = Options(max_tokens=600, temperature=0.8)


def ask(context: Context, model: Model, options: Options = WARM) -> AssistantMessage:
    """Send a request and read the whole reply."""
    request = prepare(context, model, options=options)
    assert check(request.body, protocol=model.protocol, model=model) == []
    with httpx2.Client(timeout=60) as client:
        reply = client.post(request.url, content=request.content, headers=request.headers)
    assert reply.status_code == 200, reply.text
    return request.decode(reply.json())


def listen(context: Context, model: Model, options: Options = WARM) -> tuple[list[Event], AssistantMessage]:
    """Send a request and read the reply as it comes."""
    request = prepare(context, model, options=replace(options, stream=True))
    assert check(request.body, protocol=model.protocol, model=model) == []
    with (
        httpx2.Client(timeout=60) as client,
        client.stream("POST", request.url, content=request.content, headers=request.headers) as reply,
    ):
        assert reply.status_code == 200, reply.read()
        return read(request, list(reply.iter_bytes()))


def read(request: Request, chunks: list[bytes]) -> tuple[list[Event], AssistantMessage]:
    """Read a streamed reply's pieces."""
    framing, decoder, events = SseDecoder(), request.stream_decoder(), list[Event]()
    for chunk in chunks:
        for frame in framing.feed(chunk):
            events += decoder.feed(frame.data)
    for frame in framing.finish():
        events += decoder.feed(frame.data)
    return events + decoder.finish(), decoder.message


def outline(message: AssistantMessage) -> list[tuple[str, object]]:
    """Return the content without ids."""
    result: list[tuple[str, object]] = []
    for piece in message.content:
        match piece.kind:
            case "text":
                result.append(("text", piece.text))
            case "thinking":
                result.append(("thinking", piece.thinking))
            case "toolCall":
                result.append(("toolCall", (piece.name, piece.arguments)))
            case "native":
                result.append(("native", piece.block))
    return result


def answered(context: Context, reply: AssistantMessage) -> Context:
    """Add a reply and a result for each of its calls."""
    results = (
        ToolResultMessage(
            tool_call_id=call.id, tool_name=call.name, content=(TextContent(text=f"{position + 20} degrees"),)
        )
        for position, call in enumerate(reply.tool_calls())
    )
    return context.add(reply, *results)


@pytest.mark.parametrize("wire", WIRES)
def test_a_whole_reply_is_read(llama_server: LlamaServer, wire: str):
    reply = ask(ASKED, llama_server.model(wire))
    assert [piece.kind for piece in reply.content] == ["thinking", "text"]
    assert (reply.protocol, reply.provider, reply.model) == (wire, "llama.cpp", "tiny")
    assert reply.stop_reason == StopReason.STOP
    assert reply.diagnostics == ()
    assert reply.usage is not None
    assert reply.usage.output > 0
    assert reply.usage.input + reply.usage.cache_read > 5


@pytest.mark.parametrize("wire", WIRES)
def test_a_stream_has_the_content_of_the_whole_reply(llama_server: LlamaServer, wire: str):
    model, cold = llama_server.model(wire), replace(WARM, temperature=0.0)
    events, message = listen(WITH_TOOL, model, cold)
    assert outline(message) == outline(ask(WITH_TOOL, model, cold))
    assert [event.type for event in events].count("done") == 1
    assert events[0].type == "start"
    assert events[-1].type == "done"
    assert events[-1].message == message
    assert "".join(event.delta for event in events if event.type == "text_delta") == message.text()
    assert "".join(event.delta for event in events if event.type == "thinking_delta") == thoughts(message)


def thoughts(message: AssistantMessage) -> str:
    return "".join(piece.thinking for piece in message.content if piece.kind == "thinking")


@pytest.mark.parametrize("wire", WIRES)
def test_every_split_of_a_stream_gives_the_same_events(llama_server: LlamaServer, wire: str):
    request = prepare(WITH_TOOL, llama_server.model(wire), options=replace(WARM, stream=True))
    with httpx2.Client(timeout=60) as client:
        body = client.post(request.url, content=request.content, headers=request.headers).read()
    whole = read(request, [body])
    for size in (1, 7, 64):
        assert read(request, [body[at : at + size] for at in range(0, len(body), size)]) == whole


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("first", "second"), [*permutations(WIRES, 2), *zip(WIRES, WIRES, strict=True)])
def test_a_tool_call_and_its_result_use_different_protocols(
    llama_server: LlamaServer, first: str, second: str, streamed: bool
):
    def ask_model(context: Context, wire: str) -> AssistantMessage:
        model = llama_server.model(wire)
        return listen(context, model)[1] if streamed else ask(context, model)

    call = ask_model(WITH_TOOL, first)
    assert call.stop_reason == StopReason.TOOL_USE
    assert {made.name for made in call.tool_calls()} == {"get_weather"}
    assert all(isinstance(made.arguments.get("city"), str) for made in call.tool_calls())
    context = answered(WITH_TOOL, call)
    answer = ask_model(context, second)
    assert answer.stop_reason == StopReason.STOP
    assert answer.text().strip()
    context = load(dump(context.add(answer, UserMessage.of("And tomorrow?"))))
    again = ask_model(context, first)
    assert again.stop_reason == StopReason.TOOL_USE


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", WIRES)
def test_a_reply_is_sent_back_verbatim(llama_server: LlamaServer, wire: str, streamed: bool):
    model = llama_server.model(wire)
    call = listen(WITH_TOOL, model)[1] if streamed else ask(WITH_TOOL, model)
    request = prepare(answered(WITH_TOOL, call), model)
    assert not request.report.changes
    assert request.projection.context.messages[1] is call
    assert thoughts(call) in str(request.body)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", WIRES)
def test_a_reply_cut_off_within_a_call_is_kept_and_can_be_replayed(
    llama_server: LlamaServer, wire: str, streamed: bool
):
    model, options = llama_server.model(wire), replace(WARM, temperature=0.0)
    calls, reasons = 0, set[StopReason]()
    for limit in range(24, 64, 8):
        tight = replace(options, max_tokens=limit)
        reply = listen(WITH_TOOL, model, tight)[1] if streamed else ask(WITH_TOOL, model, tight)
        calls += len(reply.tool_calls())
        reasons.add(reply.stop_reason)
        assert ask(answered(WITH_TOOL, reply).add(UserMessage.of("Go on.")), model).content
    assert calls > 0
    assert StopReason.LENGTH in reasons or wire == "openai-responses"  # which calls itself complete at the limit


@pytest.mark.parametrize("wire", WIRES)
def test_an_overflow_error_is_classified(llama_server: LlamaServer, wire: str):
    long = Context(messages=(UserMessage.of("word " * llama_server.window),))
    request = prepare(long, llama_server.model(wire), options=WARM, policy=Policy(fit=None))
    with httpx2.Client(timeout=60) as client:
        reply = client.post(request.url, content=request.content, headers=request.headers)
    error = decode_error(reply.json(), protocol=wire, status=reply.status_code)
    assert (error.status, error.type) == (400, "exceed_context_size_error")
    assert "exceeds the available context size" in error.message
