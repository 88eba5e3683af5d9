"""Error bodies of OpenAI chat endpoints, and error objects in their streams.

Facts this file rests on:
- `{"error": {message, type, param, code}}`, in a stream the same object as a chunk.                 (openai 3.49.0)
- Vendors send the error as a bare string, put message and code at the top level, wrap it in a list, name it `errors`
  or `detail` (FastAPI), and use the HTTP status as the code.  (error messages collected 2026-11; recorded traffic)
- A gateway's own message is generic; its provider's message is in `metadata.raw`.          (OpenRouter documentation)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from segue.protocols.kit.codec import ErrorReply, Fault, WireError
from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.openai_errors import write_error


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error in any format; in an unknown format the message is the JSON of the body."""
    if isinstance(body, (bytes, bytearray)):
        body = bytes(body).decode("utf-8", "replace")
    if isinstance(body, str):
        return _from_text(body, status)
    if isinstance(body, list) and body:
        return decode_error(cast("list[object]", body)[0], status)
    if not isinstance(body, Mapping):
        return WireError(status=status, message="" if body is None else _rendered(cast("object", body)))
    whole = cast("Block", body)
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


def encode_error(fault: Fault) -> ErrorReply:
    """Write an error body; it is the error chunk of a stream, too."""
    return write_error(fault)
