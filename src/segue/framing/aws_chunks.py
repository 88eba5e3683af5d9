"""Decode JSON events in the chunks of an AWS event stream, as Bedrock's InvokeModelWithResponseStream sends them.

Facts:
- A message of the type `chunk` has the payload `{"bytes": base64 of the event}`; `p` next to it is padding.
                                                     (botocore 1.44.0: PayloadPart; anthropic 2.8.0: lib/bedrock)
- A failure is an exception message: `throttlingException`, `serviceUnavailableException`, `internalServerException`,
  `modelStreamErrorException`, `modelTimeoutException`, `validationException`, each with a `message`.
                                                               (botocore 1.44.0: ResponseStream; read 2026-11-17)
- Clients of Anthropic read it as the event `{"type": "error", "error": {"type", "message"}}`.       (anthropic 2.8.0)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, cast

import msgspec

from segue.errors import DecodeError
from segue.foundation.json_text import encode_json
from segue.framing.aws_event_stream import AwsEvent, AwsEventStreamDecoder

_CHUNK: Final = "chunk"
_TYPES: Final[Mapping[str, str]] = {
    "throttlingException": "rate_limit_error",
    "serviceUnavailableException": "overloaded_error",
    "modelTimeoutException": "timeout_error",
    "validationException": "invalid_request_error",
    "internalServerException": "api_error",
    "modelStreamErrorException": "api_error",
}
"""The exceptions of a stream, and the type of the same error in a stream of the Messages protocol."""


class _Payload(msgspec.Struct):
    data: bytes = msgspec.field(name="bytes")


_READ_PAYLOAD: Final = msgspec.json.Decoder(_Payload).decode


class AwsChunksDecoder:
    """Decodes a stream of chunks into the JSON texts in them; feed it bytes as they arrive, then call `finish`."""

    __slots__ = ("_messages",)

    def __init__(self) -> None:
        self._messages = AwsEventStreamDecoder()

    def feed(self, chunk: bytes) -> list[bytes]:
        """Decode the next chunk of bytes.

        Raises:
            DecodeError: a message is damaged, or a chunk has no bytes.
        """
        return [_read(event) for event in self._messages.feed(chunk)]

    def finish(self) -> list[bytes]:
        """End the stream.

        Raises:
            DecodeError: a message after the last returned one was damaged.
        """
        return [_read(event) for event in self._messages.finish()]


def _read(event: AwsEvent) -> bytes:
    if event.event == _CHUNK:
        try:
            return _READ_PAYLOAD(event.payload).data
        except (msgspec.DecodeError, RecursionError) as error:
            raise DecodeError(f"event stream: a chunk cannot be read: {error}") from error
    try:
        given: object = json.loads(event.data[1])
    except (ValueError, RecursionError):
        given = None
    body = cast("dict[str, object]", given) if isinstance(given, dict) else {}
    message = str(body.get("message") or body.get("originalMessage") or event.event)
    kind = _TYPES.get(event.event, event.event)
    return encode_json({"type": "error", "error": {"type": kind, "message": message}})
