"""The recording of README and the landing page: its files have the right form, and are of the commands of today."""

from __future__ import annotations

import importlib
import json
import re
import shlex
from pathlib import Path
from xml.etree import ElementTree as ET

import click
import pytest

from segue.cli.program import program

ROOT = Path(__file__).resolve().parents[1]
SVG = "{http://www.w3.org/2000/svg}"
MOST_BYTES = 60_000
"""Of each file: a page loads it before it is looked at."""


@pytest.fixture
def demo(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("record_demo")


def shown(demo) -> str:
    """Return what the recording shows, without colours."""
    return re.sub(r"\x1b\[[\d;]*m", "", "".join(event.text for event in demo.read_cast()))


def commands(demo) -> list[str]:
    return [command for scene in demo.SCENES.values() for command in scene]


def test_the_recording_is_an_asciinema_file_of_about_two_minutes(demo):
    header, *lines = demo.CAST.read_text(encoding="utf-8").splitlines()
    about = json.loads(header)
    assert (about["version"], about["width"], about["height"]) == (2, demo.COLUMNS, demo.LINES)
    events = [json.loads(line) for line in lines]
    times = [at for at, kind, text in events if kind == "o" and isinstance(text, str)]
    assert len(times) == len(events)
    assert times == sorted(times)
    assert 60 < times[-1] < 150


def test_the_recording_is_of_the_scenes_of_the_script_and_nothing_failed(demo):
    text = shown(demo)
    assert [line[2:] for line in text.splitlines() if line.startswith(demo.PROMPT)] == commands(demo)
    assert [line[2:] for line in text.splitlines() if line.startswith("# ")] == list(demo.SCENES)
    assert "Traceback" not in text
    assert "segue: " not in text  # how its errors begin
    assert "Restored: 4 messages" in text
    counts = re.findall(r"^ +(\d) \S{24}$", text.replace("\r", ""), re.MULTILINE)
    assert counts.count("2") == 2  # both signatures of Claude are in its first session, and in the one that came back
    assert text.rstrip().endswith("no problems found")


def test_the_commands_of_the_recording_exist(demo):
    for line in commands(demo):
        words = shlex.split(line.partition(" -- ")[0].partition("|")[0])
        if words[0] != "segue":
            assert words[0] in ("cat", "grep")
            continue
        command = program.get_command(click.Context(program), words[1])
        assert command is not None, line
        options = {name for parameter in command.params for name in parameter.opts}
        assert {word for word in words[2:] if word.startswith("-")} <= options, line


def test_the_picture_is_drawn_from_the_recording(demo):
    data = demo.PICTURE.read_text(encoding="utf-8")
    assert data == demo.draw(demo.read_cast()), "run scripts/record_demo.py --draw"
    root = ET.fromstring(data)
    assert root.tag == f"{SVG}svg"
    text = "".join("".join(line.itertext()) for line in root.iter(f"{SVG}text"))
    for line in commands(demo):
        assert line in text
    assert not {element.tag for element in root.iter()} & {f"{SVG}script", f"{SVG}image", f"{SVG}a"}
    assert "url(" not in data
    for path in (demo.CAST, demo.PICTURE):
        assert path.stat().st_size < MOST_BYTES
        assert "/work/" not in path.read_text(encoding="utf-8")


def test_a_terminal_is_laid_out_as_lines_with_colours(demo):
    events = [
        demo.Recorded(1.0, "$ "), demo.Recorded(1.5, "ls"), demo.Recorded(2.0, "\r\n"),
        demo.Recorded(2.5, "old\rnew \x1b[1;31mred\x1b[0m\n" + "x" * (demo.COLUMNS + 1)),
    ]  # fmt: skip
    first, second, third, fourth = demo.lay_out(events)
    assert (first.begun, first.ended, first.is_typed) == (1.0, 1.5, True)
    assert [span.text for span in second.spans] == ["new ", "red"]
    assert "bold" in second.spans[1].style
    assert (len(third.spans[0].text), fourth.spans[0].text) == (demo.COLUMNS, "x")
    assert demo._plain("\x1b[2K\x1b[31mred\x1b[>4m\x0f\x1b]0;title\x07") == "\x1b[31mred"


def test_without_claude_code_the_script_says_how_to_install_it(demo, monkeypatch, capsys):
    monkeypatch.setattr(demo.shutil, "which", lambda _: None)
    monkeypatch.setattr(demo.sys, "argv", ["record_demo.py"])
    assert demo.main() == 1
    assert "npm install" in capsys.readouterr().err


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_recording_is_on_the_first_pages(page):
    assert "recordings/demo.svg" in (ROOT / page).read_text(encoding="utf-8")
