"""The output schema in protocols that have a name, a description and `strict` beside it.

Facts this file rests on:
- The name has letters, digits, `_` and `-`, at most 64 characters; the model sees the name and the description.
                                                          (openai 3.49.0: ResponseFormatJSONSchema, read 2026-11-15)
- Strict mode requires `additionalProperties: false` and all properties in `required`, in every object.
                                                                   (OpenAI documentation: structured outputs, 2026-11)

For other protocols the name and the description become `title` and `description` of the JSON Schema.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import Extra
from segue.conversation.context import Options
from segue.protocols.kit.codec import JsonObject
from segue.protocols.kit.json_values import digest, object_of
from segue.protocols.kit.verbatim import choose, chosen

DEFAULT_NAME: Final = "output"
"""The name of a schema without a title."""
FORM: Final = "schema_form"
"""The name of the choice (`kit.verbatim`) that keeps the name and description of one schema."""
_SCHEMA_KEYS: Final[Mapping[str, str]] = {"name": "title", "description": "description"}
_REFUSED: Final = re.compile(r"[^a-zA-Z0-9_-]+")
_LONGEST: Final = 64


def schema_name(schema: JsonObject) -> str:
    """Give the name of a schema: its title, with characters that a name cannot have replaced."""
    title = schema.get("title")
    name = _REFUSED.sub("_", title)[:_LONGEST].strip("_") if isinstance(title, str) else ""
    return name or DEFAULT_NAME


def choose_form(schema: JsonObject, form: JsonObject) -> dict[str, object]:
    """Give the choice that keeps the received name and description of a schema; empty if they are the default."""
    received = {key: value for key in _SCHEMA_KEYS if isinstance(value := form.get(key), str) and value}
    is_default = "name" not in received or received == {"name": schema_name(schema)}
    return {} if is_default else choose(FORM, digest(schema), received)


def chosen_form(extra: Extra | None, protocol: str, schema: JsonObject) -> JsonObject:
    """Give the name, and the description if there is one, to write beside a schema."""
    received = chosen(extra, protocol, FORM, digest(schema)) if extra is not None else None
    return object_of(received) or {"name": schema_name(schema)}


def copy_title(options: Options, source: str) -> Options:
    """Copy the name and description that `source` has beside the schema into its `title` and `description`.

    A schema that has them already keeps its own.
    """
    schema = options.output_schema
    if schema is None:
        return options
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
        named = cast("list[object]", required) if isinstance(required, list) else []
        listed = {name for name in named if isinstance(name, str)}
        if given.get("additionalProperties") is not False or any(name not in listed for name in names):
            return False
    return all(is_closed(inner) for inner in given.values())
