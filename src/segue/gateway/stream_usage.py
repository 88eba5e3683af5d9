"""Usage in streams that pass straight through: the provider is asked for it, and the client does not see that.

A stream of OpenAI's Chat protocol has its usage only if `stream_options.include_usage` asks for it. Without it, what a
reply cost could only be guessed from its text, and hidden reasoning is not in the text.

Facts:
- With the option, one more chunk is sent before `[DONE]`, with `usage` and an empty list of `choices`; all other chunks
  have `usage: null`.                                              (openai 3.49.0: ChatCompletionStreamOptionsParam)
- In the text of a JSON string a quotation mark is escaped: `,"usage":null` occurs outside of strings only.  (RFC 8259)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, cast

import msgspec

from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import object_of
from segue.protocols.registry import get_protocol

_END: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_NULL: Final = re.compile(rb',\s*"usage"\s*:\s*null')
_DECODE: Final = msgspec.json.Decoder(dict[str, object]).decode


def ask_for_usage(body: Mapping[str, object], endpoint: Endpoint) -> dict[str, object] | None:
    """Return a body that asks for usage; None if it does already, or if the endpoint does not need or know that."""
    option = get_protocol(endpoint.model.protocol).usage_option
    if option is None or not endpoint.dialect.usage_in_stream or body.get("stream") is not True:
        return None
    name, key = option
    given = object_of(body.get(name))
    if given.get(key) is True:
        return None
    return {**body, name: {**given, key: True}}


class UsageFilter:
    """Takes the usage out of the bytes of a stream of server-sent events."""

    def __init__(self) -> None:
        self._rest = b""

    def take_rest(self) -> bytes:
        """Take the beginning of an event: it comes again."""
        rest, self._rest = self._rest, b""
        return rest

    def feed(self, data: bytes, *, is_last: bool = False) -> bytes:
        """Return the bytes of the events that are complete; with the last ones, the rest as well."""
        pending = self._rest + data
        written: list[bytes] = []
        at = 0
        for found in _END.finditer(pending):
            if found.end() == len(pending) and pending.endswith(b"\r") and not is_last:
                break  # half of a line end
            written.append(_without_usage(pending[at : found.end()]))
            at = found.end()
        self._rest = pending[at:]
        if is_last:
            written.append(_without_usage(self._rest))
            self._rest = b""
        return b"".join(written)


def _without_usage(event: bytes) -> bytes:
    if b'"usage"' not in event:
        return event
    shorter = _NULL.sub(b"", event)
    return b"" if b'"usage"' in shorter and _is_extra(shorter) else shorter


def _is_extra(event: bytes) -> bool:
    """Whether an event is the chunk that has the usage and nothing else."""
    lines = [line[5:].strip() for line in event.splitlines() if line.startswith(b"data:")]
    try:
        chunk = _DECODE(b"\n".join(lines))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    choices = chunk.get("choices")
    return isinstance(chunk.get("usage"), dict) and not cast("list[object] | None", choices)
