"""Pass 2, part 2: send no id of an item twice.

Facts:
- OpenAI refuses a second item with an id, whatever its content is; `item_ids` of the protocol has the sources. Servers
  that number the items of each reply from zero give the same ids again, and clients send a turn twice.
- Reasoning and the items after it have ids together or not at all.                           (mastra #10713, rig #751)
- The new form must not depend on later messages, or later requests miss the cache.                  (context-guru #24)

The first item keeps its id. In a turn that repeats one, no item but native blocks has an id; a native block that
repeats one is replaced by its fallback, because its id may be that which its result names.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, Extra, NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.messages import AssistantMessage, Message
from segue.projection.report import ChangeCode, Loss
from segue.projection.workspace.workspace import Workspace
from segue.protocols.kit.facts import ItemIds
from segue.protocols.kit.reading import text_of

_TWICE: Final = "another item has its id"
_LONGEST: Final = 65
"""Characters of a signature in which an id ends: OpenAI's have at most 64."""


def separate_items(workspace: Workspace) -> None:
    """Remove the ids of items that were sent before, where the target refuses that."""
    ids = workspace.target.protocol.item_ids
    if ids is not None and workspace.target.rules.unique_items and not _are_new(workspace, ids.start):
        _Items(workspace, ids).run()


def _are_new(workspace: Workspace, start: str) -> bool:
    """Note all ids at once if they are new and different, as nearly always; False if each turn has to be looked at."""
    scan, size = workspace.scan, len(start)
    if scan.extra or scan.native:
        return False
    turns = workspace.messages
    if scan.foreign or workspace.cross_model:
        turns = [message for index, message in enumerate(turns) if workspace.is_own(index)]
    signatures = [
        signature
        for message in turns
        if type(message) is AssistantMessage
        for piece in message.content
        if (
            signature := piece.thought_signature
            if type(piece) is ToolCall
            else piece.text_signature
            if type(piece) is TextContent
            else piece.thinking_signature
            if type(piece) is ThinkingContent
            else None
        )
        is not None
    ]
    found = [each[size : size + _LONGEST].partition('"')[0] for each in signatures if each[:size] == start]
    if len(found) < len(signatures) and any('"id"' in each for each in signatures if each[:size] != start):
        return False
    ids = set(found)
    if len(ids) < len(found) or not workspace.prefix_state.are_new_items(ids):
        return False
    if "\\" in "".join(found) or max(map(len, found), default=0) == _LONGEST:  # not the whole id
        return False
    workspace.prefix_state.item_ids |= ids
    return True


class _Items:
    """Looks at the items of one segment, in order."""

    def __init__(self, workspace: Workspace, ids: ItemIds) -> None:
        self.workspace = workspace
        self.ids = ids
        self.protocol: str = workspace.target.model.protocol

    def run(self) -> None:
        has_natives = self.workspace.scan.native
        for index, message in enumerate(self.workspace.messages):
            if has_natives and (message.role != "assistant" or self.workspace.is_own(index)):
                self.natives(index, message)
            if message.role == "assistant":
                self.turn(index, message)
            elif message.extra is not None:
                self.message(index, message, message.extra)

    def turn(self, index: int, message: AssistantMessage) -> None:
        """Remove the ids of a turn in which one was used before."""
        is_own, find = self.workspace.is_own(index), self.ids.find
        found = [find(piece) if is_own or piece.extra is not None else None for piece in message.content]
        given = [one for one in found if one is not None]
        state = self.workspace.prefix_state
        if len(set(given)) == len(given) and not any(map(state.has_item, given)):
            state.item_ids.update(given)
            return
        content: list[AssistantContent] = list(message.content)
        for position, one in enumerate(found):
            if one is not None:
                content[position] = self.ids.remove(content[position])
                path = (*self.workspace.content_path(index, position), "id")
                self.workspace.note(ChangeCode.ID_CHANGED, path, Loss.OPAQUE, f"{one} removed")
        self.workspace.put(index, replace(message, content=tuple(content)), added=0)

    def natives(self, index: int, message: Message) -> None:
        """Refuse the native blocks whose ids were used before."""
        state, place = self.workspace.prefix_state, self.workspace.places[index]
        for position, piece in enumerate(message.content):
            item_id = self.native_id(piece) if piece.kind == "native" else None
            if item_id is None:
                continue
            if state.has_item(item_id):
                self.workspace.refused[place, position] = _TWICE
            state.item_ids.add(item_id)

    def native_id(self, piece: NativeContent) -> str | None:
        """Return the id of the item that a native block is."""
        if piece.protocol != self.protocol or text_of(piece.block.get("type")) in self.ids.references:
            return None
        return text_of(piece.block.get("id"))

    def message(self, index: int, message: Message, extra: Extra) -> None:
        """Remove the id of a message that is one item."""
        fields = extra.get(self.protocol, {})
        item_id = text_of(fields.get("id"))
        if item_id is None:
            return
        state = self.workspace.prefix_state
        if state.has_item(item_id):
            rest = {**extra, self.protocol: {key: value for key, value in fields.items() if key != "id"}}
            path = (*self.workspace.path(index), "extra")
            self.workspace.note(ChangeCode.EXTRA_REMOVED, path, Loss.OPAQUE, f"id {item_id}: {_TWICE}")
            self.workspace.put(index, replace(message, extra=rest), added=0)
        state.item_ids.add(item_id)
