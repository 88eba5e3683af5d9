"""The first ten minutes of a new user: `python scripts/first_minutes.py [--write]`.

The wheel is built and installed into an empty environment, with an empty home folder and no key. Then every command of
README.md and docs/getting-started.md runs, in their order, and is printed with its output; and the time from
`pip install` to the first answer is measured for the library, the program and the gateway. `--write` writes the times
to docs/first-minutes.md.

The exit status is 1 if a command fails. What is installed comes from the index that pip is configured for.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple
from urllib.request import Request, urlopen

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "first-minutes.md"
DOCUMENTS: Final = ("README.md", "docs/getting-started.md")
BLOCK: Final = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LONGEST: Final = 24
"""How many lines of an output are shown; the rest is counted."""
INSTALLS: Final = re.compile(r"pip install '?\.(\[[a-z,]+\])?'?")
FIRST_ANSWERS: Final = {
    "library": ("client", ("python", "-c", 'import segue; print(segue.complete("Hello", "echo").text())')),
    "program": ("client,cli", ("segue", "ask", "-m", "echo", "Hello")),
}
"""What -> the extras it needs, and the command whose output is the first answer."""
QUESTION: Final = '{"model": "echo", "messages": [{"role": "user", "content": "Hello"}]}'
"""What a client sends to the gateway, in the form of OpenAI chat."""


class Ran(NamedTuple):
    """A command, or a piece of Python, that ran."""

    shown: str
    output: str
    status: int
    seconds: float


class Machine:
    """An environment as that of a new user: an empty home, no key, and only what was installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.bin = folder / "venv" / "bin"
        home = folder / "home"
        for each in (self.folder, home):
            each.mkdir()
        venv.create(folder / "venv", with_pip=True)
        kept = {name: os.environ[name] for name in ("LANG", "PIP_INDEX_URL", "PIP_CONFIG_FILE") if name in os.environ}
        self.environment: Mapping[str, str] = {
            **kept,
            "HOME": str(home),
            "PATH": f"{self.bin}{os.pathsep}/usr/bin{os.pathsep}/bin",
            "NO_COLOR": "1",
            "SEGUE_LOCAL_SERVERS": "off",
            "COLUMNS": "100",
        }

    def start(self, command: Sequence[str]) -> subprocess.Popen[str]:
        """Start a server in the work folder."""
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *command: str, shown: str, stdin: str = "") -> Ran:
        """Run a command in the work folder."""
        began = time.perf_counter()
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        return Ran(shown, done.stdout, done.returncode, time.perf_counter() - began)

    def install(self, wheel: Path, extras: str) -> Ran:
        """Install the wheel, as `pip install` from a clone does."""
        wanted = f"{wheel}[{extras}]" if extras else str(wheel)
        shown = f"pip install '.[{extras}]'" if extras else "pip install ."
        return self.run(str(self.bin / "pip"), "install", "--disable-pip-version-check", "--quiet", wanted, shown=shown)


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this repository."""
    command = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    subprocess.run(command, check=True)
    return next(folder.glob("*.whl"))


def run_document(machine: Machine, document: str, wheel: Path) -> Iterator[Ran]:
    """Run the commands and the Python of a document, from top to bottom; all Python is one program."""
    source = (ROOT / document).read_text(encoding="utf-8")
    program: list[str] = []
    for language, text in BLOCK.findall(source):
        if language == "python":
            yield run_python(machine, program, text)
            program.append(text)
            continue
        for line in filter(str.strip, text.splitlines()):
            installs = INSTALLS.fullmatch(line)
            if installs:
                yield machine.install(wheel, (installs[1] or "").strip("[]"))
            elif line.startswith("segue ui"):
                yield run_page(machine, line)
            elif line.startswith("segue "):
                stdin = "Hello\n" if line.startswith("segue chat") else ""
                yield machine.run("bash", "-c", line.split("#")[0], shown=line, stdin=stdin)
            else:
                yield Ran(line, "this line is not a command of segue", 1, 0.0)


def run_python(machine: Machine, before: list[str], text: str) -> Ran:
    """Run a snippet behind those before it, whose output is not shown again."""
    file = machine.folder / "snippet.py"
    file.write_text(
        "import contextlib, io\n"
        'names = {"__name__": "snippet"}\n'
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        f"    for earlier in {before!r}:\n"
        "        exec(earlier, names)\n"
        f"exec({text!r}, names)\n",
        encoding="utf-8",
    )
    return machine.run(str(machine.bin / "python"), "snippet.py", shown=text.strip())


def run_page(machine: Machine, line: str) -> Ran:
    """Open the page, get it once, and end the program."""
    began = time.perf_counter()
    command = [*shlex.split(line), "--no-browser"]
    command[0] = str(machine.bin / "segue")
    with machine.start(command) as server:
        assert server.stdout is not None
        first = server.stdout.readline()
        address = re.search(r"http://\S+", first)
        try:
            if address is None:
                return Ran(line, first + server.stdout.read(), 1, time.perf_counter() - began)
            with urlopen(address[0], timeout=60) as page:  # noqa: S310 - an address of this machine
                text, status = page.read().decode(), page.status
        finally:
            server.terminate()
    shown = re.sub(r":\d+/\S+", ":PORT/TOKEN/", first)
    title = re.search(r"<title>(.*?)</title>", text)
    output = f"{shown}(the page answers with status {status}: {title[1] if title else 'no title'})"
    return Ran(f"{line} --no-browser", output, 0 if status == 200 else 1, time.perf_counter() - began)


def run_gateway(machine: Machine) -> list[Ran]:
    """Start the gateway, ask it over HTTP, and end it; the answer is that of any client of OpenAI chat."""
    began = time.perf_counter()
    command = [str(machine.bin / "segue"), "serve", "--address", "127.0.0.1:0"]
    with machine.start(command) as server:
        assert server.stdout is not None
        try:
            first = server.stdout.readline()
            address = re.search(r"http://\S+", first)
            listening = time.perf_counter()
            if address is None:
                return [Ran("segue serve", first + server.stdout.read(), 1, listening - began)]
            started = Ran("segue serve", re.sub(r":\d+", ":8787", first), 0, listening - began)
            question = Request(  # noqa: S310 - an address of this machine
                f"{address[0]}/v1/chat/completions", QUESTION.encode(), {"content-type": "application/json"}
            )
            with urlopen(question, timeout=60) as reply:  # noqa: S310
                answer = json.load(reply)["choices"][0]["message"]["content"]
        finally:
            server.terminate()
    shown = f"curl http://127.0.0.1:8787/v1/chat/completions -H 'content-type: application/json' -d '{QUESTION}'"
    return [started, Ran(shown, answer, 0, time.perf_counter() - listening)]


def measure_first_answers(wheel: Path) -> dict[str, list[Ran]]:
    """Measure the time from `pip install` in an empty environment to the first answer."""
    measured: dict[str, list[Ran]] = {}
    for name, (extras, command) in FIRST_ANSWERS.items():
        with TemporaryDirectory() as folder:
            machine = Machine(Path(folder))
            shown = shlex.join(command)
            program = str(machine.bin / command[0])
            measured[name] = [machine.install(wheel, extras), machine.run(program, *command[1:], shown=shown)]
    with TemporaryDirectory() as folder:
        machine = Machine(Path(folder))
        measured["gateway"] = [machine.install(wheel, "gateway,cli"), *run_gateway(machine)]
    return measured


def render_page(transcripts: Mapping[str, list[Ran]], first: Mapping[str, list[Ran]]) -> str:
    """Write the page: the times alone. What each command prints is on the pages that show it."""
    lines = [
        "# How long until the first answer?",
        "",
        "From the start of `pip install` in an empty environment, downloads included, with an empty home folder and no",
        "key. `python scripts/first_minutes.py --write` writes this page, from one run on two processors with other",
        "work on them.",
        "",
        "| way | commands | seconds | `pip install` |",
        "| --- | --- | --- | --- |",
    ]
    for name, runs in first.items():
        commands = ", ".join(f"`{ran.shown}`" for ran in runs)
        lines.append(f"| {name} | {commands} | {sum(ran.seconds for ran in runs):.1f} | {runs[0].seconds:.1f} |")
    lines += ["", "Every command and snippet of these pages ran in the same way, from the wheel:", ""]
    lines += ["| page | steps | seconds |", "| --- | --- | --- |"]
    for document, runs in transcripts.items():
        lines.append(f"| `{document}` | {len(runs)} | {sum(ran.seconds for ran in runs):.0f} |")
    return "\n".join(lines) + "\n"


def render_transcript(runs: Sequence[Ran]) -> str:
    """Return what a terminal would show."""
    lines: list[str] = []
    for ran in runs:
        is_python = "\n" in ran.shown or not ran.shown.startswith(("segue ", "pip "))
        prompts = [((">>> " if at == 0 else "... ") + line).rstrip() for at, line in enumerate(ran.shown.splitlines())]
        lines += [*(prompts if is_python else [f"$ {ran.shown}"]), *_shorten(ran.output)]
        if ran.status:
            lines.append(f"(exit status {ran.status})")
        lines.append("")
    return "\n".join(lines)


def _shorten(output: str) -> list[str]:
    lines = [line.rstrip() for line in output.rstrip().splitlines()]
    left = len(lines) - LONGEST
    return lines if left <= 3 else [*lines[:LONGEST], f"... {left} more lines"]


def main() -> int:
    """Run everything; print it, and write the page."""
    with TemporaryDirectory() as folder:
        wheel = build_wheel(Path(folder))
        transcripts: dict[str, list[Ran]] = {}
        for document in DOCUMENTS:
            with TemporaryDirectory() as place:
                transcripts[document] = list(run_document(Machine(Path(place)), document, wheel))
        first = measure_first_answers(wheel)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(render_page(transcripts, first), encoding="utf-8")
    for each in (*transcripts.values(), *first.values()):
        print(render_transcript(each))
    runs = [ran for group in (*transcripts.values(), *first.values()) for ran in group]
    failed = [ran for ran in runs if ran.status]
    for ran in failed:
        print(f"failed with status {ran.status}: {ran.shown}\n{ran.output}", file=sys.stderr)
    answers = [runs[-1].output.strip() for runs in first.values()]
    return 1 if failed or answers != ["Hello"] * len(answers) else 0


if __name__ == "__main__":
    sys.exit(main())
