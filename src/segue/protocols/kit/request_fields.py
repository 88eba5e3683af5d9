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
from functools import lru_cache
from pkgutil import get_data
from typing import Final, cast, final

from msgspec.structs import replace

from segue.errors import Path
from segue.protocols.kit.capabilities import Places, check_capabilities, merge
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.codec import Endpoint, JsonObject, Violation
from segue.protocols.kit.json_values import Block
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
        _FIELDS[package] = self

    def add(self, found: Iterable[Violation], body: JsonObject, endpoint: Endpoint) -> list[Violation]:
        """Give what was found, and what capabilities and limits show besides, in places without a violation."""
        limits = self._limits.check(body, endpoint)
        return merge(merge(found, check_capabilities(body, self._places, endpoint)), limits)

    def compare(self, body: JsonObject, endpoint: Endpoint) -> list[Violation]:
        """Compare a body with the fields."""
        rules = endpoint.rules
        if rules.body_fields == "unknown":
            return []
        table = _read(self._package)
        if rules.body_fields == "keys":
            known = read_parameters(self._package)() | rules.added_fields
            return [_unknown_key((), key) for key in body if key not in known and body[key] is not None]
        walk = _Walk(cast("Mapping[str, Block]", table["objects"]), self._rename, endpoint, loose=self._loose)
        found = walk.field(body, table["body"], ())
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
    """Give the package and version that the fields of a protocol were read from."""
    return str(_read(_package_of(protocol))["source"])


@lru_cache
def _read(package: str) -> Block:
    # pkgutil, because importing importlib.resources takes longer than reading the file.
    return json.loads(get_data(package, "request_fields.json") or b"")


def read_parameters(package: str | None) -> Callable[[], frozenset[str]]:
    """Give a function that reads the keys of a body: they are the arguments of the SDK that the fields come from."""

    def parameters() -> frozenset[str]:
        table = _read(package or "")
        body = cast("Mapping[str, Block]", table["objects"])[str(table["body"]).removeprefix("#")]
        return frozenset(cast("Block", body["fields"]))

    return parameters


class _Walk:
    """Compares values with fields."""

    def __init__(
        self, objects: Mapping[str, Block], rename: Callable[[str], str] | None, endpoint: Endpoint, *, loose: bool
    ) -> None:
        self.objects = objects
        self.rename = rename
        self.rules = endpoint.rules
        self.provider = endpoint.model.provider
        self.loose = loose

    def field(self, value: object, field: object, path: Path) -> list[Violation]:
        """Compare one value; null is the same as absent."""
        if value is None or field == "any":
            return []
        if isinstance(field, dict) and (_BOUNDS & cast("Block", field).keys()):
            return self.bounded(value, cast("Block", field), path)
        if isinstance(field, str) and field[0] == "#":
            return self.object(value, field[1:], path)
        if isinstance(field, dict):
            given = cast("Block", field)
            if "union" in given:
                return self.union(value, cast("list[object]", given["union"]), path)
            if "map" in given:
                if not isinstance(value, Mapping):
                    return _wrong(path, "an object", value)
                found: list[Violation] = []
                for key, inner in cast("Block", value).items():
                    found += self.field(key, given.get("keys", "any"), (*path, key))
                    found += self.field(inner, given["map"], (*path, key))
                return found
            if "list" in given:
                if not isinstance(value, list | tuple):
                    return self.field(value, given["list"], path) if self.loose else _wrong(path, "a list", value)
                items = enumerate(cast("list[object]", value))
                return [one for index, item in items for one in self.field(item, given["list"], (*path, index))]
            return self.enum(value, cast("list[object]", given["enum"]), path)
        return [] if self.is_of(value, cast("str", field)) else _wrong(path, _NAMES[cast("str", field)], value)

    def bounded(self, value: object, field: Block, path: Path) -> list[Violation]:
        """Compare one value with a type that has limits: `is` names a plain type, others are as without them."""
        kind = field.get("is") or {key: inner for key, inner in field.items() if key not in _BOUNDS}
        if found := self.field(value, kind, path):
            return found
        least, most = cast("float | None", field.get("min")), cast("float | None", field.get("max"))
        limit = Limit("", "", least=least, most=most, pattern=cast("str", field.get("pattern", "")))
        return list(check_bounds(limit, value, path))

    def is_of(self, value: object, kind: str) -> bool:
        """Whether a value has a plain type."""
        match kind:
            case "string":
                return isinstance(value, str)
            case "boolean":
                return isinstance(value, bool)
            case "object":
                return isinstance(value, Mapping)
            case _:
                if self.loose and isinstance(value, str):
                    return True
                whole = kind == "integer" and isinstance(value, float) and not value.is_integer()
                return isinstance(value, int | float) and not isinstance(value, bool) and not whole

    def enum(self, value: object, allowed: list[object], path: Path) -> list[Violation]:
        if value in allowed or not isinstance(value, str | int | float):
            return [] if value in allowed else _wrong(path, "one of " + _listed(allowed), value)
        if self.loose and (not isinstance(value, str) or value.upper() in [str(one).upper() for one in allowed]):
            return []
        return [_unknown_value(path, value, allowed)]

    def union(self, value: object, members: list[object], path: Path) -> list[Violation]:
        """Compare with the member that fits best; an object with the one that its `type` or `role` names."""
        if isinstance(value, Mapping):
            if "object" in members:
                return []
            names = [member[1:] for member in members if isinstance(member, str) and member[0] == "#"]
            if names:
                return self.one_of(cast("Block", value), names, path)
        tried = [
            self.field(cast("object", value), member, path)
            for member in members
            if isinstance(value, Mapping) or not (isinstance(member, str) and member[0] == "#")
        ]
        if not tried:
            return _wrong(path, "an object", cast("object", value))
        return min(tried, key=lambda found: (len(found), -max((len(one.path) for one in found), default=0)))

    def one_of(self, value: Block, names: list[str], path: Path) -> list[Violation]:
        for mark in _MARKS:
            given = value.get(mark)
            if not isinstance(given, str):
                continue
            allowed = {name: self.values_of(name, mark) for name in names}
            fitting = [name for name, values in allowed.items() if values is None or given in values]
            if not any(values is None or values for values in allowed.values()):
                continue  # none of them has the key, so it is an unknown one
            if not fitting:
                every = [one for values in allowed.values() for one in values or ()]
                found = _unknown_value((*path, mark), given, list(dict.fromkeys(every)))
                return [found]
            names = fitting
        return min((self.object(value, name, path) for name in names), key=len)

    def values_of(self, name: str, key: str) -> list[object] | None:
        """Give the values that a key of an object can have; none if it has no such key, None for any value."""
        field = cast("Block", self.objects[name]["fields"]).get(key)
        if field is None:
            return []
        return (
            cast("list[object]", cast("Block", field)["enum"]) if isinstance(field, dict) and "enum" in field else None
        )

    def object(self, value: object, name: str, path: Path) -> list[Violation]:
        if not isinstance(value, Mapping):
            return _wrong(path, "an object", value)
        described = self.objects[name]
        fields = cast("Block", described["fields"])
        absent = cast("Mapping[str, list[str]]", described.get("absent", {})).get(self.provider, ())
        found: list[Violation] = []
        seen: set[str] = set()
        for key, inner in cast("Block", value).items():
            known = key if self.rename is None or key in fields else self.rename(key)
            if inner is not None:
                seen.add(known)
            if known in fields and known not in absent and f"{name}.{known}" not in self.rules.refused_fields:
                faults = self.field(inner, fields[known], (*path, key))
                is_taken = bool(faults) and isinstance(inner, str) and self.is_added(name, f"{key}={inner}", path)
                found += [] if is_taken else faults
            elif inner is not None and self.is_refused(name, key, known in fields, path):
                found.append(_unknown_key(path, key))
        choice = cast("list[str]", described.get("one", ()))
        given = [key for key in choice if key in seen]
        if len(given) > 1 or (choice and not given and len(choice) == len(fields)):
            listed = " and ".join(f"`{key}`" for key in given) if given else "none"
            message = f"one of {_listed(cast('list[object]', choice))} may be set here, not {listed}; change it"
            found.append(Violation(CheckCode.FIELDS_EXCLUSIVE, (*path, given[1]) if given else path, message))
        for key in cast("list[str]", described.get("required", ())):
            if key not in seen:
                found.append(Violation(CheckCode.FIELD_MISSING, (*path, key), f"`{key}` is missing; set it"))
        return found

    def is_refused(self, name: str, key: str, known: bool, path: Path) -> bool:
        """Whether an endpoint refuses a key that the SDK lacks, or (`known`) that it has and the endpoint does not."""
        return known or (self.rules.body_fields == "closed" and not self.is_added(name, key, path) and key != _WEIGHT)

    def is_added(self, name: str, key: str, path: Path) -> bool:
        """Whether an endpoint takes a key, or a `key=value`, that the SDK lacks."""
        added = self.rules.added_fields
        return (not path and key in added) or f"{name}.{key}" in added


def _unknown_key(path: Path, key: str) -> Violation:
    return Violation(CheckCode.FIELD_UNKNOWN, (*path, key), f"`{key}` is not a field here; remove it")


def _wrong(path: Path, expected: str, value: object) -> list[Violation]:
    where = f"`{path[-1]}`" if path and isinstance(path[-1], str) else "this"
    return [Violation(CheckCode.TYPE_WRONG, path, f"{where} has to be {expected}, not {_kind(value)}; change it")]


def _kind(value: object) -> str:
    for kinds, name in (((bool,), "true or false"), ((int, float), "a number"), ((str,), "a string")):
        if isinstance(value, kinds):
            return name
    return "an object" if isinstance(value, Mapping) else "a list"


def _unknown_value(path: Path, value: object, allowed: list[object]) -> Violation:
    return Violation(CheckCode.VALUE_UNKNOWN, path, f"unknown value {value!r}; use one of {_listed(allowed)}")


def _listed(values: list[object]) -> str:
    shown = ", ".join(str(value) for value in values[:_SHOWN])
    return f"{shown} and {len(values) - _SHOWN} more" if len(values) > _SHOWN else shown
