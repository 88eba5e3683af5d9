"""One row of a corpus, read as a conversation: which part of it is the conversation, and its id.

What the conversation is, `segue.histories.opening` decides, as everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Final, NamedTuple, TypeAlias, cast, final

import msgspec

from segue.calls.batch_forms import read_request_line
from segue.conversation.limits import parse_json
from segue.errors import DecodeError, LoadError
from segue.histories.data_rows import (
    ANSWERS,
    PICTURES,
    TOOLS,
    TURNS,
    answer_to_prompt,
    as_messages,
    drop_nulls,
    has_filled_nulls,
    is_as_sent,
    is_sharegpt,
    parse_columns,
    parse_text,
)
from segue.histories.opening import How, OpenedDocument, open_history_row, open_source, open_value
from segue.histories.recognition import is_plain_request
from segue.histories.registry import FORMATS
from segue.models.model import Model
from segue.protocols.api import decode_request
from segue.protocols.detection import detect_protocol
from segue.protocols.registry import registered_count

Fields: TypeAlias = dict[str, object]

ID_COLUMN: Final = "id"
"""The column with the id of a row, unless another one is named. No protocol has this key in a request."""
_BESIDE: Final = (*TOOLS, *PICTURES, "system")
"""Fields that belong to a conversation although they are next to the column with its turns."""
_ROLES: Final = ("system", "developer", "user", "assistant")
_MOST_KNOWN: Final = 256
_known: Final[dict[tuple[object, ...], str | None]] = {}
"""The protocols of rows of texts by what decides about them; emptied when it is full. See `_protocol_of_texts`."""


@final
class CorpusRow(NamedTuple):
    """A row that was read: the conversation, its id if it has one, and whether arguments hold nulls."""

    document: OpenedDocument
    id: str | None
    filled: bool


@final
class Reader(NamedTuple):
    """How rows are read: the protocol if it is known, the model that wrote the answers, and the columns."""

    protocol: str | None = None
    writer: Model | None = None
    column: str | None = None
    id_column: str | None = None
    envelopes: bool = False
    """Whether rows may be lines of a provider's batch file."""

    def read_line(self, data: bytes | str) -> CorpusRow:
        """Read a row that is a JSON text.

        Raises:
            LoadError: the data is not JSON, or cannot be read.
            DecodeError: the data is not a valid request.
            UnknownFormat: the row is not recognised.
        """
        try:
            value: object = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            value = parse_json(data)
        if not isinstance(value, dict):
            return CorpusRow(self._read(value, data), None, filled=False)
        row = cast("Fields", value)
        if self.envelopes and (line := read_request_line(row)) is not None:
            protocol = self.protocol or line.protocol
            return CorpusRow(open_value(line.body, How(protocol=protocol, model=self.writer)), line.id, filled=False)
        # Most rows are requests verbatim: nothing has to be rearranged.
        if self.column is not None or (self.id_column or ID_COLUMN) in row:
            return self.read_fields(row, data)
        if self.protocol is None and (protocol := _protocol_of_texts(row)) is not None:
            prompt = decode_request(row, protocol=protocol, model=self.writer)
            return CorpusRow(OpenedDocument(prompt, protocol, row), None, filled=False)
        return CorpusRow(self._read(row, data), None, filled=False) if is_as_sent(row) else self.read_fields(row, data)

    def read_whole(self, data: bytes, name: str = "") -> CorpusRow:
        """Read a file that holds one conversation: a document, a session, or a session of an agent.

        Raises:
            LoadError, DecodeError: as `read_line`.
        """
        opened = open_source(BytesIO(data), How(protocol=self.protocol, model=self.writer), name=name)
        if opened.document is None:
            raise LoadError("expected one conversation in this file, and it has one on each line; name it .jsonl")
        return CorpusRow(opened.document, None, filled=False)

    def read_fields(self, row: Fields, data: bytes | str | None = None, *, structs: bool = False) -> CorpusRow:
        """Read a row of columns; `structs` says that missing fields of messages are null, `data` is its JSON.

        Raises:
            LoadError, DecodeError: as `read_line`.
        """
        key = self.id_column or ID_COLUMN
        if self.id_column is not None and key not in row:
            raise DecodeError(f"the row has no column {key!r}, which --id-column names")
        name = row.get(key)
        if self.column is None and self.protocol is None:
            body, filled = drop_nulls(row) if structs else (row, False)
            found = open_history_row(body, How(model=self.writer), data=data if body is row else None)
            if found is not None:
                return CorpusRow(found, None if name is None else str(name), filled)
        if key in row:
            row = {field: value for field, value in row.items() if field != key}
            data = None
        body = self._body(row)
        body, filled = drop_nulls(body) if structs or has_filled_nulls(body) else (body, False)
        is_given = body is row and data is not None
        return CorpusRow(self._read(body, data if is_given else None), None if name is None else str(name), filled)

    def _read(self, value: object, data: bytes | str | None) -> OpenedDocument:
        return open_value(value, How(protocol=self.protocol, model=self.writer), data=data, arranged=True)

    def _body(self, row: Fields) -> Fields:
        """Choose the part of a row that is the conversation, and parse the JSON texts in it."""
        if self.column is not None:
            row = self._select(row, self.column)
        row = parse_columns(row)
        return row if is_sharegpt(row) else as_messages(row)

    def _select(self, row: Fields, column: str) -> Fields:
        if column not in row:
            known = ", ".join(row) or "none"
            raise DecodeError(f"the row has no column {column!r}; its columns are: {known}")
        value = row[column]
        if isinstance(value, (str, bytes)) and not (column in ANSWERS and row.get("prompt") is not None):
            value = parse_text(value, column)
        value = answer_to_prompt(row, column, value)
        if isinstance(value, Mapping):
            return {**cast("Fields", value)}
        beside = {key: row[key] for key in _BESIDE if row.get(key) is not None}
        key = column if column in TURNS else "messages"
        if is_sharegpt({"conversations": value}):
            key = "conversations"
        return {key: value, **beside}


def _protocol_of_texts(row: Fields) -> str | None:
    """Name the protocol of a row that is an unchanged request of texts alone; None if it may be anything else.

    The keys, the types of the other values and the model decide about it, so one row of a kind is looked at closely.
    """
    turns, kinds = row.get("messages"), tuple(map(type, row.values()))
    if type(turns) is not list or not turns or dict in kinds or kinds.count(list) > 1:
        return None
    for turn in cast("list[Fields]", turns):
        is_message = type(turn) is dict and len(turn) == 2  # with the role
        if not is_message or type(turn.get("content")) is not str or turn.get("role") not in _ROLES:
            return None
    kind = (kinds, *row, row.get("model"), registered_count(), FORMATS.added)
    protocol = _known.get(kind, "")
    if protocol == "":
        if len(_known) > _MOST_KNOWN:
            _known.clear()
        protocol = _known[kind] = detect_protocol(row) if is_as_sent(row) and is_plain_request(row) else None
    return protocol
