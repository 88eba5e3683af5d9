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


def count_steps(minutes, document: str) -> int:
    blocks = minutes.BLOCK.findall((ROOT / document).read_text(encoding="utf-8"))
    return sum(
        1 if language == "python" else len([line for line in text.splitlines() if line.strip()])
        for language, text in blocks
    )


def test_the_page_is_of_every_command_and_snippet(minutes):
    page = minutes.PAGE.read_text(encoding="utf-8")
    for document in minutes.DOCUMENTS:
        row = f"| `{document}` | {count_steps(minutes, document)} |"
        assert row in page, f"{row!r} is not on the page; run scripts/first_minutes.py --write"


def test_the_page_is_the_one_that_the_script_writes(minutes):
    ran = minutes.Ran("pip install .", "", 0, 1.5)
    page = minutes.render_page({document: [ran] for document in minutes.DOCUMENTS}, {"library": [ran]})
    titles = [line for line in page.splitlines() if line[:1] == "#" or line[:3] == "| p"]
    assert titles
    assert set(titles) <= set(minutes.PAGE.read_text(encoding="utf-8").splitlines())


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
