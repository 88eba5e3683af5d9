"""A classified failure: its kind, the numbers that the provider sent, and the evidence for the kind."""

from __future__ import annotations

from enum import StrEnum
from typing import final

import msgspec


class FailureKind(StrEnum):
    """The kinds of failure, each with what the caller can do about it."""

    OVERFLOW = "overflow"
    """The conversation is longer than the model's context window: shorten it, or use a model with a larger window."""
    PAYLOAD_TOO_LARGE = "payload_too_large"
    """The request, or one file or image in it, has too many bytes: send smaller files."""
    RATE_LIMIT = "rate_limit"
    """Too many requests or tokens per time: wait and retry, or use another model."""
    QUOTA = "quota"
    """The quota or credit is used up: retrying does not help; raise the limit, or use another provider."""
    AUTH = "auth"
    """The API key is missing, invalid, or has no permission: check the key."""
    OPAQUE_REJECTED = "opaque_rejected"
    """A signature or encrypted content in the history was refused: retry without the reasoning of earlier turns."""
    INVALID_HISTORY = "invalid_history"
    """The provider refuses the structure of the conversation: see the message for the turn."""
    INVALID_REQUEST = "invalid_request"
    """The provider refuses an option or a field: change or remove it."""
    NOT_FOUND = "not_found"
    """The model, deployment or URL does not exist: check the names."""
    OVERLOADED = "overloaded"
    """The provider is overloaded: wait and retry, or use another model."""
    SERVER = "server"
    """The provider failed: retry, or use another model."""
    NETWORK = "network"
    """There was no response, or the connection broke: check the network and retry."""
    REFUSED = "refused"
    """The model or a content filter refused to answer: change the prompt."""
    UNKNOWN = "unknown"
    """No known kind matches: see the message."""


@final
class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A classified failure."""

    kind: FailureKind
    provider: str | None = None
    status: int | None = None
    retry_after: float | None = None
    """Seconds to wait, from the provider's response."""
    used: int | None = None
    limit: int | None = None
    """Tokens: the provider's count, and its limit."""
    evidence: str = ""
    """What decided the kind: the status, the code, or the recognised part of the message."""
    message: str = ""
    """The provider's message, with keys masked."""
