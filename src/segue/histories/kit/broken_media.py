"""Replaces media that no provider could read: a path on another machine, data that is not base64.

For a program that builds a conversation such media are mistakes, and `prepare` raises an error. In a stored history
they are data of another program, which the reader of the history cannot correct. So the history is written with a
placeholder, and the report lists it. `Policy.media` can supply the content for an address.
"""

from __future__ import annotations

from msgspec.structs import replace

from segue.conversation.content import AnyContent, FileContent, ImageContent, TextContent
from segue.conversation.media_checks import find_media_fault
from segue.conversation.messages import Message
from segue.projection.policy import Policy, Texts, fill
from segue.projection.report import Change, ChangeCode, Loss
from segue.protocols.kit.reading import split_data_url, standard_base64


def replace_broken_media(message: Message, at: int, policy: Policy | None) -> tuple[Message, tuple[Change, ...]]:
    """Return a message without media that no provider could read, and the changes; `at` is its place in the history."""
    broken = [position for position, piece in enumerate(message.content) if _is_broken(piece, policy)]
    if not broken:
        return message, ()
    texts = Texts() if policy is None else policy.texts
    content: list[AnyContent] = list(message.content)
    changes: list[Change] = []
    for position in broken:
        piece = content[position]
        kind = "image" if piece.kind == "image" else "file"
        address = piece.url if isinstance(piece, (ImageContent, FileContent)) and piece.data is None else None
        content[position] = TextContent(text=fill(texts.media_unreachable, kind=kind))
        detail = "its data is not base64" if address is None or address.startswith("data:") else address
        changes.append(
            Change(
                code=ChangeCode.MEDIA_UNREACHABLE,
                path=("messages", at, "content", position),
                loss=Loss.CONTENT,
                detail=detail,
            )
        )
    return replace(message, content=tuple(content)), tuple(changes)


def _is_broken(piece: AnyContent, policy: Policy | None) -> bool:
    if not isinstance(piece, (ImageContent, FileContent)):
        return False
    if policy is not None and piece.url is not None and piece.url in policy.media:
        return False
    parts = None if piece.url is None or piece.data is not None else split_data_url(piece.url, exact=False)
    if parts is not None:
        piece = replace(piece, url=None, data=standard_base64(parts[1]))
    return find_media_fault(piece) is not None
