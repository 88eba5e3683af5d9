r"""Compare a request body with the fields of its wire: unknown keys and values, wrong types, what is missing.

The fields are those of the official SDKs, in the file `request_fields.json` of each protocol, which
`scripts/write_request_fields.py` writes. `Rules.body_fields` says whether an endpoint was seen to refuse what is not
among them, with the source:

- OpenAI: "Unknown parameter: 'messages[0].foo'.", "Unrecognized request argument supplied: foo", "Invalid type for
  'x': expected a string, but got an object instead.", "Invalid value: 'x'. Supported values are: ...", "Missing
  required parameter: 'tools[0].type'.".                   (spring-ai #2969, 2025-05-02; reported 400s, 2025 and 2026)
- Anthropic: "tools.0.foo: Extra inputs are not permitted", "Input should be a valid string", "Field required".
                                                                            (claude-code #4378; anthropic 2.8.0)
- Mistral: 422, "extra_forbidden", "Extra inputs are not permitted".          (eca #231, zeroclaw #2693, 2026-03-04)
- Google: "Unknown name "$schema" at 'tools[0]...': Cannot find field.", "Invalid value at '...'".
                                                                    (CLIProxyAPI #97, 2025-10-07; protobuf's mapping)
- Groq: "property 'store' is unsupported".                           (chatbot #21, 2024-12-14; gptme #375, 2025-01-04)

A null means the same as an absent key. Only `segue.check` compares bodies with fields: a key or a value that is not
among them may be newer than the SDK, so projection does not remove it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from pkgutil import get_data
from typing import Final, NamedTuple, TypeAlias, cast, final

from msgspec.structs import replace

from segue.errors import Path
from segue.protocols.kit.capabilities import Places, check_capabilities, merge
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.codec import Endpoint, JsonObject, Violation
from segue.protocols.kit.json_values import Block, is_list, is_object, list_of
from segue.protocols.kit.limits import Limit, Limits, check_bounds

_WEIGHT: Final = "weight"
"""A key of messages in training lines, which are checked as requests."""
_MARKS: Final = ("type", "role")
"""Keys that name the kind of an object among several."""
_BOUNDS: Final = frozenset({"is", "min", "max", "pattern"})
"""Keys of a type that has limits."""
_SHOWN: Final = 8
"""How many values a message lists."""
_NAMES: Final[Mapping[str, str]] = {
    "string": "a string",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "object": "an object",
}


_PLAIN: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "boolean": (bool,),
    "object": (dict, Mapping),
    "any": (object,),
    **dict.fromkeys(("number", "integer"), (int, float)),
}
_LONGEST: Final = 200
"""Characters by which a kind is looked up; no kind has as many."""
_Compare: TypeAlias = Callable[[object, object], list[Violation]]


class _Scope(NamedTuple):
    """What the fields of a protocol are at one endpoint."""

    provider: str
    body_fields: str
    added: frozenset[str]
    refused: frozenset[str]


@final
class RequestFields:
    """The fields of the request bodies of one protocol; `package` is its folder, `limits` are the rows of its values.

    `rename` gives the name of a key in the file, where a wire has two names for it. `loose`: a number may be a string,
    a list of one the item alone, and the values of an enumeration are compared without case (protobuf's JSON mapping).
    """

    def __init__(
        self,
        package: str,
        places: Places,
        *,
        limits: Limits | None = None,
        rename: Callable[[str], str] | None = None,
        loose: bool = False,
    ) -> None:
        self._package = package
        self._places = places
        self._limits = limits or Limits()
        self._rename = rename
        self._loose = loose
        self._compiled = lru_cache(maxsize=32)(self._compile)
        _FIELDS[package] = self

    def add(self, found: Iterable[Violation], body: JsonObject, endpoint: Endpoint) -> list[Violation]:
        """Return what was found, and what capabilities and limits show in addition, in places without a violation."""
        limits = self._limits.check(body, endpoint)
        return merge(merge(found, check_capabilities(body, self._places, endpoint)), limits)

    def _compile(self, scope: _Scope) -> _Compare:
        table = _read(self._package)
        return _Compiler(table, self._rename, scope, loose=self._loose).of(table["body"])

    def compare(self, body: JsonObject, endpoint: Endpoint) -> list[Violation]:
        """Compare a body with the fields."""
        rules = endpoint.rules
        if rules.body_fields == "unknown":
            return []
        if rules.body_fields == "keys":
            known = read_parameters(self._package)() | rules.added_fields
            return [_unknown_key(key) for key in body if key not in known and body[key] is not None]
        scope = _Scope(endpoint.model.provider, rules.body_fields, rules.added_fields, rules.refused_fields)
        found = self._compiled(scope)(body, None)
        if rules.tool_types is None:
            return found
        return [one for one in found if not (one.path[0] == "tools" and one.path[2:] == ("type",))]


_FIELDS: Final[dict[str, RequestFields]] = {}
"""The fields of each protocol, by its folder."""


def check_fields(body: JsonObject, endpoint: Endpoint) -> list[Violation]:
    """Compare a body with the fields of its protocol; finds nothing where they, or the endpoint, are unknown."""
    for protocol in endpoint.rules.values("body_protocol"):
        return check_part(body, protocol, endpoint, ())
    fields = _FIELDS.get(_package_of(endpoint.model.protocol))
    return [] if fields is None else fields.compare(body, endpoint)


def check_part(body: JsonObject, protocol: str, endpoint: Endpoint, path: Path) -> list[Violation]:
    """Compare a body, or the part of one at a path, with the fields of another protocol."""
    fields = _FIELDS.get(_package_of(protocol)) or RequestFields(_package_of(protocol), Places())
    return [replace(one, path=(*path, *one.path)) for one in fields.compare(body, endpoint)]


def _package_of(protocol: str) -> str:
    return f"segue.protocols.{protocol.replace('-', '_')}"


def source_of(protocol: str) -> str:
    """Return the package and version that the fields of a protocol were read from."""
    return str(_read(_package_of(protocol))["source"])


@lru_cache
def _read(package: str) -> Block:
    # pkgutil, because importing importlib.resources takes longer than reading the file.
    return json.loads(get_data(package, "request_fields.json") or b"")


def read_parameters(package: str | None) -> Callable[[], frozenset[str]]:
    """Return a function that reads the keys of a body: they are the arguments of the SDK that the fields come from."""

    def parameters() -> frozenset[str]:
        table = _read(package or "")
        body = cast("Mapping[str, Block]", table["objects"])[str(table["body"]).removeprefix("#")]
        return frozenset(cast("Block", body["fields"]))

    return parameters


@final
class _Compiler:
    """Makes functions that compare a value with a field, once for many bodies: most bodies have no violation.

    A function gets a value that is not null and its key, None for a body, and returns the violations from the key on.
    """

    def __init__(self, table: Block, rename: Callable[[str], str] | None, scope: _Scope, *, loose: bool) -> None:
        self.objects = cast("Mapping[str, Block]", table["objects"])
        self.body = table["body"]
        self.rename = rename or str
        self.scope = scope
        self.loose = loose
        self.made: dict[str, _Compare] = {}

    def of(self, field: object) -> _Compare:
        """Make the function for a field."""
        if isinstance(field, str):
            return self.named(field[1:]) if field[0] == "#" else self.plain(field)
        given = cast("Block", field)
        if not _BOUNDS.isdisjoint(given):
            return self.bounded(given)
        if "union" in given:
            return self.union(cast("list[object]", given["union"]))
        if "map" in given:
            return self.mapping(self.of(given.get("keys", "any")), self.of(given["map"]))
        return self.many(self.of(given["list"])) if "list" in given else self.enum(cast("list[object]", given["enum"]))

    def plain(self, kind: str) -> _Compare:
        is_number = kind in ("number", "integer")
        types = (*_PLAIN[kind], str) if is_number and self.loose else _PLAIN[kind]

        def compare(value: object, key: object) -> list[Violation]:
            is_cut = kind == "integer" and isinstance(value, float) and not value.is_integer()
            if is_cut or not isinstance(value, types) or (is_number and isinstance(value, bool)):
                return _wrong(key, _NAMES[kind], value)
            return []

        return compare

    def bounded(self, field: Block) -> _Compare:
        """Compare with a type that has limits: `is` names a plain type, others are as without them."""
        inner = self.of(field.get("is") or {key: inner for key, inner in field.items() if key not in _BOUNDS})
        least, most = cast("float | None", field.get("min")), cast("float | None", field.get("max"))
        limit = Limit("", "", least=least, most=most, pattern=cast("str", field.get("pattern", "")))
        return lambda value, key: inner(value, key) or check_bounds(limit, value, (cast("str", key),))

    def mapping(self, keys: _Compare, values: _Compare) -> _Compare:
        def compare(value: object, key: object) -> list[Violation]:
            if not isinstance(value, (dict, Mapping)):
                return _wrong(key, "an object", value)
            found: list[Violation] = []
            for name, inner in cast("Block", value).items():
                found += keys(name, name) + ([] if inner is None else values(inner, name))
            return _below(key, found)

        return compare

    def many(self, items: _Compare) -> _Compare:
        def compare(value: object, key: object) -> list[Violation]:
            if not isinstance(value, list | tuple):
                return items(value, key) if self.loose else _wrong(key, "a list", value)
            given = enumerate(cast("list[object]", value))
            found = [one for index, item in given if item is not None for one in items(item, index)]
            return found and _below(key, found)

        return compare

    def enum(self, allowed: list[object]) -> _Compare:
        capitals = [str(one).upper() for one in allowed] if self.loose else []

        def compare(value: object, key: object) -> list[Violation]:
            if value in allowed:
                return []
            if not isinstance(value, str | int | float):
                return _wrong(key, "one of " + _listed(allowed), value)
            if self.loose and (not isinstance(value, str) or value.upper() in capitals):
                return []
            return [_unknown_value(key, value, allowed)]

        return compare

    def union(self, members: list[object]) -> _Compare:
        """Compare with the member that fits best; an object with the one that its `type` or `role` names."""
        names = tuple(one[1:] for one in members if isinstance(one, str) and one[0] == "#")
        fitting = lru_cache(maxsize=64)(partial(self.fitting, names))
        plain = [self.of(one) for one in members if not (isinstance(one, str) and one[0] == "#")]
        lists = [self.of(one) for one in members if is_object(one) and "list" in one]
        takes_objects = "object" in members

        def compare(value: object, key: object) -> list[Violation]:
            if is_list(value):
                for compare in lists:
                    if not compare(value, key):
                        return []
            is_mapping = type(value) is not str and isinstance(value, (dict, Mapping))
            if is_mapping and takes_objects:
                return []
            if is_mapping and names:
                given = cast("Block", value)
                chosen = fitting(_mark(given.get("type")), _mark(given.get("role")))
                if isinstance(chosen, tuple):
                    found = chosen[0](given, key)
                    return found and min((compare(given, key) for compare in chosen), key=len)
                mark = next(iter(chosen))
                return _below(key, [_unknown_value(mark, given[mark], chosen[mark])])
            tried: list[list[Violation]] = []
            for compare in plain:
                if not (found := compare(cast("object", value), key)):
                    return found
                tried.append(found)
            if not tried:
                return _wrong(key, "an object", cast("object", value))
            return min(tried, key=lambda found: (len(found), -max((len(one.path) for one in found), default=0)))

        return compare

    def fitting(self, names: tuple[str, ...], *given: str | None) -> tuple[_Compare, ...] | dict[str, list[object]]:
        """Choose the objects that a `type` and a `role` name; if none does, give the values of the unknown one."""
        for mark, value in zip(_MARKS, given, strict=True):
            fields = {name: cast("Block", self.objects[name]["fields"]).get(mark) for name in names}
            allowed = {
                name: list_of(field.get("enum")) if is_object(field) and "enum" in field else None
                for name, field in fields.items()
                if field is not None
            }
            if value is None or not allowed:
                continue  # none of them has the key, so it is an unknown one
            names = tuple(name for name, values in allowed.items() if values is None or value in values)
            if not names:
                return {mark: list(dict.fromkeys(one for values in allowed.values() for one in values or ()))}
        return tuple(map(self.named, names))

    def named(self, name: str) -> _Compare:
        if name in self.made:
            return self.made[name]
        described, rename, renames = self.objects[name], self.rename, self.rename is not str
        fields = cast("Block", described["fields"])
        absent = cast("Mapping[str, list[str]]", described.get("absent", {})).get(self.scope.provider, ())
        choice, required = cast("list[str]", described.get("one", ())), cast("list[str]", described.get("required", ()))
        choices, needed = frozenset(choice), frozenset(required)
        members: dict[str, _Compare] = {}
        texts: dict[str, frozenset[object] | None] = {}
        is_closed = self.scope.body_fields == "closed"

        def compare(value: object, key: object) -> list[Violation]:
            if type(value) is not dict and not isinstance(value, Mapping):
                return _wrong(key, "an object", value)
            if not members:  # made when they are first needed: an object may have itself as a member
                known = [one for one in fields if one not in absent and f"{name}.{one}" not in self.scope.refused]
                members.update((one, self.of(fields[one])) for one in known)
                texts.update((one, _texts_of(fields[one])) for one in known)
            given = cast("Block", value)
            found: list[Violation] = []
            has_null = False
            for own, inner in given.items():
                if type(inner) is str and ((allowed := texts.get(own, _NO_TEXT)) is None or inner in allowed):
                    continue
                if inner is None:
                    has_null = True
                    continue
                known = own if own in fields else rename(own)
                if (member := members.get(known)) is not None:
                    faults = member(inner, own)
                    if faults and not (isinstance(inner, str) and self.is_added(name, f"{own}={inner}")):
                        found += faults
                elif known in fields or (is_closed and own != _WEIGHT and not self.is_added(name, own)):
                    found.append(_unknown_key(own))
            is_one = not choice or (len(choices.intersection(given)) == 1 and not renames)
            if has_null or not is_one or not given.keys() >= needed:
                seen = [own if own in fields else rename(own) for own, inner in given.items() if inner is not None]
                set_too = [one for one in choice if one in seen]
                if len(set_too) > 1 or (choice and not set_too and len(choice) == len(fields)):
                    listed = " and ".join(f"`{one}`" for one in set_too) if set_too else "none"
                    message = f"one of {_listed(cast('list[object]', choice))} may be set here, not {listed}; change it"
                    found.append(Violation(CheckCode.FIELDS_EXCLUSIVE, (set_too[1],) if set_too else (), message))
                missing = [one for one in required if one not in seen]
                found += [Violation(CheckCode.FIELD_MISSING, (one,), f"`{one}` is missing; set it") for one in missing]
            return found and _below(key, found)

        self.made[name] = compare
        return compare

    def is_added(self, name: str, key: str) -> bool:
        """Whether an endpoint takes a key, or a `key=value`, that the SDK lacks."""
        added = self.scope.added
        return (f"#{name}" == self.body and key in added) or f"{name}.{key}" in added


def _mark(value: object) -> str | None:
    return value[:_LONGEST] if isinstance(value, str) else None


_NO_TEXT: Final = frozenset[object]()


def _texts_of(field: object) -> frozenset[object] | None:
    """Return the texts that a field takes for sure; None for any text."""
    if field in ("string", "any"):
        return None
    if not is_object(field) or not _BOUNDS.isdisjoint(field):
        return _NO_TEXT
    allowed = frozenset(list_of(field.get("enum")))
    for one in list_of(field.get("union")):
        texts = _texts_of(one)
        if texts is None:
            return None
        allowed |= texts
    return allowed


def _below(key: object, found: list[Violation]) -> list[Violation]:
    """Put a key before the paths of violations."""
    return found if key is None else [replace(one, path=(cast("str", key), *one.path)) for one in found]


def _unknown_key(key: str) -> Violation:
    return Violation(CheckCode.FIELD_UNKNOWN, (key,), f"`{key}` is not a field here; remove it")


def _wrong(key: object, expected: str, value: object) -> list[Violation]:
    where = f"`{key}`" if isinstance(key, str) else "this"
    path = () if key is None else (cast("str", key),)
    return [Violation(CheckCode.TYPE_WRONG, path, f"{where} has to be {expected}, not {_kind(value)}; change it")]


def _kind(value: object) -> str:
    for kinds, name in (((bool,), "true or false"), ((int, float), "a number"), ((str,), "a string")):
        if isinstance(value, kinds):
            return name
    return "an object" if isinstance(value, Mapping) else "a list"


def _unknown_value(key: object, value: object, allowed: list[object]) -> Violation:
    message = f"unknown value {value!r}; use one of {_listed(allowed)}"
    return Violation(CheckCode.VALUE_UNKNOWN, (cast("str", key),), message)


def _listed(values: list[object]) -> str:
    shown = ", ".join(str(value) for value in values[:_SHOWN])
    return f"{shown} and {len(values) - _SHOWN} more" if len(values) > _SHOWN else shown
