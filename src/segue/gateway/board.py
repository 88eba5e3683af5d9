"""What the workers of one gateway share (`segue serve --workers`): numbers in memory, and calls to each other.

Budgets, keys, conversations and states are in the store, which is right for any number of gateways. The rest is here:
limits that hold for all workers together, failures of models, and what one of them has in memory alone.

- Numbers are in a file that every worker has mapped, by their kind and a digest of their name. Each worker writes its
  own row, so none needs a lock, and the row of one that died is cleared. Two names of a kind with the same place count
  together: with 1,000 names in use that happens to one in 65 of them, and matters only where both are near a limit.
  Kinds have other places: bytes that one client sends are never counted as requests of another.
- A worker is asked over a Unix socket in the folder of the board, which only this user can open. One that does not
  answer in time is left out: it died, and its successor has nothing in memory.

Facts:
- `time.monotonic` is the same clock in all processes of a machine.       (clock_gettime(2), CLOCK_MONOTONIC)
- Aligned numbers of 8 bytes are read and written in one piece on every machine that Python 3.11 supports.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from stat import S_ISDIR
from typing import Any, Final, Literal, TypeAlias, cast, final, get_args

import msgspec

from segue.gateway.logs import find_logger
from segue.gateway.store.database import StoreError

_LOG: Final = find_logger()
Kind: TypeAlias = Literal[
    "addresses", "connections", "failures", "held", "held of all", "resting", "running", "sockets", "until"
]
"""What is counted."""
_KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
_OF_KIND: Final = 1 << 16
_SLOTS: Final = _OF_KIND * len(_KINDS)
_BYTES: Final = 8
_MICRO: Final = 1_000_000
_PATIENCE: Final = 2.0
"""Seconds that a worker waits for the answer of another one."""
_MEMORY: Final = "/dev/shm"  # noqa: S108 - the folder in it is made for this user alone
_NUMBERS: Final = "numbers"
_PREFIX: Final = "segue-workers-"

Answer = Callable[[str, Mapping[str, Any]], Awaitable[object]]


@final
class Board:
    """The board of a gateway with `count` workers, as the worker at place `index` sees it."""

    def __init__(self, folder: Path, index: int, count: int) -> None:
        self.folder: Path = folder
        self.index: int = index
        self.count: int = count
        self._others = tuple(each for each in range(count) if each != index)
        self._salt = folder.name.encode()
        with (folder / _NUMBERS).open("r+b") as file:
            self._numbers = memoryview(mmap.mmap(file.fileno(), 0)).cast("q")
        self._server: asyncio.Server | None = None

    def __repr__(self) -> str:
        return f"Board({str(self.folder)!r}, {self.index}, {self.count})"

    # -- numbers -------------------------------------------------------------------------------------------------------

    def slot(self, kind: Kind, name: str) -> int:
        """Return the place of a name. Clients cannot choose names that share a place: they do not know the salt."""
        digest = blake2b(name.encode("utf-8", "replace"), digest_size=2, key=self._salt).digest()
        return _KINDS.index(kind) * _OF_KIND + int.from_bytes(digest)

    def add(self, slot: int, change: int) -> None:
        """Change the number of this worker."""
        self._numbers[self.index * _SLOTS + slot] += change

    def of_others(self, slot: int) -> int:
        """Add up the numbers of the other workers."""
        return sum([self._numbers[each * _SLOTS + slot] for each in self._others])

    def get_common(self, slot: int) -> int:
        """Return the number that all workers write."""
        return self._numbers[self.count * _SLOTS + slot]

    def set_common(self, slot: int, value: int) -> None:
        """Write the number that all workers write."""
        self._numbers[self.count * _SLOTS + slot] = value

    def clear(self, index: int) -> None:
        """Forget what a worker counted that has ended."""
        self._numbers[index * _SLOTS : (index + 1) * _SLOTS] = memoryview(bytes(_SLOTS * _BYTES)).cast("q")

    # -- files ---------------------------------------------------------------------------------------------------------

    def write(self, name: str, data: bytes) -> None:
        """Replace a file of the board."""
        written = self.folder / f"{name}.{self.index}.new"
        written.write_bytes(data)
        written.replace(self.folder / name)

    def read(self, name: str) -> bytes | None:
        """Read a file of the board; None if there is none."""
        try:
            return (self.folder / name).read_bytes()
        except OSError:
            return None

    # -- calls ---------------------------------------------------------------------------------------------------------

    async def listen(self, answer: Answer) -> None:
        """Answer what other workers ask; `answer` gets the name of a call and its arguments."""

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                given = cast("dict[str, Any]", msgspec.json.decode(await reader.read()))
                writer.write(msgspec.json.encode(await answer(str(given.pop("call")), given)))
                await writer.drain()
            except (StoreError, OSError, LookupError, TypeError, ValueError):  # the other goes on without an answer
                _LOG.exception("a call of another worker failed")
            finally:
                writer.close()

        place = self._place(self.index)
        place.unlink(missing_ok=True)  # of a worker that was killed
        self._server = await asyncio.start_unix_server(connected, place)

    async def close(self) -> None:
        """Answer no more."""
        if self._server is not None:
            self._server.close()
            self._place(self.index).unlink(missing_ok=True)

    async def ask(self, call: str, **given: object) -> dict[int, Any]:
        """Ask all other workers; return the answers of those that are there."""
        message = msgspec.json.encode({"call": call, **given})
        found = await asyncio.gather(*(self._ask(index, message) for index in self._others))
        return {index: each[0] for index, each in zip(self._others, found, strict=True) if each is not None}

    async def _ask(self, index: int, message: bytes) -> tuple[Any] | None:
        try:
            async with asyncio.timeout(_PATIENCE):
                reader, writer = await asyncio.open_unix_connection(self._place(index))
                try:
                    writer.write(message)
                    writer.write_eof()
                    return (msgspec.json.decode(await reader.read()),)
                finally:
                    writer.close()
        except (OSError, TimeoutError, msgspec.DecodeError):
            return None

    def _place(self, index: int) -> Path:
        return self.folder / f"{index}.socket"


def make_board(count: int) -> Path:
    """Make the folder of a board: in memory, where the system has a place for that."""
    where = _MEMORY if os.access(_MEMORY, os.W_OK | os.X_OK) else tempfile.gettempdir()
    for left in Path(where).glob(f"{_PREFIX}*"):
        owner = left.name.removeprefix(_PREFIX).partition("-")[0]
        with suppress(OSError):
            if owner.isdecimal() and _is_own_folder(left) and not _is_running(int(owner)):  # its supervisor was killed
                remove_board(left)
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=where))
    with (folder / _NUMBERS).open("wb") as file:
        file.truncate((count + 1) * _SLOTS * _BYTES)
    return folder


def _is_own_folder(path: Path) -> bool:
    """Whether a path is a folder of this user, and not a link: any user of the machine can make one there."""
    found = path.lstat()
    return S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's
        return True
    return True


def remove_board(folder: Path) -> None:
    """Remove the folder of a board."""
    for file in folder.iterdir():
        file.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


@final
class Tally:
    """Numbers by name: of this process or, with a board, of all workers together."""

    __slots__ = ("_board", "_kind", "_own")

    def __init__(self, kind: Kind, board: Board | None = None) -> None:
        self._kind: Kind = kind
        self._board = board
        self._own: dict[str, int] = {}

    def of(self, name: str) -> int:
        """Return the number of this process."""
        return self._own.get(name, 0)

    def sum(self) -> int:
        """Add up all numbers of this process."""
        return sum(self._own.values())

    def take(self, name: str, change: int, most: float) -> bool:
        """Count, and return True, unless that is more than `most`.

        With a board it is counted before it is compared: of two workers that take the last place at once, one gets it
        at most.
        """
        board = self._board
        if board is None:
            own = self._own.get(name, 0) + change
            if own > most:
                return False
            if own:
                self._own[name] = own
            return True
        self.add(name, change)
        if self._own.get(name, 0) + board.of_others(board.slot(self._kind, name)) <= most:
            return True
        self.add(name, -change)
        return False

    def add(self, name: str, change: int) -> None:
        """Count."""
        own = self._own.get(name, 0) + change
        if own:
            self._own[name] = own
        else:
            self._own.pop(name, None)
        if self._board is not None:
            self._board.add(self._board.slot(self._kind, name), change)


@final
class CommonNumbers:
    """Numbers by name that all workers read and write, as a mapping; 0 is none. Millionths are kept."""

    __slots__ = ("_board", "_kind")

    def __init__(self, kind: Kind, board: Board) -> None:
        self._kind: Kind = kind
        self._board = board

    def get(self, name: tuple[str, str], default: float = 0.0, /) -> float:
        """Return a number."""
        return self._board.get_common(self._slot(name)) / _MICRO or default

    def pop(self, name: tuple[str, str], default: None = None, /) -> float | None:
        """Remove a number."""
        slot = self._slot(name)
        found = self._board.get_common(slot)
        if found:  # another worker's reading of the memory is not disturbed for nothing
            self._board.set_common(slot, 0)
        return found / _MICRO if found else default

    def __setitem__(self, name: tuple[str, str], value: float) -> None:
        self._board.set_common(self._slot(name), round(value * _MICRO))

    def _slot(self, name: tuple[str, str]) -> int:
        return self._board.slot(self._kind, "\x00".join(name))
