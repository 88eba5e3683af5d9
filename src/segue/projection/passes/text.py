"""Pass 2: remove halves of surrogate pairs, which cannot be encoded as UTF-8.

Facts:
- They occur in tool arguments (also in keys) and tool output as often as in text.  (claude-code #1709, Zoo-Code #1605)
- A signature covers the exact bytes of its block: a repaired block would be refused, so it is removed.
                                                                                       (claude-code #63203)

Pass 6 replaces tool call ids and tool names: cleaning could make two of them equal.
"""

from __future__ import annotations

from operator import is_
from typing import Final, assert_never, cast

from msgspec.structs import replace

from segue.conversation.content import AnyContent, Extra
from segue.projection.report import ChangeCode, Loss
from segue.projection.workspace.surrogates import clean_value, is_clean_value, only_joins
from segue.projection.workspace.workspace import Workspace

_KEPT_FIELDS: Final = frozenset({"id", "name", "fallback", "extra"})
"""Pass 6 replaces ids and names; a fallback is cleaned content by content, `extra` only where it will be sent."""


_EXTRA: Final = frozenset({"extra"})


def clean_texts(workspace: Workspace) -> None:
    """Clean every message; signed thinking that cannot be restored is removed."""
    scan = workspace.scan
    if scan.extra:
        _clean_extras(workspace)
    if scan.unclean or scan.native:
        for index in range(len(workspace.messages)):
            _clean_content(workspace, index)


def _clean_extras(workspace: Workspace) -> None:
    """Clean the `extra` of the target's protocol; other parts are not sent."""
    protocol = workspace.target.model.protocol
    for index, message in enumerate(workspace.messages):
        if message.extra is not None and not is_clean_extra(message.extra, protocol):
            workspace.note(ChangeCode.SURROGATE_REPLACED, (*workspace.path(index), "extra"), Loss.OPAQUE)
            workspace.put(index, replace(message, extra=clean_value(message.extra)))
        for piece in message.content:
            if not is_clean_value(piece.cache_mark):
                workspace.scan.unclean = True
            if piece.extra is not None and not is_clean_extra(piece.extra, protocol):
                workspace.scan.unclean = True


def is_clean_extra(extra: Extra, protocol: str) -> bool:
    """Whether the part of an `extra` that a request sends is clean."""
    part = extra.get(protocol)
    return part is None or is_clean_value(part)


def _clean_content(workspace: Workspace, index: int) -> None:
    message = workspace.messages[index]
    protocol = workspace.target.model.protocol
    cleaned = tuple([clean_piece(piece, protocol) for piece in message.content])
    if all(map(is_, cleaned, message.content)):
        return
    content: list[AnyContent] = []
    origins: list[int] = []
    for position, (piece, given) in enumerate(zip(cleaned, message.content, strict=True)):
        if piece is not given:
            path = workspace.content_path(index, position)
            restored = _is_restored(given)
            if _signature(given) and not restored:
                workspace.cross_model.add(workspace.places[index])
                if given.kind == "thinking":
                    workspace.note(ChangeCode.SIGNED_BLOCK_UNUSABLE, path, Loss.CONTENT)
                    continue
            workspace.note(ChangeCode.SURROGATE_REPLACED, path, Loss.NONE if restored else Loss.CONTENT)
        content.append(piece)
        origins.append(position)
    workspace.scan.blank = True  # the turn may be empty now
    workspace.put(index, replace(message, content=tuple(content)), origins)


def _signature(piece: AnyContent) -> str | None:
    match piece.kind:
        case "text":
            return piece.text_signature
        case "thinking":
            return piece.thinking_signature
        case "toolCall":
            return piece.thought_signature
        case "image" | "file" | "native":
            return None
        case _:
            assert_never(piece)


def _field_names(piece: AnyContent) -> list[str]:
    kept = _KEPT_FIELDS if piece.kind == "toolCall" or piece.kind == "native" else _EXTRA
    return [name for name in piece.__struct_fields__ if name not in kept]


def _is_restored(piece: AnyContent) -> bool:
    """Whether cleaning only joins halves, which loses nothing."""
    own = all(only_joins(getattr(piece, name)) for name in _field_names(piece))
    return own and (piece.kind != "native" or all(map(_is_restored, piece.fallback)))


def clean_piece(piece: AnyContent, protocol: str) -> AnyContent:
    """Clean one piece of content; the same object when nothing changes."""
    changed: dict[str, object] = {}
    for name in _field_names(piece):
        value = cast("object", getattr(piece, name))
        if not is_clean_value(value):
            changed[name] = clean_value(value)
    if piece.kind == "native":
        fallback = tuple([clean_piece(spare, protocol) for spare in piece.fallback])
        if not all(map(is_, fallback, piece.fallback)):
            changed["fallback"] = fallback
    if piece.extra is not None and not is_clean_extra(piece.extra, protocol):
        changed["extra"] = clean_value(piece.extra)
    if "arguments" in changed:
        changed["arguments_text"] = None  # the original text belongs to the original arguments
    return replace(piece, **changed) if changed else piece
