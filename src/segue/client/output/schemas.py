"""JSON schemas of Python types, and values of these types from JSON.

msgspec knows dataclasses, TypedDicts, Structs, enums and the types of the standard library. A part of a type that it
does not know is replaced by a class whose schema and values are made here: a union of classes, a class with such a
field, a NamedTuple, values of several kinds. Classes of pydantic are recognised by their methods: segue does not
import it.

Facts:
- Strict mode of OpenAI requires `additionalProperties: false` in every object. (structured outputs, read 2026-11-15)
- msgspec puts every class into the definitions, also the outermost one; some providers want its keys at the top.
                                                                                            (msgspec 0.22, tried)
- It reads no union of two classes without a tag and no enum with values of several kinds, describes a NamedTuple as a
  list, which tells a model nothing about the fields, makes dataclasses of pydantic without their validators, and reads
  the text "null" as None where texts may be other types.                                   (msgspec 0.22, tried)
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    NamedTuple,
    NotRequired,
    Protocol,
    Required,
    Union,
    cast,
    final,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)

import msgspec

from segue.errors import SettingsError

_REFERENCE: Final = "#/$defs/"
_PLACES: Final = re.compile(r" - at `\$([^`]*)`")


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
    definitions = _Definitions({}, {})
    try:
        schema = _describe(_Rewriter().rewrite(type_), definitions)
    except (TypeError, NotImplementedError, NameError, AttributeError, RuntimeError) as error:  # pydantic raises some
        reason = str(error).strip().rpartition("\n")[2]
        raise SettingsError(f"{_name(type_)} has no JSON schema: {reason}; {_advise(type_)}", key="type") from error
    schemas = definitions.schemas
    name = str(schema.get("$ref", "")).removeprefix(_REFERENCE)
    if name in schemas and not _refers(schemas, _REFERENCE + name):
        schema = schemas.pop(name)
    closed = _close(schema)
    return closed | ({"$defs": _close(schemas)} if schemas else {})


def _advise(given: object) -> str:
    if isinstance(given, Mapping):
        return "pass a schema as Options(output_schema=...)"
    if isinstance(given, list):
        return f"for a list of them, use list[{', '.join(map(_name, cast('list[object]', given)))}]"
    class_ = type(given)
    if hasattr(class_, "model_json_schema") or _has_fields(class_):
        return f"use the type {class_.__name__}, not a value of it"
    return "use a dataclass, a TypedDict, a msgspec Struct, a model of pydantic, or types of the standard library"


def read_value(value: object, type_: Any) -> Any:  # noqa: ANN401 - as above
    """Make a value of a type from JSON; numbers in strings are accepted, because models send them.

    Raises:
        ValueError: the value does not fit; the message names the place.
    """
    form = _Rewriter().rewrite(type_)
    try:
        return _convert(value, form, strict=True)
    except ValueError:
        pass
    try:
        return _convert(value, form, strict=False)
    except ValueError as error:
        # Each level has added its place after that of the level below.
        text, places = str(error), _PLACES.findall(str(error))
        place = f" - at `${''.join(reversed(places))}`" if places else ""
        raise ValueError(_PLACES.sub("", text) + place) from error


def write_value(value: object) -> str:
    """Write a value as JSON; what JSON does not know is written as its text."""
    return msgspec.json.encode(value, enc_hook=_dump).decode()


def _convert(value: object, form: Any, *, strict: bool) -> Any:  # noqa: ANN401 - as above
    def make(type_: type[object], inner: object) -> object:
        if type_ is object:
            return inner
        if issubclass(type_, _StandIn):
            return type_.part.read(inner, strict=strict)
        if isinstance(type_, _Validating):
            return _validate(type_.model_validate, inner)
        raise NotImplementedError(f"{type_.__name__} cannot be read from JSON")

    try:
        return msgspec.convert(value, form, strict=strict, dec_hook=make)
    except AssertionError as error:  # of a `__post_init__`
        raise ValueError(str(error) or "an assertion of the type failed") from error


def _validate(validate: Any, value: object) -> object:  # noqa: ANN401 - a function of pydantic
    try:
        return validate(value)
    except ValueError as error:
        inner = getattr(error, "errors", None)
        steps = cast("Sequence[Mapping[str, Any]]", inner())[0].get("loc", ()) if callable(inner) else ()
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
        raise ValueError(f"{error} - at `${place}`" if place else str(error)) from error


def _dump(value: object) -> object:
    dump = getattr(value, "model_dump", None)  # pydantic
    return dump(mode="json") if callable(dump) else str(value)


# -- schemas -----------------------------------------------------------------------------------------------------------


class _Definitions(NamedTuple):
    """The schemas of classes by their names, and the names of those that are described here."""

    schemas: dict[str, Any]
    names: dict[_Record, str]

    def free_name(self, name: str) -> str:
        """Return a name like this one that no class has."""
        names = (f"{name}_{number}" if number else name for number in range(len(self.schemas) + 1))
        return next(each for each in names if each not in self.schemas)


def _describe(form: Any, definitions: _Definitions) -> dict[str, Any]:  # noqa: ANN401 - a type form
    def describe(unknown: Any) -> dict[str, Any]:  # noqa: ANN401 - any class
        if unknown is object:
            return {"description": "any value"}  # msgspec takes no empty schema
        if isinstance(unknown, type) and issubclass(unknown, _StandIn):
            return unknown.part.describe(definitions)
        if not (isinstance(unknown, type) and isinstance(unknown, _Validating)):
            raise NotImplementedError
        return _without_definitions(unknown.model_json_schema(), definitions)

    (schema,), own = msgspec.json.schema_components((form,), schema_hook=describe, ref_template=_REFERENCE + "{name}")
    return _without_definitions({**schema, "$defs": own}, definitions)


def _without_definitions(schema: dict[str, Any], definitions: _Definitions) -> dict[str, Any]:
    """Move the definitions of a schema to the others; classes of the same name get different ones."""
    own, known = cast("dict[str, object]", schema.pop("$defs", {})), definitions.schemas
    names = {name: name if known.get(name, each) == each else definitions.free_name(name) for name, each in own.items()}
    known.update({names[name]: _renamed(each, names) for name, each in own.items()})
    return _renamed(schema, names)


def _renamed(schema: Any, names: Mapping[str, str]) -> Any:  # noqa: ANN401 - JSON
    if isinstance(schema, list):
        return [_renamed(each, names) for each in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    given = {key: _renamed(value, names) for key, value in cast("dict[str, object]", schema).items()}
    name = str(given.get("$ref", "")).removeprefix(_REFERENCE)
    return given | {"$ref": _REFERENCE + names[name]} if name in names else given


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


def _text_of(class_: type) -> dict[str, str]:
    """Return what the author of a class wrote about it; dataclasses and NamedTuples write their fields themselves."""
    text = class_.__doc__
    return {"description": inspect.cleandoc(text)} if text and not text.startswith(f"{class_.__name__}(") else {}


# -- what msgspec does not know ----------------------------------------------------------------------------------------


class _Part(Protocol):
    def describe(self, definitions: _Definitions) -> dict[str, Any]: ...

    def read(self, value: object, *, strict: bool) -> object: ...


class _Anything(type):
    """Lets msgspec take every value for an instance: what a part has read is checked."""

    def __instancecheck__(cls, instance: object) -> bool:
        return True


class _StandIn(metaclass=_Anything):
    """The base of classes in the places of parts of a type."""

    part: ClassVar[_Part]


def _stand_in(part: _Part) -> type[_StandIn]:
    return cast("type[_StandIn]", _Anything("StandIn", (_StandIn,), {"part": part}))


@final
class _Union:
    """Several types: the first one that a value fits is meant, with the fewest fields that it does not have."""

    def __init__(self, members: Sequence[Any]) -> None:
        self._members = members

    def describe(self, definitions: _Definitions) -> dict[str, Any]:
        return {"anyOf": [_describe(each, definitions) for each in self._members]}

    def read(self, value: object, *, strict: bool) -> object:
        found: list[tuple[int, object]] = []
        reasons: list[str] = []
        for member in self._members:
            try:
                made = _convert(value, member, strict=strict)
            except ValueError as error:
                reasons.append(_PLACES.sub(r" in $\1", str(error)))
            else:
                found.append((_count_unknown(value, member), made))
        if not found:
            raise ValueError("; or ".join(dict.fromkeys(reasons)))
        return min(found, key=lambda each: each[0])[1]


def _count_unknown(value: object, form: Any) -> int:  # noqa: ANN401 - a type form
    if not isinstance(value, Mapping):
        return 0
    definitions = _Definitions({}, {})
    schema = _describe(form, definitions)
    schema = definitions.schemas.get(str(schema.get("$ref", "")).removeprefix(_REFERENCE), schema)
    known = schema.get("properties")
    return 0 if known is None else len(cast("Mapping[str, object]", value).keys() - known.keys())


@final
class _Values:
    """Single values: of an enum, or of a Literal."""

    def __init__(self, values: Mapping[tuple[type, object], object], texts: Mapping[str, str]) -> None:
        self._values = values
        self._texts = texts

    def describe(self, definitions: _Definitions) -> dict[str, Any]:
        del definitions
        return {**self._texts, "enum": [value for _, value in self._values]}

    def read(self, value: object, *, strict: bool) -> object:
        del strict
        key = (type(value), value)
        if not isinstance(value, (str, int, float, type(None))) or key not in self._values:
            raise ValueError(f"Invalid enum value {msgspec.json.encode(value).decode()}")
        return self._values[key]


def _find_values(form: Any) -> _Values | None:  # noqa: ANN401 - a type form
    """Find the values of an enum or a Literal; None if it is neither, or JSON has no such values."""
    texts: Mapping[str, str] = {}
    if isinstance(form, type) and issubclass(form, Enum):
        members: list[object] = list(form)
        texts = _text_of(form)
    elif get_origin(form) is Literal:
        members = list(get_args(form))
    else:
        return None
    values: dict[tuple[type[object], object], object] = {}
    for member in members:
        value: object = member.value if isinstance(member, Enum) else member
        values[type(value), value] = member
    return _Values(values, texts) if all(kind in (str, int, float, bool, type(None)) for kind, _ in values) else None


@final
class _Validated:
    """A dataclass of pydantic, with its validators."""

    def __init__(self, class_: type) -> None:
        # pydantic is imported: it has made the class.
        self._adapter: Any = sys.modules["pydantic"].TypeAdapter(class_)

    def describe(self, definitions: _Definitions) -> dict[str, Any]:
        return _without_definitions(self._adapter.json_schema(), definitions)

    def read(self, value: object, *, strict: bool) -> object:
        del strict
        return _validate(self._adapter.validate_python, value)


class _Field(NamedTuple):
    name: str
    key: str
    form: Any
    is_required: bool


@final
class _Record:
    """A class with fields."""

    def __init__(self, class_: Any, arguments: tuple[Any, ...], rewriter: _Rewriter) -> None:  # noqa: ANN401 - a class
        self._class = class_
        self._arguments = arguments
        self._rewriter = rewriter
        self._known: tuple[_Field, ...] | None = None
        self._is_tuple = issubclass(class_, tuple)
        config = class_.__struct_config__ if issubclass(class_, msgspec.Struct) else None
        self._tag: dict[str, object] = {}
        if config is not None and config.tag_field is not None:
            self._tag[config.tag_field] = config.tag
        self._is_closed = self._is_tuple or (config is not None and config.forbid_unknown_fields)

    @property
    def fields(self) -> tuple[_Field, ...]:
        """The fields; they are looked up late, because they may have the class itself."""
        if self._known is None:
            self._known = tuple(self._find_fields())
        return self._known

    def _find_fields(self) -> Iterator[_Field]:
        class_, hints = self._class, get_type_hints(self._class, include_extras=True)
        variables: dict[Any, Any] = dict(zip(getattr(class_, "__parameters__", ()), self._arguments, strict=False))
        keys = {each.name: each.encode_name for each in _struct_fields(class_)}
        for name, is_required in _find_names(class_, hints):
            hint: Any = getattr(hints[name], "type", hints[name])  # of an InitVar
            parameters = cast("tuple[Any, ...]", () if hint in variables else getattr(hint, "__parameters__", ()))
            filled = hint[tuple(variables.get(each, Any) for each in parameters)] if parameters else hint
            form = self._rewriter.rewrite(variables.get(filled, filled))
            yield _Field(name, keys.get(name, name), form, is_required)

    def describe(self, definitions: _Definitions) -> dict[str, Any]:
        name = definitions.names.get(self)
        if name is None:
            name = definitions.free_name(self._class.__name__)
            definitions.names[self] = name
            definitions.schemas[name] = {}  # its fields may refer to it
            tag = {key: {"enum": [value]} for key, value in self._tag.items()}
            definitions.schemas[name] = {
                "title": self._class.__name__,
                **_text_of(self._class),
                "type": "object",
                "properties": tag | {each.key: _describe(each.form, definitions) for each in self.fields},
                "required": [*tag, *(each.key for each in self.fields if each.is_required)],
            }
        return {"$ref": _REFERENCE + name}

    def read(self, value: object, *, strict: bool) -> object:
        if self._is_tuple and isinstance(value, list):
            value = dict(zip([each.key for each in self.fields], cast("list[object]", value), strict=False))
        given = cast("dict[str, object]", msgspec.convert(value, dict[str, Any]))
        if unknown := sorted(given.keys() - {each.key for each in self.fields} - self._tag.keys()) * self._is_closed:
            raise ValueError(f"Object contains unknown field `{unknown[0]}`")
        for key, tag in self._tag.items():
            if given.get(key, tag) != tag:
                raise ValueError(f"Invalid value {given[key]!r} - at `$.{key}`")
        values: dict[str, object] = {}
        for field in self.fields:
            if field.key in given:
                try:
                    values[field.name] = _convert(given[field.key], field.form, strict=strict)
                except ValueError as error:
                    raise ValueError(f"{error} - at `$.{field.key}`") from error
            elif field.is_required:
                raise ValueError(f"Object missing required field `{field.key}`")
        return self._class(**values)


def _struct_fields(class_: type) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(class_) if issubclass(class_, msgspec.Struct) else ()


def _find_names(class_: Any, hints: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:  # noqa: ANN401 - a class
    """Yield the names of fields, and whether they are required."""
    if hasattr(class_, "__required_keys__"):
        for name, hint in hints.items():
            origin = get_origin(hint)  # the class itself does not know it where annotations are texts
            is_required = origin is Required or (origin is not NotRequired and name in class_.__required_keys__)
            yield name, is_required
        return
    for parameter in inspect.signature(class_).parameters.values():
        yield parameter.name, parameter.default is parameter.empty


def _has_fields(class_: Any) -> bool:  # noqa: ANN401 - a type form
    if not inspect.isclass(class_):
        return False
    names = ("_fields", "__required_keys__", "__dataclass_fields__", "__struct_fields__")
    return any(hasattr(cast("object", class_), name) for name in names)


@final
class _Rewriter:
    """Replaces the parts of a type that msgspec does not know."""

    def __init__(self) -> None:
        self._records: dict[object, type[_StandIn]] = {}

    def rewrite(self, form: Any) -> Any:  # noqa: ANN401 - a type form
        """Return the form itself if msgspec knows all of it; what nobody knows stays, for msgspec to name."""
        if _is_known(form):
            return form
        origin, arguments = get_origin(form), get_args(form)
        inner = getattr(form, "__supertype__", None) or getattr(form, "__value__", None)  # NewType, TypeAliasType
        values = _find_values(form)
        if inner is not None:
            return self.rewrite(inner)
        if values is not None:
            return _stand_in(values)
        if origin in (Union, UnionType):
            members = [self.rewrite(each) for each in arguments]
            union: Any = Union[tuple(members)]  # noqa: UP007 - of a tuple
            return union if _is_known(union) else _stand_in(_Union(members))
        if origin is Annotated:
            return Annotated[(self.rewrite(arguments[0]), *arguments[1:])]
        if origin in (Required, NotRequired, Final):
            return self.rewrite(arguments[0])
        if hasattr(form, "__pydantic_validator__"):
            return _stand_in(_Validated(form))
        if _has_fields(origin or form):
            key = (origin or form, arguments)
            if key not in self._records:
                self._records[key] = _stand_in(_Record(*key, self))
            return self._records[key]
        if origin is None or not arguments:
            return form
        return origin[tuple(each if each is ... else self.rewrite(each) for each in arguments)]


def _is_known(form: Any) -> bool:  # noqa: ANN401 - a type form
    try:
        info = msgspec.inspect.type_info(form)
    except (TypeError, NameError, AttributeError, RuntimeError):
        return False
    return not _has_unknown(info, set())


def _has_unknown(info: object, seen: set[int]) -> bool:
    if isinstance(info, (list, tuple)):
        return any(_has_unknown(each, seen) for each in cast("Sequence[object]", info))
    if not isinstance(info, (msgspec.inspect.Type, msgspec.inspect.Field)) or id(info) in seen:
        return False
    seen.add(id(info))
    if isinstance(info, msgspec.inspect.NamedTupleType):
        return True
    if isinstance(info, msgspec.inspect.DataclassType) and hasattr(info.cls, "__pydantic_validator__"):
        return True
    return any(_has_unknown(getattr(info, name), seen) for name in info.__struct_fields__)
