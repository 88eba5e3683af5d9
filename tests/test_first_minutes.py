"""The first ten minutes of a new user: every first command works with the wheel alone, and its page shows it."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def minutes(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("first_minutes")


def test_the_page_shows_every_command_and_snippet_in_its_order(minutes):
    page = minutes.PAGE.read_text(encoding="utf-8")
    for document in minutes.DOCUMENTS:
        shown = page[page.index(f"## {document}") :]
        at = 0
        for language, text in minutes.BLOCK.findall((ROOT / document).read_text(encoding="utf-8")):
            lines = text.strip().splitlines()
            wanted = [f">>> {lines[0]}"] if language == "python" else [f"$ {line}" for line in lines if line.strip()]
            for line in wanted:
                found = shown.find(line, at)
                assert found >= 0, f"{line!r} is not on the page; run scripts/first_minutes.py --write"
                at = found + len(line)
    assert "(exit status" not in page
    assert "Traceback" not in page


def test_no_first_command_needs_a_clone(minutes):
    for document in minutes.DOCUMENTS:
        for language, text in minutes.BLOCK.findall((ROOT / document).read_text(encoding="utf-8")):
            assert language != "sh" or "examples/" not in text


@pytest.mark.proof
def test_every_first_command_works_with_the_wheel_alone():
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "first_minutes.py"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
