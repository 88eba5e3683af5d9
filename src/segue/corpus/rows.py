"""One row of a corpus, read as a conversation, in the formats that data sets use.

Facts this file rests on:
- Arrow fills a missing field of a struct with null: `"tool_calls": null, "name": null` in every message. Taken for
  something that a client sent, 800 agent traces had 39,983 reported losses in place of 1,776. `content: null` is what
  clients send beside calls, so it stays.                                                  (measured 2026-11-15)
- Inside the arguments of a call a null that was sent looks like one that was filled in: Spark, DuckDB and older
  `datasets` give `{x: 1, y: null}` for `{x: 1}`. Nothing is removed there; the rows are counted.     (the same)
- `tools` is often a JSON text beside `messages`, and `datasets` 4.8 and later keep a message as a JSON text.
                                                                     (TRL pull request 5307; datasets 5.2.0)
- LLaMA-Factory writes a tool as a bare function: name, description, parameters. (README of its data, 2026-11-15)
- TRL's prompt-completion rows have `prompt` and `completion`; preference rows `chosen` and `rejected`. (TRL, formats)
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Final, NamedTuple, TypeAlias, cast, final

import msgspec

from segue.conversation.context import Prompt
from segue.conversation.limits import parse_json
from segue.corpus.batch_files.forms import read_request_line
from segue.corpus.data_rows import ANSWERS, QUESTIONS, TURN_COLUMNS, answer_to_prompt, as_messages, has_other_form
from segue.corpus.sharegpt import is_sharegpt, read_sharegpt
from segue.documents import Document, open_source, read_value
from segue.errors import DecodeError, LoadError
from segue.histories.api import is_session_file, read_history
from segue.models.model import Model

Fields: TypeAlias = dict[str, object]

ID_COLUMN: Final = "id"
"""The column with the id of a row, unless another one is named. No protocol has this key in a request."""
_TURNS: Final = ("messages", "contents", "input")
"""Keys of the list of turns, of all protocols."""
_TOOLS: Final = ("tools", "functions")
_BESIDE: Final = (*_TOOLS, "system")
"""What belongs to a conversation although it stands beside the column with its turns."""
HEAD: Final = 64 * 1024
"""Bytes by which a session of an agent is recognised."""
_FIRST_LINE: Final = 1024 * 1024
_FREE: Final = frozenset({"arguments", "args", "input", "default", "const", "enum", "examples"})
"""Keys below which a null may have been sent."""


@final
class Row(NamedTuple):
    """A row that was read: the conversation, its id if it has one, and whether arguments hold nulls."""

    document: Document
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

    def read_line(self, data: bytes | str) -> Row:
        """Read a row that is a JSON text.

        Raises:
            LoadError: the data is not JSON, or not a valid stored conversation.
            DecodeError: the data is not a valid request.
        """
        try:
            value: object = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            value = parse_json(data)
        if not isinstance(value, dict):
            return Row(self._read(value, data), None, filled=False)
        row = cast("Fields", value)
        if self.envelopes and (line := read_request_line(row)) is not None:
            protocol = self.protocol or line.protocol
            return Row(read_value(line.body, protocol, model=self.writer), line.id, filled=False)
        # Most rows are requests as they were sent: nothing has to be rearranged.
        key = self.id_column or ID_COLUMN
        if self.column is None and key not in row and _is_request(row):
            return Row(self._read(row, data), None, filled=False)
        return self.read_fields(row, data)

    def read_whole(self, data: bytes, name: str = "") -> Row:
        """Read a file that holds one conversation: a document, a session, or a session of an agent.

        Raises:
            LoadError, DecodeError: as `read_line`.
        """
        if self.protocol is None and is_session_file(data[:HEAD], name):
            return Row(Document(Prompt(context=read_history(data).context)), None, filled=False)
        source = open_source(BytesIO(data), "", protocol=self.protocol, model=self.writer)
        if source.document is None:
            raise LoadError("expected one conversation in this file, and it has one on each line; name it .jsonl")
        return Row(source.document, None, filled=False)

    def read_fields(self, row: Fields, data: bytes | str | None = None, *, structs: bool = False) -> Row:
        """Read a row of columns; `structs` says that missing fields of messages are null, `data` is its JSON.

        Raises:
            LoadError, DecodeError: as `read_line`.
        """
        key = self.id_column or ID_COLUMN
        if self.id_column is not None and key not in row:
            raise DecodeError(f"the row has no column {key!r}, which --id-column names")
        name = row.get(key)
        if key in row:
            row = {field: value for field, value in row.items() if field != key}
            data = None
        body = self._body(row)
        filled = False
        if structs or has_filled_nulls(body):
            body, filled = drop_nulls(body)
        is_given = body is row and data is not None
        return Row(self._read(body, data if is_given else None), None if name is None else str(name), filled)

    def _read(self, value: object, data: bytes | str | None) -> Document:
        return read_value(value, self.protocol, data=data, model=self.writer)

    def _body(self, row: Fields) -> Fields:
        """Choose the part of a row that is the conversation, and parse the JSON texts in it."""
        if self.column is not None:
            row = self._select(row, self.column)
        row = _parse_columns(row)
        if "messages" not in row and is_sharegpt(row):
            row = read_sharegpt(row)
        return as_messages(row)

    def _select(self, row: Fields, column: str) -> Fields:
        if column not in row:
            known = ", ".join(row) or "none"
            raise DecodeError(f"the row has no column {column!r}; its columns are: {known}")
        value = row[column]
        if isinstance(value, (str, bytes)) and not (column in ANSWERS and row.get("prompt") is not None):
            value = _parse_text(value, column)
        value = answer_to_prompt(row, column, value)
        if isinstance(value, Mapping):
            return {**cast("Fields", value)}
        beside = {key: row[key] for key in _BESIDE if row.get(key) is not None}
        key = column if column in _TURNS else "messages"
        chosen: Fields = {key: value, **beside}
        if is_sharegpt({"conversations": value}):
            chosen = {"conversations": value, **beside}
        return chosen


_ROW_KEYS: Final = frozenset({"messages", "contents", "conversations", "custom_id", "request", "body", *QUESTIONS})
"""Keys of rows that no session of an agent has in its first record; only to find out with little work."""


def is_agent_session(head: bytes, name: str) -> bool:
    """Whether a file of lines is a session of an agent, by its beginning."""
    first = head.lstrip()[:_FIRST_LINE].partition(b"\n")[0]
    try:
        value: object = msgspec.json.decode(first)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        value = None
    if isinstance(value, dict) and not _ROW_KEYS.isdisjoint(cast("Fields", value)):
        return False
    return is_session_file(head[:HEAD], name)


def _is_bare(tool: object) -> bool:
    """Whether a tool is a function as data sets write it, without the object around it; no protocol has that form."""
    if not isinstance(tool, dict):
        return False
    fields = cast("Fields", tool)
    return "name" in fields and "parameters" in fields and "type" not in fields and "function" not in fields


def _is_request(row: Fields) -> bool:
    """Whether a row is a request as it was sent, by the keys that would have to be read in another way."""
    tools = row.get("tools")
    tool: object = cast("list[object]", tools)[0] if type(tools) is list and tools else None
    if (
        isinstance(tools, str)
        or isinstance(tool, str)
        or _is_bare(tool)
        or isinstance(row.get("functions"), str)
        or has_other_form(row)
    ):
        return False
    turns = row.get("messages")
    if type(turns) is not list or not turns:
        return "messages" not in row
    first = cast("list[object]", turns)[0]
    return type(first) is dict and not _has_nulls(cast("Fields", first))


def has_filled_nulls(body: Fields) -> bool:
    """Whether the missing fields of messages were filled with nulls: the first message has one."""
    for key in _TURNS:
        turns = body.get(key)
        if isinstance(turns, list) and turns and isinstance(first := cast("list[object]", turns)[0], dict):
            return _has_nulls(cast("Fields", first))
    return False


def _has_nulls(message: Fields) -> bool:
    return None in message.values() and any(value is None and key != "content" for key, value in message.items())


def drop_nulls(body: Fields) -> tuple[Fields, bool]:
    """Remove the nulls that stand for missing fields; also give whether arguments hold nulls, which stay."""
    found = _Found()
    out: Fields = {}
    for key, value in body.items():
        if value is None:
            continue
        if key in _TURNS and isinstance(value, list):
            out[key] = [_without_nulls(item, found, keep="content") for item in cast("list[object]", value)]
        else:
            out[key] = _without_nulls(value, found)
    return out, found.nulls


@final
class _Found:
    """Whether a null was found where one may have been sent."""

    __slots__ = ("nulls",)

    def __init__(self) -> None:
        self.nulls: bool = False


def _without_nulls(value: object, found: _Found, keep: str = "") -> object:
    if type(value) is dict:
        out: Fields = {}
        for key, item in cast("Fields", value).items():
            if item is None:
                if key == keep:
                    out[key] = None
            elif key in _FREE:
                found.nulls = found.nulls or _holds_null(item)
                out[key] = item
            else:
                out[key] = _without_nulls(item, found) if type(item) in (dict, list) else item
        return out
    if type(value) is list:
        return [_without_nulls(item, found) for item in cast("list[object]", value)]
    return value


def _holds_null(value: object) -> bool:
    if type(value) is dict:
        return any(item is None or _holds_null(item) for item in cast("Fields", value).values())
    if type(value) is list:
        return any(item is None or _holds_null(item) for item in cast("list[object]", value))
    return False


def _parse_columns(row: Fields) -> Fields:
    """Parse the JSON texts in the columns of turns and tools; the same row if there are none."""
    changed: Fields = {}
    for key in _TOOLS:
        tools = row.get(key)
        if isinstance(tools, str):
            changed[key] = _parse_text(tools, key) if tools.strip() else None
        elif isinstance(tools, list) and any(isinstance(tool, str) for tool in cast("list[object]", tools)):
            changed[key] = _parse_items(cast("list[object]", tools), key)
    given = changed["tools"] if "tools" in changed else row.get("tools")
    items = cast("list[object]", given) if isinstance(given, list) else []
    if any(map(_is_bare, items)):
        changed["tools"] = [{"type": "function", "function": tool} if _is_bare(tool) else tool for tool in items]
    for key in (*_TURNS, *TURN_COLUMNS):
        turns = row.get(key)
        if isinstance(turns, list) and turns and isinstance(cast("list[object]", turns)[0], str):
            changed[key] = _parse_items(cast("list[object]", turns), key)
        elif isinstance(turns, str) and key not in ("input", "contents") and turns.lstrip()[:1] == "[":
            changed[key] = _parse_text(turns, key)
    if not changed:
        return row
    joined = {**row, **changed}
    return {key: value for key, value in joined.items() if value is not None or key not in changed}


def _parse_text(text: str | bytes, key: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise DecodeError(f"not valid JSON: {error}", path=(key,)) from None


def _parse_items(items: list[object], key: str) -> list[object]:
    """Parse the items that are JSON texts of objects."""
    out: list[object] = []
    for index, item in enumerate(items):
        if not isinstance(item, str):
            out.append(item)
            continue
        try:
            out.append(msgspec.json.decode(item))
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise DecodeError(f"not valid JSON: {error}", path=(key, index)) from None
    return out
