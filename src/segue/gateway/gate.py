"""The fair gate: which request works on the event loop next, by the CPU time that its client used of late.

Every request passes it before its body is read, and every message of a WebSocket before it is parsed. A request has a
turn until it goes to its provider. Clients are named by their key, else by their address or connection; a name's debt
is the CPU time of its requests, which halves every two seconds.

- Of the names that wait, the one with the least debt begins next.
- Few requests of a name have a turn at once. One that only waits, for its client or a database, gives its place up.
- A name does not begin while a request of a poorer one is under way, for a tenth of a second at most.

Facts:
- Admission alone does not help: each later step of a request waits for one step of every other that has begun. With 40
  connections of one key, another client's p50 went from 6 ms to 5 s; with the rules 100 ms. (measured 2026-11-18)
- `time.thread_time` counts the thread's own CPU time; a step of a task runs in one piece between two awaits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from time import monotonic, thread_time
from typing import Any, Final, TypeVar, final

T = TypeVar("T")

TURN: Final = "segue.turn"
"""Where the scope of a request has its turn."""

_HALF_LIFE: Final = 2.0
_PLACES: Final = 2
"""Requests of one name that have a turn at once."""
_HOLD: Final = 0.1
"""Seconds that a name waits at most for requests of poorer ones that are under way."""
_RICHER: Final = 0.01
"""Seconds of CPU time by which a name is richer than another: ordinary clients do not wait for each other."""
_MUCH: Final = 0.25
"""A debt, in seconds, from which the work of a client is done in a thread while others are served."""
_IDLE: Final = 0.05
"""Seconds without a step after which a request gives up its place, if others of its name wait for one."""
_NO_DEBT: Final = 0.0, 0.0
_MOST_NAMES: Final = 10_000
_PAID: Final = 0.0001
"""A debt that is forgotten, in seconds, when there are many names."""


@final
class GateTurn:
    """The turn of one request, or of one connection that sends several: `leave` ends it, `renew` waits for it again."""

    __slots__ = ("_gate", "began", "has_place", "name", "steps", "threads")

    def __init__(self, gate: Gate, name: str) -> None:
        self._gate = gate
        self.name: str = name
        self.has_place: bool = False
        self.began: float = 0.0
        self.steps: int = 0
        """How often the request was resumed, to see whether it only waits."""
        self.threads: int = 0
        """Pieces of its work that run or wait for a thread."""

    @property
    def works_apart(self) -> bool:
        """Whether the work of the request belongs in a thread: its client used much CPU time, and others are there."""
        return self._gate.is_shared and self._gate.debt(self.name) > _MUCH

    async def renew(self) -> None:
        """Wait for a place, if the request has none any more: it waited for something else so long."""
        if not self.has_place:
            await self._gate.wait(self)

    def leave(self) -> None:
        """Free the place."""
        self._gate.leave(self)

    def finish(self) -> None:
        """Note that the reply is there: no richer name begins before it is sent. It takes no place."""
        self._gate.finish(self)

    async def in_thread(self, run: Callable[[Callable[[], T]], Awaitable[T]], work: Callable[[], T]) -> T:
        """Run work by `run`, in another thread, and count its CPU time as the request's own."""
        spent: list[float] = []
        cpu = self._gate.cpu

        def measured() -> T:
            began = cpu()
            try:
                return work()
            finally:
                spent.append(cpu() - began)

        self.threads += 1
        try:
            return await run(measured)
        finally:
            self.threads -= 1
            self._gate.charge(self.name, sum(spent))


class Gate:
    """The turns of all clients. `clock` is a monotonic clock, `cpu` gives the CPU time of the thread, in seconds."""

    def __init__(self, *, clock: Callable[[], float] = monotonic, cpu: Callable[[], float] = thread_time) -> None:
        self.cpu: Callable[[], float] = cpu
        self._clock = clock
        self._debts: dict[str, tuple[float, float]] = {}
        self._waiting: dict[str, deque[tuple[GateTurn, asyncio.Future[None]]]] = {}
        self._running: dict[str, set[GateTurn]] = {}
        self._finishing: set[GateTurn] = set()
        self._held: dict[str, float] = {}  # since when a name waits for poorer ones
        self._last: str | None = None
        self._changed = float("-inf")  # when another name was served than before
        self._is_due = False
        self._timer: asyncio.TimerHandle | None = None
        self.on_step: Callable[[str, float], object] | None = None
        """Gets the name and the CPU seconds of each step on the event loop, for tests and debugging."""

    # -- debts ---------------------------------------------------------------------------------------------------------

    def debt(self, name: str) -> float:
        """Return the CPU seconds that a name used of late."""
        used, at = self._debts.get(name, _NO_DEBT)
        return used * 0.5 ** ((self._clock() - at) / _HALF_LIFE)

    def charge(self, name: str, seconds: float) -> None:
        """Count CPU time."""
        known = self._debts.get(name)
        if known is None and len(self._debts) >= _MOST_NAMES:
            kept = {each: found for each, found in self._debts.items() if self.debt(each) > _PAID}
            self._debts = kept if len(kept) < _MOST_NAMES else {}
        now, (used, at) = self._clock(), known or _NO_DEBT
        self._debts[name] = used * 0.5 ** ((now - at) / _HALF_LIFE) + seconds, now
        if name != self._last:
            self._last, self._changed = name, self._changed if self._last is None else now

    @property
    def is_shared(self) -> bool:
        """Whether several names were served of late."""
        return self._clock() - self._changed < _HALF_LIFE

    # -- turns ---------------------------------------------------------------------------------------------------------

    def begin(self, name: str) -> GateTurn:
        """Make the turn of a request; it ends with `leave`. It has its place at once, or `renew` waits for it."""
        turn = GateTurn(self, name)
        if self._is_free(name):
            self._begin(turn)
        return turn

    async def enter(self, name: str) -> GateTurn:
        """Wait for the turn of a request."""
        turn = self.begin(name)
        await turn.renew()
        return turn

    def _is_free(self, name: str) -> bool:
        return not self._waiting and self._has_room(name) and not self._is_held(name)

    async def wait(self, turn: GateTurn) -> None:
        """Wait until a turn has a place."""
        if self._is_free(turn.name):
            self._begin(turn)
            return
        future = asyncio.get_running_loop().create_future()
        queue = self._waiting.setdefault(turn.name, deque())
        queue.append((turn, future))
        self._look_soon()
        try:
            await future
        except asyncio.CancelledError:
            if turn.has_place:
                self.leave(turn)
            elif (turn, future) in queue:
                queue.remove((turn, future))
                if not queue and self._waiting.get(turn.name) is queue:
                    del self._waiting[turn.name]
            raise

    def leave(self, turn: GateTurn) -> None:
        """End a turn, or let it go on without its place."""
        if self._finishing:
            self._finishing.discard(turn)
        if turn.has_place:
            turn.has_place = False
            places = self._running[turn.name]
            places.discard(turn)
            if not places:
                del self._running[turn.name]
        if self._waiting:
            self._look_soon()

    def finish(self, turn: GateTurn) -> None:
        """Count a turn without a place as under way, until it leaves."""
        turn.began = self._clock()
        if not turn.has_place:
            self._finishing.add(turn)

    def metered(self, turn: GateTurn, work: Coroutine[Any, Any, T]) -> Awaitable[T]:
        """Await work, and charge the CPU time of each of its steps to the name of the turn."""
        return _Metered(self, turn, work)

    def _has_room(self, name: str) -> bool:
        return len(self._running.get(name, ())) < _PLACES

    def _is_held(self, name: str) -> bool:
        """Whether a request of a poorer name is under way, and the name has not waited long for that."""
        if not self._finishing and self._running.keys() <= {name}:
            return False  # there is no other one
        own = self.debt(name) - _RICHER
        if own < 0:
            return False
        now = self._clock()
        if now - self._held.get(name, now) >= _HOLD:
            return False
        under_way = {
            turn.name
            for turns in (*self._running.values(), self._finishing)
            for turn in turns
            if turn.name != name and now - turn.began < _HOLD
        }
        return any(self.debt(other) < own for other in under_way)

    def _begin(self, turn: GateTurn) -> None:
        turn.has_place = True
        turn.began = self._clock()
        self._held.pop(turn.name, None)
        self._running.setdefault(turn.name, set()).add(turn)

    def _look_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        """Begin one request; the next is chosen when it has made its first step, and its cost is known."""
        self._is_due = False
        ready = [name for name in self._waiting if self._has_room(name)]
        chosen = min(ready, key=self.debt, default=None)
        if chosen is None or self._is_held(chosen):
            if chosen is not None:
                self._held.setdefault(chosen, self._clock())
            if self._waiting and self._timer is None:
                seen = {turn: turn.steps for turns in self._running.values() for turn in turns}
                later = asyncio.get_running_loop().call_later
                self._timer = later(_IDLE, self._drop_idle, seen)
            return
        queue = self._waiting[chosen]
        turn, future = queue.popleft()
        if not queue:
            del self._waiting[chosen]
        if not future.done():
            self._begin(turn)
            future.set_result(None)
        if self._waiting:
            self._look_soon()

    def _drop_idle(self, seen: dict[GateTurn, int]) -> None:
        """Take the places of requests that made no step since they were seen."""
        self._timer = None
        for turn, steps in seen.items():
            if turn.has_place and turn.steps == steps and not turn.threads:
                self.leave(turn)
        self._look_soon()


class _Metered:
    """Awaits a coroutine step by step."""

    __slots__ = ("_gate", "_turn", "_work")

    def __init__(self, gate: Gate, turn: GateTurn, work: Coroutine[Any, Any, Any]) -> None:
        self._gate = gate
        self._turn = turn
        self._work = work

    def __await__(self) -> Generator[Any, Any, Any]:
        gate, turn, work = self._gate, self._turn, self._work
        cpu, name = gate.cpu, turn.name
        given: BaseException | None = None
        while True:
            turn.steps += 1
            began = cpu()
            try:
                waits_for = work.send(None) if given is None else work.throw(given)
            except StopIteration as ended:
                return ended.value
            finally:
                spent = cpu() - began
                gate.charge(name, spent)
                if gate.on_step is not None:
                    gate.on_step(name, spent)
            given = None
            try:
                yield waits_for
            except BaseException as error:  # noqa: BLE001 - whatever it is, the work gets it
                given = error
