"""Sessions written for Qwen Code and Copilot CLI: the real programs continue them, offline, and send what was read."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from histories.agent_programs import need_package
from segue import decode_request, read_history, save_history, write_history
from segue.conversation.messages import Message
from segue.histories.kit.envelope import is_own_text
from segue.histories.registry import get_format

pytestmark = pytest.mark.proof

NODE = "node@24"
PROGRAMS = {"qwen-code": "@qwen-code/qwen-code@0.15.10", "copilot-cli": "@github/copilot@1.0.40"}
"""The versions whose formats are written."""


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


@pytest.mark.parametrize("agent", ["claude-code", "codex", "gemini-cli", "opencode", "pi", "qwen-code", "copilot-cli"])
@pytest.mark.parametrize("target", PROGRAMS)
def test_the_program_sends_what_was_written_for_it(target, agent, tmp_path, monkeypatch):
    folders = [need_package(package) / "node_modules" / ".bin" for package in (NODE, PROGRAMS[target])]
    project = tmp_path / "project"
    project.mkdir()
    for name in [name for name in os.environ if name.startswith(("OPENAI", "COPILOT", "QWEN", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", os.pathsep.join((*map(str, folders), os.environ["PATH"])))
    history = read_history(get_format(agent).samples()[0].source)
    written = write_history(history, format=target, model=get_format(target).example, cwd=str(project))
    (path, *_) = save_history(written)
    wanted = pieces(read_history(path).context.messages)
    with chat_server() as (url, asked):
        if target == "qwen-code":
            settings = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "x", "OPENAI_MODEL": "gpt-5.4"}
            command = [*written.resume, "--auth-type", "openai", "-p", "Go on."]
        else:
            settings = {"COPILOT_PROVIDER_BASE_URL": url, "COPILOT_PROVIDER_TYPE": "openai", "COPILOT_OFFLINE": "true"}
            settings |= {"COPILOT_MODEL": "gpt-5.4", "COPILOT_PROVIDER_API_KEY": "x"}
            command = [*written.resume, "-p", "Go on.", "--allow-all-tools"]
        done = subprocess.run(
            command,
            cwd=project,
            env={**os.environ, **settings, "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=300,
            check=False,
        )
    assert (done.returncode, "Resumed." in done.stdout) == (0, True), done.stdout + done.stderr
    request = {"messages": asked[0]["messages"], "model": "gpt-5.4"}
    sent = pieces(decode_request(request, protocol="openai-chat").context.messages)
    # The program adds the time to a prompt, and texts of its own before and behind the session.
    rest = iter(sent)
    assert [
        piece for piece in wanted if not any(each[:-1] == piece[:-1] and piece[-1] in each[-1] for each in rest)
    ] == []
