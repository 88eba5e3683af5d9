"""Whole exchanges, written for tests, of wires that stream lines of JSON: a request, a reply, the reply streamed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from segue.conversation.messages import AssistantMessage
from segue.framing.ndjson import NdjsonDecoder
from segue.protocols.codec import Codec, Endpoint

FIXTURES = Path(__file__).parent / "fixtures"


class Exchanges:
    """The cases of one protocol, read with its codec."""

    def __init__(self, codec: Codec, endpoint: Endpoint) -> None:
        self.codec = codec
        self.endpoint = endpoint
        self.folder = FIXTURES / codec.name
        self.names = sorted(path.name for path in self.folder.iterdir())
        self.requests = [name for name in self.names if (self.folder / name / "request.json").exists()]

    def part(self, case: str, name: str) -> Any:
        return json.loads((self.folder / case / f"{name}.json").read_text("utf-8"))

    def expected(self, case: str) -> AssistantMessage:
        return msgspec.convert(self.part(case, "expected"), AssistantMessage)

    def lines(self, case: str) -> bytes:
        return b"".join(json.dumps(frame).encode() + b"\n" for frame in self.part(case, "stream"))

    def decoded(self, frames: list[Any]) -> tuple[list[Any], AssistantMessage]:
        """Feed a stream, frame by frame; give its events and its message."""
        decoder = self.codec.stream_decoder(self.endpoint, {})
        events = [event for frame in frames for event in decoder.feed(frame)]
        return events + decoder.finish(), decoder.message

    # -- what holds for every case ---------------------------------------------------------------------------------

    def assert_request_comes_back(self, case: str) -> None:
        body = self.part(case, "request")
        assert self.codec.encode_request(self.codec.decode_request(body, self.endpoint), self.endpoint) == body

    def assert_reply_is_read_and_written_back(self, case: str) -> None:
        body = self.part(case, "response")
        message = self.codec.decode_response(body, self.endpoint, {})
        assert message == self.expected(case)
        assert self.codec.encode_response(message, self.endpoint) == body

    def assert_folded_stream_equals_the_whole_reply(self, case: str) -> None:
        events, message = self.decoded(self.part(case, "stream"))
        assert message == self.expected(case)
        kinds = [event.type for event in events]
        assert kinds[0] == "start"
        assert kinds.count("done") + kinds.count("error") == 1
        assert events[-1].message == message

    def assert_any_cut_gives_the_same_events(self, case: str) -> None:
        events, _ = self.decoded(self.part(case, "stream"))
        stream = self.lines(case)
        for size in (1, 7, 64, len(stream)):
            splitter = NdjsonDecoder()
            lines = [line for at in range(0, len(stream), size) for line in splitter.feed(stream[at : at + size])]
            assert self.decoded(lines + splitter.finish())[0] == events
