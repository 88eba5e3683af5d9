"""`BatchForm`: how the requests of a protocol are in the lines of one provider's batch files, and how its results do.

A protocol has a form for each provider that takes its bodies in batches (`batch_forms.py` of its folder). This module
does not import any codec, because a line is recognised among the forms of every protocol.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Final, Literal, NamedTuple, TypeAlias, cast, final

from segue.errors import CorpusError

Fields: TypeAlias = dict[str, object]
Outcome: TypeAlias = Literal["succeeded", "errored", "expired", "canceled", "missing"]

MEGABYTE: Final = 1_000_000
_NO_LIMIT: Final = 1_000_000_000_000
WORD: Final = "a-zA-Z0-9_-"
_STREAMING: Final = frozenset({"stream", "stream_options"})
PATH_KEYS: Final = _STREAMING | {"model", "modelId"}
"""Keys that are in the URL or in the job, not in a request."""
PLACE: Final = "*"
"""The step of an envelope that is the place of a form."""


@final
class ResultLine(NamedTuple):
    """A result, read: the id if the line has one, the outcome, the body of the reply or the error, and the status."""

    id: str | None
    outcome: Outcome
    body: object
    status: int | None = None


@final
class Envelope(NamedTuple):
    """What is around the body of a request in a line of a batch file: the keys that lead to its parts."""

    id: tuple[str, ...]
    body: tuple[str, ...]
    """The last key is the form's place where it is `*`."""
    place: str | None = None
    """The key next to the body whose value is the form's place."""
    constants: Mapping[str, object] = {}
    other_ids: tuple[tuple[str, ...], ...] = ()
    """Where the id of a line may be that segue did not write."""
    is_named: bool = True
    """Whether a line without an id is one of another form."""
    absent: frozenset[str] = frozenset()
    """Keys by which a line is one of another form."""

    @property
    def holds_id_inside(self) -> bool:
        """Whether the id is part of the body."""
        return self.id[: len(self.body)] == self.body

    def write(self, name: str, body: object, place: str) -> Fields:
        """Write a line."""
        line: Fields = {} if self.holds_id_inside else {self.id[0]: name}
        line.update(self.constants)
        if self.place is not None:
            line[self.place] = place
        line = _put(line, [place if key == PLACE else key for key in self.body], body)
        return self.with_id(line, name) if self.holds_id_inside else line

    def with_id(self, line: Fields, name: str) -> Fields:
        """Return a line with another id."""
        return _put(line, self.id, name)

    def read(self, line: Fields) -> tuple[str | None, object, str | None] | None:
        """Return the id, the body, and its place; None for a line of another form."""
        ids = (self.id, *self.other_ids)
        has_name = not self.is_named or any(path[0] in line for path in ids)
        if not has_name or not self.absent.isdisjoint(line) or (self.place is not None and self.place not in line):
            return None
        place = None if self.place is None else _text(line[self.place])
        body: object = line
        for step in self.body:
            fields = _object(body) or {}
            if step == PLACE:
                place = next(iter(fields), None)
            key = place if step == PLACE else step
            if key is None or key not in fields:
                return None
            body = fields[key]
        name = next((text for path in ids if (text := _text(_reach(line, path)))), None)
        if self.holds_id_inside and isinstance(body, dict):
            body = _without(cast("Fields", body), self.id[len(self.body) :])
        return name, body, place


def _object(value: object) -> Fields | None:
    return cast("Fields", value) if isinstance(value, dict) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _reach(value: object, path: Sequence[str]) -> object:
    for key in path:
        value = (_object(value) or {}).get(key)
    return value


def _put(fields: Fields, path: Sequence[str], value: object) -> Fields:
    """Return a copy of an object with a value at a path."""
    first, rest = path[0], path[1:]
    return {**fields, first: _put(_object(fields.get(first)) or {}, rest, value) if rest else value}


def _without(fields: Fields, path: Sequence[str]) -> Fields:
    """Return a copy of an object without the value at a path, and without objects that are empty then."""
    first, rest = path[0], path[1:]
    inner = _object(fields.get(first)) if rest else None
    if inner is not None and (kept := _without(inner, rest)):
        return {**fields, first: kept}
    return {key: value for key, value in fields.items() if key != first or (rest and inner is None)}


@final
class BatchForm(NamedTuple):
    """How the bodies of one protocol are written and read in one provider's batch files.

    `place` is what is around a body of this protocol: the url, or the key of the body. `read_result` reads a line
    of the results; None for a line of another form. `constants` are keys that a body needs there, `dropped` keys that
    it must not have, `refused` keys that the provider answers with an error in a batch, with a sentence about it.
    """

    name: str
    providers: frozenset[str]
    envelope: Envelope
    read_result: Callable[[Fields], ResultLine | None]
    place: str = ""
    for_others: bool = False
    """Whether providers that no form of any protocol names take this one."""
    alphabet: str = ""
    """Characters that an id may have; any if empty."""
    longest: int = 512
    """The characters of the longest id."""
    requests: int = _NO_LIMIT
    size: int = _NO_LIMIT
    constants: Mapping[str, object] = {}
    recognised_by: frozenset[str] = frozenset()
    """Keys without which a body belongs to another form with the same envelope."""
    dropped: frozenset[str] = _STREAMING
    refused: Mapping[str, str] = {}

    @property
    def is_plain(self) -> bool:
        """Whether a body is written as it is; requests of a batch are not streamed."""
        is_changed = self.constants or self.refused or self.dropped != _STREAMING
        return not is_changed and not self.envelope.holds_id_inside

    def line(self, name: str, body: Fields) -> Fields:
        """Write a line.

        Raises:
            CorpusError: the provider refuses this body in a batch.
        """
        for key, reason in self.refused.items():
            if key in body:
                raise CorpusError(reason)
        kept = {key: value for key, value in body.items() if key not in self.dropped}
        return self.envelope.write(name, {**kept, **self.constants}, self.place)

    def read(self, line: Fields) -> tuple[str | None, Fields] | None:
        """Return the id and the body of a line; None for one of another form."""
        found = self.envelope.read(line)
        if found is None:
            return None
        name, body, place = found
        fields = _object(body)
        # An address may be complete, or have the version of another service before the path.
        is_here = place is None or place.endswith(self.place)
        if fields is None or not is_here or not self.recognised_by <= fields.keys():
            return None
        return name, {key: value for key, value in fields.items() if key not in self.constants}

    def legal_id(self, given: str) -> str:
        """Return an id that the provider accepts: the given one if it can be, otherwise one that is made from it.

        The same id gives the same one again, so that results can be matched without a table.
        """
        pattern = f"[{self.alphabet}]" if self.alphabet else "."
        if 0 < len(given) <= self.longest and re.fullmatch(f"{pattern}+", given, re.DOTALL):
            return given
        digest = sha256(given.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        lower = given.lower() if self.alphabet and "A-Z" not in self.alphabet else given
        cleaned = re.sub(f"[^{self.alphabet}]+" if self.alphabet else "$^", "-", lower).strip("-")
        return f"{cleaned[: self.longest - 17]}-{digest}".lstrip("-")
