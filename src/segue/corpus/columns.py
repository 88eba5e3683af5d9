"""Rows of Arrow columns, read as conversations.

Facts:
- Bytes taken out of Arrow as binary cost a fifth of what texts cost: 14 against 79 ms for 87 MB. (measured 2026-11-15)
- A list of JSON texts (`list<extension<arrow.json>>` of datasets 4.8 and later) becomes the body by joining the texts
  with commas; nothing has to be parsed twice.                                                       (the same)
- 32-bit offsets of `string` end at 2 GiB of a column, so requests are `large_string`.         (Arrow specification)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any, Final, TypeAlias, cast

import msgspec

from segue.corpus.rows import ID_COLUMN, CorpusRow, Fields, Reader
from segue.errors import DecodeError, MissingExtra
from segue.foundation.json_text import encode_json
from segue.histories.data_rows import ANSWERS, QUESTIONS, TURN_COLUMNS

Table: TypeAlias = Any
"""A `pyarrow.Table` or a `pyarrow.RecordBatch`; pyarrow has no types."""
ReadRow: TypeAlias = Callable[[], CorpusRow]
GivenRow: TypeAlias = tuple[Callable[[], bytes], ReadRow]
"""A row: a function that returns its bytes for a quarantine file, and one that reads it."""

_CONVERSATIONS: Final = ("messages", "contents", "input", *TURN_COLUMNS, *ANSWERS, *QUESTIONS)
"""Columns whose presence makes the other columns fields of the row."""


def import_arrow() -> Any:  # noqa: ANN401 - pyarrow has no types
    """Import pyarrow.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        return import_module("pyarrow")
    except ModuleNotFoundError:
        raise MissingExtra("columns and Parquet files need the package pyarrow", extra="corpus") from None


def rows_of_table(table: Table, reader: Reader) -> Iterator[GivenRow]:
    """Read the rows of a table or a record batch.

    Raises:
        DecodeError: there is no column with conversations.
    """
    names = list(cast("list[str]", table.schema.names))
    if not table.num_rows:
        return
    column = _text_column(table, names, reader)
    key = reader.id_column or ID_COLUMN
    if column is not None:
        ids: list[object] = (
            cast("list[object]", table.column(key).to_pylist()) if key in names and key != column else []
        )
        yield from _rows_of_texts(_texts(table.column(column)), ids, reader, names)
        return
    turns = reader.column or "messages"
    if turns in names and _is_list_of_texts(table.schema.field(turns).type):
        yield from _rows_of_joined(table, turns, names, reader)
        return
    for fields in cast("list[Fields]", table.to_pylist()):
        yield partial(_encode, fields), partial(reader.read_fields, fields, structs=True)


def rows_of_dict(columns: Mapping[str, Any], reader: Reader) -> Iterator[GivenRow]:
    """Read the rows of a dict of columns: lists, or arrays of NumPy or Arrow."""
    names = list(columns)
    if columns and all(hasattr(column, "to_pylist") for column in columns.values()):
        yield from rows_of_table(import_arrow().table(dict(columns)), reader)
        return
    lists = {name: list(column) for name, column in columns.items()}
    column = reader.column
    if column is None and not any(name in lists for name in _CONVERSATIONS):
        texts = [name for name, values in lists.items() if name != ID_COLUMN and values and _is_text(values[0])]
        column = texts[0] if len(texts) == 1 else None
    is_text = column is not None and column in lists and bool(lists[column]) and _is_text(lists[column][0])
    if column is not None and is_text and not _is_answer(column, names):
        key = reader.id_column or ID_COLUMN
        ids = lists[key] if key in lists and key != column else []
        yield from _rows_of_texts([_bytes(value) for value in lists[column]], ids, reader, names)
        return
    for values in zip(*lists.values(), strict=True):
        fields = dict(zip(names, map(_plain, values), strict=True))
        yield partial(_encode, fields), partial(reader.read_fields, fields, structs=True)


def _text_column(table: Table, names: list[str], reader: Reader) -> str | None:
    """Find the column whose values are JSON texts; None if rows consist of several columns."""
    if reader.column is not None:
        if reader.column not in names:
            raise DecodeError(f"there is no column {reader.column!r}; the columns are: {', '.join(names)}")
        is_text = _is_text_type(table.schema.field(reader.column).type)
        is_whole = reader.column != "messages" and not _is_answer(reader.column, names)
        return reader.column if is_text and is_whole else None
    if any(name in names for name in _CONVERSATIONS):
        return None
    key = reader.id_column or ID_COLUMN
    texts = [name for name in names if name != key and _is_text_type(table.schema.field(name).type)]
    if len(texts) == 1:
        return texts[0]
    raise DecodeError(
        f"no column is known to hold conversations; name one with --column, the columns are: {', '.join(names)}"
    )


def _is_answer(column: str, names: list[str]) -> bool:
    """Whether a column has only the answers to another one."""
    return column in ANSWERS and "prompt" in names


def _rows_of_texts(texts: list[bytes | None], ids: list[Any], reader: Reader, names: list[str]) -> Iterator[GivenRow]:
    plain = reader._replace(column=None, id_column=None)
    if reader.id_column is not None and reader.id_column not in names:
        raise DecodeError(f"there is no column {reader.id_column!r}; the columns are: {', '.join(names)}")
    for index, text in enumerate(texts):
        name = str(ids[index]) if ids and ids[index] is not None else None
        yield partial(_given, text), partial(_read_text, plain, text, name)


def _given(text: bytes | None) -> bytes:
    return b"" if text is None else text


def _read_text(reader: Reader, text: bytes | None, name: str | None) -> CorpusRow:
    if text is None:
        raise DecodeError("the row is null; a JSON text is expected")
    row = reader.read_line(text)
    return row if name is None else row._replace(id=name)


def _rows_of_joined(table: Table, turns: str, names: list[str], reader: Reader) -> Iterator[GivenRow]:
    """Build bodies from messages that are JSON texts; the fields next to them are encoded again."""
    key = reader.id_column or ID_COLUMN
    beside = [name for name in names if name != turns and (reader.column is None or name in ("tools", "system", key))]
    others = cast("list[Fields]", table.select(beside).to_pylist()) if beside else None
    plain = reader._replace(column=None)
    position = 0
    column = _one_chunk(table.column(turns))
    messages = _texts(column.flatten())
    for index, length in enumerate(import_module("pyarrow.compute").list_value_length(column).to_pylist()):
        parts = messages[position : position + (length or 0)]
        position += length or 0
        fields = {name: value for name, value in (others[index] if others else {}).items() if value is not None}
        joined = b'{"messages":[%b]%b' % (b",".join(part or b"null" for part in parts), _tail(fields))
        yield partial(_given, joined), partial(plain.read_line, joined)


def _tail(fields: Fields) -> bytes:
    return b"," + encode_json(fields)[1:] if fields else b"}"


def _encode(fields: Fields) -> bytes:
    return msgspec.json.encode(fields, enc_hook=str)


def _one_chunk(column: Any) -> Any:  # noqa: ANN401
    combined = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if hasattr(combined, "num_chunks"):
        combined = import_arrow().concat_arrays(combined.chunks)
    return combined


def _texts(column: Any) -> list[bytes | None]:  # noqa: ANN401
    """Take texts out of a column as bytes."""
    arrow = import_arrow()
    column = _storage(_one_chunk(column))
    if arrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return cast("list[bytes | None]", column.cast(arrow.large_binary()).to_pylist())


def _storage(array: Any) -> Any:  # noqa: ANN401
    return array.storage if isinstance(array, import_arrow().ExtensionArray) else array


def _is_text_type(kind: Any) -> bool:  # noqa: ANN401
    types = import_arrow().types
    kind = getattr(kind, "storage_type", kind)
    if types.is_dictionary(kind):
        kind = kind.value_type
    tests = ("is_string", "is_large_string", "is_string_view", "is_binary", "is_large_binary", "is_binary_view")
    return any(getattr(types, test)(kind) for test in tests if hasattr(types, test))


def _is_list_of_texts(kind: Any) -> bool:  # noqa: ANN401
    types = import_arrow().types
    return (types.is_list(kind) or types.is_large_list(kind)) and _is_text_type(kind.value_type)


def _is_text(value: object) -> bool:
    return isinstance(value, (str, bytes))


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value


def _plain(value: Any) -> object:  # noqa: ANN401
    """Turn arrays and scalars of NumPy into lists and numbers."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in cast("dict[str, object]", value).items()}
    if isinstance(value, list):
        return [_plain(item) for item in cast("list[object]", value)]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return value
