"""JSON schemas of Python types, and values of these types from JSON.

msgspec knows dataclasses, TypedDicts, NamedTuples, Structs, enums and the types of the standard library. Classes of
pydantic are recognised by their methods: segue does not import it.

Facts:
- Strict mode of OpenAI requires `additionalProperties: false` in every object. (structured outputs, read 2026-11-15)
- msgspec puts every class into the definitions, also the outermost one; some providers want its keys at the top.
                                                                                            (msgspec 0.22, tried)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol, cast, runtime_checkable

import msgspec

from segue.errors import SettingsError

_REFERENCE: Final = "#/$defs/"


@runtime_checkable
class _Validating(Protocol):
    """A class of pydantic; only the class itself is used."""

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]: ...

    @classmethod
    def model_validate(cls, obj: object) -> object: ...


def json_schema(type_: Any) -> dict[str, Any]:  # noqa: ANN401 - a type form, such as `list[Trip] | None`
    """Return the JSON schema of a type, for `Options(output_schema=...)`: every object is closed.

    The type is a dataclass, a TypedDict, a NamedTuple, a msgspec Struct, a model of pydantic, or any type that is made
    of them.

    Raises:
        SettingsError: a part of the type has no JSON schema.
    """
    definitions: dict[str, Any] = {}

    def describe(unknown: Any) -> dict[str, Any]:  # noqa: ANN401 - any class
        if unknown is object:
            return {"description": "any value"}  # msgspec takes no empty schema
        if not (isinstance(unknown, type) and isinstance(unknown, _Validating)):
            raise NotImplementedError
        schema = unknown.model_json_schema()
        definitions.update(schema.pop("$defs", {}))
        return schema

    try:
        (schema,), own = msgspec.json.schema_components((type_,), schema_hook=describe, ref_template="#/$defs/{name}")
    except (TypeError, NotImplementedError, NameError) as error:
        reason = str(error).strip().rpartition("\n")[2]
        raise SettingsError(
            f"{_name(type_)} has no JSON schema: {reason}; use a dataclass, a TypedDict, a msgspec Struct, a model of"
            " pydantic, or types of the standard library",
            key="type",
        ) from error
    definitions |= own
    name = str(schema.get("$ref", "")).removeprefix(_REFERENCE)
    if name in definitions and not _refers(definitions, _REFERENCE + name):
        schema = definitions.pop(name)
    closed = _close(schema)
    return closed | ({"$defs": _close(definitions)} if definitions else {})


def read_value(value: object, type_: Any) -> Any:  # noqa: ANN401 - as above
    """Make a value of a type from JSON; numbers in strings are accepted, because models send them.

    Raises:
        ValueError: the value does not fit; the message names the place.
    """
    return msgspec.convert(value, type_, strict=False, dec_hook=_validate)


def write_value(value: object) -> str:
    """Write a value as JSON; what JSON does not know is written as its text."""
    return msgspec.json.encode(value, enc_hook=_dump).decode()


def _validate(type_: type, value: object) -> object:
    if type_ is object:
        return value
    if isinstance(type_, _Validating):
        return type_.model_validate(value)
    raise NotImplementedError(f"{_name(type_)} cannot be read from JSON")


def _dump(value: object) -> object:
    dump = getattr(value, "model_dump", None)  # pydantic
    return dump(mode="json") if callable(dump) else str(value)


def _close(schema: object) -> Any:  # noqa: ANN401 - JSON
    """Add `additionalProperties: false` to objects with properties that do not say whether they may have more."""
    if isinstance(schema, list):
        return [_close(each) for each in cast("list[object]", schema)]
    if not isinstance(schema, Mapping):
        return schema
    given = {key: _close(value) for key, value in cast("Mapping[str, object]", schema).items()}
    if given.get("type") == "object" and "properties" in given:
        given.setdefault("additionalProperties", False)
    return given


def _refers(schema: object, reference: str) -> bool:
    """Whether a schema contains a reference: then the definition has to stay where it is."""
    if isinstance(schema, list):
        return any(_refers(each, reference) for each in cast("list[object]", schema))
    if not isinstance(schema, Mapping):
        return False
    given = cast("Mapping[str, object]", schema)
    return given.get("$ref") == reference or any(_refers(each, reference) for each in given.values())


def _name(type_: object) -> str:
    return getattr(type_, "__name__", None) or str(type_)
