"""The interface between the request flow, which does no I/O, and the shells, which do all of it.

The flow is a generator that yields steps. A shell performs each step and sends the answer back. Nothing else passes
between them, so a test can run the flow without a network, a clock or random numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import ClassVar, Final, Literal, TypeAlias, final

import msgspec

from segue.client.flow.attempts import Attempt
from segue.conversation.context import Context
from segue.conversation.events import Event
from segue.failures.failure import FailureKind
from segue.projection.requirements import SummaryWanted
from segue.requests.prepare import Request


@final
class Now(msgspec.Struct, frozen=True):
    """Read the clocks and a random number. The answer is a `Moment`."""

    kind: ClassVar[Literal["now"]] = "now"


@final
class Send(msgspec.Struct, frozen=True):
    """Send a request. The answer is the `Head` of the reply, or `Broken`."""

    kind: ClassVar[Literal["send"]] = "send"
    request: Request


@final
class Summarise(msgspec.Struct, frozen=True):
    """Summarise messages that are left out of a request. The answer is `Summarised`, or None for no summary."""

    kind: ClassVar[Literal["summarise"]] = "summarise"
    context: Context
    request: Request
    wanted: SummaryWanted


@final
class Read(msgspec.Struct, frozen=True):
    """Read the next bytes. The answer is bytes, None at the end, or `Broken`."""

    kind: ClassVar[Literal["read"]] = "read"


@final
class ReadEvents(msgspec.Struct, frozen=True):
    """Read chunks and decode them with `feed`; with `emits`, pass the events to the caller as they arrive.

    The answer is the list of events that ends with the terminal one, which is not passed on; None if the bytes end
    before that; or `Broken`. The shell handles a stream alone until it ends, because each step costs time.
    """

    kind: ClassVar[Literal["read_events"]] = "read_events"
    feed: Callable[[bytes], list[Event]]
    emits: bool


@final
class Drain(msgspec.Struct, frozen=True):
    """The reply is complete: read the few remaining bytes, so that the connection can be reused, and release it."""

    kind: ClassVar[Literal["drain"]] = "drain"


@final
class Close(msgspec.Struct, frozen=True):
    """Release the reply, even if it is incomplete."""

    kind: ClassVar[Literal["close"]] = "close"


@final
class Wait(msgspec.Struct, frozen=True):
    """Wait for a number of seconds."""

    kind: ClassVar[Literal["wait"]] = "wait"
    seconds: float


@final
class Note(msgspec.Struct, frozen=True):
    """An attempt has ended: call the `on_attempt` hooks."""

    kind: ClassVar[Literal["note"]] = "note"
    attempt: Attempt


@final
class Emit(msgspec.Struct, frozen=True):
    """Pass the last events to the caller. The final event is terminal, and no step follows this one."""

    kind: ClassVar[Literal["emit"]] = "emit"
    events: Sequence[Event]


Step: TypeAlias = Now | Summarise | Send | Read | ReadEvents | Drain | Close | Wait | Note | Emit


@final
class Moment(msgspec.Struct, frozen=True):
    """Seconds of a monotonic clock, Unix milliseconds, and a random number from 0 to 1."""

    clock: float
    unix_ms: int
    chance: float


@final
class Summarised(msgspec.Struct, frozen=True):
    """The conversation with a summary, or why there is none."""

    context: Context | None = None
    problem: str = ""


@final
class Head(msgspec.Struct, frozen=True):
    """Status and headers of a reply; header names are in lower case."""

    status: int
    headers: Mapping[str, str]


@final
class Broken(msgspec.Struct, frozen=True):
    """The step failed; `text` is the reason and contains no secret.

    `is_unanswered`: the whole request was sent, and the client stopped waiting for the answer. It may be billed.
    """

    text: str
    kind: FailureKind = FailureKind.NETWORK
    is_unanswered: bool = False


Answer: TypeAlias = Moment | Summarised | Head | bytes | list[Event] | Broken | None
Steps: TypeAlias = Generator[Step, Answer, None]

NOW: Final = Now()
READ: Final = Read()
DRAIN: Final = Drain()
CLOSE: Final = Close()


class Aborted(Exception):  # thrown into a flow to end it; the flow never raises it
    """The caller closed the stream."""

    def __init__(self, reason: str = "the request was aborted") -> None:
        super().__init__(reason)
        self.reason = reason
