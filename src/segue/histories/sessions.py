"""Session files: JSON Lines with one line for each message and each summary, written by appending.

Facts:
- A write to a file opened with O_APPEND goes to its end, even if other processes write to it. One write for each line
  keeps lines intact unless something crashes.                                                       (POSIX, write(2))
- A crash or a full disk can leave an incomplete line. It is recognizable: a prefix of a JSON object is never JSON.
                                                                                                     (RFC 8259)
- After fsync of a new file a crash can still lose its name, which is an entry of its directory.     (fsync(2), Linux)
- The libraries that segue's format comes from store one message on a line, without a header.
                                                                        (ktsoator/or llm e3b9904, read 2026-11-15)

The first line is a header (`format`, `systemPrompt`, `tools`, `extra`), every other line a message, a summary or a
model. A later header replaces the one before it. A whole stored conversation on one line is a header with messages and
summaries. A line with `"type": "model"` describes a model that answers in this session and that no catalogue has; a
later one replaces it.

A conversation remembers the file that it was read from, and how long that was. Writing it to this file compares: what
others appended meanwhile is never lost. `session_file` holds the lock from the reading to the writing.

A file whose first line names a newer format is never written to: a line of this version after those of a later one
could make the file unreadable for both.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import warnings
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from itertools import count
from pathlib import Path
from typing import Final, TypeAlias, cast, final

import msgspec

from segue.conversation.context import Context, Summary
from segue.conversation.foreign import FORMAT, check_format, with_leading_prompt
from segue.conversation.limits import is_json, without_line
from segue.conversation.messages import Message
from segue.conversation.stored import MODEL_LINE, ModelLine, dump, dump_message, dump_summary, load_line
from segue.errors import DumpError, LoadError, NewerFormat, SessionChanged, TornLine
from segue.models.model import Model

if sys.platform != "win32":
    import fcntl

StrPath: TypeAlias = str | os.PathLike[str]

_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""A planted link is not followed, and a planted pipe does not block."""
_PRIVATE: Final = 0o600
"""A conversation is for its owner alone. A file that exists keeps its permissions."""
_FIRST_BLOCK: Final = 4096
_LARGEST_BLOCK: Final = 1 << 22
"""Blocks double from the first size to this one: short lines are read at once, and long ones in few reads."""
_EMPTY_HEADER: Final = dump(Context())
"""The header of a session without a system prompt or tools: only the format."""
_OWN_HEADER: Final = f'{{"format":"{FORMAT}"'.encode()
"""How the first line of a file begins that this version created."""


class _Header(msgspec.Struct):
    """The format that the first line of a file names; all other fields are skipped."""

    format: object = None


_NOT_A_FILE: Final = "a session has to be a regular file"
_MODEL_FIELDS: Final = frozenset(Model.__struct_encode_fields__) - {"headers"}
_FORMAT: Final = re.compile(rb'\s*\{\s*"format"\s*:\s*"(segue/[^"]*)"')
_READ_HEADER: Final = msgspec.json.Decoder(_Header).decode
_READ_FROM: Final = "_read_from"
"""The name under which a `Context` remembers the file that it was read from; `Context.add` passes it on."""
_HELD: Final[ContextVar[frozenset[tuple[int, int, int]]]] = ContextVar("segue_held_sessions", default=frozenset())
"""Process, device and number of the files that a block of `session_file` holds: it must not wait for itself."""


class _Version:
    """A file as it was read or written by this program: all conversations made from that share it."""

    __slots__ = ("found", "path")

    def __init__(self, path: str, status: os.stat_result) -> None:
        self.path = path
        self.found = _version(status)


def _version(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_dev, status.st_ino, status.st_size


def read_session(path: StrPath) -> Context:
    """Read a session file, line by line.

    Lines before the first header are read in the format of the libraries that segue's comes from. An incomplete last
    line is skipped, with a `TornLine` warning; a complete one without a line break is read. Blank lines are skipped.

    Raises:
        LoadError: a line cannot be read; `line` is its number, `path` the place in it.
        OSError: the file cannot be read.
    """
    return read_session_models(path)[0]


def read_session_models(path: StrPath) -> tuple[Context, tuple[Model, ...]]:
    """Read a session file with the models that its lines describe, like `read_session`.

    The models are those of a file, which anyone may have written: see `segue.client.session.recorded_models`.

    Raises:
        LoadError: a line cannot be read; `line` is its number, `path` the place in it.
        OSError: the file cannot be read.
    """
    refuse_device(path)
    try:
        with Path(path).open("rb") as file:
            version = _Version(os.path.realpath(path), os.fstat(file.fileno()))
            context, models = _read_lines(file, name=os.fspath(path))
    except LoadError as error:
        error.args = (f"{os.fspath(path)}: {error}",)
        raise
    vars(context)[_READ_FROM] = version
    return context, models


def read_session_lines(lines: Iterable[bytes], *, name: str, numbers: list[int] | None = None) -> Context:
    """Read a session from its lines; `name` is its name in warnings. See `read_session`.

    The number of each message's line is added to `numbers`.

    Raises:
        LoadError: a line cannot be read; `line` is its number, `path` the place in it.
    """
    return _read_lines(lines, name=name, numbers=numbers)[0]


def _read_lines(
    lines: Iterable[bytes], *, name: str, numbers: list[int] | None = None
) -> tuple[Context, tuple[Model, ...]]:
    models: dict[str, Model] = {}
    header: Context | None = None
    messages: list[Message] = []
    summaries: list[Summary] = []
    for number, line in enumerate(lines, 1):
        if line.isspace():
            continue
        try:
            entry = load_line(line, foreign=header is None)
            if isinstance(entry, ModelLine):
                model = _read_model(entry)
                models[model.full_name()] = model
                continue
        except LoadError as error:
            if not line.endswith(b"\n") and not is_json(line):
                text = f"{name}: line {number}, the last one, is incomplete and was skipped; a write was interrupted"
                warnings.warn(text, TornLine, stacklevel=4)
                break
            reason = without_line(error.reason)
            raise type(error)(reason, path=error.path, line=number) from error.__cause__
        if isinstance(entry, Context):
            header = entry
            if not messages:  # after other messages, they would not cover the first ones
                summaries += entry.summaries
        elif isinstance(entry, Summary):
            summaries.append(entry)
            continue
        added = entry.messages if isinstance(entry, Context) else (entry,)
        messages += added
        if numbers is not None:
            numbers += [number] * len(added)
    found = tuple(models.values())
    if header is None:
        context = with_leading_prompt(Context(messages=tuple(messages), summaries=tuple(summaries)))
        if numbers is not None:
            del numbers[: len(messages) - len(context.messages)]
        return context, found
    return msgspec.structs.replace(header, messages=tuple(messages), summaries=tuple(summaries)), found


def refuse_device(path: StrPath) -> None:
    """Refuse what exists and is not a file: a device may never end, and a new file would replace it.

    Raises:
        OSError: the path is a device, a pipe or a socket; a folder has its own error.
    """
    with suppress(FileNotFoundError, NotADirectoryError):
        kind = stat.S_IFMT(os.stat(path).st_mode)  # noqa: PTH116  # the path is a string
        if kind not in (stat.S_IFREG, stat.S_IFDIR):
            raise OSError(errno.EINVAL, _NOT_A_FILE, os.fspath(path))


def _read_model(line: ModelLine) -> Model:
    """Read a model. Fields of a later version are skipped, and so are headers: `append_model` writes none."""
    fields = {name: value for name, value in line.fields.items() if name in _MODEL_FIELDS}
    try:
        return msgspec.convert(fields, Model)
    except msgspec.ValidationError as error:
        raise LoadError(f"this line describes a model, and it cannot be read: {error}; remove the line") from error


def write_session(path: StrPath, context: Context, *, base: Context | None = None) -> None:
    """Write a whole conversation to a session file; an existing file is replaced.

    The file is complete at any time: the lines are written to a temporary file next to it, which is then renamed.

    `base` is the conversation that was read from this file, if `context` was made from it other than by `add`. What
    other programs appended since then is not lost: that is an error. `session_file` waits for them instead.

    Raises:
        DumpError: a value cannot be stored; the file is unchanged.
        SessionChanged: the file has messages that were not there when it was read; it is unchanged.
        OSError: the file cannot be written; it is unchanged.
    """
    if not isinstance(context, Context):  # pyright: ignore[reportUnnecessaryIsInstance]
        name = type(cast("object", context)).__name__
        raise DumpError(f"expected a Context, got {name}; write write_session(path, context)")
    lines = _dump_lines(context)
    refuse_device(path)
    target = os.path.realpath(path)  # a symbolic link stays, and the file that it leads to is replaced
    version = cast("_Version | None", vars(context if base is None else base).get(_READ_FROM))
    if version is not None and version.path != target:
        version = None
    temporary = _write_beside(target, lines)
    try:
        _replace(target, temporary, lambda: _refuse_changed(path, context, context if base is None else base, version))
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108
        raise
    if version is not None:
        with suppress(OSError):
            version.found = _version(os.stat(target))  # noqa: PTH116  # the path is a string


def _dump_lines(context: Context) -> list[bytes]:
    return [
        dump(_header(context)),
        *map(_dump_in_place, enumerate(context.messages)),
        *map(dump_summary, context.summaries),
    ]


def _header(context: Context) -> Context:
    return msgspec.structs.replace(context, messages=(), summaries=())


def _refuse_changed(path: StrPath, context: Context, base: Context, version: _Version | None) -> None:
    """Refuse to replace a file that has something which a conversation does not have; it is locked.

    `base` has the header that was read.
    """
    if version is None:
        return
    with suppress(FileNotFoundError):
        if _version(os.stat(version.path)) == version.found:  # noqa: PTH116  # the path is a string
            return
        now = read_session(path)
        if (
            now.messages == context.messages[: len(now.messages)]
            and all(summary in context.summaries for summary in now.summaries)
            and _header(now) == _header(base)
        ):
            return
        raise SessionChanged(
            f"{os.fspath(path)} has changed since it was read, and writing it would lose that; make the change in"
            " `with session_file(path) as file:`, or read it again",
            path=os.fspath(path),
        )


def _write_beside(target: str, lines: Iterable[bytes]) -> str:
    """Write the lines of a file to a new one next to it, and return the name of that."""
    handle, temporary = _new_file_beside(target)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(line + b"\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108
        raise
    return temporary


@final
class SessionFile:
    """A session file that no other program writes to while the block of `session_file` runs.

    `context` is the conversation; assign another value to change it. `models` are those that the file describes.
    """

    def __init__(self, context: Context, models: tuple[Model, ...]) -> None:
        self.context: Context = context
        self.models: tuple[Model, ...] = models

    def append(self, *messages: Message | str) -> None:
        """Add messages to the end; a text is a message of the user."""
        self.context = self.context.add(*messages)


@contextmanager
def session_file(path: StrPath) -> Generator[SessionFile]:
    """Read a session file, and write what the block changed; other programs wait. A missing file is created.

        with session_file("chat.jsonl") as file:
            file.context = replace(file.context, system_prompt="Be brief.")

    The file is written at the end of the block, if `context` has changed by then, and not if the block raises. Inside
    of the block use `append` of the result: `append_message` would wait for the block to end. Windows has no lock.

    Raises:
        LoadError: a line cannot be read.
        DumpError: a value cannot be stored; the file is unchanged.
        OSError: the file cannot be read or written.
    """
    is_new = not os.path.exists(path)  # noqa: PTH110  # the path may be a string
    handle = _open_locked(path, _FLAGS)
    held, target = os.fstat(handle), os.path.realpath(path)
    token = _HELD.set(_HELD.get() | {(os.getpid(), held.st_dev, held.st_ino)})
    try:
        _refuse_newer_format(handle)
        _repair_end(handle, f"{os.fspath(path)}.torn")
        context, models = read_session_models(path)
        file = SessionFile(context, models)
        yield file
        if file.context is not context:
            temporary = _write_beside(target, [*_dump_lines(file.context), *map(dump_model, file.models)])
            if sys.platform == "win32":
                os.close(handle)  # it does not rename to a file that is open
                handle = -1
            _rename(temporary, target)
    finally:
        if is_new:
            with suppress(OSError):
                if os.stat(target).st_size == 0:  # noqa: PTH116  # created here, and nothing was written
                    os.unlink(target)  # noqa: PTH108
        _HELD.reset(token)
        if handle >= 0:
            _unlock(handle)
            os.close(handle)


def _replace(target: str, temporary: str, check: Callable[[], None]) -> None:
    """Rename a complete file to its name, while no program appends to the file that has the name now.

    Who waits to append finds then that the name leads to another file, and appends to that one.
    """
    replaced = None
    try:
        # Windows does not rename to a file that is open, and has no lock.
        replaced = None if sys.platform == "win32" else _open_locked(target, os.O_RDONLY)
    except OSError as error:
        if error.errno == errno.EDEADLK:
            raise
        # Of what cannot be opened the rename says why.
    try:
        check()
        _rename(temporary, target)
    finally:
        if replaced is not None:
            os.close(replaced)


def _rename(temporary: str, target: str) -> None:
    """Rename a file to the one that it replaces, with the same permissions."""
    try:
        with suppress(FileNotFoundError):
            os.chmod(temporary, os.stat(target).st_mode & 0o777)  # noqa: PTH101, PTH116  # the path is a string
        os.replace(temporary, target)  # noqa: PTH105
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108
        raise


def _new_file_beside(target: str) -> tuple[int, str]:
    """Create a file in the same folder, with a unique name even if several programs write at once."""
    for number in count():
        temporary = f"{target}.{number}.new"
        with suppress(FileExistsError):
            return os.open(temporary, _FLAGS | os.O_EXCL, _PRIVATE), temporary
    raise AssertionError("counting never ends")


def _dump_in_place(numbered: tuple[int, Message]) -> bytes:
    place, message = numbered
    try:
        return dump_message(message)
    except DumpError as error:
        raise DumpError(error.reason, path=("messages", place, *error.path)) from error.__cause__


def append_message(path: StrPath, message: Message, *, fsync: bool = False) -> None:
    """Append one message to a session file; a missing file is created.

    An incomplete last line is moved to `<path>.torn` first. With `fsync` the message is on the disk when this returns.

    Raises:
        DumpError: the message cannot be stored; the file is unchanged.
        NewerFormat: a later version of segue wrote the file; it is unchanged.
        OSError: the file cannot be written.
    """
    append_line(path, dump_message(message), fsync=fsync)


def append_summary(path: StrPath, summary: Summary, *, fsync: bool = False) -> None:
    """Append a summary of the first messages to a session file, like `append_message`. The messages stay.

    A later summary of as many messages or more is used instead of an earlier one.

    Raises:
        DumpError: the summary cannot be stored; the file is unchanged.
        OSError: the file cannot be written.
    """
    append_line(path, dump_summary(summary), fsync=fsync)


def append_line(path: StrPath, line: bytes, *, fsync: bool = False) -> None:
    """Append a message or a summary that `dump_message` or `dump_summary` has written.

    Raises:
        NewerFormat: a later version of segue wrote the file; it is unchanged.
        OSError: the file cannot be written.
    """
    _append(path, line, begin=_EMPTY_HEADER, fsync=fsync)


def append_header(path: StrPath, context: Context, *, fsync: bool = False) -> None:
    """Append a header with the system prompt, tools and `extra` of a conversation; it replaces earlier headers.

    Raises:
        DumpError: they cannot be stored; the file is unchanged.
        NewerFormat: a later version of segue wrote the file; it is unchanged.
        OSError: the file cannot be written.
    """
    _append(path, dump(msgspec.structs.replace(context, messages=(), summaries=())), begin=None, fsync=fsync)


def append_model(path: StrPath, model: Model, *, fsync: bool = False) -> None:
    """Append a line with a model that no catalogue has, so that the session can be continued with it.

    Its headers are left out, because they may hold a key.

    Raises:
        NewerFormat: a later version of segue wrote the file; it is unchanged.
        OSError: the file cannot be written.
    """
    append_line(path, dump_model(model), fsync=fsync)


def dump_model(model: Model) -> bytes:
    """Write the line of a model, without its headers."""
    fields = msgspec.to_builtins(msgspec.structs.replace(model, headers={}), order="deterministic")
    return msgspec.json.encode({"type": MODEL_LINE, **fields})


def _append(path: StrPath, line: bytes, *, begin: bytes | None, fsync: bool) -> None:
    handle = _open_locked(path, _FLAGS)
    try:
        _refuse_newer_format(handle)
        unfinished = _repair_end(handle, f"{os.fspath(path)}.torn")
        is_new = os.fstat(handle).st_size == 0
        if begin is not None and is_new:
            _write_line(handle, begin)
        _write_line(handle, b"\n" + line if unfinished else line)
        if fsync:
            os.fsync(handle)
            if is_new:
                _sync_directory(path)
    finally:
        os.close(handle)


def _open_locked(path: StrPath, flags: int) -> int:
    """Open the file and lock it. Another program may have replaced it while this one waited."""
    while True:
        handle = os.open(path, flags, _PRIVATE)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OSError(errno.EINVAL, _NOT_A_FILE, os.fspath(path))  # noqa: TRY301  # closes the file
            _refuse_own(handle, path)
            _lock(handle)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(path)):  # noqa: PTH116  # the path is a string
                    return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _refuse_own(handle: int, path: StrPath) -> None:
    """Refuse to wait for a block of this thread that holds the file: it would never end."""
    places = _HELD.get()
    if places:
        status = os.fstat(handle)
        if (os.getpid(), status.st_dev, status.st_ino) in places:
            text = "the file is held by `session_file`; inside of its block, use the result of `session_file`"
            raise OSError(errno.EDEADLK, text, os.fspath(path))


def _refuse_newer_format(handle: int) -> None:
    os.lseek(handle, 0, os.SEEK_SET)
    first = os.read(handle, _FIRST_BLOCK)
    if not first or first.startswith(_OWN_HEADER):
        return
    try:
        check_format(_find_format(handle, first))
    except NewerFormat as error:
        raise NewerFormat(error.reason, path=error.path, line=1) from None


def _find_format(handle: int, first: bytes) -> object:
    """Return the format that the first line names; `first` is the block of the file that was read already."""
    while first.isspace():
        first = os.read(handle, _LARGEST_BLOCK)
    named = _FORMAT.match(first)
    if named is not None:  # also of an incomplete line
        return named[1].decode(errors="replace")
    blocks = [first.lstrip()]
    while b"\n" not in blocks[-1] and (block := os.read(handle, _LARGEST_BLOCK)):
        blocks.append(block)
    try:
        return _READ_HEADER(b"".join(blocks).partition(b"\n")[0]).format
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None  # no header, or an incomplete one


def _sync_directory(path: StrPath) -> None:
    """Write the directory entry of a file to the disk. Windows cannot, and does not need it."""
    if sys.platform != "win32":
        directory = os.open(os.path.dirname(os.path.realpath(path)), os.O_RDONLY)  # noqa: PTH120  # may be bytes-like
        try:
            with suppress(OSError):  # some file systems cannot
                os.fsync(directory)
        finally:
            os.close(directory)


def _lock(handle: int) -> None:
    """Lock the file until it is closed: half of another writer's line would look like an incomplete one."""
    if sys.platform != "win32":
        # Some network file systems have no locks. There each write still goes to the end.
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)


def _unlock(handle: int) -> None:
    """Release the lock also where a process that was forked meanwhile still has the file open."""
    if sys.platform != "win32":
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)


def _repair_end(handle: int, torn: str) -> bool:
    """Move an incomplete last line away; return whether the last line is complete but has no line break."""
    start, rest = _find_rest(handle)
    if not rest or is_json(rest):
        return bool(rest)
    with os.fdopen(_open_torn(torn), "ab") as file:
        is_new = file.tell() == 0
        file.write(rest)
        file.write(b"\n")
        file.flush()
        os.fsync(file.fileno())
    if is_new:
        _sync_directory(torn)
    os.ftruncate(handle, start)
    return False


def _open_torn(torn: str) -> int:
    """Open the file for incomplete lines; if its name is a link or a device, a file with a number."""
    for number in count():
        try:
            handle = os.open(f"{torn}.{number}" if number else torn, _FLAGS | _NO_LINK, _PRIVATE)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO):
                continue
            raise
        if stat.S_ISREG(os.fstat(handle).st_mode):
            return handle
        os.close(handle)
    raise AssertionError("counting never ends")


def _find_rest(handle: int) -> tuple[int, bytes]:
    """Return what follows the last line break, and its position; reads backwards, each byte once."""
    blocks: list[bytes] = []
    end = os.lseek(handle, 0, os.SEEK_END)
    size = _FIRST_BLOCK
    while end:
        begin = max(0, end - size)
        block = _read_block(handle, begin, end)
        found = block.rfind(b"\n")
        if found >= 0:
            end = begin + found + 1
            blocks.append(block[found + 1 :])
            break
        blocks.append(block)
        end = begin
        size = min(2 * size, _LARGEST_BLOCK)
    blocks.reverse()
    return end, b"".join(blocks)


def _read_block(handle: int, begin: int, end: int) -> bytes:
    """Read a range of a file. One read may return less than was asked for."""
    os.lseek(handle, begin, os.SEEK_SET)
    parts: list[bytes] = []
    while begin < end and (part := os.read(handle, end - begin)):
        parts.append(part)
        begin += len(part)
    return b"".join(parts)


def _write_line(handle: int, line: bytes) -> None:
    """Write a line in one write. If the system writes only a part, the rest follows under the same lock.

    If it cannot write more, because the disk is full or a limit is reached, the file is restored.
    """
    begin = os.lseek(handle, 0, os.SEEK_END)
    remaining = memoryview(line + b"\n")
    try:
        while remaining:
            remaining = remaining[os.write(handle, remaining) :]
    except OSError:
        with suppress(OSError):
            os.ftruncate(handle, begin)
        raise
