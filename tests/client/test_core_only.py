"""segue without any extra: with msgspec alone the echo model answers, and everything else names what it needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

ROOT = Path(__file__).resolve().parents[2]

FIRST = """
import segue
answer = segue.complete("Hello", "echo")
assert answer.text() == "Hello"
with segue.stream("Hello there", "echo") as events:
    assert "".join(event.delta for event in events if event.type == "text_delta") == "Hello there"
with segue.Conversation("echo") as conversation:
    conversation.ask("My name is Ada.")
    conversation.switch("echo")
    assert conversation.ask("What is my name?").text() == "What is my name?"
"""
OTHER = """
import segue
segue.complete("Hello", "openai/gpt-5.4", api_key="k")
"""
ASYNC = """
import asyncio, segue
asyncio.run(segue.AsyncClient().complete("Hello", "echo"))
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with msgspec as the only installed package."""
    package = Path(msgspec.__file__).parent
    (folder / package.name).symlink_to(package)
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{folder}"}
    return subprocess.run(
        [sys.executable, "-S", *arguments], capture_output=True, text=True, timeout=120, env=environment, check=False
    )


def test_the_first_programs_of_the_readme_need_no_extra(tmp_path: Path) -> None:
    done = run(tmp_path, "-c", FIRST)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("code", [OTHER, ASYNC])
def test_another_model_names_the_extra(tmp_path: Path, code: str) -> None:
    done = run(tmp_path, "-c", code)
    assert "sending requests needs httpx2, which is not installed: pip install 'segue-llm[client]'" in done.stderr


def test_the_program_names_the_extra(tmp_path: Path) -> None:
    done = run(tmp_path, "-m", "segue", "ask", "-m", "echo", "hi")
    assert (done.returncode, done.stdout) == (2, "")
    assert 'the package click is not installed; run: pip install "segue-llm[cli]"' in done.stderr
