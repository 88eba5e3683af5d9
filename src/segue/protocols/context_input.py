"""What functions that make a request accept as a conversation: a `Context`, a text, or a list of messages.

Most programs have their messages in the form of OpenAI chat already, and a first request is often one text. Functions
that only work with stored conversations, such as `Projector` and `dump`, take a `Context` alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from segue.conversation.context import Context
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from segue.errors import ConversationError
from segue.protocols.api import decode_request

ContextInput: TypeAlias = Context | str | Message | Sequence[Mapping[str, Any]] | Sequence[Message]
"""A conversation, the text of one user message, a message, or a list of messages: segue's, or those of OpenAI chat."""

_FORM: Final = "openai-chat"
_MESSAGES: Final = (UserMessage, AssistantMessage, ToolResultMessage)
_ROLES: Final = ("user", "assistant", "system", "developer", "tool", "function")
_PROMPT_ROLES: Final = frozenset({"system", "developer"})
_ADVICE: Final = 'pass a Context, a text, or a list such as [{"role": "user", "content": "Hello"}]'


def read_input(given: ContextInput) -> Context:
    """Return the conversation that was passed; a `Context` is returned unchanged.

    Raises:
        ConversationError: the value is none of these; `path` locates the problem in a list.
        DecodeError: the list is not one of OpenAI chat; `path` locates the problem.
    """
    if isinstance(given, Context):
        return given
    if isinstance(given, str):
        return Context(messages=(UserMessage.of(given),))
    if isinstance(given, _MESSAGES):
        return Context(messages=(given,))
    if not isinstance(given, (list, tuple)):
        name = "None" if cast("object", given) is None else f"a value of type {type(given).__name__}"
        raise ConversationError(f"expected a conversation, got {name}; {_ADVICE}")
    messages = list(cast("Sequence[object]", given))
    if messages and all(isinstance(message, _MESSAGES) for message in messages):
        return Context(messages=tuple(cast("list[Message]", messages)))
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping):
            raise ConversationError(
                f"expected a dict in the form of OpenAI chat, got a value of type {type(message).__name__}; write"
                ' {"role": "user", "content": ...}, or use only messages of segue',
                path=("messages", index),
            )
        _check_message(cast("Mapping[str, object]", message), index)
    return decode_request(cast("list[Any]", messages), protocol=_FORM).context


def leading_prompts(turns: object, context: Context) -> int:
    """Count the messages at the start of a given list that are not messages of the conversation but its system prompt.

    That is 0 for wires whose messages do not correspond one to one to those of a conversation.
    """
    if not isinstance(turns, (list, tuple)) or context.system_prompt is None:
        return 0
    count = len(cast("Sequence[object]", turns)) - len(context.messages)
    leading = cast("Sequence[object]", turns)[: max(count, 0)]
    roles = [cast("Mapping[str, object]", turn).get("role") for turn in leading if isinstance(turn, Mapping)]
    is_prompt = len(roles) == len(leading) and _PROMPT_ROLES.issuperset(map(str, roles))
    return count if count > 0 and is_prompt else 0


def _check_message(message: Mapping[str, object], index: int) -> None:
    """Refuse what a decoder of other people's requests accepts: a message that nobody would answer."""
    role = message.get("role")
    if role not in _ROLES:
        fault = "the message has no role" if role is None else f"there is no role {role!r}"
        raise ConversationError(f"{fault}; use one of {', '.join(_ROLES)}", path=("messages", index, "role"))
    if role == "user" and "content" not in message:
        raise ConversationError(
            'the message has no content; write {"role": "user", "content": "Hello"}', path=("messages", index)
        )
