"""Cohere's v1 chat protocol, recognised so that it can be refused by its name.

Facts this file rests on:
- A request is one `message` beside a `chat_history`; a reply is a `text` with a `generation_id`; a stream is lines of
  JSON, each with an `event_type`.                     (cohere 7.3.1: `chat` of the first client, read 2026-11-15)
- Its endpoint is `v1/chat`; segue supports `v2/chat`.                                                     (the same)
"""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.codec import JsonObject

REFUSAL: Final = "cohere-chat supports v2/chat and this is v1/chat; send it to the v2 endpoint with `messages`"


def is_first_request(body: JsonObject) -> bool:
    """Whether a request is one of v1."""
    return "messages" not in body and ("chat_history" in body or isinstance(body.get("message"), str))


def is_first_reply(body: JsonObject) -> bool:
    """Whether a reply is one of v1, whole or a line of its stream."""
    return "event_type" in body or ("generation_id" in body and isinstance(body.get("text"), str))
