"""Limits of single values in a request body, as rows: their range, length, pattern, and what they need next to them.

A row names a place in the body and what an endpoint refuses there, with the source. The file `limits` of each protocol
holds its rows; this file compares bodies with them. What depends on the capabilities of a model is a field of `Rules`.

A place is a path of keys with dots: `*` represents every item of a list, a number for one of them, `~` for every key of
an object and `*` after an object for every value. A condition is a place that has to be set, or `place=value` with a
JSON value; one that begins with a dot is looked up in the object that holds the value. An empty list counts as not set.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Final, NamedTuple, cast, final

from msgspec.structs import replace

from segue.errors import Path
from segue.models.evidence import Grade
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.checking import CheckedBody
from segue.protocols.kit.codec import Endpoint, JsonObject, Violation
from segue.protocols.kit.json_values import Block, list_of, object_of

Condition = str


class Limit(NamedTuple):
    """One limit of the values in one place.

    `least` and `most` bound a number, the length of a text or of a list, and the number of keys of an object.
    `allowed` are the values that a value can have, `among` is a place that has to hold the value too, `unique` the key
    of the items of a list in which no two may be equal. With `needs`, one of the conditions has to hold; with
    `excludes`, none may; `refused` refuses every value and says what to do instead, as `advice` does for a value out of
    its bounds. A row applies if the value is `equals`, or one of a tuple there, all conditions of `when` hold, and the
    provider and the id of the model fit; no provider means every one of the protocol. `grade` says whether the source
    shows a refusal.
    """

    path: str
    source: str
    least: float | None = None
    most: float | None = None
    pattern: str = ""
    allowed: tuple[object, ...] = ()
    among: str = ""
    unique: str = ""
    needs: tuple[Condition, ...] = ()
    excludes: tuple[Condition, ...] = ()
    refused: str = ""
    equals: object = None
    when: tuple[Condition, ...] = ()
    providers: tuple[str, ...] = ()
    models: str = ""
    advice: str = "change it"
    grade: Grade = "refused"


def rows_of(providers: tuple[str, ...], *rows: Limit) -> tuple[Limit, ...]:
    """Return rows that hold at some providers; a row that names its own keeps them."""
    return tuple(row if row.providers else row._replace(providers=providers) for row in rows)


NULL: Final = object()
"""As `equals`: a key that is set to null, which other rows pass over."""
BESIDE: Final = frozenset(
    {CheckCode.OPTION_NEEDS_OTHER, CheckCode.OPTIONS_CONFLICT, CheckCode.REFERENCE_UNKNOWN, CheckCode.TOOLS_DEFERRED}
)
"""Codes of what depends on other parts of a request, so that a part alone shows nothing."""
_KEYS: Final = "~"
_EVERY: Final = "*"
_SELECTORS: Final = frozenset({_KEYS, _EVERY})


@final
class Limits:
    """The rows of one protocol; `read` is the day their sources were read, where a source names no other."""

    def __init__(self, rows: Sequence[Limit] = (), *, read: str = "") -> None:
        self.rows: tuple[Limit, ...] = tuple(rows)
        self.read: str = read
        self._applicable = lru_cache(maxsize=64)(self._choose)

    def _choose(self, provider: str, model: str, cautious: bool) -> tuple[Limit, ...]:
        return tuple(
            limit
            for limit in self.rows
            if (cautious or limit.grade == "refused")
            and (not limit.providers or provider in limit.providers)
            and (not limit.models or re.search(limit.models, model, re.IGNORECASE))
        )

    def pins(self, path: str, body: JsonObject, endpoint: Endpoint) -> bool:
        """Whether a row lists the values that a place of a body can have, so that no other rule judges it."""
        rows, facts = self._applicable(endpoint.model.provider, endpoint.model.id, endpoint.cautious), _Facts(body)
        return any(row.path == path and row.allowed and all(facts.hold(one, body) for one in row.when) for row in rows)

    def check(self, body: JsonObject, endpoint: Endpoint) -> Iterator[Violation]:
        """Find values outside of the limits of an endpoint."""
        facts = _Facts(body)
        for limit in self._applicable(endpoint.model.provider, endpoint.model.id, endpoint.cautious):
            places = facts.find(_split(limit.path))
            if not places or not all(facts.hold(one, body) for one in limit.when if one[0] != "."):
                continue
            wanted = limit.equals
            for path, value, holder in places:
                if (value is None) != (wanted is NULL):
                    continue
                is_one = value in wanted if isinstance(wanted, tuple) else value == wanted
                if value is not None and wanted is not None and not is_one:
                    continue
                if all(facts.hold(one, holder) for one in limit.when if one[0] == "."):
                    found = _compare(limit, path, value, facts, holder)
                    yield from found if limit.grade == "refused" else (replace(one, grade=limit.grade) for one in found)


@final
class _Facts:
    """What holds of a body, or of a part of one: looked up once, because a row may ask for each of many values."""

    def __init__(self, body: object) -> None:
        self._found: dict[tuple[str, ...], _Places] = {(): [((), body, object_of(body))]}
        self._names = body.names if isinstance(body, CheckedBody) else None
        self._held: dict[Condition, bool] = {}
        self._values: dict[str, frozenset[object]] = {}

    def find(self, keys: tuple[str, ...]) -> _Places:
        """Return the values in a place of the body; rows share what their paths have in common."""
        places = self._found.get(keys)
        if places is None:
            key = keys[-1]
            may_be = self._names is None or key in self._names or key in _SELECTORS or key.isdigit()
            places = self._found[keys] = _step(above, key) if may_be and (above := self.find(keys[:-1])) else []
        return places

    def hold(self, condition: Condition, holder: Block) -> bool:
        """Whether a condition holds, in the body or in the object that holds a value."""
        if condition[0] == ".":
            return _Facts(holder).hold(condition[1:], holder)
        if condition not in self._held:
            keys, has_value, wanted = _read_condition(condition)
            self._held[condition] = any(
                _equal(value, wanted) if has_value else value is not None and value not in ([], {}, "")
                for _, value, _ in self.find(keys)
            )
        return self._held[condition]

    def have(self, place: str, value: object) -> bool:
        """Whether a place of the body has a value."""
        if place not in self._values:
            self._values[place] = frozenset(_comparable(one) for _, one, _ in self.find(_split(place)))
        return _comparable(value) in self._values[place]


def check_bounds(limit: Limit, value: object, path: Path) -> list[Violation]:
    """Compare the size of a value, and the letters of a text, with a limit."""
    found: list[Violation] = []
    size, unit = _size(value)
    if size is not None and not (limit.least is None or size >= limit.least):
        message = f"`{path[-1]}` has to be at least {limit.least:g}{unit}; {limit.advice}"
        found.append(Violation(CheckCode.VALUE_OUT_OF_RANGE, path, message))
    elif size is not None and not (limit.most is None or size <= limit.most):
        message = f"`{path[-1]}` has to be at most {limit.most:g}{unit}; {limit.advice}"
        found.append(Violation(CheckCode.VALUE_OUT_OF_RANGE, path, message))
    if limit.pattern and isinstance(value, str) and _pattern(limit.pattern).fullmatch(value) is None:
        message = f"`{path[-1]}` has to match {limit.pattern}; {limit.advice}"
        found.append(Violation(CheckCode.VALUE_MALFORMED, path, message))
    return found


_pattern: Final = lru_cache(maxsize=256)(partial(re.compile, flags=re.DOTALL))


def _compare(limit: Limit, path: Path, value: object, facts: _Facts, holder: Block) -> Iterator[Violation]:
    name, end = f"`{path[-1]}`", f"; {limit.advice}"
    yield from check_bounds(limit, value, path)
    if limit.allowed and not any(_equal(value, one) for one in limit.allowed):
        listed = ", ".join(map(str, limit.allowed))
        yield Violation(CheckCode.VALUE_UNKNOWN, path, f"{name} has to be one of {listed}{end}")
    if limit.among and not facts.have(limit.among, value):
        message = f"{value!r} is not in `{limit.among}`; add it there, or remove it"
        yield Violation(CheckCode.REFERENCE_UNKNOWN, path, message)
    if limit.needs and not any(facts.hold(one, holder) for one in limit.needs):
        wanted = " or ".join(f"`{one.lstrip('.')}`" for one in limit.needs)
        yield Violation(CheckCode.OPTION_NEEDS_OTHER, path, f"{name} needs {wanted}; set it, or remove {name}")
    for one in limit.excludes:
        if facts.hold(one, holder):
            other = _read_condition(one)[2] if f"{_KEYS}=" in one else one.lstrip(".")
            message = f"{name} cannot be combined with `{other}`; remove one of them"
            yield Violation(CheckCode.OPTIONS_CONFLICT, path, message)
            break
    if limit.refused and value not in ([], {}):
        yield Violation(CheckCode.OPTION_UNSUPPORTED, path, f"{name} is not supported here; {limit.refused}")
    if limit.unique:
        yield from _find_twice(limit, path, value)


def _find_twice(limit: Limit, path: Path, value: object) -> Iterator[Violation]:
    seen: set[object] = set()
    for index, item in enumerate(list_of(value)):
        for place, one, _ in _Facts(item).find(_split(limit.unique)):
            if one is None:
                continue
            if _comparable(one) in seen:
                message = f"{one!r} is there already; {limit.advice}"
                yield Violation(CheckCode.VALUE_DUPLICATE, (*path, index, *place), message)
            seen.add(_comparable(one))


def _size(value: object) -> tuple[float | None, str]:
    if isinstance(value, str):
        return len(value), " characters"
    if isinstance(value, bool):
        return None, ""
    if isinstance(value, int | float):
        return value, ""
    if isinstance(value, list | Mapping):
        return len(cast("list[object]", value)), " items"
    return None, ""


def _equal(one: object, other: object) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _comparable(value: object) -> object:
    """Return what two equal JSON values have in common, and no others."""
    return (isinstance(value, bool), value) if isinstance(value, str | int | float) else repr(value)


@lru_cache(maxsize=1024)
def _split(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))


_Places = list[tuple[Path, object, Block]]
"""Values with their paths and the objects that hold them."""


def _step(places: _Places, key: str) -> _Places:
    """Return what values have under one key of a path."""
    found: _Places = []
    for path, value, holder in places:
        if isinstance(value, str):
            continue
        if isinstance(value, list):
            items = cast("list[object]", value)
            if key == _EVERY:
                found += [((*path, index), item, holder) for index, item in enumerate(items)]
            elif key.isdigit() and int(key) < len(items):
                found.append(((*path, int(key)), items[int(key)], holder))
        elif isinstance(value, Mapping):
            inner = cast("Block", value)
            if key == _KEYS:
                found += [((*path, name), name, inner) for name in inner]
            elif key == _EVERY:
                found += [((*path, name), one, inner) for name, one in inner.items()]
            elif key in inner:
                found.append(((*path, key), inner[key], inner))
    return found


@lru_cache(maxsize=1024)
def _read_condition(condition: Condition) -> tuple[tuple[str, ...], bool, object]:
    place, equals, value = condition.lstrip(".").partition("=")
    return _split(place), bool(equals), json.loads(value) if equals else None
