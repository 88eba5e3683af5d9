"""What functions that send a request accept as a conversation: a `Context`, a text, or messages of OpenAI chat.

Most programs have their messages in the form of OpenAI chat already, and a first request is often one text. Functions
that only work with stored conversations, such as `project` and `dump`, take a `Context` alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from segue.conversation.context import Context
from segue.conversation.messages import UserMessage
from segue.errors import ConversationError
from segue.protocols.api import decode_request

ContextInput: TypeAlias = Context | str | Sequence[Mapping[str, Any]]
"""A conversation, the text of one user message, or a list of messages in the form of OpenAI chat."""

_FORM: Final = "openai-chat"
_ADVICE: Final = 'pass a Context, a text, or a list such as [{"role": "user", "content": "Hello"}]'


def read_input(given: ContextInput) -> Context:
    """Give the conversation that was passed; a `Context` is returned unchanged.

    Raises:
        ConversationError: the value is none of the three.
        DecodeError: the list is not one of OpenAI chat; `path` locates the problem.
    """
    if isinstance(given, Context):
        return given
    if isinstance(given, str):
        return Context(messages=(UserMessage.of(given),))
    if not isinstance(given, (list, tuple)):
        name = "None" if cast("object", given) is None else f"a value of type {type(given).__name__}"
        raise ConversationError(f"expected a conversation, got {name}; {_ADVICE}")
    messages = list(cast("Sequence[object]", given))
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping):
            kind = type(message).__name__
            raise ConversationError(
                f"expected a list of dicts in the form of OpenAI chat, got a value of type {kind} at index {index}; for"
                " messages of segue write Context(messages=(...,))"
            )
    return decode_request(cast("list[Any]", messages), protocol=_FORM).context
