"""Responses over a WebSocket, with the openai SDK's own client, and what a message costs."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import httpx2
import openai
import pytest
import websockets.exceptions
import websockets.sync.client
from tests.gateway.running import KEYS, Running, config_text, make_gateway, running

from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.connections import guarded_protocols
from segue.gateway.service import Gateway
from segue.testing.emulator import EmulatedCall, Step, emulate, serve_in_thread

pytestmark = pytest.mark.filterwarnings("ignore:connect.. must be used as a context manager")  # by openai 3.49.0

TOOLS: Any = [{"type": "function", "name": "read", "parameters": {"type": "object"}}]
CLIENT_KEYS = {"KEY_A": "sgw-" + "a" * 40, "KEY_B": "sgw-" + "b" * 40}


@pytest.fixture
def gateway(tmp_path: Path) -> Generator[Running]:
    with running(store=f"sqlite:{tmp_path}/g.db") as made:
        yield made


@contextmanager
def connected(url: str, key: str = "client-key") -> Generator[Any]:
    with (
        openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as client,
        client.responses.connect(max_retries=0) as connection,
    ):
        yield connection


def create(connection: Any, **body: Any) -> tuple[Any, list[str]]:
    """Ask for a reply; give it, and the types of the events."""
    connection.response.create(**body)
    kinds: list[str] = []
    while True:
        event = connection.recv()
        kinds.append(event.type)
        if event.type in ("response.completed", "response.incomplete", "response.failed"):
            return event.response, kinds
        if event.type == "error":
            return event, kinds


@contextmanager
def raw(url: str, headers: dict[str, str] | None = None) -> Generator[Any]:
    address = url.replace("http://", "ws://") + "/v1/responses"
    with websockets.sync.client.connect(address, additional_headers=headers or {}) as connection:
        yield connection


def exchange(connection: Any, message: object) -> dict[str, Any]:
    connection.send(message if isinstance(message, (str, bytes)) else json.dumps(message))
    return json.loads(connection.recv(timeout=60))


@pytest.mark.parametrize("store", [False, True])
@pytest.mark.parametrize("model", ["m-anthropic", "m-gemini", "m-responses", "m-chat"])
def test_a_tool_loop_sends_new_items_only(gateway: Running, model: str, store: bool) -> None:
    gateway.upstream.emulator.script.add(
        Step(thinking="first thought", text="looking", calls=(EmulatedCall(name="read"),)),
        Step(thinking="second thought", text="answer one"),
        Step(text="answer two"),
    )
    with connected(gateway.url) as connection:
        first, kinds = create(connection, model=model, input="question one", tools=TOOLS, store=store)
        assert kinds[0] == "response.created"
        assert "response.function_call_arguments.done" in kinds
        call = next(item for item in first.output if item.type == "function_call")
        output: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "file"}
        second, _ = create(
            connection, model=model, input=[output], tools=TOOLS, store=store, previous_response_id=first.id
        )
        assert second.output_text == "answer one"
        third, _ = create(
            connection, model=model, input="question two", tools=TOOLS, store=store, previous_response_id=second.id
        )
        assert third.output_text == "answer two"
    last = gateway.upstream.emulator.requests[-1]
    assert [request.refusal for request in gateway.upstream.emulator.requests] == [None] * 3
    text = json.dumps(last.body)
    for piece in ("question one", "looking", "file", "answer one", "question two"):
        assert piece in text
    assert "previous_response_id" not in text
    assert text.count("ZW11") >= 1  # a signature of the emulator


def test_a_turn_on_the_connection_is_sent_like_the_same_history_over_http(gateway: Running) -> None:
    script = gateway.upstream.emulator.script
    steps = (Step(thinking="look", text="looking", calls=(EmulatedCall(name="read"),)), Step(text="end"))
    for model in ("m-anthropic", "m-gemini", "m-chat"):
        script.add(*steps)
        with connected(gateway.url) as connection:
            first, _ = create(connection, model=model, input="question", tools=TOOLS, store=False)
            call = next(item for item in first.output if item.type == "function_call")
            output: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "file"}
            create(connection, model=model, input=[output], tools=TOOLS, previous_response_id=first.id, store=False)
        sent = gateway.upstream.emulator.requests[-1].body
        script.add(Step(text="end"))
        items = [item.model_dump(exclude_none=True) for item in first.output]
        body = {
            "model": model,
            "input": [{"role": "user", "content": "question"}, *items, output],
            "tools": TOOLS,
            "store": False,
            "stream": True,
        }
        assert httpx2.post(f"{gateway.url}/v1/responses", json=body).status_code == 200
        assert gateway.upstream.emulator.requests[-1].body == sent


def test_a_prepared_request_is_continued(gateway: Running) -> None:
    with connected(gateway.url) as connection:
        prepared, kinds = create(
            connection, model="m-anthropic", input="the beginning", generate=False, store=False, tools=TOOLS
        )
        assert kinds[-1] == "response.completed"
        assert prepared.output == []
        assert gateway.upstream.emulator.requests == []
        reply, _ = create(
            connection, model="m-anthropic", input="the end", previous_response_id=prepared.id, store=False
        )
        assert reply.status == "completed"
    text = json.dumps(gateway.upstream.emulator.requests[-1].body)
    assert "the beginning" in text
    assert "the end" in text


def test_an_id_that_is_not_known_is_refused_so_that_the_client_sends_everything(gateway: Running) -> None:
    with connected(gateway.url) as connection:
        first, _ = create(connection, model="m-anthropic", input="hi", store=False)
        error, _ = create(connection, model="m-anthropic", input="on", previous_response_id="resp_x", store=False)
        assert (error.status, error.error.code) == (400, "previous_response_not_found")
        assert error.error.param == "previous_response_id"
        # The newest reply is still there; a continuation of it that fails removes it.
        gateway.upstream.emulator.script.add(Step(status=400, message="no such thing"))
        failed, _ = create(connection, model="m-anthropic", input="on", previous_response_id=first.id, store=False)
        assert failed.error.message.endswith("no such thing")
        gone, _ = create(connection, model="m-anthropic", input="on", previous_response_id=first.id, store=False)
        assert gone.error.code == "previous_response_not_found"
        again, _ = create(connection, model="m-anthropic", input="all of it", store=False)
        assert again.status == "completed"


def test_a_stored_reply_is_continued_on_another_connection(gateway: Running) -> None:
    with connected(gateway.url) as connection:
        first, _ = create(connection, model="m-anthropic", input="question one")
    with connected(gateway.url) as connection:
        create(connection, model="m-gemini", input="question two", previous_response_id=first.id)
    assert "question one" in json.dumps(gateway.upstream.emulator.requests[-1].body)


REFUSALS: dict[str, tuple[object, int, str | None]] = {
    "another lane": (
        {"type": "response.create", "stream_id": "a", "model": "m-anthropic", "input": "hi"},
        400,
        "websocket_stream_limit_reached",
    ),
    "a name that no lane has": ({"type": "response.create", "stream_id": "a b"}, 400, "invalid_stream_id"),
    "a reply in the background": ({"type": "response.create", "background": True}, 400, None),
    "an event that nobody knows": ({"type": "session.update"}, 400, "invalid_event"),
    "no JSON": ("{", 400, None),
    "no object": ("[]", 400, None),
    "bytes that are no text": (b"\xff\xfe", 400, None),
    "input that is none": ({"type": "response.create", "model": "m-anthropic", "input": 3}, 400, None),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_is_not_served_is_refused_and_the_connection_goes_on(gateway: Running, case: str) -> None:
    message, status, code = REFUSALS[case]
    with raw(gateway.url) as connection:
        error = exchange(connection, message)
        assert (error["type"], error["status"], error["error"]["code"]) == ("error", status, code)
        if isinstance(message, dict) and message.get("stream_id") == "a":
            assert error["stream_id"] == "a"
        started = exchange(connection, {"type": "response.create", "model": "m-anthropic", "input": "hi"})
        assert started["type"] == "response.created"


def test_steering_is_refused_in_its_own_form(gateway: Running) -> None:
    with raw(gateway.url) as connection:
        steer = {"previous_response_id": "resp_1", "input": "faster"}
        failed = exchange(connection, {"type": "response.steer", **steer})
    assert failed["type"] == "response.steer.failed"
    assert failed["error"]["code"] == "steering_not_supported"
    assert failed["steer"] == {"input": "faster", "previous_response_id": "resp_1"}


def test_the_key_is_checked_before_the_upgrade_and_at_each_message(tmp_path: Path) -> None:
    path = tmp_path / "gateway.toml"
    both = '[listen]\nkeys = ["env:KEY_A", "env:KEY_B"]'
    with emulate() as upstream:
        text = config_text(upstream.url, store=f"sqlite:{tmp_path}/g.db", more=both)
        path.write_text(text)
        made = Gateway(load_config(text), path=path, environment={**KEYS, **CLIENT_KEYS})
        with serve_in_thread(create_app(gateway=made)) as url:
            for headers in ({}, {"authorization": "Bearer wrong"}):
                with pytest.raises(websockets.exceptions.InvalidStatus) as caught, raw(url, headers):
                    pass
                response = caught.value.response
                assert response.status_code == 401
                assert json.loads(response.body or b"")["error"]["code"] == "invalid_api_key"
            with pytest.raises(websockets.exceptions.InvalidStatus) as foreign:
                raw(
                    url, {"authorization": f"Bearer {CLIENT_KEYS['KEY_A']}", "origin": "http://evil.example"}
                ).__enter__()
            assert foreign.value.response.status_code == 403
            with raw(url, {"authorization": f"Bearer {CLIENT_KEYS['KEY_A']}"}) as connection:
                assert exchange(connection, {"type": "response.steer"})["type"] == "response.steer.failed"
                path.write_text(text.replace('"env:KEY_A", ', ""))
                for _ in range(1200):  # the file is watched
                    answer = exchange(connection, {"type": "response.steer"})
                    if answer["type"] == "error":
                        break
                    time.sleep(0.05)
                assert answer["status"] == 401
                with pytest.raises(websockets.exceptions.ConnectionClosed):
                    connection.recv(timeout=60)


def test_one_client_cannot_continue_the_reply_of_another(tmp_path: Path) -> None:
    more = '[listen]\nkeys = ["env:KEY_A", "env:KEY_B"]'
    with emulate() as upstream:
        config = load_config(config_text(upstream.url, store=f"sqlite:{tmp_path}/g.db", more=more))
        made = Gateway(config, environment={**KEYS, **CLIENT_KEYS})
        with serve_in_thread(create_app(gateway=made)) as url, connected(url, CLIENT_KEYS["KEY_A"]) as one:
            first, _ = create(one, model="m-anthropic", input="a secret")
            with connected(url, CLIENT_KEYS["KEY_B"]) as other:
                error, _ = create(other, model="m-anthropic", input="tell", previous_response_id=first.id)
                assert error.error.code == "previous_response_not_found"


NAMED = '{"type": "response.create", "model": "m-responses", "input": "hi", '
FOREIGN = {
    "a conversation": NAMED + '"conversation": "conv_V"}',
    "an item without a type": '{"type": "response.create", "model": "m-responses", "input": [{"id": "msg_V"}]}',
    "an id that is the model": NAMED.replace("m-responses", "conv_V") + '"conversation": "conv_V"}',
    "a key twice": NAMED + '"conversation": "conv_V", "conversation": null}',
    "another form of a key": NAMED + '"Conversation": "conv_V"}',
    "an unknown id": NAMED + '"thing_id": "x"}',
    "a list of replies": NAMED + '"previous_response_id": ["resp_V"]}',
}


def test_a_frame_names_only_what_the_client_got(tmp_path: Path) -> None:
    more = '[listen]\nkeys = ["env:KEY_A", "env:KEY_B"]'
    with emulate() as upstream:
        config = load_config(config_text(upstream.url, store=f"sqlite:{tmp_path}/g.db", more=more))
        made = Gateway(config, environment={**KEYS, **CLIENT_KEYS})
        with serve_in_thread(create_app(gateway=made)) as url:
            with connected(url, CLIENT_KEYS["KEY_A"]) as one:
                first, _ = create(one, model="m-responses", input="hi", store=False)
                second, _ = create(one, model="m-responses", input="go on", store=False, previous_response_id=first.id)
                assert second.status == "completed"
            sent = len(upstream.emulator.requests)
            for case, text in FOREIGN.items():
                with raw(url, {"authorization": f"Bearer {CLIENT_KEYS['KEY_A']}"}) as connection:
                    answer = exchange(connection, text)
                assert (answer["type"], answer["status"]) == ("error", 400), case
            assert len(upstream.emulator.requests) == sent


LIMITS: dict[str, tuple[str, object, int]] = {
    "a message that is too large": ("body_megabytes = 0.001", {"type": "response.steer", "input": "x" * 2000}, 413),
    "too many values": ("values = 100", {"type": "response.steer", "input": [0] * 200}, 413),
    "too many items": (
        "messages = 20",
        {"type": "response.create", "model": "m-anthropic", "input": [{"role": "user", "content": "x"}] * 30},
        413,
    ),
}


@pytest.mark.parametrize("case", LIMITS)
def test_a_message_over_a_limit_is_refused(tmp_path: Path, case: str) -> None:
    line, message, status = LIMITS[case]
    with (
        running(store=f"sqlite:{tmp_path}/g.db", more=f"[limits]\n{line}") as made,
        raw(made.url) as connection,
    ):
        assert exchange(connection, message)["status"] == status
        with pytest.raises(websockets.exceptions.ConnectionClosed):
            connection.recv(timeout=60)
        assert made.gateway.intake.held == 0


def test_connections_are_counted_and_end_when_they_are_idle_or_old(tmp_path: Path) -> None:
    with running(store=f"sqlite:{tmp_path}/g.db", more="[limits]\nsockets_per_key = 1") as made, raw(made.url):
        with pytest.raises(websockets.exceptions.InvalidStatus) as caught, raw(made.url):
            pass
        assert caught.value.response.status_code == 429
    line = "[limits]\nsocket_idle_seconds = 0.2"
    with (
        running(store=f"sqlite:{tmp_path}/i.db", more=line) as made,
        raw(made.url) as connection,
        pytest.raises(websockets.exceptions.ConnectionClosedOK),
    ):
        connection.recv(timeout=60)
    line = "[limits]\nsocket_minutes = 0.001"
    with running(store=f"sqlite:{tmp_path}/h.db", more=line) as made, raw(made.url) as connection:
        error = json.loads(connection.recv(timeout=60))
        assert error["error"]["code"] == "websocket_connection_limit_reached"
        with pytest.raises(websockets.exceptions.ConnectionClosedOK):
            connection.recv(timeout=60)


def test_an_old_connection_is_not_called_idle_where_a_timer_is_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("segue.gateway.sockets.monotonic", lambda: 0.8 * monotonic())
    line = "[limits]\nsocket_minutes = 0.001"
    with running(store=f"sqlite:{tmp_path}/h.db", more=line) as made, raw(made.url) as connection:
        error = json.loads(connection.recv(timeout=60))
        assert error["error"]["code"] == "websocket_connection_limit_reached"


def test_a_client_that_leaves_ends_the_request_to_the_provider(tmp_path: Path) -> None:
    gateway: Gateway
    with emulate(Step(text="one two three four five six", pause=0.3)) as upstream:
        gateway = make_gateway(load_config(config_text(upstream.url, store=f"sqlite:{tmp_path}/g.db")))
        with serve_in_thread(create_app(gateway=gateway)) as url:
            with raw(url) as connection:
                connection.send(json.dumps({"type": "response.create", "model": "m-anthropic", "input": "hi"}))
                while json.loads(connection.recv(timeout=60))["type"] != "response.output_text.delta":
                    pass
            with raw(url) as other:  # the gateway serves on
                assert exchange(other, {"type": "response.steer"})["type"] == "response.steer.failed"
    rows = [json.loads(row.data) for _, _, row in gateway._rows.items()]  # pyright: ignore[reportPrivateUsage]
    assert [row["outcome"] for row in rows] == ["aborted"]
    assert gateway.intake.held == 0


def test_a_connection_outlives_the_time_of_a_head_and_is_counted_to_its_end(tmp_path: Path) -> None:
    more = "[limits]\nhead_seconds = 1\nconnections = 2"
    with emulate() as upstream:
        made = make_gateway(load_config(config_text(upstream.url, store=f"sqlite:{tmp_path}/g.db", more=more)))
        settings = guarded_protocols(lambda: made.config.limits)
        app = create_app(gateway=made)
        with serve_in_thread(app, protocol=settings["http"], sockets=settings["ws"]) as url:
            for _ in range(2):
                with raw(url) as one, raw(url) as two:
                    with pytest.raises((OSError, websockets.exceptions.WebSocketException)), raw(url):
                        pass
                    time.sleep(1.2)
                    for connection in (one, two):
                        assert exchange(connection, {"type": "response.steer"})["type"] == "response.steer.failed"
                for _ in range(1200):  # the server learns of the end a moment later
                    if not settings["http"].counts.all:
                        break
                    time.sleep(0.05)
                assert settings["http"].counts.all == 0


# -- what a turn costs -------------------------------------------------------------------------------------------------


def test_a_turn_costs_what_is_new_and_not_what_the_history_has(tmp_path: Path) -> None:
    with emulate() as upstream:
        config = load_config(config_text(upstream.url, store=f"sqlite:{tmp_path}/g.db"))
        for model in ("m-anthropic", "m-responses"):
            short, long = (asyncio.run(_count_calls(make_gateway(config), model, items)) for items in (4, 300))
            assert long <= 1.2 * short, (model, short, long)


async def _count_calls(gateway: Gateway, model: str, items: int) -> int:
    """Count the calls of functions that the gateway makes for one turn behind a history of so many items."""
    app, received = create_app(gateway=gateway), asyncio.Queue[Any]()
    sent = asyncio.Queue[Any]()
    scope = {
        "type": "websocket",
        "path": "/v1/responses",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"session_id", f"{model}-{items}".encode())],
        "client": ("127.0.0.1", 1),
    }
    await gateway.start()
    running = asyncio.create_task(app(scope, received.get, sent.put))
    received.put_nowait({"type": "websocket.connect"})
    await sent.get()

    async def turn(given: list[Any], previous: str | None) -> str:
        event = {"type": "response.create", "model": model, "input": given, "tools": TOOLS, "store": False}
        received.put_nowait(
            {"type": "websocket.receive", "text": json.dumps({**event, "previous_response_id": previous})}
        )
        while True:
            frame = json.loads((await sent.get())["text"])
            assert frame["type"] != "error", frame
            if frame["type"] == "response.completed":
                return frame["response"]["id"]

    history: list[Any] = []
    for number in range(items // 4):
        call = {"type": "function_call", "call_id": f"call_{number}", "name": "read", "arguments": "{}"}
        output = {"type": "function_call_output", "call_id": f"call_{number}", "output": "a file"}
        history += [{"role": "user", "content": f"question {number}"}, call, output]
        history.append({"role": "assistant", "content": f"answer {number}"})
    last = await turn([*history, {"role": "user", "content": "go"}], None)
    for number in range(3):
        last = await turn([{"role": "user", "content": f"next {number}"}], last)
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        for number in range(3):
            last = await turn([{"role": "user", "content": f"more {number}"}], last)
    finally:
        sys.setprofile(None)
    received.put_nowait({"type": "websocket.disconnect"})
    await running
    await gateway.close()
    return count
