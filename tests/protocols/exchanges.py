"""Whole exchanges written for tests, wire by wire: a request, a reply, the same reply streamed, and what it means."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from framing.aws_messages import stream_of
from protocols.anthropic_messages.endpoints import SONNET
from protocols.bedrock_converse.endpoints import SONNET as SONNET_AT_AMAZON
from protocols.cohere_chat.endpoints import REASONING
from protocols.google_genai.endpoints import NEWER
from protocols.mistral_chat.endpoints import MEDIUM
from protocols.ollama_chat.endpoints import QWEN
from protocols.plain_text.endpoints import ANYTHING
from protocols.vscode_lm.endpoints import EDITOR
from segue.conversation.messages import AssistantMessage
from segue.framing.aws_event_stream import AwsEventStreamDecoder
from segue.framing.ndjson import NdjsonDecoder
from segue.framing.sse import SseDecoder
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.protocol import Protocol
from segue.protocols.registry import get_protocol

FIXTURES = Path(__file__).parent / "fixtures"

Frames = list[Any]


@dataclass(frozen=True, eq=False)
class Exchanges:
    """The cases of one protocol: whom they are spoken with, and how the provider writes a stream."""

    endpoint: Endpoint
    written: Callable[[Frames], bytes]

    @cached_property
    def codec(self) -> Protocol:
        return get_protocol(self.endpoint.model.protocol)

    @cached_property
    def names(self) -> list[str]:
        return sorted(path.name for path in (FIXTURES / self.codec.name).iterdir())

    def having(self, part: str) -> list[str]:
        """Name the cases that have such a part."""
        return [name for name in self.names if (FIXTURES / self.codec.name / name / f"{part}.json").exists()]

    def part(self, case: str, name: str) -> Any:
        return json.loads((FIXTURES / self.codec.name / case / f"{name}.json").read_text("utf-8"))

    def expected(self, case: str) -> AssistantMessage:
        return msgspec.convert(self.part(case, "expected"), AssistantMessage)

    def stream(self, case: str) -> bytes:
        """Give the bytes of a streamed reply."""
        return self.written(self.part(case, "stream"))

    def decoded(self, frames: Frames, tool_names: dict[str, str] | None = None) -> tuple[list[Any], AssistantMessage]:
        """Feed a stream, frame by frame; give its events and its message."""
        decoder = self.codec.stream_decoder(self.endpoint, tool_names or {})
        events = [event for frame in frames for event in decoder.feed(frame)]
        return events + decoder.finish(), decoder.message


# -- how providers write streams ---------------------------------------------------------------------------------------


def named_events(frames: Frames) -> bytes:
    return "".join(f"event: {frame['type']}\ndata: {json.dumps(frame)}\n\n" for frame in frames).encode()


def bare_events(frames: Frames) -> bytes:
    return "".join(f"data: {json.dumps(frame)}\r\n\r\n" for frame in frames).encode()


def events_until_done(frames: Frames) -> bytes:
    return "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames).encode() + b"data: [DONE]\n\n"


def lines(frames: Frames) -> bytes:
    return b"".join(json.dumps(frame).encode() + b"\n" for frame in frames)


def split(framing: str, stream: bytes, size: int) -> Frames:
    """Take the bytes of a stream apart into frames, as they come in pieces of some size."""
    splitter = {"sse": SseDecoder, "ndjson": NdjsonDecoder, "aws-event-stream": AwsEventStreamDecoder}[framing]()
    found = [frame for at in range(0, len(stream), size) for frame in splitter.feed(stream[at : at + size])]
    return [getattr(frame, "data", frame) for frame in found + splitter.finish()]


ANTHROPIC = Exchanges(SONNET, named_events)
BEDROCK = Exchanges(SONNET_AT_AMAZON, stream_of)
COHERE = Exchanges(REASONING, named_events)
GOOGLE = Exchanges(NEWER, bare_events)
MISTRAL = Exchanges(MEDIUM, events_until_done)
OLLAMA = Exchanges(QWEN, lines)
PLAIN_TEXT = Exchanges(ANYTHING, lines)
VSCODE = Exchanges(EDITOR, lines)

WIRES = (ANTHROPIC, BEDROCK, COHERE, GOOGLE, MISTRAL, OLLAMA, PLAIN_TEXT, VSCODE)
