"""The documents are true: their Python runs, their commands exist, their links lead somewhere, tables are in step."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")})
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
WRITERS = sorted((ROOT / "scripts").glob("write_*.py"))

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
LINKS = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")


class Block(NamedTuple):
    """A fenced piece of a document."""

    language: str
    line: int
    text: str


def blocks(path: Path) -> list[Block]:
    """Find the fenced blocks of a document, with the line their text begins on."""
    source = path.read_text(encoding="utf-8")
    found = re.finditer(r"^```(\w*)\n(.*?)^```$", source, re.MULTILINE | re.DOTALL)
    return [Block(match[1], source.count("\n", 0, match.start(2)) + 1, match[2]) for match in found]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def commands() -> list[tuple[str, str]]:
    """Every line of every shell block, with the document it stands in."""
    return [
        (name(path), line)
        for path in DOCUMENTS
        for block in blocks(path)
        if block.language == "sh"
        for line in block.text.splitlines()
        if line.strip()
    ]


def python_blocks(path: Path) -> list[Block]:
    """What a document shows line by line; examples that it includes whole are run as the files they are."""
    included = {example.read_text(encoding="utf-8").strip() for example in EXAMPLES}
    return [block for block in blocks(path) if block.language == "python" and block.text.strip() not in included]


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if python_blocks(path)], ids=name)
def test_the_python_of_a_document_runs_from_top_to_bottom(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__document__"}
    for block in python_blocks(path):
        # Blank lines in front give tracebacks the line numbers of the document.
        exec(compile("\n" * (block.line - 1) + block.text, name(path), "exec"), namespace)


@pytest.mark.parametrize(("document", "command"), commands(), ids=str)
def test_a_command_in_a_document_exists(document, command):
    words = command.split("#")[0].split()
    match words:
        case ["make", *settings, target]:
            assert target in TARGETS
            assert all("=" in setting for setting in settings)
        case ["pip", "install", requirement]:
            wanted = re.fullmatch(r"'?segue(?:\[([a-z,]+)\])?'?", requirement)
            assert wanted, f"{requirement} is not this project"
            assert set((wanted[1] or "").split(",")) - {""} <= set(PROJECT["optional-dependencies"])
        case ["git", "clone" | "switch", *_] | ["cd", *_]:
            pass
        case _:
            pytest.fail(f"{document}: nobody checks {command!r}; teach this test about it")


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_a_link_in_a_document_leads_somewhere(path):
    for link in LINKS.findall(path.read_text(encoding="utf-8")):
        if not link.startswith(("https://", "#")):
            assert (path.parent / link.split("#")[0]).exists(), link


@pytest.mark.parametrize("path", EXAMPLES, ids=name)
def test_an_example_runs_and_is_short(path, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", path], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert len(path.read_text(encoding="utf-8").splitlines()) < 60


@pytest.mark.parametrize("path", EXAMPLES, ids=name)
def test_an_example_is_shown_in_the_documents(path):
    assert any(
        path.read_text(encoding="utf-8").strip() in document.read_text(encoding="utf-8") for document in DOCUMENTS
    )


def test_the_demo_stores_the_session_as_it_was():
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "first_minute.py"], capture_output=True, text=True, check=True
    )
    assert "stored and read again: equal, byte for byte" in done.stdout


@pytest.mark.parametrize("writer", WRITERS, ids=name)
def test_what_is_generated_is_in_step(writer):
    done = subprocess.run([sys.executable, writer, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_checks_of_the_project_are_run_before_the_tests():
    path = ROOT / ".ci" / "run"
    script = path.read_text(encoding="utf-8")
    assert os.access(path, os.X_OK)
    assert script.index("\nmake check\n") < script.index("\nmake test\n")
