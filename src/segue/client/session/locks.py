"""A lock that allows one writer for each session file, whatever path leads to it.

Facts:
- An `flock(2)` lock belongs to an open file description. A second `open` of the same file cannot lock it, not even in
  the same process. The lock ends with the process.                                                    (flock(2), Linux)
- `append_message` locks the session file itself for each line, so the long-lived lock is a file next to it:
  `<path>.lock`. It is next to the real file: all symbolic links to a session lead to one lock file.
- Hard links are different real paths of one file. On Linux a lock of a byte range by an open file description locks the
  file itself, and does not affect `flock`. NFS implements both as one: there `append_message` would wait for us, so the
  second lock is given up.                                                                 (fcntl(2), flock(2), Linux)
- Another process may remove the lock file between our `open` and our lock. So after locking, the path is checked again.
- On Windows the standard library locks a range of bytes, which also ends with the process.     (msvcrt documentation)
"""

from __future__ import annotations

import errno
import os
import struct
import sys
from contextlib import suppress
from typing import Final

from segue.errors import SessionLocked
from segue.histories.sessions import StrPath, refuse_device

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_LOCKED_ERRNOS: Final = frozenset({errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK, errno.EDEADLK})
"""The errors of a lock that is already held. Any other error means that the file system has no locks."""

_LOCKED_BYTE: Final = 1 << 62
"""The byte of a session file that is locked for as long as a conversation writes to it; no file is that long."""


class SessionLock:
    """Locks a session file from construction until `release`, or until the process ends.

    Raises:
        SessionLocked: another conversation holds the lock.
    """

    def __init__(self, path: StrPath) -> None:
        refuse_device(path)  # before a lock file is created next to it
        self._session = os.fspath(path)
        self._path = f"{os.path.realpath(path)}.lock"
        self._handle: int | None = None
        self._file: int | None = None
        while self._handle is None:
            handle = _open(self._path, self._session)
            try:
                _lock(handle, self._session)
            except BaseException:
                os.close(handle)
                raise
            if _is_same_file(handle, self._path):
                self._handle = handle
            else:
                os.close(handle)  # the previous holder removed it: there is a new lock file, or none
        try:
            self.lock_file()
        except BaseException:
            self.release()
            raise

    def lock_file(self) -> None:
        """Lock the file itself, once it exists: another hard link to it has another lock file.

        Raises:
            SessionLocked: another conversation writes to the file through another link.
        """
        if self._file is None and self._handle is not None:
            self._file = _lock_file(self._session)

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        handle, self._handle = self._handle, None
        file, self._file = self._file, None
        if file is not None:
            os.close(file)
        if handle is not None:
            with suppress(OSError):  # Windows cannot remove a file that is open
                os.unlink(self._path)  # noqa: PTH108  # the path is a string
            os.close(handle)


def _open(path: str, session: str) -> int:
    """Open the lock file; an error names the session file or its folder, which the caller knows."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        if error.errno is None:
            raise
        folder = os.path.dirname(session) or os.curdir  # noqa: PTH120  # the path is a string
        if not os.path.exists(folder):  # noqa: PTH110
            raise FileNotFoundError(error.errno, "the folder of the session file does not exist", folder) from None
        reason = f"cannot create the lock file next to the session: {error.strerror}"
        raise OSError(error.errno, reason, session) from None


def _lock(handle: int, session: str) -> None:
    try:
        if sys.platform == "win32":
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _LOCKED_ERRNOS:
            raise _locked(session) from None
        # Some network file systems have no locks; there a second writer cannot be detected.


def _lock_file(session: str) -> int | None:
    """Lock a byte of an existing session file and return its handle; None where that is not possible."""
    if sys.platform != "linux":
        return None
    try:
        handle = os.open(session, os.O_RDWR)
    except OSError:
        return None  # it does not exist yet, or cannot be written; reading or appending raises the error
    is_kept = False
    try:
        request = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, _LOCKED_BYTE, 1, 0)
        fcntl.fcntl(handle, fcntl.F_OFD_SETLK, request)
        is_kept = not _blocks_appends(session)
    except OSError as error:
        if error.errno in _LOCKED_ERRNOS:
            raise _locked(session) from None
    finally:
        if not is_kept:
            os.close(handle)
    return handle if is_kept else None


def _blocks_appends(session: str) -> bool:
    """Whether the lock that was just taken also keeps `append_message` out, as on network file systems."""
    probe = os.open(session, os.O_RDWR)
    try:
        fcntl.flock(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in _LOCKED_ERRNOS
    else:
        return False
    finally:
        os.close(probe)


def _locked(session: str) -> SessionLocked:
    return SessionLocked(f"another conversation is writing to {session}; close it first, or use another file")


def _is_same_file(handle: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))  # noqa: PTH116  # the path is a string
    except FileNotFoundError:
        return False
