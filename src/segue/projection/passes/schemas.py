"""Change the JSON schema of a tool to the subset of JSON schema that the target accepts.

Facts:
- Some providers support fewer keywords and refuse the others.                          (protocols' rules)
- Some require an object at the root and refuse `anyOf` and the like there, but not inside.
                                                        (Codewhale #4329, 2026-07; OpenAI's refusal lists them)
- What a schema says is lost only if it is nowhere in the new one: a keyword that moved into the description, a
  reference that is written out and a type that moved into the choices are still read.                 (our own rule)
- Strict mode has its own subset. What it lacks can be written into descriptions, where the model reads it, as the
  SDKs do: `{minimum: 1}`; `oneOf` becomes `anyOf`.                      (anthropic 2.8.0: transform_schema, 2026-11-15)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import is_
from typing import Final, cast

import msgspec

from segue.foundation.json_text import encode_json
from segue.models.rule import Rule
from segue.models.rules import Rules
from segue.projection.report import Loss
from segue.protocols.kit.schemas import (
    NAMES_BELOW,
    VALUES_BELOW,
    find_faults,
    find_invalid,
    is_text,
    misplaced,
    referred,
    refused_in,
    refused_references,
    unknown_required,
    untyped,
    walk_schema,
)

Schema = Mapping[str, object]

_ROOT_TYPES: Final = frozenset({"properties", "required"})
_SUPPORTED: Final = ("schema_formats", "other_enums", "typed_unions", "mistyped_keywords", "untyped_properties")
"""Rows that `_with_supported` follows."""
_CHOICES: Final = ("allOf", "anyOf", "oneOf")
_MOST_REFERENCES: Final = 8
"""How many references in a row are followed at the root; they may form a circle."""


def fit_schema(schema: Schema, rules: Rules) -> tuple[Schema, Loss]:
    """Remove keywords that the target refuses and convert the root; the same object when nothing changes."""
    fitted, loss = schema, Loss.NONE
    rows = rules.rows
    if "schema_faults" in rows:
        fitted, loss = _without_invalid(schema, rows["schema_faults"].values)
        schema = fitted
    if "schema_keywords" in rows:
        fitted = cast("Schema", _without(schema, rows["schema_keywords"].values))
        loss = Loss.CONTENT if fitted is not schema else loss
    if "schema_references" in rows:
        whole = fitted
        losses = {loss}
        expanded = _mapped(whole, lambda one: _with_definitions(one, whole, losses))
        loss = Loss.CONTENT if Loss.CONTENT in losses else loss
        fitted = expanded if expanded != fitted else fitted
    if not rows.keys().isdisjoint(_SUPPORTED):
        losses = {loss}
        supported = _mapped(fitted, lambda one: _with_supported(one, rows, losses))
        loss = Loss.CONTENT if Loss.CONTENT in losses else loss
        fitted = supported if supported != fitted else fitted
    if "unknown_required" in rows:
        known = _mapped(fitted, _with_known_required)
        loss = Loss.CONTENT if known != fitted else loss
        fitted = known if known != fitted else fitted
    if "root_keywords" in rows and not rows["root_keywords"].values.isdisjoint(fitted):
        fitted, loss = _without_choices(fitted, rows["root_keywords"].values), Loss.CONTENT
    if rules.schema_root_object and "$ref" in fitted and "type" not in fitted:
        fitted = _with_root(fitted)
    if rules.schema_root_object and fitted.get("type") != "object" and (fitted or rules.schema_needed):
        loss = Loss.CONTENT if "type" in fitted else loss
        root: dict[str, object] = {"type": "object", "properties": dict[str, object]()}
        fitted = root | {key: value for key, value in fitted.items() if key != "type"}
    if "missing_properties" in rows and "properties" not in fitted and (fitted or rules.schema_needed):
        fitted = {**fitted, "properties": dict[str, object]()}
    if rules.schema_root_object and _is_malformed(fitted):
        fitted, loss = {key: value for key, value in fitted.items() if key not in _ROOT_TYPES}, Loss.CONTENT
        fitted["properties"] = dict[str, object]()
    return fitted, loss


def fit_strict(schema: Schema, rules: Rules, *, output: bool = False) -> tuple[Schema, Loss, str] | None:
    """Change a schema to what strict mode accepts; with the loss, and the keywords that moved to descriptions.

    None if that is not possible without another meaning. The same object when nothing changes.
    """
    moved: dict[str, None] = {}
    losses = {Loss.NONE}
    rows, keywords, formats = rules.rows, rules.values("strict_keywords"), rules.rows.get("strict_formats")

    def fit(one: Schema) -> Schema:
        out = dict(one)
        if "oneOf" in keywords and "anyOf" not in out and isinstance(out.get("oneOf"), list):
            out = {"anyOf" if key == "oneOf" else key: value for key, value in out.items()}
            moved["oneOf"] = None
        only = out.get("allOf")
        if "allOf" in keywords and isinstance(only, list) and len(cast("list[object]", only)) == 1:
            inner = _mapping(cast("list[object]", only)[0])
            out = {**{key: value for key, value in out.items() if key != "allOf"}, **inner}
        refused = refused_in(out, keywords)
        given = out.get("format")
        if formats is not None and isinstance(given, str) and given not in formats.values and is_text(out.get("type")):
            refused.append("format")
        if refused:
            moved.update(dict.fromkeys(refused))
            _describe(out, refused)
        if "strict_references" in rows and "$ref" in out and len(out) > 1:
            out = {"anyOf": [{"$ref": out.pop("$ref")}], **out}
        is_object = out.get("type") == "object" or isinstance(out.get("properties"), Mapping)
        if "strict_open_objects" in rows and is_object and out.get("additionalProperties") is not False:
            if "additionalProperties" in out:
                losses.add(Loss.CONTENT)
            out["additionalProperties"] = False
        return one if out == one else out

    fitted = _mapped(schema, fit)
    loss = Loss.CONTENT if Loss.CONTENT in losses else Loss.NONE
    if (loss == Loss.CONTENT and not output) or any(find_faults(fitted, rules, strict=True, output=output)):
        return None
    return fitted, loss, ", ".join(moved)


def _mapped(schema: Schema, change: Callable[[Schema], Schema]) -> Schema:
    """Change a schema and all schemas inside it; the same object when nothing changes."""
    given = change(schema)
    out: dict[str, object] = {}
    for key, value in given.items():
        if type(value) is str or key in VALUES_BELOW:  # most values; asking whether they are mappings is slow
            out[key] = value
        elif isinstance(value, (dict, Mapping)):
            inner = cast("Schema", value)
            if key in NAMES_BELOW:
                below = {
                    name: _mapped(cast("Schema", one), change) if isinstance(one, Mapping) else one
                    for name, one in inner.items()
                }
                out[key] = inner if all(map(is_, below.values(), inner.values())) else below
            else:
                out[key] = _mapped(inner, change)
        elif isinstance(value, list):
            items = cast("list[object]", value)
            changed = [_mapped(cast("Schema", one), change) if isinstance(one, Mapping) else one for one in items]
            out[key] = items if all(map(is_, changed, items)) else changed
        else:
            out[key] = value
    return given if all(map(is_, out.values(), given.values())) else out


@lru_cache(256)
def _is_valid(schema: bytes, mode: frozenset[str]) -> bool:
    """Whether a schema is valid. Every request comes here with every tool, so the answer is kept."""
    every = walk_schema(json.loads(schema))
    return not any(fault for path, one in every for fault in find_invalid(one, path, mode))


def _without_invalid(schema: Schema, mode: frozenset[str]) -> tuple[Schema, Loss]:
    """Remove what is not a JSON schema, and add to lists the schema of their items."""
    losses = {Loss.NONE}
    if _is_valid(encode_json(schema), mode):
        return schema, Loss.NONE

    def fit(one: Schema) -> Schema:
        if not any(find_invalid(one, (), mode)):
            return one
        out = _of_this_draft(one)
        faults = [*find_invalid(out, (), mode)]
        for fault in faults:
            if fault.path:
                out.pop(cast("str", fault.path[0]), None)
                losses.add(Loss.CONTENT)
            else:
                out["items"] = {}
        return out

    fitted = _mapped(schema, fit)
    return fitted, Loss.CONTENT if Loss.CONTENT in losses else Loss.NONE


def _of_this_draft(one: Schema) -> dict[str, object]:
    """Write what older drafts wrote in another form: the schemas of a tuple, and bounds that are flags."""
    out = dict(one)
    if isinstance(out.get("items"), list):
        out["prefixItems"] = out.pop("items")
        if "additionalItems" in out:
            out["items"] = out.pop("additionalItems")
    for flag, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(out.get(flag), bool):
            is_exclusive = out.pop(flag)
            if is_exclusive and bound in out:
                out[flag] = out.pop(bound)
    return out


def _with_supported(one: Schema, rows: Mapping[str, Rule], losses: set[Loss]) -> Schema:
    """Move formats, enumerations and types of unions that the target refuses to where it accepts them."""
    out, kind = dict(one), one.get("type")
    for key in misplaced(one) if "mistyped_keywords" in rows else ():
        del out[key]
        losses.add(Loss.CONTENT)
    given, formats = out.get("format"), rows.get("schema_formats")
    if formats is not None and isinstance(given, str) and given not in formats.values and is_text(kind):
        _describe(out, ["format"])
    values = out.get("enum")
    is_other = kind is not None and not is_text(kind)
    if "other_enums" in rows and isinstance(values, list) and (is_other or "" in values):
        _describe(out, ["enum"])
    if "untyped_properties" in rows and (names := untyped(out)):
        losses.add(Loss.CONTENT)
        properties = cast("Schema", out["properties"])
        out["properties"] = {
            name: {"type": "string", **cast("Schema", below)} if name in names else below
            for name, below in properties.items()
        }
    choices = out.get("anyOf")
    if "typed_unions" in rows and "type" in out and isinstance(choices, list):
        del out["type"]
        out["anyOf"] = [
            {"type": kind, **cast("Schema", choice)} if isinstance(choice, Mapping) else choice
            for choice in cast("list[object]", choices)
        ]
    return one if out == one else out


def _with_definitions(one: Schema, root: Schema, losses: set[Loss]) -> Schema:
    """Write a reference that is refused as the schema that it names; one that names others in turn is left out."""
    refused = refused_references(one, root)
    if not refused:
        return one
    rest = {key: value for key, value in one.items() if key not in refused}
    if "$ref" not in refused:
        losses.add(Loss.CONTENT)
        return rest
    meant = referred(root, str(one["$ref"]))
    is_plain = not any("$ref" in inner for _, inner in walk_schema(meant))
    if not is_plain or not meant:
        losses.add(Loss.CONTENT)
    return {**meant, **rest} if is_plain else rest


def _with_root(schema: Schema) -> Schema:
    """Write the schema that a reference at the root names; its definitions stay, for other references."""
    for _ in range(_MOST_REFERENCES):
        meant = referred(schema, str(schema.get("$ref")))
        if not meant or meant is schema:
            break
        schema = {**meant, **{key: value for key, value in schema.items() if key != "$ref"}}
    return schema


def _describe(schema: dict[str, object], keys: Sequence[str]) -> None:
    """Move keywords of a schema to its description."""
    text = ", ".join(f"{key}: {msgspec.json.encode(schema.pop(key)).decode()}" for key in keys)
    before = schema.get("description")
    schema["description"] = f"{before}\n\n{{{text}}}" if isinstance(before, str) and before else f"{{{text}}}"


def _with_known_required(one: Schema) -> Schema:
    unknown = unknown_required(one)
    if not unknown:
        return one
    names = [name for at, name in enumerate(cast("list[object]", one["required"])) if at not in unknown]
    rest = {key: value for key, value in one.items() if key != "required"}
    return {**rest, "required": names} if names else rest


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
                kept[key] = inner if key in VALUES_BELOW else _without(inner, refused, names=key in NAMES_BELOW)
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
