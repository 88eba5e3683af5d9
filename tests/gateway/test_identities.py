"""Which conversation a request belongs to: by what the client gives, and by its first message only within that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway.running import KEYS, Running, config_text, running
from segue.calls.reading import read_call
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.hints import Identity, find_client, find_conversation
from segue.gateway.service import Gateway
from segue.testing.emulator import Step, emulate, serve_in_thread

AGENTS = {
    "": "unknown",
    "Claude-CLI/2.1 (external)": "claude-code",
    "pi (linux 6.18; arm64)": "pi",
    "Acme/1.0": "acme",
    "x" * 2000: "x" * 40,
    "x" * 2000 + " codex/1": "codex",
}
TURN = [{"role": "user", "content": "Begin."}]
UUID = "0199aa11-22bb-7c33-8d44-55ee66ff7788"


def identify(more: dict[str, Any], headers: dict[str, str] | None = None, text: str = "Begin.") -> Identity:
    """Give the identity of a Chat request."""
    turns = [{"role": "user", "content": text}]
    body = {"model": "gpt-5.4", "messages": turns, **more}
    call = read_call("POST", "/v1/chat/completions", {}, json.dumps(body).encode())
    assert call.prompt is not None
    return find_conversation(headers or {}, call.prompt, "", call.body)


SESSIONS: tuple[tuple[dict[str, Any], dict[str, str]], ...] = (
    ({}, {"x-session-id": "s"}),
    ({}, {"x-claude-code-session-id": "s"}),
    ({"metadata": {"session_id": "s"}}, {}),
    ({"metadata": {"conversation_id": "s"}}, {}),
    ({"client_metadata": {"thread_id": "s"}}, {}),
    ({"metadata": {"user_id": json.dumps({"device_id": "d", "session_id": "s"})}}, {}),
    ({"prompt_cache_key": UUID}, {}),
)


@pytest.mark.parametrize(("more", "headers"), SESSIONS, ids=str)
def test_a_session_names_a_conversation_whatever_it_says(more: dict[str, Any], headers: dict[str, str]) -> None:
    found = identify(more, headers)
    assert found.is_sure
    assert identify(more, headers, "Another text.") == found
    assert found.name != identify({}).name


SCOPES: tuple[dict[str, Any], ...] = (
    {"user": "alice"},
    {"safety_identifier": "alice"},
    {"prompt_cache_key": "my-app"},
    {"metadata": {"team": "blue"}},
)


@pytest.mark.parametrize("more", SCOPES, ids=str)
def test_what_a_client_gives_separates_what_begins_alike(more: dict[str, Any]) -> None:
    found = identify(more)
    assert found.is_sure
    assert found.name != identify({}).name
    assert found.name != identify(more, text="Another text.").name
    others = {name: "other" if isinstance(value, str) else {"team": "red"} for name, value in more.items()}
    assert found.name != identify(others).name


def test_what_differs_in_each_request_of_a_conversation_names_none() -> None:
    assert (
        identify({"metadata": {"turn": "1", "trace_id": "a"}}) == identify({"metadata": {"turn": "2"}}) == identify({})
    )


def test_without_anything_the_first_message_is_all_that_is_known() -> None:
    assert identify({}) == identify({})
    assert not identify({}).is_sure
    assert identify({}).name != identify({}, text="Another text.").name


# -- switching and erasing ---------------------------------------------------------------------------------------------


def chat(gateway: Running, turns: list[dict[str, str]], **headers: str) -> httpx2.Response:
    body = {"model": "m-anthropic", "messages": turns}
    return httpx2.post(f"{gateway.url}/v1/chat/completions", json=body, headers=headers, timeout=30)


def run(gateway: Running, reply: str) -> tuple[str, list[dict[str, str]]]:
    """Begin a run as a program that says nothing of itself; give its request, and its history."""
    gateway.upstream.emulator.script.add(Step(text=reply))
    answer = chat(gateway, TURN)
    return answer.headers["x-segue-request-id"], [*TURN, {"role": "assistant", "content": reply}]


def further(gateway: Running, history: list[dict[str, str]]) -> tuple[str, list[dict[str, str]]]:
    """Continue a run; give the model that answered, and the history."""
    asked = [*history, {"role": "user", "content": "Go on."}]
    gateway.upstream.emulator.script.add(Step(text="Done."))
    answer = chat(gateway, asked)
    return answer.headers["x-segue-model"], [*asked, {"role": "assistant", "content": "Done."}]


def test_a_switch_by_request_reaches_one_of_the_runs_that_begin_alike(tmp_path: Path) -> None:
    with running(store=f"sqlite:{tmp_path / 'gateway.db'}") as gateway:
        (first, one), (_, two) = run(gateway, "The first reply."), run(gateway, "The second reply.")
        rows = httpx2.get(f"{gateway.url}/segue/conversations", timeout=30).json()["conversations"]
        assert [row["alike"] for row in rows] == [True]
        place = f"{gateway.url}/segue/conversations/{rows[0]['id']}"
        answer = httpx2.put(place, json={"model": "openai/gpt-5.4"}, timeout=30)
        assert answer.status_code == 409
        assert "PUT /segue/requests/ID" in answer.json()["error"]
        request = f"{gateway.url}/segue/requests/{first}"
        assert httpx2.put(request, json={"model": "openai/gpt-5.4"}, timeout=30).status_code == 200
        model, one = further(gateway, one)
        assert model == "openai/gpt-5.4"
        assert further(gateway, two)[0] == "anthropic/claude-opus-4-8"
        assert further(gateway, one)[0] == "openai/gpt-5.4"  # it stays switched
        assert httpx2.put(f"{gateway.url}/segue/requests/req_none", json={"model": None}).status_code == 404


def test_an_erasure_by_request_leaves_the_other_runs(tmp_path: Path) -> None:
    with running(store=f"sqlite:{tmp_path / 'gateway.db'}") as gateway:
        (first, _), (second, _) = run(gateway, "The first reply."), run(gateway, "The second reply.")
        name = httpx2.get(f"{gateway.url}/segue/conversations", timeout=30).json()["conversations"][0]["id"]
        store = gateway.gateway.store.store
        assert store is not None
        assert httpx2.delete(f"{gateway.url}/segue/conversations/{name}", timeout=30).status_code == 409
        assert store.database.query("select count(*) from states")[0][0] == 2
        assert httpx2.delete(f"{gateway.url}/segue/requests/{first}", timeout=30).json()["erased"] == 2
        assert store.database.query("select count(*) from states")[0][0] == 1
        for request, status in ((first, 404), (second, 200)):
            assert httpx2.get(f"{gateway.url}/segue/requests/{request}", timeout=30).status_code == status


def test_a_request_of_a_session_switches_its_conversation(tmp_path: Path) -> None:
    with running(store=f"sqlite:{tmp_path / 'gateway.db'}") as gateway:
        session = {"x-session-id": "one"}
        name = chat(gateway, TURN, **session).headers["x-segue-request-id"]
        place = f"{gateway.url}/segue/requests/{name}"
        assert httpx2.put(place, json={"model": "openai/gpt-5.4"}, timeout=30).status_code == 200
        assert chat(gateway, TURN, **session).headers["x-segue-model"] == "openai/gpt-5.4"


# -- the admin key -----------------------------------------------------------------------------------------------------

PRIVATE = (
    ("GET", "requests/{request}/content"),
    ("POST", "requests/{request}/replay"),
    ("PUT", "requests/{request}"),
    ("DELETE", "requests/{request}"),
    ("PUT", "conversations/{conversation}"),
    ("GET", "conversations/{conversation}/session"),
    ("DELETE", "conversations/{conversation}"),
)


def test_with_an_admin_key_contents_and_switching_need_it_on_this_machine_too(tmp_path: Path) -> None:
    more = 'content = "full"\n[listen]\nadmin_key = "env:ADMIN"'
    with emulate() as upstream:
        config = load_config(config_text(upstream.url, store=f"sqlite:{tmp_path / 'gateway.db'}", more=more))
        gateway = Gateway(config, environment={**KEYS, "XDG_STATE_HOME": "/tmp", "ADMIN": "admin-secret-of-the-tests"})
        with serve_in_thread(create_app(gateway=gateway)) as url:
            made = Running(url, gateway, upstream)
            name = chat(made, TURN, **{"x-session-id": "one"}).headers["x-segue-request-id"]
            row = httpx2.get(f"{url}/segue/requests/{name}", timeout=30).json()
            for method, path in PRIVATE:
                place = f"{url}/segue/{path.format(request=name, conversation=row['conversation'])}"
                body = {"model": "m-gemini"} if method in ("PUT", "POST") else None
                answer = httpx2.request(method, place, json=body, timeout=30)
                assert answer.status_code == 401, path
                assert "admin key" in answer.json()["error"]
            for method, path in PRIVATE:
                place = f"{url}/segue/{path.format(request=name, conversation=row['conversation'])}"
                body = {"model": "m-gemini"} if method in ("PUT", "POST") else None
                headers = {"authorization": "Bearer admin-secret-of-the-tests"}
                answer = httpx2.request(method, place, json=body, headers=headers, timeout=30)
                assert answer.status_code in (200, 404), (path, answer.text)


def test_a_client_is_named_by_its_user_agent_however_long_that_is() -> None:
    for agent, name in [*AGENTS.items(), *AGENTS.items()]:
        assert find_client({"user-agent": agent}) == name
