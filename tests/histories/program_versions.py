"""Makes sessions with the real programs, several released versions of each, offline: a model of a script answers them.

Prompts have a word for the script, `do:WORD`; the script calls a tool of the program that reads a file or runs a
command, so that every version gets calls that it can run.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, final

from histories.agent_programs import FOLDER
from segue import ToolDefinition
from segue.calls.reading import Call, read_call
from segue.conversation.context import Prompt
from segue.errors import CallError
from segue.testing.emulator import EmulatedCall, Emulator, Step, serve_in_thread

SECONDS = 120
"""How long a program may take for one prompt."""
_WORD = re.compile(r"do:(\w+)")
_ADDED = re.compile(r"<(\w[\w-]*)[^>]*>.*?</\1>", re.DOTALL)
_READERS = (
    "Read", "read", "read_file", "view", "exec_command", "shell_command", "shell", "local_shell",
    "run_shell_command", "bash",
)  # fmt: skip
"""Tools of the programs that read a file, the first that a request has."""


@final
class Exchange(NamedTuple):
    """One request of a program for a reply."""

    call: Call
    prompt: str
    """The last text of the user."""


@final
@dataclass
class Model:
    """The scripted model, and what it was asked."""

    files: Sequence[Path]
    emulator: Emulator = field(default_factory=lambda: Emulator(strict=False, account="old"))
    asked: list[Exchange] = field(default_factory=list[Exchange])

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self.emulator(scope, receive, send)
            return
        body = bytearray()
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        path = f"{scope['path']}?{scope['query_string'].decode()}"
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        step = self._step(scope["method"], path, headers, bytes(body))
        reply = self.emulator.respond(scope["method"], path, headers, bytes(body), step=step)
        made = [(name.encode(), value.encode()) for name, value in reply.headers.items()]
        await send({"type": "http.response.start", "status": reply.status, "headers": made})
        await send({"type": "http.response.body", "body": reply.body})

    def _step(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Step | None:
        try:
            call = read_call(method, path, headers, body)
        except CallError:
            return None
        if call.kind != "generate" or call.prompt is None:
            return None
        text, answers = _last_prompt(call.prompt)
        self.asked.append(Exchange(call, text))
        found = _WORD.findall(text)
        tools = {tool.name: tool for tool in call.prompt.context.tools if isinstance(tool, ToolDefinition)}
        tool = next((tools[name] for name in _READERS if name in tools), None)
        if not found or tool is None:
            return Step(text="Done.")
        steps = SCRIPT[found[-1]](tool, self.files)
        return steps[min(answers, len(steps) - 1)]


def _last_prompt(prompt: Prompt) -> tuple[str, int]:
    """Give the last text of the user, without what programs add, and how many answers are behind it."""
    answers = 0
    for message in reversed(prompt.context.messages):
        if message.role == "assistant":
            answers += 1
        elif message.role == "user":
            text = "\n".join(each.text for each in message.content if each.kind == "text")
            if text := without_additions(text):
                return text, answers
    return "", answers


def without_additions(text: str) -> str:
    """Give a text of the user without the blocks in tags and the quotes that programs put around it."""
    return _ADDED.sub("", text).strip('"\n ')


GO_ON = "Go on."
TALK = "Once more. do:talk"
AGAIN = "Go on again."


def _arguments(tool: ToolDefinition, file: Path) -> dict[str, Any]:
    """Fill in what the tool needs to read a file, by the names and types of its parameters."""
    given: dict[str, Any] = {}
    properties: dict[str, Any] = tool.parameters.get("properties") or {}
    for name in tool.parameters.get("required") or list(properties)[:1]:
        kind = properties.get(name, {}).get("type", "string")
        if name in {"cmd", "command"}:
            given[name] = ["cat", str(file)] if kind == "array" else f"cat {file}"
        elif "path" in name.lower():
            given[name] = str(file)
        else:
            given[name] = {"integer": 1, "number": 1, "boolean": False}.get(kind, "Read a file.")
    return given


def _calls(tool: ToolDefinition, *files: Path) -> tuple[EmulatedCall, ...]:
    return tuple(EmulatedCall(name=tool.name, arguments=_arguments(tool, file)) for file in files)


SCRIPT: dict[str, Callable[[ToolDefinition, Sequence[Path]], list[Step]]] = {
    "parallel": lambda tool, files: [
        Step(thinking="I read all three.", text="I look at the files.", calls=_calls(tool, *files)),
        Step(text="One of them is missing. Größe: 12 µm."),
    ],
    "steps": lambda tool, files: [
        Step(thinking="First one file.", calls=_calls(tool, files[0])),
        Step(thinking="Then the other.", text="Now the second.", calls=_calls(tool, files[1])),
        Step(thinking="That is enough.", text="Both have a line."),
    ],
    "talk": lambda tool, files: [Step(thinking="Nothing to do.", text="Only words.")],
}


@final
@dataclass(frozen=True)
class Home:
    """A home of a program: its folders, the environment, and the address of the model."""

    path: Path
    project: Path
    url: str
    environment: dict[str, str]

    def write(self, name: str, value: object) -> None:
        """Write a file of settings."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")


@final
@dataclass(frozen=True)
class Program:
    """How a program is set up, asked and continued, and where it stores a session."""

    packages: tuple[str, ...]
    """Its names in npm, the newest one first, as folders write them."""
    set_up: Callable[[Home], Mapping[str, str]]
    ask: Sequence[str]
    resume: Sequence[str]
    """The command without and with a session; `{id}` and `{prompt}` are filled in."""
    wire: str
    provider: str
    model: str
    patterns: Sequence[str]
    """Where the files of its sessions are, under the home."""
    compact: Sequence[str] = ()
    """The prompt that compacts a session, where the program takes one from the command line."""
    continues_files: bool = True
    """Whether it continues a file in its folder that another program wrote, by the same command."""


def _claude(home: Home) -> Mapping[str, str]:
    return {
        "ANTHROPIC_BASE_URL": home.url,
        "ANTHROPIC_API_KEY": "x",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
        "MAX_THINKING_TOKENS": "4000",
    }


def _codex(home: Home) -> Mapping[str, str]:
    lines = (
        'model = "gpt-5.4"', 'model_provider = "stub"', 'model_reasoning_effort = "high"',
        'model_reasoning_summary = "detailed"',
        "[model_providers.stub]", 'name = "stub"', f'base_url = "{home.url}/v1"', 'env_key = "STUB_KEY"',
        'wire_api = "responses"', "request_max_retries = 0", "stream_max_retries = 0",
    )  # fmt: skip
    home.write(".codex/config.toml", "\n".join(lines))
    return {"STUB_KEY": "x"}


def _gemini(home: Home) -> Mapping[str, str]:
    security = {"auth": {"selectedType": "gemini-api-key"}}
    general = {"disableAutoUpdate": True}
    home.write(
        ".gemini/settings.json",
        {"security": security, "general": general, "privacy": {"usageStatisticsEnabled": False}},
    )
    return {"GOOGLE_GEMINI_BASE_URL": home.url, "GEMINI_API_KEY": "x", "GEMINI_CLI_TRUST_WORKSPACE": "true"}


def _opencode(home: Home) -> Mapping[str, str]:
    row = {"name": "m", "reasoning": True, "tool_call": True, "limit": {"context": 200000, "output": 8000}}
    options = {"apiKey": "x", "baseURL": f"{home.url}/v1"}
    provider = {"npm": "@ai-sdk/anthropic", "options": options, "models": {"claude-sonnet-4-5": row}}
    home.write(
        "opencode.json",
        {"autoupdate": False, "share": "disabled", "permission": {"*": "allow"}, "provider": {"anthropic": provider}}
        | dict.fromkeys(("model", "small_model"), "anthropic/claude-sonnet-4-5"),
    )
    return {
        "OPENCODE_CONFIG": str(home.path / "opencode.json"),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
    }


def _pi(home: Home) -> Mapping[str, str]:
    cost = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
    row = {"id": "claude-sonnet-4-5", "name": "m", "reasoning": True, "input": ["text"], "cost": cost}
    row |= {"contextWindow": 200000, "maxTokens": 8000}
    stub = {"baseUrl": home.url, "api": "anthropic-messages", "apiKey": "x", "models": [row]}
    home.write(".pi/agent/models.json", {"providers": {"stub": stub}})
    return {"PI_OFFLINE": "1"}


def _qwen(home: Home) -> Mapping[str, str]:
    home.write(".qwen/settings.json", {"privacy": {"usageStatisticsEnabled": False}})
    return {"OPENAI_BASE_URL": f"{home.url}/v1", "OPENAI_API_KEY": "x", "OPENAI_MODEL": "gpt-5.4"}


def _copilot(home: Home) -> Mapping[str, str]:
    return {
        "COPILOT_PROVIDER_BASE_URL": f"{home.url}/v1",
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_OFFLINE": "true",
        "COPILOT_MODEL": "gpt-5.4",
        "COPILOT_PROVIDER_API_KEY": "x",
    }


_CLAUDE = ("claude", "--model", "claude-sonnet-4-5", "--allowedTools", "Read", "-p", "{prompt}")
_CODEX = ("codex", "exec", "--skip-git-repo-check", "--sandbox", "danger-full-access")
_GEMINI = ("gemini", "-m", "gemini-2.5-pro", "-y", "-p", "{prompt}")
_OPENCODE = ("opencode", "run", "-m", "anthropic/claude-sonnet-4-5")
_PI = ("pi", "--provider", "stub", "--model", "claude-sonnet-4-5", "--thinking", "high")
_QWEN = ("qwen", "--auth-type", "openai", "-y", "-p", "{prompt}")
_COPILOT = ("copilot", "--allow-all-tools", "--no-auto-update", "-p", "{prompt}")

PROGRAMS = {
    "claude-code": Program(
        ("anthropic-ai-claude-code",),
        _claude,
        _CLAUDE,
        (*_CLAUDE, "-r", "{id}"),
        "anthropic-messages",
        "anthropic",
        "claude-sonnet-4-5",
        (".claude/projects/*/*.jsonl",),
        compact=("/compact",),
    ),
    "codex": Program(
        ("openai-codex",),
        _codex,
        (*_CODEX, "{prompt}"),
        (*_CODEX, "resume", "{id}", "{prompt}"),
        "openai-responses",
        "openai",
        "gpt-5.4",
        (".codex/sessions/*/*/*/*.jsonl",),
    ),
    "gemini-cli": Program(
        ("google-gemini-cli",),
        _gemini,
        _GEMINI,
        (*_GEMINI, "--resume", "latest"),
        "google-genai",
        "google",
        "gemini-2.5-pro",
        (".gemini/tmp/*/chats/session-*.jsonl", ".gemini/tmp/*/chats/session-*.json"),
        continues_files=False,
    ),
    "opencode": Program(
        ("opencode-ai",),
        _opencode,
        (*_OPENCODE, "{prompt}"),
        (*_OPENCODE, "-s", "{id}", "{prompt}"),
        "anthropic-messages",
        "anthropic",
        "claude-sonnet-4-5",
        (".local/share/opencode/opencode.db",),
        continues_files=False,
    ),
    "pi": Program(
        ("earendil-works-pi-coding-agent", "mariozechner-pi-coding-agent"),
        _pi,
        (*_PI, "-p", "{prompt}"),
        (*_PI, "-c", "-p", "{prompt}"),
        "anthropic-messages",
        "stub",
        "claude-sonnet-4-5",
        (".pi/agent/sessions/*/*.jsonl",),
    ),
    "qwen-code": Program(
        ("qwen-code-qwen-code",),
        _qwen,
        _QWEN,
        (*_QWEN, "--resume", "{id}"),
        "openai-chat",
        "openai",
        "gpt-5.4",
        (".qwen/projects/*/chats/*.jsonl", ".qwen/tmp/*/chats/*.jsonl"),
    ),
    "copilot-cli": Program(
        ("github-copilot",),
        _copilot,
        _COPILOT,
        (*_COPILOT, "--resume", "{id}"),
        "openai-chat",
        "github-copilot",
        "gpt-5.4",
        (".copilot/session-state/*/events.jsonl", ".copilot/session-state/*.jsonl"),
    ),
}


def installed() -> list[tuple[str, Path]]:
    """Give every installed version of every program, the newest last."""
    found: list[tuple[str, Path]] = []
    for agent, program in PROGRAMS.items():
        folders = [folder for package in program.packages for folder in FOLDER.glob(f"{package}-[0-9]*")]
        found += [(agent, folder) for folder in sorted(folders, key=version_of) if (folder / "done").exists()]
    return found


def version_of(folder: Path) -> tuple[int, ...]:
    """Give the version that a folder is named after."""
    return tuple(int(part) for part in re.findall(r"\d+", folder.name.rpartition("-")[2]))


@final
@dataclass(frozen=True)
class Run:
    """A program of one version in a home of its own."""

    program: Program
    home: Home
    model: Model

    def ask(self, prompt: str, session: str | None = None) -> str:
        """Ask the program; gives what it wrote."""
        template = self.program.ask if session is None else self.program.resume
        command = [part.format(id=session, prompt=prompt) for part in template]
        process = subprocess.Popen(
            command,
            cwd=self.home.project,
            env=self.home.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            said, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            said, _ = process.communicate()
            raise AssertionError(f"{command[0]} did not end: {said[-2000:]}") from None
        assert process.returncode == 0, f"{command}: {process.returncode}: {said[-2000:]}"
        return said

    def session_file(self) -> Path:
        """Give the newest file of a session."""
        found = [file for pattern in self.program.patterns for file in self.home.path.glob(pattern)]
        found = [file for file in found if not file.name.startswith("agent-")]
        assert found, sorted(str(file) for file in self.home.path.rglob("*") if file.is_file())[:40]
        return max(found, key=lambda file: file.stat().st_mtime)

    def sent(self, prompt: str) -> Mapping[str, Any]:
        """Give the body of the first request that ends with a prompt."""
        bodies = (each.call.body for each in self.model.asked if each.prompt.endswith(prompt))
        found = next((body for body in bodies if body is not None and body.get("tools")), None)
        assert found is not None, [each.prompt[-200:] for each in self.model.asked]
        return found


@contextmanager
def running(agent: str, folder: Path, base: Path) -> Iterator[Run]:
    """Set up a program with a home of its own and a scripted model."""
    program = PROGRAMS[agent]
    project = base / "project"
    project.mkdir(parents=True)
    (project / "one.txt").write_text("The first line.\n")
    (project / "two.txt").write_text("Zweite Zeile: ä → b.\n")
    files = [project / name for name in ("one.txt", "two.txt", "missing.txt")]
    model = Model(files)
    with serve_in_thread(model) as url:
        home = Home(base / "home", project, url, _environment(folder, base / "home", project))
        home.path.mkdir()
        home.environment.update(program.set_up(home))
        yield Run(program, home, model)


def _environment(folder: Path, home: Path, project: Path) -> dict[str, str]:
    nodes = sorted(FOLDER.glob("node-[0-9]*"), key=version_of, reverse=True)
    folders = [str(each / "node_modules" / ".bin") for each in (folder, *nodes)]
    kept = {name: value for name, value in os.environ.items() if name in {"LANG", "TERM", "TMPDIR"}}
    path = os.pathsep.join((*folders, os.environ["PATH"]))
    return {**kept, "PATH": path, "HOME": str(home), "PWD": str(project), "NO_COLOR": "1"}
