"""Anthropic messages as programs other than Anthropic's store them: with their own fields and blocks."""

from __future__ import annotations

from typing import Any, Final, cast

from msgspec.structs import replace

from segue.conversation.context import Origin
from segue.conversation.messages import AssistantMessage, Message, Usage
from segue.errors import DecodeError
from segue.histories.kit.documents import json_text
from segue.histories.kit.lines import object_of, objects_of, text_of
from segue.histories.kit.notes import Notes
from segue.histories.kit.wire import TurnCodec

WIRE: Final = TurnCodec("anthropic-messages", "messages")
_ROLES: Final = ("user", "assistant", "system")
_NEEDED: Final = {"text": "text", "thinking": "thinking", "tool_use": "input"}
"""Blocks whose content is in one field; without it, it is in a field that nobody reads."""
_OUTCOME: Final = frozenset({"query", "result", "success", "error", "duration", "type"})
_PLAIN: Final = frozenset({"text", "image", "document", "search_result", "tool_reference"})
"""Blocks that a result may hold; others are what a program stores for its display."""


def read_turn(
    fields: dict[str, Any], number: int, notes: Notes, *, origin: Origin | None, time: int | None, usage: Usage | None
) -> list[Message]:
    """Read one turn; one that does not follow the protocol is noted and left out."""
    role, content = fields.get("role"), fields.get("content")
    if role not in _ROLES:
        notes.unreadable(number, f"the role {role!r} is unknown")
        return []
    blocks: object = content
    if isinstance(content, list):
        listed = cast("list[object]", content)
        blocks = [_plain_block(object_of(block)) if _is_object(block) else block for block in listed]
    for block in objects_of(blocks):
        needed = _NEEDED.get(text_of(block.get("type")) or "")
        if needed is not None and needed not in block:
            notes.unreadable(number, f"a block of the type {block['type']} has no `{needed}`")
            break
    turn = {"role": role, "content": blocks}
    try:
        messages = WIRE.decode([turn], origin.model if origin is not None else "", None)
    except DecodeError as error:
        notes.unreadable(number, str(error))
        return []
    return [_stamped(message, origin, time, usage) for message in messages]


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _stamped(message: Message, origin: Origin | None, time: int | None, usage: Usage | None) -> Message:
    if message.role == "system":
        return message
    if isinstance(message, AssistantMessage):
        named = origin or Origin(protocol=WIRE.protocol, provider="", model="")
        return replace(
            message,
            protocol=named.protocol,
            provider=named.provider,
            model=named.model,
            timestamp=time,
            usage=usage,
        )
    return replace(message, timestamp=time)


def _plain_block(block: dict[str, Any]) -> dict[str, Any]:
    """Write a block as Anthropic does: results that are objects become texts, attached files too."""
    if block.get("type") == "file":
        text = text_of(block.get("content")) or text_of(block.get("path")) or ""
        return {"type": "text", "text": text}
    if block.get("type") != "tool_result" or not isinstance(block.get("content"), list):
        return block
    pieces = objects_of(block["content"])
    if all(text_of(piece.get("type")) in _PLAIN for piece in pieces):
        return block
    failed = [piece.get("success") is False for piece in pieces if "success" in piece]
    made: list[dict[str, Any]] = []
    for piece in pieces:
        if text_of(piece.get("type")) in _PLAIN:
            made.append(piece)
        else:
            made += _outcome(piece)
    result = {**block, "content": made}
    if failed and all(failed):
        result["is_error"] = True
    return result


def _outcome(piece: dict[str, Any]) -> list[dict[str, Any]]:
    """Write what a tool gave for one question: its result, and its error."""
    made: list[dict[str, Any]] = []
    for name in ("result", "error"):
        value = piece.get(name)
        if value in (None, "", [], {}):
            continue
        parts = objects_of(value)
        if parts and all(text_of(part.get("type")) in _PLAIN for part in parts):
            made += parts
        else:
            text = text_of(object_of(value).get("text")) or json_text(value)
            made.append({"type": "text", "text": text})
    if not made and ("result" not in piece or piece.keys() - _OUTCOME):
        made.append({"type": "text", "text": json_text(piece)})
    return made
