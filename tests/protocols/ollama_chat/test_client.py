"""The official client over loopback: it sends our requests, and we agree on the same bytes of a reply."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import ollama
import pytest
from hypothesis import given
from hypothesis import strategies as st

from projection.histories import TARGETS, make_options, ugly_contexts
from property_testing import scaled_examples
from protocols.every_protocol import vouched_for
from protocols.exchanges import OLLAMA
from protocols.ollama_chat.endpoints import QWEN
from protocols.ollama_chat.referee import complaints
from segue.conversation.content import ImageContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Context, Options, ToolDefinition
from segue.conversation.messages import AssistantMessage, StopReason, ToolResultMessage, UserMessage
from segue.errors import EmptyConversation, EncodeError
from segue.protocols.api import decode_response
from segue.protocols.ollama_chat.protocol import PROTOCOL as CODEC
from segue.requests.prepare import prepare

READABLE = [case for case in OLLAMA.names if case != "a-drawn-picture"]  # pictures in a reply stop the client itself
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class Server(ThreadingHTTPServer):
    """Answers every request with the same bytes, and keeps the requests."""

    daemon_threads = True
    reply: ClassVar[bytes] = b""
    status: ClassVar[int] = 200

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[Any] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.requests.append((self.path, json.loads(body)))
        self.send_response(self.server.status)
        self.send_header("content-type", "application/x-ndjson")
        self.send_header("content-length", str(len(self.server.reply)))
        self.end_headers()
        self.wfile.write(self.server.reply)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def client(server: Server) -> ollama.Client:
    return ollama.Client(host=server.url)


HISTORY = Context(
    system_prompt="Be brief.",
    messages=(
        UserMessage.of("Weather in Oslo?", ImageContent(data=PNG, mime_type="image/png")),
        AssistantMessage(
            content=(
                ThinkingContent(thinking="One call."),
                TextContent(text="I will look."),
                ToolCall(id="call_1", name="weather", arguments={"city": "Oslo"}),
            ),
            protocol="ollama-chat",
            provider="ollama",
            model="qwen3",
            stop_reason=StopReason.TOOL_USE,
        ),
        ToolResultMessage(tool_call_id="call_1", content=(TextContent(text="5 °C"),)),
    ),
    tools=(
        ToolDefinition(
            name="weather",
            description="Tell the weather.",
            parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        ),
    ),
)
OPTIONS = Options(
    max_tokens=64, temperature=0.5, stop=("END",), seed=1, thinking="low", output_schema={"type": "object"}
)


def test_the_client_sends_our_request_but_for_the_ids_it_does_not_know(server):
    Server.reply = json.dumps(OLLAMA.part("text", "response")).encode()
    request = prepare(HISTORY, QWEN.model, options=OPTIONS)
    arguments: Any = request.sdk_arguments()
    client(server).chat(**arguments)
    path, sent = server.requests[0]
    assert path == CODEC.path(QWEN, False)  # noqa: FBT003
    body = json.loads(request.content)
    for message in body["messages"]:
        message.pop("tool_call_id", None)
        for call in message.get("tool_calls", ()):
            del call["id"]
    assert sent == body


@pytest.mark.parametrize("case", READABLE)
def test_the_client_and_we_agree_on_a_whole_reply(server, case):
    Server.reply = json.dumps(OLLAMA.part(case, "response")).encode()
    theirs = client(server).chat(model="m", messages=[])
    agree(theirs, OLLAMA.expected(case))


def agree(theirs: ollama.ChatResponse, ours: AssistantMessage) -> None:
    assert (theirs.message.content or "") == ours.text()
    thinking = "".join(piece.thinking for piece in ours.content if piece.kind == "thinking")
    assert (theirs.message.thinking or "") == thinking
    calls = [(call.function.name, dict(call.function.arguments)) for call in theirs.message.tool_calls or ()]
    assert calls == [(call.name, call.arguments) for call in ours.tool_calls()]
    assert (theirs.model, theirs.done_reason) == (ours.response_model, ours.raw_stop_reason)
    counts = (theirs.prompt_eval_count or 0, theirs.eval_count or 0)
    assert counts == ((ours.usage.input, ours.usage.output) if ours.usage is not None else (0, 0))


def test_an_object_of_the_client_is_read_as_its_body_is(server):
    Server.reply = json.dumps(OLLAMA.part("text", "response")).encode()
    theirs = client(server).chat(model="m", messages=[])
    assert decode_response(theirs, protocol="ollama-chat", model=QWEN.model) == OLLAMA.expected("text")


@pytest.mark.parametrize("case", READABLE)
def test_chunks_of_the_client_fold_to_what_its_lines_do(server, case):
    Server.reply = OLLAMA.stream(case)
    chunks = list(client(server).chat(model="m", messages=[], stream=True))
    _, message = OLLAMA.decoded(chunks)
    ours = OLLAMA.expected(case)
    assert message.text() == ours.text()
    assert [(call.name, call.arguments) for call in message.tool_calls()] == [
        (call.name, call.arguments) for call in ours.tool_calls()
    ]
    assert (message.usage, message.stop_reason) == (ours.usage, ours.stop_reason)


def test_the_asynchronous_client_takes_the_same_arguments(server):
    Server.reply = OLLAMA.stream("text")
    arguments: Any = prepare(HISTORY, QWEN.model, options=Options(stream=True)).sdk_arguments()

    async def talk() -> list[Any]:
        talker = ollama.AsyncClient(host=server.url)
        chunks = [chunk async for chunk in await talker.chat(**arguments)]
        await talker._client.aclose()
        return chunks

    _, message = OLLAMA.decoded(asyncio.run(talk()))
    assert message.text() == OLLAMA.expected("text").text()
    assert server.requests[0][1]["stream"] is True


def test_an_error_line_ends_the_clients_stream_and_ours(server):
    lines = [*OLLAMA.part("text", "stream")[:2], {"error": "an error was encountered while running the model"}]
    Server.reply = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    with pytest.raises(ollama.ResponseError, match="while running"):
        list(client(server).chat(model="m", messages=[], stream=True))
    _, message = OLLAMA.decoded(lines)
    assert (message.stop_reason, message.text()) == (StopReason.ERROR, "Hello, naïve")


def test_a_field_without_a_client_argument_is_an_error_that_names_it():
    request = prepare(HISTORY, QWEN.model, options=Options(extra={"ollama-chat": {"truncate": False}}))
    assert request.body["truncate"] is False
    with pytest.raises(EncodeError, match="truncate"):
        request.sdk_arguments()


@scaled_examples(2)
@given(data=st.data())
def test_the_clients_types_accept_every_request_we_make(data):
    model = data.draw(st.sampled_from(TARGETS["ollama-chat"]))
    context, seed = data.draw(ugly_contexts(model)), data.draw(st.integers(0, 2**32))
    try:
        request = prepare(vouched_for(context), model, options=make_options(seed))
    except EmptyConversation:
        return
    assert complaints(request.body) == []


WRONG = {
    "a list as content": {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]},
    "an unknown key": {"messages": [{"role": "user", "content": "x", "name": "bob"}]},
    "arguments as text": {
        "messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}]
    },
    "a limit that is a text": {"options": {"num_predict": "5"}},
    "a schema of another type": {"tools": [{"type": "function", "function": {"parameters": {"type": "string"}}}]},
    "no model": {"model": ""},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_the_validator_is_strict(wrong):
    assert complaints({"model": "m", "messages": [], **wrong})
