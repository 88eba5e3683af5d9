"""Server tools: tools that a provider runs itself, described as data so that one can replace another.

Each protocol lists its server tools in its `server_tools.py`; `Rules.server_tools` names those that one target has. A
definition is read into neutral options (domains, location, number of uses) with the paths of its own row, and written
with the paths of the target's row. What a row has no path for is returned by name, so that projection can report it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias, cast, final

import msgspec

from segue.protocols.kit.json_values import EMPTY, Block, Wire, list_of, object_of

ServerToolKind: TypeAlias = Literal[
    "web_search", "web_fetch", "code_execution", "file_search", "tool_search", "mcp", "maps", "other"
]
"""What a server tool does. Tools of the kind `other` have no equivalent; they are listed to be recognised."""
ToolOption: TypeAlias = Literal[
    "allowed_domains",
    "blocked_domains",
    "city",
    "region",
    "country",
    "timezone",
    "max_uses",
    "context_size",
    "max_content_tokens",
    "citations",
    "stores",
    "max_results",
    "server_name",
    "server_url",
    "allowed_tools",
    "filter",
    "widget",
]
KeyPath: TypeAlias = tuple[str, ...]

_CAPITAL: Final = re.compile("[A-Z]")
LOCATION: Final = ("city", "region", "country", "timezone")
RESTRICTING: Final[frozenset[str]] = frozenset({"allowed_domains", "allowed_tools"})
"""Options without which a tool may do more than was allowed; a target without a place for them does not get it."""


ALLOWED: Final[KeyPath] = ("allowed_tools", "names")
"""Where a definition that was read by its form has the names of the only tools that may be called."""


def allowed_tools(names: Sequence[str]) -> Block:
    """Return the only tools that may be called, in a definition that was read; none at all has no form elsewhere."""
    return {"allowed_tools": {"names": list(names)} if names else {"none": True}}


def location(*path: str) -> dict[ToolOption, KeyPath]:
    """Return the options of a user location whose fields are below `path`."""
    return {
        "city": (*path, "city"),
        "region": (*path, "region"),
        "country": (*path, "country"),
        "timezone": (*path, "timezone"),
    }


class DefinitionForm(NamedTuple):
    """How a definition is turned into one that has a key for every option, and back.

    `servers` is the field of the request body with the servers that definitions name; `read` gets the one that is named
    by the definition, and `write` also returns the one to add there.
    """

    read: Callable[[Block, Block], Block]
    write: Callable[[Wire], tuple[Wire, Wire]]
    servers: str = ""


@final
class ServerTool(msgspec.Struct, frozen=True, kw_only=True):
    """One server tool of a protocol.

    - `name`: how `Rules.server_tools` names it; unique within the protocol.
    - `kind`: what it does. `covers`: kinds that it does as well.
    - `key`, `pattern`: a definition is of this tool if the text at `key` matches the pattern; without a pattern, if it
      has the key.
    - `template`: the definition without options; None for a tool that is recognised and never written.
    - `options`: the path of each neutral option. `body_options`: options that are in the request body and limit all
      server tools together, so they are used only if there is one.
    - `constants`: values that are written next to an option of the same object.
    - `form`: for definitions whose options are not values at a path.
    - `ignored`: keys that do not change what the tool does, and have no equivalent elsewhere.
    - `exclusive`: allowed and blocked domains are refused together. `max_domains`: the longest list of domains.
    - `place`: whether the definition is in the list of tools or is a field of the request body.
    - `beside_functions`: fields of the request body that the target needs if there are functions as well
      (`Rules.server_tools_with_functions`).
    - `source`, `read`: where the facts come from, and when they were read.
    """

    name: str
    kind: ServerToolKind
    key: KeyPath = ("type",)
    pattern: str = ""
    template: Mapping[str, object] | None = None
    options: Mapping[ToolOption, KeyPath] = msgspec.field(default_factory=dict[ToolOption, KeyPath])
    body_options: Mapping[ToolOption, str] = msgspec.field(default_factory=dict[ToolOption, str])
    constants: Mapping[KeyPath, object] = msgspec.field(default_factory=dict[KeyPath, object])
    form: DefinitionForm | None = None
    ignored: frozenset[str] = frozenset()
    covers: frozenset[ServerToolKind] = frozenset()
    exclusive: bool = False
    max_domains: int = 0
    place: Literal["tools", "body"] = "tools"
    beside_functions: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])
    source: str
    read: str

    def matches(self, definition: Block) -> bool:
        """Whether a definition is one of this tool."""
        if not self.pattern:
            return _at(definition, self.key) is not None or definition.get(_snake(self.key[0])) is not None
        found = _at(definition, self.key)
        return isinstance(found, str) and _compiled(self.pattern).fullmatch(found) is not None

    def title(self) -> str:
        """Return the name of the tool on the wire: its type or its key."""
        template = self.template or EMPTY
        found = template.get("type") or _at(template, self.key)
        return found if isinstance(found, str) else self.key[-1] if not self.pattern else self.name


@final
class ToolUse(msgspec.Struct, frozen=True):
    """A definition, read: the row that it was read with, its options, and the names of settings that were not read."""

    tool: ServerTool
    definition: Block
    options: Mapping[ToolOption, object]
    unread: tuple[str, ...]


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _at(value: object, path: Sequence[str]) -> object:
    for key in path:
        value = object_of(value).get(key)
    return value


# -- reading -----------------------------------------------------------------------------------------------------------


def split_definition(tools: Sequence[ServerTool], definition: Block) -> list[Block]:
    """Split a definition that holds several tools, one a key, as Google's may."""
    keys = {key for tool in tools if not tool.pattern for key in (tool.key[0], _snake(tool.key[0]))}
    held = [key for key in definition if key in keys]
    if len(held) < 2:
        return [definition]
    parts: list[Block] = [{key: definition[key]} for key in held]
    rest = {key: value for key, value in definition.items() if key not in keys}
    return [*parts, rest] if rest else parts


def read_definition(tools: Sequence[ServerTool], definition: Block, body: Block = EMPTY) -> ToolUse | None:
    """Read a definition with the row that understands most of it; None if no row matches. `body` has its server."""
    read = [_read(tool, definition, body) for tool in tools if tool.matches(definition)]
    return min(read, key=lambda use: len(use.unread), default=None)


def _read(tool: ServerTool, definition: Block, body: Block) -> ToolUse:
    options: dict[ToolOption, object] = {}
    if (form := tool.form) is not None:
        named = [one for one in list_of(body.get(form.servers)) if object_of(one).get("name") in definition.values()]
        definition = form.read(definition, object_of(named[0] if named else None))
    named = _renamed(definition, _aliases(tool))
    for option, path in tool.options.items():
        value = _at(named, path)
        if value is not None and value not in ([], {}, ""):
            options[option] = value
    known = {*tool.options.values(), *tool.constants} | ({tool.key} if tool.pattern else set[KeyPath]())
    template = tool.template or EMPTY
    unread = [
        ".".join(path)
        for path, value in _leaves(named)
        if not any(path[: len(start)] == start for start in known)
        and tool.ignored.isdisjoint(path)
        and _at(template, path) != value
    ]
    return ToolUse(tool, definition, options, tuple(unread))


def _aliases(tool: ServerTool) -> dict[str, str]:
    """Return the snake_case name of each camelCase key of a tool: Google accepts both."""
    keys = {key for path in (tool.key, *tool.options.values()) for key in path}
    return {_snake(key): key for key in keys if key != key.lower()}


def _snake(key: str) -> str:
    return _CAPITAL.sub(lambda found: "_" + found[0].lower(), key)


def _renamed(value: Block, aliases: Mapping[str, str]) -> Block:
    if not aliases:
        return value
    return {
        aliases.get(key, key): _renamed(cast("Block", inner), aliases) if isinstance(inner, Mapping) else inner
        for key, inner in value.items()
    }


def _leaves(value: Block, path: KeyPath = ()) -> Iterator[tuple[KeyPath, object]]:
    """Yield every setting with its path: values that are not null or empty lists and texts."""
    for key, inner in value.items():
        if isinstance(inner, Mapping) and inner:
            yield from _leaves(cast("Block", inner), (*path, key))
        elif inner is not None and inner not in ([], ""):
            yield (*path, key), inner


# -- writing -----------------------------------------------------------------------------------------------------------


def lost_options(tool: ServerTool, options: Mapping[ToolOption, object]) -> list[ToolOption]:
    """Name the options that a tool cannot express."""
    lost: list[ToolOption] = []
    for option, value in options.items():
        too_long = option.endswith("_domains") and tool.max_domains and isinstance(value, list | tuple)
        if option not in tool.options or (too_long and len(cast("Sequence[object]", value)) > tool.max_domains):
            lost.append(option)
        elif option == "blocked_domains" and tool.exclusive and options.get("allowed_domains"):
            lost.append(option)  # what is not allowed is not read anyway
    return lost


def write_definition(tool: ServerTool, options: Mapping[ToolOption, object]) -> tuple[Wire, Wire]:
    """Write a definition with the options that the tool can express, and the server that it names."""
    definition = _copied(tool.template or EMPTY)
    lost = lost_options(tool, options)
    for option, value in options.items():
        if option not in lost:
            _put(definition, tool.options[option], value)
    for path, value in tool.constants.items():
        if _at(definition, path[:-1]):
            _put(definition, path, value)
    return (definition, {}) if tool.form is None else tool.form.write(definition)


def _copied(value: Block) -> Wire:
    return {key: _copied(cast("Block", inner)) if isinstance(inner, Mapping) else inner for key, inner in value.items()}


def _put(wire: Wire, path: KeyPath, value: object) -> None:
    for key in path[:-1]:
        wire = cast("Wire", wire.setdefault(key, {}))
    wire[path[-1]] = value


def merged(outer: Block, inner: Block) -> Wire:
    """Return the fields of both objects, with nested objects merged."""
    wire = dict(outer)
    for key, value in inner.items():
        held = wire.get(key)
        both = isinstance(held, Mapping) and isinstance(value, Mapping)
        wire[key] = merged(cast("Block", held), cast("Block", value)) if both else value
    return wire


def body_keys(tools: Sequence[ServerTool]) -> frozenset[str]:
    """Name the fields of a request body that are server tools or options of them."""
    fields = {tool.key[0] for tool in tools if tool.place == "body"}
    return frozenset(fields | {key for tool in tools for key in tool.body_options.values()})
