"""Helpers for the tests of this protocol: endpoints, whole requests, replies and streams.

What they give has no type, so that a table of cases can look into it without asking what each thing is.
"""

from __future__ import annotations

from typing import Any

from segue.conversation.context import Context, Options, Prompt
from segue.conversation.messages import Message
from segue.models.model import Model
from segue.protocols.api import resolve_endpoint
from segue.protocols.kit.codec import Endpoint
from segue.protocols.openai_chat.protocol import PROTOCOL as CODEC

PROTOCOL = "openai-chat"


def endpoint(provider: str = "openai", model: str = "gpt-4o", **fields: Any) -> Endpoint:
    return resolve_endpoint(Model(model, provider, PROTOCOL, **fields))


GPT = endpoint()


def body_of(*messages: dict[str, Any], **beside: Any) -> dict[str, Any]:
    return {"model": "gpt-4o", "messages": list(messages), "store": False, **beside}


def read(*messages: dict[str, Any], at: Endpoint = GPT, **beside: Any) -> Any:
    return CODEC.decode_request(body_of(*messages, **beside), at)


def write(*messages: Message, at: Endpoint = GPT, options: Options | None = None, **context: Any) -> dict[str, Any]:
    prompt = Prompt(context=Context(messages=messages, **context), options=options or Options())
    return CODEC.encode_request(prompt, at)


def chunk(delta: dict[str, Any] | None = None, reason: str | None = None, **beside: Any) -> dict[str, Any]:
    """Give a chunk of a stream with one choice."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": reason}
    return {"id": "r1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **beside}


def calling(*entries: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return chunk({"tool_calls": list(entries)}, reason)


def fold(*frames: Any, at: Endpoint = GPT, tool_names: dict[str, str] | None = None) -> tuple[list[Any], Any]:
    decoder = CODEC.stream_decoder(at, tool_names or {})
    events = [event for frame in frames for event in decoder.feed(frame)]
    return events + decoder.finish(), decoder


def event_kinds(events: list[Any], index: int) -> set[str]:
    """Give the kinds of the events of one part."""
    return {event.type.partition("_")[0] for event in events if getattr(event, "index", None) == index}


def reply(message: dict[str, Any], reason: str | None = "stop", **beside: Any) -> dict[str, Any]:
    """Give a whole reply with one choice."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
    return {"id": "r1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **beside}
