"""Whole exchanges written for tests: a request, a reply, the same reply streamed, and the message they mean.

They stand in `fixtures/<protocol>/<case>/`. A protocol with such a folder takes part; nothing else has to be listed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from protocols.anthropic_messages.endpoints import SONNET
from protocols.bedrock_converse.endpoints import SONNET as SONNET_AT_AMAZON
from protocols.cohere_chat.endpoints import REASONING
from protocols.google_genai.endpoints import NEWER
from protocols.mistral_chat.endpoints import MEDIUM
from protocols.ollama_chat.endpoints import QWEN
from protocols.plain_text.endpoints import ANYTHING
from protocols.vscode_lm.endpoints import EDITOR
from segue.conversation.messages import AssistantMessage
from segue.protocols.api import resolve_endpoint
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.protocol import Protocol
from segue.protocols.registry import PROTOCOLS
from segue.testing.frames import split_stream, write_frame

FIXTURES = Path(__file__).parent / "fixtures"

Frames = list[Any]

_ENDPOINTS = {
    endpoint.model.protocol: endpoint
    for endpoint in (SONNET, SONNET_AT_AMAZON, REASONING, NEWER, MEDIUM, QWEN, ANYTHING, EDITOR)
}
"""Targets of cases that were written for another model than the example of their protocol."""


@dataclass(frozen=True, eq=False)
class Exchanges:
    """The cases of one protocol."""

    codec: Protocol

    @cached_property
    def endpoint(self) -> Endpoint:
        """The target of all cases."""
        return _ENDPOINTS.get(self.codec.name) or resolve_endpoint(self.codec.example)

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
        return b"".join(write_frame(self.codec.framing, frame) for frame in self.part(case, "stream"))

    def decoded(self, frames: Frames, tool_names: dict[str, str] | None = None) -> tuple[list[Any], AssistantMessage]:
        """Feed a stream, frame by frame; give its events and its message."""
        decoder = self.codec.stream_decoder(self.endpoint, tool_names or {})
        events = [event for frame in frames for event in decoder.feed(frame)]
        return events + decoder.finish(), decoder.message


split = split_stream


def _has_messages(folder: Path) -> bool:
    """Whether the expected parts are messages; those of OpenAI's two protocols hold more and have their own tests."""
    first = next(iter(sorted(folder.glob("*/expected.json"))), None)
    return first is not None and "role" in json.loads(first.read_text("utf-8"))


_BY_NAME = {name: Exchanges(PROTOCOLS[name]) for name in PROTOCOLS if _has_messages(FIXTURES / name)}

ANTHROPIC = _BY_NAME["anthropic-messages"]
BEDROCK = _BY_NAME["bedrock-converse"]
COHERE = _BY_NAME["cohere-chat"]
GOOGLE = _BY_NAME["google-genai"]
MISTRAL = _BY_NAME["mistral-chat"]
OLLAMA = _BY_NAME["ollama-chat"]
PLAIN_TEXT = _BY_NAME["plain-text"]
VSCODE = _BY_NAME["vscode-lm"]

WIRES = tuple(_BY_NAME.values())
