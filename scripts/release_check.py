"""Build the package as a release would be built, inspect it, and install it on every interpreter that is there.

    python scripts/release_check.py [--tag v0.1.0] [--repository URL] [--output dist]

The files that git tracks are built twice, in two folders and with two settings of the environment; the results have to
be the same bytes. Then `twine check`, what is inside of them, and an installation on each Python from 3.11 on that is
found. The package with all its extras is listed in a bill of materials (CycloneDX), in a folder beside the output: what
is in the output is published. `--tag` and `--repository` are what a release has to agree with.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
BUILDS: Final[tuple[Mapping[str, str], ...]] = (
    {"PYTHONHASHSEED": "1", "TZ": "UTC", "LC_ALL": "C.UTF-8"},
    {"PYTHONHASHSEED": "2", "TZ": "Pacific/Kiritimati", "LC_ALL": "C"},
)
"""Settings that must not make a difference."""
SECRETS: Final = re.compile(
    rb"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----\s+[A-Za-z0-9+/=]{40}"
    rb"|\bsk-(?:ant-|proj-|or-v1-)[A-Za-z0-9_-]{40,}|\bAKIA(?![0-9A-Z]{9}EXAMPLE)[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{35}\b"
    rb"|\bgh[pousr]_[A-Za-z0-9]{36}\b|\bgithub_pat_[A-Za-z0-9_]{60,}|\bpypi-AgEI[A-Za-z0-9_-]{50,}|\bxox[bp]-[0-9A-Za-z-]{30,}"
)
"""The forms of keys of providers, code hosts and package indexes."""
PRIVATE_FILES: Final = re.compile(
    r"(?:^|/)(?:\.env|\.netrc|\.pypirc|id_rsa|id_ed25519|credentials)(?:$|\.)|\.(?:pem|key|pyc)$"
)
SMOKE: Final = """
import segue
context = segue.load(segue.dump(segue.Context().add(segue.UserMessage.of("Hello"))))
request = segue.prepare(context, "anthropic/claude-sonnet-4-5")
assert request.body["messages"][0]["content"], request.body
assert segue.read_history([{"role": "user", "content": "Hello"}]).context.messages
assert segue.__file__.startswith(__import__("sys").prefix), segue.__file__
print(segue.__version__)
"""


def main() -> str | None:
    """Run every check; give what is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tag", help="the tag of the release, which has to name the version")
    parser.add_argument("--repository", help="the address of the repository, which has to be that of pyproject.toml")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="where the checked files go")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="segue-release-") as folder:
        work = Path(folder)
        wrong = [*_check_names(given.tag, given.repository)]
        first, second = (_build(work / str(number), settings) for number, settings in enumerate(BUILDS, 1))
        wrong += _compare(first, second)
        files = sorted(first.iterdir())
        checked = _run(sys.executable, "-m", "twine", "check", "--strict", *map(str, files), check=False)
        wrong += [] if checked.returncode == 0 else [checked.stdout + checked.stderr]
        for file in files:
            wrong += inspect_file(file)
        wheel = next(file for file in files if file.suffix == ".whl")
        wrong += _lacks_data(wheel)
        wrong += _install_everywhere(wheel, work)
        if wrong:
            return "\n".join(wrong)
        shutil.rmtree(given.output, ignore_errors=True)
        shutil.copytree(first, given.output)
        bill = _write_bill(wheel, work / "bill", given.output.with_name(f"{given.output.name}-sbom"))
    for file in [*sorted(given.output.iterdir()), bill]:
        print(f"{sha256(file.read_bytes()).hexdigest()}  {file.name}")
    return None


def _run(
    *command: str, check: bool = True, settings: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **(settings or {})}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=ROOT)
    if check and done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done


def _check_names(tag: str | None, repository: str | None) -> Iterator[str]:
    """Compare the tag with the version and the changelog, and the address with that of pyproject.toml."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    version = re.findall(
        r'__version__ = "(.+)"', (ROOT / "src/segue/foundation/version.py").read_text(encoding="utf-8")
    )[0]
    own = settings["tool"]["segue"]["repository"]
    if tag is not None and tag != f"v{version}":
        yield f"the tag {tag} is not that of version {version}; it has to be v{version}"
    if tag is not None and f"\n## {version}" not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"):
        yield f"CHANGELOG.md has no section `## {version}`"
    if repository is not None and own != repository:
        yield f"tool.segue.repository in pyproject.toml is {own!r}; set it to {repository!r}"
    elif not own and tag is not None:
        yield "the repository has no address; set tool.segue.repository in pyproject.toml, or the package has no links"
    elif not own:
        print("the repository has no address yet (tool.segue.repository in pyproject.toml): the package has no links")


def _build(folder: Path, settings: Mapping[str, str]) -> Path:
    """Build what git tracks; give the folder with the source distribution and the wheel made from it."""
    source, made = folder / "source", folder / "dist"
    for name in _run("git", "ls-files", "-z").stdout.split("\0"):
        if name and (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, source / name)
    epoch = _run("git", "log", "-1", "--format=%ct").stdout.strip()
    command = (sys.executable, "-m", "build", "--outdir", str(made), str(source))
    _run(*command, settings={"SOURCE_DATE_EPOCH": epoch, **settings})
    return made


def _compare(first: Path, second: Path) -> Iterator[str]:
    names = sorted(file.name for file in first.iterdir())
    if names != sorted(file.name for file in second.iterdir()) or len(names) != 2:
        yield f"one build gave {names}, the other something else; a source distribution and a wheel are expected"
    for name in names:
        if (first / name).read_bytes() != (second / name).read_bytes():
            yield f"{name}: two builds of the same files differ"
        else:
            print(f"{name}: two builds give the same bytes")


def inspect_file(file: Path) -> Iterator[str]:
    """Find what must not be in a package: in a wheel anything but the library, anywhere keys and private files."""
    count = 0
    for name, data in _members(file):
        count += 1
        if PRIVATE_FILES.search(name) or "__pycache__" in name:
            yield f"{file.name}: {name} does not belong into a package"
        if file.suffix == ".whl" and not re.match(rf"segue/|{_find_name()}-[^/]+\.dist-info/", name):
            yield f"{file.name}: {name} is not part of the library"
        if file.suffix == ".whl" and re.search(r"(?:^|/)(?:tests?/|test_|conftest)", name):
            yield f"{file.name}: {name} is a test"
        if found := SECRETS.search(data):
            yield f"{file.name}: {name} has what looks like a key ({found[0][:8].decode(errors='replace')}...)"
    print(f"{file.name}: {count} files, {file.stat().st_size:,} bytes")


def _find_name() -> str:
    """Give the name of the package as files have it."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return settings["project"]["name"].replace("-", "_")


def _members(file: Path) -> Iterator[tuple[str, bytes]]:
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as archive:
            for name in archive.namelist():
                yield name, archive.read(name)
    else:
        with tarfile.open(file) as archive:
            for member in archive:
                opened = archive.extractfile(member)
                if opened is not None:
                    yield member.name, opened.read()


def _lacks_data(wheel: Path) -> Iterator[str]:
    """Find files of the library that the wheel does not have: catalogue, samples, pages, stubs."""
    names = {name for name, _ in _members(wheel)}
    for tracked in _run("git", "ls-files", "src/segue").stdout.split():
        if tracked.removeprefix("src/") not in names:
            yield f"{wheel.name}: {tracked} is missing"


def _install_everywhere(wheel: Path, work: Path) -> Iterator[str]:
    """Install the wheel without and with the command line program on each interpreter, and use it."""
    installed = 0
    for version in PYTHONS:
        python = _find_python(version)
        if python is None:
            print(f"Python {version}: not there, not tried")
            continue
        home = work / f"python{version}"
        _run(python, "-m", "venv", str(home))
        scripts = home / ("Scripts" if os.name == "nt" else "bin")
        own = str(scripts / "python")
        pip = (own, "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        for install, command in (
            ((str(wheel),), (own, "-I", "-c", SMOKE)),
            ((f"{wheel}[cli]",), (str(scripts / "segue"), "show", "--example")),
        ):
            done = _run(*pip, *install, check=False)
            done = done if done.returncode else _run(*command, check=False)
            if done.returncode:
                yield f"Python {version}: {done.stdout}{done.stderr}"
                break
        else:
            installed += 1
            print(f"Python {version}: installed and used")
    if not installed:
        yield "no interpreter could be tried"


def _write_bill(wheel: Path, home: Path, output: Path) -> Path:
    """Install the wheel with every extra of users, and write which packages in which versions that gives."""
    _run(sys.executable, "-m", "venv", "--without-pip", str(home))
    python = str(home / ("Scripts" if os.name == "nt" else "bin") / "python")
    pip = (sys.executable, "-m", "pip", f"--python={python}", "install", "--quiet", "--disable-pip-version-check")
    _run(*pip, f"{wheel}[all,postgres,corpus,mcp,acp]")
    output.mkdir(parents=True, exist_ok=True)
    bill = output / "segue.cdx.json"
    project = str(ROOT / "pyproject.toml")
    options = ("--pyproject", project, "--mc-type", "library", "--output-reproducible", "-o", str(bill))
    _run(sys.executable, "-m", "cyclonedx_py", "environment", *options, python)
    return bill


def _find_python(version: str) -> str | None:
    """Find an interpreter that starts; a shim of a version manager may not."""
    for name in (f"python{version}", *sorted(map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python")))):
        path = shutil.which(name)
        test = "import sys; sys.exit('%d.%d' % sys.version_info[:2] != " + repr(version) + ")"
        if path is not None and _run(path, "-I", "-c", test, check=False).returncode == 0:
            return path
    return None


if __name__ == "__main__":
    sys.exit(main())
