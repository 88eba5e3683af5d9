"""Error bodies of OpenAI's Responses API, and error events of its streams.

Facts this file rests on:
- An error body is `{"error": {"message", "type", "param", "code"}}`.        (openai 3.49.0; recorded traffic, 2026-11)
- In a stream it is an event `{"type": "error", "code", "message", "param"}`, or `response.failed` with the `error` of
  the reply.                                                                   (openai 3.49.0: ResponseErrorEvent)
- Vendors send a bare text, `detail`, or `error` as a string.                   (vLLM, llama.cpp: recorded error bodies)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from segue.protocols.kit.codec import ErrorReply, Fault, WireError
from segue.protocols.kit.json_values import Wire, object_of
from segue.protocols.kit.openai_errors import write_error
from segue.protocols.kit.reading import text_of


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error body; a text is the message."""
    if isinstance(body, str):
        return WireError(status=status, message=body)
    if not isinstance(body, Mapping):
        return WireError(status=status)
    whole = cast("Mapping[str, object]", body)
    inner = whole.get("error")
    if inner is None and isinstance(whole.get("response"), Mapping):
        inner = cast("Mapping[str, object]", whole["response"]).get("error")
    if isinstance(inner, str):
        return WireError(status=status, code=_code(whole.get("code")), message=inner)
    error = cast("Mapping[str, object]", inner) if isinstance(inner, Mapping) else whole
    message = text_of(error.get("message")) or text_of(error.get("detail")) or ""
    kind = text_of(error.get("type"))
    return WireError(
        status=status,
        code=_code(error.get("code")),
        # `type` of an event is the type of the event, not of the error.
        type=None if error is whole and kind == "error" else kind,
        message=message,
    )


def _code(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    return str(value)


_STREAM_CODES: Final[Mapping[str, str]] = {
    # openai 3.49.0: ResponseError.code; codex 0.166.0 stops on context_length_exceeded, insufficient_quota and
    # invalid_prompt, and retries on others (run against a probe, 2026-11)
    "invalid_history": "invalid_prompt",
    "invalid_request": "invalid_prompt",
}


def encode_error(fault: Fault) -> ErrorReply:
    """Write an error body."""
    return write_error(fault)


def stream_error(fault: Fault) -> Wire:
    """Write the `error` of a reply that failed while it was streamed."""
    error = object_of(write_error(fault).body["error"])
    message, kind = str(error["message"]), str(fault.kind)
    if kind == "rate_limit" and fault.retry_after is not None:
        message = f"{message} Please try again in {fault.retry_after:g}s."  # codex reads the time from the text
    return {"code": error.get("code") or _STREAM_CODES.get(kind, "server_error"), "message": message}
