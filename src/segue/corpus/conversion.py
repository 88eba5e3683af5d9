"""Converts rows: one row to one request, or a piece of the input to a batch of requests.

A row never raises: whatever is wrong with it, an error of a codec included, costs that row alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from io import BytesIO
from pathlib import PurePosixPath
from typing import Final, NamedTuple, TypeAlias, cast, final

from segue.conversation.context import Context
from segue.conversation.limits import without_line
from segue.conversation.messages import Usage
from segue.corpus.batches import BadRow, Batch, RowDetails
from segue.corpus.compression import open_reader
from segue.corpus.files import files_at
from segue.corpus.jobs import Job
from segue.corpus.lengths import estimate_length
from segue.corpus.pieces import RowSpan, ShardPiece, WholeFile
from segue.corpus.rows import CorpusRow, Reader
from segue.corpus.summary import ChangeSample, Summary, sample_key, smallest
from segue.counting.counter import TokenCounter
from segue.errors import SegueError, render_path
from segue.foundation.json_text import encode_json, encode_valid_json
from segue.histories.reading import without_collection
from segue.models.price import batch_share, find_cost
from segue.projection.projector import Projection
from segue.projection.report import Change, Report
from segue.protocols.drift import find_drift
from segue.requests.prepare import Request

_SHOWN: Final = 200
"""Characters of the content before and after a change that a sample shows."""

Place: TypeAlias = tuple[str, int, int]
"""Where a row is: the file, the line in its piece, and the offset."""


@final
class Prepared(NamedTuple):
    """A request for a row, its line, the id that the output has, and the id that the row had if that differs."""

    request: Request
    content: bytes
    id: str | None
    given_id: str | None = None


Prepare: TypeAlias = Callable[[CorpusRow, Place], Prepared]


@final
class Made(NamedTuple):
    """A row that was converted."""

    id: str | None
    content: bytes
    report: Report
    messages: int
    tokens: int
    given_id: str | None = None
    tool_names: Mapping[str, str] | None = None

    def changes(self) -> str:
        """Count the changes by code and loss, as JSON."""
        counts: dict[str, int] = {}
        for change in self.report.changes:
            kind = change.code + " " + change.loss  # a text: to hash two members of enums takes ten times as long
            counts[kind] = counts.get(kind, 0) + 1
        listed = [
            {"code": code, "loss": loss, "times": times}
            for (code, loss), times in zip(map(str.split, counts), counts.values(), strict=True)
        ]
        return encode_json(listed).decode()


class RowConverter:
    """Converts rows for one job; what depends only on the job is made once."""

    def __init__(self, job: Job) -> None:
        self.job: Job = job
        self._counter = TokenCounter(job.model, job.policy.counter)
        self._prepare: Prepare = _preparation(job)
        self._share = batch_share(job.model)
        price = job.model.cost
        is_flat = not price.tiers
        self._rate = price.input / 1_000_000 if is_flat and find_cost(price, Usage(input=1)) is not None else None
        self._is_free = find_cost(price, Usage(input=1)) is None

    def convert(self, row: CorpusRow) -> Made:
        """Convert a row that was read.

        Raises:
            SegueError: the row cannot be converted.
        """
        made, content, name, given = self._prepare(row, ("", 0, 0))
        sent, messages = made.projection, row.document.prompt.context.messages
        tokens = estimate_length(sent.context, sent.options, self._counter)
        return Made(name, content, made.report, len(messages), tokens, given, made.tool_names or None)

    def warm_up(self) -> None:
        """Convert a short request, to import everything that most rows need."""
        with suppress(SegueError):
            self.convert(Reader().read_line(b'{"messages":[{"role":"user","content":"."}]}'))

    def convert_into(self, row: CorpusRow, summary: Summary, place: Place) -> Made:
        """Convert a row and add it to a summary."""
        made, content, name, given_id = self._prepare(row, place)
        sent, given = made.projection, row.document.prompt.context
        tokens = estimate_length(sent.context, sent.options, self._counter)
        report = made.report
        summary.conversations += 1
        summary.messages += len(given.messages)
        summary.bytes_written += len(content) + 1
        summary.filled_nulls += row.filled
        summary.tokens += tokens
        if not self._is_free:
            cost = self._cost(tokens)
            summary.cost = (summary.cost or 0.0) + cost
            summary.batch_cost = (summary.batch_cost or 0.0) + cost * self._share
        for message in given.messages:
            if message.role == "assistant" and message.usage is not None:
                summary.usage_of(f"{message.provider}/{message.model}").add_reply(message.usage)
                for name in find_drift(message):
                    summary.drift[name] = summary.drift.get(name, 0) + 1
        if report.changes:
            _count(report, summary, given, sent, place)
        return Made(name, content, report, len(given.messages), tokens, given_id, made.tool_names or None)

    def _cost(self, tokens: int) -> float:
        if self._rate is not None:
            return tokens * self._rate
        cost = find_cost(self.job.model.cost, Usage(input=tokens))
        return 0.0 if cost is None else cost.total


def _preparation(job: Job) -> Prepare:
    """Choose how requests are made: for a training set nothing may be invented, a batch has its own lines."""
    if job.purpose == "training" and job.form is not None:
        from segue.corpus.data_sets import DataSetRows

        rows = DataSetRows(job.model, job.form)
        return lambda row, _: _prepared(rows.prepare(row.document), row)
    if job.purpose == "training":
        from segue.corpus.training import Training

        training = Training(job.model, job.policy)
        return lambda row, _: _prepared(training.prepare(row.document), row)
    if job.purpose == "batch":
        from segue.corpus.batch_files.writing import BatchLines

        lines = BatchLines(job.model, job.policy)
        return lambda row, place: Prepared(*lines.prepare(row, place))
    return lambda row, _: _prepared(row.document.prepare(job.model, job.policy), row)


def _prepared(request: Request, row: CorpusRow) -> Prepared:
    return Prepared(request, request.content, row.id)


@without_collection()
def convert_piece(converter: RowConverter, piece: ShardPiece) -> Batch:
    """Convert the rows of a piece, in order.

    Raises:
        OSError: the input file can no longer be read.
    """
    job, summary = converter.job, Summary()
    output: list[bytes] = []
    details: list[RowDetails] = []
    reports: list[tuple[int, bytes]] = []
    bad: list[BadRow] = []
    ids = not isinstance(piece.rows, RowSpan) if job.ids is None else job.ids
    has_ids = ids and job.purpose == "requests"
    read = _read_rows(piece, job)
    for line, (offset, raw, read_row) in enumerate(read, 1):
        summary.lines = line
        summary.bytes_read += len(raw)
        if read_row is None and raw.isspace():
            summary.blank += 1
            continue
        try:
            row = job.reader.read_line(raw) if read_row is None else read_row()
            made = converter.convert_into(row, summary, (piece.file, line, offset))
        except Exception as error:  # noqa: BLE001 - a row never stops the others, whatever is wrong with it
            kind, reason = explain(error)
            reason = without_line(reason) if read_row is None else reason
            bad.append(BadRow(line, offset, kind, reason, raw.removesuffix(b"\n") if read_row is None else raw))
            summary.bad += 1
            summary.errors[kind] = summary.errors.get(kind, 0) + 1
            if job.stop:
                break
            continue
        content = made.content
        if has_ids and made.id is not None:
            content = b'{"id":%b,%b' % (encode_json(made.id), content[1:])
            summary.bytes_written += len(content) - len(made.content)
        output += (content, b"\n")
        if job.details:
            changes, size = made.changes(), len(content) + 1
            details.append(
                RowDetails(made.id, line, changes, made.messages, made.tokens, size, made.given_id, made.tool_names)
            )
        if job.reports and made.report.changes:
            reports.append((line, report_json(made.report)))
    stopped = job.stop and bool(bad)
    return Batch(b"".join(output), summary, details, reports, bad, stopped, piece.shard, piece.last, piece.failed)


ReadRow: TypeAlias = Callable[[], CorpusRow]


def _read_rows(piece: ShardPiece, job: Job) -> Iterator[tuple[int, bytes, ReadRow | None]]:
    """Read the rows of a piece: the offset, the bytes, and for what is not a line a function that reads it."""
    rows = piece.rows
    if isinstance(rows, WholeFile):
        with files_at(rows.path).open(rows.path) as file:
            data = open_reader(file, rows.ending).read()
        yield 0, data, partial(job.reader.read_whole, data, PurePosixPath(rows.path).name)
        return
    if isinstance(rows, RowSpan):
        from segue.corpus.parquet import read_rows

        yield from read_rows(rows, job.reader)
        return
    offset = piece.offset
    for line in BytesIO(rows if isinstance(rows, bytes) else rows.read()):
        yield offset, line, None
        offset += len(line)


def explain(error: Exception) -> tuple[str, str]:
    """Return the class of an error, and a sentence that explains it."""
    kind = type(error).__name__
    if isinstance(error, SegueError):
        return kind, str(error)
    return kind, f"unexpected {kind}: {error}; please report it with this row"


def died(piece: ShardPiece, job: Job) -> Batch:
    """Return the result for a piece of one row that crashed every process that converted it."""
    summary = Summary(lines=1, bad=1, errors={"ProcessDied": 1})
    offset, raw, read_row = next(iter(_read_rows(piece, job)))
    summary.bytes_read = len(raw)
    reason = "the process died while it converted this row; it is too large, or a library failed"
    row = BadRow(1, offset, "ProcessDied", reason, raw.removesuffix(b"\n") if read_row is None else raw)
    return Batch(b"", summary, [], [], [row], job.stop, piece.shard, piece.last)


def report_json(report: Report) -> bytes:
    """Write a report on one line."""
    return encode_valid_json({"lossless": report.lossless, "changes": report.changes})


def _count(report: Report, summary: Summary, given: Context, sent: Projection, place: Place) -> None:
    """Count the changes of a row, and keep samples of them."""
    file, line, offset = place
    key = sample_key(file, offset)
    seen: set[str] = set()
    for change in report.changes:
        count = summary.count_of(change.code, change.loss)
        count.times += 1
        name = f"{change.code} {change.loss}"
        if name in seen:
            continue
        seen.add(name)
        count.conversations += 1
        if count.wants(key):
            before = _shown(given, change)
            same_places = len(given.messages) == len(sent.context.messages)
            after = _shown(sent.context, change) if same_places else ""
            where = render_path(change.path)
            sample = ChangeSample(
                key, file, line, offset, where, before, after if after != before else "", change.detail
            )
            count.samples = smallest([*count.samples, sample])


def _shown(context: Context, change: Change) -> str:
    """Return the content at the path of a change as JSON, cut short; empty if there is none."""
    value: object = context
    try:
        for step in change.path:
            value = cast("tuple[object, ...]", value)[step] if isinstance(step, int) else getattr(value, step)
        return encode_valid_json(value).decode()[:_SHOWN]
    except (AttributeError, IndexError, TypeError, ValueError, UnicodeError):
        return ""
