"""`segue check --fix`: the request that a provider would accept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from segue import check
from segue.cli.program import program

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
FUNCTION = {"name": "read", "description": "Read a file.", "parameters": SCHEMA}
FLAT = {"type": "function", **FUNCTION}
NESTED = {"type": "function", "function": FUNCTION}
OF_CLAUDE = {"name": "read", "description": "Read a file.", "input_schema": SCHEMA}
TURN = {"role": "user", "content": "Hi"}
BODIES: dict[str, dict[str, Any]] = {
    "anthropic/claude-sonnet-4-5": {"model": "claude-sonnet-4-5", "max_tokens": 99, "messages": [TURN]},
    "openai-chat": {"model": "gpt-5.4-mini", "messages": [TURN]},
    "openai/gpt-5.4": {"model": "gpt-5.4", "input": [TURN]},
}
PROTOCOLS = {"anthropic/claude-sonnet-4-5": "anthropic-messages", "openai/gpt-5.4": "openai-responses"}


def run(tmp_path: Path, body: object, target: str, *options: str) -> Result:
    path = tmp_path / "request.json"
    path.write_text(json.dumps(body))
    arguments = ["check", str(path), "--for", target, "--from", PROTOCOLS.get(target, target), *options]
    return CliRunner().invoke(program, arguments)


@pytest.mark.parametrize("target", BODIES)
@pytest.mark.parametrize("tool", [FLAT, NESTED, OF_CLAUDE], ids=["flat", "nested", "of claude"])
def test_a_function_in_the_form_of_another_protocol_is_rewritten(tmp_path: Path, target: str, tool: object) -> None:
    fixed = run(tmp_path, {**BODIES[target], "tools": [tool]}, target, "--fix")
    assert fixed.exit_code == 0
    body = json.loads(fixed.stdout)
    protocol = (
        "openai-responses" if "input" in body else "anthropic-messages" if "max_tokens" in body else "openai-chat"
    )
    assert check(body, protocol=protocol) == []
    (written,) = body["tools"]
    inner = written.get("function", written)
    assert inner["name"] == "read"
    assert inner.get("parameters", inner.get("input_schema"))["properties"] == SCHEMA["properties"]


def test_what_is_repaired_removed_and_left_is_told(tmp_path: Path) -> None:
    body = {
        **BODIES["anthropic/claude-sonnet-4-5"],
        "messages": [
            {"role": "system", "content": "Be brief."},
            TURN,
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a b", "name": "read", "input": {}}]},
            TURN,
        ],
        "temperature": 0.5,
        "top_p": 0.5,
        "temperatur": 1,
    }
    found = run(tmp_path, body, "anthropic/claude-sonnet-4-5")
    assert found.exit_code == 1
    assert "write it in `system`" in found.output
    fixed = run(tmp_path, body, "anthropic/claude-sonnet-4-5", "--fix", "-o", str(tmp_path / "fixed.json"))
    assert fixed.exit_code == 0
    assert "removed: temperatur: " in fixed.stderr
    assert "options.top_p (top_p: 0.5; the target refuses it together with temperature)" in " ".join(
        fixed.stderr.split()
    )
    written = json.loads((tmp_path / "fixed.json").read_bytes())
    assert check(written, protocol="anthropic-messages") == []
    assert written["system"][0]["text"] == "Be brief."


def test_what_cannot_be_repaired_is_left_and_fails(tmp_path: Path) -> None:
    fixed = run(tmp_path, {**BODIES["openai-chat"], "verbosity": "loud"}, "openai-chat", "--fix")
    assert fixed.exit_code == 1
    assert "left: verbosity: unknown value 'loud'" in fixed.stderr


def test_a_request_without_a_fault_stays(tmp_path: Path) -> None:
    for target, body in BODIES.items():
        fixed = run(tmp_path, body, target, "--fix")
        assert fixed.exit_code == 0
        assert {key: value for key, value in json.loads(fixed.stdout).items() if key in body} == body


@pytest.mark.parametrize(
    ("options", "said"), [(["-o", "x"], "add --fix"), (["--fix", "--explain"], "--fix is for one FILE")]
)
def test_options_that_do_not_go_together_are_named(tmp_path: Path, options: list[str], said: str) -> None:
    refused = run(tmp_path, BODIES["openai-chat"], "openai-chat", *options)
    assert refused.exit_code == 2
    assert said in refused.output


def test_the_advice_for_a_tool_of_chat_in_responses_says_where_to_write_it(tmp_path: Path) -> None:
    found = run(tmp_path, {**BODIES["openai/gpt-5.4"], "tools": [NESTED]}, "openai/gpt-5.4")
    assert "write what is in `function` next to `type`" in found.output


@pytest.mark.parametrize("target", BODIES)
def test_a_request_that_is_accepted_is_written_unchanged(tmp_path: Path, target: str) -> None:
    fixed = run(tmp_path, BODIES[target], target, "--fix")
    assert fixed.exit_code == 0
    assert json.loads(fixed.stdout) == BODIES[target]


def test_a_limit_that_the_provider_requires_is_added(tmp_path: Path) -> None:
    target = "anthropic/claude-sonnet-4-5"
    body = {key: value for key, value in BODIES[target].items() if key != "max_tokens"}
    assert json.loads(run(tmp_path, body, target, "--fix").stdout)["max_tokens"] > 0
