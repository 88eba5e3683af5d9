"""A random conversation of a client with Claude through a gateway: turns, tool loops, and what clients do to histories.

The upstream is the strict emulator, which accepts thinking only behind what it was made after.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Generator
from contextlib import ExitStack, contextmanager
from typing import Any, cast, final
from unittest.mock import patch

import httpx2

from gateway.bound_clients import WIRES, Called, Entry, Question, WireClient
from gateway.raw_clients import RAW_WIRES
from gateway.running import config_text, make_gateway
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.transport import TAP
from segue.testing.emulator import EmulatedCall, Emulator, EmulatorServer, Step, emulate, serve_in_thread

OPUS = "claude-opus-5-5"
MODELS = (OPUS, OPUS, OPUS, "claude-sonnet-5-5", "claude-opus-5", "m-responses", "m-chat", "m-gemini")
"""Two models that bind thinking to its prefix, the second also to the account; one that does not; three of others."""
_LONGEST = 24
"""Entries of a history; behind that, the conversation begins again, so that a step stays cheap."""
ACTIONS = (
    *("none",) * 6,
    *("date", "tools", "edit", "rewind", "compact", "switch", "back", "restart", "quiet", "cut", "import"),
)


class Served:
    """A gateway in front of an emulator, which can be restarted."""

    def __init__(self, store: str, upstream: EmulatorServer) -> None:
        self.store = store
        self.upstream = upstream
        self.url = ""
        self._stack = ExitStack()
        self.restart()

    def restart(self) -> None:
        """Start the gateway, again."""
        self._stack.close()
        gateway = make_gateway(load_config(config_text(self.upstream.url, store=self.store)))
        self.url = self._stack.enter_context(serve_in_thread(create_app(gateway=gateway)))

    def connect(self, wire: str) -> WireClient:
        """Make a client of the gateway."""
        return WIRES[wire](self.url)

    def close(self) -> None:
        """Stop the gateway."""
        self._stack.close()


class Direct(Served):
    """A gateway in front of an emulator that are called, without a socket: a request costs a tenth of the time."""

    def __init__(self, store: str, emulator: Emulator) -> None:
        self._loop = asyncio.new_event_loop()
        self._transport = _ToEmulator(emulator)
        super().__init__(store, EmulatorServer("http://emulator", emulator))

    def restart(self) -> None:
        """Start the gateway, again."""
        self._stack.close()
        with patch("segue.gateway.runtime.AiohttpTransport", lambda **_: self._transport):
            gateway = make_gateway(load_config(config_text(self.upstream.url, store=self.store)))
        self.url = "http://127.0.0.1"
        self._app = create_app(gateway=gateway)
        life = self._app.router.lifespan_context(self._app)
        self._loop.run_until_complete(life.__aenter__())
        self._stack.callback(lambda: self._loop.run_until_complete(life.__aexit__(None, None, None)))

    def connect(self, wire: str) -> WireClient:
        """Make a client of the gateway."""
        return RAW_WIRES[wire](
            self.url, httpx2.Client(base_url=self.url, transport=httpx2.MockTransport(self._respond))
        )

    def _respond(self, request: httpx2.Request) -> httpx2.Response:
        sent: list[Any] = []
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method,
            "scheme": "http",
            "path": request.url.path,
            "raw_path": request.url.raw_path,
            "query_string": request.url.query,
            "headers": [(name.lower(), value) for name, value in request.headers.raw],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        given = [{"type": "http.request", "body": request.read(), "more_body": False}]
        never = self._loop.create_future()

        async def receive() -> Any:
            return given.pop() if given else await never

        async def send(message: Any) -> None:
            sent.append(message)

        self._loop.run_until_complete(self._app(scope, receive, send))
        body = b"".join(message.get("body", b"") for message in sent[1:])
        return httpx2.Response(sent[0]["status"], headers=sent[0]["headers"], content=body)

    def close(self) -> None:
        """Stop the gateway."""
        super().close()
        self._loop.close()


@final
class _ToEmulator(httpx2.AsyncBaseTransport):
    """Calls an emulator."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.raw_path.decode()
        reply = self._emulator.respond(request.method, path, dict(request.headers), await request.aread())
        return httpx2.Response(reply.status, headers=reply.headers, stream=_Body(reply.body), request=request)


@final
class _Body(httpx2.AsyncByteStream):
    """The body of a reply, for the gateway and for a client that gets it as it is."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if (tap := TAP.get()) is not None:
            tap(self._data)
        yield self._data


@contextmanager
def served(store: str) -> Generator[Served]:
    """Run an emulator and a gateway."""
    with emulate() as upstream:
        made = Served(store, upstream)
        try:
            yield made
        finally:
            made.close()


@contextmanager
def called(store: str, *, strict: bool = True) -> Generator[Served]:
    """Make an emulator and a gateway that are called without a socket.

    With `strict` the emulator checks whole bodies too, which takes more time than all the rest.
    """
    made = Direct(store, Emulator(strict=strict))
    try:
        yield made
    finally:
        made.close()


class Walk:
    """One conversation."""

    def __init__(self, wire: str, server: Served, seed: int) -> None:
        self.random = random.Random(f"{wire} {seed}")
        self.wire = wire
        self.seed = seed
        self.server = server
        self.emulator = server.upstream.emulator
        self.first = len(self.emulator.requests)
        self.client: WireClient = server.connect(wire)
        self.history: list[Entry] = []
        self.day, self.tools, self.model = 1, ("read",), OPUS
        self.thinks = True
        self.is_continued = False
        """Whether the last reply paused, so that this one does not."""
        self.number = 0
        self.pending: dict[int, list[Called]] = {}
        """The calls of each reply, by the identity of its items."""
        self.signed: list[tuple[list[Any], tuple[str, ...]]] = []
        """The items of each reply, and what other models than Claude signed in it.

        A client that keeps nothing but texts shows a reply by its text and by what is before it. So a reply to an
        edited message does not count.
        """
        self.dropped: set[str] = set()
        self.told: dict[str, tuple[int, list[Any]]] = {}
        """What the server dropped: how often the gateway had started again by then, and the reply that told it."""
        self.starts = 0
        self.bound = len(self.emulator.ledger.bound())
        self.keeps_state = wire not in ("ollama", "chat, ids only") or server.store != "none"
        """Whether all state comes back: without a store, these clients have no field for it, or not in each reply."""
        self.imported: set[str] = set()
        """Signatures of replies that the gateway did not see."""
        self.allowed = 0
        """Requests that may be refused: one for each time that the prefix of some reasoning was not known."""

    def close(self) -> None:
        """Close the client."""
        self.client.close()

    def run(self, steps: int) -> None:
        """Do so many things, each followed by a request, and check the laws after each of them."""
        for _ in range(steps):
            if len(self.history) > _LONGEST:
                self.history.clear()
            self.act(self.random.choice(ACTIONS))
            self.turn()

    def act(self, action: str) -> None:
        """Do what clients and users do to a conversation."""
        chance, history = self.random, self.history
        users = [at for at, entry in enumerate(history) if entry.kind == "user"]
        match action:
            case "date":
                self.day += 1
            case "tools":
                self.tools = chance.choice((("read",), ("read", "write"), ("write", "read")))
            case "edit" if users:
                at = chance.choice(users)
                history[at] = self.client.user(f"edited {self.seed} {self.next()}")
                self.forget_reply(at)
            case "rewind" if users:
                del history[chance.choice(users) :]
            case "compact" if len(users) > 1:
                kept = chance.choice(users[1:])
                history[:kept] = [self.client.user(f"summary {self.seed} {self.next()}")]
            case "cut":
                results = [at for at, entry in enumerate(history) if entry.kind == "results"]
                if results:
                    self.shorten(chance.choice(results))
            case "switch":
                self.model = chance.choice(MODELS)
            case "back":
                self.model = OPUS
            case "quiet":
                self.thinks = not self.thinks
            case "restart" if chance.random() < 0.4:
                self.restart()
            case "import" if self.wire == "messages" and chance.random() < 0.4:
                self.import_session()
            case _:
                pass

    def import_session(self) -> None:
        """Continue a session that was held with the provider itself, with other instructions."""
        self.history.clear()
        messages: list[Any] = []
        for _ in range(self.random.choice((1, 2))):
            messages.append({"role": "user", "content": f"imported {self.seed} {self.next()}"})
            body = {"model": OPUS, "max_tokens": 99, "system": "An agent.", "messages": messages}
            reply = self.emulator.respond(
                "POST",
                "/v1/messages",
                {"x-api-key": "emulator", "anthropic-version": "2023-06-01"},
                json.dumps(body).encode(),
                step=Step(thinking="Hm.", text=f"answer {self.next()}"),
                is_recorded=False,
            )
            content = json.loads(reply.body)["content"]
            self.imported.add(content[0]["signature"])
            self.history.append(Entry("user", messages[-1:]))
            messages.append({"role": "assistant", "content": content})
            self.history.append(Entry("reply", messages[-1:]))
        self.allowed += 1

    def shorten(self, at: int) -> None:
        """Replace the results of a tool, as clients do that clear old ones."""
        calls = self.calls_before(at)
        if calls:
            self.history[at] = self.client.results(calls, "[cleared]")
            self.forget_reply(at)

    def forget_reply(self, at: int) -> None:
        """Do not count what was signed in the reply to a message."""
        for entry in self.history[at + 1 : at + 2]:
            self.signed = [(items, tokens) for items, tokens in self.signed if items is not entry.items]

    def calls_before(self, at: int) -> list[Called]:
        """Give the calls that the results at a place answer."""
        return self.pending.get(id(self.history[at - 1].items), []) if at else []

    def restart(self) -> None:
        """Restart the gateway, and connect to it again."""
        self.client.close()
        self.starts += 1
        self.server.restart()
        self.client = self.server.connect(self.wire)

    def next(self) -> int:
        """Count: no two texts are the same."""
        self.number += 1
        return self.number

    def turn(self) -> None:
        """Say something, and answer the calls of the reply, sometimes after a change in the middle of the loop."""
        self.history.append(self.client.user(f"question {self.seed} {self.next()}"))
        for left in range(self.random.choice((0, 0, 1, 2)), -1, -1):
            calls = self.ask(calls=left > 0)
            if self.is_paused():
                calls = self.ask(calls=False)
            if not calls:
                return
            self.history.append(self.client.results(calls, f"result {self.seed} {self.next()}"))
            if self.random.random() < 0.15:
                self.act(self.random.choice(("date", "tools", "restart", "switch")))

    def is_paused(self) -> bool:
        """Whether the provider paused in a tool of its own, and the client sees that: it sends the reply back."""
        if self.wire != "messages":
            return False
        content = self.history[-1].items[-1]["content"]
        answered = {block.get("tool_use_id") for block in content}
        return any(block["type"] == "server_tool_use" and block["id"] not in answered for block in content)

    def ask(self, *, calls: bool) -> list[Called]:
        """Send the history; the reply is added to it."""
        step = Step(
            thinking=f"thought {self.seed} {self.next()}" if self.thinks else None,
            text=None if calls else f"answer {self.seed} {self.next()}",
            calls=(EmulatedCall(name=self.tools[0], arguments={"n": self.number}),) if calls else (),
            paused=not calls and not self.is_continued and self.random.random() < 0.1,
        )
        self.is_continued = step.paused
        self.emulator.script.add(step)
        system = f"Be brief. Today is day {self.day} of {self.seed}."
        question = Question(self.model, system, self.tools, stream=self.random.random() < 0.5)
        before, bound = len(self.emulator.requests), len(self.emulator.ledger.bound())
        signed = len(self.emulator.ledger.items.made())
        items, made = self.client.ask(question, [item for entry in self.history for item in entry.items])
        self.history.append(Entry("reply", items))
        self.pending[id(items)] = made
        if step.paused and not self.is_paused():
            # The client adds a user message. A call of the server's tool without its result is refused, and signed
            # thinking is refused without a block of its own turn (oh-my-pi #6496, vercel/ai #7099): neither is sent.
            self.dropped.update(self.emulator.ledger.bound()[bound:])
        self.check(before)
        self.signed.append((items, self.emulator.ledger.items.made()[signed:]))
        return made

    def check(self, before: int) -> None:
        """Check the requests since then."""
        new = self.emulator.requests[before:]
        assert not self.emulator.repeated(), "a refused body was sent again"
        refused = [request for request in self.emulator.requests[self.first :] if request.is_refused_for_state]
        assert len(refused) <= self.allowed, f"refused for state: {[request.refusal for request in refused]}"
        assert new[-1].status == 200, new[-1].refusal
        for request in new:
            dropped = [
                change
                for change in request.transformations
                if change["reason"] != "prefix_binding_mismatch"
                # A body does not say which model or account made a block that the gateway has not seen. Such a block
                # is sent, as Anthropic advises: one that the model cannot read is dropped, and is not paid for.
                and signature_at(request.body, change["path"]) not in self.imported
            ]
            assert not dropped, f"foreign state was sent: {dropped}"
            if "block_binding" in str(request.body):
                sent = str(request.body)
                unknown = [each for each in (*self.emulator.ledger.unbound(), *self.imported) if each in sent]
                assert unknown, "the server was asked about state whose prefix is known"
            gone = [
                signature_at(request.body, change["path"])
                for change in request.transformations
                if change["reason"] == "prefix_binding_mismatch"
            ]
            again = [each for each in gone if each in self.dropped and self.is_remembered(each)]
            assert not again, "state that the server dropped was sent again"
            self.dropped.update(gone)
            told_by = self.history[-1].items if self.thinks and self.keeps_state else []
            self.told.update(dict.fromkeys(gone, (self.starts, told_by)))
        if self.keeps_state and not refused:
            unknown = self.dropped | self.imported
            known = [each for each in self.emulator.ledger.bound()[self.bound :] if each not in unknown]
            here = {id(entry.items) for entry in self.history}
            known += [token for items, tokens in self.signed if id(items) in here for token in tokens]
            given_up = self.emulator.withheld(new[-1], known)
            assert not given_up, f"{len(given_up)} valid blocks were given up"

    def is_remembered(self, signature: str) -> bool:
        """Whether anything remembers that the server dropped a block.

        Without a store, the gateway does until it ends, and the reasoning of the reply to that request. A client that
        goes back to before that reply has an imported session again, and so has one whose reply had no reasoning: the
        server is asked once more, and refuses nothing.
        """
        starts, items = self.told.get(signature, (self.starts, []))
        return (
            self.server.store != "none" or starts == self.starts or any(entry.items is items for entry in self.history)
        )


def signature_at(body: object, path: str) -> str:
    """Give the signature of a block of a body."""
    _, turn, _, block = path.split(".")
    found = cast("Any", body)["messages"][int(turn)]["content"][int(block)]
    return str(found.get("signature") or found.get("data"))
