"""Ids of items, which a request may hold only once.

Facts this file rests on:
- "Duplicate item found with id msg_123. Remove duplicate items from your input and try again."  (vscode #321977 of
  2026-06-18, continue #10723, OpenRouter: ai-sdk-provider #254)
- An item of the model is accepted without its id, reasoning with its encrypted content too: codex sends none.
                                                                                     (codex @343074d4, read 2026-11-17)
- A message of the model has an id and a status, or neither.                   (openai 3.49, `EasyInputMessageParam`)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar, cast

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, Extra, TextContent, ThinkingContent, ToolCall
from segue.protocols.kit.item_ids import ItemIds
from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.verbatim import VERBATIM
from segue.protocols.openai_responses.rules import PROTOCOL
from segue.protocols.openai_responses.thinking import REFUSED_ITEM, read_signature, write_signature

_CHOICES: Final = ("@item", f"@{REFUSED_ITEM}")
"""The choices of `turns` that keep the fields of an item instead of its signature."""
_Piece = TypeVar("_Piece", TextContent, ThinkingContent, ToolCall)


def _choices(extra: Extra | None) -> Block:
    """Give the format that an `extra` keeps, with the choices."""
    return object_of(extra.get(PROTOCOL, {}).get(VERBATIM)) if extra is not None else {}


def _find(content: AssistantContent) -> str | None:
    if content.kind == "native":
        return None
    signature = _signature_of(content)
    fields = read_signature(signature) if signature is not None else None
    if fields is not None:
        return text_of(fields.get("id"))
    if content.extra is None:
        return None
    kept = (object_of(_choices(content.extra).get(name)).get("to") for name in _CHOICES)
    return next((found for fields in kept if (found := text_of(object_of(fields).get("id")))), None)


def _signature_of(content: TextContent | ThinkingContent | ToolCall) -> str | None:
    match content.kind:
        case "text":
            return content.text_signature
        case "thinking":
            return content.thinking_signature
        case "toolCall":
            return content.thought_signature


def _remove(content: AssistantContent) -> AssistantContent:
    if content.kind == "native":
        return content
    signature = _signature_of(content)
    fields = read_signature(signature)
    if fields is not None:
        signature = write_signature(_without_id(fields, content))
    if content.kind == "text":
        return replace(_without_choice(content), text_signature=signature)
    if content.kind == "thinking":
        return replace(_without_choice(content), thinking_signature=signature)
    return replace(_without_choice(content), thought_signature=signature)


def _without_choice(content: _Piece) -> _Piece:
    extra, choices = content.extra, _choices(content.extra)
    if extra is None or choices.keys().isdisjoint(_CHOICES):
        return content
    kept = dict(choices)
    for name in choices.keys() & _CHOICES:
        choice = object_of(choices[name])
        fields = choice.get("to")
        if isinstance(fields, Mapping):
            kept[name] = {**choice, "to": _without_id(cast("Block", fields), content)}
    return replace(content, extra={**extra, PROTOCOL: {**extra[PROTOCOL], VERBATIM: kept}})


def _without_id(fields: Block, content: AssistantContent) -> Block:
    left_out = ("id", "status") if content.kind == "text" else ("id",)
    return {key: value for key, value in fields.items() if key not in left_out}


ITEM_IDS: Final = ItemIds(find=_find, remove=_remove, start='{"id":"', references=frozenset({"item_reference"}))
