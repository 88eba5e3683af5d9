"""A reply of the VS Code language model API, both ways.

Facts this file rests on:
- A response is a stream of parts; there is no usage, no id, no reason to stop.   (@types/vscode 1.140.0, 2026-11-15)
- An error has a code: NoPermissions, Blocked, NotFound, or Unknown with a cause.                          (the same)

In our JSON a whole reply is the message it becomes in the history, `{"role": "assistant", "content": [parts]}`; a
failure is `{"error": {"code", "message"}}`. What stands beside it is kept under `reply`, where no request
looks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import AssistantContent
from segue.conversation.messages import AssistantMessage, StopReason
from segue.models.origin import new_assistant_message
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import of_reply, reply_extra
from segue.protocols.vscode_lm.content import Wire, encode_assistant_parts
from segue.protocols.vscode_lm.errors import decode_error
from segue.protocols.vscode_lm.rules import PROTOCOL
from segue.protocols.vscode_lm.turns import TURN_KEYS, decode_assistant_content

_ORIGINAL: Final = "spelt"


def decode_response(body: Mapping[str, object], endpoint: Endpoint, tool_names: Mapping[str, str]) -> AssistantMessage:
    """Read a whole reply; one that is an error is a message that failed.

    Raises:
        DecodeError: there is neither an error nor content that is a text or a list of parts.
    """
    if "error" in body and "content" not in body:
        return replace(
            new_assistant_message(endpoint.model),
            protocol=PROTOCOL,
            stop_reason=StopReason.ERROR,
            error_message=error_text(body),
            extra=of_reply(PROTOCOL, {"error": dict(body)}),
        )
    pieces, verbatim = decode_assistant_content(body, tool_names, ())
    given: Wire = {key: value for key, value in body.items() if key not in TURN_KEYS}
    original: Wire = dict(verbatim or {})
    if body.get("role") != "assistant":
        original["role"] = {"said": body["role"]} if "role" in body else {}
    if original:
        given[_ORIGINAL] = original
    return finish_response(pieces, given, endpoint)


def finish_response(pieces: tuple[AssistantContent, ...], given: Wire, endpoint: Endpoint) -> AssistantMessage:
    """Make a message of its parts and of what was said beside them."""
    return replace(
        new_assistant_message(endpoint.model, content=pieces),
        protocol=PROTOCOL,
        stop_reason=stop_reason_of(piece.kind for piece in pieces),
        extra=of_reply(PROTOCOL, given) if given else None,
    )


def stop_reason_of(kinds: Iterable[str]) -> StopReason:
    """Say why a reply ended: with calls in it, it waits for their results."""
    return StopReason.TOOL_USE if "toolCall" in kinds else StopReason.STOP


def error_text(body: Mapping[str, object]) -> str:
    """Say what an error reports."""
    error = decode_error(body, None)
    return ": ".join(literal for literal in (error.code, error.message) if literal) or "the editor reported an error"


def encode_response(message: AssistantMessage, endpoint: Endpoint) -> dict[str, object]:  # noqa: ARG001 - the contract of every codec
    """Write a whole reply; what `decode_response` read comes out as it was.

    Raises:
        EncodeError: something in it has no word here.
    """
    given = reply_extra(message.extra, PROTOCOL) or {}
    error = given.get("error")
    if isinstance(error, Mapping) and not message.content:
        return dict(cast("Mapping[str, object]", error))
    parts = encode_assistant_parts(message.content, ("content",))
    wire: Wire = {"role": "assistant", "content": parts}
    found = given.get(_ORIGINAL)
    original: Mapping[str, object] = cast("Mapping[str, object]", found) if isinstance(found, Mapping) else {}
    if original.get("content") == "string" and len(parts) == 1 and parts[0].keys() == {"$", "value"}:
        wire["content"] = parts[0]["value"]
    if "role" in original:
        role = cast("Mapping[str, object]", original["role"])
        wire.pop("role")
        wire.update({"role": role["said"]} if "said" in role else {})
    if isinstance(error, Mapping):
        wire.update(cast("Mapping[str, object]", error))
    wire.update((key, value) for key, value in given.items() if key not in (_ORIGINAL, "error"))
    return wire
