"""A reply in plain text, both ways: `{"role": "assistant", "content": "..."}`, as the turn stands in the history.

The form is ours, and it is complete: there is no reason to stop, no usage, no id. A failure is `{"error": "..."}`. What
a program says beside it stands under `reply`, where no request looks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from segue.conversation.content import AssistantContent
from segue.conversation.messages import AssistantMessage, StopReason
from segue.models.origin import new_assistant_message
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import VERBATIM, of_reply, reply_extra
from segue.protocols.plain_text.content import decode_text_content, encode_turn
from segue.protocols.plain_text.errors import decode_error
from segue.protocols.plain_text.rules import PROTOCOL

_ROLE: Final = "assistant"
_NO_ROLE: Final = {"role": "absent"}


def decode_response(body: Mapping[str, object], endpoint: Endpoint, tool_names: Mapping[str, str]) -> AssistantMessage:  # noqa: ARG001 - the contract of every codec
    """Read a whole reply; one that is an error is a message that failed.

    Raises:
        DecodeError: there is neither an error nor a content that is a string.
    """
    if "error" in body and "content" not in body:
        message = replace(finish_response({}, (), endpoint), extra=of_reply(PROTOCOL, dict(body)))
        return replace(message, stop_reason=StopReason.ERROR, error_message=decode_error(body, None).message)
    return finish_response(body, decode_text_content(body, ()), endpoint)


def finish_response(
    body: Mapping[str, object], texts: tuple[AssistantContent, ...], endpoint: Endpoint
) -> AssistantMessage:
    """Make a message of its words and of what was said beside them."""
    given = {key: value for key, value in body.items() if key != "content" and (key, value) != ("role", _ROLE)}
    if body and "role" not in body:
        given[VERBATIM] = _NO_ROLE
    message = replace(new_assistant_message(endpoint.model, content=texts), protocol=PROTOCOL)
    return replace(message, extra=of_reply(PROTOCOL, given)) if given else message


def encode_response(message: AssistantMessage, endpoint: Endpoint) -> dict[str, object]:  # noqa: ARG001 - the same
    """Write a whole reply; what `decode_response` read comes out as it was.

    Raises:
        EncodeError: it says more than words.
    """
    given = reply_extra(message.extra, PROTOCOL) or {}
    if message.stop_reason == StopReason.ERROR and not message.content:
        return dict(given) if "error" in given else {"error": message.error_message or ""}
    turn = encode_turn(_ROLE, message.content, None, ("content",))
    if given.get(VERBATIM) == _NO_ROLE:
        del turn["role"]
    return {**turn, **{key: value for key, value in given.items() if key != VERBATIM}}
