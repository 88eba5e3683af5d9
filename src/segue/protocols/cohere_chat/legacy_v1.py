"""Cohere's first chat wire, told apart so that it can be refused by its name.

Facts this file rests on:
- A request is one `message` beside a `chat_history`; a reply is a `text` with a `generation_id`; a stream is lines of
  JSON that each name their `event_type`.              (cohere 7.3.1: `chat` of the first client, read 2026-11-15)
- Its endpoint is `v1/chat`, the one that segue speaks `v2/chat`.                                          (the same)
"""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.codec import JsonObject

REFUSAL: Final = "this is Cohere's first chat wire (v1/chat), which segue does not speak; it speaks v2/chat"


def is_first_request(body: JsonObject) -> bool:
    """Say whether a request is of the first wire."""
    return "messages" not in body and ("chat_history" in body or isinstance(body.get("message"), str))


def is_first_reply(body: JsonObject) -> bool:
    """Say whether a whole reply is of the first wire, or one of the lines of its streams."""
    return "event_type" in body or ("generation_id" in body and isinstance(body.get("text"), str))
