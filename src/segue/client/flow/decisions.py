"""After a failure: ask again, ask without historical reasoning, ask another model, or give up.

Facts this file rests on:
- A refused signature is mended by one more request without the reasoning of finished turns; the running tool cycle has
  to stay as it is.                                       (OmniRoute #7929, gajae #115, openclaw #116987; 2026)
- A conversation that is too long for one window fits into a larger one, and waiting never helps.
- A wait that the provider asks for is not worth making while another model could answer.               (our choice)
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

_STRIPPED_PROVIDER: Final = "(reasoning removed)"
"""A provider that does not exist: what it wrote is at home nowhere, so projection takes its seals off and says so."""


@final
class Course(msgspec.Struct, frozen=True, kw_only=True):
    """What to do next: which of the candidates is asked, why, after how long, and how often it was asked before."""

    place: int = 0
    reason: Reason = "first"
    wait: float = 0.0
    retries: int = 0
    is_origin_stripped: bool = False


def choose_course(
    course: Course, failure: Failure, candidates: Sequence[Model], context: Context, *, retry: Retry, chance: float
) -> Course | None:
    """Choose what to do after a failure; None to give up."""
    kind = failure.kind
    if kind == FailureKind.OPAQUE_REJECTED and not course.is_origin_stripped and strip_origin(context) is not context:
        return Course(place=course.place, reason="without_reasoning", retries=course.retries, is_origin_stripped=True)
    other = _find_other(course.place, failure, candidates, context) if kind in retry.fallback_on else None
    if kind in retry.retry_on and course.retries < retry.max_retries:
        is_too_long = failure.retry_after is not None and failure.retry_after > retry.longest_retry_after
        if other is None or not is_too_long:
            wait = compute_wait(retry, course.retries, failure.retry_after, chance)
            return replace(course, reason="retry", wait=wait, retries=course.retries + 1)
    return None if other is None else Course(place=other, reason="fallback")


def _find_other(place: int, failure: Failure, candidates: Sequence[Model], context: Context) -> int | None:
    """Find the next model to ask; one with a larger window when this one's was too small."""
    following = range(place + 1, len(candidates))
    if failure.kind != FailureKind.OVERFLOW:
        return next(iter(following), None)
    window = _input_window(candidates[place])
    for other in following:
        model = candidates[other]
        room = _input_window(model)
        # A window nobody told us is worth a try; one that is known has to be larger, and large enough.
        needed = max(estimate_tokens(context, model), failure.used or 0)
        if not room or (room > window and room > needed):
            return other
    return None


def _input_window(model: Model) -> int:
    return model.max_input or model.context_window


def strip_origin(context: Context) -> Context:
    """Give a conversation whose finished turns have no home, so that projection drops their reasoning and reports it.

    The running tool cycle, everything after the last word of the user's, stays as it is: what was signed there has to
    come back. The same conversation is given back when there is nothing to remove.
    """
    messages = context.messages
    users = [index for index, message in enumerate(messages) if message.role == "user"]
    end = users[-1] if users else 0
    changed: list[Message] = list(messages)
    for index, message in enumerate(messages[:end]):
        if message.role == "assistant" and _is_signed(message):
            changed[index] = replace(message, provider=_STRIPPED_PROVIDER)
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
    """Give the policy for an estranged conversation: nothing of it is anyone's own, whatever the caller says."""
    base_policy = policy or Policy()
    same_model = base_policy.same_model
    if same_model is None:
        return replace(base_policy, reasoning="drop")

    def is_same(message: AssistantMessage, model: Model) -> bool:
        return message.provider != _STRIPPED_PROVIDER and same_model(message, model)

    return replace(base_policy, reasoning="drop", same_model=is_same)
