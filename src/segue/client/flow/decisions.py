"""After a failure: retry, retry without the reasoning of earlier turns, use a fallback model, or give up.

Facts:
- After a rejected signature, one more request without the reasoning of finished turns succeeds; the running tool cycle
  stays unchanged where that is enough.                   (OmniRoute #7929, gajae #115, openclaw #116987; 2026)
- Claude's newest models refuse reasoning after a changed prefix, also in a running tool cycle, and accept the cycle
  without it. The same body is refused every time.        (Anthropic documentation: preserved thinking; probes, 2026-09)
- A conversation that is too long for one model fits into a larger context window. Waiting does not help. Before that,
  one more request with less history is tried: see `shortening`.
- A request before the time of `retry-after` is refused again. So a time that is too long to wait for ends the attempts
  with this model: a fallback model is used, or the caller gets the failure with the time.           (our choice)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import msgspec
from msgspec.structs import replace

from segue.client.flow.attempts import Reason
from segue.client.flow.backoff import Retry, compute_wait
from segue.conversation.context import Context
from segue.conversation.marks import all_marks_of
from segue.failures.failure import Failure, FailureKind
from segue.models.model import Model
from segue.requests.prepare import Request
from segue.requests.tokens import estimate_tokens


@final
class AttemptPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The next attempt: the index of the candidate, the reason, the wait before, and the retries so far."""

    index: int = 0
    reason: Reason = "first"
    wait: float = 0.0
    retries: int = 0
    refused: frozenset[str] = frozenset()
    """The marks of signatures that the provider refused: see `Request.marks`."""
    window: int | None = None
    """The smaller window that the conversation is fitted to."""


def plan_next_attempt(
    plan: AttemptPlan,
    failure: Failure,
    candidates: Sequence[Model],
    context: Context,
    *,
    retry: Retry,
    chance: float,
    request: Request | None = None,
) -> AttemptPlan | None:
    """Plan the attempt after a failure of `request`; None to give up."""
    kind = failure.kind
    if kind == FailureKind.OPAQUE_REJECTED and request is not None:
        refused = plan.refused | find_refused(request)
        if refused != plan.refused:
            return replace(plan, reason="without_reasoning", wait=0.0, refused=refused)
    other = _find_fallback(plan.index, failure, candidates, context) if kind in retry.fallback_on else None
    if kind in retry.retry_on and plan.retries < retry.max_retries:
        is_too_long = failure.retry_after is not None and failure.retry_after > retry.longest_retry_after
        if not is_too_long:
            wait = compute_wait(retry, plan.retries, failure.retry_after, chance)
            return replace(plan, reason="retry", wait=wait, retries=plan.retries + 1)
    return None if other is None else AttemptPlan(index=other, reason="fallback")


def _find_fallback(index: int, failure: Failure, candidates: Sequence[Model], context: Context) -> int | None:
    """Find the next fallback model; after a context overflow, one with a larger context window."""
    following = range(index + 1, len(candidates))
    if failure.kind != FailureKind.OVERFLOW:
        return next(iter(following), None)
    window = _max_input(candidates[index])
    for other in following:
        model = candidates[other]
        room = _max_input(model)
        # A model whose window is unknown is tried; a known window has to be larger, and large enough.
        needed = max(estimate_tokens(context, model), failure.used or 0)
        if not room or (room > window and room > needed):
            return other
    return None


def _max_input(model: Model) -> int:
    return model.max_input or model.context_window


def find_refused(request: Request) -> frozenset[str]:
    """Return the marks of what has to be left out after a request was refused for its signatures; empty if nothing can.

    That is what the provider was asked about: reasoning whose account is not known. If there is none, it is everything
    before the last user message. The running tool cycle, which follows it, keeps its signatures unless nothing else is
    left, or the target binds them to the conversation before them.
    """
    if request.binds_prefix or request.stamp.unknown:
        return request.marks
    messages = request.projection.context.messages
    users = [index for index, message in enumerate(messages) if message.role == "user"]
    finished = messages[: users[-1]] if users else ()
    marks = frozenset(mark for message in finished if message.role == "assistant" for mark in all_marks_of(message))
    return marks or request.marks
