"""Converts a piece of the input into a batch of requests."""

from __future__ import annotations

from collections import Counter
from io import BytesIO
from typing import NamedTuple, final

from segue.cli.pieces import Piece
from segue.cli.reports import Kinds, kinds_of, report_json
from segue.documents import BadLine, Document, read_line
from segue.errors import SegueError
from segue.models.model import Model
from segue.projection.policy import Policy
from segue.projection.report import Report


@final
class Job(NamedTuple):
    """The settings of a conversion; the same for every line."""

    model: Model
    policy: Policy
    protocol: str | None
    source: Model | None
    """The model that wrote the answers, if the bodies do not name it."""
    stop: bool
    """Whether a bad line stops the run."""
    reports: bool
    """Whether to make a report for each conversation."""


@final
class Batch(NamedTuple):
    """The result of a piece. Line numbers begin at 1 in each piece; `after` makes them those of the whole input."""

    output: bytes | memoryview
    """The requests, one on each line."""
    conversations: int
    messages: int
    kinds: Kinds
    reports: list[tuple[int, bytes]]
    """Reports as JSON, by line."""
    bad: list[BadLine]
    last: int
    """The last line that was read: the last of the piece, or the bad line that stopped the run."""
    read: int
    """The bytes of the input that were read."""
    stopped: bool

    def after(self, lines: int) -> Batch:
        """Return the batch with the line numbers of the whole input; `lines` come before this piece."""
        return self._replace(
            reports=[(line + lines, report) for line, report in self.reports],
            bad=[BadLine(line + lines, reason) for line, reason in self.bad],
            last=self.last + lines,
        )


def convert_piece(job: Job, piece: Piece) -> Batch:
    """Convert the lines of a piece, in order.

    Raises:
        OSError: the input file cannot be read any more.
    """
    output: list[bytes] = []
    reports: list[tuple[int, bytes]] = []
    bad: list[BadLine] = []
    kinds: Kinds = Counter()
    messages = last = read = 0
    for last, line in enumerate(BytesIO(piece if isinstance(piece, bytes) else piece.read()), 1):
        read += len(line)
        if line.isspace():
            continue
        document = read_line(line, job.protocol, last, model=job.source)
        made = document if isinstance(document, BadLine) else _convert(job, document, last)
        if isinstance(made, BadLine):
            bad.append(made)
            if job.stop:
                break
            continue
        content, report, size = made
        output += (content, b"\n")
        messages += size
        if report.changes:
            kinds.update(kinds_of(report.changes))
            if job.reports:
                reports.append((last, report_json(report)))
    stopped = job.stop and bool(bad)
    return Batch(b"".join(output), len(output) // 2, messages, kinds, reports, bad, last, read, stopped)


def _convert(job: Job, document: Document, line: int) -> tuple[bytes, Report, int] | BadLine:
    try:
        request = document.prepare(job.model, job.policy)
        return request.content, request.report, len(document.prompt.context.messages)
    except SegueError as error:
        return BadLine(line, str(error))
