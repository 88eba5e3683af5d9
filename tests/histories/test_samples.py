"""Sessions that the real programs wrote: what is read is what the program itself sent when it continued them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from histories.truth import SHARED, beside_the_project, blocks_of, needs_samples
from segue import Message, Model, StopReason, prepare, read_history, write_history
from segue.histories.kit.wire import TurnCodec
from segue.histories.registry import get_format

PROJECTS = "claude-code/projects/-home-user-proj"
ROLLOUTS = "codex/sessions/2026/11/15"


@dataclass(frozen=True)
class Agent:
    """The samples of one agent, and how it sends them."""

    wire: TurnCodec
    files: dict[str, str]
    parts: str


AGENTS = {
    "claude-code": Agent(
        TurnCodec("anthropic-messages", "messages"),
        {
            "main": f"{PROJECTS}/a0000000-0001-4000-8000-000000000001.jsonl",
            "compacted": f"{PROJECTS}/a0000000-0002-4000-8000-000000000002.jsonl",
            "fork": f"{PROJECTS}/a0000000-0003-4000-8000-000000000003.jsonl",
        },
        "content",
    ),
    "codex": Agent(
        TurnCodec("openai-responses", "input", lead={"role": "user", "content": "-"}),
        {
            "main": f"{ROLLOUTS}/rollout-2026-11-15T12-47-43-01a1df3f-d0f8-7f81-a8a8-c68d6dd20816.jsonl",
            "second": f"{ROLLOUTS}/rollout-2026-11-15T12-47-53-01a1df3f-f794-7483-88c7-353c2861cbe3.jsonl",
            "fork": f"{ROLLOUTS}/rollout-2026-11-15T12-48-01-01a1df40-1568-7d60-85d9-f12291e5cfb5.jsonl",
        },
        "content",
    ),
    "gemini-cli": Agent(
        TurnCodec("google-genai", "contents"),
        {
            "main": "gemini-cli/main/chats/session-2026-11-15T12-50-8738d397.jsonl",
            "compacted": "gemini-cli/compacted/chats/session-2026-11-15T12-50-271fa007.jsonl",
        },
        "parts",
    ),
}
PI = "pi/sessions/--home-user-proj--"
OTHERS = {
    ("pi", "main"): f"{PI}/2026-11-15T12-52-15-151Z_c0000000-0001-4000-8000-000000000001.jsonl",
    ("pi", "rpc"): f"{PI}/2026-11-15T12-52-49-965Z_c0000000-0002-4000-8000-000000000002.jsonl",
    ("pi", "rpc-fork"): f"{PI}/2026-11-15T12-52-58-315Z_01a1df44-9d4b-7070-b738-fb4ed207c2cd.jsonl",
    ("opencode", "main"): "opencode/main.json",
    ("opencode", "compacted"): "opencode/compacted.json",
}
"""Samples of agents that store blocks of their own: they were continued with Claude."""
MODELS = {
    "opencode": "anthropic/claude-sonnet-4-5",
    "pi": "anthropic/claude-sonnet-4-5",
    "claude-code": "anthropic/claude-sonnet-4-5",
    "codex": "openai/gpt-5.4",
    "gemini-cli": "google/gemini-2.5-pro",
}
FILES = {(agent, name): file for agent, row in AGENTS.items() for name, file in row.files.items()} | OTHERS
of_every_wire = pytest.mark.parametrize(
    ("agent", "name"), beside_the_project(case for case in FILES if case not in OTHERS)
)
OWN = [(agent, sample) for agent in MODELS for sample in get_format(agent).samples()]
"""Segue's own small samples of the same agents."""
of_every_session = pytest.mark.parametrize(
    ("agent", "source"),
    [(agent, sample.source) for agent, sample in OWN]
    + beside_the_project((agent, SHARED / file) for (agent, _), file in FILES.items()),
    ids=[f"{agent}, {sample.name}" for agent, sample in OWN] + beside_the_project(map(" ".join, FILES)),
)


def sent(agent: str, name: str) -> tuple[list[dict[str, Any]], str]:
    """Give the turns that the agent sent, without the prompt that continued the sample, and the model it asked."""
    request = json.loads(Path(SHARED / agent / f"sent-{name}.json").read_text("utf-8"))
    *before, last = request[AGENTS[agent].wire.key]
    parts = AGENTS[agent].parts
    return [*before, {**last, parts: last[parts][:-1]}], request["model"]


def signatures_of_others(messages: Sequence[Message], model: str) -> set[str]:
    """Give the signatures of other models: Claude Code leaves out their thinking."""
    return {
        content.thinking_signature or ""
        for message in messages
        if message.role == "assistant" and message.model != model
        for content in message.content
        if content.kind == "thinking"
    }


@of_every_wire
def test_the_program_sends_what_was_read(agent, name):
    history = read_history(SHARED / AGENTS[agent].files[name])
    turns, model = sent(agent, name)
    wire = AGENTS[agent].wire
    found = blocks_of(wire.protocol, wire.encode(history.context.messages, model))
    if agent == "claude-code":
        others = signatures_of_others(history.context.messages, model)
        found = [block for block in found if block[-1] not in others]
    assert found == blocks_of(wire.protocol, turns)


@of_every_session
def test_a_session_that_is_written_back_is_read_the_same(agent, source):
    history = read_history(source)
    (file,) = write_history(history, format=agent, model=MODELS[agent]).files
    again = read_history(file.data)
    assert again.context.messages == history.context.messages
    assert (again.title, again.cwd) == (history.title, history.cwd)


@of_every_session
@pytest.mark.parametrize("other", MODELS)
def test_a_session_written_for_another_agent_and_read_there_keeps_every_text_or_reports_it(agent, source, other):
    del agent
    history = read_history(source)
    written = write_history(history, format=other, model=MODELS[other])
    again = read_history(written.files[0].data)
    kept = "\n".join(text for message in again.context.messages for text in texts_of(message))
    reported = {change.path[1] for change in written.report.changes if len(change.path) > 1}
    for at, message in enumerate(history.context.messages):
        if at not in reported:
            assert [text for text in texts_of(message) if text not in kept] == []
    assert again.title == history.title
    assert again.cwd == (history.cwd or again.cwd)


@pytest.mark.parametrize(("agent", "name"), beside_the_project(OTHERS))
def test_the_program_sends_what_was_read_projected_for_the_model_it_asks(agent, name):
    history = read_history(SHARED / OTHERS[agent, name])
    request = json.loads(Path(SHARED / agent / f"sent-{name}.json").read_text("utf-8"))
    *before, last = request["messages"]
    provider = {"pi": "mock", "opencode": "anthropic"}[agent]
    model = Model(request["model"], provider, "anthropic-messages", reasoning=True, max_tokens=8000)
    wanted = blocks_of("anthropic-messages", [*before, {**last, "content": last["content"][:-1]}])
    found = blocks_of("anthropic-messages", prepare(history.context, model).body["messages"])
    # Both make an id legal in their own way, and opencode sends the thinking of an answer that was interrupted.
    assert [without_id(block) for block in found] == [
        without_id(block) for block in wanted if block[1:3] != ("thinking", "I begin to think.")
    ]


def without_id(block: tuple[str, ...]) -> tuple[str, ...]:
    return (*block[:2], *block[3:]) if block[1] in {"call", "result"} else block


def texts_of(message: Message) -> list[str]:
    texts: list[str] = []
    for content in message.content:
        if content.kind == "text":
            texts.append(content.text)
        elif content.kind == "toolCall":
            texts.append(content.name)
    return texts


@needs_samples
def test_sub_agents_compactions_and_interrupted_answers_of_claude_code_are_kept():
    files = AGENTS["claude-code"].files
    history = read_history(SHARED / files["main"])
    (child,) = history.children
    assert child.call_id == "toolu_27d417cb4e17b7503096e"
    assert child.history is not None
    assert child.history.context.messages
    stops = [message.stop_reason for message in history.context.messages if message.role == "assistant"]
    assert stops.count(StopReason.ABORTED) == 1
    compacted, full = read_history(SHARED / files["compacted"]), read_history(SHARED / files["compacted"], view="full")
    (compaction,), (summary,) = compacted.compactions, full.context.summaries
    assert compaction.summary == summary
    assert compaction.messages == full.context.messages[: summary.covers]


@needs_samples
def test_sub_agents_compactions_forks_and_usage_of_codex_are_kept():
    files = AGENTS["codex"].files
    history = read_history(SHARED / files["second"])
    (child,) = history.children
    assert (child.title, child.call_id) == ("Planck", "call_2c3a0946a7d2a71f864f7")
    assert child.history is not None
    assert child.history.parent is not None
    assert child.history.parent.id == history.origin.id
    full = read_history(SHARED / files["second"], view="full")
    (compaction,), (summary,) = history.compactions, full.context.summaries
    assert compaction.summary == summary
    assert compaction.messages == full.context.messages[: summary.covers]
    fork = read_history(SHARED / files["fork"])
    assert fork.parent is not None
    assert (fork.parent.id, fork.parent.kind) == (history.origin.id, "fork")
    main = read_history(SHARED / files["main"])
    replies = [message for message in main.context.messages if message.role == "assistant"]
    assert {reply.model for reply in replies} == {"gpt-5.4", "gpt-5.5"}
    assert replies[0].usage is not None
    assert (replies[0].usage.input, replies[0].usage.cache_read, replies[0].usage.output) == (71, 30, 21)
    assert [reply.stop_reason for reply in replies].count(StopReason.ABORTED) == 1


@needs_samples
def test_sub_agents_compressions_models_and_thoughts_of_gemini_cli_are_kept():
    files = AGENTS["gemini-cli"].files
    history = read_history(SHARED / files["main"])
    (child,) = history.children
    assert child.call_id == "fc248467a6be4a907a08e65"
    assert child.history is not None
    replies = [message for message in history.context.messages if message.role == "assistant"]
    assert {reply.model for reply in replies} == {"gemini-2.5-pro", "gemini-3.1-pro-preview"}
    assert replies[0].usage is not None
    assert (replies[0].usage.input, replies[0].usage.output, replies[0].usage.reasoning) == (71, 20, 5)
    assert replies[0].content[0].kind == "thinking"
    compacted, full = read_history(SHARED / files["compacted"]), read_history(SHARED / files["compacted"], view="full")
    (compaction,), (summary,) = compacted.compactions, full.context.summaries
    assert compaction.summary == summary
    assert compaction.messages == full.context.messages[: summary.covers]
    # The later file of this session has no conversation: the other one is read.
    later = SHARED / files["compacted"].replace("12-50-", "12-51-")
    assert read_history(later).context.messages == compacted.context.messages
