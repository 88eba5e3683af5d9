"""Real agent programs through a gateway: switches, broken streams, silence, statuses, discovery, keys.

Each test skips where the program is not installed, or where the scripts that run it are not there.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from base64 import b64decode
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway.real_clients import (
    PATIENCE,
    STATE,
    Bench,
    bench,
    drive,
    find_client,
    free_port,
    script_line,
    scripts,
    wait_for,
)
from segue import check, convert, decode_request, encode_request

pytestmark = pytest.mark.proof

PROTOCOLS = {
    "/messages": "anthropic-messages",
    "/chat/completions": "openai-chat",
    "/responses": "openai-responses",
    "enerateContent": "google-genai",
}
PROGRAMS = ("claude", "codex", "gemini", "opencode-chat", "pi-chat", "qwen", "cline-chat")


def _needs(client: str) -> None:
    if scripts() is None:
        pytest.skip("with real agent programs (no ../shared/clients)")
    if find_client(client) is None:
        pytest.skip(f"with {client.partition('-')[0]} (not installed)")


def _model_requests(made: Bench, name: str) -> list[dict[str, Any]]:
    found = made.captured(name)
    return [request for request in found if request["method"] == "POST" and _protocol(request) is not None]


def _protocol(request: dict[str, Any]) -> str | None:
    return next((protocol for part, protocol in PROTOCOLS.items() if part in request["path"]), None)


def _foreign(made: Bench, name: str) -> list[str]:
    """Give the state of a provider that reached another one."""
    requests = _model_requests(made, name)
    wrong: list[str] = []
    for key, value in made.planted(name).items():
        field, _, number = key.rpartition("#")
        if STATE.match(field):
            home = _protocol(requests[int(number) - 1])
            wrong += [
                f"{key} in request {request['n']} to {_protocol(request)}"
                for request in requests
                if _protocol(request) != home and value in json.dumps(request["body"], ensure_ascii=False)
            ]
    return wrong


def _wait_for_rows(made: Bench, name: str) -> None:
    """Wait until every request has its row: it is written when the reply has ended, which a client need not await."""
    end = time.monotonic() + PATIENCE
    while sum(len(row["attempts"]) for row in made.rows()) < len(_model_requests(made, name)):
        assert time.monotonic() < end, made.rows()
        time.sleep(0.2)


def _survives(request: dict[str, Any]) -> None:
    """What reached a provider can be read, written again unchanged, and sent to any other model."""
    protocol = _protocol(request)
    assert protocol is not None
    body = request["body"]
    assert encode_request(decode_request(body, protocol=protocol), protocol=protocol) == body
    for target in ("openai/gpt-5.4", "anthropic/claude-opus-4-8", "google/gemini-3.1-pro-preview"):
        converted = convert(body, source=protocol, target=target)
        assert not check(converted.body, protocol=converted.protocol)


@pytest.mark.parametrize("client", ["claude", "codex", "pi-anthropic", "opencode-anthropic"])
def test_a_client_switches_models_and_back(client: str, tmp_path: Path) -> None:
    _needs(client)
    with bench(tmp_path, "aba", "--redacted") as made, made.gateway(f"sqlite:{tmp_path}/g.db"):
        printed = drive(made, client, "aba", "--models", "m-anthropic,m-responses,m-anthropic")
        assert printed.count("rc=0") == 3, printed
        assert not _foreign(made, "aba")
        requests = _model_requests(made, "aba")
        assert {_protocol(request) for request in requests} == {"anthropic-messages", "openai-responses"}
        last = json.dumps(requests[-1]["body"], ensure_ascii=False)
        assert _protocol(requests[-1]) == "anthropic-messages"
        # A request for a title may come first; its reply is not part of the conversation.
        own = [value for key, value in made.planted("aba").items() if key.startswith("thinking.signature#")]
        assert any(value in last for value in own)
        for request in requests:
            _survives(request)


@pytest.mark.parametrize("client", ["claude", "codex", "gemini", "pi-chat"])
def test_a_provider_fails_in_mid_conversation_and_recovers(client: str, tmp_path: Path) -> None:
    """Behind one name the second model answers while the first is overloaded; then the first gets its own state."""
    _needs(client)
    found = scripts()
    assert found is not None
    with bench(tmp_path, "one") as made:
        second = free_port()
        more = '[models."m-auto"]\ntry = ["anthropic/claude-opus-4-8", "openai/gpt-5.4"]\nsticky = false\n'
        more += "[limits]\nbreaker_failures = 50\n"
        start = f"{sys.executable} {found}/probe.py"
        pid, turn = tmp_path / "probe.pid", tmp_path / "turn"
        # Between the prompts the first provider is replaced: by one that is overloaded, then by one that is well again.
        between = tmp_path / "between.sh"
        between.write_text(
            f"kill $(cat {pid})\n"
            + script_line("while", made.probe)
            + f"if [ -e {turn} ]; then {start} {made.probe} three --ttl 900 > {tmp_path}/three.log 2>&1 &\n"
            f"else {start} {made.probe} two --fault 529:99 --ttl 900 > {tmp_path}/two.log 2>&1 & fi\n"
            f"echo $! > {pid}; touch {turn}\n" + script_line("until", made.probe)
        )
        environment = made.environment()
        other = subprocess.Popen(
            [sys.executable, str(found / "probe.py"), str(second), "other", "--plant", "80", "--ttl", "900"],
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        try:
            wait_for(second)
            config = made.write_config(f"sqlite:{tmp_path}/g.db", more)
            text = config.read_text().replace(f'{made.probe}/v1"\n', f'{second}/v1"\n', 1)
            config.write_text(text)
            process = made.start_gateway(config)
            try:
                options = ("--model", "m-auto", "--prompts", "3", "--between", f"CLIENTS_DIR={tmp_path} bash {between}")
                printed = drive(made, client, "drive", *options)
                assert printed.count("rc=0") == 3, printed
            finally:
                process.terminate()
                process.wait(45)
        finally:
            other.kill()
            other.wait(10)
            with suppress(OSError, ValueError):
                os.kill(int(pid.read_text()), signal.SIGTERM)
        own = [value for key, value in made.planted("one").items() if key.startswith("thinking.signature#")]
        assert own
        assert _model_requests(made, "two"), "the first provider was not asked while it was overloaded"
        assert _model_requests(made, "other"), "the second provider never answered"
        for request in _model_requests(made, "other"):
            assert not any(value in json.dumps(request["body"]) for value in own)
        back = _model_requests(made, "three")
        assert back
        assert any(value in json.dumps(back[0]["body"]) for value in own)
        for state in (value for key, value in made.planted("other").items() if "encrypted_content" in key):
            assert not any(state in json.dumps(request["body"]) for request in back)


ENDINGS = {
    "an error in mid-stream": ("--mid-error",),
    "a cut connection": ("--cut",),
    "a silence in mid-stream": ("--stall", "20", "--where", "mid"),
    "no beginning": ("--drop", "message_start"),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("client", ["claude", "codex", "gemini", "opencode-chat", "pi-chat"])
def test_a_client_ends_or_tries_again_after_a_broken_stream(client: str, ending: str, tmp_path: Path) -> None:
    _needs(client)
    more = "[limits]\nheartbeat_seconds = 3\n"
    with (
        bench(tmp_path, "ends", "--no-tools", *ENDINGS[ending]) as made,
        made.gateway("sqlite:" + str(tmp_path / "g.db"), more),
    ):
        printed = drive(made, client, "ends", "--model", "m-anthropic")
        assert "rc=timeout" not in printed, printed
        assert "rc=0" in printed, printed
        _wait_for_rows(made, "ends")
        assert all(row["status"] for row in made.rows())


@pytest.mark.parametrize("client", ["codex", "gemini", "claude"])
def test_heartbeats_keep_a_client_waiting(client: str, tmp_path: Path) -> None:
    _needs(client)
    probe = ("--no-tools", "--stall", "20", "--where", "first", "--beat", "none")
    options = ("--conf", "stream_idle_timeout_ms = 16000") if client == "codex" else ()
    more = "[limits]\nheartbeat_seconds = 3\n"
    with bench(tmp_path, "beats", *probe) as made, made.gateway(f"sqlite:{tmp_path}/g.db", more):
        printed = drive(made, client, "beats", "--model", "m-responses", *options)
        assert "rc=0" in printed, printed
        assert len(_model_requests(made, "beats")) == 1


STATUSES = ("429:2:retry-after=1", "429:2", "500:2", "503:2", "529:2", "400:99", "403:99", "404:99", "413:99")


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("client", ["claude", "codex", "gemini", "opencode-chat", "pi-chat"])
def test_a_client_makes_no_more_requests_than_without_a_gateway(client: str, status: str, tmp_path: Path) -> None:
    _needs(client)
    upstream = {"claude": "m-anthropic", "codex": "m-responses", "gemini": "m-gemini"}.get(client, "m-chat")
    counts: list[int] = []
    for name in ("direct", "through"):
        folder = tmp_path / name
        folder.mkdir()
        with bench(folder, name, "--no-tools", "--fault", status) as made:
            if name == "direct":
                printed = drive(made._replace(port=made.probe), client, name, "--model", upstream)
            else:
                with made.gateway(f"sqlite:{folder}/g.db", "[limits]\nretries = 0\n"):
                    printed = drive(made, client, name, "--model", upstream)
                    _wait_for_rows(made, name)
            # What a client that was cut off asked is not all that it would have asked.
            assert "rc=timeout" not in printed, printed
            counts.append(len(_model_requests(made, name)))
    # opencode asks for a title at the same time, and either of the two meets the failure. After a 429 every client
    # waits and asks again, because the gateway always says how long.
    spare = 1 if client.startswith("opencode") else 0
    assert all(counts)
    assert counts[1] <= counts[0] + spare or status.startswith("429"), counts


def test_claude_code_lists_the_names_of_the_configuration(tmp_path: Path) -> None:
    _needs("claude")
    more = '[models."claude-via-gpt"]\ntry = ["openai/gpt-5.4"]\n'
    variables = ("CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=0")
    options = [part for variable in variables for part in ("--env", variable)]
    with bench(tmp_path, "list") as made, made.gateway(f"sqlite:{tmp_path}/g.db", more):
        drive(made, "claude", "list", "--model", "m-anthropic", *options)
    found = list((tmp_path / "homes" / "list").rglob("gateway-models.json"))
    assert found
    assert "claude-via-gpt" in found[0].read_text()


def test_codex_goes_on_over_http_after_426(tmp_path: Path) -> None:
    _needs("codex")
    with bench(tmp_path, "ws", "--no-tools") as made, made.gateway(f"sqlite:{tmp_path}/g.db"):
        printed = drive(made, "codex-ws", "ws", "--model", "m-responses")
        assert "rc=0" in printed, printed
        assert len(_model_requests(made, "ws")) == 1


HOSTILE = (
    "Bearer ' OR 1=1 --",
    'Bearer "; DROP TABLE states; --',
    "Bearer " + "a" * 8_000,
    "Bearer ${jndi:ldap://x}",
    "Bearer ../../etc/passwd",
    "Basic YWRtaW46YWRtaW4=",
    "Bearer sk-planted-upstream",
    "bearer sk-planted-clien",
    "Bearer sk-planted-client2",
    "",
)
HOSTS = (
    "x/#@127.0.0.1",
    "example.org",
    "127.0.0.1.example.org",
    "127.0.0.1@example.org",
    "localhost:1/..",
    "[::1",
    "a b",
)


@pytest.mark.parametrize("client", ["claude", "codex", "gemini"])
def test_keys_stay_on_their_side(client: str, tmp_path: Path) -> None:
    _needs(client)
    key = tmp_path / "client.key"
    key.write_text("sk-planted-client")
    listen = f'keys = ["file:{key}"]\n'
    with bench(tmp_path, "keys") as made:
        config = made.write_config(f"sqlite:{tmp_path}/g.db")
        config.write_text(config.read_text().replace("[listen]\n", f"[listen]\n{listen}"))
        process = made.start_gateway(config)
        try:
            printed = drive(made, client, "keys", "--model", "m-anthropic")
            assert "rc=0" in printed, printed
            allowed = {"authorization": "Bearer sk-planted-client"}
            reply = httpx2.get(f"{made.url}/segue/requests", headers=allowed)
            assert reply.status_code == 200
            rows = reply.text
            for value in HOSTILE:
                refused = httpx2.get(f"{made.url}/segue/requests", headers={"authorization": value})
                assert refused.status_code in (400, 401), value
                body = {"model": "m-anthropic", "messages": []}
                posted = httpx2.post(f"{made.url}/v1/messages", headers={"authorization": value}, json=body)
                assert posted.status_code in (400, 401), value
            for host in HOSTS:
                refused = httpx2.get(f"{made.url}/segue/requests", headers={**allowed, "host": host})
                assert refused.status_code in (400, 403), host
            # A crash leaves no core with keys in the folder of the gateway, and its log has none either.
            os.kill(process.pid, signal.SIGABRT)
            process.wait(10)
        finally:
            process.kill()
            process.wait(10)
        log = (tmp_path / "gateway.log").read_text()
        store = b"".join(path.read_bytes() for path in tmp_path.glob("g.db*"))
        sent = json.dumps(made.captured("keys"))
        assert "sk-planted" not in sent
        # The probe keeps the length of a key, not the key.
        assert f"<{len('sk-planted-upstream')} chars" in sent
        assert f"<{len('sk-planted-client')} chars" not in sent
        for text in (rows, log, printed):
            assert "sk-planted-upstream" not in text
        assert "sk-planted-client" not in rows + log
        assert b"sk-planted" not in store


@pytest.mark.parametrize("client", PROGRAMS)
def test_every_program_finishes_its_loop_over_every_provider_without_a_store(client: str, tmp_path: Path) -> None:
    _needs(client)
    for upstream in ("m-anthropic", "m-responses", "m-gemini", "m-chat"):
        folder = tmp_path / upstream
        folder.mkdir()
        with bench(folder, "loop") as made, made.gateway("none"):
            printed = drive(made, client, "loop", "--model", upstream)
            assert "rc=0" in printed, printed
            requests = _model_requests(made, "loop")
            assert len(requests) >= 2
            for request in requests:
                _survives(request)


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def test_gemini_cli_counts_the_tokens_of_a_picture(tmp_path: Path) -> None:
    """It asks for a count as soon as a prompt has a picture, and goes on with the answer."""
    _needs("gemini")
    with bench(tmp_path, "picture", "--no-tools") as made, made.gateway(f"sqlite:{tmp_path}/g.db"):
        work = tmp_path / "homes" / "picture" / "work"
        work.mkdir(parents=True)
        (work / "a.png").write_bytes(b64decode(PIXEL))
        settings = work.parent / ".gemini" / "settings.json"
        settings.parent.mkdir()
        settings.write_text(json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}}))
        own = {"GOOGLE_GEMINI_BASE_URL": made.url, "GEMINI_API_KEY": "any", "GEMINI_CLI_TRUST_WORKSPACE": "true"}
        program = find_client("gemini")
        assert program is not None
        done = subprocess.run(
            [program, "-m", "m-gemini", "-y", "-p", "What is this? @a.png"],
            env={**made.environment(), "HOME": str(work.parent), **own},
            cwd=work,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert [request for request in made.captured("picture") if "inlineData" in json.dumps(request["body"])]
