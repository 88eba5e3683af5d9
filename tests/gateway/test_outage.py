"""What clients of a gateway get while its database is away, and afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from gateway.faults import FaultyDatabase
from gateway.running import Running, running
from segue.conversation.context import Context
from segue.conversation.stored import dump
from segue.gateway.responses import KeptReply
from segue.gateway.store.database import StoreAway, StoreError, StoreNotWritable
from segue.gateway.store.store import StoredReply
from segue.testing.emulator import EmulatedCall, Step

THOUGHT = Step(thinking="I look at the file first, then answer.", text="Reading.", calls=(EmulatedCall(name="read"),))
END = Step(thinking="Now I know what is in the file.", text="It says so.")
TOOL = {"name": "read", "input_schema": {"type": "object", "properties": {}}}
AWAY = StoreAway("the server closed the connection")
FULL = StoreNotWritable("database or disk is full")


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segue.gateway.store.circuit._GRACE", 0.2)
    monkeypatch.setattr("segue.gateway.store.writer._PROBE_SECONDS", 0.1)


@contextmanager
def _faulty(tmp_path: Path, *steps: Step) -> Iterator[tuple[Running, FaultyDatabase]]:
    with running(*steps, store=f"sqlite:{tmp_path / 'gateway.db'}") as gateway:
        store = gateway.gateway.store.store
        assert store is not None
        database = FaultyDatabase(store.database)
        store.database = database
        yield gateway, database


def _wait_until_available(gateway: Running) -> None:
    end = time.monotonic() + 120
    while not gateway.gateway.store.is_available:
        assert time.monotonic() < end
        time.sleep(0.02)


def _ask(gateway: Running, **fields: object) -> httpx2.Response:
    body = {"model": "m-anthropic", "input": "hi", **fields}
    return httpx2.post(f"{gateway.url}/v1/responses", json=body, timeout=30)


def _last_response(text: str) -> dict[str, Any]:
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {")]
    return msgspec.json.decode(lines[-1])["response"]


@pytest.mark.parametrize("failure", [AWAY, FULL])
def test_a_reply_that_could_not_be_stored_says_so(tmp_path: Path, failure: StoreError) -> None:
    with _faulty(tmp_path) as (gateway, database):
        stored = _ask(gateway)
        assert stored.json()["store"] is True
        assert "x-segue-stored" not in stored.headers
        database.write_failure = failure
        for number in range(2):  # the first finds it out, the second knows it
            reply = _ask(gateway)
            assert reply.status_code == 200
            assert reply.json()["store"] is False, number
            assert reply.headers["x-segue-stored"] == "false"
        streamed = _ask(gateway, stream=True)
        assert _last_response(streamed.text)["store"] is False
        database.write_failure = None
        _wait_until_available(gateway)
        again = _ask(gateway, previous_response_id=reply.json()["id"])
        assert again.status_code == 400  # as it was told
        assert _ask(gateway, previous_response_id=stored.json()["id"]).json()["store"] is True
        assert _last_response(_ask(gateway, stream=True).text)["store"] is True


def test_a_client_that_does_not_ask_to_store_gets_no_such_field(tmp_path: Path) -> None:
    with _faulty(tmp_path) as (gateway, _):
        assert "store" not in _ask(gateway, store=False).json()


def test_without_a_store_a_reply_is_not_said_to_be_stored() -> None:
    with running(store="none") as gateway:
        assert _ask(gateway).json()["store"] is False


def test_a_history_that_only_the_store_has_is_refused_for_the_time_being(tmp_path: Path) -> None:
    with _faulty(tmp_path) as (gateway, database):
        first = _ask(gateway).json()["id"]
        database.failure = AWAY
        reply = _ask(gateway, previous_response_id=first)
        assert reply.status_code == 503
        assert reply.headers["retry-after"]
        assert "does not answer" in reply.text
        rows = httpx2.get(f"{gateway.url}/segue/requests")
        assert rows.status_code == 503
        assert httpx2.put(f"{gateway.url}/segue/conversations/x", json={"model": "segue/echo"}).status_code == 503
        database.failure = None
        _wait_until_available(gateway)
        assert _ask(gateway, previous_response_id=first).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["m-anthropic", "m-responses"])
def test_a_conversation_goes_on_while_the_database_is_away(tmp_path: Path, name: str, stream: bool) -> None:
    """Turns of before, of the outage and of after it: no model refuses a history, and each gets its thinking back."""
    with _faulty(tmp_path) as (gateway, database):
        messages: list[dict[str, object]] = []
        for turn in range(4):
            if turn == 1:
                database.failure = AWAY
                httpx2.get(f"{gateway.url}/segue/requests")  # finds it out
            if turn == 3:
                database.failure = None
                _wait_until_available(gateway)
            gateway.upstream.emulator.script.add(THOUGHT, END)
            messages.append({"role": "user", "content": f"question {turn}"})
            for _ in range(2):
                content = _message(gateway, name, messages, stream=stream)
                messages.append({"role": "assistant", "content": content})
                calls = [block["id"] for block in content if block["type"] == "tool_use"]
                if calls:
                    results = [{"type": "tool_result", "tool_use_id": each, "content": "ok"} for each in calls]
                    messages.append({"role": "user", "content": results})
        assert {request.refusal for request in gateway.upstream.emulator.requests} == {None}
        sent = gateway.upstream.emulator.requests[-1].body
        text = msgspec.json.encode(sent).decode()
        assert "segueEnv" not in text
        during = text.count('"type":"thinking"') if name == "m-anthropic" else text.count('"encrypted_content"')
        assert during >= 5  # of seven turns, two were stored before it


def _message(gateway: Running, name: str, messages: list[dict[str, object]], *, stream: bool) -> list[dict[str, Any]]:
    import anthropic

    with anthropic.Anthropic(base_url=gateway.url, api_key="any", max_retries=0) as client:
        body: Any = {"model": name, "max_tokens": 9000, "messages": messages, "tools": [TOOL]}
        body["thinking"] = {"type": "enabled", "budget_tokens": 2000}
        if stream:
            with client.messages.stream(**body) as events:
                message = events.get_final_message()
        else:
            message = client.messages.create(**body)
    return [block.model_dump(exclude_none=True, exclude={"parsed_output", "citations"}) for block in message.content]


def test_a_stored_reply_that_is_its_own_ancestor_is_not_followed(tmp_path: Path) -> None:
    with _faulty(tmp_path) as (gateway, database):
        store = gateway.gateway.store.store
        assert store is not None
        for name, previous in (("resp_a", "resp_b"), ("resp_b", "resp_a")):
            kept = KeptReply(previous, dump(Context(messages=())))
            store.put_all([StoredReply(name, "", msgspec.msgpack.encode(kept))], 1)
        assert store.get_response("resp_a", "") is not None
        before = database.calls
        reply = _ask(gateway, previous_response_id="resp_a")
        assert reply.status_code == 400
        assert database.calls - before < 10
