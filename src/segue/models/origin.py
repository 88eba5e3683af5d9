"""Who wrote a message: stamped on it when it begins, so that anyone can tell later whose signatures it carries."""

from __future__ import annotations

from segue.conversation.content import AssistantContent
from segue.conversation.messages import AssistantMessage
from segue.models.catalogue import get_model
from segue.models.model import Model


def new_assistant_message(
    model: Model | str, *, content: tuple[AssistantContent, ...] = (), timestamp: int | None = None
) -> AssistantMessage:
    """Begin an assistant message that carries the model's protocol, provider and id as its origin.

    Raises:
        UnknownModel: `model` is a name that the catalogue does not have.
    """
    origin = get_model(model)
    return AssistantMessage(
        content=content, protocol=origin.protocol, provider=origin.provider, model=origin.id, timestamp=timestamp
    )
