"""No callback takes the event loop of a served gateway for long: WebSockets, histories by reference, the console.

`test_loop_steps` counts the steps of requests. Here all callbacks of the loop are counted, those of the server's
protocols too, in CPU time of their thread; the loop is asyncio's, whose callbacks can be seen.
"""

from __future__ import annotations

import gc
import json
import random
import threading
import time
from asyncio.events import Handle
from collections.abc import Generator
from contextlib import contextmanager
from math import log10
from pathlib import Path
from typing import Any, NamedTuple, final

import httpx2
import pytest
import uvicorn
import websockets.sync.client

from gateway.test_keyed_attacks import BODIES
from segue.cli.listening import listen
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.connections import draining_server, guarded_protocols
from segue.gateway.service import Gateway

KEY, ADMIN = "sgw-key-of-the-tests-of-steps", "sgw-key-of-the-operator-of-steps"
LONGEST = 0.1
"""CPU seconds of the longest callback that is allowed."""
CONFIG = """
[listen]
keys = ["env:KEY"]
admin_key = "env:ADMIN"
[providers.google]
base_url = "http://127.0.0.1:9/v1beta"
[models."echo"]
try = ["segue/echo"]
[models."gemini"]
try = ["google/gemini-3.1-pro-preview"]
[limits]
retries = 1
[state]
content = "full"
"""
CLIENT = httpx2.Client(timeout=300)


@final
class Watched(NamedTuple):
    """A gateway that is served, and the callbacks of its loop."""

    url: str
    callbacks: list[tuple[float, str]]

    def begin(self) -> None:
        """Forget what was counted; garbage of the test itself is not."""
        gc.collect()
        self.callbacks.clear()

    def check(self) -> None:
        """Check what was counted since then."""
        time.sleep(0.05)  # what follows the reply
        seconds, name = max(self.callbacks)
        assert seconds < LONGEST, name

    def ask(self, method: str, path: str, body: object = None, key: str = KEY) -> httpx2.Response:
        self.begin()
        content = None if body is None else json.dumps(body)
        reply = CLIENT.request(method, f"{self.url}{path}", content=content, headers={"x-api-key": key})
        assert reply.status_code in (200, 400, 404, 422, 502), reply.text[:300]
        self.check()
        return reply

    @contextmanager
    def connected(self) -> Generator[Any]:
        url = self.url.replace("http://", "ws://")
        headers = {"Authorization": f"Bearer {KEY}"}
        with websockets.sync.client.connect(f"{url}/v1/responses", additional_headers=headers, max_size=None) as made:
            yield made

    def say(self, connection: Any, message: dict[str, Any], previous: str | None = None) -> str | None:
        """Send a message; return the id of its reply."""
        named = message if previous is None else {**message, "previous_response_id": previous}
        self.begin()
        connection.send(json.dumps({"type": "response.create", **named}))
        while True:
            frame = json.loads(connection.recv(timeout=300))
            if frame["type"] in ("error", "response.completed", "response.failed"):
                self.check()
                return frame.get("response", {}).get("id")


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Watched]:
    callbacks: list[tuple[float, str]] = []
    threads: list[int] = []
    original: Any = Handle._run  # pyright: ignore[reportPrivateUsage]

    def measured(self: Any) -> Any:
        if threading.get_ident() not in threads:
            return original(self)
        began = time.thread_time()
        try:
            return original(self)
        finally:
            callbacks.append((time.thread_time() - began, repr(self)))

    monkeypatch.setattr(Handle, "_run", measured)
    environment = {"KEY": KEY, "ADMIN": ADMIN, "GEMINI_API_KEY": "k", "XDG_STATE_HOME": str(tmp_path)}
    gateway = Gateway(load_config(f'{CONFIG}store = "sqlite:{tmp_path}/g.db"'), environment=environment)
    gateway.warm_up()
    listener = listen("127.0.0.1", 0)
    protocols = guarded_protocols(lambda: gateway.config.limits)
    config = uvicorn.Config(create_app(gateway=gateway), loop="asyncio", log_level="critical", **protocols)
    server = draining_server(config)

    def serve() -> None:
        threads.append(threading.get_ident())
        server.run(sockets=[listener])

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        while not server.started:
            time.sleep(0.01)
        yield Watched(url, callbacks)
    finally:
        server.should_exit = True
        thread.join(60)


GO: dict[str, Any] = {
    "model": "echo",
    "input": "go",
    "tools": [{"type": "function", "name": "t", "parameters": {"type": "object", "properties": {}}}],
}
"""With another list of tools the whole history is read again."""


def items(count: int, first: str = "") -> list[Any]:
    return [{"role": ("user", "assistant")[at % 2], "content": f"{first}{at}"} for at in range(count)]


def test_a_short_message_that_continues_a_long_history_is_read_in_a_thread(watched: Watched) -> None:
    with watched.connected() as connection:
        previous = watched.say(connection, {"model": "echo", "input": items(6001)})
        previous = watched.say(connection, GO, previous)
        watched.say(connection, {"model": "echo", "input": items(1001, "n")}, previous)
    reply = watched.ask("POST", "/v1/responses", {"model": "echo", "input": items(6001, "h")}).json()
    body = {**GO, "previous_response_id": reply["id"]}
    assert watched.ask("POST", "/v1/responses", body).status_code == 200


def test_work_on_the_loop_would_be_seen(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segue.gateway.intake.Admission.weigh_history", lambda *_, **__: None)
    with watched.connected() as connection:
        previous = watched.say(connection, {"model": "echo", "input": items(12_001)})
        with pytest.raises(AssertionError):
            watched.say(connection, GO, previous)


def draw(seed: int, number: int) -> list[tuple[str, str, int]]:
    """Draw messages of all kinds and sizes."""
    source = random.Random(seed)
    most = {"items": 40_000, "parts": 100_000, "tools": 10_000, "metadata": 150_000, "text": 15_000_000}
    kinds = [kind for kind in most for _ in range(number)]
    return [(kind, "gemini", round(10 ** source.uniform(2, log10(most[kind])))) for kind in kinds]


def message_of(kind: str, size: int) -> dict[str, Any]:
    empty = {"type": "object", "properties": {}}
    match kind:
        case "items":
            return {"input": items(size)}
        case "parts":
            return {
                "input": [{"role": "user", "content": [{"type": "input_text", "text": str(at)} for at in range(size)]}]
            }
        case "tools":
            tools = [{"type": "function", "name": f"t{at}", "parameters": empty} for at in range(size)]
            return {"input": "a", "tools": tools}
        case "metadata":
            return {"input": "a", "metadata": {f"k{at}": "v" for at in range(size)}}
        case _:
            return {"input": "x" * size}


@pytest.mark.proof
@pytest.mark.parametrize(
    ("kind", "model", "size"),
    [("items", "echo", 40_000), ("items", "gemini", 40_000), ("parts", "gemini", 100_000), *draw(45, 2)],
)
def test_no_message_takes_the_loop_for_long(kind: str, model: str, size: int, watched: Watched) -> None:
    with watched.connected() as connection:
        watched.say(connection, {"model": model, **message_of(kind, size)})


@pytest.mark.proof
def test_no_history_by_reference_takes_the_loop_for_long(watched: Watched) -> None:
    with watched.connected() as connection:
        previous: str | None = None
        for number, count in enumerate((20_001, 1, 1, 10_001, 1)):
            given = {**(GO if number in (1, 4) else {"model": "echo"}), "input": items(count, f"{number} ")}
            previous = watched.say(connection, given, previous)
    reply = watched.ask("POST", "/v1/responses", {"model": "echo", "input": items(20_001, "h")}).json()
    named = {"model": "gemini", "input": "go", "previous_response_id": reply["id"]}
    for path in ("", "/input_tokens", "/compact"):
        watched.ask("POST", f"/v1/responses{path}", named)
    watched.ask("GET", f"/v1/responses/{reply['id']}")
    watched.ask("GET", f"/v1/responses/{reply['id']}/input_items?limit=100")


@pytest.mark.proof
@pytest.mark.parametrize(("kind", "size"), [("messages", 40_000), ("tools", 8_000), ("text", 5_000_000)])
def test_nothing_in_the_console_takes_the_loop_for_long(kind: str, size: int, watched: Watched) -> None:
    body = {"max_tokens": 9, "messages": [{"role": "user", "content": "x" * size}]}
    made = watched.ask("POST", "/v1/messages", {**(body if kind == "text" else BODIES[kind](1, size)), "model": "echo"})
    row = f"/segue/requests/{made.headers['x-segue-request-id']}"
    conversation = f"/segue/conversations/{watched.ask('GET', row).json()['conversation']}"
    for path in (row, f"{row}/content", f"{row}/view", conversation, f"{conversation}/session"):
        watched.ask("GET", path)
    watched.ask("POST", f"{row}/rows", {"rows": [*range(500)], "length": 2_000_000})
    watched.ask("POST", f"{row}/replay", {"model": "gemini"})
    watched.ask("POST", f"{row}/replay", {"model": "echo", "send": True}, key=ADMIN)
    watched.ask("POST", f"{conversation}/plan", {})
    for path in ("conversations", "requests", "requests?limit=500&q=nothing", "series", "costs"):
        watched.ask("GET", f"/segue/{path}")
