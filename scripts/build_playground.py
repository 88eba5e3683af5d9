"""Build the playground, the inspector as a static page: `python scripts/build_playground.py [FOLDER]`.

The page, its styles and its scripts are those of the inspector (src/segue/inspector/page); docs/playground has what is
different. The runtime comes from npm and msgspec's wheel for it from the index of pip; they are not in the repository.
The exit status is 1 if they cannot be fetched, or npm is not there: the site is then built without a playground.

Nothing is done if the folder has been built from the same files.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from hashlib import sha256
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, cast
from zipfile import ZipFile

ROOT: Final = Path(__file__).resolve().parent.parent
OWN: Final = ROOT / "docs" / "playground"
PACKAGE: Final = ROOT / "src" / "segue"
PAGE: Final = PACKAGE / "inspector" / "page"
PYODIDE: Final = "314.0.7"
"""The runtime: Python 3.14 with the platform pyemscripten_2026_0, for which msgspec has a wheel (msgspec 0.22.0)."""
PYODIDE_SHA256: Final = "66b7949e5a0cba2250b586d7e368bf12fb482800748d182c4618254b685ffaa0"
RUNTIME: Final = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
LEFT_OUT: Final = frozenset({"cli", "client", "corpus", "gateway", "testing", "__main__.py"})
"""What needs a network, files or a server, and is not imported by the rest."""
POLICY: Final = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; connect-src 'self';"
    " img-src data: blob:; worker-src 'self' blob:; base-uri 'none'; form-action 'none'"
)
CHANGES: Final[Mapping[str, str]] = {
    '<meta charset="utf-8">': '<meta charset="utf-8">\n'
    f'<meta http-equiv="content-security-policy" content="{POLICY}">\n<meta name="referrer" content="no-referrer">',
    "<title>segue inspector</title>": "<title>segue playground</title>",
    '<link rel="preload" href="api/start" as="fetch" crossorigin>': '<link rel="modulepreload" href="worker.js">',
    "<h1>segue <span>inspector</span></h1>": "<h1>segue <span>playground</span></h1>\n"
    '  <p><a href="../index.html">Documentation</a></p>\n  <p id="loading" role="status" class="quiet"></p>',
    '<p class="lead">Open a conversation to see the request that each model would get, and every change.</p>': (
        '<p class="lead">Paste a request, a history or an error to see what each model would be told, every change, and'
        " what the provider would refuse. segue runs in this page: what you paste does not leave it.</p>"
    ),
    '<button type="button" id="link">Copy link</button>': (
        '<button type="button" id="link" title="The link has the whole content">Link with content</button>'
    ),
}
"""Texts of the inspector's page -> those of the playground. Each is there once."""


class NotBuiltError(Exception):
    """What is needed cannot be had here."""


def make_page() -> str:
    """Make the page from that of the inspector."""
    page = (PAGE / "index.html").read_text(encoding="utf-8")
    for old, new in CHANGES.items():
        if page.count(old) != 1:
            raise ValueError(f"the page of the inspector has {page.count(old)} times: {old}")
        page = page.replace(old, new)
    return page


def sources() -> dict[str, bytes]:
    """Give the files of the library that the playground needs, by their names in its archive."""
    found: dict[str, bytes] = {}
    for path in sorted(PACKAGE.rglob("*")):
        name = path.relative_to(PACKAGE)
        if (
            path.is_file()
            and "__pycache__" not in name.parts
            and name.parts[0] not in LEFT_OUT
            and "page" not in name.parts
        ):
            found[f"segue/{name.as_posix()}"] = path.read_bytes()
    return found


def digest_of(files: Mapping[str, bytes]) -> str:
    """Give what stands for these files, for the page, and for this script with the runtime that it names."""
    digest = sha256(version("msgspec").encode())
    own = [path for folder in (OWN, PAGE) for path in sorted(folder.iterdir())]
    for name, data in (*files.items(), *((path.name, path.read_bytes()) for path in (*own, Path(__file__)))):
        digest.update(f"{name} {len(data)} ".encode() + data)
    return digest.hexdigest()[:16]


def run(*command: str, where: Path) -> None:
    """Run a program.

    Raises:
        NotBuiltError: it is not there, or fails.
    """
    program = shutil.which(command[0])
    if program is None:
        raise NotBuiltError(f"there is no {command[0]}")
    done = subprocess.run([program, *command[1:]], cwd=where, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotBuiltError(f"{' '.join(command[:3])} failed: {done.stderr.strip().splitlines()[-1:]}")


def fetch_runtime(to: Path, kept: Path) -> None:
    """Put the runtime into a folder; the archive is kept for the next time."""
    archive = kept / f"pyodide-{PYODIDE}.tgz"
    if not archive.exists():
        run("npm", "pack", "--silent", f"pyodide@{PYODIDE}", where=kept)
    data = archive.read_bytes()
    if sha256(data).hexdigest() != PYODIDE_SHA256:
        archive.unlink()
        raise NotBuiltError(f"{archive.name} is not the file that this script was written for")
    with tarfile.open(fileobj=BytesIO(data)) as opened:
        for name in RUNTIME:
            member = opened.extractfile(f"package/{name}")
            assert member is not None
            (to / name).write_bytes(member.read())


def fetch_msgspec(runtime: Path, kept: Path) -> Path:
    """Fetch msgspec's wheel for the runtime, of the version that is installed here."""
    about = cast("dict[str, str]", json.loads((runtime / "pyodide-lock.json").read_bytes())["info"])
    python = "".join(about["python"].split(".")[:2])
    platform = f"pyemscripten_{about['abi_version']}_{about['arch']}"
    wheel = kept / f"msgspec-{version('msgspec')}-cp{python}-cp{python}-{platform}.whl"
    if not wheel.exists():
        chosen = ("--only-binary=:all:", "--platform", platform, "--python-version", python, "--abi", f"cp{python}")
        wanted = f"msgspec=={version('msgspec')}"
        run(
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            *chosen,
            "--dest",
            str(kept),
            wanted,
            where=kept,
        )
    return wheel


def build(to: Path, kept: Path) -> str:
    """Build the playground into a folder, and say what was done.

    Raises:
        NotBuiltError: the runtime or a program is not there.
    """
    files = sources()
    digest = digest_of(files)
    stamp = to / "version.txt"
    if stamp.exists() and stamp.read_text(encoding="ascii") == digest:
        return f"{to} is as the files are"
    kept.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        made = Path(folder) / "playground"
        runtime = made / f"pyodide-{PYODIDE}"
        runtime.mkdir(parents=True)
        fetch_runtime(runtime, kept)
        shutil.copyfile(fetch_msgspec(runtime, kept), made / "msgspec.whl")
        with ZipFile(made / "segue.zip", "w") as archive:
            for name, data in files.items():
                archive.writestr(name, data)
        run("node", str(OWN / "compile.mjs"), str(runtime), str(made / "segue.zip"), where=made)
        shutil.copyfile(PACKAGE / "cli" / "example.jsonl", made / "example.jsonl")
        for path in (*PAGE.iterdir(), OWN / "transport.js"):  # the last one is in place of the page's
            shutil.copyfile(path, made / path.name)
        (made / "index.html").write_text(make_page(), encoding="utf-8")
        worker = (OWN / "worker.js").read_text(encoding="utf-8").replace("{runtime}", runtime.name)
        (made / "worker.js").write_text(worker, encoding="utf-8")
        parts = sorted(path.relative_to(made).as_posix() for path in made.rglob("*") if path.is_file())
        offline = (OWN / "offline.js").read_text(encoding="utf-8")
        offline = offline.replace("{version}", f"segue-playground {digest}").replace(
            "{files}", json.dumps(["./", *parts])
        )
        (made / "offline.js").write_text(offline, encoding="utf-8")
        stamp = made / "version.txt"
        stamp.write_text(digest, encoding="ascii")
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(made, to)
    size = sum(path.stat().st_size for path in to.rglob("*") if path.is_file())
    return f"{to}/index.html ({size / 1e6:.1f} MB)"


def main() -> int:
    """Build it where the command line says."""
    to = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "_build" / "playground"
    try:
        print(build(to.resolve(), ROOT / ".playground"))
    except NotBuiltError as error:
        print(f"no playground: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
