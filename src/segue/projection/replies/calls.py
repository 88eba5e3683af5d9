"""Calls as the client knows them: ids and names that it accepts, its namespaces, the format that it declared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from msgspec.structs import replace

from segue.conversation.content import ToolCall
from segue.conversation.context import Tool, ToolDefinition
from segue.projection.passes.ids import digest, is_legal_id
from segue.projection.passes.names import wire_name
from segue.projection.replies.shown import ReplyClient
from segue.projection.report import ChangeCode, Loss
from segue.projection.workspace.namespace_table import NamespaceTable, read_table
from segue.protocols.kit.json_values import EMPTY, Block

_ID_LENGTH: Final = 24


@final
class CallForms:
    """Converts the calls of one reply to the form that the client knows; remembers what was replaced."""

    def __init__(self, client: ReplyClient, tools: Sequence[Tool]) -> None:
        self._client = client
        self._tools: dict[str, ToolDefinition] = {tool.name: tool for tool in tools if tool.kind == "function"}
        self._namespaces: NamespaceTable = read_table(tuple(tools))
        self._used: set[str] = set()
        self._ids: dict[int, str] = {}  # of calls that began, by their index
        self.names: dict[str, str] = {}
        """What the client returns -> the name that the model wrote."""
        self.ids: dict[str, str] = {}
        """What the client returns -> the id that the model wrote."""

    def begin(self, call_id: str, name: str, index: int) -> tuple[str, str, Block]:
        """Return the id and the name of a call that begins, and the keys of this protocol there."""
        shown, first = self._show(ToolCall(id=call_id, name=name), index)
        call_id, name = shown.id, shown.name
        self._ids[index] = call_id
        return call_id, name, first

    def end(self, call: ToolCall, index: int) -> ToolCall:
        """Return a whole call, without its signature; it has the id that its beginning had."""
        return self._show(call, index)[0]

    def _show(self, call: ToolCall, index: int) -> tuple[ToolCall, Block]:
        client = self._client
        call_id = self._ids.pop(index, None) or self._id(call.id, index)
        shown, first = self._declared(call if client.is_same or not call.extra else replace(call, extra=None), index)
        return (shown if shown.id == call_id else replace(shown, id=call_id)), first

    def _declared(self, call: ToolCall, index: int) -> tuple[ToolCall, Block]:
        """Convert a call to the format that the client declared; for another model, also its name and namespace."""
        client, tool = self._client, self._tools.get(call.name)
        space, name = (None, "") if client.is_same else self._namespaces.names.get(call.name, (None, ""))
        if space is not None and client.record.namespaces is not None:
            return client.record.namespaces.add(replace(call, name=name), space), {"namespace": space}
        if tool is not None and client.form.as_declared is not None:
            shown, first = client.form.as_declared(call, tool)
            if call.arguments and shown.arguments != call.arguments:
                client.note(ChangeCode.ARGUMENTS_UNPARSED, ("content", index), Loss.NONE, "text of a freeform tool")
            return shown, first
        name = call.name if client.is_same or tool is not None else self._name(call.name, index)
        return (call if name == call.name else replace(call, name=name)), EMPTY

    def _id(self, given: str, index: int) -> str:
        rules = self._client.rules
        if given and given not in self._used and (self._client.is_same or is_legal_id(given, rules)):
            self._used.add(given)
            return given
        length = max(rules.call_id_min, min(_ID_LENGTH, rules.call_id_max or _ID_LENGTH))
        attempt = 0
        while (made := digest(f"{attempt}:{given}", length, rules.call_id_alphabet)) in self._used:
            attempt += 1
        self._used.add(made)
        self.ids[made] = given
        self._client.note(ChangeCode.ID_CHANGED, ("content", index, "id"), Loss.NONE, made)
        return made

    def _name(self, given: str, index: int) -> str:
        made = wire_name(given, self._client.rules)
        if made != given and made not in self.names:
            self.names[made] = given
            self._client.note(ChangeCode.NAME_CHANGED, ("content", index, "name"), Loss.NONE, made)
        return made
