"""Ask for prompt caching where a provider has it and the client did not ask, and say what caching saved."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from segue.conversation.context import Context, Options
from segue.conversation.messages import Usage
from segue.models.model import Model
from segue.models.price import find_cost
from segue.protocols.api import resolve_endpoint

_MARKED: Final = frozenset({"anthropic", "bedrock"})
"""Formats with marks in the body."""
_KEYED: Final = "openai-key"
"""The format with a key, by which requests of one conversation reach the same cache."""
_NEWEST: Final = 16
"""How many messages are searched for marks, so that a turn costs the same after any history."""


def with_caching(options: Options, context: Context, model: Model, conversation: str) -> Options:
    """Ask for cache marks or a cache key, unless the client has its own.

    A single question gets no marks: writing to the cache costs more than the tokens, and nothing follows that reads it.
    """
    endpoint = resolve_endpoint(model)
    refused, form = endpoint.rules.refused_options, endpoint.dialect.cache_format
    if form in _MARKED and options.cache_retention is None and "cache_retention" not in refused:
        is_continued = bool(context.tools) or len(context.messages) > 1
        return replace(options, cache_retention="short") if is_continued and not _is_marked(context) else options
    if form == _KEYED and options.session_id is None and "session_id" not in refused:
        return replace(options, session_id=conversation)
    return options


def _is_marked(context: Context) -> bool:
    """Whether the client has placed marks in its newest messages, its prompt or its tools.

    Marks elsewhere are found when the body is written: one that has marks gets no others.
    """
    for message in context.messages[-_NEWEST:]:
        if getattr(message, "cache_mark", None) is not None:
            return True
        for piece in message.content:
            if getattr(piece, "cache_mark", None) is not None:
                return True
    prompt = context.system_prompt
    blocks = () if prompt is None or isinstance(prompt, str) else prompt
    return any(getattr(one, "cache_mark", None) is not None for one in (*blocks, *context.tools))


def find_saving(model: Model, usage: Usage) -> float | None:
    """Return what a reply would have cost more without a cache, in dollars; None if no price is known.

    It is negative where more was written to the cache than was read from it.
    """
    whole = usage.input + usage.cache_read + usage.cache_write
    without = find_cost(model.cost, Usage(input=whole, output=usage.output))
    paid = find_cost(model.cost, usage)
    return None if without is None or paid is None else round(without.total - paid.total, 6)
