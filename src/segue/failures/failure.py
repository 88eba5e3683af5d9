"""What went wrong, as a value: one kind of a closed set, the numbers the provider gave, what the verdict rests on."""

from __future__ import annotations

from enum import StrEnum
from typing import final

import msgspec


class FailureKind(StrEnum):
    """Every kind of failure, each with what a caller can do about it."""

    OVERFLOW = "overflow"
    """The conversation is longer than the model's window: shorten it, or go to a model with a larger one."""
    PAYLOAD_TOO_LARGE = "payload_too_large"
    """The request has too many bytes, or one file or image is too large."""
    RATE_LIMIT = "rate_limit"
    """Too much in too short a time: wait, or ask another model."""
    QUOTA = "quota"
    """What was paid for or allotted is used up: waiting a minute does not help."""
    AUTH = "auth"
    """The key is missing, wrong, or not allowed to do this."""
    OPAQUE_REJECTED = "opaque_rejected"
    """A signature or encrypted content in the history was refused: it goes without historical reasoning."""
    INVALID_HISTORY = "invalid_history"
    """The conversation has a shape this provider refuses."""
    INVALID_REQUEST = "invalid_request"
    """A setting or a field is refused."""
    NOT_FOUND = "not_found"
    """No such model, deployment or address."""
    OVERLOADED = "overloaded"
    """The provider has more work than it can do right now."""
    SERVER = "server"
    """The provider failed."""
    NETWORK = "network"
    """Nobody answered, or the answer broke off."""
    REFUSED = "refused"
    """The model or a filter would not answer this."""
    UNKNOWN = "unknown"
    """Nothing known fits."""


@final
class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """One failure, classified."""

    kind: FailureKind
    provider: str | None = None
    status: int | None = None
    retry_after: float | None = None
    """Seconds to wait, as the provider says."""
    used: int | None = None
    limit: int | None = None
    """Tokens: what the provider counted, against what it allows."""
    evidence: str = ""
    """What the verdict rests on: the status, the code, or the words that were recognised."""
    message: str = ""
    """What the provider said."""
