"""The agents' own programs: those on the PATH, else installed once into folders of the repository."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from histories.truth import SHARED

PROGRAMS = {"claude-code": "claude", "codex": "codex", "gemini-cli": "gemini", "opencode": "opencode", "pi": "pi"}
BINARIES = {**PROGRAMS, "qwen-code": "qwen", "copilot-cli": "copilot"}
"""The programs that a test can run; those above also continue files that segue writes, in `resume.py`."""
PACKAGES = {
    "claude-code": ("@anthropic-ai/claude-code@2.1.327", "@anthropic-ai/claude-code@2.1.325"),
    "codex": ("@openai/codex@0.169.0", "@openai/codex@0.166.0"),
    "gemini-cli": ("@google/gemini-cli@0.61.0",),
    "opencode": ("opencode-ai@1.18.33", "opencode-ai@1.18.18"),  # the older one where there is no build of the newer
    "pi": ("@earendil-works/pi-coding-agent@0.87.1",),
    "qwen-code": ("@qwen-code/qwen-code@0.24.4",),
    "copilot-cli": ("@github/copilot@1.0.102",),
}
"""The newest versions, and those that the samples were made with."""
NODE = "node@22"
FOLDER = Path(__file__).parents[2] / ".agents"
RESUMED = Path(__file__).parents[2] / "docs" / "resumed.json"
"""Which handovers real programs have continued; the documentation shows it."""


def record_resumed(source: str, target: str, package: str) -> None:
    """Note that a program has continued a session of an agent, if `SEGUE_RECORD` is set; else nothing is written."""
    if not os.environ.get("SEGUE_RECORD"):
        return
    with (FOLDER / "resumed.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = json.loads(RESUMED.read_bytes()) if RESUMED.exists() else {}
        version, day = package.rpartition("@")[2], datetime.now(UTC).date().isoformat()
        row = kept.get(target)
        if row is None or row["version"] != version:
            row = kept[target] = {"version": version, "resumed": {}}
        row["resumed"][source] = day
        RESUMED.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")


def used_package(agent: str) -> str:
    """Give the package of an agent that `find_program` runs."""
    return next(package for package in PACKAGES[agent] if install(package) is not None)


@cache
def install(package: str) -> Path | None:
    """Install a package of npm into a folder of its own, once; None if that is not possible."""
    if shutil.which("npm") is None:
        return None
    folder = FOLDER / package.replace("/", "-").replace("@", "-").strip("-")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one process installs, the others wait
        if (folder / "done").exists():
            return folder
        command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), package]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=900)
        except (subprocess.SubprocessError, OSError):
            return None
        (folder / "done").touch()
        return folder


def need_package(package: str) -> Path:
    """Give a folder with a package of npm; the test is skipped where it cannot be installed."""
    folder = install(package)
    if folder is None:
        pytest.skip(f"with packages of npm ({package} cannot be installed)")
    return folder


def find_program(agent: str) -> dict[str, str] | None:
    """Give the environment to run an agent in; None where it cannot be installed."""
    if shutil.which(BINARIES[agent]) is not None:
        return dict(os.environ)
    found = next((folder for package in PACKAGES[agent] if (folder := install(package)) is not None), None)
    node = install(NODE)
    if found is None or node is None:
        return None
    folders = (str(folder / "node_modules" / ".bin") for folder in (node, found))
    return {**os.environ, "PATH": os.pathsep.join((*folders, os.environ["PATH"]))}


def need_program(agent: str) -> dict[str, str]:
    """Give the environment to run an agent in; the test is skipped where it cannot be installed."""
    found = find_program(agent)
    if found is None:
        pytest.skip(f"with real agents ({BINARIES[agent]} cannot be installed)")
    return found


def resume(agent: str, file: Path, cwd: Path | None = None) -> dict[str, Any]:
    """Continue a session file in the agent's program, offline: its exit code, what it said and what it sent."""
    command = [sys.executable, str(SHARED / "resume" / "resume.py"), agent, str(file)]
    command += [] if cwd is None else ["--cwd", str(cwd)]
    environment = need_program(agent)
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, env=environment)
    answer = json.loads(done.stdout)
    assert (answer["exit"], "Resumed." in answer["said"]) == (0, True), answer["said"]
    return answer


def texts_in(value: object) -> list[str]:
    """Give every text of a JSON value."""
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in texts_in(item)]
