"""Damaged files of stored histories: any of them gives a history or one error, and nothing is lost silently."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cached_property, partial
from itertools import islice
from typing import Any, Final, NoReturn, cast, final

from segue.conversation.messages import Message
from segue.errors import Path, SegueError, render_path
from segue.histories.api import read_history, write_history
from segue.histories.kit.documents import OTHER
from segue.histories.kit.format import Format, FormatSample
from segue.histories.kit.history import History
from segue.histories.kit.source import Source
from segue.histories.kit.tables import MemoryDatabase
from segue.projection.report import Change, ChangeCode, Loss
from segue.testing.broken_law import BrokenLaw
from segue.testing.histories import Choices

_ODD: Final = (b"null", b"0", b'""', b"[]", b"{}", b"true", b"-1e999", b'"\\ud800"', b'{"text": 5}', b"[null]")
_ODD_VALUES: Final = (None, 0, -1, 2**63, 1.5, "", "\x00", "[]", "{", '{"a":', b"\xff", "null", "x" * 300)
_Edit = Callable[[dict[str, Any], str], object]
"""Changes the value under a key of an object."""
_ID: Final = re.compile("id$|parent|hash|node", re.IGNORECASE)
"""The keys of ids."""
_LONG_ENOUGH: Final = 4
"""Shorter texts are found everywhere."""


@final
class DamagedFiles:
    """One sample of a format, damaged in many ways. A seed names the damage."""

    def __init__(self, record: Format, sample: FormatSample) -> None:
        self._record: Final = record
        self._sample: Final = sample

    def check(self, seed: int) -> None:
        """Read a damaged file, and write what was read.

        Raises:
            BrokenLaw: an error that is not one of segue's, or a text that the file still has and the history has lost.
        """
        source = self._damaged(seed)
        if source is not None:
            self._check_source(source, f"seed {seed}")

    def _check_source(self, source: Source, where: str) -> None:
        try:
            history = self._read(source)
            if self._record.write is not None:
                write_history(history, format=self._record.name, model=self._record.example)
        except SegueError:
            return
        except Exception as error:  # noqa: BLE001 - any other exception is the finding
            self._fail(where, f"raised {type(error).__name__}: {error}")
        lost = self._lost(source, history)
        if lost is not None:
            self._fail(where, f"the file still has {lost!r}; it is neither in the history nor in the report")

    def check_other_forms(self, step: int = 1) -> None:
        """Read the file with each of its values missing, under another key, or in each other form.

        That is what a later version of the program, or another program, may write. `step` leaves out most of these
        files: only one of every `step` is read.

        Raises:
            BrokenLaw: an error that is not one of segue's, or a text that the file still has and the history has lost.
        """
        for number, path, form, change in islice(self._changes(), 0, None, step):
            changed = [*self._documents]
            changed[number] = _with_change(changed[number], path, change)
            self._check_source(self._written(changed), f"document {number}, {render_path(path)} {form}")

    def _changes(self) -> Iterator[tuple[int, Path, str, _Edit]]:
        """Yield each change of one value: the number of the document, the path, and the edit."""
        names = self._names
        for number, document in enumerate(self._documents):
            for path in _keys_of(document):
                for form, change in _FORMS.items():
                    yield number, path, form, change
                value, others = _value_at(document, path), names.get(str(path[-1]), [])
                if value in others:
                    other = others[others.index(value) - 1]
                    yield number, path, "as at another place", partial(_replace, other)

    @cached_property
    def _names(self) -> dict[str, list[object]]:
        """The different texts under each key that holds ids."""
        found: dict[str, dict[object, None]] = {}
        for document in self._documents:
            for path in _keys_of(document):
                if isinstance(value := _value_at(document, path), str) and _ID.search(str(path[-1])):
                    found.setdefault(str(path[-1]), {})[value] = None
        return {key: list(values) for key, values in found.items() if len(values) > 1}

    @cached_property
    def _documents(self) -> list[object]:
        """The JSON of the file: one document, one a line, or the columns of a database; none of any other file."""
        data = self._sample.source.data or b""
        if self._cells:
            return [json.loads(value) for *_, value in self._cells]
        try:
            lines = [line for line in data.splitlines() if line.strip()] if self._is_lines else [data]
            return [json.loads(line) for line in lines]
        except ValueError:
            return []

    @cached_property
    def _cells(self) -> list[tuple[str, int, str, str]]:
        """The columns of a database that hold JSON: the table, the number of the row, the column and its value."""
        database = self._sample.source.database
        tables = database.content.items() if isinstance(database, MemoryDatabase) else ()
        return [
            (table, at, column, value)
            for table, rows in tables
            for at, row in enumerate(rows)
            for column, value in row.items()
            if isinstance(value, str) and value[:1] in {"{", "["}
        ]

    @cached_property
    def _is_lines(self) -> bool:
        data = self._sample.source.data or b""
        try:
            json.loads(data)
        except ValueError:
            return True
        return False

    def _written(self, documents: Sequence[object]) -> Source:
        given = self._sample.source
        if isinstance(given.database, MemoryDatabase):
            content = {name: [dict(row) for row in rows] for name, rows in given.database.content.items()}
            for (table, at, column, _), document in zip(self._cells, documents, strict=True):
                content[table][at][column] = json.dumps(document)
            return Source(database=MemoryDatabase(content), name=given.name, neighbours=given.neighbours)
        lines = [json.dumps(document).encode() for document in documents]
        return self._with_data(b"\n".join(lines) + b"\n")

    def check_torn_line(self) -> None:
        """Check that a last line that is cut off is reported.

        Raises:
            BrokenLaw: it is not.
        """
        data = self._sample.source.data
        if data is None or data.count(b"\n") <= 2 or not self._record.reads_lines:
            return
        history = self._read(self._with_data(data.rstrip()[:-5]))
        if not history.report.of(ChangeCode.LINE_UNREADABLE):
            self._fail("a torn last line", "it is not reported")

    def _fail(self, where: str, detail: str) -> NoReturn:
        raise BrokenLaw(f"{self._record.name}: total (sample {self._sample.name}, {where}): {detail}")

    def _read(self, source: Source) -> History:
        return read_history(source, format=self._record.name)

    def _with_data(self, data: bytes) -> Source:
        given = self._sample.source
        return Source(data=data, name=given.name, neighbours=given.neighbours)

    def _damaged(self, seed: int) -> Source | None:
        given = self._sample.source
        if given.data is not None:
            return self._with_data(mutate(given.data, seed))
        if isinstance(given.database, MemoryDatabase):
            return Source(database=mutate_tables(given.database, seed), name=given.name, neighbours=given.neighbours)
        return None

    # -- silent losses -------------------------------------------------------------------------------------------------

    @cached_property
    def _whole(self) -> tuple[tuple[str, ...], frozenset[object]]:
        """The texts of the undamaged sample, and the losses in its report."""
        history = self._read(self._sample.source)
        content = [*history.context.messages, *(each for part in history.compactions for each in part.messages)]
        texts = dict.fromkeys(text for message in content for text in _content_of(message) if len(text) >= _LONG_ENOUGH)
        return tuple(texts), frozenset((None, *map(_loss_in, history.report.changes)))

    def _lost(self, source: Source, history: History) -> str | None:
        """Find a text that occurs in the damaged file as often as in the whole one, but not in the history.

        It is reported if the report has any loss that the report of the whole file does not have.
        """
        texts, expected = self._whole
        if any(_loss_in(change) not in expected for change in history.report.changes):
            return None
        found = set(_texts_of(history))
        before, after = _bytes_of(self._sample.source), _bytes_of(source)
        for text in texts:
            if text in found:
                continue
            quoted = json.dumps(text, ensure_ascii=False)[1:-1]  # inside a value that is kept as JSON
            if _stands(before, after, text) and not any(text in each or quoted in each for each in found):
                return text
        return None


def _loss_in(change: Change) -> object:
    """Return what a change says about lost content: nothing if nothing is lost, and no sizes of records."""
    is_record = change.code is ChangeCode.RECORD_LEFT_OUT
    if change.code is ChangeCode.MODEL_UNKNOWN or (change.loss is Loss.NONE and not is_record):
        return None
    if not is_record:
        return change.code, change.path, change.detail
    if change.loss is Loss.NONE and change.path[-1] != OTHER:
        return change.path  # a known kind of record, which only repeats the conversation
    detail = change.detail.split(", ")
    return change.path, detail[0], detail[-1]


def _rename(holder: dict[str, Any], key: str) -> None:
    """Move a value to another key, in the same position."""
    items = list(holder.items())
    holder.clear()
    holder.update({f"{name}2" if name == key else name: value for name, value in items})


def _replace(value: object, holder: dict[str, Any], key: str) -> None:
    holder[key] = value


_VALUES: Final = (
    "null", "true", "-1", "1" + 400 * "0", '""', '"x"', '"' + 5000 * "9" + '"',
    "[]", "[1]", '["x"]', "[{}]", "{}", '{"a": 1}',
)  # fmt: skip
"""Values that may replace any other value, as JSON."""
_FORMS: Final[Mapping[str, _Edit]] = {
    "missing": lambda holder, key: holder.pop(key),
    "under another key": _rename,
    "in an object": lambda holder, key: holder.update({key: {"value": holder[key]}}),
    "in a list": lambda holder, key: holder.update({key: [holder[key]]}),
    "as JSON text": lambda holder, key: holder.update({key: json.dumps(holder[key])}),
    **{f"as {text[:20]}": partial(_replace, json.loads(text)) for text in _VALUES},
}
"""The forms in which a value may be written instead."""


def _keys_of(value: object, path: Path = ()) -> Iterator[Path]:
    """Yield the path of every value under a key."""
    if isinstance(value, dict):
        for key, inner in value.items():  # pyright: ignore[reportUnknownVariableType]
            yield (*path, key)
            yield from _keys_of(inner, (*path, key))  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, list):
        for at, inner in enumerate(value):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            yield from _keys_of(inner, (*path, at))  # pyright: ignore[reportUnknownArgumentType]


def _value_at(document: object, path: Path) -> object:
    found: Any = document
    for step in path:
        found = found[step]
    return found


def _with_change(document: object, path: Path, change: _Edit) -> object:
    """Return a document in which one value is written in another form."""
    copied = deepcopy(document)
    change(cast("dict[str, Any]", _value_at(copied, path[:-1])), str(path[-1]))
    return copied


def _bytes_of(source: Source) -> bytes:
    if isinstance(source.database, MemoryDatabase):
        return repr(source.database.content).encode("utf-8", "replace")
    return source.data or b""


def _stands(before: bytes, after: bytes, text: str) -> bool:
    """Whether a text occurs in a file as often as before, as JSON or verbatim."""
    quoted = {json.dumps(text).encode(), json.dumps(text, ensure_ascii=False).encode("utf-8", "replace")}
    ways = (quoted, {text.encode("utf-8", "replace")})
    counts = ((sum(before.count(each) for each in way), sum(after.count(each) for each in way)) for way in ways)
    return any(0 < count <= left for count, left in counts)


def _texts_of(history: History) -> Iterator[str]:
    """Yield every text of a history: of the messages, of what was compacted, of sub-agents, of other branches."""
    prompt = history.context.system_prompt
    if isinstance(prompt, str):
        yield prompt
    yield from _strings(history.context.extra)
    for message in history.context.messages:
        yield from _texts_in(message)
    for compaction in history.compactions:
        yield compaction.summary.text
        for message in compaction.messages:
            yield from _texts_in(message)
    for child in history.children:
        if child.history is not None:
            yield from _texts_of(child.history)
    for branch in history.branches:
        yield branch.text


def _texts_in(message: Message) -> Iterator[str]:
    yield from _strings(message.extra)
    for content in message.content:
        yield from _strings(content.extra)
        for name in ("thinking_signature", "text_signature", "thought_signature", "arguments_text"):
            yield from _strings(getattr(content, name, None))
    yield from _content_of(message)


def _content_of(message: Message) -> Iterator[str]:
    for content in message.content:
        match content.kind:
            case "text":
                yield content.text
            case "thinking":
                yield content.thinking
            case "toolCall":
                yield from _strings(content.arguments)
            case "native":
                yield from _strings(content.block)
            case "image" | "file":
                yield content.data or content.url or ""


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():  # pyright: ignore[reportUnknownVariableType]
            yield from _strings(item)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, Sequence) and not isinstance(value, bytes):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _strings(item)  # pyright: ignore[reportUnknownArgumentType]


# -- damage ------------------------------------------------------------------------------------------------------------


def mutate(data: bytes, seed: int) -> bytes:
    """Damage a file: cut it, tear, drop, double or swap lines, change bytes, or replace a value by an odd one."""
    dice = Choices(seed)
    lines = data.split(b"\n")
    way = dice.pick(("cut", "tear", "drop", "double", "swap", "bytes", "value", "value", "value", "value"))
    at = dice.count(len(lines) - 1) if len(lines) > 1 else 0
    other = dice.count(len(lines) - 1) if len(lines) > 1 else 0
    if way == "cut":
        return data[: dice.count(len(data))]
    if way == "tear":
        lines[at] = lines[at][: len(lines[at]) // 2]
    elif way == "drop":
        del lines[at]
    elif way == "double":
        lines.insert(other, lines[at])
    elif way == "swap":
        lines[at], lines[other] = lines[other], lines[at]
    elif way == "bytes":
        place = dice.count(len(data))
        return data[:place] + dice.pick((b"\xff", b"\x00", b"}", b'"', b"\n")) + data[place + 1 :]
    else:
        lines[at] = _replace_value(lines[at], dice)
    return b"\n".join(lines)


def _replace_value(line: bytes, dice: Choices) -> bytes:
    """Replace one value of a line of JSON."""
    starts = [at for at in range(len(line)) if line[at : at + 1] == b":"]
    if not starts:
        return line
    start = dice.pick(starts) + 1
    depth, end, quoted = 0, start, False
    while end < len(line):
        byte = line[end : end + 1]
        if quoted:
            if byte == b"\\":
                end += 1
            elif byte == b'"':
                quoted = False
        elif byte == b'"':
            quoted = True
        elif byte in b"{[":
            depth += 1
        elif byte in b"}],":
            if depth == 0:
                break
            depth -= byte != b","
        end += 1
    return line[:start] + dice.pick(_ODD) + line[end:]


def mutate_tables(database: MemoryDatabase, seed: int) -> MemoryDatabase:
    """Damage a database: drop, double or reorder rows, or replace a value, also one inside a column of JSON."""
    dice = Choices(seed)
    names = sorted(name for name, rows in database.content.items() if rows)
    name = dice.pick(names)
    rows: list[dict[str, Any]] = [dict(row) for row in database.content[name]]
    at = dice.count(len(rows) - 1) if len(rows) > 1 else 0
    way = dice.pick(("drop", "double", "reverse", "value", "value", "value", "json", "json"))
    if way == "drop":
        del rows[at]
    elif way == "double":
        rows.append(dict(rows[at]))
    elif way == "reverse":
        rows.reverse()
    else:
        column = dice.pick(sorted(rows[at]))
        value = rows[at][column]
        is_json = way == "json" and isinstance(value, str) and value[:1] in {"{", "["}
        rows[at][column] = (
            _replace_value(value.encode("utf-8", "replace"), dice).decode("utf-8", "replace")
            if is_json
            else dice.pick(_ODD_VALUES)
        )
    return MemoryDatabase({**database.content, name: rows})
