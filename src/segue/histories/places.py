"""Files and folders of agents: finds sessions, opens sources, stores what was written.

With `regular_files` and `databases`, which open what anyone may have written, this is the only I/O of `histories`.

Facts:
- Files of agents hold private texts, and the agents write them with mode 600.                  (seen, 2026-11-15)
- A database in WAL mode is read through SQLite, with its `-wal` file next to it.                 (SQLite documentation)

A file that is there is never changed: a new file gets a temporary name, and is then linked to its own name, which fails
if that name is taken.
"""

from __future__ import annotations

import datetime as dt
import errno
import io
import os
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from io import BufferedReader, FileIO
from itertools import chain
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final, TypeAlias, final

from msgspec.structs import replace as replace_fields

from segue.errors import HistoryExists, LoadError, SettingsError
from segue.histories.databases import ReadOnlyDatabase
from segue.histories.kit.format import Excerpt, Format, Place
from segue.histories.kit.history import Session, Written, WrittenFile
from segue.histories.kit.source import NO_NEIGHBOURS, MemoryFiles, Source
from segue.histories.recognition import evidence_of, look, recognise_sight
from segue.histories.regular_files import LARGEST, LongFile, files_below, is_below, open_regular, read_regular

Formats: TypeAlias = Sequence[Format] | Callable[[], Sequence[Format]]
"""Formats whose archives can be opened, or a function that loads them."""
_EXCERPT: Final = 32 * 1024
_EXCERPTS: Final = (_EXCERPT, 256 * 1024, 1024 * 1024)
"""How much of the beginning of a file is read to describe it: more, up to the last, where its title or its model comes
after long instructions, as in sessions of Codex."""
_TAIL: Final = 8 * 1024
"""How much of the beginning and of the end of a file is read for the list of sessions. The first line of Codex alone
has 20 kB; the end has the last time, and titles and costs that programs write when they stop."""
_LONG: Final = 2**24
"""The size from which a file stays on the disk while it is read, if its format allows it."""
_SQLITE: Final = b"SQLite format 3\x00"
_ZIP: Final = b"PK\x03\x04"
_ORIGINALS: Final = Place(folder=".local/share/segue/originals", variables=("XDG_DATA_HOME/segue/originals",))
"""Where the originals of sessions are kept that were written for another agent."""
_SEARCHED: Final = 200
"""How many of them are looked at for a session whose id has changed."""
_RATIO: Final = 50
"""How much larger than its compressed data a file of an archive may be, above one megabyte; and all files together,
above `_SMALL`. Exports compress to about a tenth; an archive made to fill the memory has a ratio of hundreds."""
_SMALL: Final = 2**26
"""Bytes that the files of any archive may have together."""


@final
class DiskFiles:
    """The files below one folder; a path that leads out of it is not read."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def find(self, pattern: str) -> Sequence[str]:
        """Return the paths that match a pattern, sorted."""
        if not _is_inside(pattern):
            return []
        try:
            return sorted(path.relative_to(self._root).as_posix() for path in self._root.glob(pattern))
        except (OSError, ValueError, RuntimeError):
            return []

    def read(self, name: str) -> bytes | None:
        """Read a file; None if it is not there, cannot be read, or is outside the folder."""
        if not _is_inside(name):
            return None
        try:
            path = self._root / name
            data = read_regular(path.resolve()) if is_below(path, (self._root.resolve(),)) else None
            return as_utf8(data) if data is not None and path.suffix in _TEXTS else data
        except (OSError, ValueError, RuntimeError, LoadError):
            return None


@final
class ArchiveFiles:
    """The files of a zip archive. A member that would fill the memory is not read."""

    def __init__(self, data: bytes, name: str) -> None:
        """Open the archive.

        Raises:
            LoadError: it is damaged.
        """
        self._name: Final = name
        try:
            self._archive: Final = zipfile.ZipFile(io.BytesIO(data))
            self._left = min(LARGEST, max(_SMALL, len(data) * _RATIO))
            self._counted: Final[set[str]] = set()
            self._members: Final = {member.filename: member for member in self._archive.infolist()}
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
            raise LoadError(f"{name}: the archive is damaged: {error}; download it again") from error

    def find(self, pattern: str) -> Sequence[str]:
        """Return the paths that match a pattern, sorted; `*` also matches `/` here."""
        plain = pattern.replace("**/", "*")
        return sorted(name for name in self._members if fnmatchcase(name, plain) and not name.endswith("/"))

    def read(self, name: str) -> bytes | None:
        """Read a member; None if it is not there.

        Raises:
            LoadError: it is damaged, encrypted, or much larger than its compressed data, also with those read before.
        """
        member = self._members.get(name)
        if member is None:
            return None
        is_new = name not in self._counted
        limit = min(LARGEST, max(2**20, member.compress_size * _RATIO))
        limit = min(limit, self._left) if is_new else limit
        if member.file_size > limit:
            raise LoadError(
                f"{self._name}: {name} would have {member.file_size} bytes, which is more than {limit}; unpack the"
                " archive and name the file"
            )
        try:
            with self._archive.open(member) as file:
                data = file.read(limit + 1)
        except (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, OSError, EOFError) as error:
            raise LoadError(f"{self._name}: cannot read {name} in the archive: {error}") from error
        if is_new:
            self._counted.add(name)
            self._left -= len(data)
        return data if len(data) <= limit else None


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(name) and not path.is_absolute() and ".." not in path.parts and "\\" not in name and "\x00" not in name


# -- where agents store their sessions ---------------------------------------------------------------------------------


def find_folder(place: Place, *, home: Path | None = None, environment: Mapping[str, str] | None = None) -> Path:
    """Return the folder of an agent: that of its environment variable if it is set, else the default."""
    variables = os.environ if environment is None else environment
    for entry in place.variables:
        variable, _, rest = entry.partition("/")
        if value := variables.get(variable):
            return Path(value) / rest if rest else Path(value)
    return (home or Path.home()) / place.system_folders.get(sys.platform, place.folder)


def list_sessions(
    record: Format, *, home: Path | None = None, environment: Mapping[str, str] | None = None
) -> list[Session]:
    """List the sessions of one agent on this machine, the newest first. Files that cannot be read are left out."""
    found = (
        _sessions_below(find_folder(place, home=home, environment=environment), record, place)
        for place in _places(record)
    )
    return _newest_first(chain.from_iterable(found))


def list_projects(record: Format, folders: Iterable[str]) -> Iterator[Session]:
    """List the sessions of one agent that stores them in the folders of projects."""
    patterns = () if record.place is None else record.place.projects
    for folder in folders if patterns else ():
        yield from _sessions_in_project(Path(folder), record)


def current_projects() -> list[str]:
    """Return the current folder and those above it, up to the root of its repository or below the home folder."""
    try:
        here = Path.cwd()
    except OSError:
        return []
    found: list[str] = []
    for folder in (here, *here.parents):
        if folder in (Path.home(), folder.parent) and folder != here:
            break
        found.append(str(folder))
        if (folder / ".git").exists():
            return found
    return found[:1]


def _sessions_in_project(folder: Path, record: Format) -> Iterator[Session]:
    for pattern in () if record.place is None else record.place.projects:
        for path in _project_files(folder, pattern):
            yield from (
                session if session.cwd else replace_fields(session, cwd=str(folder))
                for session in _sessions_at(path, folder, record)
            )


def _project_files(folder: Path, pattern: str) -> Iterator[Path]:
    """Yield the files of an agent in the folder of a project.

    A project may come from anyone: no link in it leads out of it. What is not an absolute path is not a folder that a
    session can be in.
    """
    if folder.is_absolute():
        try:
            real = folder.resolve()
        except (OSError, ValueError, RuntimeError):  # a session can name any text as its folder
            return
        yield from (path for path in files_below(folder, pattern) if is_below(path, (real,)))


def _sessions_at(path: Path, root: Path, record: Format) -> Iterator[Session]:
    """Yield the sessions of one file or database; none if it cannot be read."""
    if record.describe is not None:
        session = describe_file(path, record, root)
        yield from () if session is None else (session,)
    elif record.list is not None:
        with suppress(LoadError):
            yield from record.list(open_path(path, (record,)))


def list_folder(folder: Path, formats: Sequence[Format]) -> list[Session]:
    """List the sessions below any folder, such as a copy of an agent's folder, the newest first."""
    found: dict[tuple[str, str], Session] = {}
    for record in formats:
        for session in chain(
            *(_sessions_below(folder, record, place) for place in _places(record)),
            _sessions_beside(folder, record),
            _sessions_in_project(folder, record),
        ):
            found.setdefault((session.path, session.id), session)
    return _newest_first(found.values())


def _newest_first(sessions: Iterable[Session]) -> list[Session]:
    return sorted(sessions, key=lambda session: (-(session.updated or 0), session.path, session.id))


def _places(record: Format) -> Sequence[Place]:
    return () if record.place is None else (record.place, *record.place.others)


def _sessions_below(root: Path, record: Format, place: Place) -> Iterator[Session]:
    if record.describe is not None:
        for pattern in place.patterns:
            for path in files_below(root, pattern):
                session = describe_file(path, record, root)
                if session is not None:
                    yield session
    if record.list is not None:
        for pattern in place.databases:
            for path in files_below(root, pattern):
                with suppress(LoadError):
                    yield from record.list(_database_source(path, root))


def _sessions_beside(folder: Path, record: Format) -> Iterator[Session]:
    """Yield the sessions of files that are in a folder without the folders of the agent."""
    if record.place is None or record.describe is None:
        return
    for pattern in record.place.patterns:
        for path in files_below(folder, PurePosixPath(pattern).name):
            session = describe_file(path, record, folder)
            found = Source(data=_read_head(path), name=path.as_posix())
            if session is not None and evidence_of(record.name, look(found, head=True)) is not None:
                yield session


def describe_file(path: Path, record: Format, root: Path | None = None) -> Session | None:
    """Describe the session of a file from its beginning and its end; None if it cannot be read or has none."""
    if record.describe is None:
        return None
    session = None
    for length in _EXCERPTS:
        excerpt = _read_excerpt(path, root or path.parent, length, whole_lines=record.reads_lines)
        if excerpt is None:
            return None
        session = record.describe(excerpt)
        if excerpt.whole or not record.reads_lines or session is None or (session.title and session.models):
            break
    if session is not None and session.cwd is None and record.place is not None and record.place.project_file:
        return replace_fields(session, cwd=_project_of(path, root or path.parent, record, record.place.project_file))
    return session


def _project_of(path: Path, root: Path, record: Format, name: str) -> str | None:
    """Find the folder of a project: in a file above its session, or in the settings, by the name of a folder there."""
    above = [folder for folder in path.parents if folder == root or root in folder.parents]
    for folder in above:
        with suppress(OSError, UnicodeError), (folder / name).open("rb") as file:
            return file.read(_EXCERPT).decode().strip() or None
    files = DiskFiles(root)
    given = {name: data for name in record.setting_files if (data := files.read(name)) is not None}
    names = {folder.name for folder in above if folder != root}
    return next((project for project, short in record.read_settings(given).items() if short in names), None)


def _read_head(path: Path) -> bytes:
    try:
        with open_regular(path, largest=None) as file:
            return as_utf8(file.read(_EXCERPT))
    except (OSError, ValueError, LoadError):
        return b""


def may_contain(path: str, words: Sequence[bytes]) -> bool:
    """Whether a file has all of these words, in lower case letters and digits, anywhere; a database always may."""
    try:
        data = read_regular(Path(path))
    except (OSError, ValueError, LoadError):
        return False
    if is_binary(data[: len(_SQLITE)]):
        return True
    lower = data.lower()
    return all(word in lower for word in words)


def _read_excerpt(path: Path, root: Path, length: int, *, whole_lines: bool) -> Excerpt | None:
    """Read the beginning and the end of a file; `whole_lines` leaves out the lines that are cut there."""
    try:
        with open_regular(path, largest=None) as file:
            status = os.fstat(file.fileno())
            head = as_utf8(file.read(length))
            whole = status.st_size <= length
            tail = b""
            if not whole:
                file.seek(max(length, status.st_size - _TAIL))
                tail = file.read(_TAIL)
    except (OSError, ValueError, LoadError):
        return None
    if whole_lines and not whole:
        head = head[: head.rfind(b"\n") + 1] or head
        tail = tail[tail.find(b"\n") + 1 :]
    name = path.relative_to(root).as_posix()
    return Excerpt(name, str(path), status.st_size, head, tail, whole, int(status.st_mtime * 1000))


def read_settings(
    record: Format, *, home: Path | None = None, environment: Mapping[str, str] | None = None
) -> Mapping[str, str]:
    """Read the user's settings of an agent that a new session has to agree with."""
    if record.place is None or not record.setting_files:
        return {}
    files = DiskFiles(find_folder(record.place, home=home, environment=environment))
    contents = {name: files.read(name) for name in record.setting_files}
    return record.read_settings({name: data for name, data in contents.items() if data is not None})


# -- opening -----------------------------------------------------------------------------------------------------------


_MARKS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
"""The marks that programs on Windows put before a text, and what they say about it."""
_TEXTS: Final = frozenset({".json", ".jsonl", ".md", ".txt", ".yaml"})
"""Files that are texts; a picture or a sound can begin with the same bytes."""


def as_utf8(data: bytes) -> bytes:
    """Return a text in UTF-8 without a byte order mark; data without a mark is returned unchanged."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            rest = data[len(mark) :]
            return rest if encoding == "utf-8" else rest.decode(encoding, "replace").encode("utf-8", "replace")
    return data


@final
class Watched:
    """A file that its program may be writing, and whether it has changed since it was looked at."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self._path: Final = Path(path)
        self._seen = self._look()

    def has_changed(self) -> bool:
        """Whether the file, the log of its database or its folder is another one than when this was called before."""
        before, self._seen = self._seen, self._look()
        return self._seen != before

    def _look(self) -> list[tuple[int, int] | None]:
        return [_size_and_time(path) for path in (self._path, Path(f"{self._path}-wal"), self._path.parent)]


def _size_and_time(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def is_binary(head: bytes) -> bool:
    """Whether a file is a database, an archive, or compressed."""
    return head.startswith((_SQLITE, _ZIP, b"\x28\xb5\x2f\xfd"))


def open_path(path: Path, formats: Formats, session: str | None = None) -> Source:
    """Open a file, a database or an archive; `settle` adds the files next to it.

    Raises:
        LoadError: the file cannot be read, is a folder, or is too large.
    """
    try:
        with open_regular(path, largest=LARGEST) as file:
            head = file.read(len(_SQLITE))
            if os.fstat(file.fileno()).st_size >= _LONG and (long := _long_source(file, path, formats, session)):
                return long
            file.seek(0)
            data = None if head == _SQLITE else file.readall()
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise LoadError(f"{path}: cannot read the file: {reason}") from error
    if data is None:
        return _database_source(path, path.absolute().parent, session)
    if data.startswith(_ZIP):
        return _archive_source(data, str(path), formats, session)
    name = path.absolute().as_posix()
    return Source(data=as_utf8(data), name=name, path=str(path), session=session)


def is_long(name: str, file: BinaryIO) -> bool:
    """Whether an open file has this name and is too long to be read as a whole."""
    try:
        status = os.fstat(file.fileno())
        return status.st_size >= _LONG and os.path.samestat(status, Path(name).stat())
    except (OSError, ValueError):  # not a file on the disk
        return False


def _long_source(file: FileIO, path: Path, formats: Formats, session: str | None) -> Source | None:
    """Make a source of a long file that stays on the disk, if its format, by its beginning, reads such files."""
    file.seek(0)
    head = file.read(_EXCERPTS[-1])
    if not hasattr(os, "pread") or not head.startswith(b"{"):
        return None
    name = path.absolute().as_posix()
    sight = look(Source(data=head, name=name), head=True)
    certain = {claim.format for claim in recognise_sight(sight) if claim.certainty == "certain"}
    for record in formats() if callable(formats) else formats:
        if record.reads_long and certain == {record.name}:
            return Source(long=LongFile(file), format=record.name, name=name, path=str(path), session=session)
    return None


def open_data(data: bytes, formats: Formats, session: str | None = None) -> Source:
    """Make a source of the bytes of a file.

    Raises:
        LoadError: the bytes are a database, or an archive without conversations.
    """
    if data.startswith(_SQLITE):
        raise LoadError("the bytes are an SQLite database, which is read from its file only; name the file")
    if data.startswith(_ZIP):
        return _archive_source(data, None, formats, session)
    return Source(data=as_utf8(data), session=session)


def written_source(written: Written) -> Source:
    """Return what was written as a source, without storing it."""
    first, *others = written.files
    beside = MemoryFiles({file.name: file.data for file in others})
    if first.data.startswith(_SQLITE):
        return Source(database=ReadOnlyDatabase(Path(first.name), first.data), name=first.name, session=written.id)
    return Source(data=first.data, name=first.name, neighbours=beside)


def settle(source: Source, record: Format) -> Source:
    """Name a file relative to the folder of its agent, and add the files there; none outside of `Source.within`."""
    if source.path is None or (source.data is None and source.long is None) or source.neighbours is not NO_NEIGHBOURS:
        return source
    path = Path(source.path).absolute()
    root = _find_root(path, record)
    if source.within is not None and not is_below(root, (Path(source.within),)):
        root = path.parent
    return replace(source, name=path.relative_to(root).as_posix(), neighbours=DiskFiles(root))


def _archive_source(data: bytes, path: str | None, formats: Formats, session: str | None) -> Source:
    archive = ArchiveFiles(data, path or "the archive")
    for record in formats() if callable(formats) else formats:
        for pattern in record.archive_members:
            for name in archive.find(pattern):
                content = as_utf8(archive.read(name) or b"")
                found = Source(data=content, name=name, path=path, session=session, neighbours=archive)
                if content and evidence_of(record.name, look(found)) is not None:
                    return found
    raise LoadError(f"{path or 'the archive'}: no file in this archive holds conversations of a known format")


def _database_source(path: Path, root: Path, session: str | None = None) -> Source:
    name = path.absolute().relative_to(root.absolute()).as_posix()
    return Source(
        database=ReadOnlyDatabase(path), name=name, path=str(path), session=session, neighbours=DiskFiles(root)
    )


def _find_root(path: Path, record: Format) -> Path:
    """Return the folder of the agent that a file is in, by the patterns of its sessions; else the file's own folder."""
    for pattern in record.place.patterns if record.place is not None else ():
        parts = PurePosixPath(pattern).parts
        if len(path.parts) > len(parts) and all(map(fnmatchcase, path.parts[-len(parts) :], parts)):
            return path.parents[len(parts) - 1]
    return path.parent


def newest_file(folder: Path, formats: Sequence[Format]) -> Path:
    """Return the newest session file below a folder.

    Raises:
        LoadError: there is none.
    """
    found = [
        path
        for record in formats
        if record.place is not None
        for pattern in (*record.place.patterns, *(PurePosixPath(name).name for name in record.place.patterns))
        for path in files_below(folder, pattern)
    ]
    if not found:
        raise LoadError(f"{folder}: there is no session file of a known agent in this folder")
    return max(found, key=lambda path: (path.stat().st_mtime, str(path)))


# -- storing -----------------------------------------------------------------------------------------------------------


def save_files(written: Written, folder: Path, *, flat: bool) -> tuple[Path, ...]:
    """Store the files of a history, readable for the user alone. Files that are there are never changed.

    Raises:
        HistoryExists: a file of that name is there with other content; nothing was written.
    """
    targets = [(_target(folder, file, flat=flat), file.data) for file in written.files]
    for path, data in targets:
        if path.exists() and not _has(path, data):
            raise HistoryExists(
                f"{path} is there already; nothing was written. Write the history again with another session_id",
                file=str(path),
            )
    for path, data in targets:
        if not path.exists():
            store_file(path, data)
    return tuple(path for path, _ in targets)


def save_originals(session_id: str, data: bytes, folder: Path | None) -> None:
    """Store the originals of a written session: in a hidden folder next to its file, or in segue's own folder."""
    path = _originals_folder(folder) / f"{session_id}.jsonl"
    if path.name == f"{session_id}.jsonl" and not path.exists():  # an id with a separator names no file here
        store_file(path, data)


def find_originals(ids: Sequence[str], beside: Path | None) -> Iterator[Path]:
    """Find files with originals: those that are named by one of these ids, then all others, the newest first."""
    folders = [_originals_folder(each) for each in ((beside, None) if beside is not None else (None,))]
    named = [folder / f"{each}.jsonl" for folder in folders for each in ids if _is_inside(each) and "/" not in each]
    yield from (path for path in named if path.is_file())
    others = [path for folder in folders for path in folder.glob("*.jsonl") if path.is_file() and path not in named]
    yield from sorted(others, key=lambda path: (-path.stat().st_mtime, path.name))[:_SEARCHED]


def read_originals(path: Path, *, whole: bool = True) -> bytes:
    """Read such a file, or its first line only; nothing if it cannot be read."""
    try:
        if whole:
            return read_regular(path)
        with BufferedReader(open_regular(path, largest=LARGEST)) as file:
            return file.readline()
    except (OSError, ValueError, LoadError):
        return b""


def _originals_folder(beside: Path | None) -> Path:
    return find_folder(_ORIGINALS) if beside is None else beside / ".segue"


def _target(folder: Path, file: WrittenFile, *, flat: bool) -> Path:
    if not _is_inside(file.name):
        raise SettingsError(f"the name {file.name!r} leads out of the folder; it was not written", key="name")
    name = PurePosixPath(file.name)
    return folder / name.name if flat else folder.joinpath(*name.parts)


def _has(path: Path, data: bytes) -> bool:
    try:
        return path.stat().st_size == len(data) and path.read_bytes() == data
    except OSError:
        return False


def store_file(path: Path, data: bytes) -> None:
    """Store a new file under a temporary name, then rename it.

    Raises:
        HistoryExists: a file of that name is there; it is unchanged.
        OSError: the file cannot be written.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(errno.ENOTDIR, "this is not a folder; name another one", str(path.parent)) from None
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except OSError as error:
        error.filename = str(path)  # the user does not know the temporary file
        raise
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)  # unlike a rename, it fails if the name is taken
        except FileExistsError as error:
            raise HistoryExists(f"{path} is there already; it was not changed", file=str(path)) from error
        except OSError:  # a file system without links
            if path.exists():
                raise HistoryExists(f"{path} is there already; it was not changed", file=str(path)) from None
            temporary.rename(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_clock() -> int:
    """Return the time of the machine in Unix milliseconds."""
    return int(dt.datetime.now(dt.UTC).timestamp() * 1000)


def user_folder() -> str | None:
    """Return the home folder of this user; None if there is none."""
    try:
        return str(Path.home())
    except RuntimeError:
        return None
