"""Real agent programs, started by `segue run`: what they take for the window and the limits of the model.

The model is in a catalogue of its own, with numbers that no program has for any name. Each test skips where the program
is not installed: aider in the `PATH`, the others as `real_clients` finds them.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast, final

import pytest

from gateway.real_clients import find_client, search_path
from segue.testing.emulator import emulate

pytestmark = pytest.mark.proof

NAME, WINDOW, OUTPUT = "probe-model", 123_456, 12_345
ENTRY = {
    "id": NAME,
    "provider": "mine",
    "protocol": "openai-chat",
    "input": ["text"],
    "contextWindow": WINDOW,
    "maxTokens": OUTPUT,
    "cost": {"input": 7, "output": 11},
}


@final
class Ran(NamedTuple):
    """What a program printed, its home folder, and the bodies that reached the model."""

    out: str
    home: Path
    bodies: list[dict[str, Any]]

    def check_output(self) -> None:
        """Check that it asked for as many tokens as the model writes."""
        assert self.bodies, self.out
        limits = {body.get("max_tokens", body.get("max_completion_tokens")) for body in self.bodies}
        assert limits == {OUTPUT}, self.out


def _run(folder: Path, program: str, arguments: tuple[str, ...]) -> Ran:
    home = folder / "home"
    work = home / "work"
    work.mkdir(parents=True)
    (home / ".codex").mkdir()
    catalogue, config = folder / "catalogue.json", folder / "gateway.toml"
    catalogue.write_text(json.dumps({"models": [ENTRY]}))
    with emulate(strict=False) as server:
        lines = f'base_url = "{server.url}/v1"\nprotocol = "openai-chat"\nkey = "env:MINE_KEY"\n'
        config.write_text(f'catalogue = "{catalogue}"\n[providers.mine]\n{lines}')
        # gemini-cli reads no system settings below a folder such as /tmp; those of the user say the same.
        written = [sys.executable, "-m", "segue", "serve", "--setup", "gemini-cli", "--config", str(config)]
        subprocess.run([*written, "-m", f"mine/{NAME}", "--write", str(home)], check=True, capture_output=True)
        command = [sys.executable, "-m", "segue", "run", "-m", f"mine/{NAME}", "--config", str(config)]
        done = subprocess.run(
            [*command, "--store", "none", "--", program, *arguments],
            env=_environment(home),
            cwd=work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        bodies = [cast("dict[str, Any]", each.body) for each in server.emulator.requests if each.method == "POST"]
    printed = done.stdout + done.stderr
    assert done.returncode == 0, printed
    return Ran(printed, home, bodies)


def _environment(home: Path) -> dict[str, str]:
    places = {"XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": "data", "CODEX_HOME": ".codex"}
    return {
        "PATH": search_path(),
        "HOME": str(home),
        **{name: str(home / place) for name, place in places.items()},
        "MINE_KEY": "any",
        "NO_COLOR": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "COPILOT_OFFLINE": "true",
        "PI_OFFLINE": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }


def _claude(ran: Ran) -> None:
    ran.check_output()
    found = re.search(r'"contextWindow":(\d+)', ran.out)
    assert found is not None, ran.out
    assert int(found[1]) == WINDOW


def _codex(ran: Ran) -> None:
    """It shows 95 % of the window in its session file."""
    sessions = "".join(path.read_text() for path in (ran.home / ".codex" / "sessions").rglob("*.jsonl"))
    assert set(re.findall(r'"model_context_window":(\d+)', sessions)) == {str(WINDOW * 95 // 100)}
    assert "ignored" not in ran.out


def _pi(ran: Ran) -> None:
    assert re.search(rf"segue +{NAME} +123\.5K +12\.3K +no +no", ran.out), ran.out


def _opencode(ran: Ran) -> None:
    told = json.loads(ran.out[ran.out.index("{") : ran.out.rindex("}") + 1])
    assert told["limit"] == {"context": WINDOW, "output": OUTPUT}
    assert told["capabilities"]["input"] == {
        kind: kind == "text" for kind in ("text", "audio", "image", "video", "pdf")
    }
    assert (told["capabilities"]["reasoning"], told["capabilities"]["attachment"]) == (False, False)
    assert (told["cost"]["input"], told["cost"]["output"]) == (7, 11)


def _aider(ran: Ran) -> None:
    assert f"{WINDOW:,} tokens max context window size" in ran.out


PROGRAMS: dict[str, tuple[str, tuple[str, ...], Callable[[Ran], None]]] = {
    "claude takes the window and the output": ("claude", ("-p", "hi", "--output-format", "json"), _claude),
    "codex takes the window": ("codex", ("exec", "--skip-git-repo-check", "hi"), _codex),
    "gemini asks for the output": ("gemini", ("-m", NAME, "-p", "hi"), Ran.check_output),
    "opencode takes limits, media, thinking and price": ("opencode", ("models", "segue", "--verbose"), _opencode),
    "pi takes limits, images and thinking": ("pi", ("--list-models", NAME), _pi),
    "pi asks for the output": ("pi", ("-p", "hi"), Ran.check_output),
    "qwen asks for the output": ("qwen", ("-p", "hi"), Ran.check_output),
    "copilot asks for the output": ("copilot", ("-p", "hi"), Ran.check_output),
    "aider takes the window": (
        "aider",
        ("--no-git", "--yes-always", "--no-check-update", "--analytics-disable", "--message", "/tokens"),
        _aider,
    ),
}


@pytest.mark.parametrize(("program", "arguments", "check"), PROGRAMS.values(), ids=PROGRAMS.keys())
def test_a_real_program_is_told(
    program: str, arguments: tuple[str, ...], check: Callable[[Ran], None], tmp_path: Path
) -> None:
    path = shutil.which("aider") if program == "aider" else find_client(program)
    if path is None:
        pytest.skip(f"with {program} (not installed)")
    check(_run(tmp_path, str(path), arguments))
