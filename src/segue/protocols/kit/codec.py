"""The values that the functions of every protocol take and return; `kit.protocol` has the record of the functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol, TypeAlias, final

import msgspec

from segue.errors import Path
from segue.models.dialect import Dialect
from segue.models.evidence import Grade
from segue.models.model import Model
from segue.models.rules import Rules
from segue.protocols.kit.check_codes import CheckCode

JsonObject: TypeAlias = Mapping[str, object]


NOT_IN_A_BODY: Final = frozenset(
    {
        # of messages: a body holds the conversation without its metadata
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
        "sent",
        "timestamp",
        "details",  # of a result: data for the application only
        "fallback",  # of a native block: derived from the block
    }
)
"""Fields of neutral types that no request body holds; `Protocol.not_carried` adds those of one protocol."""


@final
class Endpoint(msgspec.Struct, frozen=True):
    """The target of a request: the model with its resolved rules and dialect.

    `owned`: the caller may change the body, so calls are written with copies of their arguments. `cautious`: the rules
    include those that are not known to be refusals, as `check` uses them if it is asked to be strict.
    """

    model: Model
    rules: Rules
    dialect: Dialect
    owned: bool = False
    cautious: bool = False


@final
class WireError(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a provider's error body, unchanged; `classify` reads it."""

    status: int | None = None
    code: str | None = None
    type: str | None = None
    message: str = ""


@final
class Violation(msgspec.Struct, frozen=True):
    """One reason why the provider would refuse a body: `code` is the kind of fault, `path` the place in that body.

    `grade` says how sure that is: `refused`, or `ignored` and `unsure`, which only a strict check reports.
    """

    code: CheckCode
    path: Path
    message: str
    grade: Grade = "refused"


class Fault(Protocol):
    """What is written of a failure; `segue.Failure` is one."""

    @property
    def kind(self) -> str:
        """One of the kinds of `segue.FailureKind`."""
        ...

    @property
    def status(self) -> int | None:
        """The HTTP status that the provider sent."""
        ...

    @property
    def message(self) -> str:
        """The text for the client."""
        ...

    @property
    def retry_after(self) -> float | None:
        """Seconds to wait."""
        ...

    @property
    def used(self) -> int | None:
        """Tokens of the request, for an overflow."""
        ...

    @property
    def limit(self) -> int | None:
        """The limit of tokens."""
        ...


class ErrorReply(NamedTuple):
    """An error as a provider would send it: the HTTP status, headers and the body."""

    status: int
    headers: dict[str, str]
    body: dict[str, object]
