"""Pass 8, part 1: replace tools that another provider runs by the target's own.

Facts:
- Web search, reading of pages, execution of code and search in files exist at several providers, each with its own
  definition and options. `ServerTool` describes them, `Rules.server_tools` names those of a target.
- Without its list of allowed domains a tool reads more than the caller allowed, so it is not sent. Other options are
  limits of cost or taste: the tool is sent without them, reported.
- Ids of stores, containers and files are known to one provider. A search in files needs the target's own ids
  (`Policy.stores`).
- Two tools of one name are refused: "tools: Tool names must be unique."            (LibreChat #13162, 2026-05-17)
- Which tools of an MCP server may be called is a list of names, or a switch for each.   (openai 3.49.0, google-genai
  3.1.0, anthropic 2.8.0: BetaMCPToolsetParam) Others, such as all that only read, have no form elsewhere.
- Headers of an MCP server may hold the user's keys, which another provider does not get. A server whose calls need
  approval is not sent to one that calls without asking.                           (openai 3.51.0: McpRequireApproval)
- A search for tools only loads definitions that were held back. A target without it gets all of them, so nothing is
  lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, cast

from msgspec.structs import replace

from segue.conversation.content import Extra
from segue.conversation.context import NativeTool, Tool
from segue.errors import Path
from segue.projection.passes.extra import removal_of
from segue.projection.report import Change, ChangeCode, Loss
from segue.projection.workspace.workspace import Target
from segue.protocols.kit.json_values import Block, Wire, list_of, object_of
from segue.protocols.kit.server_tools import (
    LOCATION,
    RESTRICTING,
    ServerTool,
    ToolOption,
    ToolUse,
    body_keys,
    lost_options,
    merged,
    read_definition,
    split_definition,
    write_definition,
)
from segue.protocols.registry import find_protocol, registered_count
from segue.protocols.shared_fields import without_server

_TITLES: Final[Mapping[str, str]] = {
    "web_search": "web search",
    "web_fetch": "reading of web pages",
    "code_execution": "execution of code",
    "file_search": "search in files",
    "mcp": "an MCP server",
}


_LOCATION: Final = "user_location"
_EXTRA: Final[Path] = ("options", "extra")
"""The place of body fields that no option has."""


class _Found:
    """A server tool of the request: its place, and its definition, read."""

    __slots__ = ("index", "path", "protocol", "tool", "use")

    def __init__(self, index: int | None, path: Path, protocol: str, use: ToolUse, tool: NativeTool | None) -> None:
        self.index = index
        """The index of the tool; None for a field of the request body."""
        self.path = path
        self.protocol = protocol
        self.use = use
        self.tool = tool


class ReplacedTools(NamedTuple):
    """The tools after replacing, each with the index of the given one, the `extra` of the options, and the changes."""

    tools: list[tuple[int, Tool]]
    extra: Extra | None
    changes: list[Change]


def replace_server_tools(
    target: Target, given: Sequence[tuple[int, Tool]], extra: Extra | None, *, has_calls: bool
) -> ReplacedTools:
    """Replace every server tool that the target does not have by the one of the same kind.

    `given` are the tools with their indexes, `extra` is that of the options: on some protocols a server tool is a field
    of the body. `has_calls` is whether the history has calls of functions.
    """
    work = _ServerTools(target, [tool for _, tool in given], [index for index, _ in given], extra, has_calls=has_calls)
    work.run()
    noted = {change.path for change in work.changes}
    if work.extra is not extra and _EXTRA not in noted:
        work.note(ChangeCode.SERVER_TOOL_MAPPED, _EXTRA, Loss.NONE, "fields of the request that the tools need")
    if work.added or any(len(tools) > 1 for tools in work.tools.values()):
        work.note(ChangeCode.SERVER_TOOL_MAPPED, ("tools",), Loss.NONE, "a tool for each that was replaced")
    tools = [(index, tool) for at, (index, one) in enumerate(given) for tool in work.tools.get(at, [one])]
    behind = max((index for index, _ in given), default=-1) + 1
    return ReplacedTools([*tools, *((behind, tool) for tool in work.added)], work.extra, work.changes)


class _ServerTools:
    """Replaces the server tools of one request; `tools` and `extra` are what to send instead."""

    def __init__(
        self,
        target: Target,
        given: Sequence[Tool],
        indexes: Sequence[int],
        extra: Extra | None,
        *,
        has_calls: bool,
    ) -> None:
        self.target = target
        self.rules = target.rules
        self.protocol = target.model.protocol
        self.given = given
        self.indexes = indexes
        self.extra = extra
        self.changes: list[Change] = []
        self.tools: dict[int, list[Tool]] = {}
        """What replaces the tool at a position of `given`."""
        self.added: list[Tool] = []
        """Tools that replace fields of the request body."""
        self.functions = {tool.name for tool in given if tool.kind == "function"}
        self.has_calls = has_calls
        self.has_functions = bool(self.functions) or has_calls
        self.sent: dict[str, Mapping[ToolOption, object]] = {}
        """The tools of the target that the request has, by name, with their options."""
        self.count = 0

    def run(self) -> None:
        found = [*self.find_tools(), *self.find_fields()]
        self.count = len(found) + sum(map(len, self.tools.values()))
        # A tool of the same kind comes before one that only covers it.
        chosen = [(entry, self.choose(entry.use)) for entry in found]
        for entry, tool in sorted(chosen, key=lambda pair: pair[1] is None or pair[1].kind != pair[0].use.tool.kind):
            self.replace_one(entry, tool)

    # -- finding -------------------------------------------------------------------------------------------------------

    def find_tools(self) -> list[_Found]:
        found: list[_Found] = []
        for index, tool in enumerate(self.given):
            if tool.kind != "native":
                continue
            path = ("tools", self.indexes[index])
            record = find_protocol(tool.protocol)
            known = record.server_tools if record is not None else ()
            for definition in split_definition(known, tool.definition):
                use = read_definition(known, definition, self.body_of(tool.protocol))
                if tool.protocol == self.protocol and (use is None or self.is_accepted(use)):
                    part = tool if definition is tool.definition else replace(tool, definition=definition)
                    self.keep(index, part, use)
                elif use is not None:
                    found.append(_Found(index, path, tool.protocol, use, tool))
                else:
                    self.remove(path, f"only {tool.protocol} supports it")
                    self.tools.setdefault(index, [])
            if self.tools.get(index) and len(self.tools[index]) == len(split_definition(known, tool.definition)):
                self.tools[index] = [tool]
        return found

    def find_fields(self) -> list[_Found]:
        found: list[_Found] = []
        for protocol, part in (self.extra or {}).items():
            record = find_protocol(protocol)
            for known in record.server_tools if record is not None else ():
                key = known.key[0]
                if known.place != "body" or not isinstance(part.get(key), Mapping):
                    continue
                use = read_definition((known,), {key: part[key]})
                if use is None:
                    continue
                if protocol == self.protocol and self.is_accepted(use):
                    self.sent[use.tool.name] = use.options
                    continue
                found.append(_Found(None, _EXTRA, protocol, use, None))
                self.drop_field(protocol, key)
        return found

    def keep(self, index: int, tool: NativeTool, use: ToolUse | None) -> None:
        self.tools.setdefault(index, []).append(tool)
        if use is not None:
            self.sent[use.tool.name] = use.options
            if self.functions and self.rules.server_tools_with_functions == "flag":
                self.add_fields(use.tool.beside_functions)

    def is_accepted(self, use: ToolUse) -> bool:
        """Whether the target has this tool of its own protocol, with every option in the same place."""
        accepted = self.rules.server_tools
        if accepted is None:
            return True
        if self.functions and self.rules.server_tools_with_functions == "refused":
            return False
        paths = use.tool.options
        rows = [tool for tool in self.own_tools() if tool.matches(use.definition)]
        return any(all(tool.options.get(name) == paths[name] for name in use.options) for tool in rows)

    def own_tools(self) -> list[ServerTool]:
        record, accepted = find_protocol(self.protocol), self.rules.server_tools
        if record is None or accepted is None:
            return []
        return [tool for tool in record.server_tools if tool.name in accepted]

    # -- replacing -----------------------------------------------------------------------------------------------------

    def choose(self, use: ToolUse) -> ServerTool | None:
        """Find the target's tool of the same kind, else one that does the same among other things."""
        rows = [tool for tool in self.own_tools() if tool.template is not None]
        exact = [tool for tool in rows if tool.kind == use.tool.kind]
        return next(iter(exact), None) or next((tool for tool in rows if use.tool.kind in tool.covers), None)

    def replace_one(self, entry: _Found, tool: ServerTool | None) -> None:
        if entry.index is not None:
            self.tools.setdefault(entry.index, [])
        if entry.use.tool.kind == "tool_search" and (tool is None or not self.is_deferred()):
            self.note(ChangeCode.TOOL_SEARCH_REMOVED, entry.path, Loss.NONE)
            return
        if tool is None:
            title = _TITLES.get(entry.use.tool.kind)
            missing = "none of the target is known" if self.rules.server_tools is None else "the target has none"
            why = f"{title}: {missing}" if title else f"only {entry.protocol} supports it"
            self.remove(entry.path, why if entry.index is not None else f"{_title(entry.use)}; {why}")
            return
        options, lost = self.options_for(entry, tool)
        refusal = self.refusal(tool, options, lost)
        if refusal:
            self.remove(entry.path, refusal)
            return
        if tool.name in self.sent and tool.kind != "mcp":
            if self.sent[tool.name] != options:
                lost = [*lost, *(name for name in options if self.sent[tool.name].get(name) != options[name])]
            self.note_mapped(entry, tool, lost)
            return
        self.sent[tool.name] = options
        if (form := entry.use.tool.form) is not None and form.servers in self.body_of(entry.protocol):
            name = entry.use.options.get("server_name")
            self.extra = without_server(self.extra or {}, entry.protocol, form.servers, name) or None
        self.write(entry, tool, options)
        self.note_mapped(entry, tool, lost)

    def options_for(self, entry: _Found, tool: ServerTool) -> tuple[dict[ToolOption, object], list[str]]:
        """Return the options that the target's tool can express, and the names of those that are lost."""
        options = dict(entry.use.options)
        body = self.body_of(entry.protocol)
        lost: list[str] = []
        for option, key in entry.use.tool.body_options.items():
            value = body.get(key)
            if value is not None and self.count == 1:
                options.setdefault(option, value)
                self.drop_field(entry.protocol, key)
        if "stores" in options:
            options["stores"] = self.mapped_stores(options["stores"], entry.protocol)
        for option in lost_options(tool, options):
            value = options.pop(option)
            key = tool.body_options.get(option)
            if key is not None and self.count == 1:
                self.add_fields({key: value})
            else:
                lost.append(option)
        return options, [*lost, *entry.use.unread]

    def is_deferred(self) -> bool:
        """Whether a function is to be loaded by a search for tools; one that was called has to be sent in full."""
        return not self.has_calls and any(
            "defer_loading" in part for tool in self.given for part in (tool.extra or {}).values()
        )

    def mapped_stores(self, stores: object, protocol: str) -> list[str]:
        """Return the target's ids of stores; empty if `Policy.stores` does not have all of them."""
        known, record = self.target.policy.stores, find_protocol(protocol)
        ids = list(cast("Sequence[object]", stores)) if isinstance(stores, list | tuple) else [stores]
        is_own = (
            record is not None and record.provider == self.target.model.provider
        )  # another protocol of the same one
        names = [entry for entry in ids if isinstance(entry, str) and (is_own or entry in known)]
        mapped = [known.get(name, name) for name in names]
        return mapped if len(mapped) == len(ids) else []

    def refusal(self, tool: ServerTool, options: Mapping[ToolOption, object], lost: Sequence[str]) -> str:
        """Return the reason why the target cannot have this tool here; empty if it can."""
        if restricted := [name for name in lost if name.partition(".")[0] in RESTRICTING]:
            return f"{tool.title()} of the target cannot be restricted by {restricted[0]}"
        if tool.kind == "mcp" and not options.get("server_url"):
            return "only its provider knows the server"
        if tool.kind == "file_search" and not options.get("stores"):
            return "the target does not know these stores; name its own with Policy(stores={...})"
        name = (tool.template or {}).get("name")
        if name is not None and name in self.functions:
            return f"another tool has the name {name}"
        if self.has_functions and self.rules.server_tools_with_functions == "refused":
            return f"the target refuses {tool.title()} together with functions"
        return ""

    def write(self, entry: _Found, tool: ServerTool, options: Mapping[ToolOption, object]) -> None:
        definition, server = write_definition(tool, options)
        if server and tool.form is not None:
            servers = list_of(self.body_of(self.protocol).get(tool.form.servers))
            self.add_fields({tool.form.servers: [*servers, server]})
        if tool.place == "body":
            self.add_fields(definition)
        else:
            mark = entry.tool.cache_mark if entry.tool is not None else None
            native = NativeTool(protocol=self.protocol, definition=definition, cache_mark=mark)
            (self.added if entry.index is None else self.tools[entry.index]).append(native)
        if self.has_functions and self.rules.server_tools_with_functions == "flag":
            self.add_fields(tool.beside_functions)

    # -- the report and the body ---------------------------------------------------------------------------------------

    def note(self, code: ChangeCode, path: Path, loss: Loss, detail: str = "") -> None:
        self.changes.append(Change(code=code, path=path, loss=loss, detail=detail))

    def remove(self, path: Path, why: str) -> None:
        self.note(ChangeCode.TOOL_REMOVED, path, Loss.CONTENT, why)

    def note_mapped(self, entry: _Found, tool: ServerTool, lost: Sequence[str]) -> None:
        names: dict[str, object] = {}
        for name in lost:
            value = _value_of(entry.use, name)
            place = {**object_of(names.get(_LOCATION)), name: value} if name in LOCATION else value
            names[_LOCATION if name in LOCATION else name] = place
        detail = f"{_title(entry.use)} -> {tool.title()}"
        if names:
            detail += f", without {removal_of(names)[1]}"
        self.note(ChangeCode.SERVER_TOOL_MAPPED, entry.path, Loss.CONTENT if names else Loss.NONE, detail)

    def body_of(self, protocol: str) -> Block:
        return (self.extra or {}).get(protocol, {})

    def drop_field(self, protocol: str, key: str) -> None:
        extra = dict(self.extra or {})
        rest = {name: value for name, value in extra.pop(protocol, {}).items() if name != key}
        self.extra = ({**extra, protocol: rest} if rest else extra) or None

    def add_fields(self, fields: Block) -> None:
        extra = dict(self.extra or {})
        held = extra.get(self.protocol, {})
        if fields and (wire := merged(held, fields)) != held:
            self.extra = {**extra, self.protocol: wire}


def _value_of(use: ToolUse, name: str) -> object:
    """Return the value of a setting: a neutral option, or the path of one that was not read."""
    found: object = use.definition
    for key in name.split("."):
        found = object_of(found).get(key)
    return use.options.get(cast("ToolOption", name), found)


def _title(use: ToolUse) -> str:
    """Name a tool as its definition does: by its type, its name or its key."""
    found: object = use.definition
    for key in use.tool.key if use.tool.kind != "mcp" else ("type",):
        found = object_of(found).get(key)
    return found if isinstance(found, str) else use.tool.key[-1]


def has_server_tools(tools: Sequence[Tool], extra: Extra | None) -> bool:
    """Whether a request may have server tools: native tools, or fields of the body that are tools."""
    if tools and any(tool.kind == "native" for tool in tools):
        return True
    if extra is None:
        return False
    count = registered_count()
    return any(part and not _body_keys(protocol, count).isdisjoint(part) for protocol, part in extra.items())


@lru_cache(maxsize=64)
def _body_keys(protocol: str, count: int) -> frozenset[str]:  # noqa: ARG001 - new records need new entries
    record = find_protocol(protocol)
    return frozenset() if record is None else body_keys(record.server_tools)


def server_tool_fields(extra: Extra | None, protocol: str) -> Extra | None:
    """Return the fields of an `extra` that are server tools or options of them."""
    record, part = find_protocol(protocol), (extra or {}).get(protocol)
    if record is None or not part:
        return None
    keys = body_keys(record.server_tools)
    kept: Wire = {key: value for key, value in part.items() if key in keys}
    return {protocol: kept} if kept else None
