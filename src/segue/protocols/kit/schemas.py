"""The output schema in protocols that have a name, a description and `strict` next to it.

Facts:
- The name has letters, digits, `_` and `-`, at most 64 characters; the model sees the name and the description.
                                                          (openai 3.49.0: ResponseFormatJSONSchema, read 2026-11-15)
- Strict mode requires `additionalProperties: false` and all properties in `required`, in every object.
                                                                   (OpenAI documentation: structured outputs, 2026-11)

For other protocols the name and the description become `title` and `description` of the JSON Schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import Extra
from segue.conversation.context import Options
from segue.errors import Path
from segue.models.rule import Place, Rule
from segue.models.rules import Rules
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.codec import JsonObject, Violation
from segue.protocols.kit.json_values import digest, list_of, object_of
from segue.protocols.kit.verbatim import choose, chosen

DEFAULT_NAME: Final = "output"
"""The name of a schema without a title."""
FORM: Final = "schema_form"
"""The name of the choice (`kit.verbatim`) that keeps the name and description of one schema."""
_SCHEMA_KEYS: Final[Mapping[str, str]] = {"name": "title", "description": "description"}
_WITH_FORM: Final = frozenset({"openai-chat", "openai-responses", "mistral-chat", "bedrock-converse"})
"""Protocols with a name and a description next to a schema."""
_WITH_STRICT: Final = _WITH_FORM - {"bedrock-converse"}
"""Those where a schema can be a request only, not a guarantee: `strict` is false."""
_REFUSED: Final = re.compile(r"[^a-zA-Z0-9_-]+")
_LONGEST: Final = 64


def schema_name(schema: JsonObject) -> str:
    """Return the name of a schema: its title, with characters that a name cannot have replaced."""
    title = schema.get("title")
    name = _REFUSED.sub("_", title)[:_LONGEST].strip("_") if isinstance(title, str) else ""
    return name or DEFAULT_NAME


def choose_form(schema: JsonObject, form: JsonObject, *, strict: bool | None = True) -> dict[str, object]:
    """Return the choice that keeps the received name and description of a schema; empty if they are the default.

    It keeps the flag of a strict schema too, if that is not the one that is written by default.
    """
    received: dict[str, object] = {
        key: value for key in _SCHEMA_KEYS if isinstance(value := form.get(key), str) and value
    }
    is_default = "name" not in received or received == {"name": schema_name(schema)}
    if isinstance(flag := form.get("strict"), bool) and flag is not strict:
        received, is_default = {**received, "strict": flag}, False
    return {} if is_default else choose(FORM, digest(schema), received)


def chosen_form(extra: Extra | None, protocol: str, schema: JsonObject) -> JsonObject:
    """Return the name, and the description if there is one, to write next to a schema."""
    if extra is None:
        return {"name": schema_name(schema)}
    received = object_of(chosen(extra, protocol, FORM, digest(schema))) or object_of(extra.get(FORM))
    return {"name": schema_name(schema), **received}


def received_form(extra: Extra | None, protocol: str, schema: JsonObject) -> JsonObject:
    """Return the name and the description that were received with a schema; empty if they are the default."""
    form = chosen_form(extra, protocol, schema)
    return {} if form == {"name": schema_name(schema)} else form


def lost_form(options: Options, source: str, target: str) -> JsonObject:
    """Return the name and description that `copy_form` cannot copy, because the schema has others itself."""
    schema = options.output_schema
    if schema is None or target in _WITH_FORM:
        return {}
    given = received_form(options.extra, source, schema)
    own = {"name": schema_name(schema), "description": schema.get("description")}
    return {
        name: given[name]
        for name, key in _SCHEMA_KEYS.items()
        if name in given and key in schema and given[name] != own[name]
    }


def copy_form(options: Options, source: str, target: str) -> Options:
    """Copy the name and description that a wire has next to a schema to where another wire has them.

    That is the same place for some, and otherwise the `title` and `description` of a schema that has none.
    """
    schema = options.output_schema
    if schema is None:
        return options
    if target in _WITH_FORM:
        form = received_form(options.extra, source, schema)
        if target not in _WITH_STRICT:
            form = {key: value for key, value in form.items() if key != "strict"}
        return replace(options, extra={**(options.extra or {}), FORM: form}) if form else options
    default, given = {"name": schema_name(schema)}, chosen_form(options.extra, source, schema)
    added = {
        key: given[name]
        for name, key in _SCHEMA_KEYS.items()
        if name in given and key not in schema and given[name] != default.get(name)
    }
    return replace(options, output_schema={**schema, **added}) if added else options


def is_closed(schema: object) -> bool:
    """Whether strict mode accepts a schema: every object closed, every property required."""
    if isinstance(schema, list):
        return all(is_closed(inner) for inner in cast("list[object]", schema))
    if not isinstance(schema, Mapping):
        return True
    given = cast("JsonObject", schema)
    properties = given.get("properties")
    if isinstance(properties, Mapping) or given.get("type") == "object":
        names = list(cast("JsonObject", properties)) if isinstance(properties, Mapping) else []
        required = given.get("required")
        listed = {name for name in list_of(required) if isinstance(name, str)}
        if given.get("additionalProperties") is not False or any(name not in listed for name in names):
            return False
    return all(is_closed(inner) for inner in given.values())


def can_be_strict(schema: JsonObject, rules: Rules) -> bool:
    """Whether a target accepts an output schema in strict mode."""
    return is_closed(schema) and not any(find_faults(schema, rules, strict=True, output=True))


# -- what a target refuses ---------------------------------------------------------------------------------------------

NAMES_BELOW: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose value maps names to schemas."""
VALUES_BELOW: Final = frozenset({"const", "default", "enum", "example", "examples", "required", "type"})
"""Keywords whose value is plain JSON, not a schema."""
_TYPED: Final = frozenset({"type", "$ref", "anyOf", "enum", "const", "oneOf", "allOf"})
"""Keywords that say which values a property has."""
_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})


def find_faults(schema: JsonObject, rules: Rules, *, strict: bool, output: bool = False) -> Iterator[Violation]:
    """Find what a target refuses in the schema of a tool, or (`output`) of the answer.

    - No JSON schema: "'str' is not valid under any of the given schemas", "array schema missing items" (OpenAI);
      "JSON schema is invalid. It must match JSON Schema draft 2020-12" (Anthropic).
    - Strict: "'additionalProperties' is required to be supplied and to be false", "'required' is required to be
      supplied and to be an array including every key in properties", "'allOf' is not permitted" (OpenAI: outlines
      #1666, trae-agent #173); "For 'object' type, 'additionalProperties' must be explicitly set to false" (Anthropic:
      veryfront-code #3918, 2026-08-21), "For 'integer' type, property 'maximum' is not supported".
    """
    yield from _find_root_faults(schema, rules, strict=strict, output=output)
    rows, refused = rules.rows, rules.values("schema_keywords")
    if strict:
        refused |= rules.values("strict_keywords")
    for path, one in walk_schema(schema):
        for key in refused_references(one, schema) if "schema_references" in rows else ():
            # "references must start with #/$defs/" (command-code #594, 2026-07-27), "conflicting keywords found after
            # $ref expansion: description" (kimi-cli #1903, 2026-04-15)
            message = f"`{key}` is refused with this `$ref`; write the schema out"
            yield Violation(CheckCode.SCHEMA_REFERENCE_INVALID, (*path, key), message)
        yield from find_invalid(one, path, rules.values("schema_faults"))
        yield from _find_unsupported(one, path, rows, strict=strict)
        if "unknown_required" in rows:
            for at in unknown_required(one):
                message = "the schema has no such property; define it, or do not require it"
                yield Violation(CheckCode.SCHEMA_INVALID, (*path, "required", at), message)
        for key in refused_in(one, refused):
            message = f"`{key}` is not supported here; move it to the description"
            yield Violation(CheckCode.SCHEMA_KEYWORD_UNSUPPORTED, (*path, key), message)
        if strict and not rows.keys().isdisjoint(_OPEN):
            yield from _find_open(one, path, is_closed="strict_open" in rows)
    if strict and "strict_recursion" in rows and is_recursive(schema):
        yield Violation(CheckCode.SCHEMA_RECURSIVE, (), "the schema refers to itself; write out the levels")
    if strict:
        yield from _find_excess(schema, rules)


_OPEN: Final = ("strict_open", "strict_open_objects")


def _find_open(schema: JsonObject, path: Path, *, is_closed: bool) -> Iterator[Violation]:
    names = list(object_of(schema.get("properties")))
    listed = {name for name in list_of(schema.get("required")) if isinstance(name, str)}
    if schema.get("type") != "object" and not names:
        return
    if schema.get("additionalProperties") is not False:
        yield Violation(CheckCode.SCHEMA_NOT_STRICT, path, "`additionalProperties` has to be false; set it")
    elif is_closed and (missing := [name for name in names if name not in listed]):
        message = f"every property has to be required, also {', '.join(missing)}; list it"
        yield Violation(CheckCode.SCHEMA_NOT_STRICT, path, message)
    elif is_closed and (unknown := sorted(listed.difference(names))):
        # "Extra required key 'recipe' supplied." (OpenAI: dotnet/extensions #6302, 2025-04-15)
        message = f"there is no property {', '.join(unknown)}; do not require it"
        yield Violation(CheckCode.SCHEMA_INVALID, (*path, "required"), message)


_SIZES: Final[Mapping[Place, str]] = {
    "strict_optional": "optional properties",
    "strict_unions": "properties of several types",
    "strict_properties": "properties",
    "strict_values": "values of enumerations",
    "strict_depth": "levels",
}


def _is_union(schema: object) -> bool:
    given = object_of(schema)
    return isinstance(given.get("type"), list) or "anyOf" in given


def _find_root_faults(schema: JsonObject, rules: Rules, *, strict: bool, output: bool) -> Iterator[Violation]:
    if output and strict and schema.get("type") != "object" and rules.has("strict_open"):
        # "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"array\"'." (OpenAI API)
        message = "the root of the schema must have the type object; wrap it in one"
        yield Violation(CheckCode.SCHEMA_ROOT_INVALID, (), message)
    if rules.has("missing_properties") and not output and schema.get("type") == "object" and "properties" not in schema:
        message = "the root of the schema needs `properties`; add it, also empty"
        yield Violation(CheckCode.SCHEMA_ROOT_INVALID, (), message)


def _find_unsupported(schema: JsonObject, path: Path, rows: Mapping[str, Rule], *, strict: bool) -> Iterator[Violation]:
    """Find values of keywords, and keywords side by side, that a target does not support; the rows have the sources."""
    reference = schema.get("$ref")
    if strict and isinstance(reference, str) and not reference.startswith("#"):
        # No references to other documents (Anthropic and OpenAI documentation: structured outputs)
        message = "the schema is not in this one; write it out"
        yield Violation(CheckCode.SCHEMA_REFERENCE_INVALID, (*path, "$ref"), message)
    kind, given = schema.get("type"), schema.get("format")
    formats = (rows.get("strict_formats") if strict else None) or rows.get("schema_formats")
    if formats is not None and isinstance(given, str) and given not in formats.values and is_text(kind):
        message = f"the format {given!r} is not supported here; remove it"
        yield Violation(CheckCode.SCHEMA_FORMAT_UNSUPPORTED, (*path, "format"), message)
    values = schema.get("enum") if "other_enums" in rows and kind is not None else None
    if isinstance(values, list) and (not is_text(kind) or "" in values):
        message = "only texts that are not empty can be limited to an enumeration; change it"
        yield Violation(CheckCode.SCHEMA_ENUM_INVALID, (*path, "enum"), message)
    if "untyped_properties" in rows or (strict and "strict_untyped" in rows):
        for name in untyped(schema):
            place = (*path, "properties", name)
            yield Violation(CheckCode.SCHEMA_INVALID, place, "the property has no type; add one")
    for key in misplaced(schema) if "mistyped_keywords" in rows else ():
        message = f"`{key}` does not fit the type {kind!r}; remove it"
        yield Violation(CheckCode.SCHEMA_KEYWORD_UNSUPPORTED, (*path, key), message)
    if "typed_unions" in rows and "anyOf" in schema and "type" in schema:
        message = "the type has to be in each schema of `anyOf`; move it"
        yield Violation(CheckCode.SCHEMA_INVALID, (*path, "type"), message)
    if strict and "strict_references" in rows and "$ref" in schema and len(schema) > 1:
        yield Violation(CheckCode.SCHEMA_REFERENCE_INVALID, path, "`$ref` has to be alone; wrap it in `anyOf`")


_TYPE_OF: Final[Mapping[str, str]] = {"properties": "object", "required": "object", "items": "array"}


def misplaced(schema: JsonObject) -> list[str]:
    """List the keywords of a schema that belong to another type than its own."""
    kind = schema.get("type")
    return [key for key, of in _TYPE_OF.items() if key in schema and isinstance(kind, str) and kind.lower() != of]


DEFINITIONS: Final = "#/$defs/"


def refused_references(schema: JsonObject, root: JsonObject) -> list[str]:
    """List the keywords that a target refuses which expands references to definitions, and no others."""
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return []
    if not reference.startswith(DEFINITIONS):
        return ["$ref"]
    meant = referred(root, reference)
    return [key for key in schema if key != "$ref" and key in meant]


def referred(root: JsonObject, reference: str) -> JsonObject:
    """Return the schema that a reference inside a schema names; empty if there is none."""
    found: object = root
    for name in reference.removeprefix("#").split("/")[1:]:
        found = object_of(found).get(name.replace("~1", "/").replace("~0", "~"))
    return object_of(found)


def untyped(schema: JsonObject) -> list[str]:
    """List the properties of an object whose schema does not say which values they have."""
    properties = object_of(schema.get("properties"))
    return [name for name, one in properties.items() if isinstance(one, Mapping) and not _TYPED & one.keys()]


def is_text(kind: object) -> bool:
    """Whether a type is that of a text, also in capitals."""
    return isinstance(kind, str) and kind.lower() == "string"


def _find_excess(schema: JsonObject, rules: Rules) -> Iterator[Violation]:
    """Find more of something than a strict schema may have.

    "Schemas contains too many parameters with union types" (Anthropic documentation: structured outputs, limits)
    """
    if rules.rows.keys().isdisjoint(_SIZES):
        return
    counts: dict[Place, int] = dict.fromkeys(_SIZES, 0)
    for path, one in walk_schema(schema):
        properties, listed = object_of(one.get("properties")), list_of(one.get("required"))
        counts["strict_optional"] += sum(name not in listed for name in properties)
        counts["strict_unions"] += sum(map(_is_union, properties.values()))
        counts["strict_properties"] += len(properties)
        counts["strict_values"] += len(list_of(one.get("enum")))
        counts["strict_depth"] = max(counts["strict_depth"], sum(key == "properties" for key in path))
    for place, name in _SIZES.items():
        if 0 < (most := rules.most(place)) < counts[place]:
            message = f"the schema has {counts[place]} {name}, and at most {most} are supported; cut it"
            yield Violation(CheckCode.SCHEMA_TOO_LARGE, (), message)


def unknown_required(schema: JsonObject) -> list[int]:
    """List the places in `required` of an object that name none of its properties.

    "parameters.required[0]: property is not defined" (Google: AIStudioToAPI #154, 2026-05-05; reported)
    """
    required, properties = schema.get("required"), schema.get("properties")
    if not isinstance(required, list) or (schema.get("type") != "object" and not isinstance(properties, Mapping)):
        return []
    known = frozenset(cast("JsonObject", properties)) if isinstance(properties, Mapping) else frozenset[str]()
    names = enumerate(cast("list[object]", required))
    return [at for at, name in names if isinstance(name, str) and name not in known]


def refused_properties(schema: JsonObject, rules: Rules) -> list[str]:
    """List the properties of a tool whose names the target refuses (`property_names`)."""
    row = rules.rows.get("property_names")
    names = object_of(schema.get("properties")) if row is not None else ()
    return [name for name in names if row is not None and re.fullmatch(row.pattern or "", name) is None]


def refused_in(schema: JsonObject, refused: frozenset[str]) -> list[str]:
    """List the refused keywords of one schema; `key>n` refuses only numbers above n."""
    found: list[str] = []
    for name in sorted(refused):
        key, above, least = name.partition(">")
        value = schema.get(key)
        if key in schema and (not above or (isinstance(value, int) and value > int(least))):
            found.append(key)
    return found


def walk_schema(schema: JsonObject, path: Path = ()) -> Iterator[tuple[Path, JsonObject]]:
    """Yield a schema and all schemas inside it, with their places."""
    yield path, schema
    for key, value in schema.items():
        if key in VALUES_BELOW:
            continue
        if isinstance(value, Mapping):
            inner = cast("JsonObject", value)
            if key in NAMES_BELOW:
                for name, below in inner.items():
                    if isinstance(below, Mapping):
                        yield from walk_schema(cast("JsonObject", below), (*path, key, name))
            else:
                yield from walk_schema(inner, (*path, key))
        elif isinstance(value, list):
            for index, below in enumerate(cast("list[object]", value)):
                if isinstance(below, Mapping):
                    yield from walk_schema(cast("JsonObject", below), (*path, key, index))


def find_invalid(schema: JsonObject, path: Path, faults: frozenset[str]) -> Iterator[Violation]:
    """Find keywords whose value no JSON schema has, and lists without items, as the row `schema_faults` says."""
    kinds = schema.get("type")
    is_list = isinstance(kinds, str) and kinds.lower() == "array"
    if "items" in faults and is_list and "items" not in schema and "prefixItems" not in schema:
        yield Violation(CheckCode.SCHEMA_INVALID, path, "a list needs `items`; add the schema of its items")
    if "invalid" not in faults:
        return
    listed = cast("list[object]", kinds) if isinstance(kinds, list) else [] if kinds is None else [kinds]
    for kind in listed:
        if not isinstance(kind, str) or kind not in _TYPES:
            message = f"{kind!r} is no type of JSON schema; use one of {', '.join(sorted(_TYPES))}"
            yield Violation(CheckCode.SCHEMA_INVALID, (*path, "type"), message)
    for key, value in schema.items():
        expected = _KEYWORDS.get(key)
        if expected is not None and not _FORMS[expected](value):
            yield Violation(CheckCode.SCHEMA_INVALID, (*path, key), f"`{key}` has to be {expected}; change it")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_size(value: object) -> bool:
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return is_whole and _is_number(value) and cast("float", value) >= 0


def _is_schema(value: object) -> bool:
    return isinstance(value, Mapping | bool)


def _are_schemas(value: object) -> bool:
    return isinstance(value, list) and value != [] and all(map(_is_schema, cast("list[object]", value)))


def _are_named(value: object) -> bool:
    return isinstance(value, Mapping) and all(map(_is_schema, cast("JsonObject", value).values()))


def _are_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in cast("list[object]", value))


_FORMS: Final[Mapping[str, Callable[[object], bool]]] = {
    "a number": _is_number,
    "a whole number from 0 on": _is_size,
    "a string": lambda value: isinstance(value, str),
    "a list": lambda value: isinstance(value, list),
    "a list of names": _are_names,
    "a schema": _is_schema,
    "a list of schemas": _are_schemas,
    "an object of schemas": _are_named,
}
_KEYWORDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), "a number"),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
        "a whole number from 0 on",
    ),
    **dict.fromkeys(("description", "title", "pattern", "format", "$ref"), "a string"),
    **dict.fromkeys(("anyOf", "allOf", "oneOf", "prefixItems"), "a list of schemas"),
    **dict.fromkeys(("properties", "patternProperties", "$defs"), "an object of schemas"),
    **dict.fromkeys(("items", "additionalProperties", "not"), "a schema"),
    "required": "a list of names",
    "enum": "a list",
}
"""Keywords -> the values that they can have (JSON Schema, draft 2020-12: the meta-schema).

"True is not of type 'number'" (OpenAI, of `exclusiveMinimum`), "JSON schema is invalid. It must match JSON Schema draft
2020-12" (Anthropic, of a list in `items`).
"""


def is_recursive(schema: JsonObject) -> bool:
    """Whether a definition of a schema refers to itself, also by way of others."""
    names = {
        f"#/{key}/{name}": _references(object_of(inner))
        for key in ("$defs", "definitions")
        for name, inner in object_of(schema.get(key)).items()
    }
    if "#" in _references(schema):
        return True
    for start, first in names.items():
        seen, waiting = set[str](), set(first)
        while waiting:
            one = waiting.pop()
            if one == start:
                return True
            if one not in seen:
                seen.add(one)
                waiting |= names.get(one, set[str]())
    return False


def _references(schema: JsonObject) -> set[str]:
    return {found for _, one in walk_schema(schema) if isinstance(found := one.get("$ref"), str)}
