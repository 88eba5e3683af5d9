"""Two gateways share a PostgreSQL store: they take turns in one conversation, and one is killed in mid-stream."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from gateway.databases import REASON, find_programs, postgresql
from gateway.real_clients import free_port, kill, wait_for
from gateway.running import KEYS, config_text
from gateway.sdk_clients import CLIENTS, close_clients
from segue.testing.emulator import EmulatedCall, Step, emulate

pytestmark = pytest.mark.proof

CALL = Step(thinking="I look at the file first, then answer.", text="Reading.", calls=(EmulatedCall(name="read"),))
END = Step(thinking="Now I know what is in the file.", text="It says so.")


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    if find_programs() is None:
        pytest.skip(REASON)
    with postgresql() as url:
        yield url


def spawn_gateway(config: Path) -> subprocess.Popen[bytes]:
    """Start a gateway in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "segue", "serve", "--config", str(config)],
        env={**os.environ, **KEYS, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def start_gateway(config: Path, port: int) -> subprocess.Popen[bytes]:
    """Start a gateway in a process of its own, and wait until it answers."""
    process = spawn_gateway(config)
    try:
        wait_for(port)
    except AssertionError:
        kill(process)
        raise
    return process


def _read_until_killed(url: str, body: object, process: subprocess.Popen[bytes]) -> None:
    """Read a stream, and kill the gateway in the middle of it."""
    with httpx2.stream("POST", f"{url}/v1/messages", json=body, timeout=20) as reply:
        for number, _ in enumerate(reply.iter_lines()):
            if number == 5:
                kill(process)


def _switch_by_one_and_ask_the_other(one: str, two: str) -> None:
    """A conversation that one gateway sends to another model goes there behind the other gateway, too."""
    body = {"model": "m-anthropic", "max_tokens": 50, "messages": [{"role": "user", "content": "hi"}]}
    headers = {"x-session-id": "switched"}
    assert httpx2.post(f"{one}/v1/messages", json=body, headers=headers).status_code == 200
    rows = httpx2.get(f"{two}/segue/conversations").json()["conversations"]
    chosen = httpx2.put(f"{one}/segue/conversations/{rows[0]['id']}", json={"model": "openai/gpt-5.4"})
    assert chosen.status_code == 200
    assert httpx2.post(f"{two}/v1/messages", json=body, headers=headers).headers["x-segue-model"] == "openai/gpt-5.4"
    ended = httpx2.put(f"{two}/segue/conversations/{rows[0]['id']}", json={"model": None})
    assert ended.status_code == 200


@pytest.mark.parametrize("client", ["anthropic", "chat", "responses", "google", "ollama"])
def test_replicas_take_turns_and_one_is_killed(client: str, database: str, tmp_path: Path) -> None:
    with emulate() as upstream:
        ports = (free_port(), free_port())
        processes: list[subprocess.Popen[bytes]] = []
        try:
            for port in ports:
                path = tmp_path / f"{port}.toml"
                path.write_text(
                    config_text(upstream.url, store=database, more=f'[listen]\naddress = "127.0.0.1:{port}"')
                )
                processes.append(start_gateway(path, port))
            one, two = (f"http://127.0.0.1:{port}" for port in ports)
            ask = CLIENTS[client](stream=True)
            history: list[object] = []
            for turn, (url, model) in enumerate(
                [(one, "m-responses"), (two, "m-responses"), (one, "m-anthropic"), (two, "m-responses")]
            ):
                upstream.emulator.script.add(CALL, END)
                history = ask(url, model, history, f"question {turn} of {client}")
            _switch_by_one_and_ask_the_other(one, two)
            upstream.emulator.script.add(Step(text="word " * 300, pause=0.02))
            body = {"model": "m-anthropic", "max_tokens": 50, "stream": True}
            question = {"messages": [{"role": "user", "content": "long"}]}
            with pytest.raises(httpx2.HTTPError):
                _read_until_killed(one, {**body, **question}, processes[0])
            upstream.emulator.script.add(CALL, END)
            ask(two, "m-anthropic", history, "after the kill")
            assert {request.refusal for request in upstream.emulator.requests} == {None}
        finally:
            close_clients()
            for process in processes:
                if process.poll() is None:
                    kill(process)
