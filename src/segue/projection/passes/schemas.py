"""Change the JSON schema of a tool to the subset of JSON schema that the target accepts.

Facts this file rests on:
- Some providers support fewer keywords and refuse the others.                          (protocols' rules)
- Some require an object at the root and refuse `anyOf` and the like there, but not inside.
                                                        (Codewhale #4329, 2026-07; OpenAI's refusal lists them)
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_
from typing import Final, cast

from segue.models.rules import Rules
from segue.projection.report import Loss

Schema = Mapping[str, object]

_NAMES_BELOW: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose value maps names to schemas."""
_VALUES_BELOW: Final = frozenset({"const", "default", "enum", "example", "examples"})
"""Keywords whose value is plain JSON, not a schema."""
_ROOT_TYPES: Final = frozenset({"properties", "required"})
_CHOICES: Final = ("allOf", "anyOf", "oneOf")


def fit_schema(schema: Schema, rules: Rules) -> tuple[Schema, Loss]:
    """Remove keywords that the target refuses and convert the root; the same object when nothing changes."""
    fitted, loss = schema, Loss.NONE
    if rules.schema_refused:
        fitted = cast("Schema", _without(schema, rules.schema_refused))
        loss = Loss.CONTENT if fitted is not schema else loss
    if not rules.schema_root_refused.isdisjoint(fitted):
        fitted, loss = _without_choices(fitted, rules.schema_root_refused), Loss.CONTENT
    if rules.schema_root_object and fitted.get("type") != "object" and (fitted or rules.schema_needed):
        loss = Loss.CONTENT if "type" in fitted else loss
        root: dict[str, object] = {"type": "object", "properties": dict[str, object]()}
        fitted = root | {key: value for key, value in fitted.items() if key != "type"}
    if rules.schema_root_object and _is_malformed(fitted):
        fitted, loss = {key: value for key, value in fitted.items() if key not in _ROOT_TYPES}, Loss.CONTENT
        fitted["properties"] = dict[str, object]()
    return fitted, loss


def _is_malformed(schema: Schema) -> bool:
    """Whether `properties` or `required` of an object has a value of another type, which no provider accepts."""
    required = schema.get("required", [])
    is_list = isinstance(required, list) and all(isinstance(name, str) for name in cast("list[object]", required))
    return not (isinstance(schema.get("properties", {}), Mapping) and is_list)


def _without(value: object, refused: frozenset[str], *, names: bool = False) -> object:
    """Drop keywords at every depth; the same object when there are none."""
    if isinstance(value, Mapping):
        mapping = cast("Schema", value)
        kept: dict[str, object] = {}
        for key, inner in mapping.items():
            if names:
                kept[key] = _without(inner, refused)
            elif key not in refused:
                kept[key] = inner if key in _VALUES_BELOW else _without(inner, refused, names=key in _NAMES_BELOW)
        return mapping if len(kept) == len(mapping) and all(map(is_, kept.values(), mapping.values())) else kept
    if isinstance(value, list):
        items = cast("list[object]", value)
        kept_items = [_without(inner, refused) for inner in items]
        return items if all(map(is_, kept_items, items)) else kept_items
    return value


def _without_choices(schema: Schema, refused: frozenset[str]) -> Schema:
    """Merge the branches of the root: all properties are allowed, those that every branch requires are required."""
    properties = dict(_mapping(schema.get("properties")))
    required = set(_names(schema.get("required")))
    for keyword in _CHOICES:
        if keyword not in refused or not isinstance(schema.get(keyword), list):
            continue
        branches = [_mapping(branch) for branch in cast("list[object]", schema[keyword])]
        for branch in branches:
            for name, inner in _mapping(branch.get("properties")).items():
                properties.setdefault(name, inner)
        demands = [set(_names(branch.get("required"))) for branch in branches]
        if demands:
            required |= set[str]().union(*demands) if keyword == "allOf" else set[str].intersection(*demands)
    fitted = {key: value for key, value in schema.items() if key not in refused}
    if properties:
        fitted["properties"] = properties
    if required:
        fitted["required"] = sorted(required & properties.keys()) or sorted(required)
    return fitted


def _mapping(value: object) -> Schema:
    return cast("Schema", value) if isinstance(value, Mapping) else {}


def _names(value: object) -> list[str]:
    return [name for name in cast("list[object]", value) if isinstance(name, str)] if isinstance(value, list) else []
