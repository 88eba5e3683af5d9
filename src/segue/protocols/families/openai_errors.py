"""Error bodies in OpenAI's format, which its two protocols share: rows for each kind of failure, writer and reader.

Facts:
- `{"error": {message, type, param, code}}` and the statuses.    (OpenAI documentation: error codes; recorded bodies)
- codex stops on `server_is_overloaded` and retries `server_error`: what may pass is a `server_error`.
                                                                               (codex 0.166.0 against a probe, 2026-11)
- Vendors send the error as a bare string, put message and code at the top level, wrap it in a list, name it `errors`
  or `detail` (FastAPI), and use the HTTP status as the code.  (error messages collected 2026-11; recorded traffic)
- A gateway's own message is generic; its provider's message is in `metadata.raw`.          (OpenRouter documentation)
- In a stream of Responses it is an event `{"type": "error", "code", "message", "param"}`, or `response.failed` with the
  `error` of the reply.                                                        (openai 3.49.0: ResponseErrorEvent)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, cast

from segue.protocols.kit.codec import ErrorReply, Fault, WireError
from segue.protocols.kit.error_writing import ErrorRow, error_headers, error_message, find_row
from segue.protocols.kit.json_values import Block, Wire, object_of

ROWS: Final[Mapping[str, ErrorRow]] = {
    # OpenAI documentation: error codes; recorded error bodies; read 2026-11-15
    "overflow": ErrorRow(400, "invalid_request_error", "context_length_exceeded"),
    "payload_too_large": ErrorRow(413, "invalid_request_error", "request_too_large"),
    "rate_limit": ErrorRow(429, "requests", "rate_limit_exceeded"),
    "quota": ErrorRow(429, "insufficient_quota", "insufficient_quota"),
    "quota 402": ErrorRow(402, "insufficient_quota", "insufficient_quota"),
    "auth": ErrorRow(401, "invalid_request_error", "invalid_api_key"),
    "auth 403": ErrorRow(403, "invalid_request_error"),
    "auth 400": ErrorRow(400, "invalid_request_error"),
    "auth 502": ErrorRow(502, "server_error"),
    "opaque_rejected": ErrorRow(400, "invalid_request_error", "invalid_encrypted_content"),
    "invalid_history": ErrorRow(400, "invalid_request_error"),
    "invalid_request": ErrorRow(400, "invalid_request_error"),
    "not_found": ErrorRow(404, "invalid_request_error", "model_not_found"),
    "overloaded": ErrorRow(503, "server_error"),
    "server": ErrorRow(500, "server_error"),
    "network": ErrorRow(502, "server_error"),
    "refused": ErrorRow(400, "invalid_request_error", "content_policy_violation"),
}
_OVERFLOW: Final = (
    "This model's maximum context length is {limit} tokens. However, your messages resulted in {used} tokens. "
    "Please reduce the length of the messages."
)
_UNKNOWN_OVERFLOW: Final = "Your input exceeds the context window of this model. Please adjust your input."


def write_error(fault: Fault) -> ErrorReply:
    """Write an error body."""
    row = find_row(ROWS, fault)
    message = error_message(fault, _OVERFLOW, _UNKNOWN_OVERFLOW)
    error: Wire = {"message": message, "type": row.type, "param": None, "code": row.code}
    return ErrorReply(row.status, error_headers(fault, row.status), {"error": error})


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error in any format; in an unknown format the message is the JSON of the body.

    An event of a stream may be the error, or have it in its `response`.
    """
    if isinstance(body, (bytes, bytearray)):
        body = bytes(body).decode("utf-8", "replace")
    if isinstance(body, str):
        return _from_text(body, status)
    if isinstance(body, list) and body:
        return decode_error(cast("list[object]", body)[0], status)
    if not isinstance(body, Mapping):
        return WireError(status=status, message="" if body is None else _rendered(cast("object", body)))
    whole = cast("Block", body)
    if whole.get("error") is None and isinstance(whole.get("response"), Mapping):
        whole = object_of(whole["response"])
    for key in ("error", "errors", "detail"):
        inner = whole.get(key)
        if isinstance(inner, list) and inner:
            inner = cast("list[object]", inner)[0]
        if isinstance(inner, Mapping):
            return _from_object(cast("Block", inner), whole, status)
        if isinstance(inner, str):
            return _from_object({"message": inner}, whole, status)
    return _from_object(whole, {}, status)


def _from_text(text: str, status: int | None) -> WireError:
    if text.lstrip().startswith(("{", "[")):
        try:
            return decode_error(cast("object", json.loads(text)), status)
        except (ValueError, RecursionError):
            pass
    return WireError(status=status, message=text)


def _from_object(error: Block, around: Block, status: int | None) -> WireError:
    code = _text(error.get("code")) or _text(around.get("code"))
    kind = _text(error.get("type")) or _text(around.get("error_type"))
    if kind == "error" and not around:
        kind = None  # the type of the event, not of the error
    message = _text(error.get("message")) or _text(error.get("msg")) or _text(error.get("detail"))
    raw = _raw(error.get("metadata"))
    if message and raw and raw not in message:
        message = f"{message}: {raw}"
    if status is None:
        status = _status(error.get("status_code")) or _status(error.get("code")) or _status(around.get("code"))
    return WireError(status=status, code=code, type=kind, message=message or raw or _rendered(error))


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return value or None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _raw(metadata: object) -> str | None:
    raw = object_of(metadata).get("raw")
    return raw if isinstance(raw, str) else _rendered(raw) if raw is not None else None


def _rendered(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str) if value else ""


def _status(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600 else None
