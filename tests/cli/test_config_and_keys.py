"""`segue config` and `segue keys`: what is set once is used after the environment, and no key is ever shown."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from cli.running import Ran, run
from cli.terminal import NO_KEYS, Terminal
from segue import Client, Model
from segue.cli import keys
from segue.cli.statuses import Status
from segue.client.local.user_files import config_folder, key_sources, read_stored_key, remove_key, store_key
from segue.errors import SettingsError
from segue.gateway.config import Config
from segue.gateway.defaults import complete_config, is_echo
from segue.testing.emulator import emulate

KEY = "sk-stored-0123456789"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {**NO_KEYS, "XDG_CONFIG_HOME": str(tmp_path)}


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_setting_is_set_listed_replaced_and_removed(env, tmp_path):
    assert run("config", "get", "model", env=env) == Ran(1, "", "")
    assert run("config", "set", "model", "openai/gpt-5.4", env=env) == Ran(0, "", "")
    assert run("config", "set", "model", "echo", env=env).status == 0
    assert run("config", "get", "model", env=env).out == "echo\n"
    assert run("config", "list", env=env).out == "model = echo\n"
    assert mode_of(tmp_path / "segue" / "config.json") == 0o600
    assert [path.name for path in (tmp_path / "segue").iterdir()] == ["config.json"]
    assert run("config", "unset", "model", env=env).status == 0
    assert run("config", "unset", "model", env=env).status == 0
    assert run("config", "list", env=env).out == ""


WRONG = {
    "a model that does not exist": (("config", "set", "model", "gpt-99-nano"), "gpt-99-nano"),
    "a setting that does not exist": (
        ("config", "set", "colour", "red"),
        "'colour' is not one of 'model', 'local_model', 'url_variables'",
    ),
    "a file that does not exist": (("config", "set", "local_model", "missing.gguf"), "missing.gguf is not a file"),
    "a provider that does not exist": (("keys", "set", "opnai"), "did you mean openai"),
    "a key that is empty": (("keys", "set", "openai"), "the API key or token is empty"),
    "a key that is not stored": (("keys", "remove", "openai"), "no key of openai is stored"),
}


@pytest.mark.parametrize(("arguments", "reason"), WRONG.values(), ids=WRONG)
def test_a_wrong_call_says_what_is_wrong_and_writes_nothing(env, tmp_path, arguments, reason):
    done = run(*arguments, env=env)
    assert done.status == Status.USAGE
    assert reason in done.err
    assert not list(tmp_path.rglob("*.json"))


def test_the_set_model_answers_if_none_is_named_and_its_price_is_shown(env):
    run("config", "set", "model", "echo", env=env)
    done = run("ask", "hello", env={**env, "OPENAI_API_KEY": "x"})
    assert done.out == "hello\n"
    assert "segue/echo: `segue config` sets it" in done.err
    assert "(`segue config` sets it)" in run("chat", stdin="hi\n", env=env).err
    run("config", "set", "model", "anthropic/claude-sonnet-5-5", env=env)
    done = run("ask", "hello", env=env)
    assert done.status == Status.NO_KEY
    assert "`segue config` sets it; $" in done.err
    assert "set ANTHROPIC_API_KEY or run `segue keys set anthropic`, or use --key" in done.err
    assert run("ask", "-m", "echo", "hello", env=env).out == "hello\n"


def test_a_key_is_stored_used_listed_and_removed_and_never_shown(env, tmp_path):
    with emulate(strict=False) as server:
        ask = ("ask", "-m", "openai/gpt-5.4", "--protocol", "openai-chat", "--base-url", f"{server.url}/v1", "hi")
        said = [run("keys", "set", "OpenAI", stdin=f"  {KEY}\n", env=env)]
        assert mode_of(tmp_path / "segue" / "keys.json") == 0o600
        said += [run(*ask, env=env), run(*ask, env={**env, "OPENAI_API_KEY": "sk-of-the-environment"})]
        used = [call.headers["authorization"] for call in server.emulator.requests]
        assert used == [f"Bearer {KEY}", "Bearer sk-of-the-environment"]
    said += [run("keys", "list", env=env), run("keys", "remove", "openai", env=env)]
    assert [done.status for done in said] == [0] * 5
    assert said[3].out == "openai  file\n"
    assert not any(KEY in done.out + done.err for done in said)
    empty = run("keys", "list", env=env)
    assert (empty.status, empty.out) == (0, "")
    assert "segue keys set" in empty.err
    assert run("keys", "list", env={**env, "MISTRAL_API_KEY": KEY}).out == "mistral  MISTRAL_API_KEY\n"


def test_a_terminal_asks_for_the_key_and_does_not_show_it(env, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", env["XDG_CONFIG_HOME"])
    terminal = Terminal("keys", "set", "mistral")
    try:
        terminal.wait_for(r"API key of mistral: $")
        terminal.type(f"{KEY}\r")
        seen = terminal.wait_for(r"The key of mistral is stored \(file\)\.")
        assert terminal.process.wait(timeout=60) == 0
    finally:
        terminal.close()
    assert KEY not in seen
    assert read_stored_key("mistral", os.environ) == KEY


def test_the_question_for_a_key_is_not_part_of_the_output(env, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CONFIG_HOME", env["XDG_CONFIG_HOME"])
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("click.termui.hidden_prompt_func", lambda question: sys.stdout.write(question) and KEY)
    keys.set_key.main(["mistral"], standalone_mode=False)
    shown = capsys.readouterr()
    assert shown.out.strip() == ""
    assert "API key of mistral:" in shown.err
    assert read_stored_key("mistral", os.environ) == KEY


def test_a_stored_key_chooses_the_default_model_and_ends_the_echo_of_the_gateway(env):
    assert is_echo(complete_config(Config(), env))
    store_key("mistral", KEY, env)
    assert not is_echo(complete_config(Config(), env))
    assert key_sources({**env, "OPENAI_API_KEY": "x"}) == {"mistral": "file", "openai": "OPENAI_API_KEY"}


def test_a_client_with_an_environment_of_its_own_reads_no_files_of_the_user(env, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", env["XDG_CONFIG_HOME"])
    store_key("openai", KEY, env)
    model = Model("gpt-5.4", "openai", "openai-chat")
    with Client(environment={}) as without, Client(environment=env) as own, Client() as usual:
        assert without.find_missing(model) is not None
        assert own.find_missing(model) is usual.find_missing(model) is None
    assert config_folder({}) is None
    assert config_folder({"HOME": "/home/ada"}) == Path("/home/ada/.config/segue")


def test_a_key_is_in_the_system_keyring_where_there_is_one(env, tmp_path, monkeypatch):
    kept: dict[tuple[str, str], str] = {}
    keyring = ModuleType("keyring")
    backend = SimpleNamespace(priority=5)
    keyring.__dict__.update(
        get_keyring=lambda: backend,
        set_password=lambda service, name, key: kept.update({(service, name): key}),
        get_password=lambda service, name: kept.get((service, name)),
        delete_password=lambda service, name: kept.pop((service, name)),
    )
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    assert store_key("openai", KEY, env) == "keyring"
    assert KEY not in (tmp_path / "segue" / "keys.json").read_text()
    assert (read_stored_key("openai", env), key_sources(env)) == (KEY, {"openai": "keyring"})
    backend.priority = 0  # a container has the library, but no keyring
    with pytest.raises(SettingsError, match="is in the system keyring, which cannot be used here"):
        read_stored_key("openai", env)
    assert store_key("mistral", KEY, env) == "file"
    backend.priority = 5
    assert remove_key("openai", env)
    assert kept == {}


def test_a_broken_file_is_named_and_not_quoted(env, tmp_path):
    (tmp_path / "segue").mkdir()
    (tmp_path / "segue" / "keys.json").write_text(f'{{"openai": "{KEY}"')
    done = run("keys", "list", env=env)
    assert done.status == Status.USAGE
    assert "keys.json is not a JSON object; correct or remove it" in done.err
    assert KEY not in done.err


def test_settings_need_no_http_library(env):
    code = "import sys; sys.modules['httpx2'] = None; from segue.cli.entry import main; main()"
    command = [sys.executable, "-c", code, "keys", "list"]
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr[:18]) == (0, b"There are no keys;")
