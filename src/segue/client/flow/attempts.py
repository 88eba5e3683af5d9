"""Records of attempts: one for each request that was sent, and the message about a failed one."""

from __future__ import annotations

from typing import Literal, TypeAlias, final

import msgspec

from segue.conversation.messages import Diagnostic, Usage
from segue.failures.failure import Failure
from segue.models.model import Model
from segue.projection.report import Report

Reason: TypeAlias = Literal["first", "retry", "without_reasoning", "shortened", "fallback", "repair"]


@final
class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One request: the model, the reason, what projection changed for it, how it ended, how long it took.

    `waited` and `duration` are seconds, `started` is Unix milliseconds. `failure` is None if the model answered.
    `window` is the smaller window that the conversation was fitted to, after the provider had refused it as too long.
    """

    model: Model
    reason: Reason = "first"
    report: Report = Report(())
    failure: Failure | None = None
    window: int | None = None
    started: int = 0
    waited: float = 0.0
    duration: float = 0.0
    request_id: str | None = None
    """The provider's own id of the request, for its support; None if it sent none."""
    usage: Usage | None = None
    """What the attempt is billed, also if it failed; an estimate if the reply broke before the provider's counts."""
    is_estimated: bool = False
    """Whether `usage` is an estimate in place of the provider's own figures."""


def note_attempt(attempt: Attempt) -> Diagnostic:
    """Describe a failed attempt, for the message that a later attempt brought."""
    failure = attempt.failure
    details: dict[str, object] = {
        "model": attempt.model.full_name(),
        "reason": attempt.reason,
        "durationMs": round(attempt.duration * 1000),
    }
    if attempt.model.account:
        details["account"] = attempt.model.account
    if failure is not None:
        details["kind"] = str(failure.kind)
        if failure.status is not None:
            details["status"] = failure.status
    message = None if failure is None else failure.message or failure.evidence
    return Diagnostic(type="attempt_failed", message=message or None, details=details, timestamp=attempt.started)


def render_failure(attempts: tuple[Attempt, ...]) -> str:
    """Describe in one sentence how a request failed."""
    last = attempts[-1]
    failure = last.failure
    if failure is None:
        return f"{last.model.full_name()} answered"
    text = failure.message or failure.evidence or "no reason given"
    status = "" if failure.status is None else f" (HTTP {failure.status})"
    count = "" if len(attempts) == 1 else f"; {len(attempts)} attempts"
    return f"{last.model.full_name()}: {failure.kind.replace('_', ' ')}{status}: {text}{count}"
