"""Runs the real agent programs against a gateway, with the scripts of ../shared/clients, in a folder of their own.

`NPM` names the folder with the installed programs, one folder for each (claude, codex, gemini, pi, qwen, ...). Without
it, those that `histories.agent_programs` finds or installs are run.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, final

from histories.agent_programs import PROGRAMS, find_program

SCRIPTS = Path(__file__).resolve().parents[3] / "shared" / "clients"
_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY")
_CARRIED = re.compile(r"^(?P<name>\S+)\s+\d+\s+(?P<now>.*?) \| (?P<later>.*)$")
STATE = re.compile(
    r"^(thinking\.signature|.*encrypted_content|functionCall\.signature|reasoning_details\.(data|signature))$"
)
"""What carried.py calls the fields that only the provider understands and that have to come back."""
PATIENCE = 240
"""Seconds until a program counts as one that hangs: a busy machine may take a minute to start it."""


def scripts() -> Path | None:
    """Find the scripts: in the folder beside the project, or where `SEGUE_SHARED` says."""
    shared = os.environ.get("SEGUE_SHARED")
    folder = Path(shared) / "clients" if shared else SCRIPTS
    return folder if (folder / "drive.py").exists() else None


@cache
def programs() -> Path:
    """Give the folder with the programs: `NPM`, else one with links to those that were found."""
    if (npm := os.environ.get("NPM")) is not None:
        return Path(npm)
    folder = Path(tempfile.mkdtemp(prefix="segue-programs-"))
    atexit.register(shutil.rmtree, folder)
    for agent, program in PROGRAMS.items():
        environment = find_program(agent) or {}
        for name, package in (program, program), ("node", "node24"):
            found = shutil.which(name, path=environment.get("PATH", ""))
            link = program_in(folder, package, name)
            if found is not None and not link.exists():
                link.parent.mkdir(parents=True)
                link.symlink_to(found)
    return folder


def program_in(folder: Path, package: str, program: str) -> Path:
    return folder / package / "node_modules" / ".bin" / program


@cache
def find_client(name: str) -> Path | None:
    """Find the program of a client that starts: some packages have no program for every kind of machine."""
    program = name.partition("-")[0]
    path = program_in(programs(), program, program)
    if not path.exists():
        return None
    done = subprocess.run(
        [path, "--version"], env={**os.environ, "PATH": search_path()}, capture_output=True, check=False
    )
    return None if done.returncode else path


def search_path() -> str:
    """Give the `PATH` with the version of Node.js that the programs need."""
    return f"{program_in(programs(), 'node24', 'node').parent}{os.pathsep}{os.environ['PATH']}"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@final
class Bench(NamedTuple):
    """A folder, the port of the probe and the port of the gateway."""

    folder: Path
    probe: int
    port: int

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            **dict.fromkeys(_KEYS, "sk-planted-upstream"),
            "NPM": str(programs()),
            "CLIENTS_DIR": str(self.folder),
            "CLIENT_KEY": "sk-planted-client",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        }

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def write_config(self, store: str, more: str = "") -> Path:
        """Write the configuration: one name for each upstream, and `more` lines."""
        lines = [
            f'[listen]\naddress = "127.0.0.1:{self.port}"',
            f'[providers.anthropic]\nbase_url = "http://127.0.0.1:{self.probe}"',
            f'[providers.openai]\nbase_url = "http://127.0.0.1:{self.probe}/v1"',
            f'[providers.google]\nbase_url = "http://127.0.0.1:{self.probe}/v1beta"',
            f'[providers.openrouter]\nbase_url = "http://127.0.0.1:{self.probe}/v1"',
            '[models."m-anthropic"]\ntry = ["anthropic/claude-opus-4-8"]',
            '[models."m-responses"]\ntry = ["openai/gpt-5.4"]',
            '[models."m-gemini"]\ntry = ["google/gemini-3.1-pro-preview"]',
            '[models."m-chat"]\ntry = ["openrouter/deepseek/deepseek-v4-pro"]',
            '[models."*"]\ntry = ["anthropic/claude-opus-4-8"]',
            f'[state]\nstore = "{store}"',
            more,
        ]
        path = self.folder / "gateway.toml"
        path.write_text("\n".join(lines))
        return path

    def start_gateway(self, config: Path) -> subprocess.Popen[bytes]:
        """Start a gateway, and wait until it answers."""
        with (self.folder / "gateway.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "segue", "serve", "--config", str(config)],
                env=self.environment(),
                stdout=log,
                stderr=log,
            )
        (self.folder / "gateway.pid").write_text(str(process.pid))
        wait_for(self.port)
        return process

    @contextmanager
    def gateway(self, store: str, more: str = "") -> Iterator[None]:
        """Run a gateway, and end it as a service is ended."""
        process = self.start_gateway(self.write_config(store, more))
        try:
            yield
        finally:
            process.terminate()
            process.wait(45)

    def rows(self) -> list[dict[str, Any]]:
        """Give the rows of the requests that the gateway answered, oldest first."""
        with urllib.request.urlopen(f"{self.url}/segue/requests?limit=500", timeout=10) as reply:
            return json.load(reply)["requests"][::-1]

    def captured(self, name: str) -> list[dict[str, Any]]:
        """Give the requests that reached the probe, in order."""
        found = [json.loads(path.read_text()) for path in (self.folder / "captured").glob(f"{name}-[0-9]*.json")]
        return sorted(found, key=lambda request: request["n"])

    def planted(self, name: str) -> dict[str, str]:
        """Give the values that the probe planted, by field and number of the reply."""
        return json.loads((self.folder / "captured" / f"{name}-planted.json").read_text())


def wait_for(port: int) -> None:
    """Wait until something listens."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"nothing listens on port {port}")


def script_line(wait: str, port: int) -> str:
    """Give a line of a script of bash that waits `until` something listens, or `while` something does."""
    is_over = {"until": "&&", "while": "||"}[wait]
    test = f"(: < /dev/tcp/127.0.0.1/{port}) 2> /dev/null"
    return f"for i in {{1..{10 * PATIENCE}}}; do {test} {is_over} break; sleep 0.1; done\n"


@contextmanager
def bench(folder: Path, name: str, *options: str) -> Iterator[Bench]:
    """Start a probe for one run."""
    found = scripts()
    assert found is not None
    for part in ("captured", "logs"):
        (folder / part).mkdir(exist_ok=True)
    (folder / "hello.txt").write_text("hello\n")
    made = Bench(folder, free_port(), free_port())
    with (folder / "logs" / f"{name}.mock").open("wb") as log:
        probe = subprocess.Popen(
            [sys.executable, str(found / "probe.py"), str(made.probe), name, "--ttl", str(4 * PATIENCE), *options],
            env=made.environment(),
            stdout=log,
            stderr=log,
        )
    (folder / "probe.pid").write_text(str(probe.pid))
    try:
        wait_for(made.probe)
        yield made
    finally:
        probe.terminate()
        probe.wait(10)


def drive(made: Bench, client: str, name: str, *options: str) -> str:
    """Run a client; give what it printed. A prompt that takes longer than `PATIENCE` is ended."""
    found = scripts()
    assert found is not None
    command = [sys.executable, str(found / "drive.py"), client, name, "--base", f"http://127.0.0.1:{made.port}"]
    done = subprocess.run(
        [*command, "--quiet", "--timeout", str(PATIENCE), *options],
        env=made.environment(),
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE,
        check=False,
    )
    return done.stdout + done.stderr


def carried(made: Bench, name: str) -> dict[str, tuple[str, str]]:
    """Give, for each field that the probe planted, where it came back: in the turn, and after a resume."""
    found = scripts()
    assert found is not None
    done = subprocess.run(
        [sys.executable, str(found / "carried.py"), name],
        env=made.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    lines = (_CARRIED.match(line) for line in done.stdout.splitlines())
    return {line["name"]: (line["now"], line["later"]) for line in lines if line is not None}


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process at once."""
    process.send_signal(signal.SIGKILL)
    process.wait(10)
