"""After a failure: retry, retry without the reasoning of earlier turns, use a fallback model, or give up.

Facts this file relies on:
- After a rejected signature, one more request without the reasoning of finished turns succeeds; the running tool cycle
  has to stay unchanged.                                  (OmniRoute #7929, gajae #115, openclaw #116987; 2026)
- A conversation that is too long for one model fits into a larger context window. Waiting does not help. Before that,
  one more request with less history is tried: see `shortening`.
- A long `retry-after` is not waited for while a fallback model could answer.                          (our choice)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

import msgspec
from msgspec.structs import replace

from segue.client.flow.attempts import Reason
from segue.client.flow.backoff import Retry, compute_wait
from segue.conversation.content import AssistantContent
from segue.conversation.context import Context
from segue.conversation.messages import AssistantMessage, Message
from segue.failures.failure import Failure, FailureKind
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.tokens import estimate_tokens

_NO_PROVIDER: Final = "(reasoning removed)"
"""A provider that does not exist. Projection treats its turns as another model's: it drops and reports signatures."""


@final
class AttemptPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The next attempt: the index of the candidate, the reason, the wait before, and the retries so far."""

    index: int = 0
    reason: Reason = "first"
    wait: float = 0.0
    retries: int = 0
    is_origin_stripped: bool = False
    window: int | None = None
    """The smaller window that the conversation is fitted to."""


def plan_next_attempt(
    plan: AttemptPlan, failure: Failure, candidates: Sequence[Model], context: Context, *, retry: Retry, chance: float
) -> AttemptPlan | None:
    """Plan the attempt after a failure; None to give up."""
    kind = failure.kind
    if kind == FailureKind.OPAQUE_REJECTED and not plan.is_origin_stripped and strip_origin(context) is not context:
        return replace(plan, reason="without_reasoning", wait=0.0, is_origin_stripped=True)
    other = _find_fallback(plan.index, failure, candidates, context) if kind in retry.fallback_on else None
    if kind in retry.retry_on and plan.retries < retry.max_retries:
        is_too_long = failure.retry_after is not None and failure.retry_after > retry.longest_retry_after
        if other is None or not is_too_long:
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


def strip_origin(context: Context) -> Context:
    """Remove the provider of finished turns, so that projection drops their reasoning and reports it.

    The running tool cycle, which is everything after the last user message, is unchanged: its signatures have to be
    sent back. Returns the same object if there is nothing to remove.
    """
    messages = context.messages
    users = [index for index, message in enumerate(messages) if message.role == "user"]
    end = users[-1] if users else 0
    changed: list[Message] = list(messages)
    for index, message in enumerate(messages[:end]):
        if message.role == "assistant" and _is_signed(message):
            changed[index] = replace(message, provider=_NO_PROVIDER)
    return replace(context, messages=tuple(changed)) if tuple(changed) != messages else context


def _is_signed(message: AssistantMessage) -> bool:
    return message.extra is not None or any(map(_has_signature, message.content))


def _has_signature(content: AssistantContent) -> bool:
    match content.kind:
        case "thinking" | "native":
            return True
        case "text":
            return content.text_signature is not None or content.extra is not None
        case "toolCall":
            return content.thought_signature is not None or content.extra is not None


def cross_model_policy(policy: Policy | None) -> Policy:
    """Return the policy for the result of `strip_origin`: turns without a provider never count as the same model."""
    base_policy = policy or Policy()
    same_model = base_policy.same_model
    if same_model is None:
        return replace(base_policy, reasoning="drop")

    def is_same(message: AssistantMessage, model: Model) -> bool:
        return message.provider != _NO_PROVIDER and same_model(message, model)

    return replace(base_policy, reasoning="drop", same_model=is_same)
