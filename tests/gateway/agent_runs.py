"""Runs the real agent programs through a gateway to an emulated provider, one prompt after the other.

The emulator answers each prompt with as many calls of the program's own shell tool as a test asks for, then with a
text. Requests without that tool, such as those for a title or a summary, get a text.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol, final

from histories.agent_programs import BINARIES, need_program
from segue.testing.emulator import EmulatedCall, Emulator, Step

SHELLS: dict[str, Callable[[int], dict[str, Any]]] = {
    "Bash": lambda n: {"command": f"echo step {n}", "description": "Say the step"},
    "bash": lambda n: {"command": f"echo step {n}", "description": "Say the step"},
    "run_shell_command": lambda n: {"command": f"echo step {n}", "description": "Say the step"},
    "exec_command": lambda n: {"cmd": f"echo step {n}"},
    "shell_command": lambda n: {"command": f"echo step {n}"},
    "shell": lambda n: {"command": ["echo", "step", str(n)]},
}
"""The tool of each program that runs a command, and its arguments."""


class Answering:
    """An emulator that calls the shell tool of whoever asks, for as many steps as are left."""

    def __init__(self) -> None:
        self.emulator = Emulator()
        self.left = 0
        self.number = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.emulator(scope, receive, send)
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        self._plan(scope["path"], body)

        async def again() -> dict[str, Any]:
            return {"type": "http.request", "body": body}

        await self.emulator(scope, again, send)

    def _plan(self, path: str, body: bytes) -> None:
        if "count_tokens" in path or not body:
            return
        self.number += 1
        tool = find_shell(json.loads(body))
        thinking = f"Thought number {self.number}."
        if tool is None or not self.left:
            self.emulator.script.add(Step(thinking=thinking, text=f"Done, answer {self.number}."))
            return
        self.left -= 1
        call = EmulatedCall(name=tool, arguments=SHELLS[tool](self.number))
        self.emulator.script.add(Step(thinking=thinking, calls=(call,)))


def find_shell(body: Any) -> str | None:
    """Find the tool of a request that runs a command: the program itself asks, not one of its side tasks."""
    names = {str(tool.get("name")) for tool in (body or {}).get("tools") or ()}
    return next((name for name in SHELLS if name in names), None)


class Server(Protocol):
    """A gateway that runs."""

    @property
    def url(self) -> str: ...


@final
class Ran(NamedTuple):
    """How a program ended, and what it wrote."""

    code: int
    said: str


class Agent:
    """One program with a home of its own. `wire` is the protocol that it speaks, where it has several."""

    def __init__(self, agent: str, wire: str, home: Path, server: Server) -> None:
        self.agent, self.wire, self.home, self.server = agent, wire, home, server
        self.work = home / "work"
        self.work.mkdir(parents=True)
        found = need_program(agent)
        kept = {name: value for name, value in found.items() if name in ("PATH", "LANG", "TERM", "TMPDIR")}
        self.environment: dict[str, str] = {
            **kept,
            "HOME": str(home),
            **{f"XDG_{name}_HOME": str(home / name.lower()) for name in ("CONFIG", "DATA", "CACHE", "STATE")},
            "NO_COLOR": "1",
            "CI": "1",
        }
        self.window = 200_000
        self.prompts = 0

    def version(self) -> str:
        done = subprocess.run(
            [BINARIES[self.agent], "--version"], env=self.environment, capture_output=True, text=True, check=False
        )
        return done.stdout.strip() or done.stderr.strip()

    def ask(self, prompt: str, model: str, *, timeout: float = 240) -> Ran:
        """Run the program with a prompt; from the second one on it continues its last session."""
        command = _COMMANDS[self.agent](self, prompt, model)
        self.prompts += 1
        log = self.home / f"prompt-{self.prompts}.txt"
        with log.open("wb") as out:
            process = subprocess.Popen(
                command,
                env=self.environment,
                cwd=self.work,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code = process.wait(timeout)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                code = process.wait(10)
        return Ran(code, log.read_text(errors="replace"))

    def write(self, path: str, value: object) -> None:
        """Write a file of settings."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(value if isinstance(value, str) else json.dumps(value))

    def rows(self) -> list[dict[str, Any]]:
        """Give the rows of the requests that the gateway answered; it has none without a store."""
        with urllib.request.urlopen(f"{self.server.url}/segue/requests?limit=500", timeout=10) as reply:
            return json.load(reply)["requests"]

    @property
    def continues(self) -> bool:
        return self.prompts > 0


def _claude(run: Agent, prompt: str, model: str) -> list[str]:
    url = run.server.url
    ways = {
        "messages": {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "client-key"},
        "bedrock": {
            "CLAUDE_CODE_USE_BEDROCK": "1",
            "CLAUDE_CODE_SKIP_BEDROCK_AUTH": "1",
            "ANTHROPIC_BEDROCK_BASE_URL": url,
            "AWS_REGION": "us-east-1",
        },
        "vertex": {
            "CLAUDE_CODE_USE_VERTEX": "1",
            "CLAUDE_CODE_SKIP_VERTEX_AUTH": "1",
            "ANTHROPIC_VERTEX_BASE_URL": f"{url}/v1",
            "ANTHROPIC_VERTEX_PROJECT_ID": "project-1",
            "CLOUD_ML_REGION": "us-east5",
        },
    }
    run.environment.update(ways[run.wire], CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", DISABLE_AUTOUPDATER="1")
    options = ["--model", model, "--max-turns", "40", "--allowedTools", "Bash"]
    return ["claude", *(["-c"] if run.continues else []), "-p", prompt, *options]


def _codex(run: Agent, prompt: str, model: str) -> list[str]:
    run.write(
        "codex/config.toml",
        f'model = "{model}"\nmodel_provider = "gateway"\nmodel_context_window = {run.window}\n'
        f"model_auto_compact_token_limit = {run.window * 9 // 10}\n"
        '[model_providers.gateway]\nname = "gateway"\nenv_key = "GATEWAY_KEY"\nwire_api = "responses"\n'
        f'base_url = "{run.server.url}/v1"\n' + ("supports_websockets = true\n" if run.wire == "websocket" else ""),
    )
    run.environment.update(GATEWAY_KEY="client-key", CODEX_HOME=str(run.home / "codex"))
    resume = ["resume", "--last"] if run.continues else []
    return ["codex", "exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", *resume, prompt]


def _gemini(run: Agent, prompt: str, model: str) -> list[str]:
    settings: dict[str, Any] = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "telemetry": {"enabled": False},
        "privacy": {"usageStatisticsEnabled": False},
        "model": {"compressionThreshold": run.window / 1_048_576},
    }
    run.write(".gemini/settings.json", settings)
    run.environment.update(
        GOOGLE_GEMINI_BASE_URL=run.server.url, GEMINI_API_KEY="client-key", GEMINI_CLI_TRUST_WORKSPACE="true"
    )
    return ["gemini", "-m", model, "-y", *(["--resume", "latest"] if run.continues else []), "-p", prompt]


_AI_SDK = {
    "messages": ("@ai-sdk/anthropic", "/v1"),
    "chat": ("@ai-sdk/openai-compatible", "/v1"),
    "responses": ("@ai-sdk/openai", "/v1"),
}


def _opencode(run: Agent, prompt: str, model: str) -> list[str]:
    package, path = _AI_SDK[run.wire]
    limit = {"context": run.window, "output": min(32_000, run.window // 4)}
    known = {name: {"name": name, "reasoning": True, "tool_call": True, "limit": limit} for name in MODELS}
    options = {"baseURL": run.server.url + path, "apiKey": "client-key"}
    run.write(
        "opencode.json",
        {
            "provider": {"gateway": {"npm": package, "name": "gateway", "options": options, "models": known}},
            "model": f"gateway/{model}",
            "small_model": f"gateway/{model}",
            "permission": {"*": "allow"},
            "autoupdate": False,
            "share": "disabled",
        },
    )
    run.environment.update(
        OPENCODE_CONFIG=str(run.home / "opencode.json"),
        OPENCODE_DISABLE_AUTOUPDATE="1",
        OPENCODE_DISABLE_MODELS_FETCH="1",
        OPENCODE_DISABLE_LSP_DOWNLOAD="1",
    )
    return ["opencode", "run", *(["-c"] if run.continues else []), "-m", f"gateway/{model}", prompt]


_PI_APIS = {
    "messages": ("anthropic-messages", ""),
    "chat": ("openai-completions", "/v1"),
    "responses": ("openai-responses", "/v1"),
    "gemini": ("google-generative-ai", "/v1beta"),
}


def _pi(run: Agent, prompt: str, model: str) -> list[str]:
    api, path = _PI_APIS[run.wire]
    cost = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0)
    models = [
        {
            "id": name,
            "name": name,
            "reasoning": True,
            "input": ["text"],
            "contextWindow": run.window,
            "maxTokens": 8_000,
            "cost": cost,
            "compat": {"forceAdaptiveThinking": True},  # as pi's own list of models says of them
        }
        for name in MODELS
    ]
    provider = {"baseUrl": run.server.url + path, "api": api, "apiKey": "client-key", "models": models}
    run.write("pi/models.json", {"providers": {"gateway": provider}})
    # What it keeps is counted by visible characters, and a loop of short commands has few of them.
    run.write("pi/settings.json", {"compaction": {"enabled": True, "reserveTokens": 16_000, "keepRecentTokens": 100}})
    run.environment.update(PI_OFFLINE="1", PI_CODING_AGENT_DIR=str(run.home / "pi"))
    chosen = ["--provider", "gateway", "--model", model, "--thinking", "high"]
    return ["pi", *(["-c"] if run.continues else []), *chosen, "-p", prompt]


def _qwen(run: Agent, prompt: str, model: str) -> list[str]:
    run.write(".qwen/settings.json", {"privacy": {"usageStatisticsEnabled": False}})
    run.environment.update(OPENAI_BASE_URL=f"{run.server.url}/v1", OPENAI_API_KEY="client-key", OPENAI_MODEL=model)
    return ["qwen", "--auth-type", "openai", "-y", *(["--continue"] if run.continues else []), "-p", prompt]


def _copilot(run: Agent, prompt: str, model: str) -> list[str]:
    run.environment.update(
        COPILOT_PROVIDER_BASE_URL=run.server.url + ("" if run.wire == "messages" else "/v1"),
        COPILOT_PROVIDER_TYPE="anthropic" if run.wire == "messages" else "openai",
        COPILOT_OFFLINE="true",
        COPILOT_MODEL=model,
        COPILOT_PROVIDER_API_KEY="client-key",
    )
    more = ["--continue"] if run.continues else []
    return ["copilot", "--allow-all-tools", "--no-auto-update", *more, "-p", prompt]


MODELS = ("claude-opus-5-5", "claude-fable-5-1", "claude-sonnet-5-5", "gpt-5.4")
_COMMANDS: dict[str, Callable[[Agent, str, str], list[str]]] = {
    "claude-code": _claude,
    "codex": _codex,
    "gemini-cli": _gemini,
    "opencode": _opencode,
    "pi": _pi,
    "qwen-code": _qwen,
    "copilot-cli": _copilot,
}
