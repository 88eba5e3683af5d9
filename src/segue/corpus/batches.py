"""The result of converting a piece: a batch of requests, details of its rows, and the rows that are bad."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import NamedTuple, final

from segue.corpus.summary import Summary
from segue.foundation.json_text import encode_json


@final
class BadRow(NamedTuple):
    """A row that cannot be converted: where it is, the class of the error, one sentence, and its bytes."""

    line: int
    offset: int
    kind: str
    reason: str
    raw: bytes

    def entry(self, file: str, span: int = 0) -> bytes:
        """Write the row as a line of a quarantine file. `raw` is the text, or base64 if it is not valid UTF-8."""
        entry: dict[str, object] = {"file": file, "line": self.line, "offset": self.offset}
        if span:
            entry["span"] = span
        entry |= {"error": self.kind, "reason": self.reason}
        try:
            entry["raw"] = self.raw.decode()
        except UnicodeDecodeError:
            entry["raw_base64"] = base64.b64encode(self.raw).decode()
        return encode_json(entry) + b"\n"


@final
class RowDetails(NamedTuple):
    """The output for a row in addition to the request: id, changes as JSON, messages, tokens, size of the request.

    For a batch file also the id that the row had, and the names of tools that were changed.
    """

    id: str | None
    line: int
    changes: str
    messages: int
    tokens: int
    size: int
    given_id: str | None = None
    tool_names: Mapping[str, str] | None = None


@final
class Batch(NamedTuple):
    """The result of a piece. Line numbers begin at 1 in each piece; `after` makes them those of the shard."""

    output: bytes | memoryview
    """The requests, one on each line."""
    summary: Summary
    details: list[RowDetails]
    reports: list[tuple[int, bytes]]
    """Reports as JSON, by line."""
    bad: list[BadRow]
    stopped: bool
    shard: int
    last: bool
    failed: str = ""

    def after(self, lines: int) -> Batch:
        """Return the batch with the line numbers of the shard; `lines` come before this piece."""
        self.summary.numbered(lines)
        return self._replace(
            details=[each._replace(line=each.line + lines) for each in self.details],
            reports=[(line + lines, report) for line, report in self.reports],
            bad=[each._replace(line=each.line + lines) for each in self.bad],
        )
