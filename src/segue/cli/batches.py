"""A piece of the input becomes a batch of requests."""

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
    """What is to be done with every line."""

    model: Model
    policy: Policy
    protocol: str | None
    source: Model | None
    """Who wrote the answers, where the bodies do not say."""
    stop: bool
    """Whether a bad line ends the work."""
    reports: bool
    """Whether a report is wanted for each conversation."""


@final
class Batch(NamedTuple):
    """What became of a piece; lines are counted from its first, which is 1, until `after` says where that stands."""

    output: bytes | memoryview
    """The requests, one a line."""
    conversations: int
    messages: int
    kinds: Kinds
    reports: list[tuple[int, bytes]]
    """Reports as JSON, by line."""
    bad: list[BadLine]
    last: int
    """The last line that was looked at: the last of the piece, or the bad one that ended the work."""
    read: int
    """How many bytes of the input that was."""
    stopped: bool

    def after(self, lines: int) -> Batch:
        """Give the same with the numbers that its lines have in the whole input, where so many stand before it."""
        return self._replace(
            reports=[(line + lines, report) for line, report in self.reports],
            bad=[BadLine(line + lines, reason) for line, reason in self.bad],
            last=self.last + lines,
        )


def convert_piece(job: Job, piece: Piece) -> Batch:
    """Convert some lines, in order.

    Raises:
        OSError: they cannot be read any more.
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
