"""A home folder of the tests' own, in which agents keep their sessions."""

from __future__ import annotations

import os

import pytest

VARIABLES = (
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "GEMINI_CLI_HOME",
    "XDG_DATA_HOME",
    "PI_CODING_AGENT_DIR",
    "COPILOT_HOME",
    "QWEN_RUNTIME_DIR",
    "QWEN_HOME",
)
"""What moves the folder of an agent elsewhere."""


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    return tmp_path
