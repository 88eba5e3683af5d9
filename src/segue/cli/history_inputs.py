"""How commands open a SOURCE: a file, a folder, a database, an archive, `claude-code:last`, `codex:ID`, or `-`.

`show`, `check`, `convert` and `ui` read a stored conversation or a request from a file. `SourceFile` gives them a
session of an agent or an export as such a file, so that they need no code of their own for it.
"""

from __future__ import annotations

import io
import sys
from collections import Counter
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, cast, final

import click

from segue.conversation.stored import dump
from segue.errors import DecodeError, LoadError, SegueError, UnknownFormat
from segue.histories.api import as_history, find_format_of, is_binary, is_session_file, read_history
from segue.histories.kit.history import History
from segue.histories.kit.source import Source
from segue.histories.registry import find_format, format_names, get_format
from segue.projection.report import Loss, Report

FORMAT_NAMES: Final = click.Choice(format_names())
_HEAD: Final = 64 * 1024
_STANDARD_INPUT: Final = "-"


def open_history(
    given: str,
    *,
    name: str | None = None,
    view: str = "active",
    session: str | None = None,
    keep_records: bool = False,
) -> History:
    """Read a history from any SOURCE; a stored conversation or a request is a history without an origin.

    Raises:
        SegueError: it cannot be read; the message begins with the name of the source.
    """
    if _is_place(given):
        return read_history(given, format=name, view=view, session=session, keep_records=keep_records)
    is_standard_input = given == _STANDARD_INPUT
    data = sys.stdin.buffer.read() if is_standard_input else _read(Path(given))
    source = data if is_standard_input else Path(given)
    shown = "standard input" if is_standard_input else given
    try:
        if name is not None or is_session_file(data, shown):
            return read_history(source, format=name, view=view, session=session, keep_records=keep_records)
        return _open_conversation(data, source, shown)
    except UnknownFormat:
        raise
    except SegueError as error:
        from segue.cli.inputs import raise_named  # loads projection

        raise_named(error, shown)


def _open_conversation(data: bytes, source: object, shown: str) -> History:
    from segue.documents import open_source  # loads projection, which a list of sessions does not need

    try:
        opened = open_source(io.BytesIO(data), shown, protocol=None)
    except (LoadError, DecodeError):
        if find_format_of(Source(data=data, name=shown))[0] is None:
            raise
        return read_history(source)
    if opened.document is not None:
        return as_history(opened.document.prompt.context)
    if find_format_of(Source(data=data, name=shown))[0] is not None:
        return read_history(source)
    raise LoadError("the file has one conversation on each line; write the one that you want to a file of its own")


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read()
    except OSError as error:
        raise LoadError(f"{path}: cannot read the file: {error.strerror}") from error


def _is_place(given: str) -> bool:
    """Whether this names a session by its agent, or is a folder or a file that is not text."""
    if given == _STANDARD_INPUT:
        return False
    agent, colon, rest = given.partition(":")
    if colon and rest and not Path(given).exists():
        record = find_format(agent)
        if record is not None:
            if record.place is None:
                raise LoadError(f"{given}: {record.title} has no sessions on this machine; name a file")
            return True
        if agent.replace("-", "").isalpha() and len(agent) > 1:
            get_format(agent)  # explains which names there are
    path = Path(given).expanduser()
    return path.is_dir() or (path.is_file() and is_binary(_head(path)))


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_HEAD)
    except OSError:
        return b""


@final
class _HistoryFile(io.BytesIO):
    """A history as a stored conversation, under the name of its source."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data)
        self.name: Final = name


@final
class SourceFile(click.ParamType[BinaryIO]):
    """An argument that is a file with a conversation, or any other SOURCE of a history."""

    name = "source"
    _files: Final = click.File("rb")

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> BinaryIO:
        """Open the source; what is read from a session and not in its messages is printed to standard error."""
        if not isinstance(value, str):
            return cast("BinaryIO", value)
        if _is_place(value):
            return _as_file(open_history(value), value)
        file = self._files.convert(value, param, ctx)
        head = _peek(file)
        if is_session_file(head, value):
            return _as_file(read_history(file.read()) if value == _STANDARD_INPUT else open_history(value), value)
        return cast("BinaryIO", file)


def _peek(file: IO[Any]) -> bytes:
    """Read the beginning of a file without taking it away from the next reader; of a pipe, what is there."""
    if file.seekable():
        head = cast("bytes", file.read(_HEAD))
        file.seek(0)
        return head
    peek = getattr(file, "peek", None)
    return b"" if peek is None else cast("bytes", peek(_HEAD))


def _as_file(history: History, name: str) -> BinaryIO:
    if summary := summarise(history.report):
        click.echo(f"segue: {name}: {summary}; `segue import {name} -o FILE` reports all", err=True)
    return _HistoryFile(dump(history.context), name)


def summarise(report: Report) -> str:
    """Count what a history has beside its messages: other branches, sub-agents, messages that were compacted."""
    counts = Counter(change.code for change in report.changes if change.loss == Loss.CONTENT)
    return ", ".join(f"{count} x {code.value}" for code, count in sorted(counts.items()))
