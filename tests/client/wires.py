"""One short reply of each protocol: whole, streamed, and as an error. It is the sample `text` of its record.

Each replies `TEXT`, which has characters of two, three and four bytes, so that a split anywhere in the bytes is tested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from segue.models.model import Model
from segue.models.providers import PROVIDERS
from segue.protocols.kit.protocol import Protocol
from segue.protocols.registry import all_protocols
from segue.testing.frames import write_frame, write_stream
from servers.script import Reply

TEXT = "Grüße, wörld → 🌍!"


@dataclass(frozen=True)
class Wire:
    """What a server of one protocol sends; `frames` are the bytes of one event each."""

    protocol: str
    provider: str
    whole: Mapping[str, object]
    frames: Sequence[bytes]
    content_type: str
    error_frame: bytes
    """Something went wrong in the middle of a stream: the provider is overloaded."""

    def model(self, url: str, **fields: object) -> Model:
        return Model("a-model", self.provider, self.protocol, base_url=url, **fields)  # pyright: ignore[reportArgumentType]

    @property
    def body(self) -> bytes:
        return b"".join(self.frames)

    def stream(self, *, split: int = 0) -> Reply:
        """Stream the reply: an event at a time, or in pieces of `split` bytes."""
        if split:
            return Reply.stream(self.body, self.content_type, split=split)
        return Reply(headers={"content-type": self.content_type}, chunks=tuple(self.frames))

    def answer(self) -> Reply:
        return Reply.json(self.whole)


_CONTENT_TYPES = {
    "sse": "text/event-stream; charset=utf-8",
    "ndjson": "application/x-ndjson",
    "aws-event-stream": "application/vnd.amazon.eventstream",
}


def _wire(record: Protocol) -> Wire:
    sample = next(sample for sample in record.samples() if sample.name == "text")
    assert sample.response is not None
    assert sample.stream_error is not None
    return Wire(
        protocol=record.name,
        provider=record.provider,
        whole=sample.response,
        frames=tuple(write_stream(record.framing, sample)),
        content_type=_CONTENT_TYPES[record.framing],
        error_frame=write_frame(record.framing, sample.stream_error),
    )


WIRES: dict[str, Wire] = {
    record.name: _wire(record)
    for record in all_protocols()
    if record.provider in PROVIDERS and PROVIDERS[record.provider].base_url is not None
}
"""Every protocol whose provider has a server; the others are written and read by programs on this machine."""
