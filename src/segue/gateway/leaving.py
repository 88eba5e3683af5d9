"""Who has to learn that a client left: the requests of its connection that wait for a provider.

An application learns it from a task that waits for the message of the server, for each request. The gateway's own
server calls instead, which costs nothing while the client stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

LEAVING: Final = "segue.leaving"
"""Where the scope of a request has the `Connection`, if the server is the gateway's own."""


@final
class Connection:
    """The connection of a client, to those who wait for its end."""

    __slots__ = ("_calls", "is_gone")

    def __init__(self) -> None:
        self._calls: list[Callable[[], object]] = []
        self.is_gone: bool = False

    def add(self, call: Callable[[], object]) -> None:
        """Call a function when the client leaves; at once, if it did."""
        if self.is_gone:
            call()
        else:
            self._calls.append(call)

    def remove(self, call: Callable[[], object]) -> None:
        """Call a function no more."""
        if call in self._calls:
            self._calls.remove(call)

    def end(self) -> None:
        """Note that the client left."""
        self.is_gone = True
        calls, self._calls = self._calls, []
        for call in calls:
            call()
