"""A smaller window for one more attempt, after a provider has refused a request as too long.

Facts:
- An estimate can be too low: for other languages and for tools that the provider runs by half and more. Most providers
  name their limit and what they counted, which corrects the estimate.        (recorded errors and usage, 2026-11)
- A local server may run with a smaller window than its model has, and the window of a user's own model may be unknown.
                                                                                   (llama.cpp, vLLM, LM Studio: issues)
- A request that is cut only as far as it has to be is refused again if the correction is off. A cut goes to the low
  mark of the window, so it leaves room.                                                          (projection: fitting)
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from segue.counting.counter import TokenCounter
from segue.failures.failure import Failure
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.requests.prepare import Request

_SMALLER: Final = 0.75
"""The part of the window that is used where the provider names no limit."""
_BELOW: Final = 0.98
"""A request has to be above the high mark of the new window, otherwise nothing would be cut."""


def _estimate(request: Request, policy: Policy | None) -> int:
    """Estimate the input tokens of a request that was prepared."""
    projection = request.projection
    if projection.window is not None:
        return projection.window.estimate
    counter = TokenCounter(request.model, None if policy is None else policy.counter)
    fixed = counter.fixed(projection.context, projection.options)
    return counter.request(projection.context.messages, fixed).tokens


def find_smaller_window(failure: Failure, request: Request, policy: Policy | None) -> int | None:
    """Find a window in which the request would have been cut so far that it fits; None if nothing may be cut.

    It is in the tokens of the estimate: where the provider counted more than was estimated, its limit is scaled down.
    """
    fit = (policy or Policy()).fit
    if fit is None:
        return None
    sent, window = _estimate(request, policy), request.projection.window
    if failure.limit:
        limit = float(failure.limit)
        if failure.used and failure.used > max(sent, limit):
            limit *= sent / failure.used
    else:
        limit = (sent if window is None else window.window) * _SMALLER
    return int(min(limit, sent / fit.high * _BELOW)) or None


def is_shorter(request: Request, other: Request, policy: Policy | None) -> bool:
    """Whether the messages of a request are shorter than those of another one for the same model."""
    counter = TokenCounter(request.model, None if policy is None else policy.counter)
    one, two = (
        sum(sum(counter.message(message)) for message in each.projection.context.messages) for each in (request, other)
    )
    return one < two


def window_key(model: Model) -> str:
    """Name a model at its server: two servers may run one model with different windows."""
    return f"{model.full_name()} {model.base_url or ''}"


def with_window(policy: Policy | None, window: int) -> Policy:
    """Return a policy that fits conversations to another window."""
    policy = policy or Policy()
    return policy if policy.fit is None else replace(policy, fit=replace(policy.fit, window=window))
