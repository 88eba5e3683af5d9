"""A reply in plain text, both ways: `{"role": "assistant", "content": "..."}`, as the turn is in the history.

The format is segue's own. It has no stop reason, no usage and no id. A failure is `{"error": "..."}`. The difference
between the default format of a reply and the received body is in the message's `extra` under `reply`. Only
`encode_response` reads it; a request never contains it.

Errors of the plain-text protocol: `{"error": "..."}`, or the bare text. segue defines this format.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from msgspec.structs import replace

from segue.conversation.content import AssistantContent
from segue.conversation.messages import AssistantMessage, StopReason
from segue.models.origin import new_assistant_message
from segue.protocols.kit.codec import Endpoint, WireError
from segue.protocols.kit.error_bodies import describe_error
from segue.protocols.kit.json_values import Block, Wire
from segue.protocols.kit.reading import parse_body, text_of
from segue.protocols.kit.replies import keep_reply, restore_reply
from segue.protocols.plain_text.content import decode_text_content, encode_turn
from segue.protocols.plain_text.rules import PROTOCOL


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error body, parsed or not."""
    body = parse_body(body)
    if not isinstance(body, Mapping):
        return WireError(status=status, message=text_of(body) or "")
    given = cast("Mapping[str, object]", body).get("error")
    if isinstance(given, Mapping):
        error = cast("Mapping[str, object]", given)
        return describe_error(error, status, text_of(error.get("message")) or "")
    return WireError(status=status, message=text_of(given) or "")


def decode_response(body: Block, endpoint: Endpoint, tool_names: Mapping[str, str]) -> AssistantMessage:  # noqa: ARG001 - the contract of every codec
    """Read a whole reply; an error body becomes a failed message.

    Raises:
        DecodeError: it has neither an error nor a content that is a string.
    """
    if "error" in body and "content" not in body:
        return finish_response(body, (), endpoint, error=decode_error(body, None).message)
    return finish_response(body, decode_text_content(body, ()), endpoint)


def finish_response(
    body: Block, texts: tuple[AssistantContent, ...], endpoint: Endpoint, *, error: str | None = None
) -> AssistantMessage:
    """Make a message of its text and of the whole body, which a stream puts together from its lines."""
    message = replace(
        new_assistant_message(endpoint.model, content=texts),
        protocol=PROTOCOL,
        stop_reason=StopReason.STOP if error is None else StopReason.ERROR,
        error_message=error,
    )
    return replace(message, extra=keep_reply(PROTOCOL, _default_response(message), body))


def encode_response(message: AssistantMessage, endpoint: Endpoint) -> Wire:  # noqa: ARG001 - the contract of every codec
    """Write a whole reply; what `decode_response` read is written as it was received.

    Raises:
        EncodeError: it has more than text.
    """
    return restore_reply(PROTOCOL, _default_response(message), message.extra)


def _default_response(message: AssistantMessage) -> Wire:
    if message.stop_reason == StopReason.ERROR and not message.content:
        return {"error": message.error_message or ""}
    return encode_turn("assistant", message.content, None, ("content",))
