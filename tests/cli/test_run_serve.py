"""`segue run` and `segue serve --setup`: a program is started behind a gateway, and clients are pointed to one."""

from __future__ import annotations

import json
import os
import socket
import sys
import tomllib
from pathlib import Path

import pytest

from cli.running import Ran, run
from segue.cli.listening import listen
from segue.cli.run import own_folder
from segue.gateway.config import SETUP_NAMES
from segue.gateway.setup_lines import CLIENTS, setup_text
from segue.models.built_in import ECHO
from segue.models.catalogue import get_model

PROGRAM = """#!{python}
import json, os, sys, urllib.request
url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
question = {{"role": "user", "content": sys.argv[1]}}
body = {{"model": os.environ["ANTHROPIC_MODEL"], "max_tokens": 50, "messages": [question]}}
headers = {{"x-api-key": os.environ["ANTHROPIC_API_KEY"], "content-type": "application/json"}}
reply = urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers))
print(reply.headers["x-segue-model"], json.load(reply)["content"][0]["text"])
sys.exit(7)
"""
"""A client of Anthropic's protocol; its name is that of a program that segue knows."""

LISTING = """#!{python}
import json, os, sys
own = os.environ["XDG_STATE_HOME"] + "/segue/"
given = [*os.environ.values(), *sys.argv[1:]]
files = {{value: open(value).read() for value in given if value.startswith(own)}}
print(json.dumps([sys.argv[1:], files]))
"""


def _install(folder: Path, name: str, text: str) -> dict[str, str]:
    path = folder / name
    path.write_text(text.format(python=sys.executable))
    path.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "XDG_STATE_HOME": str(folder)}


def _run(folder: Path, environment: dict[str, str], *program: str) -> Ran:
    return run("run", "-m", "segue/echo", "--store", f"sqlite:{folder}/g.db", "--", *program, env=environment)


def test_a_program_is_answered_by_the_model_and_gives_its_status(tmp_path: Path) -> None:
    ran = _run(tmp_path, _install(tmp_path, "claude", PROGRAM), "claude", "say this")
    assert ran.status == 7, ran.err
    assert ran.out.startswith("segue/echo ")
    assert "say this" in ran.out


def test_a_program_is_answered_although_the_store_has_keys(tmp_path: Path) -> None:
    environment = _install(tmp_path, "claude", PROGRAM)
    assert run("gateway", "keys", "create", "alice", "--store", f"sqlite:{tmp_path}/g.db").status == 0
    ran = _run(tmp_path, environment, "claude", "say this")
    assert ran.status == 7, ran.err
    assert "say this" in ran.out


def test_set_up_lines_have_no_invented_key_where_clients_need_one(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/g.db"
    lines = [run("serve", "--setup", "claude-code", "--store", store)]
    assert not (tmp_path / "g.db").exists()
    assert run("gateway", "keys", "create", "alice", "--store", store).status == 0
    lines.append(run("serve", "--setup", "claude-code", "--store", store))
    keys = [line.partition("=")[2] for each in lines for line in each.out.splitlines() if "ANTHROPIC_API_KEY" in line]
    assert keys == ["any", "YOUR-GATEWAY-KEY"]


@pytest.mark.parametrize("client", ["codex", "gemini-cli", "opencode", "pi", "qwen-code", "aider"])
def test_a_program_gets_its_arguments_and_files(client: str, tmp_path: Path) -> None:
    program = CLIENTS[client].programs[0]
    ran = _run(tmp_path, _install(tmp_path, program, LISTING), program, "--own", "argument")
    assert ran.status == 0, ran.err
    arguments, files = json.loads(ran.out)
    assert arguments[-2:] == ["--own", "argument"]
    setup = CLIENTS[client].make("http://127.0.0.1:1", "key", ECHO)
    assert len(files) == len(setup.run_files)
    left = [path.name for path in (tmp_path / "segue").glob("run-*")] if (tmp_path / "segue").exists() else []
    assert not left


TOLD = {"CLAUDE_CODE_MAX_CONTEXT_TOKENS": "128000", "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "16384"}


def test_a_program_is_told_the_limits_of_the_model_that_answers(tmp_path: Path) -> None:
    program = "#!{python}\nimport json, os\nprint(json.dumps(dict(os.environ)))\n"
    environment = {**_install(tmp_path, "claude", program), "OPENAI_API_KEY": "key"}
    ran = run("run", "-m", "openai/gpt-4o-mini", "--store", "none", "--", "claude", env=environment)
    assert ran.status == 0, ran.err
    given = json.loads(ran.out)
    assert {name: given.get(name) for name in TOLD} == TOLD


@pytest.mark.parametrize(
    ("more", "name"),
    [(("-m", "openai/gpt-4o-mini"), "gpt-4o-mini"), ((), "fast")],
    ids=["the model of the option", "the first model of a route"],
)
def test_set_up_lines_tell_the_limits_of_the_model_that_answers(
    more: tuple[str, ...], name: str, tmp_path: Path
) -> None:
    config = tmp_path / "gateway.toml"
    config.write_text('[models."fast"]\ntry = ["openai/gpt-4o-mini", "anthropic/claude-opus-4-8"]\n')
    printed = run("serve", "--config", config, "--setup", "claude-code", *more)
    assert printed.status == 0, printed.err
    for variable, value in {"ANTHROPIC_MODEL": name, **TOLD}.items():
        assert f"export {variable}={value}\n" in printed.out


MISTAKES = {
    "an unknown program": (("no-such-client",), "not a client that segue can set up"),
    "a client with settings of its own": (("cline",), "run `segue serve`"),
    "a program that is not installed": (("/nowhere/claude",), "install it, or give its path"),
}


@pytest.mark.parametrize(("program", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_explained(program: tuple[str, ...], message: str, tmp_path: Path) -> None:
    ran = _run(tmp_path, {}, *program)
    assert ran.status == 2
    assert message in ran.err


UNUSABLE = {
    "a provider whose key is not set": ("openai/gpt-5.4", "set OPENAI_API_KEY"),
    "a key of blanks": ("anthropic/claude-opus-4-8", "set ANTHROPIC_API_KEY"),
    "a URL with a variable that is not set": ("azure/gpt-5.4", "AZURE_OPENAI_RESOURCE_NAME; set it"),
    "a server on this machine that does not run": ("mine/m", "no server answers at http://127.0.0.1:1/v1; start it"),
}


@pytest.mark.parametrize(
    ("command", "model", "message"),
    [*(("run", *case) for case in UNUSABLE.values()), ("serve", *next(iter(UNUSABLE.values())))],
    ids=[*UNUSABLE, "the same for serve"],
)
def test_a_model_that_cannot_answer_is_refused_at_the_start(
    command: str, model: str, message: str, tmp_path: Path
) -> None:
    config = tmp_path / "gateway.toml"
    config.write_text('[providers.mine]\nbase_url = "http://127.0.0.1:1/v1"\nprotocol = "openai-chat"\n')
    keys = {"OPENAI_API_KEY": "", "ANTHROPIC_API_KEY": " ", "AZURE_OPENAI_RESOURCE_NAME": ""}
    environment = {**_install(tmp_path, "claude", PROGRAM), **keys}
    more = ("--", "claude", "hi") if command == "run" else ("--address", "127.0.0.1:0")
    ran = run(command, "-m", model, "--config", config, "--store", "none", *more, env=environment)
    assert ran.status == 3, ran.err
    assert f"{model} cannot answer: " in ran.err
    assert message in ran.err
    assert not ran.out


@pytest.mark.parametrize("client", SETUP_NAMES)
def test_set_up_lines_name_the_gateway(client: str) -> None:
    printed = setup_text(client, "http://127.0.0.1:9999", "any", ECHO)
    assert "http://127.0.0.1:9999" in printed
    assert "echo" in printed


@pytest.mark.parametrize("client", ["claude-code", "codex", "opencode", "cline", "qwen-code", "vscode", "zed"])
def test_set_up_lines_are_printed_and_files_written(client: str, tmp_path: Path) -> None:
    printed = run("serve", "--setup", client, "--address", "127.0.0.1:9999", "-m", "segue/echo")
    assert printed.status == 0, printed.err
    assert "http://127.0.0.1:9999" in printed.out
    written = run("serve", "--setup", client, "--write", tmp_path)
    assert written.status == 0, written.err
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert written.out.count("wrote ") == len(files)
    setup = CLIENTS[client].make("http://127.0.0.1:8787", "any", get_model("claude-opus-4-8"))
    for name in setup.environment:
        assert f"export {name}=" in written.out
    for name, path in setup.file_variables.items():
        assert f"export {name}={tmp_path}/{path}" in written.out
    for path in files:
        (tomllib.loads if path.suffix == ".toml" else json.loads)(path.read_text())
    if files:
        again = run("serve", "--setup", client, "--write", tmp_path)
        assert again.status == 2
        assert "is not overwritten" in again.err


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
@pytest.mark.parametrize(
    ("existing", "expected"),
    [((), "state/segue"), ((("state", 0o755), ("state/segue", 0o775)), "state/segue"), ((("state", 0o775),), "home")],
    ids=["nothing exists", "a folder of an earlier version", "a folder above that others may write to"],
)
def test_under_a_wide_umask_only_the_user_can_write_to_the_folder_of_a_program(
    existing: tuple[tuple[str, int], ...], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, mode in (("home", 0o700), *existing):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    before = os.umask(0o002)
    try:
        with own_folder() as folder:
            path = Path(folder)
            assert path.parent == tmp_path / expected
            above = [each for each in (path, *path.parents) if each.is_relative_to(tmp_path)]
            assert not [each for each in above if each.stat().st_mode & 0o022]
    finally:
        os.umask(before)


def test_the_sockets_of_a_listener_send_at_once() -> None:
    """Without it the second part of a reply waits for an acknowledgement of the client."""
    with listen("127.0.0.1", 0, another="--port") as listener:
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        with socket.create_connection(listener.getsockname()):
            connection, _ = listener.accept()
            with connection:
                assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
