"""A reply of the VS Code language model API, both ways.

In segue's JSON a whole reply is the message it becomes in the history, `{"role": "assistant", "content": [parts]}`; a
failure is `{"error": {"code", "message"}}`. The difference between the default format of a reply and the received body
is in the message's `extra` under `reply`. Only `encode_response` reads it; a request never contains it.

Errors of the VS Code language model API.

In segue's JSON: `{"error": {"code", "message", "cause"}}`, in a stream `{"$": "error", "code", "message", "cause"}`;
`cause` is a string.

Facts:
- A response is a stream of parts; it has no usage, no id, no stop reason.        (@types/vscode 1.140.0, 2026-11-15)
- An error has a code: NoPermissions, Blocked, NotFound, or Unknown with a cause.                          (the same)
- `LanguageModelError.code` is NoPermissions, Blocked (a quota), NotFound, or Unknown with the actual error in `cause`.
                                                                               (@types/vscode 1.140.0, read 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from segue.conversation.content import AssistantContent
from segue.conversation.messages import AssistantMessage, StopReason
from segue.models.origin import new_assistant_message
from segue.protocols.kit.codec import Endpoint, ErrorReply, Fault, WireError
from segue.protocols.kit.error_bodies import find_error_object
from segue.protocols.kit.error_writing import ErrorRow, error_headers, error_message, find_row
from segue.protocols.kit.json_values import Block, Wire
from segue.protocols.kit.reading import parse_body, text_of
from segue.protocols.kit.replies import keep_reply, rename_calls, restore_reply
from segue.protocols.vscode_lm.content import encode_parts
from segue.protocols.vscode_lm.rules import PROTOCOL
from segue.protocols.vscode_lm.turns import decode_assistant_content


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error, parsed or not, or the error line of a stream."""
    error = find_error_object(parse_body(body), status)
    if isinstance(error, WireError):
        return error
    texts = (text_of(error.get("message")), text_of(error.get("cause")))
    return WireError(
        status=status, code=text_of(error.get("code")), message=": ".join(value for value in texts if value)
    )


_ROWS: Final[Mapping[str, ErrorRow]] = {
    # @types/vscode 1.140.0: LanguageModelError; there is no HTTP, the statuses are those of other protocols
    "overflow": ErrorRow(400, "Unknown"),
    "payload_too_large": ErrorRow(413, "Unknown"),
    "rate_limit": ErrorRow(429, "Blocked"),
    "quota": ErrorRow(402, "Blocked"),
    "auth": ErrorRow(401, "NoPermissions"),
    "opaque_rejected": ErrorRow(400, "Unknown"),
    "invalid_history": ErrorRow(400, "Unknown"),
    "invalid_request": ErrorRow(400, "Unknown"),
    "not_found": ErrorRow(404, "NotFound"),
    "overloaded": ErrorRow(503, "Unknown"),
    "server": ErrorRow(500, "Unknown"),
    "network": ErrorRow(502, "Unknown"),
    "refused": ErrorRow(400, "Blocked"),
}
_OVERFLOW: Final = "Message exceeds token limit: prompt is too long: {used} tokens > {limit} maximum"
_UNKNOWN_OVERFLOW: Final = "Message exceeds token limit: the prompt is too long"


def encode_error(fault: Fault) -> ErrorReply:
    """Write an error in segue's JSON; in a stream its object is a line of the type `error`."""
    row = find_row(_ROWS, fault)
    error: dict[str, object] = {"code": row.type, "message": error_message(fault, _OVERFLOW, _UNKNOWN_OVERFLOW)}
    return ErrorReply(row.status, error_headers(fault, row.status), {"error": error})


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
    """Return the code and the message of an error."""
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
