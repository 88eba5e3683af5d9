"""Pass 5, part 1: name the functions of namespaces as the target does.

Facts:
- Only one protocol groups functions in namespaces. Other targets get them one by one, with the namespace in the name of
  the function and of every call in the history.                               (CLIProxyAPI #4423, 2026-07-18)
- A call without its namespace is refused: "Missing namespace for function_call 'x'."  (pi #7709, vercel/ai #15193)
- A model finds a deferred function by a search, and its call says so. A call by another model does not, so the function
  has to be sent in full.                                                        (dust #31323, 2026-08-28)

Names outside the wire: a function has its own name if no other function has it, else `namespace.name`. The pass runs
before signatures of other models are removed, because the namespace of a call is kept in its signature.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, ToolCall
from segue.conversation.context import Tool, ToolDefinition
from segue.conversation.messages import AssistantMessage, ToolResultMessage
from segue.models.rules import Rules
from segue.projection.passes.ids import digest
from segue.projection.passes.names import wire_name
from segue.projection.report import ChangeCode, Loss
from segue.projection.workspace.namespace_table import NO_NAMESPACES, NamespaceTable, find_namespaces
from segue.projection.workspace.scan import Scan
from segue.projection.workspace.workspace import Workspace
from segue.protocols.kit.facts import FunctionName, Namespace, Namespaces

_JOIN: Final = "__"


def flat_name(key: FunctionName, table: NamespaceTable, rules: Rules) -> str:
    """Return the name of a function of a namespace on a wire without namespaces."""
    space, name = key
    if space is None or space == name:
        return name
    joined = f"{space.rstrip('_')}{_JOIN}{name}" if not space.endswith(_JOIN) else f"{space}{name}"
    if joined in table.taken:
        joined = f"{joined}_{digest(joined, 8, rules.tool_name_alphabet)}"
    return wire_name(joined, rules)


def flat_functions(space: Namespace, table: NamespaceTable, rules: Rules) -> list[tuple[str, ToolDefinition]]:
    """Return the functions of a namespace for a wire without namespaces, each with its name outside the wire."""
    functions: list[tuple[str, ToolDefinition]] = []
    for function in space.functions:
        key = (space.name, function.name)
        description = "\n\n".join(text for text in (space.description, function.description) if text)
        flat = replace(function, name=flat_name(key, table, rules), description=description)
        functions.append((table.functions.get(key, function.name), flat))
    return functions


def name_namespaced(workspace: Workspace) -> None:
    """Rename every call and result of a function in a namespace to its name at the target."""
    table = workspace.target.namespaces or NO_NAMESPACES
    scan = workspace.scan
    if not scan.names:
        return
    if table.is_empty() and not _may_have_namespaces(scan):
        return
    _Names(workspace, table).run()


def _may_have_namespaces(scan: Scan) -> bool:
    """Whether a call of another model may name its namespace."""
    if not scan.foreign:
        return False
    codecs = [codec for codec in map(find_namespaces, scan.protocols) if codec is not None]
    if not codecs or scan.extra:
        return bool(codecs)
    signatures = "\n".join(scan.call_signatures)
    return any(codec.key in signatures for codec in codecs)


class _Names:
    """Renames the calls of one segment, and the results after them."""

    def __init__(self, workspace: Workspace, table: NamespaceTable) -> None:
        self.workspace = workspace
        self.table = table
        self.is_empty = table.is_empty()
        self.rules = workspace.target.rules
        own = find_namespaces(workspace.target.model.protocol)
        self.own = own if self.rules.tool_namespaces else None
        self.codecs: dict[str, Namespaces | None] = {}
        self.renamed: dict[str, str] = {}
        """The ids of renamed calls -> their new names."""
        self.changed = False

    def run(self) -> None:
        for index, message in enumerate(self.workspace.messages):
            if message.role == "assistant":
                self.turn(index, message)
            elif message.role == "toolResult" and message.tool_call_id in self.renamed:
                self.result(index, message)
        if self.changed:
            self.update_scan()

    def turn(self, index: int, message: AssistantMessage) -> None:
        codec, is_empty = self.codec(message.protocol), self.is_empty
        if codec is None and is_empty:
            return
        content: list[AssistantContent] | None = None
        for position, piece in enumerate(message.content):
            if type(piece) is not ToolCall:
                continue
            written = None if codec is None else codec.find(piece)
            if self.renamed:
                self.renamed.pop(piece.id, None)
            if written is None and is_empty:
                continue
            call = self.call(piece, written, index)
            if call is not piece:
                content = list(message.content) if content is None else content
                content[position] = call
                path = (*self.workspace.content_path(index, position), "extra" if call.name == piece.name else "name")
                space = self.own.find(call) if self.own is not None else None
                detail = call.name if space is None else f"{call.name} of {space}"
                self.workspace.note(ChangeCode.NAME_CHANGED, path, Loss.NONE, detail)
                if call.name != piece.name:
                    self.renamed[piece.id] = call.name
        if content is not None:
            self.changed = True
            self.workspace.put(index, replace(message, content=tuple(content)))

    def call(self, call: ToolCall, written: str | None, index: int) -> ToolCall:
        """Return a call with its name and namespace at the target; `written` is the name that it came with."""
        if written is not None and written != call.name:
            key: FunctionName = (written, call.name)
        else:
            key = self.table.names.get(call.name, (None, call.name))
        space, name = key
        if self.own is None:
            flat = flat_name(key, self.table, self.rules)
            return call if flat == call.name or space is None else replace(call, name=flat)
        if written is not None and self.workspace.is_own(index):
            return call
        if key in self.table.deferred:
            self.workspace.prefix_state.loaded[key] = None
        if space is None or key not in self.table.functions:
            return call  # a namespace that the request does not declare means nothing to another model
        return self.own.add(call if name == call.name else replace(call, name=name), space)

    def codec(self, protocol: str) -> Namespaces | None:
        if protocol not in self.codecs:
            self.codecs[protocol] = find_namespaces(protocol)
        return self.codecs[protocol]

    def result(self, index: int, message: ToolResultMessage) -> None:
        name = self.renamed[message.tool_call_id]
        if message.tool_name and message.tool_name != name:
            if self.workspace.is_given(index):
                path = (*self.workspace.path(index), "tool_name")
                self.workspace.note(ChangeCode.NAME_CHANGED, path, Loss.NONE, name)
            self.workspace.put(index, replace(message, tool_name=name))

    def update_scan(self) -> None:
        """Record the new names, and that calls have an `extra` now."""
        scan, messages = self.workspace.scan, self.workspace.messages
        calls = [call for message in messages if message.role == "assistant" for call in message.tool_calls()]
        scan.names = dict.fromkeys(call.name for call in calls)
        scan.result_names = {message.tool_name for message in messages if message.role == "toolResult"} - set(
            scan.names
        )
        scan.extra = True


def load_called(tool: Tool, loaded: Mapping[FunctionName, None], codec: Namespaces) -> Tool:
    """Send the functions in full that calls of other models name; the same object when there are none."""
    if tool.kind == "function":
        is_needed = (None, tool.name) in loaded and codec.is_deferred(tool)
        return codec.load(tool, {tool.name}) if is_needed else tool
    space = codec.read(tool)
    if space is None:
        return tool
    names = {
        function.name
        for function in space.functions
        if (space.name, function.name) in loaded and codec.is_deferred(function)
    }
    return codec.load(tool, names) if names else tool
