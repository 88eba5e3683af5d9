"""What each provider would answer, in its own bytes: a stream, a whole reply, an error, an error in mid-stream.

All replies have the same content: thinking where the protocol supports it, non-ASCII text, one tool call. Written by
hand from the SDK types (see `emulate_*.py`), so a codec is tested against independent data.

    replies("anthropic-messages").streamed            # bytes to be sent, `content_type` says what they are
    replies("openai-chat", words=["very "] * 10_000)  # a long one
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from servers.aws_frames import aws_event, aws_exception
from servers.emulate_first_party import anthropic_messages, bedrock_converse, google_genai, google_interactions
from servers.emulate_openai import openai_chat, openai_responses
from servers.emulate_others import cohere_chat, mistral_chat, ollama_chat, plain_text, vscode_lm
from servers.emulate_replies import WORDS, EmulatedReply, Frame
from servers.script import Break, Reply


def _sse(frame: Frame) -> bytes:
    name, data = frame
    result = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return (f"event: {name}\n" if name else "").encode() + f"data: {result}\n\n".encode()


def _ndjson(frame: Frame) -> bytes:
    return json.dumps(frame[1], ensure_ascii=False).encode() + b"\n"


def _aws(frame: Frame) -> bytes:
    name, data = frame
    return aws_exception(name, str(data)) if name.endswith("Exception") else aws_event(name, data)


_SSE: Final = "text/event-stream", _sse
_NDJSON: Final = "application/x-ndjson", _ndjson
_AWS: Final = "application/vnd.amazon.eventstream", _aws

EMULATED: Final[Mapping[str, tuple[Callable[[Sequence[str]], EmulatedReply], tuple[str, Callable[[Frame], bytes]]]]] = {
    "anthropic-messages": (anthropic_messages, _SSE),
    "openai-chat": (openai_chat, _SSE),
    "openai-responses": (openai_responses, _SSE),
    "google-genai": (google_genai, _SSE),
    "bedrock-converse": (bedrock_converse, _AWS),
    "mistral-chat": (mistral_chat, _SSE),
    "ollama-chat": (ollama_chat, _NDJSON),
    "vscode-lm": (vscode_lm, _NDJSON),
    "plain-text": (plain_text, _NDJSON),
    "cohere-chat": (cohere_chat, _SSE),
    "google-interactions": (google_interactions, _SSE),
}


@dataclass(frozen=True)
class Replies:
    """The answers of one wire."""

    protocol: str
    content_type: str
    """Of the stream; whole replies and errors are JSON."""
    frames: tuple[bytes, ...]
    """The stream, event by event."""
    broken_frames: tuple[bytes, ...]
    """A stream in which an error comes after the words, before the call."""
    whole: bytes
    error: bytes
    error_headers: Mapping[str, str]

    @property
    def streamed(self) -> bytes:
        """The stream."""
        return b"".join(self.frames)

    @property
    def broken(self) -> bytes:
        """The stream with the error in it."""
        return b"".join(self.broken_frames)

    def stream(self, *, split: int = 0, breaks: Break | None = None) -> Reply:
        """Give the stream as a reply of the scripted server: in pieces of some bytes, or event by event."""
        if split:
            return Reply.stream(self.streamed, self.content_type, split=split, breaks=breaks)
        return Reply(headers={"content-type": self.content_type}, chunks=self.frames, breaks=breaks)

    def broken_stream(self) -> Reply:
        """Give the stream with the error in it as a reply of the scripted server."""
        return Reply(headers={"content-type": self.content_type}, chunks=self.broken_frames)

    def complete(self) -> Reply:
        """Give the whole reply as one of the scripted server."""
        return Reply.json(self.whole)

    def refusal(self, status: int = 429) -> Reply:
        """Give the error as a reply of the scripted server."""
        return Reply.json(self.error, status=status, headers=self.error_headers)


def replies(protocol: str, *, words: Sequence[str] = WORDS) -> Replies:
    """Give what a wire answers; a new protocol needs a line in the table above."""
    tell, (content_type, write) = EMULATED[protocol]
    result = tell(words)
    return Replies(
        protocol=protocol,
        content_type=content_type,
        frames=tuple(map(write, (*result.words, *result.call))),
        broken_frames=tuple(map(write, (*result.words, result.failing))),
        whole=json.dumps(result.whole, ensure_ascii=False).encode(),
        error=json.dumps(result.error, ensure_ascii=False).encode(),
        error_headers=result.error_headers,
    )
