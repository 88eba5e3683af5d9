"""Files that are sent with a question: their content decides whether they are an image or another file."""

from __future__ import annotations

import base64
import mimetypes
from pathlib import Path

from segue.conversation.content import FileContent, ImageContent
from segue.conversation.media_types import PLAIN_TEXT, class_of, type_of_data
from segue.errors import ConversationError


def read_attachment(path: Path) -> ImageContent | FileContent:
    """Read a file.

    Raises:
        OSError: it cannot be read.
        ConversationError: it is empty.
    """
    content = path.read_bytes()
    if not content:
        raise ConversationError(f"{path}: the file is empty, so there is nothing to send; choose another file")
    return make_attachment(content, path.name)


def make_attachment(content: bytes, name: str) -> ImageContent | FileContent:
    """Make content for a message from bytes. The first bytes show the type; of a text, the name does."""
    data = base64.b64encode(content).decode()
    shown = type_of_data(data)
    named = mimetypes.guess_type(name)[0]
    kind = named or shown if shown in (None, PLAIN_TEXT) else shown
    if kind is not None and class_of(kind) == "image":
        return ImageContent(data=data, mime_type=kind)
    return FileContent(data=data, mime_type=kind, name=name)
