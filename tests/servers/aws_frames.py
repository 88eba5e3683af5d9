"""AWS event-stream messages, written: the tests' own other half of `segue.framing.aws_event_stream`.

Facts this file rests on:
- A message is its length, the length of its headers, a CRC-32 of the two, the headers, the payload, and a CRC-32 of
  everything before it; numbers are big-endian.                            (AWS: event stream encoding, read 2026-11-15)
- A header is its name's length in one byte, its name, its type (7: text), the value's length in two bytes, the value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from struct import pack
from zlib import crc32


def aws_message(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Write one message."""
    written = b"".join(_header(name, value) for name, value in headers.items())
    prelude = pack("!II", 12 + len(written) + len(payload) + 4, len(written))
    message = prelude + pack("!I", crc32(prelude)) + written + payload
    return message + pack("!I", crc32(message))


def aws_event(kind: str, payload: object) -> bytes:
    """Write an event, as a service sends it."""
    headers = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    return aws_message(headers, json.dumps(payload, ensure_ascii=False).encode())


def aws_exception(kind: str, message: str) -> bytes:
    """Write an exception, which ends a stream."""
    headers = {":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}
    return aws_message(headers, json.dumps({"message": message}).encode())


def _header(name: str, value: str) -> bytes:
    encoded, result = name.encode(), value.encode()
    return bytes([len(encoded)]) + encoded + b"\x07" + pack("!H", len(result)) + result
