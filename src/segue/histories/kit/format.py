"""The record of a format: data and plain functions. Everything else iterates the registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias, final

from segue.conversation.messages import Message
from segue.histories.kit.anatomy import Anatomy
from segue.histories.kit.evidence import Form
from segue.histories.kit.history import History, Session, WrittenFile
from segue.histories.kit.notes import Notes
from segue.histories.kit.source import Source, View
from segue.models.model import Model

_RUN: Final = (", run", " dump")
"""How a source says that the program itself wrote what was looked at."""
FormatKind: TypeAlias = Literal["agent", "framework", "export"]


@final
@dataclass(frozen=True)
class Place:
    """Where an agent stores its sessions.

    `variables` are environment variables that name the folder, the first one that is set wins; a value such as
    `XDG_DATA_HOME/opencode` adds a folder to that of the variable. `folder` is the default, relative to the home
    folder; `system_folders` are those of other systems, by the name that Python gives them (`darwin`, `win32`).
    `patterns` find the files of sessions below it, `databases` SQLite databases. `projects` find files and databases
    below the folder of a project, for agents that store their sessions there. `others` are places of other programs
    that store the same format; nothing is written there. `project_file` is the name of a file above a session that
    holds the folder of its project, for programs whose session files do not name it.
    """

    folder: str
    variables: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    databases: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    others: tuple[Place, ...] = ()
    system_folders: Mapping[str, str] = field(default_factory=dict[str, str])
    project_file: str = ""


@final
class Excerpt(NamedTuple):
    """The beginning and the end of a file, for the list of sessions. `whole` says that `head` is all of it."""

    name: str
    path: str
    size: int
    head: bytes
    tail: bytes
    whole: bool
    modified: int


@final
class Cut(NamedTuple):
    """Where a session is compacted: the messages before `at` stay in the file and are no longer sent.

    `text` replaces them: the first message of the user and the note of the cut. `tokens` is what the whole session
    had before it was compacted, as programs record it.
    """

    at: int
    text: str
    tokens: int


@final
class Draft(NamedTuple):
    """What a format writes.

    `messages` are ready for the model: those of another format are projected, those of this format are unchanged.
    `id` is a UUID for the new session. `settings` are the user's own, from `Format.read_settings`. `positions`
    are the positions of the messages in the given history, None for one that projection inserted. `cut` is where a
    history that does not fit the window is compacted, for formats with `Format.compacts`.
    """

    history: History
    messages: tuple[Message, ...]
    model: Model
    id: str
    cwd: str | None
    started: int
    settings: Mapping[str, str]
    notes: Notes
    positions: tuple[int | None, ...] = ()
    cut: Cut | None = None


@final
class Output(NamedTuple):
    """What a format wrote: the files, and the commands that take them in and continue the session, see `Written`.

    `id` is that of the session where the program wants another form than that of `Draft.id`.
    """

    files: tuple[WrittenFile, ...]
    resume: tuple[str, ...] = ()
    resume_file: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    id: str = ""


@final
@dataclass(frozen=True)
class FormatSample:
    """A small session for the conformance kit: the source, and what the agent sends when it continues it.

    `sent` is a list of turns on the wire of the format, without texts that the agent adds at that moment. `wire` names
    the protocol where the format stores its own blocks.
    """

    name: str
    source: Source
    sent: list[object] | None = None
    wire: str = ""


def _no_samples() -> tuple[FormatSample, ...]:
    return ()


@final
@dataclass(frozen=True, kw_only=True)
class Format:
    """One way to store histories.

    `wire` is the protocol whose blocks it stores, None if it has its own blocks; histories are projected for it.
    `forms` are what it is recognised by, of a format of a package; those of segue's own formats are in
    `segue.histories.forms`. `read` reads one session, `list` describes all
    sessions of a file from its beginning and its end, or of a source that holds several; `write` is None if the format
    is only read. `give` makes the framework's own objects of written files, and needs it to be installed.
    `adds_own_text` says that the program adds instructions and reminders by itself, so that those of
    another agent are left out; `closes_calls` that it adds a result to a call that has none, `sends_thinking` that it
    sends the thinking of its files unchanged, signed or not; `reads_lines` that it is JSON Lines, so that a
    line that is cut off is left out, `reads_long` that `Source.long` is read, so that a long file is never in memory as
    a whole. `archive_members` are patterns of the files in a zip archive that hold the
    conversations. `keeps_folders` says that the program finds the files of a session by the folders that they lie in.
    `compacts` says that `write` writes `Draft.cut` as the program's own record of a compaction, so that the file keeps
    what no longer fits the window; without it only what fits is written. `anatomy` says how a session is repaired.
    `source` says what is known from where, in parts joined by `;`, and `read_on` when: a part with ", run" ("Acme CLI
    1.2, run against a scripted model") or " dump" says that the program itself was run.
    """

    name: str
    title: str
    kind: FormatKind = "agent"
    wire: str | None = None
    forms: tuple[Form, ...] = ()
    read: Callable[[Source, View], History]
    write: Callable[[Draft], Output] | None = None
    give: Callable[[tuple[WrittenFile, ...]], object] | None = None
    describe: Callable[[Excerpt], Session | None] | None = None
    list: Callable[[Source], tuple[Session, ...]] | None = None
    place: Place | None = None
    setting_files: tuple[str, ...] = ()
    read_settings: Callable[[Mapping[str, bytes]], Mapping[str, str]] = lambda files: {}  # noqa: ARG005
    adds_own_text: bool = True
    closes_calls: bool = True
    compacts: bool = False
    sends_thinking: bool = False
    reads_lines: bool = True
    reads_long: bool = False
    archive_members: tuple[str, ...] = ()
    keeps_folders: bool = False
    known_records: frozenset[str] = frozenset()
    anatomy: Anatomy | None = None
    samples: Callable[[], tuple[FormatSample, ...]] = field(default=_no_samples)
    example: Model | None = None
    source: str = ""
    read_on: str = ""

    @property
    def was_run(self) -> bool:
        """Whether the program or framework was run, and what it wrote or resumed was looked at; `source` says so."""
        return any(mark in part for part in self.source.split(";") for mark in _RUN)
