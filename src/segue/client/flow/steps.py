"""What the flow asks of the world, and what the world answers: the whole of the talk between `flow` and the shells.

The flow is a generator that yields steps; a shell does what a step says and sends the answer in. Nothing else passes
between them, so whatever a shell does, the flow can be run in a test without a network, a clock or chance.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import ClassVar, Final, Literal, TypeAlias, final

import msgspec

from segue.client.flow.attempts import Attempt
from segue.conversation.events import Event
from segue.failures.failure import FailureKind
from segue.request import Request


@final
class Now(msgspec.Struct, frozen=True):
    """What time is it, and which way does chance fall? The answer is a `Moment`."""

    kind: ClassVar[Literal["now"]] = "now"


@final
class Send(msgspec.Struct, frozen=True):
    """Send a request. The answer is the `Head` of the reply, or `Broken`."""

    kind: ClassVar[Literal["send"]] = "send"
    request: Request


@final
class Read(msgspec.Struct, frozen=True):
    """Read on. The answer is bytes, None at the end, or `Broken`."""

    kind: ClassVar[Literal["read"]] = "read"


@final
class ReadEvents(msgspec.Struct, frozen=True):
    """Read on, chunk by chunk, and make events of it with `feed`; with `emits`, hand them to the caller as they come.

    The answer is the list of events that ends in a terminal one, which is not handed on; None when the bytes end before
    that, or `Broken`. A stream is in the shell's hands while it flows, which is where its cost lies, and in the flow's
    again when it ends.
    """

    kind: ClassVar[Literal["read_events"]] = "read_events"
    feed: Callable[[bytes], list[Event]]
    emits: bool


@final
class Drain(msgspec.Struct, frozen=True):
    """The reply is whole: take in what little the connection still brings, so that it can be used again; let go."""

    kind: ClassVar[Literal["drain"]] = "drain"


@final
class Close(msgspec.Struct, frozen=True):
    """Let go of the reply, wherever it stands."""

    kind: ClassVar[Literal["close"]] = "close"


@final
class Wait(msgspec.Struct, frozen=True):
    """Do nothing for so many seconds."""

    kind: ClassVar[Literal["wait"]] = "wait"
    seconds: float


@final
class Note(msgspec.Struct, frozen=True):
    """An attempt is over: whoever wants to know is told."""

    kind: ClassVar[Literal["note"]] = "note"
    attempt: Attempt


@final
class Emit(msgspec.Struct, frozen=True):
    """Hand the last events to the caller; the final one is terminal, and no step comes after this one."""

    kind: ClassVar[Literal["emit"]] = "emit"
    events: Sequence[Event]


Step: TypeAlias = Now | Send | Read | ReadEvents | Drain | Close | Wait | Note | Emit


@final
class Moment(msgspec.Struct, frozen=True):
    """Seconds of a clock that never goes back, Unix milliseconds, and a number from 0 to 1."""

    clock: float
    unix_ms: int
    chance: float


@final
class Head(msgspec.Struct, frozen=True):
    """The beginning of a reply; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]


@final
class Broken(msgspec.Struct, frozen=True):
    """What was asked could not be done; `text` says why and holds no secret."""

    text: str
    kind: FailureKind = FailureKind.NETWORK


Answer: TypeAlias = Moment | Head | bytes | list[Event] | Broken | None
Steps: TypeAlias = Generator[Step, Answer, None]

NOW: Final = Now()
READ: Final = Read()
DRAIN: Final = Drain()
CLOSE: Final = Close()


class Aborted(Exception):  # it is thrown into a flow to end it, and never leaves it
    """The caller does not want any more."""

    def __init__(self, reason: str = "the request was aborted") -> None:
        super().__init__(reason)
        self.reason = reason
