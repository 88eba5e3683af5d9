"""Sessions that the real programs wrote: what is read is what the program itself sent when it continued them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from histories.truth import SHARED, blocks_of, needs_samples
from segue import read_history, write_history
from segue.histories.claude_code.read import WIRE as CLAUDE_WIRE

pytestmark = needs_samples

PROJECTS = "claude-code/projects/-home-user-proj"
CLAUDE = {
    "main": f"{PROJECTS}/a0000000-0001-4000-8000-000000000001.jsonl",
    "compacted": f"{PROJECTS}/a0000000-0002-4000-8000-000000000002.jsonl",
    "fork": f"{PROJECTS}/a0000000-0003-4000-8000-000000000003.jsonl",
}


def without_prompt(turns: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """Leave out the prompt with which the sample was continued."""
    *before, last = turns
    return [*before, {**last, key: last[key][:-1]}]


def sent(agent: str, name: str) -> dict[str, Any]:
    return json.loads(Path(SHARED / agent / f"sent-{name}.json").read_text("utf-8"))


@pytest.mark.parametrize("name", CLAUDE)
def test_claude_code_sends_what_was_read(name):
    history = read_history(SHARED / CLAUDE[name])
    request = sent("claude-code", name)
    wanted = blocks_of("anthropic-messages", without_prompt(request["messages"], "content"))
    # The program leaves out signed thinking of another model than the one it asks.
    messages = [
        message
        for message in history.context.messages
        if message.role != "assistant" or message.model in {request["model"], "<synthetic>"} or message.text()
    ]
    found = blocks_of("anthropic-messages", CLAUDE_WIRE.encode(messages, request["model"]))
    others = {
        content.thinking_signature
        for message in messages
        if message.role == "assistant" and message.model != request["model"]
        for content in message.content
        if content.kind == "thinking"
    }
    assert [block for block in found if block[-1] not in others] == wanted


@pytest.mark.parametrize("name", CLAUDE)
@pytest.mark.parametrize("agent", ["claude-code"])
def test_a_session_that_is_written_back_is_read_the_same(agent, name):
    history = read_history(SHARED / CLAUDE[name])
    (file,) = write_history(history, format=agent).files
    again = read_history(file.data)
    assert again.context.messages == history.context.messages
    assert (again.title, again.cwd) == (history.title, history.cwd)


def test_claude_code_sub_agents_compactions_and_interrupted_answers_are_kept():
    history = read_history(SHARED / CLAUDE["main"])
    (child,) = history.children
    assert child.call_id == "toolu_27d417cb4e17b7503096e"
    assert child.history is not None
    assert child.history.context.messages
    stops = [message.stop_reason for message in history.context.messages if message.role == "assistant"]
    assert stops.count("aborted") == 1
    compacted = read_history(SHARED / CLAUDE["compacted"])
    full = read_history(SHARED / CLAUDE["compacted"], view="full")
    (compaction,) = compacted.compactions
    (summary,) = full.context.summaries
    assert compaction.summary == summary
    assert compaction.messages == full.context.messages[: summary.covers]
