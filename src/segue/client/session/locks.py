"""A lock that allows one writer for each session file.

Facts this file relies on:
- An `flock(2)` lock belongs to an open file description. A second `open` of the same file cannot lock it, not even in
  the same process. The lock ends with the process.                                                    (flock(2), Linux)
- `append_message` locks the session file itself for each line, so the long-lived lock is a file beside it:
  `<path>.lock`.
- Another process may remove the lock file between our `open` and our lock. So after locking, the path is checked again.
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

_LOCKED_ERRNOS: Final = frozenset({errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK, errno.EDEADLK})
"""The errors of a lock that is already held. Any other error means that the file system has no locks."""


class SessionLock:
    """Locks a session file from construction until `release`, or until the process ends.

    Raises:
        SessionLocked: another conversation holds the lock.
    """

    def __init__(self, path: StrPath) -> None:
        self._path = f"{os.fspath(path)}.lock"
        self._handle: int | None = None
        while self._handle is None:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                _lock(handle, self._path)
            except BaseException:
                os.close(handle)
                raise
            if _is_same_file(handle, self._path):
                self._handle = handle
            else:
                os.close(handle)  # the previous holder removed it: there is a new lock file, or none

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        handle, self._handle = self._handle, None
        if handle is not None:
            with suppress(OSError):  # Windows cannot remove a file that is open
                os.unlink(self._path)  # noqa: PTH108  # the path is a string
            os.close(handle)


def _lock(handle: int, path: str) -> None:
    try:
        if sys.platform == "win32":
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _LOCKED_ERRNOS:
            raise SessionLocked(
                f"another conversation is writing to {path.removesuffix('.lock')}; close it first, or use another file"
            ) from None
        # Some network file systems have no locks; there a second writer cannot be detected.


def _is_same_file(handle: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))  # noqa: PTH116  # the path is a string
    except FileNotFoundError:
        return False
