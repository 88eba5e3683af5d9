"""Nothing that a file, a name or a reply says controls the terminal: one boundary, and a rule that keeps it so."""

from __future__ import annotations

import ast
import json
import os
import pty
import re
import select
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.running import ROOT, run
from segue.cli.printable import quote_word
from segue.foundation.safe_text import in_one_line, printable

PROGRAM = ROOT / "src" / "segue" / "cli"
BOUNDARY = PROGRAM / "printable.py"
UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\u202eevil\r"

# -- the rule ----------------------------------------------------------------------------------------------------------

STYLING = {"style", "secho", "echo_via_pager", "clear"}
"""What of click writes control sequences."""
RAW = {"__stdout__", "__stderr__", "write_verbatim", "_Verbatim"}
"""Ways around the boundary."""


def breaches(source: str) -> Iterator[str]:
    """List what a module of the program does that only the boundary may do."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(value=ast.Name(id="click"), attr=name) if name in STYLING:
                yield f"click.{name}"
            case ast.ImportFrom(module="click", names=names) if {each.name for each in names} & {*STYLING, "echo"}:
                yield "click by name"
            case ast.Attribute(attr=name) | ast.Name(id=name) if name in RAW:
                yield name
            case ast.ImportFrom(names=names) if {each.name for each in names} & RAW:
                yield "ways around"
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id="sys"), attr="stderr"), attr="buffer"):
                yield "sys.stderr.buffer"
            case ast.Attribute(value=ast.Name(id="os"), attr="write"):
                yield "os.write"
            case ast.Call(func=ast.Name(id="Console") | ast.Attribute(attr="Console")):
                yield "Console"
            case ast.Call(func=ast.Name(id="Control"), args=[given]) if not is_fixed(given):
                yield "Control of a text"
            case _:
                pass


def is_fixed(node: ast.expr) -> bool:
    """Whether a text is a literal in which only numbers are inserted."""
    match node:
        case ast.Constant():
            return True
        case ast.IfExp(body=one, orelse=other):
            return is_fixed(one) and is_fixed(other)
        case ast.JoinedStr(values=values):
            return all(
                isinstance(each, ast.Constant)
                or (isinstance(each, ast.FormattedValue) and ast.unparse(each.format_spec or each) == "f'd'")
                for each in values
            )
        case _:
            return False


@pytest.mark.parametrize("path", sorted(PROGRAM.rglob("*.py")), ids=lambda path: path.name)
def test_only_the_boundary_writes_control_sequences(path: Path) -> None:
    if path != BOUNDARY:
        assert not list(breaches(path.read_text("utf-8")))


@pytest.mark.parametrize(
    "planted",
    [
        "import click\nclick.secho(name, fg='red')",
        "import click\nclick.echo(click.style(name))",
        "from click import echo\necho(name)",
        "import sys\nsys.stderr.buffer.write(name)",
        "import sys\nprint(name, file=sys.__stdout__)",
        "import sys\nsys.stdout.write_verbatim(name)",
        "import os\nos.write(1, name)",
        "from rich.console import Console\nConsole().print(name)",
        "import rich.console\nrich.console.Console(stderr=True)",
        "draw((Control(name),))",
        "draw((Control(f'\\x1b]0;{name}\\x07'),))",
        "from segue.cli.printable import _Verbatim",
    ],
)
def test_the_rule_finds_a_planted_fault(planted: str) -> None:
    assert list(breaches(planted))


def test_the_program_guards_its_streams_before_anything_is_printed() -> None:
    tree = ast.parse((PROGRAM / "entry.py").read_text("utf-8"))
    (main,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "main"]
    called = [ast.unparse(each) for each in main.body[1:3]]
    assert called == ["_open_streams()", "guard_streams()"]


# -- what it does ------------------------------------------------------------------------------------------------------


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A session whose every text is hostile, in a file whose name is."""
    answer = {
        "role": "assistant",
        "model": f"m{HOSTILE}",
        "provider": f"p{HOSTILE}",
        "protocol": "openai-chat",
        "content": [
            {"type": "thinking", "thinking": HOSTILE},
            {"type": "toolCall", "id": f"c{HOSTILE}", "name": f"n{HOSTILE}", "arguments": {"a": HOSTILE}},
        ],
        "stopReason": "error",
        "errorMessage": HOSTILE,
    }
    result = {
        "role": "toolResult",
        "toolCallId": f"c{HOSTILE}",
        "toolName": f"n{HOSTILE}",
        "content": [{"type": "text", "text": HOSTILE}],
    }
    lines = [
        {"format": "segue/1", "systemPrompt": HOSTILE},
        {"role": "user", "content": [{"type": "text", "text": HOSTILE}]},
        answer,
        result,
    ]
    path = tmp_path / f"a{HOSTILE}\nsegue: all is well.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


COMMANDS = {
    "show": ("show",),
    "show everything": ("show", "--full"),
    "what is dropped": ("show", "--dropped", "--for", "openai/gpt-4"),
    "check": ("check", "--for", "openai/gpt-5.4"),
    "a report": ("convert", "--to", "anthropic/claude-opus-4-8", "-o", os.devnull),
    "a handover": ("handover", "--to", "codex", "--cwd", f"/tmp/{HOSTILE}", "-o", "{folder}"),
    "a command to paste": ("handover", "--to", "claude-code", "--cwd", f"/tmp/{HOSTILE}\nrm"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_messages_have_no_control_characters(name: str, session: Path, tmp_path: Path) -> None:
    command, *rest = (word.format(folder=tmp_path / "out") for word in COMMANDS[name])
    done = run(command, session, *rest, env={"HOME": str(tmp_path)})
    shown = done.out + done.err
    assert shown
    assert UNSAFE.search(shown) is None, shown
    assert done.status in (0, 1), shown
    assert not any(line.startswith(("segue: all is well", "rm")) for line in shown.splitlines())


@pytest.mark.parametrize("command", ["show", "check", "export", "import", "convert"])
def test_errors_name_files_without_their_control_characters(command: str, tmp_path: Path) -> None:
    for made in (False, True):
        path = tmp_path / f"b{HOSTILE}\nsegue: all is well"
        if made:
            path.write_text("not a conversation")
        done = run(command, path, *(("--to", "openai-chat") if command in ("convert", "export") else ()))
        assert done.status
        assert UNSAFE.search(done.err) is None, done.err
        assert not any(line.startswith("segue: all is well") for line in done.err.splitlines())


def test_data_in_a_pipe_is_verbatim(session: Path) -> None:
    page = run("show", session, "--format", "markdown").out
    assert HOSTILE.rstrip("\r") in page


def test_data_in_a_terminal_is_escaped(session: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "segue", "show", str(session), "--format", "markdown"]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL) as process:
        os.close(theirs)
        shown = b""
        while True:
            select.select([ours], [], [], 60)
            try:
                data = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not data:
                break
            shown += data
        process.wait(60)
    os.close(ours)
    assert UNSAFE.search(shown.decode().replace("\r\n", "\n")) is None
    assert b"\\x1b" in shown


WORDS = [
    "plain",
    "two words",
    "it's",
    "tab\there",
    "line\nbreak",
    "esc\x1b[2J",
    "csi\x9b",
    "\u202e",
    "b\\s'\x1b",
    "$(x)",
    "",
]


@pytest.mark.parametrize("word", WORDS)
def test_a_command_to_paste_shows_every_character_and_means_the_same(word: str) -> None:
    quoted = quote_word(word)
    assert in_one_line(quoted) == quoted
    shell = ["bash", "-c", f"printf %s {quoted}"]
    found = subprocess.run(shell, capture_output=True, check=True, env={**os.environ, "LC_ALL": "C.UTF-8"}).stdout
    assert found.decode() == word
    if word.isprintable():
        assert quoted == shlex.quote(word)


def test_letters_of_every_script_are_shown() -> None:
    text = "a\xa0b\u3000c\u200d\u200ch \U0001f469\u200d\U0001f4bb\n\tÅ"
    assert printable(text) == text
