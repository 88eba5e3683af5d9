"""No more cache marks than the target takes: the newest stay.

Facts this file rests on:
- A fifth mark is refused: "A maximum of 4 blocks with cache_control may be provided."     (sub2api #176, zeph #1568)
- The newest marks are the ones that later requests read from; tools and system prompt count too.
- A target that knows no marks may answer one with an error.   (AWS documentation: prompt caching, read 2026-11-15)

Marks do not change what a request means, so moving them leaves the cached prefix valid.
"""

from __future__ import annotations

from msgspec.structs import replace

from segue.conversation.content import AnyContent, Extra
from segue.conversation.context import Tool
from segue.conversation.messages import Message
from segue.errors import Path
from segue.projection.report import Change, ChangeCode, Loss
from segue.projection.workspace.workspace import SystemPrompt, Target, Workspace

Mark = tuple[int, int | None, Path]
"""The message that carries a mark, counted among all that came out; the block, None for the message itself; and where
that stood."""


def find_marks(workspace: Workspace, first: int) -> list[Mark]:
    """Find the marks in a worked stretch whose first message is the `first` of all that come out."""
    key, protocol = workspace.target.rules.cache_mark_key, workspace.target.model.protocol
    if key is None or not workspace.scan.extra:
        return []
    marks: list[Mark] = []
    for index, message in enumerate(workspace.messages):
        if _has(message.extra, protocol, key):
            marks.append((first + index, None, (*workspace.path(index), "extra")))
        for position, content in enumerate(message.content):
            if _has(content.extra, protocol, key):
                marks.append((first + index, position, workspace.content_path(index, position)))
    return marks


class Fitted:
    """A request whose marks are within the limit."""

    __slots__ = ("changes", "messages", "prompt", "tools")

    def __init__(self, messages: tuple[Message, ...], prompt: SystemPrompt, tools: tuple[Tool, ...]) -> None:
        self.messages = messages
        self.prompt = prompt
        self.tools = tools
        self.changes: tuple[Change, ...] = ()


def limit_marks(
    target: Target, messages: tuple[Message, ...], marks: list[Mark], prompt: SystemPrompt, tools: tuple[Tool, ...]
) -> Fitted:
    """Take the oldest marks away until the rest is allowed: first the tools', then the prompt's, then the messages'."""
    fitted = Fitted(messages, prompt, tools)
    key, limit, protocol = target.rules.cache_mark_key, target.rules.cache_marks, target.model.protocol
    if key is None:
        return fitted
    pieces = prompt if isinstance(prompt, tuple) else ()
    places: list[Path] = [("tools", index) for index, tool in enumerate(tools) if _has(tool.extra, protocol, key)]
    places += [("system_prompt", index) for index, piece in enumerate(pieces) if _has(piece.extra, protocol, key)]
    excess = len(places) + len(marks) - limit
    if excess <= 0:
        return fitted
    new_tools, new_pieces, new_messages = list(tools), list(pieces), list(messages)
    for root, index in places[:excess]:
        if root == "tools":
            tool = new_tools[int(index)]
            new_tools[int(index)] = replace(tool, extra=_unmarked(tool.extra, protocol, key))
        else:
            piece = new_pieces[int(index)]
            new_pieces[int(index)] = replace(piece, extra=_unmarked(piece.extra, protocol, key))
    dropped = marks[: max(0, excess - len(places))]
    for index, position, _ in dropped:
        message = new_messages[index]
        if position is None:
            new_messages[index] = replace(message, extra=_unmarked(message.extra, protocol, key))
            continue
        content: list[AnyContent] = list(message.content)
        content[position] = replace(content[position], extra=_unmarked(content[position].extra, protocol, key))
        new_messages[index] = replace(message, content=tuple(content))
    fitted.tools, fitted.messages = tuple(new_tools), tuple(new_messages)
    fitted.prompt = tuple(new_pieces) if pieces else prompt
    paths = [*places[:excess], *(path for _, _, path in dropped)]
    fitted.changes = tuple(Change(code=ChangeCode.CACHE_MARK_REMOVED, path=path, loss=Loss.NONE) for path in paths)
    return fitted


def _has(extra: Extra | None, protocol: str, key: str) -> bool:
    return extra is not None and key in extra.get(protocol, {})


def _unmarked(extra: Extra | None, protocol: str, key: str) -> Extra | None:
    rest = {name: part for name, part in (extra or {}).items() if name != protocol}
    part = {name: value for name, value in (extra or {}).get(protocol, {}).items() if name != key}
    if part:
        rest[protocol] = part
    return rest or None
