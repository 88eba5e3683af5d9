"""A real server on this machine, llama.cpp's: its model is offered, can be left and returned to, and goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.terminal import NO_KEYS, Terminal
from segue import Conversation, Options
from servers.llama import WIRES, LlamaServer, llama_server

__all__ = ["llama_server"]

PROGRAM = """\
import os
import sys
from msgspec.structs import replace
from segue.models import providers

os.environ.pop("SEGUE_LOCAL_SERVERS", None)  # tests do not look for servers, but for this one
row = providers.PROVIDERS["llama.cpp"]
providers.PROVIDERS["llama.cpp"] = replace(row, base_url=sys.argv.pop(1))
for name in ("ollama", "lmstudio", "vllm"):  # whatever else runs on this machine
    providers.PROVIDERS[name] = replace(providers.PROVIDERS[name], base_url="http://127.0.0.1:9")
from segue.cli.entry import main

main()
"""
"""The program, with another port of llama.cpp's server than the usual one: that may be in use on this machine."""


@pytest.fixture
def program(llama_server: LlamaServer, tmp_path: Path) -> list[str]:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return [sys.executable, str(file), f"{llama_server.origin}/v1"]


def ask(program: list[str], *arguments: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*program, "ask", "--max-tokens", "300", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, **NO_KEYS},
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done


def test_a_local_model_is_offered_left_and_returned_to(program, tmp_path):
    session = tmp_path / "s.jsonl"
    terminal = Terminal("chat", "--max-tokens", "300", program=program)
    try:
        terminal.wait_for(r"1  llama\.cpp/tiny .*a server answers at http://127\.0\.0\.1:\d+.*2  segue/echo.*\[1\]: $")
        terminal.type("1\r")
        terminal.wait_for(r"Chatting with llama\.cpp/tiny.*> $")
        terminal.type("Hello\r")
        terminal.wait_for(r"Hello\r\n.*\S.*> $")
        terminal.type("/model echo\r")
        terminal.wait_for(r"goes to segue/echo.*> $")
        terminal.type("I am echoed\r")
        terminal.wait_for(r"I am echoed.*I am echoed\r\n.*> $")
        terminal.type("/model llama.cpp/tiny\r")
        seen = terminal.wait_for(r"goes to llama\.cpp/tiny.*> $")
        assert "turn_inserted" not in seen  # the next request ends with a message of the user
        terminal.type("And you?\r")
        terminal.wait_for(r"the model is now llama\.cpp/tiny.*> $")
        terminal.type(f"/save {session}\r")
        terminal.wait_for(r"Saved to .*> $")
        terminal.type("\x04")
        assert terminal.process.wait(timeout=60) == 0
    finally:
        terminal.close()
    answers = [json.loads(line) for line in session.read_text().splitlines() if '"assistant"' in line]
    assert [answer["model"] for answer in answers] == ["tiny", "echo", "tiny"]
    continued = ask(program, "And now?", "-s", session)
    assert f"llama.cpp/tiny: the model of the last answer in {session}" in continued.stderr
    assert continued.stdout.strip()


def test_a_session_file_continues_with_it(program, tmp_path, llama_server: LlamaServer):
    session = tmp_path / "s.jsonl"
    address = ("--base-url", f"{llama_server.origin}/v1")
    assert ask(program, "Hello", "-m", "llama.cpp/tiny", "-s", session, *address).stdout.strip()
    with Conversation(path=session) as conversation:  # no name, no address: the file has them
        assert conversation.model.full_name() == "llama.cpp/tiny"
        assert conversation.ask("And you?", options=Options(max_tokens=300)).content
        conversation.switch("echo")
        assert conversation.ask("hi").text() == "hi"
        conversation.switch("llama.cpp/tiny")
        assert conversation.ask("Once more.", options=Options(max_tokens=300)).content


ADDRESSES = [(protocol, "/v1") for protocol in WIRES] + [("anthropic-messages", "")]


@pytest.mark.parametrize(("protocol", "version"), ADDRESSES)
def test_the_version_may_be_a_part_of_the_address(program, llama_server: LlamaServer, protocol, version):
    address = ("--base-url", f"{llama_server.origin}{version}")
    done = ask(program, "Hello", "-m", "llama.cpp/tiny", "--protocol", protocol, *address)
    assert done.stdout.strip(), done.stderr
