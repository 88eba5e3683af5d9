"""The row of a request: what happened, without any content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import msgspec

from segue.client.flow.attempts import Attempt
from segue.conversation.messages import Usage
from segue.projection.report import ChangeCode, Report


@final
class AttemptRow(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One request to a provider: the model, why it was made, how it failed, and how long it took.

    `account` is the name of the account, if the provider has several.
    """

    model: str
    reason: str
    account: str | None = None
    kind: str | None = None
    status: int | None = None
    message: str | None = None
    duration_ms: int = 0


@final
class ChangeRow(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A change that projection made: no content, only its code, place and loss, and the cause where it quotes none."""

    code: str
    path: tuple[str | int, ...]
    loss: str
    cause: str | None = None


@final
class RequestRow(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What is kept of a request. `outcome` is `done`, `error` or `aborted`; times are milliseconds."""

    id: str
    time: int
    client: str
    conversation: str
    protocol: str
    asked: str
    model: str | None
    stream: bool
    status: int
    outcome: str
    straight: bool = False
    restored: int = 0
    """How many turns of the history got their state back."""
    attempts: tuple[AttemptRow, ...] = ()
    changes: tuple[ChangeRow, ...] = ()
    usage: Usage | None = None
    first_byte_ms: int | None = None
    duration_ms: int = 0
    unstored: bool = False
    """Whether the state of the reply, or a reply that the client asked to store, could not be stored."""
    error: str | None = None


def attempt_rows(attempts: Sequence[Attempt]) -> tuple[AttemptRow, ...]:
    """Describe attempts."""
    return tuple(
        AttemptRow(
            model=attempt.model.full_name(),
            reason=attempt.reason,
            account=attempt.model.account or None,
            kind=None if attempt.failure is None else str(attempt.failure.kind),
            status=None if attempt.failure is None else attempt.failure.status,
            message=None if attempt.failure is None else (attempt.failure.message or None),
            duration_ms=round(attempt.duration * 1000),
        )
        for attempt in attempts
    )


def change_rows(*reports: Report) -> tuple[ChangeRow, ...]:
    """Describe changes, mostly without their details: those may quote the conversation."""
    return tuple(
        ChangeRow(
            code=str(change.code),
            path=change.path,
            loss=str(change.loss),
            cause=change.detail if change.code == ChangeCode.REASONING_WITHHELD else None,
        )
        for report in reports
        for change in report.changes
    )
