"""The calls of a turn that wait for their results, found by id, by name or in call order; each look-up is constant."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Generic, TypeVar

_Call = TypeVar("_Call")


class WaitingCalls(Generic[_Call]):
    """Calls without a result: `(id, name, call)` in call order. Ids and names may be equal."""

    def __init__(self, calls: Iterable[tuple[str, str | None, _Call]] = ()) -> None:
        self._waiting: dict[int, _Call] = {}
        self._order: deque[int] = deque()
        self._of_id: dict[str, deque[int]] = {}
        self._of_name: dict[str | None, deque[int]] = {}
        for position, (call_id, name, call) in enumerate(calls):
            self._waiting[position] = call
            self._order.append(position)
            self._of_id.setdefault(call_id, deque()).append(position)
            self._of_name.setdefault(name, deque()).append(position)

    def answer(self, call_id: str | None, name: str | None) -> _Call | None:
        """Take the call that a result answers: the one of its id, else the next one of its name, else the next one."""
        if call_id:
            positions = self._of_id.get(call_id)
        elif name:
            positions = self._of_name.get(name)
        else:
            positions = self._order
        while positions:
            call = self._waiting.pop(positions.popleft(), None)  # None: it was answered by its id or name
            if call is not None:
                return call
        return None
