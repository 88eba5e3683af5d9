"""What a stored session holds: the conversation that counts, and everything around it.

A *format* is a way to store histories (`claude-code`, `codex`). A *history* is what was read from one. A *session* is
one stored history at its place on this machine.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, final

import msgspec

from segue.conversation.context import Context, Summary
from segue.conversation.messages import Message
from segue.projection.report import Report

ChildKind: TypeAlias = Literal["subagent", "fork"]


class _Value(msgspec.Struct, frozen=True, kw_only=True):
    """The base class of the values of a history."""


@final
class HistoryOrigin(_Value, frozen=True, kw_only=True):
    """Where a history was read: the format, the id of the session, the version of the program, the file."""

    format: str
    id: str | None = None
    version: str | None = None
    path: str | None = None


@final
class Parent(_Value, frozen=True, kw_only=True):
    """The session that this one continues: a `fork` of it, or a `subagent` that it started."""

    id: str
    kind: ChildKind
    path: str | None = None


@final
class Branch(_Value, frozen=True, kw_only=True):
    """Another end of the session's tree. `id` selects it: `view="branch=ID"`.

    `messages` counts what it does not share with the active path.
    """

    id: str
    messages: int
    updated: int | None = None
    text: str = ""


@final
class Compaction(_Value, frozen=True, kw_only=True):
    """A summary that the agent wrote, and the messages that it sends no more.

    `summary.covers` counts the messages of the full history before the first one that is still sent.
    """

    summary: Summary
    messages: tuple[Message, ...] = ()
    id: str | None = None


@final
class Child(_Value, frozen=True, kw_only=True):
    """A sub-agent: its id, the tool call that started it, and its history where the file is there."""

    id: str
    call_id: str | None = None
    title: str | None = None
    path: str | None = None
    history: History | None = None


@final
class Record(_Value, frozen=True, kw_only=True):
    """A record of the session that is not part of the conversation.

    `line` counts from 1. `data` is set only if the records were asked for: most of a file can be such records.
    """

    kind: str
    line: int
    size: int
    data: object = None


@final
class History(_Value, frozen=True, kw_only=True):
    """A stored session, read.

    `context` has the messages of the view: by default the active path, which is what the agent would send. Fields of
    the format that segue has no field for are in `extra` of each message, under the name of the format. A text that
    the agent added by itself has `{"agent": {"own": True}}` in `extra`. `report` has everything that is not in
    `context`. Times are Unix milliseconds.
    """

    context: Context
    origin: HistoryOrigin
    title: str | None = None
    cwd: str | None = None
    created: int | None = None
    updated: int | None = None
    parent: Parent | None = None
    children: tuple[Child, ...] = ()
    branches: tuple[Branch, ...] = ()
    compactions: tuple[Compaction, ...] = ()
    records: tuple[Record, ...] = ()
    report: Report = Report()


@final
class Session(_Value, frozen=True, kw_only=True):
    """One stored history, as a list shows it. Values that need the whole file are None where it is long.

    `path` is the file or the database; `id` selects the session in it. `read_history` takes a session.
    """

    format: str
    id: str
    path: str
    title: str | None = None
    cwd: str | None = None
    created: int | None = None
    updated: int | None = None
    models: tuple[str, ...] = ()
    messages: int | None = None
    tokens: int | None = None
    cost: float | None = None
    size: int = 0
    parent: Parent | None = None


@final
class SessionName(_Value, frozen=True, kw_only=True):
    """A session by its agent and its id, the beginning of the id, or `last`. It never is a path.

    What comes from a stranger, such as an agent that asks for a session, is read as this and not as a text: only what
    a list of sessions has can be found with it.
    """

    format: str
    id: str


@final
class WrittenFile(_Value, frozen=True, kw_only=True):
    """A file to be stored: its path below the folder of the agent, with `/` between the parts, and its bytes."""

    name: str
    data: bytes


@final
class Originals(_Value, frozen=True, kw_only=True):
    """A conversation of other programs before it was written, for the way back.

    `messages` are those that the program of the format sends, `positions` their positions in `context`.
    """

    context: Context
    messages: tuple[Message, ...]
    positions: tuple[int, ...]


@final
class Written(_Value, frozen=True, kw_only=True):
    """A history in another format: the files, the command that continues it, and what could not be kept.

    Nothing is on the disk yet: `save_history` stores the files. `resume` continues the session from the folder of the
    agent, `resume_file` from any other folder; empty if the program cannot. `setup` is run before it, for a program
    that keeps its sessions in a database. In all of them `{file}` means the path of the stored file, `{folder}` the
    folder that it is in. `originals` is what was given, if messages of other programs are in it: `save_history` stores
    it too, and `restore_history` finds it when the session comes back.
    """

    format: str
    id: str
    files: tuple[WrittenFile, ...]
    resume: tuple[str, ...] = ()
    resume_file: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    report: Report = Report()
    originals: Originals | None = None
