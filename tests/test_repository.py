"""The files around the code: workflows, the package, and what a release is checked for."""

from __future__ import annotations

import importlib.util
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from segue import __version__
from segue.errors import DISTRIBUTION, MissingExtra, install_line

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
USES = re.compile(r"^\s*(?:- )?uses: *(?P<action>\S+?)@(?P<commit>\S+)(?P<comment>.*)$", re.MULTILINE)


def _module(name: str, path: Path):
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RELEASE = _module("release_check", ROOT / "scripts" / "release_check.py")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_commit_with_their_version(path):
    found = list(USES.finditer(path.read_text(encoding="utf-8")))
    assert found
    for match in found:
        assert re.fullmatch("[0-9a-f]{40}", match["commit"]), match[0]
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", match["comment"]), match[0]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_has_no_permission_that_a_job_does_not_name(path):
    text = path.read_text(encoding="utf-8")
    assert "\npermissions: {}\n" in text
    assert text.count("runs-on:") == text.count("\n    permissions:\n")
    assert "secrets." not in text


def test_workflows_test_and_the_package_names_the_versions_that_it_supports():
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    named = [line.rpartition(" ")[2] for line in PROJECT["project"]["classifiers"] if ":: 3." in line]
    assert tuple(named) == RELEASE.PYTHONS
    tested = ", ".join(f'"{version}"' for version in named)
    assert f"python: [{tested}]" in workflow
    assert PROJECT["project"]["requires-python"] == f">={named[0]}"


def test_the_hooks_have_the_linter_of_the_development_tools():
    pins = dict(line.split("==") for line in PROJECT["project"]["optional-dependencies"]["dev"] if "==" in line)
    assert f"rev: v{pins['ruff']}\n" in (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")


LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


@pytest.mark.parametrize("name", ["SECURITY.md", "CODE_OF_CONDUCT.md", ".github/pull_request_template.md"])
def test_links_lead_to_files(name):
    for link in LINK.findall((ROOT / name).read_text(encoding="utf-8")):
        assert (ROOT / name).parent.joinpath(link).exists(), link


# -- the address of the repository -------------------------------------------------------------------------------------


def _links(folder: Path, address: str) -> dict[str, str]:
    pytest.importorskip("hatchling", reason="of the build (no hatchling)")
    folder.joinpath("pyproject.toml").write_text(f'[tool.segue]\nrepository = "{address}"\n')
    hook = _module("hatch_build", ROOT / "hatch_build.py").Links(str(folder), {})
    metadata: dict[str, object] = {}
    hook.update(metadata)
    found = metadata["urls"]
    assert isinstance(found, dict)
    return found


def test_links_of_the_package_come_from_one_address(tmp_path):
    assert _links(tmp_path, "") == {}
    links = _links(tmp_path, "https://host.example/o/segue/")
    assert links["Repository"] == "https://host.example/o/segue"
    assert all(link.startswith("https://host.example/o/segue") for link in links.values())


# -- the name of the package -------------------------------------------------------------------------------------------

NAMED = re.compile(
    r"(?P<name>segue(?:-\w+)?)\[(?:[a-z]+,?)+\]"  # with extras
    r"|(?:pip install|pipx (?:run|install)|uvx|uv tool (?:run|install)|uv add) (?:-U |--upgrade |--from |--spec )?"
    r"['\"]?(?P<installed>segue(?:-\w+)?)(?=[\s'\"`,;)\[]|$)"
    r"|(?:dependencies|test) = .*\"(?P<needed>segue(?:-\w+)?)[\"\[]",
    re.MULTILINE,
)
"""Where the package is named: the name is one of the groups."""


def misnamed(text: str) -> list[str]:
    """List names of the package that are not its own."""
    found = (next(filter(None, match.groups())) for match in NAMED.finditer(text))
    return [name for name in found if name != DISTRIBUTION]


def test_the_package_has_one_name():
    assert PROJECT["project"]["name"] == DISTRIBUTION
    assert PROJECT["project"]["scripts"] == {"segue": "segue.cli.entry:main"}
    assert install_line("cli") == f"pip install '{DISTRIBUTION}[cli]' (in a clone: pip install '.[cli]')"
    assert str(MissingExtra("no click", extra="cli")).endswith(install_line("cli"))


def test_whatever_names_the_package_names_it_so():
    wrong: list[str] = []
    for folder in ("src", "docs", "examples", "integrations", "scripts", "benchmarks", "deploy", ".github"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".py", ".md", ".toml", ".yml", ".yaml", ".json"} and path.is_file():
                wrong += [f"{path.relative_to(ROOT)}: {name}" for name in misnamed(path.read_text(encoding="utf-8"))]
    for name in (
        "README.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "Dockerfile",
        "Makefile",
        "action.yml",
        "pyproject.toml",
    ):
        wrong += [f"{name}: {found}" for found in misnamed((ROOT / name).read_text(encoding="utf-8"))]
    assert wrong == []


@pytest.mark.parametrize(
    "text",
    [
        "run pip install segue.\npip install segue",
        "`pip install 'segue[cli]'`",
        "install segue[gateway,postgres]",
        "uvx --from segue segue handover",
        "pipx run --spec 'segue[cli]' segue",
        'dependencies = ["llm>=0.36", "segue[client]"]',
        'dependencies = ["segue"]',
        "pip install -U segue-ai",
    ],
)
def test_another_name_is_found(text):
    assert misnamed(text)
    assert not misnamed(re.sub(r"segue(-ai)?(?=[\['\"\s]|$)(?! handover)", DISTRIBUTION, text, count=2))


@pytest.mark.parametrize(("tag", "address", "fails"), [("v", "", True), (None, "", False), ("v", "https://h/o", False)])
def test_a_release_needs_the_address_of_its_repository(tag, address, fails, tmp_path, monkeypatch, capsys):
    for name in (PROJECT["tool"]["hatch"]["version"]["path"], "CHANGELOG.md", "pyproject.toml"):
        tmp_path.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / name).read_text(encoding="utf-8")
        own = re.sub(r'^repository = ".*"', f'repository = "{address}"', text, flags=re.MULTILINE)
        tmp_path.joinpath(name).write_text(own)
    monkeypatch.setattr(RELEASE, "ROOT", tmp_path)
    wrong = list(RELEASE._check_names(tag and f"v{__version__}", None))
    assert [("no address" in each) for each in wrong] == ([True] if fails else [])
    assert ("no address yet" in capsys.readouterr().out) == (tag is None)


# -- the check of a release --------------------------------------------------------------------------------------------

KEY = "sk-ant-" + "a1B2" * 12


def _wheel(folder: Path, **files: str) -> Path:
    path = folder / "segue-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {"segue/__init__.py": "", "segue_llm-0.1.0.dist-info/METADATA": "", **files}.items():
            archive.writestr(name, text)
    return path


PLANTED = {
    "a test": ({"segue/tests/test_x.py": ""}, "is a test"),
    "a file beside the library": ({"scripts/x.py": ""}, "is not part of the library"),
    "a compiled file": ({"segue/__pycache__/x.pyc": ""}, "does not belong into a package"),
    "a file of settings": ({"segue/.env": "A=1"}, "does not belong into a package"),
    "a key of a provider": ({"segue/x.py": f"KEY = '{KEY}'"}, "looks like a key"),
    "a key of AWS": ({"segue/x.py": "AKIA" + "Q" * 16}, "looks like a key"),
}


@pytest.mark.parametrize("case", PLANTED)
def test_what_does_not_belong_into_a_package_is_found(case, tmp_path):
    files, message = PLANTED[case]
    found = list(RELEASE.inspect_file(_wheel(tmp_path, **files)))
    assert any(message in each for each in found)
    assert not any(KEY in each for each in found)


def test_the_library_alone_passes(tmp_path):
    harmless = {"segue/testing/emulator.py": "", "segue/x.py": "AKIAIOSFODNN7EXAMPLE sk-test"}
    assert list(RELEASE.inspect_file(_wheel(tmp_path, **harmless))) == []


def test_a_key_is_found_in_a_source_distribution(tmp_path):
    path = tmp_path / "segue-0.1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, data in (("segue-0.1.0/tests/test_x.py", b""), ("segue-0.1.0/docs/x.md", KEY.encode())):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    [found] = RELEASE.inspect_file(path)
    assert "docs/x.md has what looks like a key" in found


@pytest.mark.proof
def test_the_package_passes_the_check_of_a_release(tmp_path):
    for tool in ("build", "cyclonedx_py", "twine"):
        pytest.importorskip(tool, reason=f"of the package (no {tool})")
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("of the package (no git)")
    command = [sys.executable, str(ROOT / "scripts" / "release_check.py"), "--output", str(tmp_path / "dist")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list((tmp_path / "dist").iterdir())) == 2
    bill = json.loads((tmp_path / "dist-sbom" / "segue.cdx.json").read_bytes())
    assert bill["metadata"]["component"]["name"] == "segue-llm"
    assert {"msgspec", "aiohttp", "psycopg", "mcp"} <= {part["name"] for part in bill["components"]}
