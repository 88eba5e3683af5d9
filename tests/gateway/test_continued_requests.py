"""The law of continued requests: one that names the reply before it is sent on like the same history sent whole.

A chain of requests is sent by reference, in every way that there is, and once more with all turns. The provider must
get the same bytes for the last request of both.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

import httpx2
import msgspec
import pytest
import websockets.sync.client
from msgspec.structs import replace

from gateway.bound_walk import OPUS, Served, served
from gateway.databases import REASON, find_programs, postgresql
from property_testing import tiers
from segue.conversation.context import Context
from segue.conversation.messages import UserMessage
from segue.conversation.stored import dump, load_message
from segue.gateway.responses import KeptReply
from segue.gateway.store.opening import open_store
from segue.gateway.store.store import StoredReply
from segue.protocols.registry import all_protocols
from segue.testing.emulator import EmulatedCall, Step

MODELS = ("m-anthropic", OPUS, "m-responses", "m-gemini", "m-chat")
CLIENT = httpx2.Client(timeout=60)
CALL = "$call"
"""Stands for the id of the newest call."""
TOOLS: Any = [{"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}}]
CUSTOM: Any = [{"type": "custom", "name": "read"}]
TOOLS_ITEM = {"type": "additional_tools", "role": "developer", "tools": TOOLS}
RESULT = {"type": "function_call_output", "call_id": CALL, "output": "a file"}
THINKS = Step(thinking="I think about it.", text="answer")
CALLS = Step(thinking="I look.", text="looking", calls=(EmulatedCall(name="read"),))


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def developer(text: str) -> dict[str, Any]:
    return {"role": "developer", "content": text}


def parts(role: str, *texts: str) -> dict[str, Any]:
    content = [{"type": "input_text", "text": text} for text in texts]
    return {"type": "message", "role": role, "content": content}


SHAPES: dict[str, list[dict[str, Any]]] = {
    "a developer message": [{"input": [developer("Be brief."), user("one")]}, {"input": [user("two")]}],
    "a system message": [
        {"input": [{"role": "system", "content": "Be brief."}, user("one")]},
        {"input": [user("two")]},
    ],
    "a developer message of parts": [
        {"input": [parts("developer", "Be brief.", "Be kind."), parts("user", "one")]},
        {"input": [parts("user", "two")]},
    ],
    "two developer messages": [
        {"input": [developer("Be brief."), developer("Be kind."), user("one")]},
        {"input": [user("two")]},
    ],
    "a chain": [
        {"input": [developer("Be brief."), user("one")]},
        {"input": [user("two")]},
        {"input": "three"},
        {"input": [user("four")]},
    ],
    "instructions of the first request": [
        {"instructions": "First.", "input": [developer("Be brief."), user("one")]},
        {"input": [user("two")]},
    ],
    "instructions of the second request": [
        {"input": [developer("Be brief."), user("one")]},
        {"instructions": "Second.", "input": [user("two")]},
        {"instructions": "Second.", "input": [user("three")]},
    ],
    "instructions of every request": [
        {"instructions": "Always.", "input": [developer("Be brief."), user("one")]},
        {"instructions": "Always.", "input": [user("two")]},
    ],
    "instructions alone": [{"instructions": "Never again.", "input": "one"}, {"input": "two"}],
    "a developer message in the middle": [
        {"input": [user("one"), developer("Now be kind."), user("and more")]},
        {"input": [user("two")]},
    ],
    "a later developer message": [
        {"input": [user("one")]},
        {"input": [developer("From now on be brief."), user("two")]},
        {"input": [user("three")]},
    ],
    "a developer message in each request": [
        {"input": [developer("A."), user("one")]},
        {"input": [developer("B."), user("two")]},
        {"input": [developer("C."), user("three")]},
    ],
    "a developer message alone": [{"input": [developer("Be brief."), user("one")]}, {"input": [developer("Go on.")]}],
    "nothing new but the reference": [{"input": [developer("Be brief."), user("one")]}, {"input": []}],
    "a loop of tools": [
        {"input": [developer("Be brief."), user("one")], "tools": TOOLS},
        {"input": [RESULT], "tools": TOOLS},
        {"input": [user("three")], "tools": TOOLS},
    ],
    "tools of the first request alone": [
        {"input": [developer("Be brief."), user("one")], "tools": TOOLS},
        {"input": [RESULT]},
    ],
    "a result with further fields": [
        {"input": [user("one")], "tools": TOOLS},
        {"input": [{**RESULT, "status": "completed", "output": [{"type": "input_text", "text": "x"}]}], "tools": TOOLS},
    ],
    "an item of tools first": [
        {"input": [TOOLS_ITEM, developer("Be brief."), user("one")]},
        {"input": [RESULT]},
        {"input": [user("three")]},
    ],
    "an item of tools later": [
        {"input": [developer("Be brief."), user("one"), TOOLS_ITEM]},
        {"input": [RESULT]},
        {"input": [user("three")]},
    ],
    "a custom tool": [
        {"input": [developer("Be brief."), user("one")], "tools": CUSTOM},
        {"input": [{**RESULT, "type": "custom_tool_call_output"}], "tools": CUSTOM},
    ],
    "a turn of the model that the client adds": [
        {"input": [developer("Be brief."), user("one")]},
        {"input": [{"role": "assistant", "content": "I said that, too."}, user("two")]},
    ],
    "other options": [
        {"input": [developer("Be brief."), user("one")], "metadata": {"turn": "1"}},
        {"input": [user("two")], "metadata": {"turn": "2"}, "max_output_tokens": 900},
        {"input": [user("three")], "metadata": {"turn": "3"}},
    ],
    "another model": [
        {"input": [developer("Be brief."), user("one")]},
        {"input": [user("two")], "model": "m-gemini"},
        {"input": [user("three")]},
    ],
    "an id and a status of the client's items": [
        {"input": [{"id": "msg_1", "status": "completed", **parts("developer", "Be brief.")}, user("one")]},
        {"input": [{"id": "msg_2", "status": "completed", **parts("user", "two")}]},
    ],
    "half a character": [{"input": [developer("Be \ud83d brief."), user("one")]}, {"input": [user("two")]}],
}


def filled(value: Any, call: str) -> Any:
    """Put the id of the newest call in place."""
    return json.loads(json.dumps(value).replace(CALL, call))


class Chain:
    """A conversation that is sent by reference, and what the client would send if it kept the history itself."""

    def __init__(self, server: Served, model: str, *, store: bool) -> None:
        self.server, self.model, self.store = server, model, store
        self.turns: list[Any] = []
        self.previous: str | None = None
        self.call = ""
        self.body: dict[str, Any] = {}
        self.socket: Any = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def sent(self) -> list[str]:
        """The bodies that the provider got."""
        return [json.dumps(request.body) for request in self.server.upstream.emulator.requests]

    def send(self, given: Mapping[str, Any], way: str, *, generate: bool = True) -> list[Any]:
        """Send the next request and take its reply; return all turns before that."""
        fields = filled({"model": self.model, "store": self.store, "stream": True, **given}, self.call)
        if generate:
            step = CALLS if "tools" in json.dumps(given) else THINKS
            self.server.upstream.emulator.script.add(replace(step, text=f"answer {len(self.sent)}"))
        new = fields["input"]
        self.turns = [*self.turns, *([user(new)] if isinstance(new, str) else new)]
        self.body = fields
        named = fields if self.previous is None else {**fields, "previous_response_id": self.previous}
        reply = self.over_socket(named, generate=generate) if way.startswith("socket") else self.over_http(named)
        before = self.turns
        self.previous = reply["id"]
        self.turns = [*before, *reply["output"]]
        for item in reply["output"]:
            self.call = item.get("call_id", self.call)
        return before

    def over_http(self, body: dict[str, Any]) -> dict[str, Any]:
        answer = CLIENT.post(f"{self.server.url}/v1/responses", content=json.dumps(body))
        assert answer.status_code == 200, answer.text
        frames = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
        assert frames[-1]["type"] == "response.completed", frames[-1]
        return frames[-1]["response"]

    def connect(self) -> None:
        """Open a connection."""
        url = self.server.url.replace("http://", "ws://")
        self.socket = self._stack.enter_context(websockets.sync.client.connect(f"{url}/v1/responses"))

    def over_socket(self, body: dict[str, Any], *, generate: bool) -> dict[str, Any]:
        if self.socket is None:
            self.connect()
        assert self.socket is not None
        event = {"type": "response.create", **body, **({} if generate else {"generate": False})}
        self.socket.send(json.dumps(event))
        while True:
            frame = json.loads(self.socket.recv(timeout=60))
            assert frame["type"] != "error", frame
            if frame["type"] == "response.completed":
                return frame["response"]

    def send_whole(self, turns: Sequence[Any]) -> str:
        """Send the last request with all turns; return what the provider got."""
        self.server.upstream.emulator.script.add(Step(text="end"))
        self.over_http({**self.body, "input": list(turns)})
        return self.sent[-1]

    def close(self) -> None:
        """Close the connection."""
        self._stack.close()
        self.socket = None


WAYS = ("http", "http after a restart", "socket", "socket without a store", "socket, another connection")


@contextmanager
def serving(way: str, folder: Path) -> Generator[Served]:
    with ExitStack() as stack:
        store = "none" if "without" in way else f"sqlite:{folder}/g.db"
        if "PostgreSQL" in way:
            store = stack.enter_context(postgresql())
        yield stack.enter_context(served(store))


def check_chain(chain: Chain, requests: Sequence[Mapping[str, Any]], way: str, *, warm: bool = False) -> str:
    """Send a chain; its last request must reach the provider like the whole history. Returns what was sent."""
    turns: list[Any] = []
    for number, given in enumerate(requests):
        if number and "restart" in way:
            chain.server.restart()
        if number and ("restart" in way or "another" in way):
            chain.close()
        turns = chain.send(given, way, generate=bool(number) or not warm)
    continued = chain.sent[-1]
    assert [request.refusal for request in chain.server.upstream.emulator.requests if request.refusal] == []
    assert "previous_" not in continued
    whole = chain.send_whole(turns)
    assert whole == continued, _difference(whole, continued)
    return continued


def _difference(one: str, other: str) -> str:
    at = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    return f"whole: ...{one[max(0, at - 150) : at + 250]}\ncontinued: ...{other[max(0, at - 150) : at + 250]}"


def check_shapes(way: str, model: str, folder: Path, shapes: Mapping[str, Any], *, warm: bool = False) -> None:
    failed: dict[str, str] = {}
    with serving(way, folder) as server:
        for shape, requests in shapes.items():
            with Chain(server, model, store="http" in way or "another" in way) as chain:
                named = json.loads(json.dumps(requests).replace('"one"', json.dumps(shape)))
                try:
                    check_chain(chain, named, way, warm=warm)
                except AssertionError as error:
                    failed[shape] = str(error)[:2000]
    assert not failed, "\n".join(f"{shape}: {text}" for shape, text in failed.items())


def covering() -> list[Any]:
    """Pair each model with one way and each way with one model; `make proof` tries all pairs."""
    first = set(zip(MODELS, WAYS, strict=True))
    pairs = [(model, way) for model in MODELS for way in WAYS]
    return [pair if pair in first else pytest.param(*pair, marks=pytest.mark.proof) for pair in pairs]


@pytest.mark.parametrize(("model", "way"), covering())
def test_a_continued_request_is_sent_like_the_whole_history(model: str, way: str, tmp_path: Path) -> None:
    check_shapes(way, model, tmp_path, SHAPES)


@pytest.mark.proof
@pytest.mark.skipif(find_programs() is None, reason=REASON)
@pytest.mark.parametrize("way", ["http on PostgreSQL", "http on PostgreSQL after a restart", "socket on PostgreSQL"])
@pytest.mark.parametrize("model", MODELS)
def test_a_continued_request_on_postgresql_is_sent_like_the_whole_history(model: str, way: str, tmp_path: Path) -> None:
    check_shapes(way, model, tmp_path, SHAPES)


@pytest.mark.parametrize("way", ["socket", "socket without a store"])
@pytest.mark.parametrize("model", tiers([OPUS], [model for model in MODELS if model != OPUS]))
def test_a_prepared_request_is_sent_like_the_whole_history(model: str, way: str, tmp_path: Path) -> None:
    """As codex does: a first message that generates nothing has the instructions."""
    shapes = {name: shape for name, shape in SHAPES.items() if CALL not in json.dumps(shape)}
    check_shapes(way, model, tmp_path, shapes, warm=True)


@pytest.mark.parametrize("way", [*WAYS, "socket, prepared", "socket without a store, prepared"])
def test_instructions_and_bound_reasoning_are_there_every_time(way: str, tmp_path: Path) -> None:
    warm = "prepared" in way
    requests = [
        {"input": [developer("Be brief."), user("one")], "tools": TOOLS},
        {"input": [user("two") if warm else RESULT], "tools": TOOLS},
        {"input": [RESULT], "tools": TOOLS},
    ]
    with serving(way, tmp_path) as server, Chain(server, OPUS, store="http" in way or "another" in way) as chain:
        continued = check_chain(chain, requests, way, warm=warm)
        assert all(body.count("Be brief.") == 1 for body in chain.sent)
        assert continued.count('"signature"') == 2 - warm
        assert not server.upstream.emulator.refused_for_state()


def test_a_summary_is_asked_for_also_where_the_client_has_the_models_own_protocol(tmp_path: Path) -> None:
    with serving("http", tmp_path) as server:
        server.upstream.emulator.script.add(Step(text="What was said."))
        body = {"model": "m-responses", "input": [developer("Be brief."), user("one"), user("two")]}
        answer = CLIENT.post(f"{server.url}/v1/responses/compact", json=body)
        assert answer.status_code == 200, answer.text
        sent: Any = server.upstream.emulator.requests[-1].body
        assert json.dumps(sent["input"]) != json.dumps(body["input"])
        assert "ummar" in json.dumps(sent)


def test_a_count_and_a_compaction_have_the_whole_history(tmp_path: Path) -> None:
    with serving("http", tmp_path) as server, Chain(server, "m-anthropic", store=True) as chain:
        chain.send({"input": [developer("Be brief."), user("one")]}, "http")
        body = {"model": chain.model, "input": [user("two")], "previous_response_id": chain.previous}
        whole = {"model": chain.model, "input": [*chain.turns, user("two")]}
        counts = [CLIENT.post(f"{server.url}/v1/responses/input_tokens", json=each).json() for each in (body, whole)]
        assert counts[0] == counts[1]
        compacted = []
        for each in (body, whole):
            server.upstream.emulator.script.add(Step(text="What was said."))
            answer = CLIENT.post(f"{server.url}/v1/responses/compact", json=each)
            assert answer.status_code == 200, answer.text
            compacted.append((chain.sent[-1], [item.get("role") for item in answer.json()["output"]]))
        assert compacted[0] == compacted[1]
        assert compacted[0][1] == ["developer", "user", "user", None]
        chain.turns, chain.previous = [], None
        items = answer.json()["output"]
        continued = check_chain(chain, [{"input": [*items, user("three")]}, {"input": [user("four")]}], "http later")
        assert continued.count("Be brief.") == continued.count("What was said.") == 1


@pytest.mark.parametrize("model", MODELS)
def test_replies_that_an_older_version_stored_are_continued(model: str, tmp_path: Path) -> None:
    """It stored messages, and no instructions that were items of the input."""
    with serving("http", tmp_path) as server, Chain(server, model, store=True) as chain:
        chain.send({"input": [user("one")]}, "http")
        server.restart()
        store = open_store(server.store)
        assert store is not None
        data = store.get_response(chain.previous or "", "")
        assert data is not None
        kept = msgspec.msgpack.decode(data, type=KeptReply)
        old = Context(messages=(UserMessage.of("one"), load_message(kept.messages)))
        row = msgspec.msgpack.encode((None, dump(old), kept.made, "", ""))
        store.put_all([StoredReply(chain.previous or "", "", row)], 1)
        store.close()
        chain.send({"input": [developer("Be brief."), user("two")]}, "http")
        turns = chain.send({"input": [user("three")]}, "http")
        continued = chain.sent[-1]
        assert continued.count("Be brief.") == 1
        assert chain.send_whole(turns) == continued
        listed = CLIENT.get(f"{server.url}/v1/responses/{chain.previous}/input_items?order=asc").json()["data"]
        assert [item.get("role") for item in listed if item["type"] == "message"][:2] == ["user", "assistant"]


INTERACTIONS: dict[str, list[dict[str, Any]]] = {
    "a text": [{"input": "one"}, {"input": "two"}, {"input": "three"}],
    "contents": [{"input": [{"type": "text", "text": "one"}]}, {"input": {"type": "text", "text": "two"}}],
    "instructions of the first request": [{"input": "one", "system_instruction": "Be brief."}, {"input": "two"}],
    "instructions of the second request": [{"input": "one"}, {"input": "two", "system_instruction": "Be brief."}],
    "a result without a name": [
        {"input": "one", "tools": TOOLS},
        {"input": [{"type": "function_result", "call_id": CALL, "result": "a file"}], "tools": TOOLS},
    ],
}


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("model", tiers(["m-anthropic"], ["m-responses", "m-gemini", "m-chat"]))
@pytest.mark.parametrize("shape", INTERACTIONS)
def test_a_continued_interaction_is_sent_like_the_whole_history(
    shape: str, model: str, restart: bool, tmp_path: Path
) -> None:
    with serving("http", tmp_path) as server:
        script, url = server.upstream.emulator.script, "/v1beta/interactions"
        turns: list[Any] = []
        before, previous, call, body = turns, None, "", {}
        for number, given in enumerate(INTERACTIONS[shape]):
            if number and restart:
                server.restart()
            script.add(replace(CALLS if "tools" in given else THINKS, text=f"answer {number}"))
            body = filled({"model": model, **given}, call)
            new = body["input"]
            contents = (
                [{"type": "text", "text": new}] if isinstance(new, str) else new if isinstance(new, list) else [new]
            )
            is_step = contents[0]["type"] == "function_result"
            before = [*turns, *(contents if is_step else [{"type": "user_input", "content": contents}])]
            named = body if previous is None else {**body, "previous_interaction_id": previous}
            reply = CLIENT.post(server.url + url, json=named, headers={"x-goog-api-key": "k"})
            assert reply.status_code == 200, reply.text
            previous, turns = reply.json()["id"], [*before, *reply.json()["steps"]]
            call = next((step["id"] for step in turns if step["type"] == "function_call"), "")
        continued = json.dumps(server.upstream.emulator.requests[-1].body)
        script.add(Step(text="end"))
        reply = CLIENT.post(server.url + url, json={**body, "input": before}, headers={"x-goog-api-key": "k"})
        assert reply.status_code == 200, reply.text
        assert json.dumps(server.upstream.emulator.requests[-1].body) == continued


def test_every_wire_that_continues_by_reference_is_tried() -> None:
    found = {record.name for record in all_protocols() if record.held_content.reply is not None}
    assert found == {"openai-responses", "google-interactions"}
