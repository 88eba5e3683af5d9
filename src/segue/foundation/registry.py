"""The registry of one kind of records: segue's own, those of a program, and those of installed packages.

Protocols and formats are registered alike. A record of segue is in a folder, as `PROTOCOL` in `protocol.py` or as
`FORMAT` in `format.py`, and is imported when it is first needed. A package adds a record with an entry point of the
group `segue.protocols` or `segue.formats`, a program with `register_protocol` or `register_format`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar, cast, final
from warnings import warn

from segue.errors import SettingsError, UnknownFormat, UnknownProtocol
from segue.foundation.entry_points import find_entry_points

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Named(Protocol):
    """A record that is registered under its name."""

    @property
    def name(self) -> str:
        """The name of the record."""
        ...


R = TypeVar("R", bound=Named)


def _accept(record: object) -> None:
    """Accept any record."""


@final
class Registry(Mapping[str, R], Generic[R]):
    """Every record of one kind by name. Iterating over names loads nothing; getting a record loads its folder.

    `kind` is the word for a record, such as `protocol`; names of modules, of the group of entry points and of functions
    in errors are made from it. `folders` are segue's own records, in the order of tables and tests. `title` gives the
    title of a record for errors, `check` raises a `SettingsError` for a record with a value that cannot be used.
    """

    def __init__(
        self,
        kind: str,
        record: type[R],
        folders: Mapping[str, str],
        *,
        error: type[UnknownFormat | UnknownProtocol],
        title: Callable[[R], str],
        check: Callable[[R], None] = _accept,
    ) -> None:
        self.records: dict[str, R] = {}
        """The records that were registered or imported so far. Records are never removed."""
        self.added: int = 0
        """How many of them are not segue's own."""
        self.folders: Final = folders
        self._kind: Final = kind
        self._record: Final = record
        self._error: Final = error
        self._title: Final = title
        self._check: Final = check

    def register(self, record: R) -> None:
        """Register a record under its name. Registering an equal record again changes nothing.

        Raises:
            SettingsError: another record has this name already, or the record has a value that cannot be used.
        """
        function = f"register_{self._kind}()"
        if not isinstance(record, self._record):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise SettingsError(
                f"{function} takes a segue.{self._record.__name__}, not a value of type {type(record).__name__}; "
                "pass the record itself, not its module",
                key=self._kind,
            )
        known = self.get_record(record.name) if record.name in self.folders else self.records.get(record.name)
        if known is not None and known != record:
            own = record.name in self.folders
            owner = "segue itself" if own else f"another record, {self._title(known)!r}"
            raise SettingsError(
                f"{function}: the name {record.name!r} is taken by {owner}; choose another `name` for this record",
                key=record.name,
            )
        self._check(record)
        self.records[record.name] = record
        if known is None:
            self.added += 1  # after the record: who sees the count finds the record

    def names(self) -> tuple[str, ...]:
        """List all records by name: segue's own, registered ones, those of installed packages. Loads none of them."""
        return tuple(dict.fromkeys((*self.folders, *self.records, *sorted(self._entry_points()))))

    def find(self, name: str) -> R | None:
        """Find a record by name; None if there is none.

        Raises:
            UnknownProtocol, UnknownFormat: an installed package declares the name and cannot be loaded.
        """
        if (record := self.records.get(name)) is not None:
            return record
        if (folder := self.folders.get(name)) is not None:
            module = import_module(f"{folder}.{self._kind}")
            record = self.records[name] = cast("R", getattr(module, self._kind.upper()))
            return record
        point = self._entry_points().get(name)
        return None if point is None else self._load_entry_point(point)

    def get_record(self, name: str) -> R:
        """Get a record by name. Its folder, or the package that declares it, is imported on first use.

        Raises:
            UnknownProtocol, UnknownFormat: no record has this name (the error suggests similar names), or it cannot be
                loaded.
        """
        record = self.find(name)
        if record is None:
            names = self.names()
            near = get_close_matches(name, names, n=3, cutoff=0.5)
            known = f"did you mean {' or '.join(near)}?" if near else f"known {self._kind}s: {', '.join(names)}"
            raise self._error(f"no {self._kind} is called {name!r}: {known}", name=name, suggestions=near)
        return record

    def each(self, leave_out: Collection[str] = ()) -> Iterator[R]:
        """Yield every record in the order of `names`; each is loaded when it is asked for.

        A record of a package that cannot be loaded causes a warning and is left out.
        """
        for name in self.names():
            if name in leave_out:
                continue
            try:
                yield self.get_record(name)
            except self._error as error:
                warn(f"{error}", RuntimeWarning, stacklevel=3)

    def _entry_points(self) -> Mapping[str, EntryPoint]:
        points = find_entry_points(f"segue.{self._kind}s")
        return {point.name: point for point in points if point.name not in self.folders}

    def _load_entry_point(self, point: EntryPoint) -> R:
        package = point.dist.name if point.dist is not None else point.value
        place = f"the package {package!r} declares the {self._kind} {point.name!r} as {point.value!r}"
        try:
            record = cast("object", point.load())
        except Exception as error:  # whatever another package raises while it is imported
            raise self._error(
                f"{place}, which cannot be imported: {type(error).__name__}: {error}; upgrade or uninstall {package!r}",
                name=point.name,
            ) from error
        if not isinstance(record, self._record) or record.name != point.name:
            called = f"a {self._kind} called {record.name!r}" if isinstance(record, self._record) else None
            raise self._error(
                f"{place}, which is {called or f'a {type(record).__name__}'}; it has to be a "
                f"segue.{self._record.__name__} with name={point.name!r}: correct the entry point of {package!r}",
                name=point.name,
            )
        try:
            self.register(record)
        except SettingsError as error:
            raise self._error(f"{place}, which cannot be used: {error}", name=point.name) from error
        return record

    def __getitem__(self, name: str) -> R:
        record = self.find(name)
        if record is None:
            raise KeyError(name)
        return record

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.records or name in self.folders or name in self._entry_points()
