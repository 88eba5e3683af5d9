"""What a format reads: bytes, a parsed value or a database, with the files next to it.

Formats do no I/O. `segue.histories.places` makes sources from files; tests make them from values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final, Protocol, final

from segue.errors import SettingsError


class Neighbours(Protocol):
    """The files of an agent, by their path relative to its folder; nothing outside of the folder can be read."""

    def find(self, pattern: str) -> Sequence[str]:
        """Return the paths that match a pattern with `*` and `**`, sorted."""
        ...

    def read(self, name: str) -> bytes | None:
        """Read a file; None if it is not there or cannot be read."""
        ...


class AgentDatabase(Protocol):
    """An SQLite database that is opened read-only."""

    def tables(self) -> frozenset[str]:
        """Return the names of the tables."""
        ...

    def columns(self, table: str) -> frozenset[str]:
        """Return the names of the columns of a table."""
        ...

    def rows(self, table: str, **equal: object) -> Iterator[Mapping[str, object]]:
        """Yield the rows of a table whose columns have these values, in the order in which they were inserted."""
        ...

    def column(self, table: str, name: str) -> Iterator[object]:
        """Yield the different values of one column of a table."""
        ...


class LongData(Protocol):
    """The bytes of a file: in memory, or read from the disk part by part."""

    def __len__(self) -> int:
        """Return the size."""
        ...

    def __getitem__(self, part: slice, /) -> bytes:
        """Return a part."""
        ...

    def find(self, text: bytes, start: int = ..., end: int | None = ..., /) -> int:
        """Find a byte; -1 if it does not occur."""
        ...

    def startswith(self, text: bytes, start: int = ..., /) -> bool:
        """Whether the part at this place begins with a text."""
        ...

    def endswith(self, text: bytes, start: int, end: int, /) -> bool:
        """Whether a part ends with a text."""
        ...


@final
@dataclass(frozen=True)
class MemoryFiles:
    """Neighbours in memory: for tests, and where there are none."""

    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])

    def find(self, pattern: str) -> Sequence[str]:
        """Return the paths that match a pattern, sorted; `*` also matches `/` here."""
        return sorted(name for name in self.files if fnmatchcase(name, pattern.replace("**/", "*")))

    def read(self, name: str) -> bytes | None:
        """Read a file; None if it is not there."""
        return self.files.get(name)


NO_NEIGHBOURS: Final = MemoryFiles()


@final
@dataclass(frozen=True)
class Source:
    """One stored thing. Of `data`, `value`, `database` and `long` one is set.

    `long` is a file that would fill the memory, for a format that reads it part by part (`Format.reads_long`), which
    was recognised as `format` by its beginning.

    `name` is the path relative to the agent's folder, or only the name of the file where that folder is unknown.
    `session` selects one of several sessions in a database or an export; None is the newest. `within` is the folder
    that files next to it have to be in; None is that of the agent.
    """

    data: bytes | None = None
    value: object = None
    database: AgentDatabase | None = None
    name: str = ""
    path: str | None = None
    session: str | None = None
    neighbours: Neighbours = NO_NEIGHBOURS
    within: str | None = None
    long: LongData | None = None
    format: str = ""


@final
@dataclass(frozen=True)
class View:
    """Which part of a history becomes the messages: the `active` path, `full` (nothing compacted), or a `branch`."""

    name: str = "active"
    branch: str | None = None
    keep_records: bool = False

    @classmethod
    def parse(cls, view: str, *, keep_records: bool = False) -> View:
        """Read `active`, `full` or `branch=ID`.

        Raises:
            SettingsError: the view is not one of these.
        """
        name, found, branch = view.partition("=")
        if name == "branch" and found and branch:
            return cls("branch", branch, keep_records)
        if view not in {"active", "full"}:
            raise SettingsError(
                f"view={view!r} is unknown; it is 'active', 'full' or 'branch=ID' with an id of History.branches",
                key="view",
                suggestions=("active", "full"),
            )
        return cls(view, None, keep_records)
