"""How an Anthropic request asks for thinking, both ways.

Facts this file relies on:
- Newer models think adaptively, with an effort; older ones with a budget of at least 1,024 tokens that has to be
  smaller than `max_tokens`. The default effort is `high`, that of Opus 5.5 `medium`. An effort without `thinking`
  applies to the whole answer, thinking included where the model decides on it; models before Opus 4.5 refuse it.
                                                             (Anthropic documentation: thinking, effort; 2026-11-15)
- A budget leaves 1,024 tokens for the answer.                                       (pi-ai 1.5.0 and ktsoator/or)
- There is no effort `minimal`; `low` is sent for it.                                                (pi-ai 1.5.0)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.conversation.context import Options, ThinkingLevel
from segue.protocols.kit.claude_thinking import Thinking, decode_thinking_object, encode_thinking_object
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.reading import text_of

UNKNOWN_MAX_TOKENS: Final = 4_096
"""What every Claude since the third generation can write, for models whose limit is not known."""
LONGEST_WAIT: Final = 21_333
"""Tokens that are expected within ten minutes; longer replies have to be streamed."""
LEAST_ANSWER: Final = 1_024
"""Tokens that a budget leaves for the answer."""

_LEVELS: Final[Mapping[str, ThinkingLevel]] = {
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}


def decode_thinking(thinking: Block | None, effort: str, endpoint: Endpoint) -> Thinking:
    """Read how much thinking a request asks for; `thinking` is None where the body has none, or null.

    An effort alone is read where the model itself decides how long it thinks.
    """
    if thinking is None:
        return _LEVELS.get(effort) if endpoint.dialect.thinking_format == "adaptive" else None
    return decode_thinking_object(thinking, _LEVELS.get(effort), endpoint)


def is_effort_read(decoded: Thinking, thinking: object, effort: object) -> bool:
    """Whether `decode_thinking` used the effort: that of adaptive thinking, or one alone.

    An unknown one, such as `none` of other providers, is not read: projection reports that it is not sent.
    """
    is_used = thinking is None or object_of(thinking).get("type") == "adaptive"
    return decoded is not None and is_used and (effort is None or text_of(effort) in _LEVELS)


def encode_thinking(options: Options, endpoint: Endpoint) -> tuple[Wire | None, str | None]:
    """Write `thinking` and the effort."""
    asked, dialect = options.thinking, endpoint.dialect
    if asked is None or dialect.thinking_format == "none":
        return None, None
    thinking, effort = encode_thinking_object(asked, endpoint)
    return thinking, effort if dialect.effort else None


def default_max_tokens(options: Options, endpoint: Endpoint, thinking: Block | None) -> int:
    """Give the limit of a reply where the options have none: the model's own, with room for a budget of thinking."""
    known = endpoint.model.max_tokens
    most = known or UNKNOWN_MAX_TOKENS
    if not options.stream:
        most = min(most, LONGEST_WAIT)
    budget = thinking.get("budget_tokens") if thinking is not None else None
    if isinstance(budget, int) and most < budget + LEAST_ANSWER:
        room = budget + UNKNOWN_MAX_TOKENS
        most = min(room, known) if known else room
    return most
