"""How often the same model is asked again, after how long a wait, and which failures another model may mend.

Facts this file rests on:
- The official clients ask twice more, wait half a second first and eight at most, and spread the waits.
                                                            (openai 3.49.0, anthropic 2.8.0: defaults; read 2026-11-15)
- They obey a `retry-after` of up to a minute.                                                              (the same)
- What is used up does not come back by waiting: quotas are not retried.         (pi-ai 1.5.0: retry classification)
"""

from __future__ import annotations

from typing import Final, final

import msgspec

from segue.failures.failure import FailureKind

TRANSIENT: Final = frozenset({FailureKind.RATE_LIMIT, FailureKind.OVERLOADED, FailureKind.SERVER, FailureKind.NETWORK})
"""Failures that may be gone when the same is asked again."""

FALLBACK_KINDS: Final = frozenset(FailureKind) - {FailureKind.REFUSED}
"""Failures that another model may not have. A refusal is an answer: whoever wants a second opinion adds it."""


@final
class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """When to ask again. Waits are in seconds; each doubles the one before, and is spread over its upper half."""

    max_retries: int = 2
    """How often one model is asked again; 0 asks each model once."""
    first_wait: float = 0.5
    longest_wait: float = 8.0
    longest_retry_after: float = 60.0
    """What a provider asks for is obeyed up to here. A longer wait is cut, or not made where another model is left."""
    retry_on: frozenset[FailureKind] = TRANSIENT
    fallback_on: frozenset[FailureKind] = FALLBACK_KINDS


def compute_wait(retry: Retry, retries: int, retry_after: float | None, chance: float) -> float:
    """Say how long to wait before the retry after `retries` others; `chance`, from 0 to 1, spreads the waits."""
    if retry_after is not None:
        return min(max(retry_after, 0.0) * (1 + chance / 10), retry.longest_retry_after)
    whole = min(retry.first_wait * 2.0 ** min(retries, 60), retry.longest_wait)
    return whole * (1 + chance) / 2
