"""The bodies of requests as a check of the conversation sees them: what counts, and where the reasoning stands.

Facts this file rests on:
- What counts is system, tools and messages as the client sent them, without `cache_control` and without thinking. The
  order of keys does not count.                                 (Anthropic documentation: preserved thinking, 2026-09)
- A tool with `defer_loading` that nothing has referenced does not count.                         (the same; probed)
- With a compaction block, the conversation starts at the newest one.                                     (the same)
- A string as the content of a message is short for one text block: Claude Code sends a message as a block with a cache
  mark while it is the newest, then as a string.                 (API reference: Messages; Claude Code 2.1.325, 2026-11)
- Whether that holds for `system`, and whether the order of tools counts, is not documented. Here they count: what
  passes here passes there.

Values are compared as JSON text with sorted keys. Equal texts are one object, so comparing is cheap.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast, final

from segue.protocols.kit.facts import ClaudeWire

Body: TypeAlias = Mapping[str, Any]
Value: TypeAlias = str
"""A JSON value as text with sorted keys."""


@final
class Block(NamedTuple):
    """A reasoning block in a request: where it stands, its token, and its text."""

    message: int
    piece: int
    token: str
    text: str

    @property
    def path(self) -> str:
        """The place, as the API writes it."""
        return f"messages.{self.message}.content.{self.piece}"


@final
class AskedBody(NamedTuple):
    """What a request asks a model, without what does not count; `blocks` is its reasoning in order."""

    system: Value
    tools: tuple[Value, ...]
    deferred: tuple[tuple[str, Value], ...]
    messages: tuple[Value, ...]
    blocks: tuple[Block, ...]
    start: int
    """The message with the newest compaction block; 0 without one."""

    def before(self, message: int) -> Prefix:
        """Give what stands before a message."""
        messages = self.messages[self.start : message]
        tools = self.tools
        if self.deferred:
            tools += tuple(value for name, value in self.deferred if any(_refers(name, each) for each in messages))
        return Prefix(self.system, tools, messages)

    def is_reply(self, message: int) -> bool:
        """Whether a message is one of the assistant."""
        return message < len(self.messages) and '"role": "assistant"' in self.messages[message]


@final
class Prefix(NamedTuple):
    """What stands before a reply."""

    system: Value
    tools: tuple[Value, ...]
    messages: tuple[Value, ...]


def _refers(name: str, message: Value) -> bool:
    return f'"tool_name": {json.dumps(name)}' in message or f'"name": {json.dumps(name)}' in message


class BodyReader:
    """Reads bodies; it keeps each value once."""

    def __init__(self) -> None:
        self._values: dict[Value, Value] = {}

    def read(self, wire: ClaudeWire, body: Body) -> AskedBody:
        """Read a body of a protocol that Claude models are called with."""
        return (self._read_converse if wire == "converse" else self._read_messages)(body)

    def _keep(self, value: object) -> Value:
        text = json.dumps(value, sort_keys=True)
        return self._values.setdefault(text, text)

    def _read_messages(self, body: Body) -> AskedBody:
        tools = [_unmarked(tool) for tool in _objects(body.get("tools"))]
        system = body.get("system")
        if isinstance(system, list):
            system = [_unmarked(block) for block in _objects(cast("object", system))]
        messages, blocks, start = self._messages(body)
        return AskedBody(
            self._keep(system),
            tuple(self._keep(tool) for tool in tools if tool.get("defer_loading") is not True),
            tuple((str(tool.get("name")), self._keep(tool)) for tool in tools if tool.get("defer_loading") is True),
            messages,
            blocks,
            start,
        )

    def _messages(self, body: Body) -> tuple[tuple[Value, ...], tuple[Block, ...], int]:
        values: list[Value] = []
        blocks: list[Block] = []
        start = 0
        for at, message in enumerate(_objects(body.get("messages"))):
            content = message.get("content")
            if isinstance(content, str):
                content = [{"type": "text", "text": content}]
            if isinstance(content, list):
                kept: list[object] = []
                for piece, block in enumerate(_objects(cast("list[object]", content))):
                    found = _thinking(block, at, piece) if message.get("role") == "assistant" else None
                    if found is not None:
                        blocks.append(found)
                        continue
                    if block.get("type") == "compaction":
                        start = at
                    kept.append(_unmarked(block))
                content = kept
            values.append(self._keep({**message, "content": content}))
        return tuple(values), tuple(blocks), start

    def _read_converse(self, body: Body) -> AskedBody:
        config = body.get("toolConfig")
        tools = cast("Body", config).get("tools") if isinstance(config, dict) else None
        messages: list[Value] = []
        blocks: list[Block] = []
        for at, message in enumerate(_objects(body.get("messages"))):
            kept: list[object] = []
            for piece, block in enumerate(_objects(message.get("content"))):
                found = _reasoning(block, at, piece)
                if found is not None:
                    blocks.append(found)
                elif "cachePoint" not in block:
                    kept.append(block)
            messages.append(self._keep({**message, "content": kept}))
        return AskedBody(
            self._keep([block for block in _objects(body.get("system")) if "cachePoint" not in block]),
            tuple(self._keep(tool) for tool in _objects(tools) if "cachePoint" not in tool),
            (),
            tuple(messages),
            tuple(blocks),
            0,
        )


def first_difference(one: Prefix, other: Prefix) -> str | None:
    """Give the path of the first message content that differs, as the API names it; None if the messages are equal."""
    for at in range(max(len(one.messages), len(other.messages))):
        mine = one.messages[at] if at < len(one.messages) else None
        theirs = other.messages[at] if at < len(other.messages) else None
        if mine == theirs:
            continue
        if mine is None or theirs is None:
            return f"messages.{at}"
        contents = [json.loads(value)["content"] for value in (mine, theirs)]
        if not all(isinstance(content, list) for content in contents):
            return f"messages.{at}.content"
        left, right = cast("list[list[object]]", contents)
        pairs = zip(left, right, strict=False)
        piece = next((place for place, pair in enumerate(pairs) if pair[0] != pair[1]), min(len(left), len(right)))
        return f"messages.{at}.content.{piece}"
    return None


def _objects(value: object) -> Sequence[dict[str, Any]]:
    if not isinstance(value, list):
        return ()
    return [cast("dict[str, Any]", each) for each in cast("list[object]", value) if isinstance(each, dict)]


def _unmarked(block: dict[str, Any]) -> dict[str, Any]:
    """Remove the cache mark of a block, and of the blocks in a tool result; schemas and inputs are left alone."""
    kept = {key: value for key, value in block.items() if key != "cache_control"}
    if kept.get("type") == "tool_result" and isinstance(kept.get("content"), list):
        kept["content"] = [_unmarked(inner) for inner in _objects(kept["content"])]
    return kept


def _thinking(block: dict[str, Any], message: int, piece: int) -> Block | None:
    if block.get("type") == "thinking":
        return Block(message, piece, str(block.get("signature") or ""), str(block.get("thinking") or ""))
    if block.get("type") == "redacted_thinking":
        return Block(message, piece, str(block.get("data") or ""), "")
    return None


def _reasoning(block: dict[str, Any], message: int, piece: int) -> Block | None:
    content = block.get("reasoningContent")
    if not isinstance(content, dict):
        return None
    given = cast("dict[str, Any]", content)
    text = cast("dict[str, Any]", given.get("reasoningText") or {})
    token = text.get("signature") or given.get("redactedContent") or ""
    return Block(message, piece, str(token), str(text.get("text") or ""))
