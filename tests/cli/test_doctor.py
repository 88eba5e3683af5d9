"""`segue doctor`: what is found is named, no secret is shown, and what does not work says what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.running import run
from cli.terminal import NO_KEYS
from segue.cli.statuses import Status

KEY = "sk-planted-0123456789"


@pytest.fixture
def env(home: Path) -> dict[str, str]:
    return {**NO_KEYS, "XDG_CONFIG_HOME": str(home), "HOME": str(home)}


def test_an_empty_machine_is_told_what_to_do(env):
    done = run("doctor", env=env)
    assert (done.status, done.err) == (Status.SUCCESS, "")
    for text in ("segue keys set PROVIDER", "segue config set model", "segue local get", "`segue serve` makes it"):
        assert text in done.out, text
    assert "extra client: httpx2 " in done.out


def test_what_is_set_is_named_and_no_secret_is_shown(env):
    stored = run("keys", "set", "anthropic", stdin=KEY, env=env)
    assert stored.status == 0
    assert run("config", "set", "model", "claude", env=env).status == 0
    address = f"https://user:{KEY}@proxy.example/v1?api_key={KEY}"
    done = run("doctor", env={**env, "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": address})
    assert done.status == Status.SUCCESS
    assert KEY not in done.out + done.err
    assert "key of openai: from OPENAI_API_KEY" in done.out
    assert "key of anthropic: stored (" in done.out
    assert "URL of openai: https://proxy.example/v1 from OPENAI_BASE_URL" in done.out
    assert "default model: anthropic/claude-" in done.out


def test_what_does_not_work_has_a_status_of_its_own(env, home):
    done = run("doctor", "--json", env={**env, "OPENAI_BASE_URL": KEY})
    assert done.status == Status.FOUND
    assert KEY not in done.out
    (failed,) = [each for each in json.loads(done.out) if each["state"] == "fail"]
    assert failed["text"] == "OPENAI_BASE_URL is not an HTTP URL; correct or unset it"
    assert run("config", "set", "url_variables", "off", env=env).status == 0
    refused = run("doctor", env={**env, "OPENAI_BASE_URL": "https://proxy.example/v1"})
    assert "not used, because of `segue config set url_variables off`" in refused.out
    (home / "segue" / "config.json").write_text("[")
    broken = run("doctor", env=env)
    assert broken.status == Status.FOUND
    assert "is not a JSON object; correct or remove it" in broken.out
