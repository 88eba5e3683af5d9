"""Write a field that several wires have where a target has it; `shared_rows` says where that is.

What a target has no place for stays where it is, and projection reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Final, NamedTuple, cast

from msgspec.structs import replace

from segue.conversation.content import Extra
from segue.conversation.context import Options, Tool
from segue.conversation.shared_options import SharedOptions
from segue.models.model import Model
from segue.models.providers import PROVIDERS
from segue.protocols.kit.json_values import EMPTY, Block, Wire, is_list, is_object, list_of, object_of, same
from segue.protocols.provider_fields import common_fields, provider_fields
from segue.protocols.shared_rows import (
    ALLOWED_WIRE,
    SHARED_FIELDS,
    STRICT_TOOLS,
    Column,
    Level,
    SharedField,
    write_responses_allowed,
)

_KINDS: Final[Mapping[str, Callable[[object], bool]]] = {
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "text": lambda value: isinstance(value, str),
    "word": lambda value: isinstance(value, str),
    "object": is_object,
    "list": is_list,
}


class WrittenValue(NamedTuple):
    """A value as a target has it: what to write at which paths, what differs, and the member of a list that it is."""

    added: Mapping[str, object]
    difference: str
    member: str = ""


class Carried(NamedTuple):
    """A value that was moved to the target's place: the part without it, what to add, and a difference to report.

    `source` is the path that it was read from.
    """

    rest: Block
    added: Mapping[str, object]
    member: str
    difference: str
    source: str


# -- blocks ------------------------------------------------------------------------------------------------------------


class SharedBlock(NamedTuple):
    """The form of a native block on one wire: its `type`, or the key that `wraps` its fields."""

    type: str = ""
    wraps: str = ""
    models: str = ""


_RESULT_KEYS: Final = {"source", "title", "content", "citations"}
SEARCH_RESULT: Final[Mapping[str, SharedBlock]] = {
    "anthropic-messages": SharedBlock(type="search_result"),
    "bedrock-converse": SharedBlock(wraps="searchResult", models="claude"),  # AWS documentation: for Claude alone
}
"""A search result of texts. (anthropic 2.9.0: SearchResultBlockParam; botocore 1.44.3: SearchResultBlock)"""


def share_block(block: Block, protocol: str, model: Model) -> Block | None:
    """Return a native block of a protocol in the form that a model has for it; None if it has none."""
    source, place = SEARCH_RESULT.get(protocol), SEARCH_RESULT.get(model.protocol)
    if source is None or place is None or place.models not in model.id:
        return None
    held = dict(object_of(block.get(source.wraps)) if source.wraps else block)
    texts = [object_of(one) for one in list_of(held.get("content"))]
    is_plain = all(one.keys() - {"type"} == {"text"} for one in texts)  # without a field that only one wire has
    if held.pop("type", "") != source.type or not is_plain or {*held, "citations"} != _RESULT_KEYS:
        return None
    start = {"type": "text"} if place.type else {}
    held["content"] = [{**start, "text": one["text"]} for one in texts]
    return {place.wraps: held} if place.wraps else {"type": place.type, **held}


# -- finding -----------------------------------------------------------------------------------------------------------


@lru_cache
def _index(level: Level, protocol: str) -> Mapping[str, tuple[tuple[SharedField, Column], ...]]:
    """Return the columns of a protocol by their first key."""
    index: dict[str, tuple[tuple[SharedField, Column], ...]] = {}
    for row in SHARED_FIELDS:
        for column in row.columns.get(protocol, ()) if row.level == level else ():
            key = column.path.partition(".")[0]
            index[key] = (*index.get(key, ()), (row, column))
    return index


def shared_keys(level: Level, protocol: str) -> frozenset[str]:
    """Return the keys of a protocol that hold a shared field."""
    return frozenset(_index(level, protocol))


def has_field(protocol: str, provider: str, key: str) -> bool:
    """Whether a provider of a protocol has a key of the body; so has one whose keys are not known."""
    fields = provider_fields(protocol, provider)
    if fields is None and (provider not in PROVIDERS or PROVIDERS[provider].any_id):
        return True
    fields = fields or common_fields(protocol)
    return fields is None or key in fields


def columns_of(row: SharedField, model: Model) -> Iterator[Column]:
    """Yield the places that a model has for a shared field."""
    for column in row.columns.get(model.protocol, ()):
        if column.only and model.provider not in column.only:
            continue
        if column.models not in model.id:
            continue
        if row.level != "body" or has_field(model.protocol, model.provider, column.path.partition(".")[0]):
            yield column


def write_field(row: SharedField, model: Model, value: object) -> WrittenValue | None:
    """Return a value as a model has it, in the first of its places that can say it; None if none can."""
    for column in columns_of(row, model):
        written = write_column(row, column, value)
        if written is not None:
            return WrittenValue(*written, column.member)
    return None


def move_fields(level: Level, part: Block, protocol: str, model: Model, defaults: Block = EMPTY) -> Iterator[Carried]:
    """Move the shared fields of a part of `extra`, one after the other, to the places that a model has for them.

    Yields what is left of the part each time. A field that the model has no place for stays in it, and so does one of
    the `defaults` of the protocol, which says nothing: a word stays one, such as the standard tier.
    """
    index = _index(level, protocol)
    # A number of alternatives comes before the switch that it needs: some targets have one place for both.
    for key in sorted(part, key=lambda key: not any(column.beside for _, column in index.get(key, ()))):
        for row, column in index.get(key, ()):
            value, rest = read_column(row, column, part)
            written = write_field(row, model, value) if value is not None else None
            if written is None:
                continue
            default = _at(defaults, column.path)
            if default is not None and same(default, _at(part, column.path)) and row.kind != "word":
                continue
            part = rest
            yield Carried(part, written.added, written.member, written.difference, column.path)
            if key not in part:
                break


class Placed(NamedTuple):
    """The options of `Options.shared` as a target has them: an `extra`, what differs, and those without a place.

    `sources` are the keys of the body that hold one -> its name.
    """

    extra: Extra
    differences: list[str]
    lost: dict[str, object]
    sources: dict[str, str]


def place_options(shared: SharedOptions, extra: Extra | None, model: Model) -> Placed:
    """Write the options that several wires have where a model has them; a field that `extra` sets stays as it is."""
    part: Block = (extra or {}).get(model.protocol, EMPTY)
    placed = Placed(dict(extra or {}), [], {}, {})
    rows = [row for row in SHARED_FIELDS if row.name in shared and row.level == "body"]
    for row in sorted(rows, key=lambda row: row.kind == "boolean"):  # a switch comes after what needs it
        value = cast("Block", shared)[row.name]
        written = write_field(row, model, value) if value is not None else None
        if written is None:
            placed.lost.update({row.name: value} if value is not None else {})
            continue
        placed.differences.extend([written.difference] if written.difference else [])
        for path, one in written.added.items():
            part = put(part, path, one, written.member)
            placed.sources[path.partition(".")[0]] = row.name
    return placed._replace(extra={**placed.extra, model.protocol: part} if part else placed.extra)


def read_shared(options: Options) -> dict[str, object]:
    """Return the options of a request that several wires have, by their neutral names."""
    found: dict[str, object] = {}
    for protocol, given in (options.extra or {}).items():
        for columns in _index("body", protocol).values():
            for row, column in columns:
                value = read_column(row, column, given)[0]
                if value is not None:
                    found.setdefault(row.name, value)
    return {**found, **cast("dict[str, object]", options.shared or {})}


def places_of(model: Model, refused: AbstractSet[str] = frozenset()) -> dict[str, str]:
    """Return the shared options that a model takes, each with its place; `refused` are fields that it refuses."""
    found: dict[str, str] = {}
    for row in SHARED_FIELDS:
        for column in columns_of(row, model) if row.level == "body" else ():
            if not any(f"{column.path}.".startswith(f"{field}.") for field in refused):
                found.setdefault(row.name, column.path)
    return found


def find_unplaced(name: str, parts: Mapping[str, Block], model: Model) -> tuple[Block, dict[str, Block]] | None:
    """Return an object that a model has no place for, and the parts of `extra` without it; None if there is none."""
    row = next(row for row in SHARED_FIELDS if row.name == name)
    for key, part in parts.items():
        for column in row.columns.get(key.partition(":")[0], ()):
            value, rest = read_column(row, column, part)
            if value is not None and next(columns_of(row, model), None) is None:
                others = {other: held for other, held in parts.items() if other != key}
                return object_of(value), {**others, key: rest} if rest else others
    return None


_SWITCH: Final = next(iter(STRICT_TOOLS.columns))
"""The protocol with one switch for the strictness of all tools."""
OF_TOOLS: Final[Mapping[str, Callable[[object], Extra]]] = {
    "allowed_tools": lambda value: {ALLOWED_WIRE: {"tool_choice": write_responses_allowed(value)}},
    STRICT_TOOLS.name: lambda value: {_SWITCH: {STRICT_TOOLS.name: value}},
}
"""Options that a target without a place for them may have in its tools -> the form of a wire that has one."""


def share_strictness(model: Model, tools: tuple[Tool, ...], given: Options) -> tuple[tuple[Tool, ...], Options]:
    """Move strictness to the one switch for all tools that a target has, or from another wire's switch to each tool."""
    extra = given.extra or {}
    if not tools or (model.protocol != _SWITCH and _SWITCH not in extra):
        return tools, given
    functions = [tool for tool in tools if tool.kind == "function"]
    part: Block = extra.get(_SWITCH, {})
    held = part.get(STRICT_TOOLS.name)
    if model.protocol == _SWITCH:
        if held is not None or not functions or not all(tool.strict for tool in functions):
            return tools, given
        strict, part = None, {**part, STRICT_TOOLS.name: True}
    elif isinstance(held, bool) and functions:
        strict, part = held, without(part, STRICT_TOOLS.name)
    else:
        return tools, given
    others = {key: one for key, one in extra.items() if key != _SWITCH}
    moved = tuple(replace(tool, strict=strict) if tool.kind == "function" else tool for tool in tools)
    return moved, replace(given, extra=({**others, _SWITCH: part} if part else others) or None)


def without_server(extra: Extra, protocol: str, key: str, name: object) -> Extra:
    """Return the `extra` of a request without the server of a name; others of the same field stay."""
    part: Block = extra.get(protocol, EMPTY)
    rest = [server for server in list_of(part.get(key)) if object_of(server).get("name") != name]
    kept = {**{field: value for field, value in part.items() if field != key}, **({key: rest} if rest else {})}
    others = {other: one for other, one in extra.items() if other != protocol}
    return {**others, protocol: kept} if kept else others


def is_freeform(extra: Extra | None, protocols: Iterable[str] = ("openai-chat", "openai-responses")) -> bool:
    """Whether a tool is written with a text in place of arguments, on any of some wires."""
    row = next(row for row in SHARED_FIELDS if row.name == "freeform")
    parts = ((row.columns[name][0], (extra or {}).get(name, EMPTY)) for name in protocols if name in row.columns)
    return any(read_column(row, column, part)[0] is True for column, part in parts)


def read_column(row: SharedField, column: Column, part: Block) -> tuple[object, Block]:
    """Return the neutral value of a field, None if there is none, and the part without the field."""
    held = _at(part, column.path)
    if held is None:
        return None, part
    if column.member:
        others = [one for one in list_of(held) if one != column.member]
        rest = put(without(part, column.path), column.path, others) if others else without(part, column.path)
        return (True, rest) if len(others) < len(list_of(held)) else (None, part)
    if column.values:
        value = next((neutral for neutral, wire in column.values if same(wire, held)), None)
    else:
        value = held if column.read is None else column.read(held)
    if value is None or not _KINDS[row.kind](value):
        return None, part
    return value, without(part, column.path)


def write_column(row: SharedField, column: Column, value: object) -> tuple[Mapping[str, object], str] | None:
    """Return what to write at which paths, and what differs; None if the wire cannot say it."""
    difference = ""
    if column.member:
        return ({column.path: column.member}, "") if value is True else None
    if isinstance(value, str) and value in column.closest:
        closest = column.closest[value]
        if closest is None:
            return {}, ""
        value, difference = closest, f"{row.name}: {closest} instead of {value}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        fitted = value if column.least is None else max(column.least, value)
        fitted = fitted if column.most is None else min(column.most, fitted)
        if fitted != value:
            value, difference = fitted, f"{row.name}: {fitted} instead of {value}"
    if column.values:
        wire = next((wire for neutral, wire in column.values if same(neutral, value)), None)
        if wire is None:
            return None
        value = wire
    elif column.write is not None:
        value = column.write(value)
    return {**column.beside, column.path: value}, difference


def _at(part: object, path: str) -> object:
    for key in path.split("."):
        part = object_of(part).get(key)
    return part


def without(part: Block, path: str) -> Block:
    """Remove a field at a path, and the objects that are empty then."""
    key, _, inner = path.partition(".")
    rest = {name: value for name, value in part.items() if name != key}
    if inner and (held := without(cast("Block", part[key]), inner)):
        rest[key] = held
    return rest


def put(part: Block, path: str, value: object, member: str = "") -> Wire:
    """Set a field at a path, or add a member to the list there; a field that is set already stays as it is."""
    key, _, inner = path.partition(".")
    held = part.get(key)
    if inner:
        return {**part, key: put(held if is_object(held) else {}, inner, value, member)}
    if member:
        items = list_of(held)
        return part if member in items else {**part, key: [*items, member]}  # pyright: ignore[reportReturnType]
    return {**part, key: value} if held is None else dict(part)
