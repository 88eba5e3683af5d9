"""Sessions written for Qwen Code, Copilot CLI and Kimi Code: the real programs continue them, offline."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, final

import pytest

from cli.running import run
from histories.agent_programs import need_package, record_resumed
from segue import decode_request, read_history, save_history
from segue.cli.history_outputs import write_for
from segue.conversation.messages import Message
from segue.histories.kit.envelope import is_own_text
from segue.histories.registry import get_format

pytestmark = pytest.mark.proof

NODE = "node@24"
KIMI = """default_model = "work"
[providers.stub]
type = "openai"
base_url = "URL"
api_key = "x"
[models.work]
provider = "stub"
model = "gpt-5.4"
max_context_size = 200000
"""


@final
class Program(NamedTuple):
    """A program: its package, the address of its model in the environment or a file, and how it gets a prompt."""

    package: str
    options: tuple[str, ...]
    environment: Mapping[str, str] = {}
    files: Mapping[str, str] = {}


QWEN = Program(
    "@qwen-code/qwen-code@0.24.4",
    ("--auth-type", "openai", "-p", "Go on."),
    {"OPENAI_BASE_URL": "URL", "OPENAI_API_KEY": "x", "OPENAI_MODEL": "gpt-5.4"},
)
COPILOT = Program(
    "@github/copilot@1.0.102",
    ("-p", "Go on.", "--allow-all-tools"),
    {
        "COPILOT_PROVIDER_BASE_URL": "URL",
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_OFFLINE": "true",
        "COPILOT_MODEL": "gpt-5.4",
        "COPILOT_PROVIDER_API_KEY": "x",
    },
)
PROGRAMS = {
    ("qwen-code", "0.24.4"): QWEN,
    ("qwen-code", "0.15.10"): QWEN._replace(package="@qwen-code/qwen-code@0.15.10"),
    ("copilot-cli", "1.0.102"): COPILOT,
    ("copilot-cli", "1.0.40"): COPILOT._replace(package="@github/copilot@1.0.40"),
    ("kimi-code", "2.1.0"): Program(
        "@moonshot-ai/kimi-code@2.1.0", ("-p", "Go on."), files={".kimi-code/config.toml": KIMI}
    ),
}
"""The newest versions, and those whose formats are written."""
NEWEST = ("0.24.4", "1.0.102", "2.1.0")
_MODEL = {"name": "m", "tool_call": True, "limit": {"context": 200000, "output": 8000}}
_ANTHROPIC = {"options": {"apiKey": "x", "baseURL": "URL"}, "models": {"claude-sonnet-4-5": _MODEL}}
LOADING = {
    **{key: program for key, program in PROGRAMS.items() if key[1] in NEWEST},
    ("opencode", "1.18.18"): Program(
        "opencode-ai@1.18.18",
        (),
        {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
        {".config/opencode/opencode.json": json.dumps({"autoupdate": False, "provider": {"anthropic": _ANTHROPIC}})},
    ),
    ("gemini-cli", "0.61.0"): Program(
        "@google/gemini-cli@0.61.0",
        (),
        {"GOOGLE_GEMINI_BASE_URL": "URL", "GEMINI_API_KEY": "x", "GEMINI_CLI_TRUST_WORKSPACE": "true"},
        {".gemini/settings.json": json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}})},
    ),
}
"""Programs that load a session without a model, by the Agent Client Protocol."""
AGENTS = ("claude-code", "codex", "gemini-cli", "opencode", "pi", "qwen-code", "copilot-cli", "kimi-code")


@contextmanager
def chat_server() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve Chat Completions that always say the same, and keep what was asked."""
    asked: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def answer(self, data: bytes, kind: str = "application/json") -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self.answer(b'{"object":"list","data":[]}')

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
            asked.append(body)
            reply = {"id": "c1", "created": 1, "model": body.get("model")}
            message = {"role": "assistant", "content": "Resumed."}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            if not body.get("stream"):
                choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
                self.answer(
                    json.dumps({**reply, "object": "chat.completion", "choices": choices, "usage": usage}).encode()
                )
                return
            parts: list[dict[str, Any]] = [
                {"choices": [{"index": 0, "delta": message, "finish_reason": None}]},
                {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
                {"choices": [], "usage": usage},
            ]
            chunks = [json.dumps({**reply, "object": "chat.completion.chunk", **part}) for part in parts]
            self.answer("".join(f"data: {each}\n\n" for each in (*chunks, "[DONE]")).encode(), "text/event-stream")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        server.shutdown()
        server.server_close()


def pieces(messages: tuple[Message, ...]) -> list[tuple[str, ...]]:
    """Give what a model reads of messages, without images, thinking, and what programs add."""
    found: list[tuple[str, ...]] = []
    for message in messages:
        if message.role == "system" or is_own_text(message):
            continue
        for content in message.content:
            if content.kind == "text" and content.text:
                found.append((message.role, content.text))
            elif content.kind == "toolCall":
                found.append(("call", content.name, json.dumps(content.arguments, sort_keys=True)))
    return found


def missing(wanted: list[tuple[str, ...]], sent: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Give what was not sent, or not in its place.

    A program adds the time to a prompt and texts of its own before and after the session, joins messages of the user,
    and sorts results by their calls.
    """
    lost: list[tuple[str, ...]] = []
    at = 0
    for piece in wanted:
        first = 0 if piece[0] == "toolResult" else at
        places = (
            place
            for place, each in enumerate(sent)
            if place >= first and each[:-1] == piece[:-1] and piece[-1] in each[-1]
        )
        found = next(places, None)
        if found is None:
            lost.append(piece)
        elif piece[0] != "toolResult":
            at = found
    return lost


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(("target", "version"), PROGRAMS)
def test_the_program_sends_what_was_written_for_it(target, version, agent, tmp_path, monkeypatch):
    program = PROGRAMS[target, version]
    folders = [need_package(package) / "node_modules" / ".bin" for package in (NODE, program.package)]
    project = tmp_path / "project"
    project.mkdir()
    for name in [name for name in os.environ if name.startswith(("OPENAI", "COPILOT", "QWEN", "KIMI", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", os.pathsep.join((*map(str, folders), os.environ["PATH"])))
    with chat_server() as (url, asked):
        for name, text in program.files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text.replace("URL", url))
        record = get_format(target)
        history = read_history(get_format(agent).samples()[0].source)
        written = write_for(history, record, record.example, str(project))
        (path, *_) = save_history(written)
        wanted = pieces(read_history(path).context.messages)
        done = subprocess.run(
            [*written.resume, *program.options],
            cwd=project,
            env={
                **os.environ,
                **{name: value.replace("URL", url) for name, value in program.environment.items()},
                "NO_COLOR": "1",
            },
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=300,
            check=False,
        )
    assert (done.returncode, "Resumed." in done.stdout) == (0, True), done.stdout + done.stderr
    request = {"messages": asked[0]["messages"], "model": "gpt-5.4"}
    sent = pieces(decode_request(request, protocol="openai-chat").context.messages)
    assert missing(wanted, sent) == []
    if version in NEWEST:
        record_resumed(agent, target, program.package)


@pytest.mark.parametrize(("target", "version"), LOADING)
def test_the_program_itself_loads_what_was_written_for_it(target, version, tmp_path, monkeypatch):
    program = LOADING[target, version]
    folders = [need_package(package) / "node_modules" / ".bin" for package in (NODE, program.package)]
    project = tmp_path / "project"
    project.mkdir()
    for name in [name for name in os.environ if name.startswith(("OPENAI", "COPILOT", "QWEN", "KIMI", "XDG_"))]:
        monkeypatch.delenv(name)
    nowhere = "http://127.0.0.1:9/v1"  # no model is asked
    for name, value in program.environment.items():
        monkeypatch.setenv(name, value.replace("URL", nowhere))
    for name, text in program.files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text.replace("URL", nowhere))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", os.pathsep.join((*map(str, folders), os.environ["PATH"])))
    example = str(tmp_path / "example.json")
    (tmp_path / "example.json").write_bytes(get_format("claude-code").samples()[0].source.data or b"")
    options = ("--from", "claude-code", "--cwd", str(project), "--verify", "--report", "none")
    done = run("handover", example, "--to", target, *options)
    assert (done.status, "missing there" in done.err) == (0, False), done.err
    assert "Verified: " in done.err
    if target == "gemini-cli":  # it has no list
        assert len(list(tmp_path.glob(".gemini/tmp/*/chats/session-2026-11-15*"))) == 1
        return
    (row,) = json.loads(run("sessions", f"acp:{target}", "--json", cwd=project).out)
    assert "Read both files." in run("show", f"acp:{target}:{row['id']}", cwd=project).out
