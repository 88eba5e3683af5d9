"""Real agent programs through a gateway: the state of every upstream returns, in a loop and after a restart.

Each test skips where the program is not installed, or where the scripts that run it are not there.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from gateway.real_clients import STATE, bench, carried, drive, find_client, kill, script_line, scripts

pytestmark = pytest.mark.proof

CLIENTS = (
    "claude",
    "codex",
    "gemini",
    "pi-chat",
    "pi-anthropic",
    "pi-responses",
    "pi-google",
    "qwen",
    "opencode-anthropic",
    "opencode-chat",
    "opencode-responses",
    "opencode-google",
    "cline-anthropic",
    "cline-responses",
    "cline-chat",
)
UPSTREAMS = ("m-anthropic", "m-responses", "m-gemini", "m-chat")


def _needed(client: str) -> None:
    if scripts() is None:
        pytest.skip("with real agent programs (no ../shared/clients)")
    if find_client(client) is None:
        pytest.skip(f"with {client.partition('-')[0]} (not installed)")


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("client", CLIENTS)
def test_state_returns_in_a_loop_and_after_kill_and_resume(client: str, upstream: str, tmp_path: Path) -> None:
    _needed(client)
    name = f"{client}-{upstream}"
    with bench(tmp_path, name) as made:
        config = made.write_config(f"sqlite:{tmp_path}/gateway.db")
        restart = tmp_path / "restart.sh"
        log = tmp_path / "gateway.log"
        restart.write_text(
            f"kill -9 $(cat {tmp_path}/gateway.pid)\n"
            + script_line("while", made.port)
            + f"nohup {sys.executable} -m segue serve --config {config} >> {log} 2>&1 &\n"
            f"echo $! > {tmp_path}/gateway.pid\n" + script_line("until", made.port)
        )
        gateway = None
        try:
            gateway = made.start_gateway(config)
            printed = drive(made, client, name, "--model", upstream, "--prompts", "2", "--between", f"bash {restart}")
            assert printed.count("rc=0") == 2, printed
            found = carried(made, name)
        finally:
            if gateway is not None and gateway.poll() is None:
                kill(gateway)
            with suppress(OSError, ValueError):
                os.kill(int((tmp_path / "gateway.pid").read_text()), signal.SIGKILL)
        wanted = {field: places for field, places in found.items() if STATE.match(field)}
        assert wanted, found
        lost = {field: places for field, places in wanted.items() if not all("whole" in place for place in places)}
        assert not lost, found


def test_most_state_returns_in_a_loop_without_a_store(tmp_path: Path) -> None:
    """Without a store the state travels in what the client returns; a client that drops it all has none."""
    clients = [client for client in ("claude", "codex", "gemini", "pi-chat", "pi-anthropic") if find_client(client)]
    if scripts() is None or not clients:
        pytest.skip("with real agent programs (none is installed, or no ../shared/clients)")
    lost: dict[str, dict[str, tuple[str, str]]] = {}
    for client in clients:
        for upstream in UPSTREAMS:
            name = f"{client}-{upstream}"
            folder = tmp_path / name
            folder.mkdir()
            with bench(folder, name) as made, made.gateway("none"):
                printed = drive(made, client, name, "--model", upstream)
                assert "rc=0" in printed, printed
                found = {field: place for field, place in carried(made, name).items() if STATE.match(field)}
            if not found or not all("whole" in now for now, _ in found.values()):
                lost[name] = found
    assert len(lost) <= 3 * len(clients) / 5, lost
