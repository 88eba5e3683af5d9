"""The agents' own programs: those on the PATH, else installed once into a folder of the repository."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

PROGRAMS = {"claude-code": "claude", "codex": "codex", "gemini-cli": "gemini", "opencode": "opencode", "pi": "pi"}
PACKAGES = (
    "@anthropic-ai/claude-code@2.1.325",
    "@openai/codex@0.166.0",
    "@google/gemini-cli@0.61.0",
    "opencode-ai@1.18.33",
    "@earendil-works/pi-coding-agent@0.87.1",
    "node@22",
)
"""The versions that the samples were made with."""
FOLDER = Path(__file__).parents[2] / ".agents"


@cache
def search_path() -> str:
    """Give the PATH with all programs; they are installed if one is missing."""
    path = os.environ["PATH"]
    if all(shutil.which(program) for program in PROGRAMS.values()):
        return path
    return f"{FOLDER / 'node_modules' / '.bin'}{os.pathsep}{path}" if _install() else path


def _install() -> bool:
    if shutil.which("npm") is None:
        return False
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one process installs, the others wait
        if (FOLDER / "done").exists():
            return True
        command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(FOLDER), *PACKAGES]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=900)
        except (subprocess.SubprocessError, OSError):
            return False
        (FOLDER / "done").touch()
        return True


def need_program(agent: str) -> dict[str, str]:
    """Give the environment to run an agent in; the test is skipped where it cannot be installed."""
    path = search_path()
    if shutil.which(PROGRAMS[agent], path=path) is None:
        pytest.skip(f"with real agents ({PROGRAMS[agent]} cannot be installed)")
    return {**os.environ, "PATH": path}
