"""Encode the frames of a stream as bytes, and split bytes into frames, for tests of any protocol.

Facts:
- An AWS message is a prelude with two lengths and their CRC-32, headers, a payload and a CRC-32 of all these bytes.
                                                   (AWS: event stream encoding; botocore 1.44.0, read 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from struct import pack
from zlib import crc32

import msgspec

from segue.framing.aws_event_stream import AwsEventStreamDecoder
from segue.framing.ndjson import NdjsonDecoder
from segue.framing.sse import SseDecoder
from segue.protocols.kit.protocol import Framing, Sample
from segue.protocols.kit.streaming import Frame


def write_frame(framing: Framing, frame: Mapping[str, object]) -> bytes:
    """Write one frame as the bytes that a provider sends; an AWS frame is `{event type: payload}`."""
    match framing:
        case "sse":
            kind = frame.get("type")
            name = f"event: {kind}\n".encode() if isinstance(kind, str) else b""
            return name + b"data: " + msgspec.json.encode(frame) + b"\n\n"
        case "aws-event-stream":
            ((kind, payload),) = frame.items()
            is_exception = kind.endswith("Exception")
            headers = {
                ":exception-type" if is_exception else ":event-type": kind,
                ":content-type": "application/json",
                ":message-type": "exception" if is_exception else "event",
            }
            return _write_aws_message(headers, msgspec.json.encode(payload))
        case "ndjson" | "none":
            return msgspec.json.encode(frame) + b"\n"


def write_stream(framing: Framing, sample: Sample) -> list[bytes]:
    """Write each frame of a sample's stream as bytes, including its end mark."""
    frames = [write_frame(framing, frame) for frame in sample.stream or ()]
    return frames if sample.stream_end is None else [*frames, f"data: {sample.stream_end}\n\n".encode()]


def _write_aws_message(headers: Mapping[str, str], payload: bytes) -> bytes:
    head = b"".join(
        pack("!B", len(name)) + name.encode() + b"\x07" + pack("!H", len(value)) + value.encode()
        for name, value in headers.items()
    )
    prelude = pack("!II", 16 + len(head) + len(payload), len(head))
    before = prelude + pack("!I", crc32(prelude)) + head + payload
    return before + pack("!I", crc32(before))


def split_stream(framing: Framing, stream: bytes, size: int) -> list[Frame]:
    """Decode the bytes of a stream into frames, fed in chunks of `size` bytes."""
    pieces = (stream[at : at + size] for at in range(0, len(stream), size))
    match framing:
        case "sse":
            sse = SseDecoder()
            return [event.data for piece in pieces for event in sse.feed(piece)] + _data(sse.finish())
        case "aws-event-stream":
            aws = AwsEventStreamDecoder()
            return [event.data for piece in pieces for event in aws.feed(piece)] + _data(aws.finish())
        case "ndjson" | "none":
            lines = NdjsonDecoder()
            return [*(line for piece in pieces for line in lines.feed(piece)), *lines.finish()]


def _data(events: Iterable[object]) -> list[Frame]:
    return [getattr(event, "data") for event in events]  # noqa: B009 - the events of two framings
