"""Pages that a reply of the chat completions protocol cites.

Facts this file rests on:
- A message has `annotations` with `url_citation` {url, title} inside.             (openai 3.49.0, read 2026-11-15)
- Groq's compound models list what their searches found: `executed_tools[].search_results.results[]` {title, url}.
                                                                                                       (groq 1.7.0)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from segue.conversation.messages import AssistantMessage
from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.sources import Source, find_in_reply, objects_in
from segue.protocols.kit.verbatim import data_of
from segue.protocols.openai_chat.rules import PROTOCOL


def cited_sources(message: AssistantMessage) -> Sequence[Source]:
    """Give the pages that a message cites, or that a search of the provider found for it."""
    return [
        Source(url, text_of(page.get("title")) or "") for page in _pages(message) if (url := text_of(page.get("url")))
    ]


def _pages(message: AssistantMessage) -> Iterator[Block]:
    for annotation in objects_in(_field(message, "annotations")):
        yield object_of(annotation.get("url_citation"))
    for tool in objects_in(_field(message, "executed_tools")):
        yield from objects_in(object_of(tool.get("search_results")).get("results"))


def _field(message: AssistantMessage, key: str) -> object:
    """Find a field of the message, as it was received in a reply or in a request."""
    if message.extra is None:
        return None
    kept = data_of(message.extra, PROTOCOL).get(key)
    return find_in_reply(message.extra, PROTOCOL, "choices", "0", "message", key) if kept is None else kept
