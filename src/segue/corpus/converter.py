"""`Converter`: conversations in columns to requests in columns, for the engines that run functions over Arrow data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from typing import Any, ClassVar, TypeVar, cast, final

from segue.corpus.columns import GivenRow, import_arrow, rows_of_dict, rows_of_table
from segue.corpus.conversion import RowConverter, explain
from segue.corpus.jobs import Job, Purpose
from segue.corpus.rows import Reader
from segue.corpus.schema import COLUMNS, arrow_schema
from segue.models.catalogue import Catalogue, get_model
from segue.models.model import Model
from segue.projection.policy import Policy

_Columns = TypeVar("_Columns")


@final
class _Schema:
    """The Arrow schema of the output, made when it is first read: importing this module does not import pyarrow."""

    def __get__(self, instance: object, owner: type | None = None) -> Any:  # noqa: ANN401 - pyarrow has no types
        return arrow_schema()


@final
class Converter:
    """Converts rows of conversations to requests for one model; it can be pickled and sent to other machines.

        convert = Converter(to="anthropic/claude-sonnet-4-5", column="messages")
        convert(table)          # a pyarrow.Table, a pyarrow.RecordBatch or a dict of columns; returns the same kind

    There is one row out for each row in, in the same order; a row never raises. The columns out are `id` (that of the
    id column, or null), `request` (JSON), `error` (null if the row was converted), `changes` (JSON: code, loss and
    times of each kind of change), `messages` and `tokens` (the estimated input). `Converter.SCHEMA` is their Arrow
    schema.

    `column` has the conversation: a JSON text, a list of messages as structs, or a list of JSON texts. Without it, the
    columns of a row are the keys of a request (`messages`, `tools`, ...), or the only text column is it. ShareGPT's
    `conversations` and TRL's `prompt` and `completion` are read as well. `source` is the protocol of the rows if it is
    not to be detected, `writer` the model that wrote the answers. `purpose="training"` returns lines of a training set,
    with `form="sharegpt"` or `form="hf-messages"` in the format of such data sets.

    Raises:
        UnknownModel: the catalogue has no model of that name.
    """

    SCHEMA: ClassVar[Any] = _Schema()

    def __init__(
        self,
        to: Model | str,
        *,
        policy: Policy | None = None,
        source: str | None = None,
        column: str | None = None,
        id_column: str | None = None,
        purpose: Purpose = "requests",
        form: str | None = None,
        writer: Model | str | None = None,
        catalogue: Catalogue | None = None,
    ) -> None:
        model = get_model(to, catalogue=catalogue)
        wrote = None if writer is None else get_model(writer, catalogue=catalogue)
        reader = Reader(source, wrote, column, id_column)
        self.job: Job = Job(model, policy or Policy(), reader, purpose, form=form)
        self._rows: RowConverter | None = None

    def __reduce__(self) -> tuple[Callable[[Job], Converter], tuple[Job]]:
        return _restore, (self.job,)

    def __repr__(self) -> str:
        return f"Converter(to={self.job.model.full_name()!r}, column={self.job.reader.column!r})"

    def __call__(self, columns: _Columns) -> _Columns:
        """Convert the rows of a table, a record batch or a dict of columns.

        Raises:
            TypeError: the argument is none of these.
        """
        if isinstance(columns, Mapping):
            given = cast("Mapping[str, Any]", columns)
            size = len(next(iter(given.values()))) if given else 0
            return cast("_Columns", self._convert(lambda: rows_of_dict(given, self.job.reader), size))
        arrow = import_arrow()
        if not isinstance(columns, (arrow.Table, arrow.RecordBatch)):
            kind = type(columns).__name__
            raise TypeError(f"expected a pyarrow.Table, a pyarrow.RecordBatch or a dict of columns, got {kind}")
        table = cast("Any", columns)
        out = self._convert(lambda: rows_of_table(table, self.job.reader), table.num_rows)
        arrays = [_array(arrow, name, values) for name, values in out.items()]
        kind: Any = type(columns)
        return cast("_Columns", kind.from_arrays(arrays, schema=arrow_schema()))

    def _convert(self, read: Callable[[], Iterator[GivenRow]], size: int) -> dict[str, list[Any]]:
        if self._rows is None:
            self._rows = RowConverter(self.job)
        convert, reader = self._rows.convert, list[tuple[Any, ...]]()
        try:
            for _, read_row in read():
                try:
                    made = convert(read_row())
                    reader.append((made.id, made.content, None, made.changes(), made.messages, made.tokens))
                except Exception as error:  # noqa: BLE001 - a row never raises
                    reader.append((None, None, ": ".join(explain(error)), None, None, None))
        except Exception as error:  # noqa: BLE001 - columns that cannot be read are the error of each row
            reason = ": ".join(explain(error))
            reader = [(None, None, reason, None, None, None)] * size
        return {name: [row[index] for row in reader] for index, name in enumerate(COLUMNS)}


def _restore(job: Job) -> Converter:
    converter = Converter(job.model)
    converter.job = job
    return converter


def _array(arrow: Any, name: str, values: list[Any]) -> Any:  # noqa: ANN401
    if name == "request":
        return _requests(arrow, values)
    return arrow.array(values, getattr(arrow, COLUMNS[name])())


def _requests(arrow: Any, values: list[bytes | None]) -> Any:  # noqa: ANN401
    """Make the column of requests from its buffers: it has nearly all bytes, and they are copied once."""
    texts = [value or b"" for value in values]
    offsets = arrow.array(list(accumulate(map(len, texts), initial=0)), arrow.int64())
    is_valid = arrow.array([value is not None for value in values], arrow.bool_())
    buffers = [is_valid.buffers()[1], offsets.buffers()[1], arrow.py_buffer(b"".join(texts))]
    return arrow.Array.from_buffers(arrow.large_string(), len(values), buffers)
