"""How much of the target's window a request takes, and where it was cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from segue.conversation.messages import Message


@final
class Window:
    """The window of a projection.

    `limit` is the most tokens that the input may have, `window` the most of input and output together, `estimate` what
    the input has, `share` the part of the limit that it takes. Messages before `lean` are shortened and messages before
    `gone` left out, except the first user message; both are indexes of the given conversation, 0 if nothing was cut.
    The estimate is made when it is first read.
    """

    __slots__ = ("_closer", "_estimate", "_make", "_most", "anchor", "gone", "lean", "limit", "window")

    def __init__(
        self,
        limit: int,
        window: int,
        estimate: Callable[[], int],
        *,
        lean: int = 0,
        gone: int = 0,
        most: float = 0.0,
        closer: Callable[[], float] | None = None,
    ) -> None:
        self.limit: int = limit
        self.window: int = window
        self.lean: int = lean
        self.gone: int = gone
        self._make = estimate
        self._estimate: int | None = None
        self._most = most
        self._closer = closer
        """Computes a closer upper bound, for less than the estimate costs."""
        self.anchor: tuple[int, Message] | None = None
        """The index of the last shortened message in the projection, and the message with a cache mark."""

    @property
    def estimate(self) -> int:
        """The estimated input tokens."""
        if self._estimate is None:
            self._estimate = self._make()
        return self._estimate

    @property
    def share(self) -> float:
        """The part of the limit that the request takes."""
        return self.estimate / self.limit

    @property
    def most(self) -> float:
        """An upper bound of the estimate, known without counting."""
        return self._most or self.estimate

    def left(self, asked: int) -> int | None:
        """Return the tokens that are left for the reply if they are fewer than asked for; None if there is room."""
        if self.window - self.most >= asked:
            return None
        if self._closer is not None and self._estimate is None:
            self._most, self._closer = self._closer(), None
            if self.window - self._most >= asked:
                return None
        left = max(1, self.window - self.estimate)
        return left if left < asked else None

    def __reduce__(self) -> tuple[Callable[..., Window], tuple[int, int, int, int, int]]:
        return _restore, (self.limit, self.window, self.estimate, self.lean, self.gone)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Window) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash((self.limit, self.lean, self.gone))

    def __repr__(self) -> str:
        return f"Window(limit={self.limit}, estimate={self.estimate}, lean={self.lean}, gone={self.gone})"


def _restore(limit: int, window: int, estimate: int, lean: int, gone: int) -> Window:
    return Window(limit, window, lambda: estimate, lean=lean, gone=gone)
