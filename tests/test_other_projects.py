"""segue in other people's checks: the pytest plug-in, the hook of pre-commit, the GitHub Action, in small projects."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from segue.errors import DISTRIBUTION

ROOT = Path(__file__).parents[1]
GOOD = {"model": "gpt-5.4", "input": "Hi"}
BAD = {**GOOD, "temperatur": 0.5}
PROJECT = f"""
import httpx2

GOOD, BAD = {GOOD!r}, {BAD!r}

def test_the_emulator_answers(segue_emulator):
    headers = {{"authorization": "Bearer any"}}
    reply = httpx2.post(segue_emulator.url + "/v1/responses", headers=headers, json=GOOD, timeout=60)
    assert reply.status_code == 200
    assert segue_emulator.emulator.requests[0].refusal is None

def test_good(assert_accepted):
    assert_accepted(GOOD, "openai/gpt-5.4")
    assert_accepted(GOOD, "openai-responses")

def test_bad(assert_accepted):
    assert_accepted(BAD, "openai/gpt-5.4")

def test_prefix(assert_stable_prefix):
    assert_stable_prefix([GOOD, {{**GOOD, "input": "Bye"}}], protocol="openai-responses")
"""


def run_pytest(project: Path, *options: str, python: str = sys.executable) -> str:
    project.joinpath("test_agent.py").write_text(PROJECT)
    words = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "test_agent.py"]
    return subprocess.run(words, cwd=project, capture_output=True, text=True, check=False).stdout


def assert_findings(out: str) -> None:
    assert re.search(r"2 failed, 2 passed", out), out
    assert "openai/gpt-5.4 would refuse the request:\ntemperatur: " in out
    assert "request 2 does not continue request 1" in out


def load_plug_in() -> tuple[str, ...]:
    """Give the option that loads the plug-in, where the installed package is older than its entry point."""
    loaded = [each.value for each in entry_points(group="pytest11")]
    return () if "segue.testing.pytest_plugin" in loaded else ("-p", "segue.testing.pytest_plugin")


def test_the_fixtures_of_the_plug_in(tmp_path):
    assert_findings(run_pytest(tmp_path, *load_plug_in()))


def test_the_plug_in_imports_nothing_of_segue_for_other_tests(tmp_path):
    tmp_path.joinpath("test_none.py").write_text(
        "import sys\n\ndef test_none():\n"
        "    names = {name for name in sys.modules if name.startswith('segue.')}\n"
        "    assert names <= {'segue._lazy', 'segue.testing', 'segue.testing.pytest_plugin'}\n"
    )
    words = [sys.executable, "-m", "pytest", "-q", *load_plug_in(), "-p", "no:cacheprovider"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def write_requests(project: Path) -> tuple[Path, Path]:
    folder = project / "requests"
    folder.mkdir()
    good, bad = folder / "good.json", folder / "bad.json"
    good.write_text(json.dumps(GOOD))
    bad.write_text(json.dumps(BAD))
    return good, bad


def test_the_action_annotates_the_files(tmp_path):
    """The script of the action, with its `segue` in place of an installed one."""
    import yaml

    write_requests(tmp_path)
    (step,) = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    installed = tmp_path / "temp" / "segue" / "bin"
    installed.mkdir(parents=True)
    for name, line in (("segue", f'exec {sys.executable} -m segue "$@"'), ("pip", "exit 0")):
        installed.joinpath(name).write_text(f"#!/bin/sh\n{line}\n")
        installed.joinpath(name).chmod(0o755)
    script = "\n".join(line for line in step["run"].splitlines() if "-m venv" not in line)
    environment = {**os.environ, "RUNNER_TEMP": str(tmp_path / "temp"), "SEGUE": str(ROOT), "TARGET": "openai/gpt-5.4"}

    def run(files: str) -> subprocess.CompletedProcess[str]:
        words = ["bash", "-e", "-c", script]
        given = {**environment, "FILES": files}
        return subprocess.run(words, cwd=tmp_path, env=given, capture_output=True, text=True, check=False)

    found = run("**/*.json")
    assert found.returncode == 1
    assert "::error file=requests/bad.json,line=1,title=field_unknown::" in found.stdout
    assert run("requests/good.json").returncode == 0
    assert (run("nothing/*.json").returncode, "no file matches" in run("nothing/*.json").stdout) == (2, True)


@pytest.mark.proof
def test_the_hook_of_pre_commit_and_the_installed_plug_in(tmp_path):
    """A fresh environment with the wheel, `pre-commit` and a project with one bad request."""
    environment = tmp_path / "env"
    venv.create(environment, with_pip=True)
    python = str(environment / "bin" / "python")
    packages = [f"{ROOT}[client,ui]", "pytest", "pre-commit"]
    done = subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("with packages of the index (they cannot be installed)")
    project = tmp_path / "project"
    project.mkdir()
    assert_findings(run_pytest(project, python=python))
    write_requests(project)
    git = [shutil.which("git") or "git", "-C", str(project)]
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "add", "requests"], check=True)
    words = [python, "-m", "pre_commit", "try-repo", str(ROOT), "segue-check", "--all-files"]
    given = {**os.environ, "PRE_COMMIT_HOME": str(tmp_path / "cache")}
    hook = subprocess.run(words, cwd=project, env=given, capture_output=True, text=True, check=False)
    # The default protocol of the hook is another one than that of the files.
    assert hook.returncode == 1, hook.stdout
    assert "requests/bad.json" in hook.stdout


@pytest.mark.proof
def test_the_wheel_runs_without_an_installation(tmp_path):
    """With `uvx` and `pipx`, from the wheel that a release would publish."""
    environment = tmp_path / "env"
    venv.create(environment, with_pip=True)
    programs = environment / "bin"
    done = subprocess.run([programs / "pip", "install", "--quiet", "build", "uv", "pipx"], check=False)
    if done.returncode:
        pytest.skip("with packages of the index (they cannot be installed)")
    subprocess.run(
        [programs / "python", "-m", "build", "--wheel", "--outdir", tmp_path, ROOT], check=True, capture_output=True
    )
    (wheel,) = tmp_path.glob("*.whl")
    given = {
        **os.environ,
        "HOME": str(tmp_path),
        "UV_CACHE_DIR": str(tmp_path / "uv"),
        "PIPX_HOME": str(tmp_path / "pipx"),
    }
    named = [programs / "uv", "tool", "run", "--find-links", tmp_path, "--from"]
    for words in (
        [*named, f"{DISTRIBUTION}[cli]", "segue", "handover", "--help"],
        [programs / "pipx", "run", "--spec", f"{wheel}[cli]", "segue", "handover", "--help"],
    ):
        shown = subprocess.run(words, env=given, capture_output=True, text=True, check=False)
        assert "Write the session SOURCE for another agent" in shown.stdout, shown.stderr
    plain = [*named, DISTRIBUTION, "segue", "handover", "--help"]
    refused = subprocess.run(plain, env=given, capture_output=True, text=True, check=False)
    assert f'uvx --from "{DISTRIBUTION}[cli]" segue' in refused.stderr
    assert "Traceback" not in refused.stderr
