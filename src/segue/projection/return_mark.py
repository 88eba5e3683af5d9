"""Put a cache mark where the target's own last request ended, if the mark of the newest turn does not reach it.

A mark reads the longest live prefix that ends within 20 blocks before it. A conversation that another model continued
for longer, or a turn with many parallel calls, is beyond that: the prefix is still in the cache, and is paid for again.
One of the four marks is free for it: the others are those of the tools, the system prompt and the newest turn.

Facts:
- A mark looks back over 20 blocks; content that changes further back needs another mark.
      (Anthropic documentation: prompt caching; AWS documentation: prompt caching, simplified cache management; 2026-11)
- A mark that finds nothing writes no more than the newest one would: what is written is paid for once.      (the same)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from segue.conversation.content import AnyContent, CacheMark
from segue.conversation.context import Context, Options
from segue.conversation.messages import Message
from segue.protocols.kit.codec import Endpoint

MARKS_WITH_ANCHOR: Final = 4
"""The smallest limit of marks that has room for one more."""
_MARKED: Final = frozenset({"anthropic", "bedrock"})
"""Formats with marks in the body."""
_LOOKBACK: Final = 20
_SEARCHED: Final = 1_000
"""How many messages are searched for the last request, so that a turn costs the same after any history."""


def find_return(context: Context, options: Options, endpoint: Endpoint) -> tuple[int, Message] | None:
    """Return the index of the message at which the target's last request ended, and that message with a mark.

    None if the conversation has own marks, if the target does not read marks, or if the mark of the newest turn
    reaches the end of that request.
    """
    dialect, retention = endpoint.dialect, options.cache_retention
    if retention not in ("short", "long") or dialect.cache_format not in _MARKED:
        return None
    index = _find_last_request(context.messages, endpoint)
    key = endpoint.rules.cache_mark_key
    if index is None or endpoint.rules.cache_marks < MARKS_WITH_ANCHOR or (key and _has_marks(context, key)):
        return None
    mark = CacheMark(ttl="1h" if retention == "long" and dialect.cache_long == "1h" else None)
    marked = with_mark(context.messages[index], mark)
    return None if marked is context.messages[index] else (index, marked)


def _find_last_request(messages: Sequence[Message], endpoint: Endpoint) -> int | None:
    """Find the last message of the target's last request; None if the mark of the newest turn reaches it."""
    origin, blocks = (endpoint.model.provider, endpoint.model.id), 0
    for index in range(len(messages) - 1, max(0, len(messages) - _SEARCHED), -1):
        message = messages[index]
        blocks += 1 if message.role == "toolResult" else len(message.content)
        if message.role == "assistant" and (message.provider, message.model) == origin:
            if blocks < _LOOKBACK:
                return None
            before = (at for at in range(index - 1, -1, -1) if messages[at].role in ("user", "toolResult"))
            return next(before, None)
    return None


def _has_marks(context: Context, key: str) -> bool:
    pieces = [piece for message in context.messages for piece in message.content]
    if isinstance(context.system_prompt, tuple):
        pieces += context.system_prompt
    values = (*context.tools, *context.messages, *pieces)
    return any(getattr(each, "cache_mark", None) is not None or _holds_key(each, key) for each in values)


def _holds_key(value: object, key: str) -> bool:
    """Whether a native block, or what is kept of one wire's format, has a mark."""
    return any(f"'{key}'" in repr(getattr(value, name, None)) for name in ("block", "definition", "extra"))


def with_mark(message: Message, mark: CacheMark) -> Message:
    """Put a mark on a result, or on the last text of another message; the same object if it has none."""
    if message.role == "toolResult":
        return replace(message, cache_mark=mark)
    content: list[AnyContent] = list(message.content)
    for position in range(len(content) - 1, -1, -1):
        piece = content[position]
        if piece.kind == "text" and piece.text.strip():
            content[position] = replace(piece, cache_mark=mark)
            return replace(message, content=tuple(content))
    return message
