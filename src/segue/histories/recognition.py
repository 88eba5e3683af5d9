"""Recognise what data is: the one place that decides, for the library, the command line, a corpus and the inspector.

Every reader states its evidence as data (`segue.histories.forms`, the `forms` of a record of a package, the clues of
a protocol). Data with signs that only one reader has is certain to be its own. A request has few distinctive signs and
takes unknown keys, so it is only likely, and taken where nothing is certain. Two readers of the same certainty are an
error that names both.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast, final
from warnings import warn

import msgspec

from segue.calls.batch_forms import read_request_line
from segue.conversation.limits import parse_json
from segue.errors import LoadError, UnknownFormat
from segue.histories.forms import CHAT_LINES, EXCHANGE, FORMS, ROWS, SESSION, STORED, UNREADABLE
from segue.histories.kit.evidence import (
    ALL,
    Certainty,
    Form,
    FoundForm,
    Sight,
    describe_missing,
    find_evidence,
    first_key,
    items_under,
    near_signs,
)
from segue.histories.kit.lines import object_of
from segue.histories.kit.source import Source
from segue.histories.registry import FORMATS, find_format, format_names
from segue.protocols.detection import detect_protocol, has_turns

Kind: TypeAlias = Literal[
    "history", "stored", "session", "request", "chat lines", "row", "batch line", "exchange", "unreadable"
]
"""What data is: a history in a format; a stored conversation or a session of segue; a request; messages of a request,
one on each line; a row of a data set; a line of a batch file; a request with its reply; or data of a program that segue
knows and does not read."""

HEAD: Final = 64 * 1024
"""Bytes of a document that are parsed to recognise it; of a shorter one all are."""
_LINES: Final = 50
"""Lines of a file that are looked at."""
_SHOWN: Final = 8
"""Keys of a request that are named as evidence."""
_NEAR: Final = 2
"""Formats that an error compares data with."""
_MESSAGES: Final = ("messages",)
_PLAIN_KEYS: Final = frozenset({"role", "content", "tool_calls", "tool_call_id", "name"})
_PLAIN_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool"})
_PLAIN_TYPES: Final = frozenset({"text", "image_url", "image", "thinking", "tool_use", "tool_result"})
"""Keys, roles and types of blocks that no form has as its own sign."""
_ENVELOPE_KEYS: Final = frozenset({"custom_id", "key", "request", "recordId", "batch_request_id"})
"""Keys, one of which is in every line of a batch file."""


@final
class Recognition(msgspec.Struct, frozen=True):
    """One reader that claims some data.

    `format` is the name of a format or a protocol, `segue` for a stored conversation, or a description of data that
    segue does not read. `evidence` are the keys and values that were found, see `segue.histories.kit.evidence`.
    """

    format: str
    kind: Kind
    certainty: Certainty
    evidence: tuple[str, ...]

    def __str__(self) -> str:
        """Say it in one line."""
        return f"{self.format} ({', '.join(self.evidence)})"


def recognise_sight(sight: Sight, *, history: bool = False) -> list[Recognition]:
    """Return everything that the data may be, what is certain first; nothing if `history` is wanted and it is none."""
    claims: list[tuple[Recognition, tuple[str, ...]]] = []
    candidates = _candidates(sight)
    if history and not any(kind == "history" for _, kind in candidates):
        return []
    for (name, kind), forms in candidates.items():
        evidence = find_evidence(forms, sight)
        if evidence is not None:
            claims.append((Recognition(name, kind, evidence.certainty, evidence.found), evidence.over))
    special = {name for _, over in claims for name in over}
    read_by_packages = (claim for claim, _ in claims if claim.kind == "history" and claim.format not in FORMS)
    if any(claim.certainty == "certain" for claim in read_by_packages):
        special.update(UNREADABLE)
    named = [claim for claim, over in claims if ALL in over]
    found = named or [claim for claim, _ in claims if claim.format not in special]
    if not any(claim.certainty == "certain" for claim in found):
        found += _recognise_wire(sight.value)
    return sorted(found, key=lambda claim: (claim.certainty, claim.format))


def is_plain_request(value: object) -> bool:
    """Whether a value is a request or a row with messages in which nothing can be a sign of another reader.

    `recognise_sight` returns the same answer, with several times the work: a corpus has millions of such rows.
    """
    if type(value) is not dict:
        return False
    row = cast("dict[str, object]", value)
    messages = row.get("messages")
    if type(messages) is not list or not messages or not _read_index(FORMATS.added).row_keys.isdisjoint(row):
        return False
    for item in cast("list[object]", messages):
        if type(item) is not dict:
            return False
        message = cast("dict[str, object]", item)
        if type(role := message.get("role")) is not str or role not in _PLAIN_ROLES:
            return False
        content = message.get("content")
        if type(content) is str and len(message) == 2:  # only the role and a text
            continue
        if not message.keys() <= _PLAIN_KEYS:
            return False
        if type(content) is not str and content is not None and not _has_plain_blocks(content):
            return False
        if content is None and "tool_calls" not in message:  # it says nothing, so it may not be a message at all
            return False
        if "tool_calls" in message and not (type(content) is not list and _has_plain_calls(message["tool_calls"])):
            return False
    return True


def _has_plain_blocks(content: object) -> bool:
    if type(content) is not list:
        return False
    for item in cast("list[object]", content):
        if type(item) is not dict:
            return False
        block = cast("dict[str, object]", item)
        if block.get("type") not in _PLAIN_TYPES or "mimeType" in block or "toolUseId" in block:
            return False
    return True


def _has_plain_calls(calls: object) -> bool:
    if type(calls) is not list:
        return False
    for item in cast("list[object]", calls):
        function = cast("dict[str, object]", item).get("function") if type(item) is dict else None
        if type(function) is not dict or type(cast("dict[str, object]", function).get("arguments")) is not str:
            return False
    return True


def choose(found: Sequence[Recognition], place: str, sight: Sight | None = None) -> Recognition:
    """Return the one reader that the evidence is for; `sight` is what an error compares with the known formats.

    Raises:
        UnknownFormat: nothing is recognised, the data is that of a program that segue does not read, or two readers
            cannot be distinguished.
    """
    best = [claim for claim in found if claim.certainty == found[0].certainty]
    readable = [claim for claim in best if claim.kind != "unreadable"]
    if not best:
        near = [] if sight is None else near_misses(sight)
        text = f"{place} is not recognised as a history, a conversation or a request"
        if near:
            text = f"{text}; it resembles {'; '.join(near)}"
        known = ", ".join(format_names())
        raise UnknownFormat(f"{text}; name its format with format=... (known: {known})", name="")
    if not readable:
        text = f"{place} looks like {best[0]}, which segue does not read"
        raise UnknownFormat(f"{text}; export it from that program in a format that segue reads", name="")
    if len(best) > 1:
        names = " or ".join(map(str, best))
        raise UnknownFormat(
            f"{place} can be read as {names}; name its format with format=...",
            name="",
            suggestions=tuple(claim.format for claim in readable),
        )
    return readable[0]


def near_misses(sight: Sight, *, without: str = "") -> list[str]:
    """Describe the formats that data resembles most: what speaks for each, and what against it."""
    found: list[tuple[int, int, str, str]] = []
    for (name, _), forms in _all_forms():
        if name == without:
            continue
        near = min(
            ((len(against), -len(fits), fits, against) for form in forms for fits, against in near_signs(form, sight)),
            default=None,
        )
        if near is not None:
            missing, count, fits, against = near
            text = f"{name} ({', '.join(fits)}), but {describe_missing(against[0])}"
            found.append((missing, count, name, text))
    return [text for *_, text in sorted(found)[:_NEAR]]


# -- what is looked at -------------------------------------------------------------------------------------------------


def look(source: Source, *, head: bool = False) -> Sight:
    """Return what a source shows; `head` means that its data is only the beginning of a file."""
    if source.database is not None:
        database = source.database
        return Sight(columns={table: database.columns(table) for table in database.tables()}, name=source.name)
    if source.data is None:
        return look_at_value(source.value, source.name)
    data = source.data
    start = data[:HEAD]
    lines = tuple(islice(_objects(data, cut=head), _LINES))
    value, cut = None, False
    if data.lstrip()[:1] in (b"{", b"["):
        value = _parse(data)
        if value is None and not lines:
            value, cut = _parse_beginning(start), True
    if lines and value is None:
        return Sight(lines=lines, text=start, name=source.name)
    return Sight(value=value, lines=lines, text=start, name=source.name, cut=cut or head)


def look_at_value(value: object, name: str = "") -> Sight:
    """Return what a parsed value shows. A list of objects that is nothing else can be the lines of a file."""
    if type(value) is dict:
        return Sight(value=cast("object", value), lines=(cast("dict[str, Any]", value),), name=name)
    return Sight(value=value, name=name)


def _parse(data: bytes) -> object:
    """Parse a document; None if it is not one."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError):
        try:
            given = data.lstrip()
            end = given.find(b"\n")  # the data after it can be long, and is not copied
            first = given if end < 0 else given[:end]
            return None if first.rstrip().endswith(b"}") else parse_json(data)
        except LoadError:
            return None


def _parse_beginning(data: bytes) -> object:
    """Parse the beginning of a document: cut at its last comma between values, with the open brackets closed."""
    text = data.decode("utf-8", "ignore")
    stack: list[str] = []
    end, closers = 0, ""
    quoted = escaped = False
    for at, symbol in enumerate(text):
        if quoted:
            quoted = escaped or symbol != '"'
            escaped = symbol == "\\" and not escaped
        elif symbol == '"':
            quoted = True
        elif symbol in "[{":
            stack.append("]" if symbol == "[" else "}")
        elif symbol in "]}" and stack:
            stack.pop()
        elif symbol == ",":
            end, closers = at, "".join(reversed(stack))
    try:
        return cast("object", json.loads(text[:end] + closers))
    except (ValueError, RecursionError):
        return None


def _objects(data: bytes, *, cut: bool) -> Iterator[dict[str, Any]]:
    """Yield the objects of JSON Lines; none if neither the first line nor the one after it is one."""
    start = number = found = 0
    while start < len(data) and (found or number < 2):
        end = data.find(b"\n", start)
        last = end < 0
        line = data[start : len(data) if last else end].strip()
        start = len(data) if last else end + 1
        if not line:
            continue
        number += 1
        if line in (b"{", b"["):  # a document over several lines
            return
        try:
            value: object = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError):
            continue
        if isinstance(value, dict) and not (last and cut):
            found += 1
            yield cast("dict[str, Any]", value)


# -- claims ------------------------------------------------------------------------------------------------------------

_Claimant: TypeAlias = tuple[str, Kind]
_INNER: Final = "messages[]."


@final
class _Entry(NamedTuple):
    """A form with what the keys alone show: those that it needs, and those that it needs one of."""

    claimant: _Claimant
    form: Form
    needed: frozenset[str]
    any_inner: frozenset[str]
    """Keys of messages, one of which is there."""


def _refuses_messages(entry: _Entry) -> bool:
    return "!messages" in entry.form.needs


@final
class _Index:
    """All forms, by a key that is there if the form fits, so that most are never looked at."""

    def __init__(self) -> None:
        self.by_key: dict[str, dict[str, list[_Entry]]] = {"object": {}, "items": {}, "lines": {}}
        self.others: dict[str, list[_Entry]] = {"database": [], "text": [], "objects": []}
        for claimant, forms in _all_forms():
            for form in forms:
                is_inner = bool(form.own) and all(sign.startswith(_INNER) for sign in form.own)
                inner = {first_key(sign.removeprefix(_INNER)) for sign in form.own if is_inner}
                needed = frozenset(first_key(sign) for sign in form.needs if not sign.startswith("!"))
                entry = _Entry(claimant, form, needed, frozenset(inner))
                if form.where in self.others:
                    self.others[form.where].append(entry)
                    continue
                for key in form.keys():  # noqa: SIM118 - a method of the form
                    self.by_key[form.where].setdefault(key, []).append(entry)
        fitting = (key for key, found in self.by_key["object"].items() if not all(map(_refuses_messages, found)))
        self.row_keys = frozenset(fitting) - {"messages"} | _ENVELOPE_KEYS
        """Keys, one of which is there if a row is more than a request."""

        self.fitting = lru_cache(maxsize=512)(self._fitting)

    def _fitting(
        self, keys: frozenset[str] | None, inner: frozenset[str], lines: frozenset[str], other: str
    ) -> Mapping[_Claimant, Sequence[Form]]:
        """Return the forms that the keys of an object, of the items of its list and of lines do not exclude.

        The rows of a file have few shapes, so the result is kept.
        """
        found: list[_Entry] = []
        if keys is not None:
            found += self._at("object", keys, inner)
            found += (entry for entry in self._at("items", inner) if not keys.isdisjoint(entry.form.under))
        else:
            found += self._at("items", inner)
        found += self._at("lines", lines)
        found += self.others.get(other, ())
        return _by_claimant(found)

    def _at(self, where: str, keys: frozenset[str], inner: Collection[str] = ()) -> Iterator[_Entry]:
        table = self.by_key[where]
        for key in sorted(table.keys() & keys):  # in the same order in every process
            for entry in table[key]:
                if entry.needed <= keys and not (entry.any_inner and entry.any_inner.isdisjoint(inner)):
                    yield entry


def _all_forms() -> Iterator[tuple[_Claimant, Sequence[Form]]]:
    yield ("segue", "stored"), STORED
    yield ("segue session", "session"), SESSION
    yield ("openai-chat", "chat lines"), CHAT_LINES
    yield ("data set", "row"), ROWS
    yield ("exchange", "exchange"), EXCHANGE
    for name in format_names():
        yield (name, "history"), forms_of(name)
    for name, forms in UNREADABLE.items():
        yield (name, "unreadable"), forms


def forms_of(name: str) -> Sequence[Form]:
    """Return the forms of a format; segue's own are not loaded for it."""
    if name in FORMS:
        return FORMS[name]
    try:
        record = find_format(name)
    except UnknownFormat as error:  # of a package; the others are recognised all the same
        warn(f"{error}", RuntimeWarning, stacklevel=2)
        record = None
    return () if record is None else record.forms


@lru_cache(maxsize=2)
def _read_index(count: int) -> _Index:  # noqa: ARG001 - the cache key: new records need a new index
    return _Index()


def _candidates(sight: Sight) -> Mapping[_Claimant, Sequence[Form]]:
    """Return the forms that the keys do not exclude, by claimant."""
    index = _read_index(FORMATS.added)
    if sight.columns is not None:
        return _by_claimant(index.others["database"])
    value = sight.value
    inner, is_json = _keys_of_items(items_under(value, _MESSAGES))
    keys = frozenset(cast("dict[str, object]", value)) if type(value) is dict else None
    lines = frozenset[str]().union(*sight.lines)
    if sight.text:
        other = "text"
    else:
        is_json = is_json and (bool(inner) if keys is None else "values" not in keys)
        other = "" if value is None or is_json else "objects"
    return index.fitting(keys, inner, lines, other)


def _by_claimant(entries: Iterable[_Entry]) -> dict[_Claimant, list[Form]]:
    found: dict[_Claimant, dict[int, Form]] = {}
    for claimant, form, _, _ in entries:
        found.setdefault(claimant, {})[id(form)] = form
    return {claimant: list(forms.values()) for claimant, forms in found.items()}


def _keys_of_items(items: Sequence[object]) -> tuple[frozenset[str], bool]:
    """Return the keys of all items, and whether they are JSON objects and not objects of a framework."""
    objects = [cast("dict[str, object]", item) for item in items if type(item) is dict]
    return frozenset[str]().union(*objects), len(objects) == len(items)


def _recognise_wire(value: object) -> Iterator[Recognition]:
    """Recognise a request, its list of messages, or a line of a batch file."""
    fields = object_of(value)
    if not _ENVELOPE_KEYS.isdisjoint(fields) and (line := read_request_line(fields)) is not None:
        yield Recognition(line.protocol, "batch line", "likely", tuple(sorted(_ENVELOPE_KEYS & fields.keys())))
        return
    protocol = detect_protocol(value)
    if protocol is not None and has_turns(value, protocol):
        yield Recognition(protocol, "request", "likely", tuple(fields)[:_SHOWN] or ("a list of messages",))


def evidence_of(name: str, sight: Sight) -> FoundForm | None:
    """Return the evidence for one format."""
    return find_evidence(forms_of(name), sight)
