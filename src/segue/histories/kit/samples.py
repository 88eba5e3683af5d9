"""Reads the samples of a format from the file `samples.json` in its folder.

A sample has a name; the session as a `document`, as `lines` of JSON, as a `text` or as the `tables` of a database; the
name of its `file` and the files `beside` it; and the turns that are `sent` when it is continued, over the protocol
`wire`. Bytes are written as `{"base64": ...}`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from functools import lru_cache
from pkgutil import get_data
from typing import Any, Final, cast, final

import msgspec

from segue.errors import SettingsError
from segue.histories.kit.format import FormatSample
from segue.histories.kit.source import MemoryFiles, Source
from segue.histories.kit.tables import MemoryDatabase
from segue.histories.kit.writing import json_line

_FILE: Final = "samples.json"


class _Stored(msgspec.Struct, forbid_unknown_fields=True):
    """The bytes of a file; one of the fields is set."""

    document: object = msgspec.UNSET
    lines: list[object] | None = None
    text: str | None = None
    base64: str | None = None

    def data(self) -> bytes:
        """Return the bytes."""
        if self.lines is not None:
            return b"".join(map(json_line, self.lines))
        if self.text is not None:
            return self.text.encode()
        return json_line(self.document) if self.base64 is None else base64.b64decode(self.base64)


@final
class _Sample(_Stored):
    """One sample; `_Stored` is the session itself."""

    name: str = ""
    file: str = ""
    tables: dict[str, list[dict[str, object]]] | None = None
    beside: dict[str, _Stored] = {}
    sent: list[object] | None = None
    wire: str = ""

    def source(self) -> Source:
        """Return what the format reads."""
        if self.tables is not None:
            rows = {table: [_read_cells(row) for row in rows] for table, rows in self.tables.items()}
            return Source(database=MemoryDatabase(rows), name=self.file)
        files = {name: stored.data() for name, stored in self.beside.items()}
        return Source(data=self.data(), name=self.file, neighbours=MemoryFiles(files))


def _read_cells(row: Mapping[str, object]) -> dict[str, object]:
    return {
        name: base64.b64decode(cast("dict[str, Any]", value)["base64"]) if isinstance(value, dict) else value
        for name, value in row.items()
    }


def read_samples(package: str | None) -> Callable[[], tuple[FormatSample, ...]]:
    """Return a function that reads the samples of a package, once, when it is first called.

    Raises:
        SettingsError: the file is missing or is not a list of samples. Raised by the function that is returned.
    """

    @lru_cache(maxsize=1)
    def samples() -> tuple[FormatSample, ...]:
        try:
            stored = msgspec.json.decode(get_data(package or "", _FILE) or b"", type=tuple[_Sample, ...])
        except (OSError, msgspec.DecodeError) as error:
            raise SettingsError(f"{package}/{_FILE} cannot be read as samples: {error}", key=_FILE) from error
        return tuple(FormatSample(each.name, each.source(), each.sent, each.wire) for each in stored)

    return samples
