"""Every wire that has a server: whole replies and streams, in pieces of any size, through both clients."""

from __future__ import annotations

import asyncio

import pytest

from client.both_clients import HELLO, ONCE, stream_reply
from client.wires import TEXT, WIRES, Wire
from segue.client.http.clients import AsyncClient, Client
from segue.client.http.settings import ClientSettings
from segue.client.http.single_requests import complete, stream
from segue.conversation.context import Options
from segue.conversation.events import Event
from segue.conversation.messages import StopReason
from segue.errors import EmptyConversation, UnknownModel
from segue.models.model import Model
from servers.script import Reply
from servers.scripted import ScriptedServer

CODECS = list(WIRES.values())
SETTINGS: ClientSettings = {"api_key": "a-key-of-nobody", "retry": ONCE, "timeout": 10.0}
each_wire = pytest.mark.parametrize("wire", CODECS, ids=lambda wire: wire.protocol)
both_clients = pytest.mark.parametrize("is_async", [False, True], ids=["threads", "tasks"])


@each_wire
@both_clients
@pytest.mark.parametrize("split", [0, 1, 7], ids=["by event", "by byte", "by seven bytes"])
def test_a_stream_is_read_however_it_is_split(server: ScriptedServer, wire: Wire, split: int, is_async: bool):
    server.reply(wire.stream(split=split))
    received = stream_reply(wire.model(server.url), is_async=is_async, api_key="a-key-of-nobody").check()
    assert received.events[-1].type == "done"
    assert received.message.text() == TEXT
    assert "".join(event.delta for event in received.events if event.type == "text_delta") == TEXT
    assert received.message.stop_reason == StopReason.STOP
    assert received.message.usage is not None
    assert received.message.usage.total_tokens == 12
    assert (received.message.provider, received.message.model) == (wire.provider, "a-model")
    assert [attempt.failure for attempt in received.attempts] == [None]


@each_wire
def test_a_whole_reply_is_read(server: ScriptedServer, wire: Wire):
    server.reply(wire.answer(), wire.answer())

    async def ask() -> object:
        async with AsyncClient(**SETTINGS) as client:
            return await client.complete(HELLO, wire.model(server.url))

    with Client(**SETTINGS) as client:
        message = client.complete(HELLO, wire.model(server.url))
    assert message.text() == TEXT
    assert message.timestamp is not None
    other = asyncio.run(ask())
    assert without_time(other) == without_time(message)


def without_time(message: object) -> object:
    from msgspec.structs import replace

    return replace(message, timestamp=None)  # pyright: ignore[reportArgumentType]


@each_wire
def test_a_whole_reply_and_the_end_of_a_stream_are_the_same(server: ScriptedServer, wire: Wire):
    server.reply(wire.answer(), wire.stream(split=3))
    with Client(**SETTINGS) as client:
        whole = client.complete(HELLO, wire.model(server.url))
        streamed = client.complete(HELLO, wire.model(server.url), options=Options(stream=True))
    assert streamed.content == whole.content
    assert streamed.usage == whole.usage


@each_wire
def test_events_that_arrived_together_can_be_taken_together(server: ScriptedServer, wire: Wire):
    server.reply(wire.stream(), wire.stream())
    with Client(**SETTINGS) as client:
        with client.stream(HELLO, wire.model(server.url)) as reply:
            one_by_one = [without_message(event) for event in reply]
        with client.stream(HELLO, wire.model(server.url)) as reply:
            together = [without_message(each) for event in reply for each in (event, *reply.take_ready())]
            assert reply.take_ready() == []
    assert together == one_by_one


def without_message(event: Event) -> object:
    return event.type if event.type in ("done", "error") else event


@each_wire
def test_a_connection_is_reused(server: ScriptedServer, wire: Wire):
    server.reply(*[wire.stream() for _ in range(3)], wire.answer(), Reply.json({"error": "no"}, status=400))
    with Client(**SETTINGS) as client:
        for _ in range(3):
            assert client.stream(HELLO, wire.model(server.url)).result().text() == TEXT
        assert client.complete(HELLO, wire.model(server.url)).text() == TEXT
        assert [event.type for event in client.stream(HELLO, wire.model(server.url))] == ["start", "error"]
    assert server.opened == 1


@each_wire
def test_a_compressed_reply_is_decompressed(server: ScriptedServer, wire: Wire):
    import gzip

    packed = Reply(
        headers={"content-type": wire.content_type, "content-encoding": "gzip"}, chunks=(gzip.compress(wire.body),)
    )
    server.reply(packed)
    assert stream_reply(wire.model(server.url), api_key="a-key-of-nobody").check().message.text() == TEXT


def test_a_document_instead_of_a_stream_is_read(server: ScriptedServer):
    wire = WIRES["openai-chat"]
    server.reply(wire.answer())
    received = stream_reply(wire.model(server.url)).check()
    assert received.types == ["start", "done"]
    assert received.message.text() == TEXT


def test_the_module_functions_need_no_client(server: ScriptedServer):
    wire = WIRES["anthropic-messages"]
    server.reply(wire.answer(), wire.stream())
    assert complete(HELLO, wire.model(server.url), api_key="a-key-of-nobody").text() == TEXT
    received = stream(HELLO, wire.model(server.url), api_key="a-key-of-nobody")
    assert received.result().text() == TEXT
    server.wait_until(lambda it: it.open == 0)


def test_wrong_arguments_raise_before_anything_is_sent(server: ScriptedServer):
    model = WIRES["openai-chat"].model(server.url)
    with Client() as client:
        with pytest.raises(EmptyConversation):
            client.stream(HELLO.__class__(), model)
        with pytest.raises(UnknownModel):
            client.stream(HELLO, model, fallback_models=("no-such-model-anywhere",))
    with pytest.raises(EmptyConversation):
        stream(HELLO.__class__(), model)
    assert server.requests == []


def test_a_request_has_a_user_agent_and_the_headers_of_its_model(server: ScriptedServer):
    wire = WIRES["openai-chat"]
    server.reply(wire.answer())
    model = Model("a-model", "mine", "openai-chat", base_url=server.url, headers={"X-Tenant": "blue"})
    with Client(headers={"X-Trace": "1"}) as client:
        client.complete(HELLO, model)
    headers = server.requests[0].headers
    assert headers["x-tenant"] == "blue"
    assert headers["x-trace"] == "1"
    assert headers["user-agent"].startswith("segue/")
    assert headers["content-type"] == "application/json"
    assert "authorization" not in headers


SESSIONS = {
    "openai": ("fireworks", {"session_id", "x-client-request-id", "x-session-affinity"}),
    "openrouter": ("openrouter", {"x-session-id"}),
    "none": ("groq", set()),
}


@pytest.mark.parametrize(("provider", "names"), SESSIONS.values(), ids=SESSIONS.keys())
def test_a_session_id_is_sent_in_the_providers_headers(server: ScriptedServer, provider: str, names: set[str]):
    server.reply(WIRES["openai-chat"].answer())
    model = Model("a-model", provider, "openai-chat", base_url=server.url)
    with Client() as client:
        client.complete(HELLO, model, options=Options(session_id="s-1"))
    assert {name for name, value in server.requests[0].headers.items() if value == "s-1"} == names


def test_a_hook_sees_the_request_and_may_replace_its_body(server: ScriptedServer):
    wire = WIRES["openai-chat"]
    server.reply(wire.answer(), wire.answer(), wire.answer())
    model = wire.model(server.url)
    seen: list[object] = []

    def look(request):
        seen.append(request.body["messages"])

    async def replace_later(request):
        await asyncio.sleep(0)
        return {**request.body, "metadata": {"mine": "2"}}

    async def ask() -> None:
        async with AsyncClient(on_request=replace_later) as client:
            await client.complete(HELLO, model)

    with Client(on_request=look) as client:
        client.complete(HELLO, model)
    with Client(on_request=lambda request: {**request.body, "metadata": {"mine": "1"}}) as client:
        client.complete(HELLO, model)
    asyncio.run(ask())
    bodies = [request.json() for request in server.requests]
    assert seen == [bodies[0]["messages"]]
    assert [body.get("metadata") for body in bodies] == [None, {"mine": "1"}, {"mine": "2"}]
