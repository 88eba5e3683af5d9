"""What Claude's thinking is bound to, on the Anthropic wire.

Facts this file relies on (Anthropic documentation: preserved thinking; anthropic 2.8.0; read 2026-11-16):
- The prefix of a thinking block is `system`, `tools` and every message before it, as the client sent them; behind a
  `compaction` block only what follows it. Cache marks do not count, nor does a tool with `defer_loading`.
- A string as the content of a message is short for one text block. Claude Code sends a message as a block with a cache
  mark while it is the newest, and as a string from then on.     (API reference: Messages; Claude Code 2.1.325, 2026-11)
- Whether a string as `system` equals one text block is not stated. So a conversation keeps the form that its replies
  were made after.                                                     (Anthropic documentation: preserved thinking)
- How the server is asked to drop, and what it answers: see `kit.claude_prefix`.
"""

from __future__ import annotations

from typing import Final, cast

from segue.protocols.anthropic_messages.cache import CACHE_CONTROL
from segue.protocols.kit.claude_prefix import BETA, TRANSFORMATIONS, has_drop, read_transformations, with_drop
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.prefix_form import Dropped, PrefixForm

_THINKING: Final = frozenset({"thinking", "redacted_thinking"})


def _without_mark(block: Block) -> Block:
    """Give a block or tool without cache marks, also without those of the content of a result."""
    inner = block.get("content")
    if type(inner) is list and block.get("type") == "tool_result":
        blocks = cast("list[Block]", inner)
        if any(CACHE_CONTROL in each for each in blocks):
            block = {**block, "content": [_without_mark(each) for each in blocks]}
    if CACHE_CONTROL not in block:
        return block
    return {key: value for key, value in block.items() if key != CACHE_CONTROL}


def _system(body: Block) -> object:
    system = body.get("system")
    return [_without_mark(block) for block in cast("list[Block]", system)] if isinstance(system, list) else system


def _system_block(text: str) -> object:
    return [{"type": "text", "text": text}]


def _tools(body: Block) -> object:
    tools = body.get("tools")
    if not isinstance(tools, list):
        return None
    return [_without_mark(tool) for tool in cast("list[Block]", tools) if not tool.get("defer_loading")] or None


def _turn(turn: Block) -> Block:
    # One of the few functions that every turn of every request passes: most turns have neither marks nor thinking.
    content = turn.get("content")
    if type(content) is not list:
        return turn
    blocks = cast("list[Block]", content)
    is_changed = False
    for block in blocks:
        if CACHE_CONTROL in block or block["type"] in _THINKING:
            is_changed = True
            break
        inner = block.get("content")
        if type(inner) is list:
            for each in cast("list[Block]", inner):
                if CACHE_CONTROL in each:
                    is_changed = True
    if is_changed:
        blocks = [_without_mark(block) for block in blocks if block["type"] not in _THINKING]
    if len(blocks) == 1 and len(blocks[0]) == 2 and "text" in blocks[0] and blocks[0]["type"] == "text":
        return {**turn, "content": blocks[0]["text"]}
    return {**turn, "content": blocks} if is_changed else turn


def _starts(turn: Block) -> bool:
    content = turn.get("content")
    if type(content) is not list:
        return False
    for block in cast("list[Block]", content):  # noqa: SIM110 - every assistant turn passes here
        if block.get("type") == "compaction":
            return True
    return False


def _signature(block: Block) -> str | None:
    kind = block.get("type")
    value = block.get("signature") if kind == "thinking" else block.get("data") if kind == "redacted_thinking" else None
    return value if isinstance(value, str) else None


def _asks(body: Block) -> bool:
    return has_drop(object_of(body.get("thinking")))


def _ask(body: Wire, endpoint: Endpoint) -> bool:
    thinking = with_drop(object_of(body.get("thinking")), endpoint)
    if thinking is not None:
        body["thinking"] = thinking
    return thinking is not None


def _dropped(reply: Block) -> list[Dropped] | None:
    return read_transformations(reply.get(TRANSFORMATIONS))


PREFIX: Final = PrefixForm(
    system=_system,
    tools=_tools,
    turn=_turn,
    starts=_starts,
    system_block=_system_block,
    signature=_signature,
    asks=_asks,
    ask=_ask,
    headers={"anthropic-beta": BETA},
    dropped=_dropped,
)
