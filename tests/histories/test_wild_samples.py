"""Samples of the formats that people have, each with the reading that is expected of it."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from segue import History, Loss, read_history, write_history
from segue.conversation.messages import Message
from segue.errors import SegueError
from segue.histories.kit.envelope import find_envelope, is_own_text
from segue.projection.report import ChangeCode

WILD = Path(__file__).resolve().parents[3] / "shared" / "histories" / "wild"
pytestmark = pytest.mark.skipif(not WILD.is_dir(), reason="on samples of many programs (no ../shared/histories/wild)")

Shown = dict[str, Any]

SAMPLES = {
    "SWE-agent": ("swe-agent", "example__proj-1"),
    "SWE-agent before 1.0": ("swe-agent", "old__proj-1"),
    "Qwen Code": ("qwen-code", "chat"),
    "Crush": ("crush", "crush"),
    "the opencode written in Go": ("opencode-go", "opencode"),
    "chat messages, one a line": ("messages-jsonl", "chat"),
    "Copilot CLI": ("copilot-cli", "events"),
    "Copilot Chat in VS Code": ("vscode-copilot-chat", "chatSessions"),
    "OpenHands": ("openhands", "conversation"),
    "OpenHands before its SDK": ("openhands", "trajectory-v0"),
    "Cursor, its database": ("cursor", "state"),
    "Cursor, a transcript": ("cursor", "transcript"),
    "Cursor, an export": ("cursor", "export"),
    "SpecStory, by its command line": ("specstory", "cli"),
    "SpecStory, by its extension": ("specstory", "extension"),
    "OpenClaw": ("openclaw", "session"),
    "Droid": ("droid", "session"),
    "Semantic Kernel": ("semantic-kernel", "chat_history"),
    "a fan of parallel calls": ("claude-code", "c0000000-0001-4000-8000-000000000002"),
    "parallel calls under results and progress": ("claude-code", "c0000000-0001-4000-8000-000000000003"),
}


def expected(folder: str, name: str) -> Shown:
    return json.loads((WILD / folder / f"{name}.expected.json").read_bytes())


def in_short(messages: list[Shown]) -> list[Shown]:
    """Give the expected messages as `shown` gives those that were read: what a file does not say is not compared."""
    made: list[Shown] = []
    for message in messages:
        parts = [{key: value for key, value in part.items() if key != "signature"} for part in message["content"]]
        if message["role"] == "tool":
            made += sorted(({**part, "type": "result"} for part in parts), key=lambda part: str(part["id"]))
        else:
            made.append({"role": message["role"], "parts": parts})
    return made


def shown(history: History) -> list[Shown]:
    """Give what was read: one entry for each message, results in the order of their ids."""
    made: list[Shown] = []
    results: list[Shown] = []
    for message in history.context.messages:
        if is_own_text(message):
            continue
        if message.role == "toolResult":
            text = "\n".join(part.text for part in message.content if part.kind == "text")
            results.append({"type": "result", "id": message.tool_call_id, "text": text, "error": message.is_error})
            continue
        made += sorted(results, key=lambda part: part["id"])
        results = []
        made.append({"role": message.role, "parts": [part for each in message.content if (part := part_of(each))]})
    return [*made, *sorted(results, key=lambda part: part["id"])]


def part_of(content: Any) -> Shown | None:
    if content.kind == "text":
        return {"type": "text", "text": content.text}
    if content.kind == "thinking":
        return {"type": "thinking", "text": content.thinking}
    if content.kind == "toolCall":
        return {"type": "call", "id": content.id, "name": content.name, "arguments": content.arguments}
    return {"type": content.kind}


def assert_read(history: History, wanted: Shown) -> None:
    """Compare field by field, those alone that the expected reading has."""
    found = shown(history)
    short = in_short(wanted["messages"])
    assert len(found) == len(short), (found, short)
    for one, other in zip(found, short, strict=True):
        if "parts" in other:
            assert one["role"] == other["role"]
            assert [known(part, like) for part, like in zip(one["parts"], other["parts"], strict=True)] == [
                known(like, like) for like in other["parts"]
            ]
        else:
            assert known(one, other) == known(other, other)


def known(part: Shown, like: Shown) -> Shown:
    return {key: part.get(key) for key, value in like.items() if value is not None and key in {
        "type", "text", "id", "name", "arguments", "error"
    } and not (like["type"] == "result" and key == "name")}  # fmt: skip


@pytest.mark.parametrize(("folder", "name"), SAMPLES.values(), ids=SAMPLES.keys())
def test_a_sample_is_read_as_expected(folder, name):
    wanted = expected(folder, name)
    history = read_history(WILD / folder / wanted["files"][0])
    names = {"opencode-go": "crush", "messages-jsonl": "openai-chat", "openclaw": "pi"}
    name = str(wanted["format"])
    assert history.origin.format == names.get(
        name, name.partition(" (")[0].removesuffix("-transcript").removesuffix("-export")
    )
    assert_read(history, wanted)
    assert history.report.of(ChangeCode.LINE_UNREADABLE) == ()


WILD_2 = WILD.with_name("wild-2")
READ_WHOLE = {
    "claude-output-json": "agent-output",
    "codex-exec-json": "agent-output",
    "cursor-stream-json": "agent-output",
    "droid-stream-json": "agent-output",
    "gemini-stream-json": "agent-output",
    "cline-cli": "cline",
    "cline-text-results": "cline",
    "copilot-json": "copilot-cli",
    "langgraph-sqlite": "langchain",
    "llm-logs": "llm",
    "openai-agents-sqlite": "openai-agents",
    "vercel-model-messages": "vercel-messages",
    "langchain-openai": "langchain-openai",
    "litellm-responses": "chat-replies",
    "openai-conversation-items": "openai-agents",
    "vscode-export": "vscode-copilot-chat",
    "cline-ui-messages": "cline-ui",
    "pi-mode-json": "pi",
    "kimi-code": "kimi-code",
    "kimi-cli": "kimi-cli",
    "kiro-cli": "kiro",
    "mistral-vibe": "mistral-vibe",
    "amp": "amp",
    "acp-log": "acp-log",
    "grok-build": "grok-build",
    "iflow": "iflow",
    "managed-agents": "managed-agents",
    "copilot-interchange": "copilot-interchange",
    "adk-evalset": "adk-evalset",
    "smolagents": "smolagents",
    "dspy-lm-history": "dspy",
    "hermes": "hermes",
    "agent-trail": "agent-trail",
    "antigravity": "antigravity",
    "cursor-cli": "cursor-cli",
    "entire-compact": "entire",
    "langfuse-trace": "langfuse",
    "langsmith-runs": "langsmith",
    "phoenix-spans": "phoenix",
    **({"zed": "zed"} if sys.version_info >= (3, 14) or find_spec("zstandard") else {}),
}
"""The formats of these samples, and what they are read as."""
WITHOUT_LAST_ANSWER = ("claude-stream-json", "qwen-stream-json", "kimi-stream-json", "cline-json", "opencode-run-json")
"""Samples whose expected reading does not have the last answer, which is a message of the file like the others: the
expected readings of the same run of Codex, Gemini CLI, Copilot CLI and pi have it."""
LAST_ANSWER = "north.csv has two rows; süd.csv is missing. 🙂"


@pytest.mark.skipif(not WILD_2.is_dir(), reason="on samples of output streams (no ../shared/histories/wild-2)")
def test_the_samples_of_further_formats_are_read_or_refused():
    silent: dict[str, object] = {}
    for path in sorted(WILD_2.glob("*/*.expected.json")):
        folder, wanted = path.parent.name, json.loads(path.read_bytes())
        try:
            history = read_history(path.parent / wanted["files"][0])
        except SegueError:
            if folder in READ_WHOLE or folder in WITHOUT_LAST_ANSWER:
                silent[folder] = "refused"
            continue
        if folder in READ_WHOLE:
            assert history.origin.format == READ_WHOLE[folder]
            assert_read(history, wanted)
        elif folder in WITHOUT_LAST_ANSWER:
            short = in_short(wanted["messages"])
            assert_read(
                replace(history, context=replace(history.context, messages=history.context.messages[:-1])), wanted
            )
            assert shown(history)[len(short) :] == [
                {"role": "assistant", "parts": [{"type": "text", "text": LAST_ANSWER}]}
            ]
        else:
            silent[folder] = history.origin.format
    assert silent == {}


def test_every_class_of_lines_of_claude_code_goes_where_it_belongs():
    wanted = expected("claude-code", "c0000000-0001-4000-8000-000000000001")
    history = read_history(WILD / "claude-code" / wanted["files"][0])
    read = {uuid for message in history.context.messages for uuid in uuids(message)}
    kept = {uuid for message in history.context.messages if not is_own_text(message) for uuid in uuids(message)}
    assert read == {line["uuid"] for line in wanted["lines"] if line["sent_on_resume"]}
    assert kept == {line["uuid"] for line in wanted["lines"] if line["belongs_in_a_handover"]}
    report = write_history(history, format="codex", model="openai/gpt-5.4").report
    left_out = report.of(ChangeCode.AGENT_TEXT_LEFT_OUT)
    assert len(left_out) == len(read - kept)
    assert {change.loss for change in left_out} == {Loss.CONTENT}


def uuids(message: Message) -> list[str]:
    envelope = find_envelope(message, "claude-code") or {}
    lines = cast("list[dict[str, str]]", envelope.get("lines")) or [envelope]
    return [cast("str", line["uuid"]) for line in lines]


@pytest.mark.skipif(not WILD_2.is_dir(), reason="on samples of signatures (no ../shared/histories/wild-2)")
@pytest.mark.parametrize(
    "folder",
    [
        name
        for name in ("kimi-code", "kimi-cli", "kiro-cli", "mistral-vibe", "amp", "zed", "pi-mode-json")
        if name in READ_WHOLE
    ],
)
def test_the_signatures_of_a_sample_are_read(folder):
    wanted = json.loads((WILD_2 / folder / "sample.expected.json").read_bytes())
    history = read_history(WILD_2 / folder / wanted["files"][0])
    thoughts = [part for each in wanted["messages"] for part in each["content"] if part["type"] == "thinking"]
    found = [piece for each in history.context.messages for piece in each.content if piece.kind == "thinking"]
    assert [piece.thinking_signature for piece in found] == [part["signature"] for part in thoughts]
