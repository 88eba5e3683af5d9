"""Folders of session files of agents: each file is one conversation, and becomes one request."""

from __future__ import annotations

import gzip
import json

import pytest

from corpus.building import TARGET, TO, hidden, lines, segue, write
from segue import Context, UserMessage, prepare
from segue.conversation.content import TextContent, ToolCall
from segue.conversation.messages import AssistantMessage, StopReason, ToolResultMessage
from segue.corpus.shards import form_of
from segue.histories.api import read_history, save_history, write_history
from segue.histories.opening import is_one_conversation
from segue.histories.registry import all_formats

WRITTEN = [record for record in all_formats() if record.kind == "agent" and record.write is not None]


def conversation() -> Context:
    call = ToolCall(id="call_1", name="read", arguments={"path": "notes.txt"})
    wrote = {"model": "claude-sonnet-4-5", "provider": "anthropic", "protocol": "anthropic-messages", "timestamp": 2000}
    return Context(
        messages=(
            UserMessage(content=(TextContent(text="What is in notes.txt?"),), timestamp=1000),
            AssistantMessage(content=(call,), stop_reason=StopReason.TOOL_USE, **wrote),
            ToolResultMessage(
                tool_call_id="call_1", tool_name="read", content=(TextContent(text="milk"),), timestamp=3000
            ),
            AssistantMessage(content=(TextContent(text="Milk."),), stop_reason=StopReason.STOP, **wrote),
        )
    )


@pytest.mark.parametrize("name", [record.name for record in WRITTEN])
def test_a_folder_of_sessions_becomes_a_folder_of_requests(name, tmp_path):
    model = "openai/gpt-5.4" if name == "codex" else "gemini-3.5-flash" if name == "gemini-cli" else TARGET
    written = write_history(conversation(), format=name, model=model, cwd="/project")
    paths = [path for path in save_history(written, tmp_path / "in") if form_of(path.name) is not None]
    sessions = [path for path in paths if is_one_conversation(path.read_bytes(), path.name)]
    if not sessions:
        pytest.skip(f"of a format whose sessions are no files of lines ({name})")
    # Beside it a file of rows: what a file holds is found out for each of them.
    write(tmp_path / "in" / "rows.jsonl", lines(2))
    for path in sessions:
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    segue("convert", tmp_path / "in", *TO, "-o", tmp_path / "out")
    assert (tmp_path / "out" / "rows.jsonl").read_bytes().count(b"\n") == 2
    assert hidden(tmp_path / "out") == []
    for path in sessions:
        expected = prepare(read_history(path).context, TARGET).content
        out = tmp_path / "out" / path.relative_to(tmp_path / "in")
        assert json.loads(out.read_bytes()) == json.loads(expected)
        assert gzip.decompress(out.with_name(f"{out.name}.gz").read_bytes()) == out.read_bytes()


def test_a_session_of_an_agent_becomes_a_training_line(tmp_path):
    written = write_history(conversation(), format="claude-code", model=TARGET, cwd="/project")
    (path,) = [path for path in save_history(written, tmp_path / "in") if path.suffix == ".jsonl"]
    for source in (path, tmp_path / "in"):
        out = tmp_path / f"out-{source.name}"
        made = segue("convert", source, *TO, "--as", "training", "-o", out)
        assert made.status == 0, made.err
        (file,) = [out] if out.is_file() else list(out.rglob("*.jsonl"))
        assert json.loads(file.read_bytes())["messages"][-1]["role"] == "assistant"
