"""Collects the report of one history while it is read or written."""

from __future__ import annotations

from collections.abc import Collection
from typing import final

from segue.errors import Path
from segue.foundation.plurals import counted
from segue.histories.kit.history import Record
from segue.projection.report import Change, ChangeCode, Loss, Report


@final
class Notes:
    """The changes and the records so far.

    Records are reported once for each kind. `known` are kinds that only repeat the conversation or serve the display;
    the loss of any other kind is opaque, because segue does not know what it holds.
    """

    def __init__(self, *, known: Collection[str] = (), keep: bool = False) -> None:
        self._known = known
        self._keep = keep
        self._changes: list[Change] = []
        self._records: list[Record] = []
        self._unreadable = 0
        self.refused: dict[bytes, str] = {}
        """Why lines cannot be read, by the digest of their bytes: a line that is repeated is parsed once."""

    @property
    def keeps(self) -> bool:
        """Whether the data of records is kept."""
        return self._keep

    @property
    def left_out(self) -> int:
        """How many lines and records are noted as left out."""
        return self._unreadable + len(self._records)

    @property
    def noted(self) -> set[int]:
        """The numbers of the lines and records that are noted as left out."""
        lines = (change.path[-1] for change in self._changes if change.code is ChangeCode.LINE_UNREADABLE)
        return {record.line for record in self._records} | {each for each in lines if isinstance(each, int)}

    def add(self, code: ChangeCode, path: Path, loss: Loss, detail: str = "") -> None:
        """Note one change."""
        self._changes.append(Change(code=code, path=path, loss=loss, detail=detail))

    def record(self, kind: str, line: int, size: int, data: object = None) -> None:
        """Note a record that is not part of the conversation; its data is kept only if that was asked for."""
        self._records.append(Record(kind=kind, line=line, size=size, data=data if self._keep else None))

    def unreadable(self, line: int, reason: str) -> None:
        """Note a line that cannot be read."""
        self._unreadable += 1
        self.add(ChangeCode.LINE_UNREADABLE, ("lines", line), Loss.CONTENT, reason)

    def join(self, others: Notes) -> None:
        """Add what was noted apart."""
        self._changes += others._changes
        self._records += others._records
        self._unreadable += others._unreadable

    @property
    def records(self) -> tuple[Record, ...]:
        """The records in the order of the file."""
        return tuple(sorted(self._records, key=lambda record: record.line))

    def report(self) -> Report:
        """Return the report: the changes, then one for each kind of record."""
        kinds: dict[str, list[Record]] = {}
        for record in self.records:
            kinds.setdefault(record.kind, []).append(record)
        changes = list(self._changes)
        for kind, records in kinds.items():
            size = sum(record.size for record in records)
            count = counted(len(records), "record")
            loss = Loss.NONE if kind in self._known else Loss.OPAQUE
            changes.append(
                Change(
                    code=ChangeCode.RECORD_LEFT_OUT,
                    path=("records", kind),
                    loss=loss,
                    detail=f"{count}, {size} bytes, first in line {records[0].line}",
                )
            )
        return Report(tuple(changes))
