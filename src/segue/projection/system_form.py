"""The form of the system prompt: the one that the conversation was sent with.

Where reasoning is bound to what was sent, a string and a list with one text may count as two system prompts. Options
decide about the form of a new conversation: a cache mark needs a block. From then on it is the one that the newest
reply to this system prompt was made after, whatever the options ask for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Literal

from segue.conversation.content import TextContent
from segue.conversation.marks import digest_value
from segue.conversation.messages import AssistantMessage, Message


@lru_cache(maxsize=64)  # the same prompt comes with each request
def _digests(text: str, block: Callable[[str], object]) -> dict[str, Literal["string", "block"]]:
    return {digest_value(block(text)): "block", digest_value(text): "string"}


def find_system_form(
    text: str, messages: tuple[Message, ...], block: Callable[[str], object]
) -> Literal["string", "block"] | None:
    """Find in which form a system prompt was sent; None if no reply says so."""
    forms = _digests(text, block)
    for message in reversed(messages):
        if type(message) is AssistantMessage and message.sent is not None:
            form = forms.get(message.sent.system)
            if form is not None:
                return form
    return None


def as_block(text: str) -> tuple[TextContent, ...]:
    """Return a system prompt that is written as a list."""
    return (TextContent(text=text),)
