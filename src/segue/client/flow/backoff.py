"""When a request is retried, how long to wait before, and which failures lead to a fallback model.

Facts:
- The official clients retry twice, wait 0.5 s before the first retry and 8 s at most, and randomize the waits.
                                                            (openai 3.49.0, anthropic 2.8.0: defaults; read 2026-11-15)
- They obey a `retry-after` of up to a minute.                                                              (the same)
- An exhausted quota does not recover within a retry, so it is not retried.      (pi-ai 1.5.0: retry classification)
"""

from __future__ import annotations

from typing import Final, final

import msgspec

from segue.failures.failure import FailureKind

TRANSIENT: Final = frozenset({FailureKind.RATE_LIMIT, FailureKind.OVERLOADED, FailureKind.SERVER, FailureKind.NETWORK})
"""Failures that the same request may not have a moment later."""

FALLBACK_KINDS: Final = frozenset(FailureKind) - {FailureKind.REFUSED}
"""Failures that another model may not have. A refusal is an answer; add it to send refused requests to a fallback."""


@final
class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """When to retry. Waits are in seconds; each is twice the one before, randomized over its upper half."""

    max_retries: int = 2
    """Retries of one model; 0 sends one request to each model."""
    first_wait: float = 0.5
    longest_wait: float = 8.0
    longest_retry_after: float = 60.0
    """The longest `retry-after` that is waited for. After a longer one, the fallback model is used, or the request
    fails with the time in `Failure.retry_after`: an earlier request would be refused again."""
    retry_on: frozenset[FailureKind] = TRANSIENT
    fallback_on: frozenset[FailureKind] = FALLBACK_KINDS


def compute_wait(retry: Retry, retries: int, retry_after: float | None, chance: float) -> float:
    """Compute the wait before the next retry, after `retries` others; `chance`, from 0 to 1, randomizes it."""
    if retry_after is not None:
        return min(max(retry_after, 0.0) * (1 + chance / 10), retry.longest_retry_after)
    whole = min(retry.first_wait * 2.0 ** min(retries, 60), retry.longest_wait)
    return whole * (1 + chance) / 2
