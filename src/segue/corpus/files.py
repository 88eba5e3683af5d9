"""Files on this machine and in object stores: listed, read, and written so that they appear complete or not at all.

- A file of this machine is written to a hidden name, synchronised with the disk, and renamed. Then the folder is
  synchronised, so that the new name survives a power failure.
- An object store shows an object when its upload is complete, so it is written under its own name.
- Addresses with `://` are opened by fsspec, which the extra `corpus` installs.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol, final

from segue.errors import CorpusError, MissingExtra, SegueError

if TYPE_CHECKING:
    from typing import Any

_HIDDEN = (".", "_")


@final
class FileEntry(NamedTuple):
    """A file of a folder: its address, its name relative to the folder, its size, and a mark of its version."""

    path: str
    name: str
    size: int
    stamp: str


class Pending(Protocol):
    """A file that is being written; it appears under its name when it is committed."""

    file: BinaryIO

    def commit(self) -> None:
        """Make the file appear under its name."""
        ...

    def discard(self) -> None:
        """Remove what was written."""
        ...


class Files(Protocol):
    """Where files are read and written."""

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder at this address."""
        ...

    def entry(self, path: str) -> FileEntry | None:
        """Describe one file; None if there is none."""
        ...

    def walk(self, folder: str) -> Iterator[FileEntry]:
        """List the files of a folder and of the folders in it."""
        ...

    def open(self, path: str) -> BinaryIO:
        """Open a file to read it."""
        ...

    def begin(self, folder: str, name: str) -> Pending:
        """Begin to write a file."""
        ...

    def remove(self, folder: str, name: str) -> None:
        """Remove a file, if there is one."""
        ...

    def clean(self, folder: str, name: str) -> None:
        """Remove what earlier attempts to write a file left."""
        ...

    def join(self, folder: str, name: str) -> str:
        """Return the address of a file in a folder."""
        ...


def is_remote(path: str) -> bool:
    """Whether an address is opened by fsspec."""
    return "://" in path


def files_at(path: str) -> Files:
    """Return the functions for files at an address.

    Raises:
        MissingExtra: the address needs fsspec, and it is not installed.
    """
    return RemoteFiles(path) if is_remote(path) else LOCAL


@final
class _LocalPending:
    def __init__(self, folder: Path, name: str) -> None:
        self._final = folder / name
        self._final.parent.mkdir(parents=True, exist_ok=True)
        self._hidden = self._final.parent / f".{self._final.name}.{secrets.token_hex(4)}.part"
        self.file: BinaryIO = self._hidden.open("wb")

    def commit(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        self._hidden.replace(self._final)
        sync_folder(self._final.parent)

    def discard(self) -> None:
        self.file.close()
        self._hidden.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Write the names of a folder to the disk; Windows has no such function."""
    if sys.platform == "win32":
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


@final
class LocalFiles:
    """Files of this machine."""

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder at this path."""
        return Path(path).is_dir()

    def entry(self, path: str) -> FileEntry | None:
        """Describe one file; None if there is none."""
        found = Path(path)
        if not found.is_file():
            return None
        return self._entry(found, found.name)

    def walk(self, folder: str) -> Iterator[FileEntry]:
        """List the files of a folder and of the folders in it, without hidden ones."""
        top = Path(folder)
        for path in top.rglob("*"):
            name = path.relative_to(top)
            if any(part.startswith(_HIDDEN) for part in name.parts):
                continue
            if path.is_file():
                yield self._entry(path, name.as_posix())
            elif path.is_symlink() and not path.exists():
                yield FileEntry(
                    str(path), name.as_posix(), 0, ""
                )  # reading it fails, so that it is not left out silently

    def _entry(self, path: Path, name: str) -> FileEntry:
        status = path.stat()
        return FileEntry(str(path), name, status.st_size, f"{status.st_size}-{status.st_mtime_ns}")

    def open(self, path: str) -> BinaryIO:
        """Open a file to read it."""
        return Path(path).open("rb")

    def begin(self, folder: str, name: str) -> Pending:
        """Begin to write a file."""
        return _LocalPending(Path(folder), name)

    def remove(self, folder: str, name: str) -> None:
        """Remove a file, if there is one."""
        (Path(folder) / name).unlink(missing_ok=True)

    def clean(self, folder: str, name: str) -> None:
        """Remove what earlier attempts to write a file left."""
        final_path = Path(folder) / name
        if final_path.parent.is_dir():
            for left in final_path.parent.glob(f".{_escaped(final_path.name)}.*.part"):
                left.unlink(missing_ok=True)

    def join(self, folder: str, name: str) -> str:
        """Return the path of a file in a folder."""
        return str(Path(folder) / name)


def _escaped(name: str) -> str:
    return "".join(f"[{each}]" if each in "*?[" else each for each in name)


LOCAL = LocalFiles()


@contextmanager
def _explained(path: str, purpose: str) -> Generator[None]:
    """Explain an error of fsspec or of a package that it uses; they have errors of many classes."""
    try:
        yield
    except SegueError:
        raise
    except NotImplementedError:
        raise CorpusError(f"{path}: it cannot be {purpose}, because fsspec does not support that there") from None
    except Exception as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise CorpusError(f"{path}: it cannot be {purpose}: {reason}") from error


@final
class _RemotePending:
    def __init__(self, system: Any, path: str) -> None:  # noqa: ANN401 - fsspec has no types
        self._path = path
        self.file: BinaryIO = system.open(path, "wb")

    def commit(self) -> None:
        with _explained(self._path, "written"):
            self.file.close()

    def discard(self) -> None:
        # An upload that is not closed never appears. `discard` exists only where parts were sent already.
        if hasattr(self.file, "discard"):
            self.file.discard()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


@final
class RemoteFiles:
    """Files that fsspec opens: S3, Cloud Storage, Azure, and others."""

    def __init__(self, path: str) -> None:
        try:
            fsspec = import_module("fsspec")
        except ModuleNotFoundError:
            raise MissingExtra(f"{path}: this address needs the package fsspec", extra="corpus") from None
        with _explained(path, "opened"):
            self._system: Any = fsspec.core.url_to_fs(path)[0]

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder at this address."""
        with _explained(path, "read"):
            return bool(self._system.isdir(path))

    def entry(self, path: str) -> FileEntry | None:
        """Describe one file; None if there is none."""
        with _explained(path, "read"):
            if not self._system.isfile(path):
                return None
            return self._entry(path, PurePosixPath(path).name, self._system.info(path))

    def walk(self, folder: str) -> Iterator[FileEntry]:
        """List the files of a folder and of the folders in it, without hidden ones."""
        with _explained(folder, "listed"):
            exists = bool(self._system.exists(folder))
            found: dict[str, dict[str, Any]] = self._system.find(folder, detail=True) if exists else {}
            top = str(self._system._strip_protocol(folder)).rstrip("/")  # noqa: SLF001 - fsspec has no public name for it
        for path, information in found.items():
            name = str(path)[len(top) :].lstrip("/")
            if not any(part.startswith(_HIDDEN) for part in PurePosixPath(name).parts):
                yield self._entry(str(self._system.unstrip_protocol(path)), name, information)

    def _entry(self, path: str, name: str, information: dict[str, Any]) -> FileEntry:
        keys = ("ETag", "etag", "generation", "mtime", "LastModified", "created")
        mark = next((str(information[key]) for key in keys if information.get(key)), "")
        size = int(information.get("size") or 0)
        return FileEntry(path, name, size, f"{size}-{mark}")

    def open(self, path: str) -> BinaryIO:
        """Open a file to read it."""
        with _explained(path, "read"):
            return self._system.open(path, "rb")

    def begin(self, folder: str, name: str) -> Pending:
        """Begin to write a file; it appears when it is complete."""
        path = self.join(folder, name)
        with _explained(path, "written"):
            self._system.makedirs(path.rpartition("/")[0], exist_ok=True)
            return _RemotePending(self._system, path)

    def remove(self, folder: str, name: str) -> None:
        """Remove a file, if there is one."""
        path = self.join(folder, name)
        with _explained(path, "removed"):
            if self._system.exists(path):
                self._system.rm(path)

    def clean(self, folder: str, name: str) -> None:
        """Do nothing: an upload that was not finished leaves no file."""

    def join(self, folder: str, name: str) -> str:
        """Return the address of a file in a folder."""
        return f"{folder.rstrip('/')}/{name}"
