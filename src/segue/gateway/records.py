"""The row of a request: what happened, without any content."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias, final

import msgspec

from segue.client.flow.attempts import Attempt
from segue.conversation.messages import Usage
from segue.failures.failure import Failure, FailureKind
from segue.projection.report import ChangeCode, Report

Figures: TypeAlias = Literal["measured", "estimated"]


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
    code: str | None = None
    """The provider's code, such as `insufficient_quota`. Its text may quote the prompt, and is not kept."""
    request_id: str | None = None
    """The provider's own id of the request, for its support."""
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
    saved: float | None = None
    """Dollars that the provider's cache saved; negative where more was written to it than was read."""
    first_byte_ms: int | None = None
    duration_ms: int = 0
    unstored: bool = False
    """Whether the state of the reply, or a reply that the client asked to store, could not be stored."""
    error: str | None = None
    """What kind of failure it was, in a sentence of the gateway: the text of a provider may quote the prompt."""
    drift: tuple[str, ...] = ()
    """What the reply has that the provider's SDK does not know, by name."""
    key: str = ""
    """The name of the client's key, if it has one."""
    alike: bool = False
    """Whether other conversations that begin alike have the same name: the client gave nothing that separates them."""
    spent: Usage | None = None
    """What all attempts were billed together; `usage` is that of the reply."""
    figures: Figures | None = None
    """Whether tokens and dollars are the providers' own figures, or estimates; None if nothing was billed."""
    price: Literal["known", "unknown"] | None = None
    """Whether the price of the reply is known; None without a usage."""
    notes: tuple[str, ...] = ()
    """What the route left out, and settings of it that had no effect."""


_CODE: Final = re.compile(r"(?:code|status) ([\w.-]{1,64})")


def _code_of(failure: Failure) -> str | None:
    """Return the code or status that decided the kind; None if it was the text."""
    found = _CODE.fullmatch(failure.evidence)
    return None if found is None else found[1]


_SENTENCES: Final[Mapping[FailureKind, str]] = {
    FailureKind.OVERFLOW: "The conversation is longer than the context window.",
    FailureKind.PAYLOAD_TOO_LARGE: "The request has too many bytes.",
    FailureKind.RATE_LIMIT: "There were too many requests or tokens.",
    FailureKind.QUOTA: "The quota or credit is used up.",
    FailureKind.AUTH: "The key of the gateway is missing or was refused.",
    FailureKind.OPAQUE_REJECTED: "A signature or encrypted content was refused.",
    FailureKind.INVALID_HISTORY: "The structure of the conversation was refused.",
    FailureKind.INVALID_REQUEST: "An option or a field was refused.",
    FailureKind.NOT_FOUND: "The model or the URL does not exist.",
    FailureKind.OVERLOADED: "The provider was overloaded.",
    FailureKind.SERVER: "The provider failed.",
    FailureKind.NETWORK: "There was no response, or the connection broke.",
    FailureKind.REFUSED: "The model or a content filter refused to answer.",
    FailureKind.UNKNOWN: "The failure is of no known kind.",
}


def describe_failure(failure: Failure) -> str:
    """Describe a failure by its kind alone."""
    return _SENTENCES[failure.kind]


def attempt_rows(attempts: Sequence[Attempt]) -> tuple[AttemptRow, ...]:
    """Describe attempts."""
    return tuple(
        AttemptRow(
            model=attempt.model.full_name(),
            reason=attempt.reason,
            account=attempt.model.account or None,
            kind=None if attempt.failure is None else str(attempt.failure.kind),
            status=None if attempt.failure is None else attempt.failure.status,
            code=None if attempt.failure is None else _code_of(attempt.failure),
            request_id=attempt.request_id,
            duration_ms=round(attempt.duration * 1000),
        )
        for attempt in attempts
    )


_PLAIN: Final = frozenset({ChangeCode.REASONING_WITHHELD})
"""Changes whose details quote nothing of the conversation."""
_OUTPUT: Final = ("options", "max_tokens")


def change_rows(*reports: Report) -> tuple[ChangeRow, ...]:
    """Describe changes, mostly without their details: those may quote the conversation."""
    return tuple(
        ChangeRow(
            code=str(change.code),
            path=change.path,
            loss=str(change.loss),
            cause=change.detail if change.code in _PLAIN or change.path == _OUTPUT else None,
        )
        for report in reports
        for change in report.changes
    )
