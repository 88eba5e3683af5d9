"""The values that the functions of every protocol take and return; `kit.protocol` has the record of the functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias, final

import msgspec

from segue.errors import Path
from segue.models.dialect import Dialect
from segue.models.model import Model
from segue.models.rules import Rules

JsonObject: TypeAlias = Mapping[str, object]


NOT_IN_A_BODY: Final = frozenset(
    {
        # of messages: a body holds the conversation, not how it came about
        "protocol",
        "provider",
        "model",
        "response_model",
        "response_id",
        "usage",
        "stop_reason",
        "raw_stop_reason",
        "error_message",
        "diagnostics",
        "timestamp",
        "details",  # what a result is for the application
        "fallback",  # of a native block: read from it
    }
)
"""Fields of neutral types that no request body of any wire holds; `Protocol.not_carried` adds those of one wire."""


@final
class Endpoint(msgspec.Struct, frozen=True):
    """The target of a request: the model with its resolved rules and dialect."""

    model: Model
    rules: Rules
    dialect: Dialect


@final
class WireError(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a provider's error body, unchanged; `classify` reads it."""

    status: int | None = None
    code: str | None = None
    type: str | None = None
    message: str = ""


@final
class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """One thing in a wire body that the provider would refuse; `path` leads to it in that body."""

    code: str
    path: Path
    message: str
