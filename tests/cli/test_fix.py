"""`segue check --fix`: the request that a provider would accept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from segue import (
    AssistantMessage,
    Context,
    DecodeError,
    ImageContent,
    Prompt,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    check,
    decode_request,
    encode_request,
    prepare,
)
from segue.cli.fixing import fix
from segue.cli.program import program
from segue.histories.opening import OpenedDocument
from segue.protocols.registry import get_protocol, protocol_names

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

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


TURNS = Context(
    messages=(
        UserMessage.of("alpha"),
        AssistantMessage(
            content=(TextContent(text="beta"), ToolCall(id="callabc12", name="gamma", arguments={"delta": 1}))
        ),
        ToolResultMessage(tool_call_id="callabc12", tool_name="gamma", content=(TextContent(text="epsilon"),)),
        UserMessage(content=(TextContent(text="zeta"), ImageContent(data=PIXEL, mime_type="image/png"))),
    )
)
NAMES = [name for name in protocol_names() if get_protocol(name).turns_key and name != "plain-text"]
"""Protocols with tools."""


def _show(context: Context) -> list[object]:
    """Return what is said, in its order, without the form."""
    said: list[object] = []
    for message in context.messages:
        for piece in message.content:
            match piece.kind:
                case "text":
                    said.append((message.role, piece.text))
                case "toolCall":
                    said.append((piece.name, piece.arguments))
                case _:
                    said.append(piece.kind)
    return said


@pytest.mark.parametrize("own_key", [True, False], ids=["under its key", "under the key of the other"])
@pytest.mark.parametrize("target", NAMES)
def test_turns_in_the_form_of_any_protocol_are_rewritten(target: str, own_key: bool) -> None:
    record = get_protocol(target)
    model = record.example
    for source in NAMES:
        other = get_protocol(source)
        turns = encode_request(TURNS, model=other.example)[other.turns_key or ""]
        # Keys of another wire that mean something else here stay as they are.
        body: dict[str, Any] = {(record if own_key else other).turns_key or "": turns}
        fixed = fix(OpenedDocument(Prompt(context=Context()), target, body), model)
        assert fixed.left == (), (source, fixed)
        own = prepare(TURNS, model)
        assert _show(decode_request(fixed.body, protocol=target).context) == _show(
            decode_request(own.body, protocol=target).context
        ), (source, fixed.body)


@pytest.mark.parametrize(
    ("target", "fields", "expected"),
    [
        ("openai-chat", {"system": "Be brief."}, {"messages": [{"role": "system", "content": "Be brief."}, TURN]}),
        ("anthropic/claude-sonnet-4-5", {"stop": ["x"]}, {"stop_sequences": ["x"]}),
        ("openai/gpt-5.4", {"max_tokens": 50}, {"max_output_tokens": 50}),
        ("openai/gpt-5.4", {"messages": [TURN], "input": None}, {"input": [TURN]}),
        ("anthropic/claude-sonnet-4-5", {"messages": "Hi"}, {"messages": [TURN]}),
    ],
)
def test_a_field_of_another_protocol_keeps_its_meaning(
    tmp_path: Path, target: str, fields: dict[str, Any], expected: dict[str, Any]
) -> None:
    given = {**BODIES[target], **fields}
    fixed = run(tmp_path, {key: value for key, value in given.items() if value is not None}, target, "--fix")
    assert fixed.exit_code == 0, fixed.stderr
    body = json.loads(fixed.stdout)
    assert {key: body.get(key) for key in expected} == expected
    assert "rewritten: " in fixed.stderr


def test_what_no_protocol_reads_is_named(tmp_path: Path) -> None:
    fixed = run(tmp_path, {**BODIES["openai-chat"], "messages": [None]}, "openai-chat", "--fix")
    assert isinstance(fixed.exception, DecodeError)
    assert "request.json: messages[0]: expected an object" in str(fixed.exception)


def test_two_turns_of_the_user_are_merged_where_turns_have_to_alternate() -> None:
    call = {"toolUse": {"toolUseId": "c", "name": "g", "input": {}}}
    result = {"toolResult": {"toolUseId": "c", "content": [{"text": "x"}]}}
    texts = [{"role": role, "content": [content]} for role, content in (("user", {"text": "a"}), ("assistant", call))]
    results = [{"role": "user", "content": [content]} for content in (result, {"text": "z"})]
    schema = {"type": "object", "properties": {}}
    body = {
        "messages": [*texts, *results],
        "toolConfig": {"tools": [{"toolSpec": {"name": "g", "inputSchema": {"json": schema}}}]},
    }
    fixed = fix(
        OpenedDocument(Prompt(context=Context()), "bedrock-converse", body), get_protocol("bedrock-converse").example
    )
    assert fixed.left == ()
    assert fixed.body["messages"] == [*texts, {"role": "user", "content": [result, {"text": "z"}]}]
