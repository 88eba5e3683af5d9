"""Check the images and files of a message: whether a provider could read what their fields hold."""

from __future__ import annotations

from collections.abc import Container

from segue.conversation.content import FileContent, ImageContent
from segue.conversation.media_sources import find_data_fault, find_url_fault
from segue.conversation.messages import Message, ToolResultMessage, UserMessage
from segue.errors import ConversationError


def check_media(message: Message, supplied: Container[str] = ()) -> None:
    """Check that the media of one message can be sent; `supplied` are URLs for which the policy has the content.

    Raises:
        ConversationError: data is not base64, or a path is in place of a URL; `path` locates it in the message.
    """
    if not isinstance(message, (UserMessage, ToolResultMessage)):
        return
    for position, piece in enumerate(message.content):
        if isinstance(piece, (ImageContent, FileContent)) and (piece.url is None or piece.url not in supplied):
            fault = find_media_fault(piece)
            if fault is not None:
                raise ConversationError(fault[1], path=("content", position, fault[0]))


def find_media_fault(piece: ImageContent | FileContent) -> tuple[str, str] | None:
    """Find the field of a piece of media that no provider could read, and describe what is wrong."""
    name = type(piece).__name__
    if piece.data is not None:
        field, fault = "data", find_data_fault(piece.data, name)
    elif piece.url is not None:
        field, fault = "url", find_url_fault(piece.url, name)
    else:
        return None
    return None if fault is None else (field, fault)
