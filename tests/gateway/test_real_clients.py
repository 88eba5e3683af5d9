"""Real agent programs through a gateway: the state of every upstream returns, in a loop and after a restart.

Each test skips where the program is not installed (`NPM`), or where the scripts that run it are not there.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from gateway.real_clients import STATE, bench, carried, drive, has_client, kill, scripts

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
    if not has_client(client):
        pytest.skip(f"with {client.partition('-')[0]} (not installed in $NPM)")


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
            f"nohup {sys.executable} -m segue serve --config {config} >> {log} 2>&1 &\n"
            f"echo $! > {tmp_path}/gateway.pid\n"
            "sleep 3\n"
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
