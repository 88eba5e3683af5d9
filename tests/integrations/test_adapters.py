"""The adapters in `integrations`: their own tests and examples, with the framework where it is installed.

`make proof` installs each adapter in an environment of its own, and runs the conformance tests of its framework.
"""

from __future__ import annotations

import os
import re
import subprocess
import venv
from pathlib import Path
from typing import NamedTuple

import pytest

from histories.framework_programs import find_python

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "integrations"


class Adapter(NamedTuple):
    folder: str
    framework: str
    passed: int
    """How many tests pass at least, those of the framework included."""


ADAPTERS = (
    Adapter("langchain", "langchain_core", 245),
    Adapter("pydantic-ai", "pydantic_ai", 40),
    Adapter("openai-agents", "agents", 23),
    Adapter("llm", "llm", 20),
)


def run(python: str, folder: Path, *words: str) -> str:
    sources = [str(ROOT / "src"), str(folder)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sources), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([python, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout


def read_example(folder: Path) -> str:
    (code,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    return code


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.folder)
def test_the_example_of_the_readme_runs(adapter):
    python = find_python(adapter.framework)
    if python is None:
        pytest.skip(f"with frameworks ({adapter.framework} is not installed, and not in SEGUE_FRAMEWORKS)")
    folder = FOLDER / adapter.folder
    assert "You wrote: And the sea?" in run(python, folder, "-c", read_example(folder))


@pytest.mark.proof
@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.folder)
def test_the_conformance_tests_pass_in_an_environment_of_its_own(adapter, tmp_path):
    folder = FOLDER / adapter.folder
    venv.create(tmp_path / "env", with_pip=True)
    python = str(tmp_path / "env" / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", str(ROOT), f"{folder}[test]"]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"with a package registry that has the framework: {done.stderr.strip()[-200:]}")
    out = run(python, folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
    passed = re.search(r"(\d+) passed", out)
    assert passed, out
    assert int(passed[1]) >= adapter.passed, out
    assert "You wrote: And the sea?" in run(python, folder, "-c", read_example(folder))
