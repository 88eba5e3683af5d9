"""Record the demonstration of README and the landing page: `python scripts/record_demo.py`.

Runs real commands against the emulator of the providers, in a pseudo-terminal, and writes docs/recordings/demo.cast (an
asciinema file, version 2) and docs/recordings/demo.svg (the same, animated, for pages without a player). Claude Code
has to be on the PATH: `npm install -g @anthropic-ai/claude-code`. What the model says is scripted; everything else is
what the programs print. Only pauses are shortened, and typing is added. `--draw` draws the recording that is there.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
CAST: Final = ROOT / "docs" / "recordings" / "demo.cast"
PICTURE: Final = CAST.with_suffix(".svg")
COLUMNS, LINES = 108, 26
PROMPT: Final = "$ "
TITLE: Final = "segue: an agent on another model, a session handed over and back, a request checked"
SCENES: Final[Mapping[str, tuple[str, ...]]] = {
    "Claude Code, answered by GPT: the gateway translates both ways": (
        'segue run -m openai/gpt-5.4 --config models.toml -- claude -p "Which test fails?" --allowedTools Bash',
        "segue sessions",
    ),
    "A session of Claude, handed over to Codex and back, keeps its signatures": (
        'segue run -m anthropic/claude-opus-4-8 --config models.toml -- claude -p "Why?" --allowedTools Bash',
        "segue handover claude-code:last --to codex --model openai/gpt-5.4",
        "segue handover codex:last --to claude-code --model anthropic/claude-opus-4-8 --report none",
        "grep -oh '\"signature\":\"[^\"]*' ~/.claude/projects/*/*.jsonl | grep -o '.\\{24\\}$' | sort | uniq -c",
    ),
    "What would a provider refuse? And how is it repaired?": (
        "cat broken.json",
        "segue check broken.json --for anthropic/claude-opus-4-8",
        "segue check broken.json --for anthropic/claude-opus-4-8 --fix -o fixed.json",
        "segue check fixed.json --for anthropic/claude-opus-4-8",
    ),
}
"""What is recorded: a comment, and the commands after it."""
_FILES: Final[Mapping[str, str]] = {
    "cart.py": "def total(prices):\n    return round(sum(prices), 1)\n",
    "test_cart.py": (
        "import unittest\nfrom cart import total\n\n\nclass Cart(unittest.TestCase):\n"
        "    def test_three_items(self):\n        self.assertEqual(total([19.99] * 3), 59.97)\n"
    ),
    "broken.json": (
        '{"model": "claude-opus-4-8", "messages": [\n'
        '  {"role": "system", "content": "Be brief."},\n'
        '  {"role": "user", "content": "Rain?"},\n'
        '  {"role": "assistant", "content": [{"type": "tool_use", "id": "c.1", "name": "get", "input": {}}]},\n'
        '  {"role": "user", "content": "And tomorrow?"}]}\n'
    ),
}
_CALL: Final = {"command": "python3 -m unittest -q 2>&1 | tail -8", "description": "Run the tests"}
_ANSWERS: Final[Mapping[str, str]] = {
    "Which test fails?": "test_three_items: it expects 59.97 and gets 60.0.",
    "Why?": "total() rounds to one digit: round(sum(prices), 1) should be round(sum(prices), 2).",
}
_TYPING: Final = 0.045
_LONGEST_PAUSE: Final = 1.5
"""Seconds between two typed characters, and the longest pause of what a program prints."""
_AFTER_COMMAND, _AFTER_SCENE = 3.5, 5.0
"""Seconds to read what a command printed, and what a scene showed."""


class Recorded(NamedTuple):
    """Something that appears on the screen, after so many seconds."""

    time: float
    text: str


# -- recording ---------------------------------------------------------------------------------------------------------


class ScriptedModel:
    """The emulator, answering a coding agent: it runs the tests once for each prompt, then says what is wrong."""

    def __init__(self) -> None:
        from segue.testing.emulator import Emulator

        self.emulator = Emulator()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401
        """Answer one request."""
        if scope["type"] != "http":
            await self.emulator(scope, receive, send)
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        if body and "count_tokens" not in scope["path"]:
            self._plan(body.decode())

        async def again() -> dict[str, Any]:
            return {"type": "http.request", "body": body}

        await self.emulator(scope, again, send)

    def _plan(self, body: str) -> None:
        from segue.testing.emulator import EmulatedCall, Step

        asked = next((prompt for prompt in reversed(_ANSWERS) if prompt in body), None)
        if asked is None or '"Bash"' not in body:
            self.emulator.script.add(Step(text="Tests of a cart"))  # a title, a summary
        elif "FAILED" in body:
            self.emulator.script.add(Step(thinking="Compare what is expected with what came.", text=_ANSWERS[asked]))
        else:
            call = EmulatedCall(name="Bash", arguments=_CALL)
            self.emulator.script.add(Step(thinking="Run the tests first.", calls=(call,)))


def record() -> list[Recorded]:
    """Run all scenes in a folder of their own; return what appeared."""
    from segue.testing.emulator import serve_in_thread

    with tempfile.TemporaryDirectory(prefix="segue-demo-") as folder, serve_in_thread(ScriptedModel()) as url:
        home, work = Path(folder), Path(folder) / "shop"
        work.mkdir()
        for name, text in _FILES.items():
            (work / name).write_text(text, encoding="utf-8")
        providers = {"anthropic": url, "openai": f"{url}/v1"}
        settings = "".join(f'[providers.{name}]\nbase_url = "{at}"\n' for name, at in providers.items())
        (work / "models.toml").write_text(settings, encoding="utf-8")
        keys = dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY"), "emulated")
        quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {"HOME": str(home), "PATH": path, "TERM": "xterm-256color", "LANG": "C.UTF-8", **keys, **quiet}
        return [*_play(work, environment)]


def _play(work: Path, environment: Mapping[str, str]) -> Iterable[Recorded]:
    now = 0.5
    for comment, commands in SCENES.items():
        yield Recorded(now, f"\x1b[1;36m# {comment}\x1b[0m\r\n")
        now += 1.5
        for command in commands:
            yield Recorded(now, PROMPT)
            for character in command:
                now += _TYPING
                yield Recorded(now, character)
            now += 0.4
            yield Recorded(now, "\r\n")
            for pause, text in _run(command, work, environment):
                now += min(pause, _LONGEST_PAUSE)
                yield Recorded(now, text.replace(environment["HOME"], "~"))
            now += _AFTER_COMMAND
        now += _AFTER_SCENE
        yield Recorded(now, "\r\n")


def _run(command: str, work: Path, environment: Mapping[str, str]) -> Iterable[tuple[float, str]]:
    """Run a command in a terminal; yield what it prints, with the seconds before it."""
    main, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    started = time.monotonic()
    process = subprocess.Popen(
        ["/bin/sh", "-c", command], cwd=work, env=dict(environment), stdin=other, stdout=other, stderr=other
    )
    os.close(other)
    try:
        while True:
            ready, _, _ = select.select([main], [], [], 0.2)
            if not ready:
                if process.poll() is not None:
                    break
                continue
            try:
                data = os.read(main, 65536)
            except OSError:  # the other end is closed
                break
            if not data:
                break
            text = _plain(data.decode("utf-8", "replace"))
            if text:
                yield time.monotonic() - started, text
                started = time.monotonic()
        process.wait()
    finally:
        os.close(main)


_CONTROL: Final = re.compile(
    r"[\x00-\x08\x0b-\x0c\x0e-\x1a\x7f]"
    r"|\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[=>78cDEHM]|[()][A-Z0-9])"
)
_COLOUR: Final = re.compile(r"\x1b\[[\d;]*m")


def _plain(text: str) -> str:
    """Keep text, line ends and colours; nothing else of a terminal is needed here."""
    return _CONTROL.sub(lambda match: match[0] if _COLOUR.fullmatch(match[0]) else "", text)


def write_cast(events: Iterable[Recorded]) -> None:
    """Write the recording."""
    header = {"version": 2, "width": COLUMNS, "height": LINES, "title": TITLE, "env": {"TERM": "xterm-256color"}}
    lines = [json.dumps(header), *(json.dumps([round(at, 3), "o", text], ensure_ascii=False) for at, text in events)]
    CAST.parent.mkdir(exist_ok=True)
    CAST.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_cast() -> list[Recorded]:
    """Read the recording."""
    _, *lines = CAST.read_text(encoding="utf-8").splitlines()
    return [Recorded(at, text) for at, _, text in map(json.loads, lines)]


# -- the picture -------------------------------------------------------------------------------------------------------

_COLOURS: Final = {31: "#ff7b72", 32: "#7ee787", 33: "#e3b341", 34: "#79c0ff", 35: "#d2a8ff", 36: "#76e3ea"}
_INK, _PAPER, _QUIET = "#e6edf3", "#0d1117", "#8b949e"
_WIDTH, _HEIGHT = 8.4, 18
"""Pixels of a character and of a line."""


class Span(NamedTuple):
    """Characters of one style."""

    text: str
    style: str


class Line(NamedTuple):
    """A line of the screen: when it begins and ends to appear, and what it says."""

    begun: float
    ended: float
    spans: tuple[Span, ...]
    is_typed: bool


def lay_out(events: Iterable[Recorded]) -> list[Line]:
    """Lay out a recording as lines; a long one is broken as a terminal does."""
    lines: list[Line] = []
    cells: list[tuple[str, str]] = []
    begun = ended = 0.0
    style = ""

    def end_line() -> None:
        spans: list[Span] = []
        for character, look in cells:
            if spans and spans[-1].style == look:
                spans[-1] = Span(spans[-1].text + character, look)
            else:
                spans.append(Span(character, look))
        text = "".join(character for character, _ in cells)
        lines.append(Line(begun, ended, tuple(spans), text.startswith(PROMPT)))
        cells.clear()

    for at, text in events:
        for piece in re.findall(r"\x1b\[[\d;]*m|\r\n|\r|\n|[^\x1b\r\n]", text):
            if piece.startswith("\x1b"):
                style = _style(piece, style)
            elif piece in ("\r\n", "\n"):
                begun = begun if cells else at
                end_line()
            elif piece == "\r":
                cells.clear()
            else:
                if len(cells) == COLUMNS:
                    end_line()
                begun = begun if cells else at
                cells.append((piece, style))
                ended = at
    if cells:
        end_line()
    return lines


def _style(code: str, before: str) -> str:
    styles = dict(part.split(":") for part in before.split(";") if part)
    for number in map(int, re.findall(r"\d+", code) or ["0"]):
        if number == 0:
            styles.clear()
        elif number == 1:
            styles["font-weight"] = "bold"
        elif number == 2:
            styles["fill"] = _QUIET
        elif number % 10 in range(1, 7) and number // 10 in (3, 9):
            styles["fill"] = _COLOURS[30 + number % 10]
    return ";".join(f"{name}:{value}" for name, value in styles.items())


def draw(events: list[Recorded]) -> str:
    """Draw a recording as an SVG that plays by itself, again and again; without animation it shows the beginning."""
    lines = lay_out(events)
    length = events[-1].time + _AFTER_SCENE
    styles = sorted({span.style for line in lines for span in line.spans if span.style})
    names = {style: f"s{number}" for number, style in enumerate(styles)}
    rules = [f".{name}{{{style}}}" for style, name in names.items()]
    moves = ["0%{transform:none}"]
    texts: list[str] = []
    for number, line in enumerate(lines):
        seen = _percent(line.begun, length)
        scrolled = max(0, number + 1 - LINES) * _HEIGHT
        if scrolled:
            moves.append(f"{seen}{{transform:translateY(-{scrolled}px)}}")
        if not line.spans:
            continue
        rules.append(f"@keyframes l{number}{{{_appear(line, seen, length)}}}#l{number}{{animation-name:l{number}}}")
        spans = "".join(_span(span, names) for span in line.spans)
        texts.append(f'<text id="l{number}" y="{(number + 1) * _HEIGHT}">{spans}</text>')
    rules.append(f"@keyframes move{{{''.join(moves)}}}")
    width, height = round(COLUMNS * _WIDTH + 24), LINES * _HEIGHT + 28
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" xml:space="preserve">'
        f"<title>{escape(TITLE)}</title><style>"
        f"text{{font:14px/1 ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre;fill:{_INK}}}"
        f"text,.screen{{animation-duration:{length:.1f}s;animation-iteration-count:infinite;animation-timing-function:"
        f"step-end}}.screen{{animation-name:move}}{''.join(rules)}"
        "@media(prefers-reduced-motion:reduce){text,.screen{animation:none}}</style>"
        f'<rect width="{width}" height="{height}" rx="8" fill="{_PAPER}"/>'
        f'<svg x="12" y="10" width="{width - 24}" height="{LINES * _HEIGHT + 8}">'
        f'<g class="screen">{"".join(texts)}</g></svg></svg>\n'
    )


def _span(span: Span, names: Mapping[str, str]) -> str:
    text = escape(span.text, quote=False)
    return f'<tspan class="{names[span.style]}">{text}</tspan>' if span.style else text


def _appear(line: Line, seen: str, length: float) -> str:
    """Say when a line can be seen; one that is typed is uncovered from the left."""
    if not line.is_typed:
        return f"0%{{opacity:0}}{seen}{{opacity:1}}"
    size = sum(len(span.text) for span in line.spans)
    steps = range(len(PROMPT), size, 4)
    parts = [f"0%{{clip-path:inset(0 100% 0 0)}}{seen}{{clip-path:inset(0 {_cover(len(PROMPT), size)} 0 0)}}"]
    for at in steps:
        when = line.begun + (line.ended - line.begun) * at / size
        parts.append(f"{_percent(when, length)}{{clip-path:inset(0 {_cover(at, size)} 0 0)}}")
    parts.append(f"{_percent(line.ended, length)}{{clip-path:none}}")
    return "".join(parts)


def _cover(shown: int, size: int) -> str:
    return f"{100 * (1 - shown / size):.1f}%"


def _percent(time_: float, length: float) -> str:
    return f"{100 * time_ / length:.2f}%"


def main() -> int:
    """Record and draw; return the exit status."""
    if "--draw" not in sys.argv[1:]:
        if shutil.which("claude") is None:
            print(
                "Claude Code is not installed, and the first scene runs it; install it with"
                " `npm install -g @anthropic-ai/claude-code`, or draw the recording that is there with --draw.",
                file=sys.stderr,
            )
            return 1
        write_cast(record())
    events = read_cast()
    PICTURE.write_text(draw(events), encoding="utf-8")
    print(f"{CAST.relative_to(ROOT)}: {events[-1].time:.0f} s, {PICTURE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
