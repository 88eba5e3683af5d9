"""A reply of the VS Code language model API, both ways.

Facts this file relies on:
- A response is a stream of parts; it has no usage, no id, no stop reason.        (@types/vscode 1.140.0, 2026-11-15)
- An error has a code: NoPermissions, Blocked, NotFound, or Unknown with a cause.                          (the same)

In segue's JSON a whole reply is the message it becomes in the history, `{"role": "assistant", "content": [parts]}`; a
failure is `{"error": {"code", "message"}}`. The difference between the default format of a reply and the received body
stands in the message's `extra` under `reply`. Only `encode_response` reads it; a request never contains it.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from segue.conversation.content import AssistantContent
from segue.conversation.messages import AssistantMessage, StopReason
from segue.models.origin import new_assistant_message
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Block, Wire
from segue.protocols.kit.replies import keep_reply, rename_calls, restore_reply
from segue.protocols.vscode_lm.content import encode_parts
from segue.protocols.vscode_lm.errors import decode_error
from segue.protocols.vscode_lm.rules import PROTOCOL
from segue.protocols.vscode_lm.turns import decode_assistant_content


def decode_response(body: Block, endpoint: Endpoint, tool_names: Mapping[str, str]) -> AssistantMessage:
    """Read a whole reply; an error body becomes a failed message.

    Raises:
        DecodeError: it has neither an error nor content that is a string or a list of parts.
    """
    if "error" in body and "content" not in body:
        return finish_response(body, (), endpoint, error=error_text(body))
    message = finish_response(body, decode_assistant_content(body, (), reply=True), endpoint)
    return replace(message, content=rename_calls(message.content, tool_names)) if tool_names else message


def finish_response(
    body: Block, pieces: tuple[AssistantContent, ...], endpoint: Endpoint, *, error: str | None = None
) -> AssistantMessage:
    """Make a message of its content and of the whole body, which a stream puts together from its lines.

    A reply with calls waits for their results.
    """
    has_calls = any(piece.kind == "toolCall" for piece in pieces)
    stop = StopReason.TOOL_USE if has_calls else StopReason.STOP
    message = replace(
        new_assistant_message(endpoint.model, content=pieces),
        protocol=PROTOCOL,
        stop_reason=stop if error is None else StopReason.ERROR,
        error_message=error,
    )
    return replace(message, extra=keep_reply(PROTOCOL, _default_response(message), body))


def error_text(body: Block) -> str:
    """Give the code and the message of an error."""
    error = decode_error(body, None)
    return ": ".join(part for part in (error.code, error.message) if part) or "the editor reported an error"


def encode_response(message: AssistantMessage, endpoint: Endpoint) -> Wire:  # noqa: ARG001 - the contract of every codec
    """Write a whole reply; what `decode_response` read is written as it was received.

    Raises:
        EncodeError: the API does not support its content.
    """
    return restore_reply(PROTOCOL, _default_response(message), message.extra)


def _default_response(message: AssistantMessage) -> Wire:
    return {"role": "assistant", "content": encode_parts(message.content, ("content",))}
