"""The origin of an assistant message: protocol, provider and model, set when the message is created.

Projection uses it later to decide whether the signatures of the message are valid for a target.
"""

from __future__ import annotations

from segue.conversation.content import AssistantContent
from segue.conversation.messages import AssistantMessage
from segue.models.catalogue import get_model
from segue.models.model import Model


def new_assistant_message(
    model: Model | str, *, content: tuple[AssistantContent, ...] = (), timestamp: int | None = None
) -> AssistantMessage:
    """Create an assistant message with the model's protocol, provider and id as its origin.

    Raises:
        UnknownModel: `model` is a name that the catalogue does not have.
    """
    origin = model if isinstance(model, Model) else get_model(model)
    return AssistantMessage(
        content=content, protocol=origin.protocol, provider=origin.provider, model=origin.id, timestamp=timestamp
    )
