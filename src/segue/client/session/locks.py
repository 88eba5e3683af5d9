"""One writer for one session file.

Facts this file rests on:
- A lock of `flock(2)` belongs to an open file: a second open of the same file is refused it, in the same process too,
  and it ends with the process, however that ends.                                                     (flock(2), Linux)
- `append_message` locks the session file itself for each line, so the lock for longer stands beside it: `<path>.lock`.
- Whoever removes a lock file may remove one that another has just opened: so the name is looked up again after locking.
- On Windows the standard library locks a range of bytes, which also ends with the process.     (msvcrt documentation)
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from typing import Final

from segue.errors import SessionLocked
from segue.sessions import StrPath

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_TAKEN: Final = frozenset({errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK, errno.EDEADLK})
"""How a system says that someone else has the lock; other errors mean that it has no locks there."""


class SessionLock:
    """Held from when it is made until it is released, or its process is gone.

    Raises:
        SessionLocked: someone else holds it.
    """

    def __init__(self, path: StrPath) -> None:
        self._path = f"{os.fspath(path)}.lock"
        self._handle: int | None = None
        while self._handle is None:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                _take(handle, self._path)
            except BaseException:
                os.close(handle)
                raise
            if _is_there(handle, self._path):
                self._handle = handle
            else:
                os.close(handle)  # it was removed by the one who held it before: there is a new one, or none

    def release(self) -> None:
        """Let others write; releasing twice does nothing."""
        handle, self._handle = self._handle, None
        if handle is not None:
            with suppress(OSError):  # Windows keeps the name of a file that is open
                os.unlink(self._path)  # noqa: PTH108  # the path is a string all along
            os.close(handle)


def _take(handle: int, path: str) -> None:
    try:
        if sys.platform == "win32":
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _TAKEN:
            raise SessionLocked(f"another conversation writes to {path.removesuffix('.lock')}") from None
        # Some network file systems have no locks; there nobody can be kept out.


def _is_there(handle: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))  # noqa: PTH116  # the same as above
    except FileNotFoundError:
        return False
