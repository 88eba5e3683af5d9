"""How long providers keep the prompts of a conversation, and how much of the next request they read from there.

Prices are in the catalogue; this file has what it lacks: what is cached without being asked for, from which size on, in
which steps, and for how long after the last use.

Facts, read 2026-11-18:
- Claude caches up to a mark, 5 minutes or an hour after the last use; the smallest prefix is 512 to 4,096 tokens, by
  model.                                                              (Anthropic documentation: prompt caching)
- GPT-5.6 and later cache up to the end of every request, 30 minutes or 12 hours; writes are billed. Earlier ones cache
  by themselves from 1,024 tokens in steps of 128, 5 to 10 minutes after the last use, 24 hours where it was asked for.
                                                                      (OpenAI documentation: prompt caching)
- Gemini from 2.5 caches by itself, from 1,024 to 4,096 tokens on. The lifetime is not documented: 5 minutes is a guess.
                                                                      (Google documentation: context caching)
- DeepSeek caches whole requests in steps of 64 tokens, for hours: one hour is counted on.
                                                                      (DeepSeek documentation: context caching)
- Nova at Bedrock caches up to a mark, 1,000 tokens, 5 minutes.       (Bedrock documentation: prompt caching)
- Grok, Command and Mistral read far shorter prefixes: 128 to 512 tokens of 19 Grok replies in steps of 64, 112 to 1,792
  of 21 Command replies in steps of 16, 16 to 320 of 9 Mistral replies.            (usage of recorded replies, 2026-11)
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal, NamedTuple, final

from segue.models.model import Model

_MINUTE: Final = 60.0
_HOUR: Final = 3600.0


@final
class CacheHabit(NamedTuple):
    """How a family of models caches: by itself, or `marked` ones only where a request has marks.

    `written` ones, and those, are paid for what they write.
    """

    ids: str
    least: int
    """The smallest prefix that is cached."""
    kind: Literal["marked", "written", "free"] = "free"
    lifetime: float = 5 * _MINUTE
    """Seconds after the last use."""
    long_lifetime: float = _HOUR
    """The same where the request asks for the longer retention."""
    step: int = 1
    renewed: bool = False
    """Whether its provider says that a use begins the lifetime again."""


_HABITS: Final = (
    CacheHabit(r"claude-(?:opus-5|fable|mythos|sonnet-5[-.]5)", 512, "marked", renewed=True),
    CacheHabit(r"claude-(?:opus-4[-.][56]|haiku-[45])", 4096, "marked", renewed=True),
    CacheHabit(r"claude-(?:opus-4[-.]7|3-haiku|3-5-haiku)", 2048, "marked", renewed=True),
    CacheHabit(r"claude-", 1024, "marked", renewed=True),
    CacheHabit(r"amazon\.nova", 1000, "marked", renewed=True),
    CacheHabit(r"gpt-(?:5\.[6-9]|[6-9])", 1024, "written", 30 * _MINUTE, 12 * _HOUR, renewed=True),
    CacheHabit(
        r"gpt-(?:4o(?!-2024-05-13)|4\.[1-9]|5)|chatgpt-4o|o[134](?:-|$)",
        1024,
        long_lifetime=24 * _HOUR,
        step=128,
        renewed=True,
    ),
    CacheHabit(r"gemini-2\.5", 2048),
    CacheHabit(r"gemini-3-flash", 1024),
    CacheHabit(r"gemini-[3-9]", 4096),
    CacheHabit(r"deepseek-", 64, lifetime=_HOUR, step=64),
    CacheHabit(r"grok-", 128, step=64),
    CacheHabit(r"command-", 112, step=16),
    CacheHabit(r"(?:mistral|ministral|codestral|devstral|magistral|pixtral)-", 64, step=16),
)
"""The first row whose pattern is found at the start of a part of the model id."""
_OTHER: Final = CacheHabit("", 1024)
"""A guess for models of others whose price list has a lower price for what was cached."""


@lru_cache(maxsize=512)
def _find(model_id: str) -> CacheHabit:
    return next((habit for habit in _HABITS if re.search(rf"(?:^|[/.])(?:{habit.ids})", model_id)), _OTHER)


def find_habit(model: Model) -> CacheHabit | None:
    """Return how a model caches; None if the catalogue has no price for what it reads from a cache."""
    return _find(model.id) if model.cost.cache_read else None
