"""Small corpora for the tests of this folder, and how to run the program over them."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from cli.running import ROOT, Ran
from segue.cli import entry

TARGET = "anthropic/claude-sonnet-4-5"
TO = ["--to", TARGET, "--report", "none"]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"To {name}.",
            "parameters": {"type": "object", "properties": {key: {"type": "string"}}, "required": [key]},
        },
    }
    for name, key in (("read", "path"), ("run", "command"))
]

needs_arrow = pytest.mark.skipif(find_spec("pyarrow") is None, reason="of columns (no pyarrow)")


def chat(number: int) -> dict[str, Any]:
    """Give a chat request with a call and its result."""
    call = {"name": "read", "arguments": json.dumps({"path": f"file-{number}.txt"})}
    return {
        "model": "gpt-5.4",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": f"Question {number}: Größe \u2028 設定?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{number}", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"line {number} " * (number % 7 + 1)},
            {"role": "assistant", "content": f"Answer {number}."},
            {"role": "user", "content": "Thanks. And now?"},
        ],
        "tools": deepcopy(TOOLS),
    }


def lines(count: int, start: int = 0) -> list[bytes]:
    return [json.dumps(chat(number), ensure_ascii=False).encode() for number in range(start, start + count)]


def write(path: Path, content: list[bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(line + b"\n" for line in content))
    return path


def folder_of(path: Path, files: int, each: int = 20) -> Path:
    """Write a folder of files of lines, one of them in a folder of its own and one compressed."""
    for number in range(files):
        write(path / f"part-{number:03}.jsonl", lines(each, number * each))
    return path


def segue(*arguments: object) -> Ran:
    """Run the program in this process, without several processes of its own."""
    out, err = io.TextIOWrapper(io.BytesIO(), write_through=True), io.TextIOWrapper(io.BytesIO(), write_through=True)
    saved = sys.argv, sys.stdout, sys.stderr
    sys.argv, sys.stdout, sys.stderr = ["segue", *map(str, arguments)], out, err
    try:
        status = entry._run()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 0
    finally:
        sys.argv, sys.stdout, sys.stderr = saved
    return Ran(status, out.buffer.getvalue().decode(), err.buffer.getvalue().decode())  # type: ignore[attr-defined]


def start_segue(
    *arguments: object, before: str = "", env: dict[str, str] | None = None, python: str = sys.executable
) -> Ran:
    """Run the program in a process of its own; `before` is executed in it first."""
    command = command_of(*arguments, before=before, python=python)
    done = subprocess.run(command, capture_output=True, timeout=400, env=environment(env), check=False)
    err = done.stderr.decode()
    assert "Traceback" not in err, err
    return Ran(done.returncode, done.stdout.decode(), err)


def command_of(*arguments: object, before: str = "", python: str = sys.executable) -> list[str]:
    program = f"{before}\nfrom segue.cli.entry import main\nmain()"
    return [python, "-c", program, *map(str, arguments)]


def environment(env: dict[str, str] | None = None) -> dict[str, str]:
    given = (env or {}).get("PYTHONPATH", ""), os.environ.get("PYTHONPATH", "")  # a copy with planted faults is there
    paths = [path for paths in given for path in paths.split(os.pathsep)] + [str(ROOT / "src")]
    return {**os.environ, **(env or {}), "PYTHONPATH": os.pathsep.join(path for path in paths if path)}


def joined(folder: Path, pattern: str = "*.jsonl") -> bytes:
    """Join the outputs of a folder in the order of their names."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob(pattern)) if not path.name.endswith(".bad.jsonl"))


def hidden(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob(".*"))


def zipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def poison(folder: Path, marker: str, log: Path) -> dict[str, str]:
    """Give an environment in which every process dies at a row with this text; each death adds a byte to the log."""
    code = f"""
import os, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name != "segue.corpus.conversion":
            return None
        sys.meta_path.remove(self)
        from importlib.util import find_spec
        spec = find_spec(name)
        loader, execute = spec.loader, spec.loader.exec_module
        def exec_module(module):
            execute(module)
            convert = module.RowConverter.convert_into
            def convert_into(self, row, *rest):
                if {marker!r} in str(row.document.prompt.context.messages):
                    fd = os.open({str(log)!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
                    os.write(fd, b"x")
                    os._exit(9)
                return convert(self, row, *rest)
            module.RowConverter.convert_into = convert_into
        loader.exec_module = exec_module
        return spec
sys.meta_path.insert(0, Finder())
"""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(code)
    return {"PYTHONPATH": str(folder)}
