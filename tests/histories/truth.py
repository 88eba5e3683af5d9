"""Compares what was read from a session with what the agent itself sent when it continued that session.

Blocks are compared in order: role, kind, text (trimmed), call id, name and arguments, result id, error flag and text,
image bytes, thinking and its signature. Left out: texts that the agent adds (reminders, environment), texts that the
sample marks as cut, instructions, and the last prompt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

SHARED = Path(__file__).parents[3] / "shared" / "histories"
needs_samples = pytest.mark.skipif(not SHARED.is_dir(), reason="on sample sessions (no samples)")


def beside_the_project(cases: Iterable[T]) -> list[T]:
    """Give cases with samples of real programs, none where they are not there: one test is skipped then, not each."""
    return list(cases) if SHARED.is_dir() else []


ADDED = re.compile(
    r"<system-reminder>|<environment_context>|<session_context>|<permissions|<skills_instructions|<model_switch>"
    r"|<user_instructions>|<apps_instructions|<plugins_instructions|<collaboration_mode|^# AGENTS.md instructions"
    r"|^This is the (?:Gemini CLI|Qwen Code)\. We are setting up the context|^Got it\. Thanks for the context!"
)
GLUED = re.compile(r"\s*<system-reminder>.*?</system-reminder>\s*", re.DOTALL)
CUT = "…[cut"

Block = tuple[str, ...]


def blocks_of(wire: str, turns: list[dict[str, Any]]) -> list[Block]:
    """Give the blocks that count, as plain tuples."""
    return [block for block in READERS[wire](turns) if not _is_left_out(block)]


def _is_left_out(block: Block) -> bool:
    return (block[1] == "text" and (bool(ADDED.search(block[2])) or not block[2])) or any(CUT in part for part in block)


def _text(value: Any) -> str:
    return GLUED.sub("", value).strip() if isinstance(value, str) else ""


def _anthropic(turns: list[dict[str, Any]]) -> Iterator[Block]:
    for turn in turns:
        content: Any = turn["content"]
        blocks: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            kind = block["type"]
            if kind == "text":
                yield turn["role"], "text", block["text"].strip()
            elif kind == "thinking":
                yield "assistant", "thinking", block["thinking"], block.get("signature") or ""
            elif kind == "redacted_thinking":
                yield "assistant", "redacted", block["data"]
            elif kind == "tool_use":
                yield "assistant", "call", block["id"], block["name"], json.dumps(block["input"], sort_keys=True)
            elif kind == "image":
                yield turn["role"], "image", block["source"].get("data", "")
            elif kind == "tool_result":
                yield (
                    "user",
                    "result",
                    block["tool_use_id"],
                    str(bool(block.get("is_error"))),
                    *_anthropic_result(block),
                )
            else:
                yield turn["role"], kind, json.dumps(block, sort_keys=True)


def _anthropic_result(block: dict[str, Any]) -> Iterator[str]:
    content: Any = block.get("content") or ""
    items: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for item in items:
        part = _text(item.get("text")) if item["type"] == "text" else json.dumps(item, sort_keys=True)
        if part:
            yield part


def _responses(items: list[dict[str, Any]]) -> Iterator[Block]:
    for item in items:
        kind = item.get("type", "message")
        if kind == "message":
            if item["role"] in {"developer", "system"}:
                continue
            content = item["content"]
            for part in [{"type": "input_text", "text": content}] if isinstance(content, str) else content:
                if "text" in part:
                    yield item["role"], "text", part["text"].strip()
                else:
                    yield item["role"], "image", part.get("image_url") or json.dumps(part, sort_keys=True)
        elif kind == "reasoning":
            words = "\n".join(part["text"] for part in item.get("summary") or ())
            yield "assistant", "thinking", words, item.get("encrypted_content") or ""
        elif kind in {"function_call", "custom_tool_call"}:
            arguments = item.get("arguments", item.get("input"))
            yield "assistant", "call", item["call_id"], item["name"], str(arguments)
        elif kind.endswith("_output"):
            output = item["output"]
            yield "user", "result", item["call_id"], output if isinstance(output, str) else json.dumps(output)
        else:
            yield "assistant", kind, item.get("id", "")


def _google(contents: list[dict[str, Any]]) -> Iterator[Block]:
    seen: set[str] = set()
    for content in contents:
        repeated = False
        for part in content["parts"]:
            if part.get("thought"):
                continue
            if "functionCall" in part:
                call = part["functionCall"]
                yield "model", "call", call.get("id", ""), call["name"], json.dumps(call.get("args"), sort_keys=True)
            elif "functionResponse" in part:
                response = part["functionResponse"]
                repeated = response.get("id", "") in seen
                seen.add(response.get("id", ""))
                if not repeated:
                    yield "user", "result", response.get("id", ""), json.dumps(response["response"], sort_keys=True)
            elif "inlineData" in part:
                if not repeated:
                    yield content["role"], "image", part["inlineData"]["data"]
            elif "text" in part:
                yield content["role"], "text", part["text"].strip()


def _chat(messages: list[dict[str, Any]]) -> Iterator[Block]:
    for message in messages:
        role, content = message["role"], message.get("content") or ""
        parts: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        text = "\n".join(_text(part["text"]) for part in parts if part["type"] == "text")
        if role == "tool":
            yield "user", "result", message["tool_call_id"], text.strip()
            continue
        if role in {"system", "developer"}:
            continue
        if text:
            yield role, "text", text.strip()
        for call in message.get("tool_calls") or ():
            function = call["function"]
            arguments = json.dumps(json.loads(function["arguments"]), sort_keys=True)
            yield "assistant", "call", call["id"], function["name"], arguments


READERS = {
    "anthropic-messages": _anthropic,
    "google-genai": _google,
    "openai-chat": _chat,
    "openai-responses": _responses,
}
