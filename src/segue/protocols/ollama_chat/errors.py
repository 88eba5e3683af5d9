"""Error bodies of Ollama: `{"error": "..."}`, with an HTTP status before a stream begins, as a line within a stream.

Facts this file relies on:
- The error is a text, without code and type.                            (ollama server source @fb30760, 2026-11-15)
- Gateways in front of it respond in OpenAI's format, with a text, or with an HTML page.             (litellm #6808)
"""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.codec import ErrorReply, Fault, WireError
from segue.protocols.kit.error_bodies import describe_error, find_error_object
from segue.protocols.kit.error_writing import STATUSES, error_headers, error_message, find_status
from segue.protocols.kit.reading import parse_body, text_of


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error body, parsed or not, or the error line of a stream."""
    error = find_error_object(parse_body(body), status)
    if isinstance(error, WireError):
        return error
    return describe_error(error, status, text_of(error.get("message")) or text_of(error.get("detail")) or "")


# ollama server source @fb30760: routes.go; it has the common statuses, no types and no codes; read 2026-11-15
_OVERFLOW: Final = "the request ({used} tokens) exceeds the available context size ({limit} tokens)"
_UNKNOWN_OVERFLOW: Final = "the request exceeds the available context size"


def encode_error(fault: Fault) -> ErrorReply:
    """Write an error body; it is the error line of a stream, too."""
    status = find_status(STATUSES, fault)
    message = error_message(fault, _OVERFLOW, _UNKNOWN_OVERFLOW)
    return ErrorReply(status, error_headers(fault, status), {"error": message})
