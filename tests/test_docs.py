"""The documentation: its Python code and commands run, its links exist, its generated parts are up to date.

Commands of the program run in a folder with the examples, in the order of each document. Their exit status has to be 0,
or that of a comment: `# exit status 1`.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import NamedTuple
from urllib.request import urlopen

import pytest

from cli.running import run
from segue import read_session
from segue.cli.program import COMMANDS
from segue.models.providers import PROVIDERS
from segue.protocols.registry import PROTOCOLS

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")})
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
RECIPES = sorted((ROOT / "examples" / "engines").glob("*.py"))
"""Run by tests/corpus/test_engines.py: each needs an engine."""
WRITERS = sorted((ROOT / "scripts").glob("write_*.py"))

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
SHELL = set("|<>&;$*`")
"""Characters that a shell reads."""
RUNS_SEGUE = re.compile(r"(?:^|\| )segue ")
CODE = re.compile(r"`[^`\n]+`")
NEEDS = re.compile(r"<!-- needs: (\w+) -->\n")
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


def command_lines(path: Path) -> list[str]:
    """Every line of every shell block of a document."""
    shells = [block for block in blocks(path) if block.language == "sh"]
    return [line for block in shells for line in block.text.splitlines() if line.strip()]


def other_commands() -> list[tuple[str, str]]:
    """What is not the program's own, with the document it stands in."""
    lines = ((name(path), line) for path in DOCUMENTS for line in command_lines(path))
    return [(document, line) for document, line in lines if not RUNS_SEGUE.search(line)]


def own_commands(path: Path) -> list[str]:
    return [line for line in command_lines(path) if RUNS_SEGUE.search(line)]


def python_blocks(path: Path) -> list[Block]:
    """What a document shows line by line; examples that it includes whole are run as the files they are."""
    included = {example.read_text(encoding="utf-8").strip() for example in (*EXAMPLES, *RECIPES)}
    return [block for block in blocks(path) if block.language == "python" and block.text.strip() not in included]


def missing_package(path: Path) -> str | None:
    """The package that a document needs and that is not installed: `<!-- needs: NAME -->` stands above its title."""
    needed = NEEDS.match(path.read_text(encoding="utf-8"))
    return needed[1] if needed is not None and find_spec(needed[1]) is None else None


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if python_blocks(path)], ids=name)
def test_the_python_of_a_document_runs_from_top_to_bottom(path, tmp_path, monkeypatch):
    if (missing := missing_package(path)) is not None:
        pytest.skip(f"of a guide (no {missing})")
    monkeypatch.chdir(tmp_path)
    for _ in range(2):  # in the same folder: whoever tries an example tries it twice
        module = ModuleType("__document__")
        monkeypatch.setitem(sys.modules, module.__name__, module)  # dataclasses look for the module of their class
        for block in python_blocks(path):
            # Blank lines in front give tracebacks the line numbers of the document.
            exec(compile("\n" * (block.line - 1) + block.text, name(path), "exec"), vars(module))


@pytest.mark.parametrize(("document", "command"), other_commands(), ids=str)
def test_a_command_in_a_document_exists(document, command):
    words = command.split("#")[0].split()
    match words:
        case ["make", *settings, target]:
            assert target in TARGETS
            assert all("=" in setting for setting in settings)
        case ["pip", "install", requirement]:
            # From a clone: the package is not published.
            wanted = re.fullmatch(r"'?\.(?:\[([a-z,]+)\])?'?", requirement)
            assert wanted, f"{requirement} is not this project"
            assert set((wanted[1] or "").split(",")) - {""} <= set(PROJECT["optional-dependencies"])
        case ["git", "clone" | "switch", *_] | ["cd", *_]:
            pass
        case _:
            pytest.fail(f"{document}: nobody checks {command!r}; teach this test about it")


@pytest.fixture
def keyless(tmp_path, monkeypatch):
    """A folder with the examples, the program on the path, and no key of anybody's."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("node_modules"))
    for row in PROVIDERS.values():
        for variable in row.key_variables:
            monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if own_commands(path)], ids=name)
def test_the_program_prints_what_a_document_shows(path, keyless):
    for line in own_commands(path):
        if line.startswith("segue ui"):
            answer_of_page(line, keyless)
            continue
        wanted = re.search(r"# exit status (\d+)", line)
        status, err = run_line(line, keyless)
        assert status == int(wanted[1] if wanted else 0), f"{line}\n{err}"
        assert "Traceback" not in err


def run_line(line: str, folder: Path) -> tuple[int, str]:
    """Run a command; only pipes and redirections need a shell, and a start of Python."""
    words = shlex.split(line, comments=True)
    if not SHELL.intersection(" ".join(words)):
        done = run(*words[1:], cwd=folder)
        return done.status, done.err
    started = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return started.returncode, started.stderr


def answer_of_page(line: str, folder: Path) -> None:
    """Open the page as the line says, but for the browser, and look at what it answers."""
    command = ["segue", *line.split("#", maxsplit=1)[0].split()[1:], "--no-browser"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            line_of_address = server.stdout.readline()
            address = re.search(r"http://\S+", line_of_address)
            assert address, line_of_address
            with urlopen(address[0], timeout=30) as page:
                assert page.status == 200
                assert b"<html" in page.read()
        finally:
            server.terminate()


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_a_link_in_a_document_leads_somewhere(path):
    words = CODE.sub("code", path.read_text(encoding="utf-8"))
    for link in LINKS.findall(words):
        if not link.startswith(("https://", "#")):
            assert (path.parent / link.split("#")[0]).exists(), link


def test_the_links_of_the_readme_work_outside_of_the_repository():
    words = CODE.sub("code", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert [link for link in LINKS.findall(words) if not link.startswith(("https://", "#"))] == []


def test_the_readme_sends_a_request_on_its_first_screen():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text[: text.index("segue.complete(")].count("\n") < 40
    assert text.index("pip install") < text.index("make ")


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
    assert "stored and loaded again: equal, byte for byte" in done.stdout


def test_the_demo_covers_every_protocol():
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "demo.py"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    rows = [line.split() for line in done.stdout.splitlines()]
    verdicts = {row[0]: row[-1] for row in rows if row and row[0] in PROTOCOLS}
    assert verdicts == dict.fromkeys(PROTOCOLS, "ok")
    assert done.stdout.splitlines()[-1].endswith("segue ui examples/session.jsonl")


def test_the_demo_session_has_everything_that_makes_switching_hard():
    messages = read_session(ROOT / "examples" / "session.jsonl").messages
    turns = [message for message in messages if message.role == "assistant"]
    calls = {call.id for turn in turns for call in turn.tool_calls()}
    results = [message for message in messages if message.role == "toolResult"]
    assert {turn.provider for turn in turns} == {"anthropic", "openai", "google", "deepseek"}
    assert any(turn.stop_reason == "aborted" for turn in turns)
    assert any(len(turn.tool_calls()) > 1 for turn in turns)
    assert any(content.kind == "image" for result in results for content in result.content)
    assert any(result.tool_call_id not in calls for result in results)


@pytest.mark.proof  # `make check` runs the same commands
@pytest.mark.parametrize("writer", WRITERS, ids=name)
def test_generated_documents_are_up_to_date(writer):
    done = subprocess.run([sys.executable, writer, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_checks_of_the_project_are_run_before_the_tests():
    path = ROOT / ".ci" / "run"
    script = path.read_text(encoding="utf-8")
    assert os.access(path, os.X_OK)
    assert script.index("\nmake check\n") < script.index("\nmake test\n")


def test_every_extra_is_explained_and_every_command_is_listed():
    started = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
    for extra in set(PROJECT["optional-dependencies"]) - {"dev", "docs", "release"}:
        assert f"| `{extra}` |" in started, extra
    (whole,) = (line for line in started.splitlines() if line.startswith("| `all` |"))
    (given,) = PROJECT["optional-dependencies"]["all"]
    left_out = set(PROJECT["optional-dependencies"]) - {"dev", "docs", "release", "all"}
    left_out -= set(given.removeprefix(f"{PROJECT['name']}[").removesuffix("]").split(","))
    assert set(re.findall(r"`(\w+)`", whole)) - {"all"} == left_out
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for command in COMMANDS:
        assert f"`{command}`" in index or f"`segue {command}`" in index, command
