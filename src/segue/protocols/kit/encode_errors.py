"""The place of content that cannot be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from segue.conversation.content import AssistantContent, UserContent
from segue.conversation.messages import Message
from segue.errors import EncodeError, Path


def locate_failure(
    error: EncodeError,
    message: Message,
    path: Path,
    encode_assistant: Callable[[AssistantContent], object],
    encode_user: Callable[[UserContent], object],
) -> EncodeError:
    """Return the error of a message with the path of the content that cannot be written.

    Every content is written a second time: that costs nothing where nothing fails.
    """
    for at, piece in enumerate(message.content):
        try:
            if message.role == "assistant":
                encode_assistant(cast("AssistantContent", piece))
            else:
                encode_user(cast("UserContent", piece))
        except EncodeError as inner:
            return EncodeError(inner.reason, path=(*path, "content", at))
    return EncodeError(error.reason, path=path)
