"""Evidence: the keys and values by which stored data is recognised.

A `Form` is one way in which a format is stored, as data: the signs that it needs, and those that only it has. A sign is
a text: a path of keys, and what the value has to be.

| sign | meaning |
|---|---|
| `appName` | the key is there |
| `message.parts` | a key inside an object |
| `parts[].part_kind` | a key of any item of a list |
| `store.*[].blocks` | the same below any key |
| `type=session`, `kind=request|response` | the value is this text, or one of these |
| `id^T-` | the text begins so |
| `history:list` | the value is a `list`, an `object`, a `text` or a `number` |
| `!model` | the rest of the sign does not hold |
| `tool_calls&content[].signature` | both hold, of the same item |

The first sign of `needs` is the rarest one: forms are looked up by its first key, so that data without that key costs
nothing. Formats give no number for how sure they are: `find_evidence` is the only judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast, final, get_args

from segue.errors import SettingsError

Where: TypeAlias = Literal["object", "items", "lines", "database", "text", "objects"]
Certainty: TypeAlias = Literal["certain", "likely"]
_PLACES: Final[tuple[str, ...]] = get_args(Where)
_Test: TypeAlias = Callable[[object], bool]

ALL: Final = "*"
"""In `over`: the data names its format itself."""
_START: Final = 400
"""Bytes of a text that have its signs."""
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "list": (list, tuple),
    "object": (dict,),
    "text": (str,),
    "number": (int, float),
}


_WITH_TYPES: Final = frozenset({"object", "items", "lines"})
"""Places whose signs are about values."""


@final
@dataclass(frozen=True, kw_only=True)
class Form:
    """One form in which a format is stored.

    `where` says what the signs are about: an `object`; each of the `items` of a list, or of the list that the object
    has under one of the keys `under`; the first `lines` of JSON Lines, one of which has all signs; the tables of a
    `database`, as `table` or `table.column`; the beginning of a `text` that is not JSON, or all that is looked at of it
    for a form that is not `certain`; or the packages of a program's `objects`.
    `own` are signs, one of which has to be found too, in any of the items: alone they say nothing, because the rest of
    the form is that of others. `first` are signs of the first line. `name` is a pattern for the name of the file, which
    is evidence where the content is that of others. A form that is not `certain` counts only where nothing else is
    recognised. `over` names the formats that this one is a special case of.

    Raises:
        SettingsError: a form without signs, or with a place or a type that there is not.
    """

    where: Where
    needs: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    under: tuple[str, ...] = ()
    name: str = ""
    certain: bool = True
    over: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what would match everything, or nothing."""
        if self.where not in _PLACES:
            text = f"where={self.where!r} of a form is unknown; use one of {', '.join(_PLACES)}"
            raise SettingsError(text, key="where")
        if not (self.needs or self.own or self.first or self.name):
            raise SettingsError("a form without signs fits all data; add `needs`", key="needs")
        for sign in (*self.needs, *self.own, *self.first):
            kind = sign.rpartition(":")[2]
            if ":" in sign and self.where in _WITH_TYPES and kind.isalpha() and kind not in _TYPES:
                text = f"the sign {sign!r} of a form has an unknown type; use one of {', '.join(_TYPES)}"
                raise SettingsError(text, key=sign)

    def keys(self) -> frozenset[str]:
        """Return keys, one of which is there if the form fits."""
        signs = self.own or self.needs[:1] or self.first[:1]
        return frozenset(first_key(sign) for sign in signs)


@final
class FoundForm(NamedTuple):
    """What was found of a form."""

    certainty: Certainty
    found: tuple[str, ...]
    over: tuple[str, ...] = ()


@final
class Sight(NamedTuple):
    """What is looked at: a parsed value, the first lines of JSON Lines, the columns of a database, or a text.

    A file with one line is a value, and the only line. `cut` says that the value is the beginning of a longer one, so
    that its last item may be incomplete.
    """

    value: object = None
    lines: Sequence[Mapping[str, Any]] = ()
    columns: Mapping[str, frozenset[str]] | None = None
    text: bytes = b""
    name: str = ""
    cut: bool = False


def find_evidence(forms: Iterable[Form], sight: Sight) -> FoundForm | None:
    """Return the evidence for the first of these forms that fits; None if none of them does."""
    likely: FoundForm | None = None
    for form in forms:
        found = _match(form, sight)
        if found is None:
            continue
        if form.certain:
            return FoundForm("certain", found, form.over)
        likely = likely or FoundForm("likely", found, form.over)
    return likely


def _match(form: Form, sight: Sight) -> tuple[str, ...] | None:
    if form.name and not fnmatchcase(sight.name.rpartition("/")[2] if "/" not in form.name else sight.name, form.name):
        return None
    named = (f"name {form.name}",) if form.name else ()
    match form.where:
        case "object":
            found = _match_object(form, sight.value)
        case "items":
            found = _match_items(form, items_under(sight.value, form.under), cut=sight.cut)
        case "lines":
            found = _match_lines(form, sight.lines)
        case "database":
            found = None if sight.columns is None else _match_columns(form.needs, sight.columns)
        case "text":
            is_json = sight.value is not None or bool(sight.lines)
            start = b"" if is_json else sight.text.lstrip()[: _START if form.certain else None]
            found = form.needs if start and all(sign.encode() in start for sign in form.needs) else None
        case "objects":
            modules = () if sight.text or sight.columns is not None else tuple(_modules_of(sight.value))
            found = next((form.needs for module in modules if _is_inside(module, form.needs)), None)
    return None if found is None else (*named, *found)


def _is_inside(module: str, packages: Sequence[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def _match_object(form: Form, value: object) -> tuple[str, ...] | None:
    if not isinstance(value, dict) or not all(test(cast("object", value)) for test in _compiled(form.needs)):
        return None
    return _with_own(form, (cast("object", value),))


def _match_items(form: Form, items: Sequence[object], *, cut: bool) -> tuple[str, ...] | None:
    if not items:
        return None
    whole = items[:-1] or items if cut else items
    tests = _compiled(form.needs)
    for item in whole:
        if not isinstance(item, dict) or not all(test(cast("object", item)) for test in tests):
            return None
    return _with_own(form, items)


def _match_lines(form: Form, lines: Sequence[Mapping[str, Any]]) -> tuple[str, ...] | None:
    if not lines or not all(test(lines[0]) for test in _compiled(form.first)):
        return None
    tests = _compiled(form.needs)
    if tests and not any(all(test(line) for test in tests) for line in lines):
        return None
    found = _with_own(form, lines)
    return None if found is None else (*form.first, *found)


def _match_columns(needs: Sequence[str], columns: Mapping[str, frozenset[str]]) -> tuple[str, ...] | None:
    for sign in needs:
        table, _, column = sign.removeprefix("!").partition(".")
        has = table in columns and (not column or column in columns[table])
        if has == sign.startswith("!"):
            return None
    return tuple(needs)


def _with_own(form: Form, items: Iterable[object]) -> tuple[str, ...] | None:
    if not form.own:
        return form.needs
    tests = _compiled(form.own)
    for item in items:
        for sign, test in zip(form.own, tests, strict=True):
            if test(item):
                return (*form.needs, sign)
    return None


def items_under(value: object, under: Sequence[str]) -> Sequence[object]:
    """Return the items of a list, or of the list that an object has under one of these keys."""
    if type(value) is dict:
        fields = cast("dict[str, object]", value)
        value = next((fields[key] for key in under if type(fields.get(key)) is list), None)
    return cast("list[object]", value) if isinstance(value, (list, tuple)) else ()


# -- what nearly fits --------------------------------------------------------------------------------------------------

_COMMON: Final = frozenset(
    {"role", "content", "type", "id", "name", "message", "messages", "data", "timestamp", "status", "title", "version",
     "text", "source", "kind", "model", "agent", "input", "output", "prompt", "response", "request", "meta", "tools",
     "first", "answer", "question", "summary", "items", "parts", "history", "key", "value"}
)  # fmt: skip
"""Keys that data of every kind has: alone they resemble nothing."""


def near_signs(form: Form, sight: Sight) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield the signs of a form that hold and those that do not, where something rare holds and something does not."""
    match form.where:
        case "object":
            value = sight.value
            items: Sequence[object] = (cast("object", value),) if type(value) is dict else ()
        case "items":
            items = items_under(sight.value, form.under)
        case "lines":
            items = sight.lines
        case _:
            return
    if not items:
        return

    def holds(sign: str, where: Sequence[object]) -> bool:
        (test,) = _compiled((sign,))
        return all(map(test, where)) if sign.startswith("!") else any(map(test, where))

    judged = [(sign, holds(sign, items)) for sign in form.needs] + [
        (sign, holds(sign, items[:1])) for sign in form.first
    ]
    fits = tuple(sign for sign, fit in judged if fit and not sign.startswith("!"))
    against = [sign for sign, fit in judged if not fit]
    if form.own and not any(holds(sign, items) for sign in form.own):
        against.append("|".join(form.own))
    if form.name and not against:
        against.append(f"name {form.name}")
    if against and any(first_key(sign) not in _COMMON or "=" in sign or "^" in sign for sign in fits):
        yield fits, tuple(against)


def describe_missing(sign: str) -> str:
    """Describe a sign that does not hold, for an error."""
    if sign.startswith("!"):
        return f"it also has {sign[1:]}"
    if sign.startswith("name "):
        return f"its name is not {sign[5:]}"
    return f"it has no {sign.replace('|', ' or ')}"


# -- signs -------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _compiled(signs: tuple[str, ...]) -> tuple[_Test, ...]:
    return tuple(map(_compile, signs))


def _compile(sign: str) -> _Test:
    if "&" in sign:
        tests = tuple(map(_compile, sign.split("&")))
        return lambda value: all(test(value) for test in tests)
    if sign.startswith("!"):
        test = _compile(sign[1:])
        return lambda value: not test(value)
    for mark in "=^:":
        path, found, rest = sign.partition(mark)
        if found:
            return _along(path.split("."), _expectation(mark, rest))
    return _along(sign.split("."), lambda value: True)  # noqa: ARG005 - that it is there is enough


def _expectation(mark: str, rest: str) -> _Test:
    if mark == "=":
        texts = frozenset(rest.split("|"))
        return lambda value: type(value) is str and value in texts
    if mark == "^":
        return lambda value: type(value) is str and value.startswith(rest)
    types = _TYPES[rest]
    return lambda value: isinstance(value, types)


def _along(path: Sequence[str], expected: _Test) -> _Test:
    step = path[0]
    key = step.removesuffix("[]")
    inner = expected if len(path) == 1 else _along(path[1:], expected)
    if key == "*":
        each = _along(("items[]",), inner) if step.endswith("[]") else _along(("items",), inner)

        def any_value(value: object) -> bool:
            values = cast("dict[str, object]", value).values() if type(value) is dict else ()
            return any(each({"items": below}) for below in values)

        return any_value
    if step.endswith("[]"):

        def any_item(value: object) -> bool:
            items = cast("dict[str, object]", value).get(key) if type(value) is dict else None
            return type(items) is list and any(map(inner, cast("list[object]", items)))

        return any_item

    def under_key(value: object) -> bool:
        if type(value) is not dict:
            return False
        fields = cast("dict[str, object]", value)
        return key in fields and inner(fields[key])

    return under_key


def first_key(sign: str) -> str:
    """Return the first key of the path of a sign."""
    end = min((at for mark in ".[=^:&" if (at := sign.find(mark)) >= 0), default=len(sign))
    return sign[:end]


def _modules_of(value: object) -> Iterator[str]:
    """Yield the modules of an object: its own, those of the items of a list, and of the messages that it holds."""
    for each in (value, _messages_of(value), _messages_of(_field(value, "values"))):
        for item in cast("list[object]", each) if isinstance(each, (list, tuple)) else (each,):
            if (module := type(item).__module__) != "builtins":
                yield module


def _messages_of(value: object) -> object:
    return _field(value, "messages")


def _field(value: object, name: str) -> object:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).get(name)
    return cast("object", getattr(value, name, None))
