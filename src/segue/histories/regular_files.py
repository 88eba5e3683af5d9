"""Open files that anyone may have written or replaced: regular files only, without waiting and without links outwards.

Facts:
- Opening a pipe to read it waits for a writer; with O_NONBLOCK it does not, and a regular file ignores the flag.
                                                                                                  (POSIX, open(2))
- Some files below /proc and /sys are regular by their mode and still wait for data; O_NONBLOCK makes the read fail.
                                                                                                  (proc(5))
- A file can have a size of terabytes without a byte on the disk; SEEK_HOLE finds the first place without data.
                                                                                                  (lseek(2))
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from io import FileIO
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias, final

from segue.errors import LoadError

LARGEST: Final = 2**31
"""The largest file that is read, in bytes: larger ones are refused with an error instead of filling the memory."""
_SPARSE: Final = 2**26
"""The largest file that may have holes. Programs write sessions without holes."""
_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_WINDOW: Final = 2**20
"""Bytes of a long file that are in memory."""
Watch: TypeAlias = Callable[[int, int], None]
"""Is given the position in a long file, and its size."""
WATCH: Final[ContextVar[Watch | None]] = ContextVar("WATCH", default=None)
"""The listener for how far a long file was read: a command that shows its progress."""
_SIDE_FILES: Final = ("-wal", "-shm", "-journal")


def open_regular(path: Path, *, largest: int | None = LARGEST) -> FileIO:
    """Open a regular file to read it. A pipe, a device or a socket is not waited for.

    `largest` is the largest size that is allowed; None if only a part of the file is read.

    Raises:
        LoadError: it is not a regular file, is too large, or is a large file with holes.
        OSError, ValueError: it cannot be opened.
    """
    # Opening some devices has side effects, so the kind is looked at first. It may be replaced in between.
    _check_kind(os.stat(path).st_mode, path)  # noqa: PTH116 - accepts the same path as os.open
    handle = os.open(path, _FLAGS)
    try:
        status = os.fstat(handle)
        _check_kind(status.st_mode, path)
        if largest is not None:
            if status.st_size > largest:
                raise LoadError(  # noqa: TRY301 - closes the file
                    f"{path} has {status.st_size} bytes; files of more than {largest} bytes are not read"
                )
            if status.st_size > _SPARSE and _has_holes(handle, status.st_size):
                raise LoadError(  # noqa: TRY301 - closes the file
                    f"{path} has {status.st_size} bytes, and parts of it have no data; it is not read. No program"
                    " writes its sessions like that"
                )
        return FileIO(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_regular(path: Path, *, largest: int | None = None) -> bytes:
    """Read a whole regular file.

    Raises:
        LoadError: as `open_regular`.
        OSError, ValueError: it cannot be read.
    """
    limit = LARGEST if largest is None else largest
    with open_regular(path, largest=limit) as file:
        data = file.readall()
    if data is None:  # pyright: ignore[reportUnnecessaryComparison] - a file below /proc that waits for data
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN), str(path))
    return data


@final
class LongFile:
    """A file that stays on the disk: parts of it are read when they are asked for, with the methods of bytes.

    A file that others shorten meanwhile has fewer bytes; a mapping of it would end the process.
    """

    def __init__(self, file: FileIO) -> None:
        self._handle: Final = os.dup(file.fileno())
        self._size: Final = os.fstat(self._handle).st_size
        self._start = 0
        self._window = b""
        self._watch: Final = WATCH.get()

    def __del__(self) -> None:
        """Close the file."""
        os.close(self._handle)

    def __len__(self) -> int:
        """Return the size that the file had when it was opened."""
        return self._size

    def __getitem__(self, part: slice) -> bytes:
        """Read a part."""
        start, stop, _ = part.indices(self._size)
        end = self._start + len(self._window)
        if start < self._start or start > end + _WINDOW:
            # Far from the window, as a line that is looked at again: the window would go back and forth.
            return os.pread(self._handle, max(stop - start, 0), start)
        if stop > end:
            self._move(start, stop - start)
        return self._window[start - self._start : stop - self._start]

    def find(self, text: bytes, start: int = 0, end: int | None = None) -> int:
        """Find a byte; -1 if it does not occur."""
        end = self._size if end is None else min(end, self._size)
        while start < end:
            if not self._start <= start < self._start + len(self._window):
                self._move(start, 1)
                if not self._window:
                    return -1
            found = self._window.find(text, start - self._start, end - self._start)
            if found >= 0:
                return found + self._start
            start = self._start + len(self._window)
        return -1

    def startswith(self, text: bytes, start: int = 0) -> bool:
        """Whether the part at this place begins with a text."""
        return self[start : start + len(text)] == text

    def endswith(self, text: bytes, start: int, end: int) -> bool:
        """Whether a part ends with a text."""
        return self[max(start, end - len(text)) : end] == text

    def _move(self, start: int, length: int) -> None:
        """Read the part from this place on, at least a window."""
        self._window = b""  # the old one is not needed while the new one is read
        self._window = os.pread(self._handle, max(length, _WINDOW), start)
        self._start = start
        if self._watch is not None:
            self._watch(start, self._size)


def _check_kind(mode: int, path: Path) -> None:
    if stat.S_ISDIR(mode):
        raise LoadError(f"{path} is a folder; name a session file in it")
    if not stat.S_ISREG(mode):
        raise LoadError(f"{path} is not a regular file; read it first, or send it in a pipe")


def _has_holes(handle: int, size: int) -> bool:
    if not hasattr(os, "SEEK_HOLE"):
        return False
    try:
        return os.lseek(handle, 0, os.SEEK_HOLE) < size
    except OSError:  # a file system that does not know
        return False
    finally:
        os.lseek(handle, 0, os.SEEK_SET)


def check_database(path: Path) -> int:
    """Check the files of an SQLite database before SQLite opens them; return their size.

    Raises:
        LoadError: one of them is not a regular file or is too large; SQLite would wait for a pipe.
        OSError, ValueError: the database cannot be opened.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
    for end in _SIDE_FILES:
        beside = path.with_name(path.name + end)
        with suppress(FileNotFoundError):
            status = beside.lstat()
            if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
                raise LoadError(f"{beside}, which SQLite would read, is not a regular file, or too large; remove it")
            size += status.st_size
    return size


def files_below(root: Path, pattern: str) -> Iterator[Path]:
    """Yield the regular files below a folder that match a pattern. A link that leads out of the folder is not followed.

    The folder itself, and the part of the pattern without wildcards, may be links: a user may have moved them. A
    folder that cannot be read has no files.
    """
    parts = PurePosixPath(pattern).parts
    fixed = next((at for at, part in enumerate(parts) if "*" in part), len(parts) - 1)
    base = root.joinpath(*parts[:fixed])
    inside: dict[Path, bool] = {}
    try:
        real = base.resolve()
        for path in base.glob("/".join(parts[fixed:])):
            folder = path.parent
            if folder not in inside:
                inside[folder] = folder.resolve().is_relative_to(real)
            if inside[folder] and _is_file_inside(path, real):
                yield path
    except (OSError, ValueError, RuntimeError):  # a name that is too long or has a zero byte, a loop of links
        return


def _is_file_inside(path: Path, folder: Path) -> bool:
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return is_below(path, (folder,)) and path.is_file()
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(mode)


def is_below(path: Path, folders: tuple[Path, ...]) -> bool:
    """Whether a path leads below one of these resolved folders after all links are followed."""
    try:
        real = path.resolve()
    except (OSError, ValueError, RuntimeError):
        return False
    return any(real.is_relative_to(folder) for folder in folders)
