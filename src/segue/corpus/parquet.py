"""Parquet files: read by row groups, and written with the schema of `Converter`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any, BinaryIO, Final, final

from segue.corpus.batches import Batch
from segue.corpus.columns import import_arrow, rows_of_table
from segue.corpus.files import files_at, is_remote
from segue.corpus.pieces import RowSpan
from segue.corpus.rows import CorpusRow, Reader
from segue.corpus.schema import arrow_schema
from segue.errors import CorpusError

_ROWS: Final = 256
"""Rows of a piece: a chat has some kilobytes, an agent trace a hundred."""
_BATCH: Final = 64
"""Rows that are taken out of a file at once."""


def _open(path: str) -> Any:  # noqa: ANN401 - pyarrow has no types
    arrow = import_arrow()
    try:
        return import_module("pyarrow.parquet").ParquetFile(files_at(path).open(path) if is_remote(path) else path)
    except arrow.ArrowInvalid as error:
        raise CorpusError(f"{path}: this is not a Parquet file: {error}") from None


def cut_groups(path: str, span: int) -> list[tuple[int, int]]:
    """Divide a file into runs of row groups of about `span` bytes; a group is never divided."""
    with _open(path) as file:
        sizes = [file.metadata.row_group(group).total_byte_size for group in range(file.num_row_groups)]
    runs: list[tuple[int, int]] = []
    start, size = 0, 0
    for group, length in enumerate(sizes):
        if size and size + length > span:
            runs.append((start, group))
            start, size = group, 0
        size += length
    return [*runs, (start, len(sizes))]


def row_pieces(path: str, start: int, end: int, skipped: int = 0) -> Iterator[tuple[int, RowSpan]]:
    """Yield the rows of a run of row groups in pieces, with the number of the first row in the file."""
    with _open(path) as file:
        counts = [int(file.metadata.row_group(group).num_rows) for group in range(file.num_row_groups)]
    offset = sum(counts[:start])
    for group in range(start, end or len(counts)):
        for first in range(0, counts[group], _ROWS):
            rows = RowSpan(path, group, first, min(first + _ROWS, counts[group]))
            if skipped >= rows.end - rows.start:
                skipped -= rows.end - rows.start
            else:
                rows, skipped = rows._replace(start=rows.start + skipped), 0
                yield offset + rows.start, rows
        offset += counts[group]


def read_rows(rows: RowSpan, reader: Reader) -> Iterator[tuple[int, bytes, Callable[[], CorpusRow]]]:
    """Read the rows of a piece: the number of the row, its bytes, and a function that reads it."""
    with _open(rows.path) as file:
        at = 0
        before = sum(int(file.metadata.row_group(group).num_rows) for group in range(rows.group))
        for batch in file.iter_batches(batch_size=_BATCH, row_groups=[rows.group]):
            first, last = max(rows.start - at, 0), min(rows.end - at, batch.num_rows)
            if first < last:
                try:
                    given = list(rows_of_table(batch.slice(first, last - first), reader))
                except Exception as error:  # noqa: BLE001 - it is reported for each row
                    given = [(_nothing, partial(_fail, error))] * (last - first)
                for index, (raw, read) in enumerate(given):
                    yield before + at + first + index, raw(), read
            at += batch.num_rows
            if at >= rows.end:
                return


def _nothing() -> bytes:
    return b""


def _fail(error: Exception) -> CorpusRow:
    raise error


@final
class ParquetRows:
    """Writes the rows of batches to a Parquet file."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        import_arrow()
        self._name = name
        self._schema: Any = arrow_schema()
        self._writer: Any = import_module("pyarrow.parquet").ParquetWriter(file, self._schema, compression="zstd")

    def write(self, batch: Batch) -> None:
        """Write the requests of a batch with what is known about each row."""
        if not batch.details:
            return
        arrow = import_arrow()
        output, position, requests = memoryview(batch.output), 0, list[bytes]()
        for row in batch.details:
            requests.append(bytes(output[position : position + row.size - 1]))
            position += row.size
        details = batch.details
        columns = [
            arrow.array([row.id or f"{self._name}:{row.line}" for row in details], arrow.string()),
            arrow.array(requests, arrow.large_binary()).view(arrow.large_string()),
            arrow.nulls(len(details), arrow.string()),
            arrow.array([row.changes for row in details], arrow.string()),
            arrow.array([row.messages for row in details], arrow.int32()),
            arrow.array([row.tokens for row in details], arrow.int64()),
        ]
        self._writer.write_batch(arrow.RecordBatch.from_arrays(columns, schema=self._schema))

    def close(self) -> None:
        """Write the end of the file."""
        self._writer.close()
