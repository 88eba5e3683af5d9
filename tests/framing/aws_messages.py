"""Messages of an AWS event stream, written for tests."""

from __future__ import annotations

import json
from struct import pack
from typing import Any
from zlib import crc32


def header(name: str, value: Any, kind: int = 7) -> bytes:
    """Write a header; of text unless its type is given."""
    raw = name.encode()
    head = pack("!B", len(raw)) + raw + pack("!B", kind)
    match kind:
        case 0 | 1:
            return head
        case 2 | 3 | 4 | 5 | 8:
            return head + pack({2: "!b", 3: "!h", 4: "!i", 5: "!q", 8: "!q"}[kind], value)
        case 9:
            return head + value.bytes
        case _:
            data = value if isinstance(value, bytes) else value.encode()
            return head + pack("!H", len(data)) + data


def framed(headers: bytes, payload: bytes = b"") -> bytes:
    """Write one message around headers and payload."""
    prelude = pack("!II", 16 + len(headers) + len(payload), len(headers))
    before = prelude + pack("!I", crc32(prelude)) + headers + payload
    return before + pack("!I", crc32(before))


def event(name: str, payload: object = None) -> bytes:
    """Write an event the way Bedrock does."""
    heads = (
        header(":event-type", name),
        header(":content-type", "application/json"),
        header(":message-type", "event"),
    )
    return framed(b"".join(heads), b"" if payload is None else json.dumps(payload).encode())


def exception(name: str, payload: object) -> bytes:
    heads = header(":exception-type", name) + header(":message-type", "exception")
    return framed(heads, json.dumps(payload).encode())


def error(code: str, message: str) -> bytes:
    heads = header(":message-type", "error") + header(":error-code", code) + header(":error-message", message)
    return framed(heads)


def stream_of(frames: list[dict[str, Any]]) -> bytes:
    """Write frames `{event-type: payload}` as the bytes that would have brought them."""
    messages: list[bytes] = []
    for frame in frames:
        ((name, payload),) = frame.items()
        messages.append(exception(name, payload) if name.endswith("Exception") else event(name, payload))
    return b"".join(messages)
