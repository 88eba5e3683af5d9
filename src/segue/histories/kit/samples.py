"""Reads the samples of a format from the file `samples.json` in its folder, and its functions from its modules.

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
from segue.protocols.kit.protocol import import_part

_FILE: Final = "samples.json"
MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "read": ("NAME", "KNOWN_RECORDS", "read", "describe", "list_sessions"),
    "store": ("list_sessions",),
    "describe": ("describe", "read_settings"),
    "write": ("write", "describe", "read_settings"),
}
"""The modules of an agent's format, and the names that each defines for the record: in lower case they are its fields,
and `list_sessions` is `list`."""


class _Stored(msgspec.Struct, forbid_unknown_fields=True):
    """The bytes of a file; one of the fields is set."""

    document: object = msgspec.UNSET
    lines: list[object] | None = None
    text: str | None = None
    base64: str | None = None

    def data(self) -> bytes:
        """Give the bytes."""
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
        """Give what the format reads."""
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
    """Give a function that reads the samples of a package, once, when it is first called.

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


def read_parts(package: str | None) -> dict[str, Any]:
    """Import the modules of an agent's format, and give the fields of its record that they define; read its samples."""
    parts: dict[str, Any] = {"samples": read_samples(package)}
    for module, names in MODULES.items():
        found = import_part(f"{package}.{module}", is_needed=module == "read")
        parts |= {name.lower().removesuffix("_sessions"): found[name] for name in names if name in found}
    return parts
