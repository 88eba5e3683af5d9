"""`make live` against the emulator in place of providers: agrees, finds a wrong rule, keeps its limit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

from property_testing import tiers
from segue.testing.emulator import EmulatedCall, Step, emulate

SCRIPT = Path(__file__).parent.parent / "scripts" / "live.py"
KEY = "sk-ant-live-0123456789abcdef"
KEYS = {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY, "GEMINI_API_KEY": KEY}


def run_live(*arguments: str, folder: Path, account: Literal["old", "new"] = "new") -> subprocess.CompletedProcess[str]:
    calls = [Step(thinking="Look it up.", calls=(EmulatedCall(name="look_up_code"),))]
    with emulate(*calls, account=account) as server:
        command = [sys.executable, str(SCRIPT), *arguments, "--base-url", server.url, "--record", str(folder)]
        return subprocess.run(command, env={**os.environ, **KEYS}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("provider", tiers(["anthropic"], ["openai", "google"]))
def test_provider_check_and_emulator_agree(provider: str, tmp_path: Path) -> None:
    made = run_live(provider, folder=tmp_path)
    assert made.returncode == 0, made.stdout + made.stderr
    assert "DIFFERS" not in made.stdout
    steps = ("tool call", "tool result", "next question", "switch", "return", "changed prompt", "stale reasoning")
    assert all(step in made.stdout for step in steps)
    written = [path.read_text("utf-8") for path in tmp_path.rglob("*.json")]
    assert len(written) >= len(steps) - 1  # the echo model is not recorded
    assert not any(KEY in text for text in written)
    assert KEY not in made.stdout + made.stderr


def test_a_rule_that_is_wrong_is_found(tmp_path: Path) -> None:
    """An older account accepts stale reasoning of this model, which the rules say is refused."""
    made = run_live("anthropic", folder=tmp_path, account="old")
    assert made.returncode == 1
    (line,) = [line for line in made.stdout.splitlines() if "DIFFERS" in line]
    assert "stale reasoning" in line


def test_stops_before_more_is_spent_than_the_limit(tmp_path: Path) -> None:
    made = run_live("anthropic", "--limit", "0.000001", folder=tmp_path)
    assert "stopped" in made.stdout
    assert "spent $0.0000" in made.stdout
    assert not list(tmp_path.rglob("*.json"))


def test_without_a_key_says_what_to_set() -> None:
    bare = {name: value for name, value in os.environ.items() if not name.endswith("_KEY")}
    made = subprocess.run([sys.executable, str(SCRIPT)], env=bare, capture_output=True, text=True, check=False)
    assert made.returncode == 2
    assert "ANTHROPIC_API_KEY" in made.stderr
