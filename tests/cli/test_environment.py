"""Whatever surrounds the program: closed and full streams, other encodings, busy ports, missing folders, devices."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cli.running import SESSION, run
from cli.terminal import NO_KEYS, Terminal
from property_testing import tiers
from segue.cli.statuses import Status

COMMANDS = {
    "show": ("show", SESSION),
    "check": ("check", SESSION, "--for", "openai-chat"),
    "convert": ("convert", SESSION, "--to", "openai/gpt-5.4"),
    "models": ("models", "echo"),
    "ask": ("ask", "-m", "echo", "hällo"),
    "help": ("--help",),
}
FULL = Path("/dev/full")


def shell(line: str, *arguments: object, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a line of shell in which "$@" is the program with its arguments."""
    command = ["bash", "-c", line, "bash", sys.executable, "-m", "segue", *map(str, arguments)]
    environment = {**os.environ, **NO_KEYS, **env}
    done = subprocess.run(command, capture_output=True, env=environment, timeout=120, check=False)
    text = done.stderr.decode("utf-8", "replace")
    assert "Traceback" not in text, text
    assert "Exception ignored" not in text, text
    return subprocess.CompletedProcess(command, done.returncode, done.stdout.decode("utf-8", "replace"), text)


@pytest.mark.skipif(not FULL.exists(), reason="on a full disk (no /dev/full)")
@pytest.mark.parametrize("name", tiers(["show", "ask"], ["check", "convert", "models", "help"]))
def test_a_full_disk_is_one_sentence(name):
    done = shell('"$@" > /dev/full', *COMMANDS[name])
    assert done.returncode == Status.USAGE
    assert "cannot write the output: No space left on device" in done.stderr


@pytest.mark.skipif(not FULL.exists(), reason="on a full disk (no /dev/full)")
def test_a_full_disk_ends_a_chat():
    done = shell('printf "one\\ntwo\\n" | "$@" > /dev/full', "chat", "echo")
    assert done.returncode == Status.USAGE
    assert done.stderr.count("No space left on device") == 1


@pytest.mark.skipif(not FULL.exists(), reason="on a full disk (no /dev/full)")
def test_an_output_file_on_a_full_disk(tmp_path):
    assert run("convert", SESSION, "--to", "openai/gpt-5.4", "-o", "/dev/full").status == Status.USAGE


@pytest.mark.parametrize("closed", tiers([">&-", "<&- >&- 2>&-"], ["<&-", "2>&-"]))
@pytest.mark.parametrize("arguments", [COMMANDS["show"], COMMANDS["ask"]], ids=["show", "ask"])
def test_closed_streams_are_no_error(arguments, closed):
    assert shell(f'"$@" {closed}', *arguments).returncode == Status.SUCCESS


def test_a_chat_without_standard_input_ends():
    assert shell('"$@" <&-', "chat", "echo").returncode == Status.SUCCESS


def test_output_never_goes_into_a_file_that_was_opened_in_place_of_a_closed_stream(tmp_path):
    session = tmp_path / "s.jsonl"
    assert shell('"$@" <&- >&- 2>&-', "ask", "-m", "echo", "hello", "-s", session).returncode == Status.SUCCESS
    lines = session.read_bytes().splitlines()
    assert all(line.startswith(b"{") for line in lines)


PLAIN = {"LC_ALL": "C", "LANG": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize("name", tiers(["show", "ask"], ["check", "convert", "models", "help"]))
def test_a_locale_without_utf_8_is_no_error(name):
    assert shell('"$@"', *COMMANDS[name], **PLAIN).returncode in (Status.SUCCESS, Status.FOUND)


def test_the_end_of_a_pipe_ends_a_chat_quietly():
    done = shell('yes hi | head -500 | "$@" | head -1; exit "${PIPESTATUS[2]}"', "chat", "echo")
    assert done.stdout == "hi\n"
    assert done.returncode == Status.CLOSED_PIPE


@pytest.mark.parametrize("command", ["ui --example --no-browser --port", "emulate --port", "serve --port"])
def test_a_busy_port_is_one_sentence(command):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        *words, option = command.split()
        done = run(*words, option, port)
    assert done.status == Status.USAGE
    assert f"port {port} of 127.0.0.1 is in use; choose another one with {option}" in done.err


def test_an_address_that_does_not_exist():
    done = run("ui", "--example", "--no-browser", "--host", "nowhere.invalid")
    assert (done.status, done.err) == (
        Status.USAGE,
        "segue: there is no address 'nowhere.invalid'; use 127.0.0.1, or 0.0.0.0 for all addresses\n",
    )


@pytest.fixture
def session_mistakes(tmp_path):
    (tmp_path / "text").write_text("hello\n")
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 4)
    (tmp_path / "dir").mkdir()
    return tmp_path


SESSIONS = {
    "text": "{path}: line 1: not valid JSON: column 1: a JSON value is expected here",
    "binary": "{path}: line 1: this is a binary file",
    "dir": "is a directory",
    "nowhere/s.jsonl": "{folder}: the folder of the session file does not exist",
    "/dev/full": "/dev/full: a session has to be a regular file",
}


@pytest.mark.parametrize("name", SESSIONS)
@pytest.mark.parametrize("command", [("ask", "hello", "-m"), ("chat",)], ids=["ask", "chat"])
def test_a_session_that_cannot_be_used_is_named(session_mistakes, name, command):
    path = session_mistakes / name
    if not path.exists() and name.startswith("/"):
        pytest.skip(f"of a session on a device (no {name})")
    done = run(*command, "echo", "--session", path)
    assert done.status == Status.USAGE
    assert SESSIONS[name].format(path=path, folder=path.parent) in done.err


KEY_FILES = {"binary": "is not a text file", "empty": "is empty", "missing": "No such file"}


@pytest.mark.parametrize("name", KEY_FILES)
def test_a_file_without_a_key_is_named(tmp_path, name):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "empty").touch()
    done = run("ask", "hello", "-m", "echo", "--key", f"@{tmp_path / name}")
    assert done.status == Status.USAGE
    assert KEY_FILES[name] in done.err
    assert name in done.err


def test_an_empty_file_is_not_sent(tmp_path):
    empty = tmp_path / "empty.txt"
    empty.touch()
    done = run("ask", "hello", "-m", "echo", "-f", empty)
    assert (done.status, done.out) == (Status.USAGE, "")
    assert f"{empty}: the file is empty" in done.err
    chatted = run("chat", "echo", stdin=f"/image {empty}\nstill here\n")
    assert "the file is empty" in chatted.err
    assert chatted.out.endswith("still here\n")


def test_a_conversion_never_overwrites_its_input(tmp_path):
    session = tmp_path / "s.jsonl"
    session.write_bytes(SESSION.read_bytes())
    link = tmp_path / "link.jsonl"
    link.symlink_to(session)
    for output in (session, link):
        done = run("convert", session, "--to", "openai/gpt-5.4", "-o", output)
        assert done.status == Status.USAGE
        assert "is the file that is read" in done.err
    assert session.read_bytes() == SESSION.read_bytes()


def test_a_server_that_cannot_be_reached_is_named():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    done = run("ask", "hello", "-m", "ollama/tiny", "--base-url", f"http://user:secret@127.0.0.1:{port}/x", env=NO_KEYS)
    assert done.status == Status.FAILED
    assert f"http://127.0.0.1:{port} cannot be reached" in done.err
    assert "secret" not in done.err


def test_no_advice_for_python_about_addresses():
    done = run("ask", "hello", "-m", "openai/gpt-5.4", "--key", "x", "--base-url", "nonsense")
    assert "use --base-url with a URL that begins with https://" in done.err


NAMES = {
    "llama.ccp/tiny": "did you mean llama.cpp/tiny?",
    "ecko": "did you mean echo",
    "ollama": "name one of them: ollama/NAME",
}


@pytest.mark.parametrize("name", NAMES)
def test_names_that_no_catalogue_lists_are_suggested(name):
    assert NAMES[name] in run("ask", "hello", "-m", name).err


def test_a_provider_without_listed_models_is_explained():
    assert "such as ollama/NAME" in run("models", "--provider", "ollama").err
    assert "ollama/NAME" in run("models", "ollama").err


def test_a_gateway_for_a_model_that_does_not_exist_is_refused(tmp_path):
    done = run("serve", "-m", "gpt5", "--store", "none", "--address", "127.0.0.1:0")
    assert done.status == Status.USAGE
    assert "gpt5" in done.err


def test_what_is_written_for_a_client_without_files_is_shown(tmp_path):
    done = run("serve", "--setup", "claude-code", "--write", tmp_path)
    assert "needs no file" in done.out
    assert "ANTHROPIC_BASE_URL" in done.out
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_place_of_a_folder_is_named(tmp_path):
    (tmp_path / "file").touch()
    done = run("export", SESSION, "--to", "claude-code", "-o", tmp_path / "file")
    assert done.status == Status.USAGE
    assert f"{tmp_path / 'file'}: this is not a folder" in done.err


def test_a_conversation_without_messages_says_so():
    assert "the conversation has no messages" in run("show", "-", stdin='{"messages": []}').err
    assert run("show", "-", stdin="").err.startswith("segue: standard input: the file is empty")


def test_a_narrow_terminal_shows_words_and_names_in_full(tmp_path):
    terminal = Terminal(
        "convert", SESSION, "--to", "openai/gpt-5.4", "-o", tmp_path / "request.json", term="xterm", columns=40
    )
    try:
        seen = terminal.wait_for("Length: ")
    finally:
        terminal.close()
    plain = re.sub(r"\x1b\[[0-9;]*m", "", seen)
    assert "1 x result_orphaned, content dropped\r\n" in plain
    assert "  A tool result without a call is" in plain
