"""Messages of frameworks: a list of JSON objects, read and written run by run.

A framework stores a list of *entries*. A *run* is a series of entries that belong together, and holds one or several
messages: often one entry is one message, but some frameworks store calls and results, or all steps of a turn, in one
entry, and others store one reply as several entries.

A codec reads a run, and can write the messages of a run in a default form. What a run has beyond that form is kept as a
patch in `extra` of its first message, under the name of the format. A patch is applied only where the default is still
the one that it was made from, so a message that a program has changed is written with its new content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, cast, final

import msgspec

from segue.conversation.content import AnyContent, ToolCall
from segue.conversation.messages import Message, ToolResultMessage
from segue.errors import DecodeError
from segue.histories.kit.envelope import find_envelope, name_results, with_envelope
from segue.histories.kit.lines import objects_of
from segue.histories.kit.notes import Notes
from segue.histories.kit.unread import note_unread
from segue.projection.report import ChangeCode, Loss
from segue.protocols.kit.json_patch import apply, difference
from segue.protocols.kit.json_values import digest, same

Entry: TypeAlias = dict[str, Any]
RUN: Final = "run"
"""The field of the envelope with the number of the run: neighbours of the same run are written as one."""
PATCH: Final = "patch"
"""The field of the envelope with the difference between the run and its default form."""


BEFORE: Final = "before"
"""The field of the envelope with entries before the run that are not part of the conversation."""
AFTER: Final = "after"
"""The same for entries after the last run."""
WEIGHT: Final = "weight"
"""The field of a turn of a data set that says whether it is trained: 0 masks it."""


@final
class Reading:
    """What a codec knows while it reads: the report, the document, and the number of the entry, counted from 1."""

    def __init__(self, notes: Notes, document: Mapping[str, Any] | None = None) -> None:
        self.notes: Final = notes
        self.document: Final = document or {}
        self.line: int = 1
        self._noted: set[ChangeCode] = set()
        self.open_calls: list[tuple[str, str]] = []
        """Id and name of calls that have no result yet, for formats whose results have no id."""

    def note_once(self, code: ChangeCode, detail: str) -> None:
        """Report something that is true of the whole source, with the first entry that it was seen in."""
        if code not in self._noted:
            self._noted.add(code)
            self.notes.add(code, ("lines", self.line), Loss.NONE, detail)


@final
class Writing:
    """What a codec knows while it writes: the report, the settings, and the call that each result answers."""

    def __init__(
        self,
        messages: Sequence[Message],
        notes: Notes,
        positions: Sequence[int | None] = (),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._notes = notes
        self.settings: Final[Mapping[str, str]] = settings or {}
        places = positions if len(positions) == len(messages) else range(len(messages))
        self._places = {id(message): at for message, at in zip(messages, places, strict=True)}
        self._answered: dict[int, ToolCall] = {}
        self._answering: dict[tuple[int, int], ToolResultMessage] = {}
        self._first: set[int] = set()
        self._ranks: dict[int, int] = {}
        calls: dict[str, tuple[int, int, ToolCall, int]] = {}
        count = 0
        for message in messages:
            if message.role == "assistant":
                for at, call in enumerate(message.tool_calls()):
                    calls[call.id] = (id(message), at, call, count)
                    count += 1
            elif message.role == "toolResult" and message.tool_call_id in calls:
                owner, at, call, self._ranks[id(message)] = calls[message.tool_call_id]
                self._answered[id(message)] = call
                if self._answering.setdefault((owner, at), message) is message:
                    self._first.add(id(message))

    def call_of(self, result: ToolResultMessage) -> ToolCall | None:
        """Return the call that a result answers; None if there is none before it."""
        return self._answered.get(id(result))

    def result_of(self, message: Message, at: int) -> ToolResultMessage | None:
        """Return the first result of a call of a message, by the position of the call among the calls."""
        return self._answering.get((id(message), at))

    def rank_of(self, result: ToolResultMessage) -> float:
        """Return the position of the call that a result answers among all calls; after them if there is none."""
        return self._ranks.get(id(result), inf)

    def is_first(self, result: ToolResultMessage) -> bool:
        """Whether a result is the first one of its call."""
        return id(result) in self._first

    def note(self, message: Message, code: ChangeCode, loss: Loss, detail: str = "") -> None:
        """Report a change of a message."""
        place = self._places.get(id(message))
        self._notes.add(code, ("messages",) if place is None else ("messages", place), loss, detail)


def each_alone(entries: list[Entry]) -> list[list[Entry]]:
    """Return every entry as a separate run."""
    return [[entry] for entry in entries]


_Item = TypeVar("_Item")


def runs_of(items: Iterable[_Item], belongs: Callable[[_Item, _Item], bool]) -> list[list[_Item]]:
    """Group items into runs: an item that `belongs` to the one before it is in the same run."""
    runs: list[list[_Item]] = []
    for item in items:
        if runs and belongs(runs[-1][-1], item):
            runs[-1].append(item)
        else:
            runs.append([item])
    return runs


def results_together(messages: Sequence[Message]) -> list[list[Message]]:
    """Group the results of tools that follow each other into one run; everything else is alone."""
    return runs_of(messages, lambda before, message: before.role == message.role == "toolResult")


def each_message_alone(messages: Sequence[Message]) -> list[list[Message]]:
    """Return every message as a separate run."""
    return [[message] for message in messages]


@final
@dataclass(frozen=True, kw_only=True)
class EntryCodec:
    """How one framework stores messages.

    `read` returns the messages of a run; an empty list if it is not part of the conversation. `write` returns
    the entries of a run in the default form, and depends only on its arguments. `split` groups entries into
    runs, `join` messages that were read from another format. `read_plain` returns the message of an entry that `write`
    returns unchanged, None for others: rows of data sets are many, and nearly all of their entries are such.
    """

    name: str
    read: Callable[[list[Entry], Reading], list[Message]]
    write: Callable[[Sequence[Message], Writing], list[Entry]]
    split: Callable[[list[Entry]], list[list[Entry]]] = each_alone
    join: Callable[[Sequence[Message]], list[list[Message]]] = each_message_alone
    read_plain: Callable[[Entry, Reading], Message | None] = lambda _entry, _reading: None


_LISTS: Final = ("content", "parts", "blocks", "contents")
"""Fields of entries with the list of their content."""
_SAYING: Final = (*_LISTS, "text", "items", "tool_calls", "toolCalls", "function_call")
"""Fields of entries that hold the content."""


def _has_fewer_pieces(run: Sequence[Entry], messages: Sequence[Message]) -> bool:
    """Whether a run has more blocks than its messages have pieces: one of an unknown kind may have been left out."""
    blocks = sum(
        len(cast("list[object]", entry[key])) for entry in run for key in _LISTS if type(entry.get(key)) is list
    )
    return blocks > 0 and blocks > sum(len(message.content) for message in messages)


def read_entries(codec: EntryCodec, entries: list[Entry], reading: Reading) -> list[Message]:
    """Read the messages of entries; what cannot be read is noted."""
    runs: list[_Run] = []
    waiting: list[Entry] = []
    line = 1
    for run in codec.split(entries):
        reading.line = line
        line += len(run)
        if not waiting and len(run) == 1 and (message := codec.read_plain(run[0], reading)) is not None:
            runs.append(_Run(run, [message], {}, is_plain=True))
            continue
        try:
            messages = codec.read(run, reading)
        except DecodeError as error:
            reading.notes.unreadable(reading.line, str(error))
            waiting += run
            continue
        if messages:
            if not all(message.content for message in messages) or _has_fewer_pieces(run, messages):
                made = [message.content for message in messages]
                for entry in run:
                    note_unread(entry, made, reading.line, reading.notes, since=reading.notes.left_out, names=False)
            runs.append(_Run(run, messages, {BEFORE: waiting} if waiting else {}, line=reading.line))
            waiting = []
        else:
            _note_record(run, reading)
            waiting += run
    if waiting and runs:
        runs[-1].around[AFTER] = waiting
    named = name_results([message for run in runs for message in run.messages])
    return list(_with_patches(codec, runs, named, reading))


class _Run(NamedTuple):
    """The entries of a run, its messages, and the entries around it that are not part of the conversation."""

    entries: list[Entry]
    messages: list[Message]
    around: dict[str, object]
    is_plain: bool = False
    """Whether the entries are as `EntryCodec.write` writes the messages."""
    line: int = 0
    """The number of the first entry."""


def _note_record(run: list[Entry], reading: Reading) -> None:
    for entry in run:
        kind = next((entry[key] for key in ("type", "role", "kind") if isinstance(entry.get(key), str)), "entry")
        reading.notes.record(str(kind), reading.line, len(_text(entry)), entry)


def _text(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError):
        return b""


def _note_lost(run: _Run, reading: Reading) -> None:
    """Note what entries say and their messages do not; of an entry without a known field, everything it holds."""
    made = [message.content for message in run.messages]
    for at, entry in enumerate(run.entries):
        known = {key: entry[key] for key in _SAYING if key in entry}
        has_words = not known.keys().isdisjoint((*_LISTS, "text", "items"))
        given = known if has_words else entry
        note_unread(given, made, run.line + at, reading.notes, since=reading.notes.left_out, names=False)


def _with_patches(
    codec: EntryCodec, runs: Sequence[_Run], named: Sequence[Message], reading: Reading
) -> Iterator[Message]:
    writing = None
    start = 0
    for at, each in enumerate(runs):
        run, given, around, is_plain, _ = each
        messages = named[start : start + len(given)]
        start += len(given)
        if is_plain:
            yield with_envelope(messages[0], codec.name, {RUN: at, **around})
            continue
        writing = writing or Writing(named, Notes())
        default = codec.write(messages, writing)
        envelope: dict[str, object] = {RUN: at, **around}
        if WEIGHT in run[0]:
            envelope[WEIGHT] = run[0][WEIGHT]
        patch = None if _is_plainly_equal(default, run) else difference(default, run)
        if patch is not None:
            if all(message.content for message in given) and not _has_fewer_pieces(run, given):
                _note_lost(each, reading)  # the others were judged when they were read
            if not same(apply(default, patch), run):
                patch = {"fromDigest": digest(default), "to": run}
            envelope[PATCH] = patch
        yield with_envelope(messages[0], codec.name, envelope)
        for message in messages[1:]:
            yield with_envelope(message, codec.name, {RUN: at})


def _is_plainly_equal(default: list[Entry], run: list[Entry]) -> bool:
    """Whether two runs are equal and hold texts alone, as most do: an integer may equal a boolean, a text does not."""
    if default != run:
        return False
    for entry in run:
        for value in entry.values():
            if type(value) is not str:
                return False
    return True


def find_weight(message: Message, *, outside: str = "") -> object:
    """Return the weight of a turn of a training set, in the part of any format but `outside`; None if it has none."""
    parts = () if message.extra is None else message.extra.items()
    return next((part[WEIGHT] for name, part in parts if name != outside and WEIGHT in part), None)


def with_weight(entries: list[Entry], message: Message, name: str) -> list[Entry]:
    """Set the weight of a message that another format stored on entries; a patch restores one of the same format."""
    weight = find_weight(message, outside=name)
    is_own = find_envelope(message, name) is not None
    return entries if weight is None or is_own else [{**entry, WEIGHT: weight} for entry in entries]


def write_entries(codec: EntryCodec, messages: Sequence[Message], writing: Writing) -> list[Entry]:
    """Write messages as entries: those of this format unchanged, others in the default form."""
    entries: list[Entry] = []
    for message in messages:
        if any(_is_empty(content) for content in message.content):
            writing.note(message, ChangeCode.MEDIA_OMITTED, Loss.NONE, "it has neither data nor an address")
        if any(_is_blank(content) for content in message.content):
            writing.note(message, ChangeCode.THINKING_BLANK, Loss.NONE, "some formats do not store it")
    for run in _group(codec, messages):
        written = codec.write(run, writing)
        envelope = find_envelope(run[0], codec.name) or {}
        if PATCH in envelope:
            patched = apply(written, envelope[PATCH])
            written = cast("list[Entry]", patched) if isinstance(patched, list) else written
        entries += [*objects_of(envelope.get(BEFORE)), *written, *objects_of(envelope.get(AFTER))]
    return entries


def _is_blank(content: AnyContent) -> bool:
    return content.kind == "thinking" and not content.thinking and content.thinking_signature is None


def _is_empty(content: AnyContent) -> bool:
    if content.kind not in {"image", "file"}:
        return False
    return not any(getattr(content, name, None) for name in ("data", "url", "file_id"))


def _group(codec: EntryCodec, messages: Sequence[Message]) -> Iterator[Sequence[Message]]:
    foreign: list[Message] = []
    own: list[Message] = []
    current: object = None
    for message in messages:
        envelope = find_envelope(message, codec.name)
        run = None if envelope is None else envelope.get(RUN)
        if own and (run is None or run != current or not {PATCH, BEFORE}.isdisjoint(envelope or {})):
            yield own
            own = []
        current = run
        if run is None:
            foreign.append(message)
            continue
        if foreign:
            yield from codec.join(foreign)
            foreign = []
        own.append(message)
    if own:
        yield own
    yield from codec.join(foreign)
